//! The ledger of a run's calls: of each request, whether it is a call of its own, another try of an earlier call, or
//! whether that cannot be told.
//!
//! Two agents may ask the same, and one of them be refused: the next try of one has the bytes of the other's call. A
//! client that counts its tries is believed. Of others a run of the same program without faults tells how often it asks
//! what ([`ReferenceCalls`]). Where neither is there, equal bytes behind a failure are a retry, unless the program was
//! seen to ask the same words more than once.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;

use super::{
    instances::{AgentNumber, QUESTIONS_MAX},
    near::{NearMarks, near_marks},
    recent::Recent,
    reference::{COMPARED_MAX, LedgerRequest, ReferenceCalls},
};
use crate::{equality::Rules, surface::Surface, trajectory::RetryEvidence};

/// The number of a call in the ledger of its run.
pub type LedgerNumber = u64;

/// Failed calls of a run that requests are compared with by their words. Their bodies are held.
const FAILED_MAX: usize = 64;
/// Failed calls of its agent that a request is compared with.
const COMPARISONS_MAX: usize = 8;
/// The shortest pause, in microseconds, after which an equal request is a retry although the same was asked more than once.
const PAUSE_US: u64 = 100_000;

/// What a request is beside the earlier calls of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallRelation {
    /// Its agent asked nothing equal before.
    First,
    /// Another try of a call.
    Retry {
        /// The call.
        of: LedgerNumber,
        /// The number of this try, 1 for the second.
        attempt: u32,
        /// Why.
        evidence: RetryEvidence,
    },
    /// A call of its own, though its agent asked the same before.
    Again,
    /// Another try of this call, or a call of its own: nothing tells.
    Undecided {
        /// The call.
        of: LedgerNumber,
    },
}

/// Whether a reference has room for another call like this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReferenceRoom {
    Yes,
    No,
    /// The reference asked nothing like it.
    Unknown,
}

/// The calls of a run.
#[derive(Debug)]
pub(super) struct CallLedger {
    calls: Recent<(AgentNumber, u128), EqualCalls>,
    /// The calls that failed last, with their bodies.
    failed: VecDeque<FailedCall>,
    reference: Option<Arc<ReferenceCalls>>,
    /// What was asked so far, tries aside, as the reference counts it.
    seen: ReferenceCalls,
    /// How often a client was seen to have tried.
    most: u32,
    next: LedgerNumber,
}

/// The calls of an agent that ask the same.
#[derive(Debug, Default)]
struct EqualCalls {
    calls: Vec<LedgerCall>,
    /// Whether it was asked more than once although nothing had failed.
    repeated: bool,
}

/// A call that is remembered.
#[derive(Debug, Clone)]
struct LedgerCall {
    number: LedgerNumber,
    instance: u32,
    /// The latest attempt.
    attempt: u32,
    /// Attempts under way: a client that gives up and tries again may be quicker than the end of its connection.
    in_flight: u32,
    answered: bool,
    /// Whether the answer held nothing that a program can use.
    empty: bool,
    ended_us: u64,
    bytes: Option<(Bytes, &'static dyn Surface)>,
}

#[derive(Debug)]
struct FailedCall {
    agent: AgentNumber,
    number: LedgerNumber,
    body: u128,
    bytes: Bytes,
    surface: &'static dyn Surface,
}

/// A request's place in the ledger.
#[derive(Debug, Clone, Copy)]
pub(super) struct LedgerPlace {
    pub(super) number: LedgerNumber,
    pub(super) relation: CallRelation,
    /// The instance of the call that it tries again, or may try again, or whose empty answer it does not take.
    pub(super) instance: Option<u32>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// Without an answer.
    Failed,
    /// With an answer that holds neither words nor calls.
    Empty,
    /// With an answer.
    Answered,
}

impl LedgerCall {
    fn has_failed(&self) -> bool {
        self.in_flight == 0 && !self.answered
    }

    /// How well a call fits one that its client counts as the `tries`th try; the least fits best.
    fn rank(&self, tries: u32) -> u32 {
        let state = if self.has_failed() { 0 } else { 1 + u32::from(self.in_flight == 0) };
        match (state, self.attempt + 1 == tries) {
            (0, true) => 0,
            (1, true) => 1,
            (0, false) => 2,
            (_, true) => 3,
            (1, false) => 4,
            (_, false) => 5,
        }
    }
}

impl Default for CallLedger {
    fn default() -> Self {
        Self {
            calls: Recent::new(QUESTIONS_MAX),
            failed: VecDeque::new(),
            reference: None,
            seen: ReferenceCalls::default(),
            most: 0,
            next: 0,
        }
    }
}

impl CallLedger {
    /// What may differ in requests that ask the same, and what a run without faults asked.
    pub(super) fn count_by(&mut self, rules: Rules, reference: Option<Arc<ReferenceCalls>>) {
        self.seen.rules = reference.as_ref().map_or(rules, |reference| reference.rules.clone());
        self.reference = reference;
    }

    /// A request arrives. `own`: the instance that the request's own history names.
    pub(super) fn ask(&mut self, agent: AgentNumber, request: &LedgerRequest<'_>, own: Option<u32>) -> LedgerPlace {
        let relation = self.relation(agent, request, own);
        self.most = self.most.max(request.count.unwrap_or_default());
        let instance = match relation {
            CallRelation::Retry { of, .. } | CallRelation::Undecided { of } => {
                self.find(agent, request.body, of).map(|call| call.instance)
            }
            CallRelation::Again => self.latest_empty(agent, request.body),
            CallRelation::First => None,
        };
        if let CallRelation::Retry { of, attempt, .. } = relation {
            if let Some(call) = self.find(agent, request.body, of) {
                call.attempt = attempt;
                call.in_flight += 1;
                call.answered = false;
            }
            return LedgerPlace { number: of, relation, instance };
        }
        if let (CallRelation::Again, Some(equal)) = (relation, self.calls.get_mut(&(agent, request.body))) {
            equal.repeated = true;
        }
        let number = self.next;
        self.next += 1;
        self.keep(agent, request, number, own.or(instance).unwrap_or_default());
        LedgerPlace { number, relation, instance }
    }

    fn keep(&mut self, agent: AgentNumber, request: &LedgerRequest<'_>, number: LedgerNumber, instance: u32) {
        if self.reference.is_some() {
            self.seen.count(request);
        }
        let bytes = request.bytes.filter(|bytes| bytes.len() <= COMPARED_MAX).cloned().zip(request.surface);
        let calls = &mut self.calls.entry((agent, request.body), EqualCalls::default).calls;
        // Of those that were answered, one is enough: a client that tries on all the same means the latest.
        calls.retain(|call| call.in_flight > 0 || !call.answered);
        calls.push(LedgerCall {
            number,
            instance,
            attempt: 0,
            in_flight: 1,
            answered: false,
            empty: false,
            ended_us: 0,
            bytes,
        });
    }

    /// Which instance made a call is known only after it was placed.
    pub(super) fn made_by(&mut self, agent: AgentNumber, body: u128, number: LedgerNumber, instance: u32) {
        if let Some(call) = self.find(agent, body, number) {
            call.instance = instance;
        }
    }

    fn relation(&self, agent: AgentNumber, request: &LedgerRequest<'_>, own: Option<u32>) -> CallRelation {
        let known = self.calls.get(&(agent, request.body));
        let equal = known.map(|known| known.calls.as_slice()).unwrap_or_default();
        let mine = |call: &&LedgerCall| own.is_none_or(|own| own == call.instance);
        let fresh = if equal.is_empty() { CallRelation::First } else { CallRelation::Again };
        let retry =
            |call: &LedgerCall, evidence| CallRelation::Retry { of: call.number, attempt: call.attempt + 1, evidence };
        if let Some(tries) = request.count.filter(|tries| *tries > 0) {
            let fits = equal.iter().filter(mine).filter(|call| call.attempt < tries);
            if let Some(call) = fits.min_by_key(|call| call.rank(tries)) {
                return retry(call, RetryEvidence::Counted);
            }
            let near = self.near(agent, request, own, |one, other| one.words == other.words);
            return near.map_or(fresh, |call| retry(call, RetryEvidence::Counted));
        }
        let failed = equal.iter().filter(mine).find(|call| call.has_failed());
        match self.expected(request) {
            ReferenceRoom::Yes => return fresh,
            ReferenceRoom::No => {
                let near = || self.near(agent, request, own, |one, other| one.figures == other.figures);
                return failed.or_else(near).map_or(fresh, |call| retry(call, RetryEvidence::Reference));
            }
            ReferenceRoom::Unknown => {}
        }
        let Some(call) = failed else {
            let near = self.near(agent, request, own, |one, other| one.words == other.words);
            return near.map_or(fresh, |call| CallRelation::Undecided { of: call.number });
        };
        match request.count {
            // Its client will try again by itself, and counts then.
            Some(_) if call.attempt < self.most => CallRelation::Again,
            None if !known.is_some_and(|known| known.repeated) => retry(call, RetryEvidence::Equal),
            None if request.at_us.saturating_sub(call.ended_us) >= PAUSE_US => retry(call, RetryEvidence::Equal),
            _ => CallRelation::Undecided { of: call.number },
        }
    }

    fn expected(&self, request: &LedgerRequest<'_>) -> ReferenceRoom {
        let Some(reference) = &self.reference else { return ReferenceRoom::Unknown };
        let count = |counts: &HashMap<u128, u32>| counts.get(&request.body).copied().unwrap_or_default();
        let (known, seen) = (count(&reference.exact), count(&self.seen.exact));
        if known > 0 {
            return if seen < known { ReferenceRoom::Yes } else { ReferenceRoom::No };
        }
        let Some(marks) = request.marks(&reference.rules) else { return ReferenceRoom::Unknown };
        let count = |counts: &HashMap<u64, u32>| counts.get(&marks.figures).copied().unwrap_or_default();
        match (count(&reference.near), count(&self.seen.near)) {
            (0, _) => ReferenceRoom::Unknown,
            (known, seen) if seen < known => ReferenceRoom::Yes,
            _ => ReferenceRoom::No,
        }
    }

    /// The latest failed call of an agent with other bytes that asks nearly the same.
    fn near(
        &self,
        agent: AgentNumber,
        request: &LedgerRequest<'_>,
        own: Option<u32>,
        alike: impl Fn(&NearMarks, &NearMarks) -> bool,
    ) -> Option<&LedgerCall> {
        if !self.failed.iter().any(|failed| failed.agent == agent) {
            return None;
        }
        let rules = &self.seen.rules;
        let marks = request.marks(rules)?;
        let others = self.failed.iter().rev().filter(|failed| failed.agent == agent && failed.body != request.body);
        others.take(COMPARISONS_MAX).find_map(|failed| {
            let calls = &self.calls.get(&(agent, failed.body))?.calls;
            let call = calls.iter().find(|call| call.number == failed.number && call.has_failed())?;
            let fits = own.is_none_or(|own| own == call.instance);
            (fits && alike(&near_marks(failed.surface, &failed.bytes, rules)?, &marks)).then_some(call)
        })
    }

    fn latest_empty(&self, agent: AgentNumber, body: u128) -> Option<u32> {
        let latest = self.calls.get(&(agent, body))?.calls.iter().rfind(|call| call.in_flight == 0 && call.answered)?;
        latest.empty.then_some(latest.instance)
    }

    /// A call by its number: among those with this body, or, where a try has another body, wherever it is.
    fn find(&mut self, agent: AgentNumber, body: u128, number: LedgerNumber) -> Option<&mut LedgerCall> {
        let is_here = |equal: &EqualCalls| equal.calls.iter().any(|call| call.number == number);
        let body = if self.calls.get(&(agent, body)).is_some_and(is_here) {
            body
        } else {
            self.failed.iter().find(|failed| failed.number == number)?.body
        };
        self.calls.get_mut(&(agent, body))?.calls.iter_mut().find(|call| call.number == number)
    }

    /// An attempt is over.
    pub(super) fn end(&mut self, agent: AgentNumber, body: u128, number: LedgerNumber, end: AttemptEnd, at_us: u64) {
        let Some(call) = self.find(agent, body, number) else { return };
        call.in_flight = call.in_flight.saturating_sub(1);
        call.answered |= end != AttemptEnd::Failed;
        call.empty = end == AttemptEnd::Empty;
        call.ended_us = at_us;
        if end != AttemptEnd::Failed {
            call.bytes = None;
            self.failed.retain(|failed| failed.number != number);
            return;
        }
        // Held once: with the failed calls, as long as there are not too many.
        let Some((bytes, surface)) = call.bytes.take() else { return };
        if self.failed.len() >= FAILED_MAX {
            self.failed.pop_front();
        }
        self.failed.push_back(FailedCall { agent, number, body, bytes, surface });
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
