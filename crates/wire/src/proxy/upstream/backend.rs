//! A backend, and what it is told beside the request.

use std::{future::Future, pin::Pin, sync::Arc};

use hyper::{Request, Response};

use super::{body::ReceivedBody, error::UpstreamError, upload::SentBody};
use crate::{
    identity::{AttributedCall, ReferenceCalls},
    trajectory::{Attribution, Call, RunId, StepIndex},
};
use bytes::Bytes;

/// Marks a request for the upstream of a model route, by its number in the configuration (0-based).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route(pub usize);

/// Who asks, as far as the line knows when it sends: an upstream that answers from a recording is keyed by it, any
/// other ignores it. It travels in the request's extensions, never on the wire.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The run.
    pub run: RunId,
    /// The step of the run.
    pub step: StepIndex,
    /// The call of the agent instance.
    pub call: Call,
    /// The attempt of the step, 0-based.
    pub attempt: u32,
    /// The agent, and how it is known.
    pub attribution: Attribution,
    /// The body as the client sent it, before any edit.
    pub client_body: Bytes,
    /// How what is sent differs from it.
    pub sent: SentForm,
    /// Whether anything that the run's plan plants was delivered in the run before this call.
    pub planted: bool,
}

/// How the request that is sent differs from the client's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SentForm {
    /// Not in what it says.
    #[default]
    Own,
    /// It says what the program was told where the upstream keeps something else; no injection changed it besides.
    Retold,
    /// Neutral changes were made in it, and no other: it asks the same.
    Neutral,
    /// An injection changed it.
    Edited,
}

/// Marks a reply of an upstream that refused a call because it is beyond what may be spent: nobody was asked. It travels in the reply's
/// extensions, never on the wire.
#[derive(Debug, Clone, Copy)]
pub struct BeyondBudget;

/// A future that an upstream returns.
pub type BackendAnswering<'a> =
    Pin<Box<dyn Future<Output = Result<Response<ReceivedBody>, UpstreamError>> + Send + 'a>>;

/// A backend.
pub trait Upstream: Send + Sync + std::fmt::Debug {
    /// What records call it: scheme, host and port, or `simulator`.
    fn name(&self) -> &str;

    /// Sends a request (its URI holds path and query only) and returns the reply as soon as its head is there.
    /// Dropping the future or the body cancels the call.
    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_>;

    /// Whether it opens `WebSocket`s. Where it does not, we do, and it is sent the requests that come by them.
    fn opens_sockets(&self) -> bool {
        false
    }

    /// Sends a request to open a `WebSocket`. It asks no model, and costs nothing.
    fn open_socket(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        self.send(request)
    }

    /// The agent of a request, where the upstream knows it better than the rules that told it: a recording names
    /// agents as it recorded them. Asked only of a run's own upstream, before the step is opened.
    fn recall(&self, _surface: &str, _asked: &[u8], _told: &AttributedCall) -> Option<Attribution> {
        None
    }

    /// What the run is expected to ask, where the upstream knows: what was recorded of the same program. It tells a further
    /// call from another try. Asked only of a run's own upstream, when the run is opened.
    fn reference_calls(&self) -> Option<Arc<ReferenceCalls>> {
        None
    }
}
