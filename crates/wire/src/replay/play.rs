//! The state of one replay: which records were used, which step of the run is which step of the record.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hyper::Response;
use tokio::time::Instant;

use super::{
    Cassette, Fit, ReplayReport, ServedReply, Timing,
    alike::EqualRecords,
    cassette::{EqualSteps, request_key},
    other_value::{other_value, renewed_values},
    question::CassetteQuestion,
    reply::{self, ReplayedFraming, ReplayedPart},
};
use crate::{
    identity::{AttributedCall, CallRelation, LedgerNumber},
    proxy::upstream::{ReceivedBody, UpstreamError},
    surface,
    trajectory::{AgentName, Attempt, Attribution, CallEnding, CloseCause, StepIndex, Usage},
};

/// How long a failure is held back for equal questions that were under way then, at most, and how often that is looked at.
const HOLD_MAX: Duration = Duration::from_millis(500);
const HOLD_STEP: Duration = Duration::from_millis(1);

/// A cassette being played to one run.
#[derive(Debug)]
pub(super) struct Play {
    pub(super) cassette: Arc<Cassette>,
    timing: Timing,
    /// Positions of the recorded steps that may be served; `None`: all.
    served: Option<HashSet<usize>>,
    state: Mutex<PlayState>,
}

/// What was done so far.
#[derive(Debug, Default)]
pub(super) struct PlayState {
    /// How often each recorded step was served, by position.
    pub(super) used: HashMap<usize, usize>,
    /// Records that answer one request and were never given, by how they fit it and its key.
    fresh: HashMap<(Fit, u128), EqualRecords>,
    /// Positions whose agent a call of the run was given: the next that asks the same is of the next position.
    claimed: HashSet<usize>,
    /// Of records that answer one request: before this one, each was claimed.
    first_unclaimed: HashMap<(Fit, u128), usize>,
    /// When each recorded answer was given, by position.
    given: HashMap<usize, Instant>,
    /// Steps of the run, and the positions they were found at.
    bound: HashMap<StepIndex, (usize, Fit)>,
    /// What the record calls those whom the rules of this run call so; `None` where it has several names for them.
    names: HashMap<(AgentName, u32), Option<Attribution>>,
    /// Who makes a call of the ledger, by the record: whoever made its first try makes the others.
    recalled: HashMap<LedgerNumber, Attribution>,
    /// Steps of the run that went live.
    pub(super) live: HashSet<StepIndex>,
    /// Whether the fork point is behind us.
    pub(super) passed: bool,
    /// The run's step that is the fork point, where it went live.
    pub(super) forked: Option<StepIndex>,
    pub(super) report: ReplayReport,
}

impl Play {
    pub(super) fn new(cassette: Arc<Cassette>) -> Self {
        Self { cassette, timing: Timing::Fast, served: None, state: Mutex::default() }
    }

    /// The same of a part of the record.
    pub(super) fn of_steps(self, served: HashSet<usize>) -> Self {
        Self { served: Some(served), ..self }
    }

    /// Whether the step at a position may be served.
    pub(super) fn is_played(&self, position: usize) -> bool {
        self.served.as_ref().is_none_or(|served| served.contains(&position))
    }

    pub(super) fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    /// A panic elsewhere leaves a report that is at worst one entry short.
    pub(super) fn state(&self) -> MutexGuard<'_, PlayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the record that answers a question: an unused one, or the one that an earlier attempt of the same step was
    /// answered from.
    pub(super) fn take(&self, state: &mut PlayState, question: &CassetteQuestion) -> Option<TakenRecord> {
        let asker = &question.asker;
        let found = if let Some(bound) = state.bound.get(&asker.step) {
            Some(*bound)
        } else {
            let fresh = self.find(state, question, &|position| self.is_played(position));
            fresh.or_else(|| self.cut_clean_before(state, question))
        };
        let (position, fit) = found?;
        let step = self.cassette.bare_steps().get(position)?;
        let served = state.used.entry(position).or_default();
        let attempt = step.attempts.get(*served).or_else(|| step.last_attempt())?;
        *served += 1;
        state.bound.insert(asker.step, (position, fit));
        Some(TakenRecord { position, attempt: attempt.clone(), fit })
    }

    /// The record whose last given attempt was cut short in good order: the ledger takes that for an answer, and its next try for a
    /// call of its own.
    fn cut_clean_before(&self, state: &PlayState, question: &CassetteQuestion) -> Option<(usize, Fit)> {
        let (_, same) =
            self.cassette.same_bytes(&question.surface, &question.asker.attribution, &question.asker.client_body);
        let is_cut = |position: &usize| {
            let (step, given) = (self.cassette.bare_steps().get(*position)?, state.used.get(position)?);
            step.attempts.get(*given)?;
            Some(self.cassette.is_cut_clean(step, step.attempts.get(given.checked_sub(1)?)?))
        };
        let cut = same.iter().copied().find(|position| is_cut(position) == Some(true))?;
        Some((cut, Fit::Bytes))
    }

    /// Takes this record, whatever is asked.
    pub(super) fn take_at(
        &self,
        state: &mut PlayState,
        question: &CassetteQuestion,
        position: usize,
    ) -> Option<TakenRecord> {
        let attempt = self.cassette.bare_steps().get(position)?.last_attempt()?.clone();
        *state.used.entry(position).or_default() += 1;
        let fit = Fit::Set;
        state.bound.insert(question.asker.step, (position, fit));
        Some(TakenRecord { position, attempt, fit })
    }

    /// Who asks, by the record: as it names this very request, else as it names whom the rules call the same.
    pub(super) fn recall(&self, surface: &str, asked: &[u8], told: &AttributedCall) -> Option<Attribution> {
        let mut state = self.state();
        if let CallRelation::Retry { of, .. } = told.relation
            && let Some(first) = state.recalled.get(&of)
        {
            return Some(first.clone());
        }
        let told_as = (told.attribution.agent.clone(), told.attribution.instance);
        let steps = self.cassette.bare_steps();
        let PlayState { claimed, first_unclaimed, .. } = &mut *state;
        let twins = self.cassette.twins();
        let same = |a: &Attribution, b: &Attribution| a.agent == b.agent && a.instance == b.instance;
        let mut unclaimed = |fit, (key, positions): EqualSteps<'_>| {
            let next = first_unclaimed.entry((fit, key)).or_default();
            while positions.get(*next).is_some_and(|place| claimed.contains(&twins.answering_record(*place))) {
                *next += 1;
            }
            if let Some(position) = positions.get(*next).map(|place| twins.answering_record(*place)) {
                claimed.insert(position);
                return steps.get(position).map(|step| step.attribution.clone());
            }
            // More often than in the record: of the same, where all in the record are of one.
            let mut who = positions.iter().filter_map(|position| Some(&steps.get(*position)?.attribution));
            let first = who.next()?;
            who.all(|other| same(first, other)).then(|| first.clone())
        };
        let who = &told.attribution;
        let recorded = unclaimed(Fit::Bytes, self.cassette.same_bytes(surface, who, asked))
            .or_else(|| unclaimed(Fit::Canonical, self.cassette.same_form(surface, who, asked)))
            .or_else(|| unclaimed(Fit::Volatile, self.cassette.same_but_volatile(surface, who, asked)))
            .or_else(|| unclaimed(Fit::ToolResults, self.cassette.same_with_any_results(surface, who, asked)));
        let Some(recorded) = recorded else { return state.names.get(&told_as).cloned().flatten() };
        state.recalled.insert(told.number, recorded.clone());
        let known = state.names.entry(told_as).or_insert_with(|| Some(recorded.clone()));
        if known.as_ref().is_some_and(|known| !same(known, &recorded)) {
            *known = None;
        }
        Some(recorded)
    }

    /// Whether the record answers this request anywhere.
    pub(super) fn knows(&self, question: &CassetteQuestion) -> bool {
        self.find(&mut PlayState::default(), question, &|_| true).is_some()
    }

    /// The best of the records that answer a question and were never given.
    fn find(
        &self,
        state: &mut PlayState,
        question: &CassetteQuestion,
        allowed: &impl Fn(usize) -> bool,
    ) -> Option<(usize, Fit)> {
        let CassetteQuestion { asker, surface } = question;
        let (who, asked, cassette) = (&asker.attribution, &asker.client_body, &self.cassette);
        let steps = cassette.bare_steps();
        let PlayState { used, fresh, .. } = state;
        let twins = cassette.twins();
        let left = |place: usize| {
            let position = twins.answering_record(place);
            allowed(position) && !used.contains_key(&position)
        };
        let mut of = |fit, (key, positions): EqualSteps<'_>| {
            // In the place of a twin stands the record that is given there, at that place's turn.
            let record = |place: &usize| {
                Some((*place, &steps.get(twins.answering_record(*place))?.attribution, steps.get(*place)?.call))
            };
            let of = || EqualRecords::group(positions.iter().filter_map(record));
            let alike = fresh.entry((fit, key)).or_insert_with(of);
            alike.best(who, asker.call, left).map(|place| (twins.answering_record(place), fit))
        };
        let bytes = cassette.same_bytes(surface, who, asked);
        of(Fit::Bytes, bytes)
            .or_else(|| of(Fit::Canonical, cassette.same_form(surface, who, asked)))
            .or_else(|| of(Fit::Masked, (bytes.0, &cassette.same_but_secrets(surface, asked))))
            .or_else(|| of(Fit::Volatile, cassette.same_but_volatile(surface, who, asked)))
            .or_else(|| of(Fit::ToolResults, cassette.same_with_any_results(surface, who, asked)))
    }

    /// Gives what was taken, and writes it down.
    pub(super) async fn give(
        &self,
        question: &CassetteQuestion,
        taken: TakenRecord,
        given: ReplayedPart,
    ) -> Result<Response<ReceivedBody>, UpstreamError> {
        let TakenRecord { position, attempt, fit } = taken;
        let Some(step) = self.cassette.bare_steps().get(position) else { return Err(UpstreamError::Hushed) };
        {
            let mut state = self.state();
            let replaced = matches!(given, ReplayedPart::Instead(_));
            let usage = attempt.usage.filter(|_| !replaced).unwrap_or_default();
            let saved = &mut state.report.saved;
            *saved = Usage { input: saved.input + usage.input, output: saved.output + usage.output };
            let (asked, recorded) = (question.asker.step, step.step);
            if matches!(fit, Fit::Canonical | Fit::ToolResults) {
                let was = self.cassette.request(position);
                let other = other_value(asked, step, &was, &question.asker.client_body, self.cassette.rules());
                state.report.other_values.extend(other);
            }
            if fit == Fit::Volatile {
                let was = self.cassette.request(position);
                let places = self.cassette.volatile_rules().volatile();
                let renewed = renewed_values(asked, step, &was, &question.asker.client_body, places);
                state.report.other_values.extend(renewed);
            }
            state.report.served.push(ServedReply {
                step: asked,
                recorded,
                attempt: attempt.attempt,
                fit,
                exact: attempt.exact,
                replaced,
            });
        }
        if attempt.status.is_none() || attempt.ending.is_some_and(CallEnding::is_error) {
            self.hold(position, &attempt).await;
        }
        let is_last = step.last_attempt().is_some_and(|last| last.attempt == attempt.attempt);
        if is_last && self.timing == Timing::Fast {
            self.wait_for_turn(position).await;
        }
        let attempt = question.answered_by(attempt);
        let left = (attempt.streamed || attempt.status.is_none()) && attempt.cause == Some(CloseCause::ClientGone);
        let how = ReplayedFraming {
            timing: self.timing,
            cut_clean: self.cassette.is_cut_clean(step, &attempt),
            stays_open: left && surface::is_of_server(&question.surface),
        };
        let reply = reply::give(&attempt, self.cassette.detail(step, &attempt), &given, how).await;
        if is_last {
            self.state().given.insert(position, Instant::now());
        }
        reply
    }

    /// Waits until the answers are given that came before this one.
    async fn wait_for_turn(&self, position: usize) {
        let last_given = |before: &[usize]| {
            let state = self.state();
            let given: Option<Vec<Instant>> = before.iter().map(|before| state.given.get(before).copied()).collect();
            given?.into_iter().max()
        };
        let is_played = |joined_in| self.is_played(joined_in);
        self.cassette.finish_order().wait_for_turn(position, is_played, last_given).await;
    }

    /// Waits until the equal questions that were under way when an attempt failed are asked here too, as far as they come:
    /// a failure that came sooner than then would be tried again before they are asked, and take what they got.
    async fn hold(&self, position: usize, failed: &Attempt) {
        let steps = self.cassette.bare_steps();
        let Some(step) = steps.get(position) else { return };
        let Some(closed) = self.cassette.detail(step, failed).and_then(|detail| detail.closed) else { return };
        let (_, equal) =
            self.cassette.same_bytes(&request_key(step), &step.attribution, &self.cassette.request(position));
        let then =
            |at: &&usize| **at != position && steps.get(**at).is_some_and(|other| self.cassette.span(other).0 < closed);
        let then: Vec<usize> = equal.iter().filter(then).copied().collect();
        let asked = || {
            let state = self.state();
            then.iter().all(|at| state.used.contains_key(at))
        };
        let held = async {
            while !asked() {
                tokio::time::sleep(HOLD_STEP).await;
            }
        };
        // A program that no longer asks them goes on without.
        let _ = tokio::time::timeout(HOLD_MAX, held).await;
    }

    /// The report so far.
    pub(super) fn report(&self) -> ReplayReport {
        let state = self.state();
        let mut report = state.report.clone();
        let unused = self.cassette.bare_steps().iter().enumerate();
        let unused = unused.filter(|(position, _)| self.is_played(*position) && !state.used.contains_key(position));
        report.unused = unused.map(|(_, step)| step.step).collect();
        // Replies are given side by side: their order is chance, that of the steps is not.
        report.served.sort_by_key(|served| (served.step, served.attempt));
        report.missed.sort_by_key(|missed| missed.step);
        report.live.sort_unstable();
        let positions = self.cassette.bare_steps().iter().enumerate();
        let positions: HashMap<StepIndex, usize> = positions.map(|(position, step)| (step.step, position)).collect();
        let told = report.served.iter().filter(|served| served.fit <= Fit::Masked);
        let told: HashSet<usize> = told.filter_map(|served| positions.get(&served.recorded).copied()).collect();
        let unsure = report.served.iter().filter(|served| {
            let position = positions.get(&served.recorded);
            position.is_some_and(|at| self.cassette.twins().is_unsure(*at, |quotes| told.contains(&quotes)))
        });
        report.unsure = unsure.map(|served| served.step).collect();
        report.unsure.dedup();
        report
    }
}

/// A record that answers a request.
pub(super) struct TakenRecord {
    pub(super) position: usize,
    pub(super) attempt: Attempt,
    fit: Fit,
}
