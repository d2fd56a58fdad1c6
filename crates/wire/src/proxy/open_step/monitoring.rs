//! What whoever watches the server hears of a step.

use bytes::Bytes;

use super::{OpenStep, micros_since};
use crate::{
    monitor::{ClosedBodies, ClosedCall},
    trajectory::{CallEnding, CloseCause, Usage},
};

impl OpenStep {
    /// Its opening is recorded: whoever is told of calls hears of it.
    pub(in crate::proxy) fn tell_opened(&mut self, asked: &Bytes) {
        if let Some(monitor) = &self.run.monitor {
            monitor.opened();
            self.request_body = monitor.wants_bodies().then(|| asked.clone());
        }
    }

    /// Whoever is told of calls hears that this one is over.
    pub(super) fn tell_closed(
        &self,
        (cause, ending): (CloseCause, CallEnding),
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
        monitor
            .closed(&call, || Some(ClosedBodies { request: self.request_body.clone()?, answered: self.whole(tape) }));
    }
}
