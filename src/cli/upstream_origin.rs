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
