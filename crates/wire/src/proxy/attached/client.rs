//! The other side of an attachment: how `aegis mcp` speaks to the proxy.

use std::convert::Infallible;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{self, HeaderValue},
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::{ATTACHMENT, PLACE, stream::EventBody};
use crate::proxy::{listen::gate::TOKEN, upstream::client_config};

/// What a client of MCP takes, as the protocol wants it said.
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// Longest line that the proxy may send: a message as it may be posted, every byte of it escaped.
const LINE_MAX: usize = 256 << 20;
/// Longest text of a refusal that is read.
const REFUSAL_MAX: usize = 64 << 10;

/// The body of a request to the proxy.
type AttachedBody = UnsyncBoxBody<Bytes, Infallible>;

/// Speaks to one proxy, in one run.
#[derive(Debug)]
pub struct AttachClient {
    /// Scheme, host and path before everything, without a slash at its end.
    base: String,
    token: Option<HeaderValue>,
    http: Client<HttpsConnector<HttpConnector>, AttachedBody>,
}

/// Why the proxy could not be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The address is none.
    #[error("`{0}` is no address of a proxy: expected http://HOST:PORT/r/RUN")]
    Address(String),
    /// The token cannot be sent.
    #[error("the token holds characters that no header can carry")]
    Token,
    /// No certificates.
    #[error(transparent)]
    Certificates(#[from] crate::proxy::OriginError),
    /// There is no connection, or it broke.
    #[error("no answer from {address}: {source}")]
    Unreachable {
        /// Where it should be.
        address: String,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It answered with an error.
    #[error("the proxy refuses: {message} ({status})")]
    Refused {
        /// The status.
        status: StatusCode,
        /// In the words of the proxy.
        message: String,
    },
    /// It says what no proxy of this version says.
    #[error("what answers at {0} is no proxy that servers can be attached to")]
    NotAProxy(String),
}

/// The reply to a message, as it is handed back.
#[derive(Debug)]
pub enum ReturnedReply {
    /// One message.
    Message(Bytes),
    /// Events as they come: messages before the answer, and that.
    Events(mpsc::Receiver<Bytes>),
    /// Nothing: nothing was asked.
    Nothing,
}

/// The messages that an attached server is to get, as they come.
#[derive(Debug)]
pub struct AttachedMessages {
    /// The id of the attachment.
    pub id: String,
    body: Incoming,
    read: BytesMut,
}

/// A message that an attached server is to get.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AttachedMessage {
    /// Its number, which its reply bears.
    #[serde(rename = "n")]
    pub number: u64,
    /// The message itself.
    pub message: String,
}

/// The first line of an attachment.
#[derive(Debug, Deserialize)]
struct FirstLine {
    attachment: String,
}

impl AttachClient {
    /// A client of the proxy at this address, the run included.
    ///
    /// # Errors
    /// Address or token cannot be used.
    pub fn new(base: &str, token: Option<&str>) -> Result<Self, AttachError> {
        let address = || AttachError::Address(base.escape_debug().to_string());
        let uri: Uri = base.parse().map_err(|_| address())?;
        let is_http = uri.scheme_str().is_some_and(|scheme| ["http", "https"].contains(&scheme));
        if !is_http || uri.authority().is_none() || uri.query().is_some() {
            return Err(address());
        }
        let token = token.map(HeaderValue::from_str).transpose().map_err(|_| AttachError::Token)?;
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        let connector = HttpsConnectorBuilder::new().with_tls_config(client_config(None)?).https_or_http();
        let connector = connector.enable_http1().wrap_connector(http);
        let http = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(std::time::Duration::from_secs(30))
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(connector);
        Ok(Self { base: base.trim_end_matches('/').to_owned(), token, http })
    }

    /// Attaches a server of this name.
    ///
    /// # Errors
    /// The proxy is not there, or refuses.
    pub async fn attach(&self, name: &str) -> Result<AttachedMessages, AttachError> {
        let response = self.send(self.request(&format!("{PLACE}{name}")), AttachedBody::default()).await?;
        let status = response.status();
        let mut messages = AttachedMessages { id: String::new(), body: response.into_body(), read: BytesMut::new() };
        if status != StatusCode::OK {
            let message = messages.refusal().await;
            return Err(AttachError::Refused { status, message });
        }
        let first = messages.line().await.ok().flatten();
        let first = first.and_then(|line| serde_json::from_slice::<FirstLine>(&line).ok());
        messages.id = first.ok_or_else(|| AttachError::NotAProxy(self.base.clone()))?.attachment;
        Ok(messages)
    }

    /// Sends a client's message to the proxy, for this attachment. Gives the reply as the client is to have it.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn post(&self, name: &str, id: &str, message: Bytes) -> Result<Response<Incoming>, AttachError> {
        let request = self.request(&format!("/mcp/{name}")).header(header::ACCEPT, ACCEPTED).header(&ATTACHMENT, id);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        self.send(request, full_body(message)).await
    }

    /// Hands back the reply to a message. Resolves when it has passed.
    ///
    /// # Errors
    /// Nobody waits for it any more, or the connection broke.
    pub async fn reply(&self, name: &str, id: &str, number: u64, reply: ReturnedReply) -> Result<(), AttachError> {
        let request = self.request(&format!("{PLACE}{name}/{id}/{number}"));
        let (request, body) = match reply {
            ReturnedReply::Message(message) => {
                (request.header(header::CONTENT_TYPE, "application/json"), full_body(message))
            }
            ReturnedReply::Events(events) => {
                (request.header(header::CONTENT_TYPE, "text/event-stream"), UnsyncBoxBody::new(EventBody(events)))
            }
            ReturnedReply::Nothing => (request, AttachedBody::default()),
        };
        let response = self.send(request, body).await?;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(()),
            status => Err(AttachError::Refused { status, message: String::from("nobody waits for this reply") }),
        }
    }

    fn request(&self, path: &str) -> hyper::http::request::Builder {
        let request = Request::post(format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.header(&TOKEN, token),
            None => request,
        }
    }

    async fn send(
        &self,
        request: hyper::http::request::Builder,
        body: AttachedBody,
    ) -> Result<Response<Incoming>, AttachError> {
        let request = request.body(body).map_err(|_| AttachError::Address(self.base.clone()))?;
        self.http.request(request).await.map_err(|error| {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let source = source.unwrap_or_else(|| error.to_string()).into();
            AttachError::Unreachable { address: self.base.clone(), source }
        })
    }
}

/// A body that is there.
fn full_body(bytes: Bytes) -> AttachedBody {
    UnsyncBoxBody::new(http_body_util::Full::new(bytes))
}

impl AttachedMessages {
    /// The next message; `None` once the attachment has ended.
    ///
    /// # Errors
    /// The connection broke, or says what no proxy says.
    pub async fn next(&mut self) -> Result<Option<AttachedMessage>, Box<dyn std::error::Error + Send + Sync>> {
        match self.line().await? {
            Some(line) => Ok(Some(serde_json::from_slice(&line)?)),
            None => Ok(None),
        }
    }

    async fn line(&mut self) -> Result<Option<BytesMut>, Box<dyn std::error::Error + Send + Sync>> {
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', self.read.get(searched..).unwrap_or_default()) {
                let mut line = self.read.split_to(searched + end + 1);
                line.truncate(searched + end);
                return Ok(Some(line));
            }
            searched = self.read.len();
            if searched > LINE_MAX {
                return Err("the proxy's line is too long".into());
            }
            match self.body.frame().await.transpose()? {
                Some(frame) => self.read.extend_from_slice(frame.data_ref().map_or(&[][..], Bytes::as_ref)),
                None => return Ok(None),
            }
        }
    }

    /// What a refusal says.
    async fn refusal(&mut self) -> String {
        while self.read.len() < REFUSAL_MAX
            && let Some(Ok(frame)) = self.body.frame().await
        {
            self.read.extend_from_slice(frame.data_ref().map_or(&[][..], Bytes::as_ref));
        }
        let body: serde_json::Value = serde_json::from_slice(&self.read).unwrap_or_default();
        let message = body.pointer("/error/message").and_then(serde_json::Value::as_str);
        message.map_or_else(|| String::from_utf8_lossy(&self.read).into_owned(), str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_proxies() {
        for good in ["http://127.0.0.1:8080", "http://h/r/run/", "https://h:1/t/token/r/run/a/agent"] {
            assert!(AttachClient::new(good, Some("token")).is_ok(), "{good}");
        }
        for bad in ["", "127.0.0.1:8080/r/run", "ftp://h/", "http://h/?x", "/r/run"] {
            assert!(matches!(AttachClient::new(bad, None), Err(AttachError::Address(_))), "{bad}");
        }
        assert!(matches!(AttachClient::new("http://h", Some("a\nb")), Err(AttachError::Token)));
    }
}
