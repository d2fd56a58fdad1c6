//! Errors of the proxy's own making: status, code, body. They are marked, so that nobody takes them for the upstream's;
//! the upstream's errors and injected ones never pass through here.

use std::time::Duration;

use bytes::Bytes;
use hyper::{Response, header};

use super::{
    error_codes,
    headers::MARK,
    listen::framing::FramingError,
    upstream::{BodyError, UpstreamError},
};
use crate::{
    recording::RecordingError,
    surface::{ErrorBody, OpenaiChat, Surface},
    trajectory::{CloseCause, IdError, ProxyErrorText, RunId, StepIndex},
};

/// Why the proxy itself answers.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// A run's name is, or holds, a secret: it would be the name of a directory.
    #[error("the run's name looks like a key, and it would be written down: put the key into `Authorization`")]
    SecretName,
    /// The request's framing is not safe to forward.
    #[error("refused the request: {0}")]
    Framing(#[from] FramingError),
    /// The body is larger than is read.
    #[error("the request body is larger than {limit} bytes; raise `limits.max_body_bytes` in aegis.toml")]
    BodyTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Other bodies have the memory that there is for bodies.
    #[error("the bodies under way take all of the {limit} bytes that they may; raise `limits.memory` in aegis.toml")]
    Memory {
        /// What they may take together, in bytes.
        limit: usize,
    },
    /// The body did not come in time.
    #[error("the request body did not arrive within {0:?}")]
    BodyTimeout(Duration),
    /// The client's body broke off.
    #[error("the request body broke off")]
    BodyBroken,
    /// A run or agent hint is malformed.
    #[error("{0}")]
    Id(#[from] IdError),
    /// The path has `/v1` twice.
    #[error("the path `{path}` has `/v1` twice: set the base URL to end in one `/v1`, for example {fix}")]
    DoubledVersion {
        /// The path that came.
        path: String,
        /// A base URL that works.
        fix: String,
    },
    /// The host header names a host that this proxy does not answer for.
    #[error("the host `{0}` is not one this proxy answers for; add it to `allowed_hosts` in aegis.toml")]
    Host(String),
    /// The request comes from a web page that was not allowed.
    #[error(
        "requests from web pages are refused ({0}): any page that is open in a browser could spend the key; a page of \
         your own is let in by its origin, `allowed_origins = [\"http://localhost:3000\"]` in aegis.toml"
    )]
    Page(String),
    /// The request shows a token that is nobody's.
    #[error(
        "the token that was sent, in the header `x-aegis-token` or behind /t/ in the base URL, is wrong: ask whoever runs this proxy for another one"
    )]
    WrongToken,
    /// The request shows no token.
    #[error(
        "this proxy asks for a token: set the base URL to http://HOST:PORT/t/<token>/v1, or send the header `x-aegis-token`"
    )]
    Token,
    /// What the upstream keeps under this id was not given to the user's runs.
    #[error(
        "nothing of the id `{0}` was given to a run of yours that this server knows: name the run that it was given to, by /r/<run>/ in the base \
         URL or the header `x-aegis-run`"
    )]
    NotStored(String),
    /// What the upstream keeps under this name was made by another user.
    #[error("there is no `{0}` among what you and your runs have made")]
    NotYourObject(String),
    /// All that the upstream keeps is asked for, of whichever user, and cannot be cut to what is this user's.
    #[error(
        "what the upstream keeps of all users is listed for none of them, and this list cannot be cut to yours: ask by id"
    )]
    StoredList,
    /// Whose replies a WebSocket goes on from cannot be seen.
    #[error(
        "each user has a token here, and a WebSocket of this API could go on from another user's replies unseen: use HTTP"
    )]
    UncheckedSocket,
    /// A user has made as many requests as its token allows.
    #[error("your token allows {most} requests in a minute (`requests_per_minute` in the tokens file): ask again in {} s", seconds(*wait))]
    TooManyRequests {
        /// How many it allows.
        most: u32,
        /// How long to wait for the next.
        wait: Duration,
    },
    /// A body is larger than the user's token allows.
    #[error(
        "the request body is larger than the {limit} bytes that your token allows (`max_body_bytes` in the tokens file)"
    )]
    UserBodyTooLarge {
        /// How many it allows.
        limit: usize,
    },
    /// The target is no path below the upstream's base path.
    #[error("the request's path is refused: {0}")]
    Target(String),
    /// The run is finished.
    #[error("run `{0}` is sealed: start a new run under another name")]
    Sealed(RunId),
    /// A rule that the user named has stopped the run.
    #[error("run `{run}` was stopped by the rule `{rule}` at step {step}, as --watch says")]
    Watched {
        /// The run.
        run: RunId,
        /// The rule.
        rule: String,
        /// The step at which it saw something.
        step: StepIndex,
    },
    /// A plan is loaded, and the request names no run.
    #[error(
        "a plan is loaded, so each request must name its run: use /r/<run>/v1 as base URL, or start with --run NAME"
    )]
    NoRun,
    /// A message to a server of tools or a peer names no run, and nothing else tells it.
    #[error(
        "nothing tells the run of a message to a tool server or a peer: put /r/<run> before its path, or \
         start with --run NAME"
    )]
    NoRunOfMessage,
    /// Several proxies stand behind one address, and the request names no run.
    #[error(
        "{instances} proxies stand behind one address (`AEGIS_INSTANCES`), so each request must name its run, by which it is \
         sent to one of them: use /r/<run>/v1 as base URL, or send the header `x-aegis-run`"
    )]
    NoRunOfSeveral {
        /// How many.
        instances: u32,
    },
    /// The path names a server that the configuration does not have.
    #[error("no server `{name}`: [[{table}]] of aegis.toml names {known}; add it there with its `url`")]
    NoServer {
        /// The table that names such servers.
        table: String,
        /// The name in the path.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A server of that name is attached, and the configuration has another.
    #[error("two servers of the name `{0}`: [[mcp]] or --mcp names one with a URL; attach this one under another name")]
    TwoServers(String),
    /// No attachment waits for that: it has ended, or whoever sent the message has left.
    #[error("nothing is attached there, or nobody waits for this reply any more")]
    NotAttached,
    /// Too many attachments.
    #[error("{limit} servers are attached, which is the limit")]
    BusyAttachments {
        /// The limit.
        limit: usize,
    },
    /// The plan edits a body that cannot be read.
    #[error("the plan edits this request, but its body cannot be read: {0}")]
    Unreadable(String),
    /// Too many exchanges at once.
    #[error("{limit} exchanges are under way, which is the limit (`limits.max_streams`)")]
    Busy {
        /// The limit.
        limit: usize,
    },
    /// Too many tunnels at once.
    #[error("{limit} WebSockets are open, which is the limit (`limits.max_tunnels`)")]
    BusyTunnels {
        /// The limit.
        limit: usize,
    },
    /// No `WebSocket` is let through.
    #[error("WebSockets are refused here (`--no-websocket`): ask over HTTP")]
    NoWebSocket,
    /// The proxy is stopping.
    #[error("the proxy is shutting down; its runs stay open: ask again when it is back")]
    Stopping,
    /// The recording cannot go on.
    #[error("the run cannot be recorded, so nothing more is forwarded: {0}")]
    Recording(#[from] RecordingError),
    /// The upstream did not answer.
    #[error("{error}{}", cause(error))]
    Upstream {
        /// What happened.
        #[from]
        error: UpstreamError,
    },
    /// A defect.
    #[error("internal error")]
    Internal,
}

/// The whole seconds after which a wait is over.
pub(super) fn seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

/// The innermost reason, which says what really went wrong.
fn cause(error: &UpstreamError) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    if std::ptr::eq(std::ptr::from_ref(inner).cast::<()>(), std::ptr::from_ref(error).cast::<()>()) {
        String::new()
    } else {
        format!(": {inner}")
    }
}

impl ProxyError {
    /// Its code, which `error_codes` lists with its status.
    fn code(&self) -> &'static str {
        match self {
            ProxyError::Framing(FramingError::HeadTooLarge) => "head_too_large",
            ProxyError::Framing(FramingError::TargetTooLong) => "target_too_long",
            ProxyError::Framing(_) => "refused_framing",
            ProxyError::TooManyRequests { .. } => "too_many_requests",
            ProxyError::BodyTooLarge { .. } | ProxyError::UserBodyTooLarge { .. } => "body_too_large",
            ProxyError::BodyTimeout(_) => "body_timeout",
            ProxyError::BodyBroken => "body_broken",
            ProxyError::Id(_) => "invalid_id",
            ProxyError::DoubledVersion { .. } => "doubled_v1",
            ProxyError::Host(_) => "unknown_host",
            ProxyError::SecretName => "secret_name",
            ProxyError::Page(_) => "web_page",
            ProxyError::Token | ProxyError::WrongToken => "no_token",
            ProxyError::NotStored(_) => "no_such_reply",
            ProxyError::NotYourObject(_) => "no_such_object",
            ProxyError::StoredList => "shared_list",
            ProxyError::UncheckedSocket => "unchecked_socket",
            ProxyError::Target(_) => "refused_target",
            ProxyError::Sealed(_) => "run_sealed",
            ProxyError::Watched { .. } => "stopped_by_rule",
            ProxyError::NoRun | ProxyError::NoRunOfMessage | ProxyError::NoRunOfSeveral { .. } => "no_run",
            ProxyError::NoServer { .. } => "no_server",
            ProxyError::TwoServers(_) => "two_servers",
            ProxyError::NotAttached => "not_attached",
            ProxyError::Unreadable(_) => "unreadable_body",
            ProxyError::Busy { .. }
            | ProxyError::BusyTunnels { .. }
            | ProxyError::BusyAttachments { .. }
            | ProxyError::Memory { .. } => "busy",
            ProxyError::NoWebSocket => "no_websocket",
            ProxyError::Stopping => "stopping",
            ProxyError::Recording(_) => "recording_failed",
            ProxyError::Upstream { error: UpstreamError::Timeout(_) } => "upstream_timeout",
            ProxyError::Upstream { error: UpstreamError::Unreachable { .. } } => "upstream_unreachable",
            ProxyError::Upstream { error: UpstreamError::Closed(_) } => "upstream_closed",
            ProxyError::Upstream { error: UpstreamError::Switched } => "upstream_switched",
            ProxyError::Upstream { error: UpstreamError::Framing } => "upstream_framing",
            ProxyError::Upstream { error: UpstreamError::Hushed } => "closed",
            ProxyError::Upstream { error: UpstreamError::NotRecorded(_) } => "not_recorded",
            ProxyError::Upstream { error: UpstreamError::Diverged(_) } => "diverged",
            ProxyError::Upstream { error: UpstreamError::OverBudget { .. } } => "over_budget",
            ProxyError::Upstream { error: UpstreamError::AsRecorded { error: ProxyErrorText { code, .. }, .. } } => {
                error_codes::listed(code).0
            }
            ProxyError::Internal => "internal",
        }
    }

    /// How the exchange that met the error is recorded.
    pub(super) fn cause(&self) -> CloseCause {
        match self {
            ProxyError::Upstream { error: UpstreamError::Timeout(_) } => CloseCause::UpstreamTimeout,
            ProxyError::Upstream { error: UpstreamError::Unreachable { .. } } => CloseCause::UpstreamUnreachable,
            ProxyError::Upstream {
                error: UpstreamError::Closed(_) | UpstreamError::Switched | UpstreamError::Framing,
            } => CloseCause::UpstreamReset,
            ProxyError::Upstream { error: UpstreamError::AsRecorded { cause, .. } } => *cause,
            ProxyError::Internal => CloseCause::Internal,
            _ => CloseCause::Refused,
        }
    }

    /// What the answer says.
    pub(super) fn text(&self) -> ProxyErrorText {
        ProxyErrorText { code: self.code().to_owned(), message: self.to_string() }
    }

    /// The answer, in the shape that SDKs of this API read.
    pub(super) fn response(&self, surface: &dyn Surface) -> Response<Bytes> {
        let (code, status) = error_codes::listed(self.code());
        let kind = if status.is_client_error() { "aegis_invalid_request" } else { "aegis_error" };
        let body = surface.error_body(&ErrorBody { message: &self.to_string(), kind, code: Some(code), param: None });
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        headers.insert(MARK, header::HeaderValue::from_static(code));
        match self {
            ProxyError::Busy { .. } | ProxyError::Memory { .. } => {
                drop(headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("1")));
            }
            ProxyError::TooManyRequests { wait, .. } => {
                drop(headers.insert(header::RETRY_AFTER, seconds(*wait).into()));
            }
            // Whoever starts it again goes on with its runs, and a server that stops lets go of those that the next one has.
            ProxyError::Stopping | ProxyError::Recording(RecordingError::Locked { .. }) => {
                headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
                headers.insert("x-should-retry", header::HeaderValue::from_static("true"));
            }
            // Somebody may clear the disk. Calls that were under way when it was full find the recording stopped.
            ProxyError::Recording(error)
                if error.is_lack_of_room() || matches!(error, RecordingError::Stopped { .. }) =>
            {
                headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("5"));
                headers.insert("x-should-retry", header::HeaderValue::from_static("true"));
            }
            // A retry would meet the same refusal, and must not count as the agent's patience.
            ProxyError::Recording(_)
            | ProxyError::Sealed(_)
            | ProxyError::Watched { .. }
            | ProxyError::Upstream {
                error: UpstreamError::NotRecorded(_) | UpstreamError::Diverged(_) | UpstreamError::OverBudget { .. },
            } => {
                headers.insert("x-should-retry", header::HeaderValue::from_static("false"));
            }
            _ => {}
        }
        response
    }

    /// The answer as bytes, for a socket that hyper has not read from.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let response = self.response(&OpenaiChat);
        let mut bytes = format!("HTTP/1.1 {}\r\nconnection: close\r\n", response.status()).into_bytes();
        for (name, value) in response.headers() {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", response.body().len()).as_bytes());
        bytes.extend_from_slice(response.body());
        bytes
    }
}

/// Why an exchange has no reply.
#[derive(Debug)]
pub(super) enum Interrupted {
    /// The proxy answers itself.
    Error(ProxyError),
    /// The connection is to end without an answer, as a plan wants it.
    Hushed,
}

impl<E: Into<ProxyError>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        match error.into() {
            ProxyError::Upstream { error: UpstreamError::Hushed } => Interrupted::Hushed,
            error => Interrupted::Error(error),
        }
    }
}

/// Why a reply ends without its end. The client sees its connection close.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    /// The upstream broke off.
    #[error("the upstream broke off its reply")]
    Upstream(#[from] BodyError),
    /// The upstream fell silent.
    #[error("the upstream sent nothing for {0:?}")]
    Silent(Duration),
    /// The record could not be written, so the end is not released.
    #[error("the reply could not be recorded")]
    Recording(#[from] RecordingError),
    /// A planned fault.
    #[error("the connection was closed")]
    Breached,
    /// The exchange was interrupted after its head had gone out.
    #[error("the reply could not be delivered")]
    Interrupted,
}
