//! A small client of the chat completions API, with the retries that the SDKs make.

use std::{env, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Method, Request, StatusCode, Uri, header};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::json;

use super::{
    ExampleError,
    chat::{ChatMessage, Model},
};
use crate::surface::{self, SurfaceError, door};

/// How often a call is tried again, as the SDKs do by default.
const RETRIES: u32 = 2;
/// How long one try may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest wait that a reply may ask for; the SDKs go by the same bound.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A client of one API.
#[derive(Debug)]
pub struct ApiClient {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    url: Uri,
    key: Option<String>,
    model: String,
    stream: bool,
}

impl ApiClient {
    /// A client for a base URL, whose path is used as it is. `stream` asks for streamed replies.
    ///
    /// # Errors
    /// [`ExampleError::BadBaseUrl`].
    pub fn new(base_url: &str, key: Option<String>, model: String, stream: bool) -> Result<Self, ExampleError> {
        let refuse = || ExampleError::BadBaseUrl(base_url.to_owned());
        let url: Uri = format!("{}/chat/completions", base_url.trim_end_matches('/')).parse().map_err(|_| refuse())?;
        if url.scheme_str() != Some("http") || url.host().is_none() {
            return Err(refuse());
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { http, url, key, model, stream })
    }

    /// A client as the environment says: `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_MODEL`.
    ///
    /// # Errors
    /// [`ExampleError::NoBaseUrl`], [`ExampleError::BadBaseUrl`].
    pub fn from_env(stream: bool) -> Result<Self, ExampleError> {
        let read = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let base_url = read("OPENAI_BASE_URL").ok_or(ExampleError::NoBaseUrl)?;
        let model = read("OPENAI_MODEL").unwrap_or_else(|| "gpt-4o-mini".to_owned());
        Self::new(&base_url, read("OPENAI_API_KEY"), model, stream)
    }

    /// One try: the status, the headers and the whole body.
    async fn send(&self, body: &Bytes, retry: u32) -> Result<(StatusCode, HeaderMap, Bytes), ClientFailure> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("aegis-example/", env!("CARGO_PKG_VERSION")))
            .header("x-stainless-retry-count", retry);
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request.body(Full::new(body.clone()))?;
        let exchange = async {
            let (head, body) = self.http.request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok((head.status, head.headers, body))
        };
        tokio::time::timeout(PATIENCE, exchange).await?
    }
}

impl Model for ApiClient {
    async fn ask(&self, messages: &[ChatMessage]) -> Result<String, ExampleError> {
        let messages: Vec<_> = messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
        let mut body = json!({"model": self.model, "messages": messages, "temperature": 0});
        if let (true, Some(body)) = (self.stream, body.as_object_mut()) {
            body.insert("stream".to_owned(), true.into());
        }
        let body = Bytes::from(body.to_string());
        let mut retry = 0;
        let (headers, reply) = loop {
            let last = retry == RETRIES;
            let wait = match self.send(&body, retry).await {
                Ok((status, headers, reply)) if status.is_success() => break (headers, reply),
                Ok((status, headers, reply)) => {
                    let wait = retry_after(status, &headers, retry).filter(|_| !last);
                    let body = || String::from_utf8_lossy(&reply).chars().take(300).collect();
                    wait.ok_or_else(|| ExampleError::Refused { status, body: body() })?
                }
                Err(source) if last => return Err(ExampleError::Unreachable { url: self.url.to_string(), source }),
                Err(_) => backoff(retry),
            };
            tokio::time::sleep(wait).await;
            retry += 1;
        };
        let streamed = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event"));
        let surface = surface::for_path("POST", self.url.path());
        let surface = surface.ok_or(SurfaceError::NoPlace("no chat completion".to_owned()))?;
        let reply = door::reply(surface, &reply, streamed)?;
        Ok(reply.answers.first().map(|answer| answer.message.text()).unwrap_or_default())
    }
}

type ClientFailure = Box<dyn std::error::Error + Send + Sync>;

/// How long to wait before the next try; `None` where the status is not to be retried.
fn retry_after(status: StatusCode, headers: &HeaderMap, retry: u32) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let transient = matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error();
    match text("x-should-retry") {
        Some("true") => {}
        Some("false") => return None,
        _ if !transient => return None,
        _ => {}
    }
    let number = |name: &str| text(name).and_then(|value| value.trim().parse::<f64>().ok());
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"));
    let asked = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Some(asked.filter(|wait| *wait <= LONGEST_WAIT && !wait.is_zero()).unwrap_or_else(|| backoff(retry)))
}

/// Half a second, doubled with each retry, at most eight.
fn backoff(retry: u32) -> Duration {
    Duration::from_millis(500).saturating_mul(1 << retry.min(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passing_troubles_are_retried() {
        let check = |status: u16, header: Option<(&'static str, &'static str)>, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            if let Some((name, value)) = header {
                headers.insert(name, value.parse().expect("a header value"));
            }
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(retry_after(status, &headers, 0), expected.map(Duration::from_millis), "{status} {header:?}");
        };
        check(429, None, Some(500));
        check(503, Some(("retry-after", "2")), Some(2000));
        check(429, Some(("retry-after-ms", "30")), Some(30));
        check(429, Some(("retry-after", "3600")), Some(500));
        check(500, Some(("x-should-retry", "false")), None);
        check(400, Some(("x-should-retry", "true")), Some(500));
        check(400, None, None);
        check(401, None, None);
    }

    #[test]
    fn base_urls_are_used_as_they_are() {
        let url = |base: &str| ApiClient::new(base, None, "m".to_owned(), false).map(|c| c.url.to_string()).ok();
        assert_eq!(
            url("http://127.0.0.1:1/r/run1/v1/").as_deref(),
            Some("http://127.0.0.1:1/r/run1/v1/chat/completions")
        );
        assert_eq!(url("https://api.example/v1"), None);
        assert_eq!(url("127.0.0.1:80"), None);
    }
}
