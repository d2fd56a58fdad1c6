//! The requests of a run as far as they are remembered in order to know their retries.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::{
    identity::LedgerNumber,
    plan::Decision,
    trajectory::{Call, StepIndex},
};

/// Different calls that a run remembers.
const REMEMBERED_CALLS: usize = 1024;

/// The numbers of an exchange, fixed on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Step of the run.
    pub step: StepIndex,
    /// Call of the agent instance.
    pub call: Call,
    /// Attempt of the step; 0 is the first.
    pub attempt: u32,
    /// Whether another call of the same agent instance was in flight.
    pub overlapping: bool,
}

/// The calls of a run by their numbers in the ledger, each with what was decided on it.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    calls: HashMap<LedgerNumber, RememberedCall>,
    order: VecDeque<LedgerNumber>,
}

/// A step that was asked.
#[derive(Debug, Clone)]
struct RememberedCall {
    numbers: Numbers,
    decision: Option<Arc<Decision>>,
    credential: Option<u64>,
}

/// Another try of a step: its numbers, what was decided on the first, and whether it comes with another credential.
pub(super) struct AnotherTry {
    pub(super) numbers: Numbers,
    pub(super) decision: Option<Arc<Decision>>,
    pub(super) other_key: bool,
}

impl Remembered {
    /// Another try of a call, where that is remembered. `credential`: a hash of the request's.
    pub(super) fn another_try(
        &mut self,
        number: LedgerNumber,
        attempt: u32,
        credential: Option<u64>,
    ) -> Option<AnotherTry> {
        let call = self.calls.get_mut(&number)?;
        call.numbers.attempt = attempt;
        let former = std::mem::replace(&mut call.credential, credential);
        Some(AnotherTry { numbers: call.numbers, decision: call.decision.clone(), other_key: former != credential })
    }

    /// The step of a call.
    pub(super) fn step(&self, number: LedgerNumber) -> Option<StepIndex> {
        self.calls.get(&number).map(|call| call.numbers.step)
    }

    /// A call is made for the first time.
    pub(super) fn ask(&mut self, number: LedgerNumber, numbers: Numbers, credential: Option<u64>) {
        if self.order.len() >= REMEMBERED_CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
        self.order.push_back(number);
        self.calls.insert(number, RememberedCall { numbers, decision: None, credential });
    }

    /// Keeps what was decided, so that a retry meets the same decision.
    pub(super) fn decided(&mut self, number: LedgerNumber, decision: &Arc<Decision>) {
        if let Some(call) = self.calls.get_mut(&number) {
            call.decision = Some(Arc::clone(decision));
        }
    }
}
