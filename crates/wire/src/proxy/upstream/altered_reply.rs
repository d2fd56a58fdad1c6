//! A reply that the program gets in another form than the upstream stores.

use bytes::Bytes;

/// Both forms of a reply that a record serves. The exchange finds it among the extensions of the response.
#[derive(Debug, Clone)]
pub struct AlteredReply {
    /// As the upstream sent it. An upstream that stores replies has this form.
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
    /// Another reply takes its place.
    Replacement,
    /// An injection of the recorded run, by its number there. That run sent the edited reply to the upstream.
    RecordedInjection(u32),
    /// An injection of the recorded run, or of the run's own plan.
    Injection,
    /// A change that means nothing.
    NeutralChange,
}
