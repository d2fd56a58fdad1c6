//! What the control listener refuses: a status, a code for programs, a sentence, and what to do.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use super::{JSON, composed_response};
use crate::{
    proxy::{
        EndError,
        error::{self, ProxyError},
    },
    recording::{AnnotationError, RecordingError},
    trajectory::RunId,
};

/// An error, as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ErrorReply<'a> {
    error: ErrorFacts<'a>,
}

/// What is wrong, and what to do.
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorFacts<'a> {
    /// For programs: `docs/reference/http.md` lists them.
    code: &'a str,
    message: &'a str,
    hint: &'a str,
}

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: String,
    /// Seconds after which to ask again.
    retry_after: Option<u64>,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: hint.into(), retry_after: None }
    }

    /// Of a request whose token is nobody's (`shown`), or that shows none.
    pub(super) fn token(shown: &str) -> Self {
        let message = if shown.is_empty() { "the control token is missing" } else { "the control token is wrong" };
        let hint =
            "send `Authorization: Bearer` with the value of AEGIS_CONTROL_TOKEN, or the one printed at the start";
        Self::new(StatusCode::UNAUTHORIZED, "no_token", message, hint)
    }

    /// Of a user who asks too often.
    pub(super) fn turn(error: &ProxyError) -> Self {
        let retry_after = match error {
            ProxyError::TooManyRequests { wait, .. } => Some(error::seconds(*wait)),
            _ => None,
        };
        let hint = "ask again after as many seconds as Retry-After says";
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", error.to_string(), hint);
        Self { retry_after, ..refusal }
    }

    pub(super) fn user() -> Self {
        let hint = "the tokens file names the users";
        Self::new(StatusCode::NOT_FOUND, "no_such_user", "no user of this name is let in", hint)
    }

    pub(super) fn operator() -> Self {
        let hint = "a user is shown its own runs: GET /aegis/v1/runs";
        Self::new(StatusCode::FORBIDDEN, "operator_only", "this concerns all users: it takes the control token", hint)
    }

    pub(super) fn place() -> Self {
        let hint = "GET or POST /aegis/v1/runs; GET /aegis/v1/runs/RUN, /metrics; POST /aegis/v1/runs/RUN/end, /keep, /outcome and others";
        Self::new(StatusCode::NOT_FOUND, "no_such_path", "nothing is answered here", hint)
    }

    pub(super) fn no_counts() -> Self {
        let hint = "`aegis serve --control` does";
        Self::new(StatusCode::NOT_FOUND, "no_counts", "this server counts nothing", hint)
    }

    /// Of a request that cannot be understood.
    pub(super) fn request(code: &'static str, message: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message, "docs/reference/http.md shows what each request holds")
    }

    /// Of rules that name agents.
    pub(super) fn roster(message: String) -> Self {
        let hint = "a rule names an agent and says what its calls look like: {\"name\": \"solver\", \"system_contains\": \"You solve\"}; \
                    docs/identity.md lists the conditions";
        Self::new(StatusCode::BAD_REQUEST, "invalid_roster", message, hint)
    }

    pub(super) fn unknown(run: &RunId) -> Self {
        let message = format!("no run `{run}` was recorded here");
        Self::new(StatusCode::NOT_FOUND, "no_such_run", message, "GET /aegis/v1/runs lists the runs of this server")
    }

    /// Of a run that is to be opened and is there.
    pub(super) fn exists(run: &RunId) -> Self {
        let hint = "choose another name, or none: then one is made";
        Self::new(StatusCode::CONFLICT, "run_exists", format!("there is a run `{run}`"), hint)
    }

    pub(super) fn annotation(error: &AnnotationError) -> Self {
        match error {
            AnnotationError::Name(_) | AnnotationError::Why | AnnotationError::Step(_) => {
                Self::request("invalid_body", error.to_string())
            }
            AnnotationError::File { .. } | AnnotationError::Line { .. } => {
                let hint = "check the disk, and ask again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "recording_failed", error.to_string(), hint)
            }
        }
    }

    /// Of what can be said only of a run that has ended.
    pub(super) fn open(run: &RunId) -> Self {
        let hint = format!("end it first: POST /aegis/v1/runs/{run}/end");
        Self::new(StatusCode::CONFLICT, "run_open", format!("run `{run}` has not ended"), hint)
    }

    /// Of a change that cannot be written down.
    pub(super) fn audit(error: &std::io::Error) -> Self {
        let message =
            format!("the change cannot be written into audit.jsonl of the log directory, so it is not made: {error}");
        let hint = "check the disk and what is at that place, and ask again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "audit_failed", message, hint)
    }

    /// The code for programs.
    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    pub(super) fn internal() -> Self {
        let hint = "a defect of Aegis: please report it";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the request could not be answered", hint)
    }

    pub(super) fn response(self) -> Response<Full<Bytes>> {
        let Self { status, code, message, hint, retry_after } = self;
        let error = ErrorReply { error: ErrorFacts { code, message: &message, hint: &hint } };
        let text = serde_json::to_string(&error).unwrap_or_default();
        let mut response = composed_response(status, JSON, text);
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }

    pub(super) fn recording(run: &RunId, error: &RecordingError) -> Self {
        match error {
            RecordingError::NotARun { .. } => Self::unknown(run),
            RecordingError::Locked { .. } => Self::open(run),
            RecordingError::Roster { .. } => Self::roster(error.to_string()),
            RecordingError::FactsFull { .. } => Self::new(
                StatusCode::CONFLICT,
                "facts_full",
                error.to_string(),
                "nothing more can be added to this run",
            ),
            RecordingError::OtherPlan { .. } => {
                let hint = "start the server with the plan of the run, or end the run";
                Self::new(StatusCode::CONFLICT, "other_plan", error.to_string(), hint)
            }
            _ => {
                let hint = "check the disk, and ask again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "recording_failed", error.to_string(), hint)
            }
        }
    }

    pub(super) fn proxy(run: &RunId, error: &ProxyError) -> Self {
        match error {
            ProxyError::Recording(error) => Self::recording(run, error),
            ProxyError::SecretName => Self::request("invalid_id", error.to_string()),
            ProxyError::Sealed(_) => {
                let hint = "it is being ended: ask again";
                Self::new(StatusCode::CONFLICT, "run_busy", format!("run `{run}` is being sealed"), hint)
            }
            _ => Self::internal(),
        }
    }

    pub(super) fn end(run: &RunId, error: &EndError) -> Self {
        match error {
            EndError::Unknown(run) => Self::unknown(run),
            EndError::Busy { .. } => {
                let hint = "end it when they are over";
                Self::new(StatusCode::CONFLICT, "run_busy", error.to_string(), hint)
            }
            EndError::Proxy(error) => Self::proxy(run, error),
        }
    }
}
