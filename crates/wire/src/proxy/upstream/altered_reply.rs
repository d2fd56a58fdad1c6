//! A reply that goes out otherwise than the upstream keeps it.

use bytes::Bytes;

/// Stands beside a response that a record gives: what the upstream keeps of the same reply.
#[derive(Debug, Clone)]
pub struct AlteredReply {
    /// As the upstream sent it, and keeps it where it keeps replies.
    pub kept: Bytes,
    /// As the program gets it.
    pub given: Bytes,
    /// Whether both are event streams.
    pub streamed: bool,
    /// What made the difference.
    pub by: ReplyChange,
}

/// What makes a given reply another than the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyChange {
    /// It takes the place of the recorded one: what goes on from it goes on from this one.
    Replacement,
    /// An injection of the recorded run, by its number there; in that run what went on from the reply told the upstream so.
    RecordedInjection(u32),
    /// An injection of the recorded run, or of the run's own plan.
    Injection,
    /// A change that means nothing.
    NeutralChange,
}
