//! What whoever watches the server hears of a step.

use bytes::Bytes;

use super::{OpenStep, micros_since};
use crate::{
    monitor::{ClosedBodies, ClosedCall},
    trajectory::{CallEnding, CloseCause, Usage},
};

/// What whoever is told of a call hears of its request.
#[derive(Debug)]
pub(super) struct ClosingRequest {
    target: String,
    body: Bytes,
}

impl OpenStep {
    /// Its opening is recorded: whoever is told of calls hears of it.
    pub(in crate::proxy) fn tell_opened(&mut self, target: &str, asked: &Bytes) {
        if let Some(monitor) = &self.run.monitor {
            monitor.opened();
            let request = || ClosingRequest { target: target.to_owned(), body: asked.clone() };
            self.request = monitor.wants_bodies().then(request);
        }
    }

    /// Whoever is told of calls hears that this one is over.
    pub(super) fn tell_closed(
        &self,
        cause: CloseCause,
        ending: CallEnding,
        status: Option<u16>,
        usage: Option<Usage>,
        tape: &[(Bytes, u64)],
    ) {
        let Some(monitor) = &self.run.monitor else { return };
        let call = ClosedCall {
            run: &self.run.id,
            step: self.numbers.step,
            call: self.numbers.call,
            attempt: self.numbers.attempt,
            attribution: &self.attribution,
            surface: self.surface,
            cause,
            ending,
            status,
            usage,
            streamed: self.streamed,
            first_byte_us: tape.first().map(|(_, at)| *at),
            last_byte_us: micros_since(self.awaited.received),
        };
        monitor.closed(&call, || {
            let ClosingRequest { target, body } = self.request.as_ref()?;
            Some(ClosedBodies { target: target.clone(), request: body.clone(), answered: self.given_reply(tape) })
        });
    }
}
