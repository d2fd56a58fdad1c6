//! How much of the calls of a server was read, counted when somebody asks for the counts: nothing of it is done on a call's way.

use std::sync::{Mutex, PoisonError};

use super::{ClosedBodies, ClosedCall};
use crate::surface::{
    Surface,
    account::{self, ReadState, StepAccount},
};

/// Most calls that wait to be looked at, and bytes of their bodies together. Calls that find no room are counted as not looked at.
const WAITING: usize = 512;
const WAITING_BYTES: usize = 4 << 20;
/// What is said of a call that found no room.
pub(super) const NOT_LOOKED_AT: &str = "not looked at";

/// Calls that wait to be looked at.
#[derive(Debug, Default)]
pub(super) struct WaitingAccounts(Mutex<WaitingBodies>);

#[derive(Debug, Default)]
struct WaitingBodies {
    calls: Vec<WaitingCall>,
    bytes: usize,
}

#[derive(Debug)]
struct WaitingCall {
    surface: &'static dyn Surface,
    streamed: bool,
    bodies: ClosedBodies,
}

impl WaitingAccounts {
    fn lock(&self) -> std::sync::MutexGuard<'_, WaitingBodies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another call has room.
    pub(super) fn has_room(&self) -> bool {
        let waiting = self.lock();
        waiting.calls.len() < WAITING && waiting.bytes < WAITING_BYTES
    }

    /// Takes a call in; gives the words of its state where these are known at once.
    pub(super) fn push(
        &self,
        call: &ClosedCall<'_>,
        bodies: impl FnOnce() -> Option<ClosedBodies>,
    ) -> Option<&'static str> {
        let Some(surface) = call.surface else { return Some(ReadState::Unread(String::new()).words()) };
        let Some(mut bodies) = bodies() else { return Some(NOT_LOOKED_AT) };
        if call.status.is_none_or(|status| status >= 400) {
            bodies.answered.clear();
        }
        let length = bodies.request.len() + bodies.answered.len();
        let mut waiting = self.lock();
        if waiting.calls.len() >= WAITING || waiting.bytes + length > WAITING_BYTES {
            return Some(NOT_LOOKED_AT);
        }
        waiting.bytes += length;
        waiting.calls.push(WaitingCall { surface, streamed: call.streamed, bodies });
        None
    }

    /// Looks at all that waits.
    pub(super) fn take(&self) -> Vec<StepAccount> {
        let WaitingBodies { calls, .. } = std::mem::take(&mut *self.lock());
        let look = |call: &WaitingCall| {
            account::of_bodies(call.surface, &call.bodies.request, &call.bodies.answered, call.streamed)
        };
        calls.iter().map(look).collect()
    }
}
