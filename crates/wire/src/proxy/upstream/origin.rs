//! Where requests go: scheme, host, base path, and the key that belongs to them.

use std::borrow::Cow;

use hyper::{Uri, header::HeaderValue};

/// What clients' paths begin with, where nothing else is said.
const VERSION: &str = "/v1";

/// Where requests go.
#[derive(Debug, Clone)]
pub struct UpstreamOrigin {
    pub(super) scheme: hyper::http::uri::Scheme,
    pub(super) authority: hyper::http::uri::Authority,
    /// The path that takes the place of what clients [put](Self::mount) before it; without a slash at its end.
    path: String,
    /// What clients' paths begin with, which is none of the upstream's.
    mount: Cow<'static, str>,
    /// Takes the place of the client's key.
    pub(super) key: Option<OriginKey>,
}

/// The key of an origin, as headers carry it.
#[derive(Debug, Clone)]
pub(super) struct OriginKey {
    /// Of `Authorization`.
    pub(super) bearer: HeaderValue,
    /// Of a header that holds nothing else.
    pub(super) plain: HeaderValue,
}

impl OriginKey {
    fn new(name: &str, key: &str) -> Result<Self, OriginError> {
        let value = |text: &str| {
            let mut value = HeaderValue::from_str(text).map_err(|_| OriginError::Key(name.to_owned()))?;
            value.set_sensitive(true);
            Ok::<_, OriginError>(value)
        };
        Ok(Self { bearer: value(&format!("Bearer {key}"))?, plain: value(key)? })
    }
}

/// Why an upstream URL or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// Not an http or https URL.
    #[error("`{0}` is not an upstream: expected http://HOST[:PORT][/PATH], https://… or `simulator`")]
    Url(String),
    /// The URL carries a user name or password.
    #[error("the upstream URL holds a user name or password: give the key in an environment variable (key_env)")]
    Userinfo,
    /// The key cannot be a header value.
    #[error("the key in `{0}` holds characters that no header can carry")]
    Key(String),
    /// The environment variable that is to hold a key is not set.
    #[error("the environment variable `{0}` is not set, and the upstream's key is expected in it")]
    KeyMissing(String),
    /// A certificate file cannot be used.
    #[error("cannot use the certificates in `{path}`: {why}")]
    Certificates {
        /// The file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

impl UpstreamOrigin {
    /// Reads a URL; `key` takes the place of the client's key.
    ///
    /// # Errors
    /// [`OriginError`] when it is no origin.
    pub fn parse(url: &str, key: Option<(&str, &str)>) -> Result<Self, OriginError> {
        let uri: Uri = url.parse().map_err(|_| OriginError::Url(url.to_owned()))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(OriginError::Url(url.to_owned()));
        };
        if !["http", "https"].contains(&scheme.as_str())
            || parts.path_and_query.as_ref().is_some_and(|p| p.query().is_some())
        {
            return Err(OriginError::Url(url.to_owned()));
        }
        if authority.as_str().contains('@') {
            return Err(OriginError::Userinfo);
        }
        let path = parts.path_and_query.map(|path| path.path().trim_end_matches('/').to_owned()).unwrap_or_default();
        let key = key.map(|(name, key)| OriginKey::new(name, key)).transpose()?;
        Ok(Self { scheme, authority, path, mount: Cow::Borrowed(VERSION), key })
    }

    /// As [`parse`](Self::parse), where clients' paths begin with something else than `/v1`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn mounted(url: &str, key: Option<(&str, &str)>, mount: String) -> Result<Self, OriginError> {
        Ok(Self { mount: Cow::Owned(mount), ..Self::parse(url, key)? })
    }

    /// Whether it speaks an API of models, and no protocol of tools or peers.
    pub(super) fn is_of_models(&self) -> bool {
        self.mount == VERSION
    }

    /// Scheme, host and port.
    pub fn name(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// The host and port that requests go to.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The target of a request: an upstream path takes the place of what clients put before it. `None` where it stays as it is.
    pub(super) fn target(&self, client: &Uri) -> Result<Option<Uri>, hyper::http::Error> {
        let target = client.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
        // A provider whose address has no path has the version in its own.
        let is_own = self.path.is_empty() && self.is_of_models();
        if is_own && client.authority().is_none() {
            return Ok(None);
        }
        let rest = target.strip_prefix(&*self.mount).filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        let rest = rest.filter(|_| !is_own).unwrap_or(target);
        let slash = if self.path.is_empty() && !rest.starts_with('/') { "/" } else { "" };
        Uri::builder().path_and_query(format!("{}{slash}{rest}", self.path)).build().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (upstream, client, expected) in [
            ("http://h:1", "/v1/chat/completions?a=%20b&c", "/v1/chat/completions?a=%20b&c"),
            ("http://h:1/v1", "/v1/chat/completions", "/v1/chat/completions"),
            ("http://h:1/v1/", "/chat/completions", "/v1/chat/completions"),
            ("https://h/openai/v1", "/v1/models", "/openai/v1/models"),
            ("http://h/base", "/v1x/y", "/base/v1x/y"),
            ("http://h/base", "/v1", "/base"),
        ] {
            let origin = UpstreamOrigin::parse(upstream, None).expect("an origin");
            let client: Uri = client.parse().expect("a path");
            let target = origin.target(&client).expect("a target").unwrap_or(client);
            assert_eq!(target.to_string(), expected);
        }
    }

    #[test]
    fn what_is_put_before_another_path() {
        for (upstream, client, expected) in [
            ("http://h:1/mcp", "/mcp/calc", "/mcp"),
            ("http://h:1/mcp/", "/mcp/calc?x=1", "/mcp?x=1"),
            ("http://h:1", "/mcp/calc", "/"),
            ("http://h:1", "/mcp/calc/sse", "/sse"),
            ("http://h:1/a", "/mcp/calculator", "/a/mcp/calculator"),
        ] {
            let origin = UpstreamOrigin::mounted(upstream, None, "/mcp/calc".to_owned()).expect("an origin");
            let target = origin.target(&client.parse().expect("a path")).expect("a target");
            assert_eq!(target.map(|target| target.to_string()).as_deref(), Some(expected), "{upstream} {client}");
        }
    }

    #[test]
    fn what_is_no_origin() {
        for bad in ["", "h", "h:1", "ftp://h", "/v1", "http://h?x=1", "http://u:p@h", "http://"] {
            assert!(UpstreamOrigin::parse(bad, None).is_err(), "{bad}");
        }
        assert!(matches!(UpstreamOrigin::parse("http://h", Some(("K", "a\nb"))), Err(OriginError::Key(_))));
    }
}
