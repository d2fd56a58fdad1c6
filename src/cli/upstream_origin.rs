//! The origin of an upstream that a file or a flag names, with its key.

use crate::proxy::UpstreamOrigin;

/// An upstream whose key, if it has one of its own, is in an environment variable.
pub(super) fn origin(url: &str, key_env: Option<&str>) -> Result<UpstreamOrigin, crate::proxy::OriginError> {
    let key = key_env.map(|name| {
        let key = std::env::var(name).ok().filter(|key| !key.is_empty());
        key.map(|key| (name, key)).ok_or_else(|| crate::proxy::OriginError::KeyMissing(name.to_owned()))
    });
    let key = key.transpose()?;
    UpstreamOrigin::parse(url, key.as_ref().map(|(name, key)| (*name, key.as_str())))
}

/// The environment variable that sends other programs to an upstream by way of a forward proxy, if there is one.
pub(super) fn followed_by_others(url: &str) -> Option<&'static str> {
    let names: &[&str] = if url.starts_with("https:") {
        &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    } else {
        &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
    };
    let uri: hyper::Uri = url.parse().ok()?;
    let host = uri.host()?.trim_matches(['[', ']']);
    let is_near = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    names.iter().find(is_set).copied().filter(|_| !is_near)
}
