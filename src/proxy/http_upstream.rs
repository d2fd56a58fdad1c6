//! The backend over HTTP, plain or TLS: one default origin, further ones by model, each with its connections. HTTP/2 is
//! spoken where an origin offers it in the TLS handshake, else HTTP/1.1.

use std::{path::Path, sync::Arc, time::Duration};

use hyper::{
    HeaderMap, Request, StatusCode, Uri,
    header::{self, HeaderValue},
};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;

use super::{
    error::MARK,
    pool::{CONNECT_TIMEOUT, Pool},
    upstream::{Answering, Route, SentBody, Upstream, UpstreamError},
};

/// Where requests go.
#[derive(Debug, Clone)]
pub struct UpstreamOrigin {
    scheme: hyper::http::uri::Scheme,
    authority: hyper::http::uri::Authority,
    /// The path that takes the place of a client's leading `/v1`; without a slash at its end.
    path: String,
    /// Takes the place of the client's Authorization.
    authorization: Option<HeaderValue>,
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
        let authorization = key.map(|(name, key)| {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| OriginError::Key(name.to_owned()))?;
            value.set_sensitive(true);
            Ok::<_, OriginError>(value)
        });
        Ok(Self { scheme, authority, path, authorization: authorization.transpose()? })
    }

    /// Scheme, host and port.
    pub fn name(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// The host and port that requests go to.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The target of a request: an upstream path takes the place of the client's leading `/v1`. `None` where it stays
    /// as it is.
    fn target(&self, client: &Uri) -> Result<Option<Uri>, hyper::http::Error> {
        let target = client.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
        if self.path.is_empty() && client.authority().is_none() {
            return Ok(None);
        }
        let rest = target.strip_prefix("/v1").filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        let rest = rest.filter(|_| !self.path.is_empty()).unwrap_or(target);
        Uri::builder().path_and_query(format!("{}{rest}", self.path)).build().map(Some)
    }
}

/// The backend over HTTP.
#[derive(Debug)]
pub struct HttpUpstream {
    origins: Vec<(UpstreamOrigin, HeaderValue, Arc<Pool>)>,
    name: String,
    head_timeout: Duration,
}

impl HttpUpstream {
    /// A backend with a default origin and those of the model routes, in their order. `ca_file` holds PEM
    /// certificates that are trusted beside the system's.
    ///
    /// # Errors
    /// [`OriginError::Certificates`] when no usable certificate is found.
    pub fn new(
        default: UpstreamOrigin,
        routes: Vec<UpstreamOrigin>,
        ca_file: Option<&Path>,
        head_timeout: Duration,
    ) -> Result<Self, OriginError> {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let tls = super::tls::client_config(ca_file)?;
        let builder = || HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http().enable_http1();
        let plain = builder().wrap_connector(http.clone());
        let https = builder().enable_http2().wrap_connector(http);
        let name = default.name();
        let pooled = |origin: UpstreamOrigin| {
            let url = |_| OriginError::Url(origin.name());
            let base = Uri::builder().scheme(origin.scheme.clone()).authority(origin.authority.clone());
            let base = base.path_and_query("/").build().map_err(url)?;
            let host = HeaderValue::from_str(origin.authority.as_str());
            let host = host.map_err(|_| OriginError::Url(origin.name()))?;
            Ok((origin, host, Arc::new(Pool::new(https.clone(), plain.clone(), base))))
        };
        let origins = std::iter::once(default).chain(routes).map(pooled).collect::<Result<_, OriginError>>()?;
        Ok(Self { origins, name, head_timeout })
    }

    /// The request as its origin gets it, and the connections to that.
    fn prepare(&self, mut request: Request<SentBody>) -> Result<(Box<Request<SentBody>>, &Arc<Pool>), UpstreamError> {
        let route = request.extensions_mut().remove::<Route>();
        let index = route.map_or(0, |Route(index)| index + 1);
        let Some((origin, host, pool)) = self.origins.get(index) else {
            return Err(UpstreamError::Unreachable("no such route".into()));
        };
        let target = origin.target(request.uri()).map_err(|error| UpstreamError::Unreachable(Box::new(error)))?;
        if let Some(target) = target {
            *request.uri_mut() = target;
        }
        request.headers_mut().insert(header::HOST, host.clone());
        authorize(request.headers_mut(), origin, index == 0);
        // Boxed, because every future on its way to the connection holds it twice.
        Ok((Box::new(request), pool))
    }
}

/// What a client proves itself with goes to the default origin only, and not even there where it has a key of its own.
fn authorize(headers: &mut HeaderMap, origin: &UpstreamOrigin, default: bool) {
    if !default {
        headers.remove(header::COOKIE);
    }
    if !default || origin.authorization.is_some() {
        for name in ["authorization", "api-key", "x-api-key"] {
            headers.remove(name);
        }
    }
    if let Some(key) = &origin.authorization {
        headers.insert(header::AUTHORIZATION, key.clone());
    }
}

impl Upstream for HttpUpstream {
    fn name(&self) -> &str {
        &self.name
    }

    fn send(&self, request: Request<SentBody>) -> Answering<'_> {
        let prepared = self.prepare(request);
        Box::pin(async move {
            let (request, pool) = prepared?;
            let switches = request.headers().contains_key(header::UPGRADE);
            let answered = tokio::time::timeout(self.head_timeout, pool.send(request)).await;
            let mut answered = answered.unwrap_or(Err(UpstreamError::Timeout(self.head_timeout)))?;
            let headers = answered.headers_mut();
            // Two lengths: whoever reads it by the other one takes a part for the whole (RFC 9112, 6.3).
            if headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH) {
                return Err(UpstreamError::Framing);
            }
            // It says that an answer is ours.
            headers.remove(MARK);
            // What follows such a head is no HTTP: without a tunnel that waits for it, nobody could read it.
            if answered.status() == StatusCode::SWITCHING_PROTOCOLS && !switches {
                return Err(UpstreamError::Switched);
            }
            Ok(answered)
        })
    }
}

/// Shares an upstream.
impl HttpUpstream {
    /// The upstream as the exchange takes it.
    pub fn shared(self) -> Arc<dyn Upstream> {
        Arc::new(self)
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
    fn what_is_no_origin() {
        for bad in ["", "h", "h:1", "ftp://h", "/v1", "http://h?x=1", "http://u:p@h", "http://"] {
            assert!(UpstreamOrigin::parse(bad, None).is_err(), "{bad}");
        }
        assert!(matches!(UpstreamOrigin::parse("http://h", Some(("K", "a\nb"))), Err(OriginError::Key(_))));
    }
}
