//! Why there is no reply, or not all of it.

use super::origin::UpstreamOrigin;
use crate::trajectory::{CloseCause, ProxyErrorText};

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection: refused, no such host, TLS failure.
    #[error("cannot reach the upstream{}", to.as_ref().map(|to| format!(" {to}")).unwrap_or_default())]
    Unreachable {
        /// Scheme, host and port, once it is known who was to be reached.
        to: Option<String>,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection ended before a head came.
    #[error("the upstream closed the connection before it answered")]
    Closed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It switched to another protocol than HTTP although nobody had asked for that.
    #[error("the upstream switched to another protocol, which nobody had asked for")]
    Switched,
    /// Its reply can be read in two ways.
    #[error("the upstream's reply has both content-length and transfer-encoding")]
    Framing,
    /// Nothing came in time.
    #[error("the upstream did not answer within {0:?}")]
    Timeout(std::time::Duration),
    /// A replay does not hold an answer to this request: what was asked, and what comes nearest.
    #[error("{0}; nothing is sent anywhere in a strict replay")]
    NotRecorded(String),
    /// The run left the recorded prefix that it was to repeat: where.
    #[error("the run has diverged from its recorded prefix: {0}")]
    Diverged(String),
    /// The budget of the work that this run belongs to is spent.
    #[error("the budget of {limit} live calls is spent")]
    OverBudget {
        /// The budget, in calls.
        limit: u64,
    },
    /// The proxy answered with this error when the run was recorded.
    #[error("{}", error.message)]
    AsRecorded {
        /// What it answered.
        error: ProxyErrorText,
        /// How the exchange ended.
        cause: CloseCause,
    },
    /// There is to be no answer: the connection closes, as it did when the run was recorded.
    #[error("the connection was closed, as it was when the run was recorded")]
    Hushed,
}

impl UpstreamError {
    /// There is no connection, for this reason.
    pub fn unreachable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unreachable { to: None, source: source.into() }
    }

    /// The same, saying who was to be reached.
    #[must_use]
    pub fn toward(self, origin: &UpstreamOrigin) -> Self {
        match self {
            Self::Unreachable { to: None, source } => Self::Unreachable { to: Some(origin.name()), source },
            other => other,
        }
    }
}

/// Why a reply's body broke off.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection broke.
    #[error(transparent)]
    Connection(#[from] hyper::Error),
    /// HTTP/2: the stream was given up before its end, without an error.
    #[error("the upstream gave up the stream before the end of its reply")]
    Reset,
    /// The WebSocket that it came by broke off.
    #[error("the upstream's WebSocket broke off before the end of the response")]
    Socket,
    /// It broke off here when it was recorded.
    #[error("the reply broke off here when it was recorded")]
    AsRecorded,
}
