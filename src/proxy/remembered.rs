//! The requests of a run as far as they are remembered in order to know their retries.

use std::{collections::VecDeque, sync::Arc};

use foldhash::HashMap;

use crate::{
    identity::{SaidTries, Tries},
    plan::Decision,
    trajectory::{AgentName, Attribution, Call, StepIndex},
};

/// Different requests that a run remembers.
const REMEMBERED_REQUESTS: usize = 1024;

/// Who asked what: agent, instance, hash of the body. Different agents may say the same words.
type WhoAsked = (AgentName, u32, u128);

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
/// Requests by what they ask, each with its tries.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    requests: HashMap<WhoAsked, Tries<Request>>,
    order: VecDeque<WhoAsked>,
    /// How often a client was seen to have tried.
    most: u32,
}

/// A step that was asked.
#[derive(Debug, Clone)]
struct Request {
    numbers: Numbers,
    decision: Option<Arc<Decision>>,
}

/// The numbers of an attempt, and what was decided on the first.
pub(super) type Again = (Numbers, Option<Arc<Decision>>);

impl Remembered {
    /// The step of which a request is another attempt, if it is one.
    pub(super) fn again(&mut self, asker: &Attribution, body: u128, said: SaidTries) -> Option<Again> {
        let most = self.most;
        self.most = most.max(said.unwrap_or_default());
        let (request, attempt) = self.requests.get_mut(&asked(asker, body))?.again(said, most, |_| true)?;
        request.numbers.attempt = attempt;
        Some((request.numbers, request.decision.clone()))
    }

    /// A step is asked for the first time.
    pub(super) fn ask(&mut self, asker: &Attribution, body: u128, numbers: Numbers) {
        let asked = asked(asker, body);
        if !self.requests.contains_key(&asked) {
            self.order.push_back(asked.clone());
            if self.order.len() > REMEMBERED_REQUESTS
                && let Some(oldest) = self.order.pop_front()
            {
                self.requests.remove(&oldest);
            }
        }
        self.requests.entry(asked).or_default().ask(Request { numbers, decision: None });
    }

    /// Keeps what was decided, so that a retry meets the same decision.
    pub(super) fn decided(&mut self, asker: &Attribution, body: u128, step: StepIndex, decision: &Arc<Decision>) {
        let tries = self.requests.get_mut(&asked(asker, body));
        if let Some(request) = tries.and_then(|tries| tries.find(|request| request.numbers.step == step)) {
            request.decision = Some(Arc::clone(decision));
        }
    }

    /// An attempt is over.
    pub(super) fn end(&mut self, asker: &Attribution, body: u128, step: StepIndex, failed: bool) {
        if let Some(tries) = self.requests.get_mut(&asked(asker, body)) {
            tries.end(|request| request.numbers.step == step, failed);
        }
    }
}

fn asked(asker: &Attribution, body: u128) -> WhoAsked {
    (asker.agent.clone(), asker.instance, body)
}
