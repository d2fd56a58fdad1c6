//! One question to a model, for everything here that asks one: a request as clients of the API make it, one bounded answer,
//! and the question once more where the backend was busy.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::{Request, StatusCode, header};

use super::{
    headers::seconds,
    negotiating::{ANSWER_MAX, NegotiatingUpstream},
    upstream::{BeyondBudget, SentBody, Upstream},
};

/// Where questions go: the path that clients of the API use.
pub const PATH: &str = "/v1/chat/completions";
/// How often a question is sent again that met a busy or broken backend.
const RESENDS: u32 = 3;
/// The wait before the first of them; it doubles.
const RESEND_WAIT: Duration = Duration::from_millis(250);

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// Nobody was there, or the answer broke off.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It was not asked: what may be spent is spent.
    #[error("is not asked: what may be spent is spent")]
    BeyondBudget,
    /// It answered with a status that is no answer.
    #[error("answered {status}: {said}")]
    Status {
        /// The status.
        status: StatusCode,
        /// The beginning of what it said.
        said: String,
        /// How long it asks to be left alone.
        wait: Option<Duration>,
    },
}

impl Unanswered {
    /// How long to wait before the question is put again; `None` where that is of no use, or was done often enough.
    pub fn again_in(&self, resends: u32) -> Option<Duration> {
        let wanted = match self {
            Self::Status { status, wait, .. } if is_busy(*status) => wait.unwrap_or_default(),
            Self::Unreachable(_) => Duration::ZERO,
            Self::BeyondBudget | Self::Status { .. } => return None,
        };
        (resends < RESENDS).then(|| wanted.max(RESEND_WAIT * 2_u32.pow(resends)))
    }
}

/// A good reply.
#[derive(Debug)]
pub(super) struct ModelAnswer {
    /// Its body.
    pub(super) body: Bytes,
    /// What was changed in its question, because the upstream refuses it.
    pub(super) changed: Option<String>,
}

/// Puts a question once. The answer is the body of a good reply.
///
/// # Errors
/// [`Unanswered`].
pub async fn ask_once(upstream: &dyn Upstream, question: &Bytes) -> Result<Bytes, Unanswered> {
    answer_once(upstream, question).await.map(|answer| answer.body)
}

/// As [`ask_once`], with what was changed in the question.
pub(super) async fn answer_once(upstream: &dyn Upstream, question: &Bytes) -> Result<ModelAnswer, Unanswered> {
    post_once(upstream, PATH, "application/json", question).await
}

async fn post_once(upstream: &dyn Upstream, path: &str, kind: &str, body: &Bytes) -> Result<ModelAnswer, Unanswered> {
    let unreachable = |error: &dyn std::error::Error| Unanswered::Unreachable(chain(error));
    let sent: SentBody = Either::Left(Full::new(body.clone()));
    let request = Request::post(path).header(header::CONTENT_TYPE, kind);
    let request = request.header(header::CONTENT_LENGTH, body.len()).body(sent);
    let response = upstream.send(request.map_err(|error| unreachable(&error))?).await;
    let (head, body) = response.map_err(|error| unreachable(&error))?.into_parts();
    if head.extensions.get::<BeyondBudget>().is_some() {
        return Err(Unanswered::BeyondBudget);
    }
    let read = Limited::new(body, ANSWER_MAX).collect().await;
    let answer = read.map_err(|error| unreachable(error.as_ref()))?.to_bytes();
    if head.status.is_success() {
        return Ok(ModelAnswer { body: answer, changed: NegotiatingUpstream::changed(&head.headers) });
    }
    let said: String = String::from_utf8_lossy(&answer).chars().take(200).collect();
    Err(Unanswered::Status { status: head.status, said, wait: seconds(&head.headers, &header::RETRY_AFTER) })
}

/// Puts a question, again where the backend was busy.
///
/// # Errors
/// [`Unanswered`], the last one.
pub async fn ask(upstream: &dyn Upstream, question: &Bytes) -> Result<Bytes, Unanswered> {
    post(upstream, PATH, "application/json", question).await
}

/// Posts a body of a kind to a path, again where the backend was busy. Gives the body of a good reply.
///
/// # Errors
/// [`Unanswered`], the last one.
pub(super) async fn post(upstream: &dyn Upstream, path: &str, kind: &str, body: &Bytes) -> Result<Bytes, Unanswered> {
    for resends in 0.. {
        let unanswered = match post_once(upstream, path, kind, body).await {
            Ok(answer) => return Ok(answer.body),
            Err(unanswered) => unanswered,
        };
        let Some(wait) = unanswered.again_in(resends) else { return Err(unanswered) };
        tokio::time::sleep(wait).await;
    }
    Err(Unanswered::Unreachable("it was never asked".to_owned()))
}

/// Whether a backend may answer the same question a little later.
fn is_busy(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
