//! The state of one replay: which records were used, which step of the run is which step of the record.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hyper::{Request, Response};

use super::{
    Cassette, Departure, Fit, Nearest, Report, Served, Timing,
    alike::Alike,
    canonical::without_tool_results,
    cassette::Same,
    difference,
    reply::{self, Given},
};
use crate::{
    proxy::upstream::{Asker, ReceivedBody, SentBody, UpstreamError},
    surface,
    trajectory::{AgentName, Attempt, Attribution, Step, StepIndex, Usage},
};

/// A cassette being played to one run.
#[derive(Debug)]
pub(super) struct Play {
    pub(super) cassette: Arc<Cassette>,
    timing: Timing,
    /// Whether a request may fit a record but for results of tools.
    any_tool_results: bool,
    state: Mutex<State>,
}

/// What was done so far.
#[derive(Debug, Default)]
pub(super) struct State {
    /// How often each recorded step was served, by position.
    used: HashMap<usize, usize>,
    /// Records that answer one request, by how they fit it and its key; those that were never given, and those of whose
    /// attempts some are left.
    fresh: HashMap<(Fit, u128), Alike>,
    begun: HashMap<(Fit, u128), Alike>,
    /// Of records that answer one request: before this one, each was given.
    first_unused: HashMap<(Fit, u128), usize>,
    /// Steps of the run, and the positions they were found at.
    bound: HashMap<StepIndex, (usize, Fit)>,
    /// What the record calls those whom the rules of this run call so; `None` where it has several names for them.
    names: HashMap<(AgentName, u32), Option<Attribution>>,
    /// Steps of the run that went live.
    pub(super) live: HashSet<StepIndex>,
    /// Whether the fork point is behind us.
    pub(super) passed: bool,
    pub(super) report: Report,
}

/// A request to the cassette.
pub(super) struct Question {
    pub(super) asker: Asker,
    pub(super) surface: &'static str,
}

impl Question {
    /// What a request asks; `None` for one that no run stands behind, or that is no model call.
    pub(super) fn of(request: &Request<SentBody>) -> Option<Self> {
        let asker = request.extensions().get::<Asker>()?.clone();
        let (method, path) = (request.method().as_str(), request.uri().path());
        let read = surface::for_path(method, path).map(surface::Surface::name);
        Some(Self { asker, surface: read.or_else(|| surface::unread_call(method, path))? })
    }
}

impl Play {
    pub(super) fn new(cassette: Arc<Cassette>) -> Self {
        Self { cassette, timing: Timing::Fast, any_tool_results: false, state: Mutex::default() }
    }

    pub(super) fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    pub(super) fn allow_any_tool_results(&mut self) {
        self.any_tool_results = true;
    }

    /// A panic elsewhere leaves a report that is at worst one entry short.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the record that answers a question, of those that `allowed` lets be used: an unused one, or the one that
    /// an earlier attempt of the same step was answered from.
    pub(super) fn take(
        &self,
        state: &mut State,
        question: &Question,
        allowed: impl Fn(usize) -> bool,
    ) -> Option<Taken> {
        let asker = &question.asker;
        let found = if let Some(bound) = state.bound.get(&asker.step) {
            Some(*bound)
        } else {
            let fresh = self.find(state, question, false, &allowed);
            // What was a retry then is a request of its own now where the failure shows in the record alone.
            fresh.or_else(|| self.find(state, question, true, &allowed))
        };
        let (position, fit) = found?;
        let step = self.cassette.bare_steps().get(position)?;
        let served = state.used.entry(position).or_default();
        let attempt = step.attempts.get(*served).or_else(|| step.last_attempt())?;
        *served += 1;
        state.bound.insert(asker.step, (position, fit));
        Some(Taken { position, attempt: attempt.clone(), fit })
    }

    /// Takes this record, whatever is asked.
    pub(super) fn take_at(&self, state: &mut State, question: &Question, position: usize) -> Option<Taken> {
        let attempt = self.cassette.bare_steps().get(position)?.last_attempt()?.clone();
        *state.used.entry(position).or_default() += 1;
        let fit = Fit::Set;
        state.bound.insert(question.asker.step, (position, fit));
        Some(Taken { position, attempt, fit })
    }

    /// Who asks, by the record: as it names this very request, else as it names whom the rules call the same.
    pub(super) fn recall(&self, surface: &str, asked: &[u8], told: &Attribution) -> Option<Attribution> {
        let mut state = self.state();
        let told_as = (told.agent.clone(), told.instance);
        let steps = self.cassette.bare_steps();
        let State { used, first_unused, .. } = &mut *state;
        let mut unused = |fit, (key, positions): (u128, &[usize])| {
            let next = first_unused.entry((fit, key)).or_default();
            while positions.get(*next).is_some_and(|position| used.contains_key(position)) {
                *next += 1;
            }
            let position = positions.get(*next).or(positions.first())?;
            steps.get(*position).map(|step| step.attribution.clone())
        };
        let recorded = unused(Fit::Bytes, self.cassette.same_bytes(surface, told, asked))
            .or_else(|| unused(Fit::Canonical, self.cassette.same_form(surface, told, asked)));
        let Some(recorded) = recorded else { return state.names.get(&told_as).cloned().flatten() };
        let known = state.names.entry(told_as).or_insert_with(|| Some(recorded.clone()));
        let same = |known: &Attribution| known.agent == recorded.agent && known.instance == recorded.instance;
        if known.as_ref().is_some_and(|known| !same(known)) {
            *known = None;
        }
        Some(recorded)
    }

    /// Whether the record answers this request anywhere.
    pub(super) fn knows(&self, question: &Question) -> bool {
        self.find(&mut State::default(), question, false, &|_| true).is_some()
    }

    /// The best of the records that answer a question: of those that were never given or, once `begun`, of those that
    /// have an attempt left.
    fn find(
        &self,
        state: &mut State,
        question: &Question,
        begun: bool,
        allowed: &impl Fn(usize) -> bool,
    ) -> Option<(usize, Fit)> {
        let Question { asker, surface } = question;
        let (who, asked, cassette) = (&asker.attribution, &asker.asked, &self.cassette);
        let steps = cassette.bare_steps();
        let State { used, fresh, begun: resumed, .. } = state;
        let known = if begun { resumed } else { fresh };
        let left = |position: usize| {
            let served = used.get(&position).copied().unwrap_or_default();
            let most = if begun { steps.get(position).map_or(0, |step| step.attempts.len()) } else { 1 };
            allowed(position) && served < most
        };
        let mut of = |fit, (key, positions): Same<'_>| {
            let of = || Alike::of(positions.iter().filter_map(|at| Some((*at, steps.get(*at)?))));
            let alike = known.entry((fit, key)).or_insert_with(of);
            alike.best(who, asker.call, left).map(|position| (position, fit))
        };
        let bytes = cassette.same_bytes(surface, who, asked);
        of(Fit::Bytes, bytes)
            .or_else(|| of(Fit::Canonical, cassette.same_form(surface, who, asked)))
            .or_else(|| of(Fit::Masked, (bytes.0, &cassette.same_but_secrets(surface, asked))))
            .or_else(|| {
                let same = || cassette.same_but_results(surface, asked);
                self.any_tool_results.then(same).and_then(|same| of(Fit::ToolResults, same))
            })
    }

    /// Gives what was taken, and writes it down.
    pub(super) async fn give(
        &self,
        question: &Question,
        taken: Taken,
        given: Given,
    ) -> Result<Response<ReceivedBody>, UpstreamError> {
        let Taken { position, attempt, fit } = taken;
        let Some(step) = self.cassette.bare_steps().get(position) else { return Err(UpstreamError::Hushed) };
        {
            let mut state = self.state();
            let usage = attempt.usage.unwrap_or_default();
            let saved = &mut state.report.saved;
            *saved = Usage { input: saved.input + usage.input, output: saved.output + usage.output };
            let (asked, recorded) = (question.asker.step, step.step);
            state.report.served.push(Served {
                step: asked,
                recorded,
                attempt: attempt.attempt,
                fit,
                exact: attempt.exact,
            });
        }
        let how = (self.timing, self.cassette.is_cut_clean(step, &attempt));
        reply::give(&attempt, self.cassette.detail(step, &attempt), &given, how).await
    }

    /// What is to be said of a request that the record does not answer.
    pub(super) fn departure(&self, state: &State, question: &Question) -> Departure {
        let Question { asker, surface } = question;
        let who = &asker.attribution;
        let steps = self.cassette.bare_steps();
        let same = self.cassette.same_form(surface, who, &asker.asked).1.len();
        let rank = |(position, step): &(usize, &Step)| {
            let same_agent = step.attribution.agent == who.agent;
            let likeness = likeness(&self.cassette.request(*position), &asker.asked) + 100 * u32::from(same_agent);
            let call = u32::from(same_agent && step.call == asker.call) * 100;
            (!state.used.contains_key(position), likeness + call, std::cmp::Reverse(*position))
        };
        let candidates = steps.iter().enumerate().filter(|(_, step)| step.surface == *surface);
        let nearest = candidates.max_by_key(rank).map(|(position, step)| (self.cassette.request(position), step));
        let tool_results_only = nearest.as_ref().is_some_and(|(request, _)| {
            let asked = without_tool_results(surface, &asker.asked);
            same == 0 && asked.is_some() && asked == without_tool_results(surface, request)
        });
        let nearest = nearest.map(|(request, step)| Nearest {
            step: step.step,
            agent: step.attribution.agent.clone(),
            call: step.call,
            difference: difference::first(&request, &asker.asked, self.cassette.rules()),
        });
        let agent = who.agent.clone();
        let form = self.cassette.canonical_form(&asker.asked);
        Departure { step: asker.step, agent, call: asker.call, answers: same, nearest, tool_results_only, form }
    }

    /// The report so far; `due` says which records were to be served.
    pub(super) fn report(&self, due: impl Fn(usize) -> bool) -> Report {
        let state = self.state();
        let mut report = state.report.clone();
        let unused = self.cassette.bare_steps().iter().enumerate();
        let unused = unused.filter(|(position, _)| due(*position) && !state.used.contains_key(position));
        report.unused = unused.map(|(_, step)| step.step).collect();
        report
    }
}

/// A record that answers a request.
pub(super) struct Taken {
    pub(super) position: usize,
    pub(super) attempt: Attempt,
    fit: Fit,
}

/// How much of two bodies is equal at their start and their end, in percent of the longer one.
fn likeness(left: &Bytes, right: &Bytes) -> u32 {
    let longer = left.len().max(right.len()).max(1);
    let start = left.iter().zip(right.iter()).take_while(|(a, b)| a == b).count();
    let rest = left.len().min(right.len()) - start;
    let end = left.iter().rev().zip(right.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    u32::try_from((start + end) * 100 / longer).unwrap_or(100)
}
