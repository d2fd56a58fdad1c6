//! The state of one replay: which records were used, which step of the run is which step of the record.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hyper::{Request, Response};

use super::{
    Cassette, Departure, Fit, Nearest, Report, Served, Timing,
    canonical::fits_masked,
    difference,
    reply::{self, Given},
};
use crate::{
    proxy::upstream::{Asker, ReceivedBody, SentBody, UpstreamError},
    surface::{self, Conversation, Role},
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
            let served = |position: usize| state.used.get(&position).copied().unwrap_or_default();
            let attempts = |position: usize| self.cassette.steps().get(position).map_or(0, |step| step.attempts.len());
            let fresh = self.find(question, |position| allowed(position) && served(position) == 0);
            // What was a retry then is a request of its own now where the failure shows in the record alone.
            fresh.or_else(|| self.find(question, |position| allowed(position) && served(position) < attempts(position)))
        };
        let (position, fit) = found?;
        let step = self.cassette.steps().get(position)?;
        let served = state.used.entry(position).or_default();
        let attempt = step.attempts.get(*served).or_else(|| step.last_attempt())?;
        *served += 1;
        state.bound.insert(asker.step, (position, fit));
        Some(Taken { position, attempt: attempt.clone(), fit })
    }

    /// Takes this record, whatever is asked.
    pub(super) fn take_at(&self, state: &mut State, question: &Question, position: usize) -> Option<Taken> {
        let attempt = self.cassette.steps().get(position)?.last_attempt()?.clone();
        *state.used.entry(position).or_default() += 1;
        let fit = Fit::Set;
        state.bound.insert(question.asker.step, (position, fit));
        Some(Taken { position, attempt, fit })
    }

    /// Who asks, by the record: as it names this very request, else as it names whom the rules call the same.
    pub(super) fn recall(&self, surface: &str, asked: &[u8], told: &Attribution) -> Option<Attribution> {
        let mut state = self.state();
        let told_as = (told.agent.clone(), told.instance);
        let steps = self.cassette.steps();
        let unused = |positions: &[usize]| {
            let unused = positions.iter().find(|position| !state.used.contains_key(position));
            unused.or(positions.first()).and_then(|position| steps.get(*position)).map(|step| step.attribution.clone())
        };
        let recorded = unused(self.cassette.same_bytes(surface, told, asked))
            .or_else(|| unused(self.cassette.same_form(surface, told, asked)));
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
        self.find(question, |_| true).is_some()
    }

    /// The best of the records that answer a question.
    fn find(&self, question: &Question, allowed: impl Fn(usize) -> bool) -> Option<(usize, Fit)> {
        let Question { asker, surface } = question;
        let who = &asker.attribution;
        let steps = self.cassette.steps();
        let best = |positions: &[usize]| {
            let allowed = positions.iter().copied().filter(|position| allowed(*position));
            allowed.min_by_key(|position| {
                let step = steps.get(*position);
                let same = step.is_some_and(|step| {
                    step.attribution.agent == who.agent && step.attribution.instance == who.instance
                });
                (!same, step.map(|step| step.call.abs_diff(asker.call)), *position)
            })
        };
        let fits = |fit| move |position| (position, fit);
        best(self.cassette.same_bytes(surface, who, &asker.asked))
            .map(fits(Fit::Bytes))
            .or_else(|| best(self.cassette.same_form(surface, who, &asker.asked)).map(fits(Fit::Canonical)))
            .or_else(|| {
                let masked = |step: &Step| {
                    step.surface == *surface
                        && step.attempts.iter().any(|attempt| !attempt.exact)
                        && fits_masked(&step.request, &asker.asked)
                };
                best(&positions(steps, masked)).map(fits(Fit::Masked))
            })
            .or_else(|| {
                let asked = without_tool_results(surface, &asker.asked).filter(|_| self.any_tool_results)?;
                let same = |step: &Step| {
                    step.surface == *surface && without_tool_results(surface, &step.request).as_ref() == Some(&asked)
                };
                best(&positions(steps, same)).map(fits(Fit::ToolResults))
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
        let Some(step) = self.cassette.steps().get(position) else { return Err(UpstreamError::Hushed) };
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
        let steps = self.cassette.steps();
        let same = self.cassette.same_form(surface, who, &asker.asked).len();
        let rank = |(position, step): &(usize, &Step)| {
            let same_agent = step.attribution.agent == who.agent;
            let likeness = likeness(&step.request, &asker.asked) + 100 * u32::from(same_agent);
            let call = u32::from(same_agent && step.call == asker.call) * 100;
            (!state.used.contains_key(position), likeness + call, std::cmp::Reverse(*position))
        };
        let candidates = steps.iter().enumerate().filter(|(_, step)| step.surface == *surface);
        let nearest = candidates.max_by_key(rank).map(|(_, step)| step);
        let tool_results_only = nearest.is_some_and(|step| {
            let asked = without_tool_results(surface, &asker.asked);
            same == 0 && asked.is_some() && asked == without_tool_results(surface, &step.request)
        });
        let nearest = nearest.map(|step| Nearest {
            step: step.step,
            agent: step.attribution.agent.clone(),
            call: step.call,
            difference: difference::first(&step.request, &asker.asked, self.cassette.rules()),
        });
        let agent = who.agent.clone();
        let form = self.cassette.canonical_form(&asker.asked);
        Departure { step: asker.step, agent, call: asker.call, answers: same, nearest, tool_results_only, form }
    }

    /// The report so far; `due` says which records were to be served.
    pub(super) fn report(&self, due: impl Fn(usize) -> bool) -> Report {
        let state = self.state();
        let mut report = state.report.clone();
        let unused = self.cassette.steps().iter().enumerate();
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

fn positions(steps: &[Step], is_it: impl Fn(&Step) -> bool) -> Vec<usize> {
    steps.iter().enumerate().filter(|(_, step)| is_it(step)).map(|(position, _)| position).collect()
}

/// How much of two bodies is equal at their start and their end, in percent of the longer one.
fn likeness(left: &Bytes, right: &Bytes) -> u32 {
    let longer = left.len().max(right.len()).max(1);
    let start = left.iter().zip(right.iter()).take_while(|(a, b)| a == b).count();
    let rest = left.len().min(right.len()) - start;
    let end = left.iter().rev().zip(right.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    u32::try_from((start + end) * 100 / longer).unwrap_or(100)
}

/// A request with what tools gave taken out; `None` where it has no such thing or cannot be read.
fn without_tool_results(surface: &str, body: &[u8]) -> Option<Conversation> {
    let surface = surface::ALL.iter().find(|known| known.name() == surface)?;
    let mut conversation = surface.read_request(body).ok()?;
    let results = conversation.messages.iter_mut().filter(|message| message.role == Role::Tool);
    let results = results.map(|message| message.parts.clear()).count();
    (results > 0).then_some(conversation)
}
