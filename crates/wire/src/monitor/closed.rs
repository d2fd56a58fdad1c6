//! A closed call, as the line knows it when its record is written.

use bytes::Bytes;

use crate::{
    surface::Surface,
    trajectory::{Attribution, Call, CallEnding, CloseCause, RunId, StepIndex, Usage},
};

/// A call that is over.
#[derive(Debug, Clone, Copy)]
pub struct ClosedCall<'a> {
    /// Its run.
    pub run: &'a RunId,
    /// Its step of the run.
    pub step: StepIndex,
    /// Its number among the calls of its agent.
    pub call: Call,
    /// The try, 0-based.
    pub attempt: u32,
    /// Who made it.
    pub attribution: &'a Attribution,
    /// The API shape; `None` where it passed as bytes.
    pub surface: Option<&'static dyn Surface>,
    /// Why the exchange closed.
    pub cause: CloseCause,
    /// How the call ended.
    pub ending: CallEnding,
    /// HTTP status of the reply.
    pub status: Option<u16>,
    /// Token counts, as the upstream said them.
    pub usage: Option<Usage>,
    /// Whether the reply was an event stream.
    pub streamed: bool,
    /// Microseconds from arrival to the first byte of the reply.
    pub first_byte_us: Option<u64>,
    /// Microseconds from arrival to the end.
    pub last_byte_us: u64,
}

/// What was asked, and what the agent got.
#[derive(Debug, Clone, Default)]
pub struct ClosedBodies {
    /// Path and query of the request: they may ask something too.
    pub target: String,
    /// The request body as the agent's program sent it.
    pub request: Bytes,
    /// The reply body as it was delivered.
    pub answered: Bytes,
}

impl ClosedCall<'_> {
    /// The name of its API shape.
    pub fn surface_name(&self) -> &'static str {
        self.surface.map_or("opaque", Surface::name)
    }
}
