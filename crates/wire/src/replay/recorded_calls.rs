//! The calls of a record, as its order and its equal questions are read from them.

use bytes::Bytes;

use crate::{recording::ExchangeDetail, trajectory::Step};

/// A record's steps without their requests, the requests, and when each step was under way.
pub(super) trait RecordedCalls {
    /// The steps, by position, without their requests.
    fn steps(&self) -> &[Step];

    /// The request of the step at a position.
    fn request(&self, position: usize) -> Bytes;

    /// What else is known of each exchange.
    fn exchanges(&self) -> &[ExchangeDetail];

    /// Where in the log a step was opened and where its last attempt ended; a step that never ended ends where it
    /// began, so that nothing after it counts as opened before its end.
    fn span(&self, step: &Step) -> (u64, u64);
}
