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
    backend::{BackendAnswering, Route, Upstream},
    body::ReceivedBody,
    connection::CONNECT_TIMEOUT,
    error::UpstreamError,
    origin::{OriginError, OriginKey, UpstreamOrigin},
    pool::Pool,
    tls,
    upload::SentBody,
};
use crate::{
    proxy::{frames, headers::MARK},
    recording,
    surface::{self, Surface},
};

/// The backend over HTTP.
#[derive(Debug)]
pub struct HttpUpstream {
    origins: Vec<(UpstreamOrigin, HeaderValue, Arc<Pool>)>,
    name: String,
    head_timeout: Duration,
}

/// A request, the origin it goes to, and the connections to that.
type PreparedRequest<'a> = (Box<Request<SentBody>>, &'a UpstreamOrigin, &'a Arc<Pool>);

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
        let tls = tls::client_config(ca_file)?;
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

    /// The request as its origin gets it.
    fn prepare(&self, mut request: Request<SentBody>) -> Result<PreparedRequest<'_>, UpstreamError> {
        let route = request.extensions_mut().remove::<Route>();
        let index = route.map_or(0, |Route(index)| index + 1);
        let Some((origin, host, pool)) = self.origins.get(index) else {
            return Err(UpstreamError::unreachable("no such route"));
        };
        let place = origin.key.as_ref().map(|key| (key_header(&request, origin), key));
        let target = origin.target(request.uri()).map_err(UpstreamError::unreachable)?;
        if let Some(target) = target {
            *request.uri_mut() = target;
        }
        request.headers_mut().insert(header::HOST, host.clone());
        authorize(request.headers_mut(), place, index == 0);
        if (index > 0 || origin.key.is_some())
            && let Some(plain) = without_keys(request.uri()).map_err(UpstreamError::unreachable)?
        {
            *request.uri_mut() = plain;
        }
        // Boxed, because every future on its way to the connection holds it twice.
        Ok((Box::new(request), origin, pool))
    }
}

const AUTHORIZATION: &str = "authorization";

/// Headers with which a client proves itself to a provider.
const CREDENTIALS: &[&str] = &[
    "anthropic-api-key",
    "api-key",
    "authorization",
    "ocp-apim-subscription-key",
    "openai-api-key",
    "x-api-key",
    "x-goog-api-key",
];

/// Where an origin's key belongs: in the header in which the client shows its own, or, where that shows none, in the one of the API
/// that it calls.
fn key_header(request: &Request<SentBody>, origin: &UpstreamOrigin) -> &'static str {
    const ALONE: [&str; 3] = ["x-api-key", "x-goog-api-key", "api-key"];
    let headers = request.headers();
    if !origin.is_of_models() || headers.contains_key(header::AUTHORIZATION) {
        return AUTHORIZATION;
    }
    let spoken = || surface::for_path(request.method().as_str(), request.uri().path()).map(Surface::name);
    ALONE.into_iter().find(|name| headers.contains_key(*name)).unwrap_or_else(|| match spoken() {
        Some("anthropic_messages") => "x-api-key",
        Some(gemini) if gemini.starts_with("gemini_") => "x-goog-api-key",
        _ => AUTHORIZATION,
    })
}

/// What a client proves itself with goes to the default origin only, and not even there where it has a key of its own.
fn authorize(headers: &mut HeaderMap, key: Option<(&'static str, &OriginKey)>, default: bool) {
    if !default {
        let proves: Vec<_> = headers.keys().filter(|name| recording::is_credential(name.as_str())).cloned().collect();
        for name in &proves {
            headers.remove(name);
        }
    } else if key.is_some() {
        for name in CREDENTIALS {
            headers.remove(*name);
        }
    }
    if let Some((name, key)) = key {
        headers.insert(name, if name == AUTHORIZATION { &key.bearer } else { &key.plain }.clone());
    }
}

/// The target without the keys in its query; `None` where it holds none.
fn without_keys(target: &Uri) -> Result<Option<Uri>, hyper::http::Error> {
    let Some(query) = target.query() else { return Ok(None) };
    let is_key = |pair: &&str| recording::is_secret_query(pair.split('=').next().unwrap_or_default());
    if !query.split('&').any(|pair| is_key(&pair)) {
        return Ok(None);
    }
    let rest: Vec<&str> = query.split('&').filter(|pair| !is_key(pair)).collect();
    let mark = if rest.is_empty() { "" } else { "?" };
    Uri::builder().path_and_query(format!("{}{mark}{}", target.path(), rest.join("&"))).build().map(Some)
}

impl Upstream for HttpUpstream {
    fn name(&self) -> &str {
        &self.name
    }

    fn opens_sockets(&self) -> bool {
        true
    }

    fn send(&self, mut request: Request<SentBody>) -> BackendAnswering<'_> {
        if let Some(end) = frames::carried(&mut request) {
            return Box::pin(end.answer(request, self));
        }
        let prepared = self.prepare(request);
        Box::pin(async move {
            let (request, origin, pool) = prepared?;
            let switches = request.headers().contains_key(header::UPGRADE);
            let answered = tokio::time::timeout(self.head_timeout, pool.send(request)).await;
            let answered = answered.unwrap_or(Err(UpstreamError::Timeout(self.head_timeout)));
            let mut answered = answered.map_err(|error| error.toward(origin))?;
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
            Ok(answered.map(ReceivedBody::Live))
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
