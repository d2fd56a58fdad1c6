//! What connections of both kinds have in common.

use std::time::Duration;

use hyper::Request;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{error::UpstreamError, upload::SentBody};

/// Longest wait for a connection, its TLS handshake included.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection, plain or over TLS.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A request that got no answer, and itself where it can be sent again: the connection had ended before.
pub(super) struct UnansweredRequest(pub(super) hyper::Error, pub(super) Option<Request<SentBody>>);

impl From<UnansweredRequest> for UpstreamError {
    fn from(UnansweredRequest(error, _): UnansweredRequest) -> Self {
        UpstreamError::Closed(Box::new(error))
    }
}
