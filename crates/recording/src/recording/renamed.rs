//! The agents of a run under a roster that was given after it was recorded.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::{
    Recording, RecordingError, overlap,
    run_fact::{LaterRoster, NamedSteps},
    turns,
};
use crate::{
    identity::{
        AttributedCall, EndedCall, Identity, LedgerNumber, LedgerRequest, Roster, RosterRule, Speakers, step_hash,
    },
    surface::{self, Outline, Surface, door},
    trajectory::{Attribution, Source, Step},
};

/// What happens in a run, in the order of its log.
#[derive(Debug, Clone, Copy)]
enum LogMoment {
    /// The step at this position is asked for the first time.
    Opened(usize),
    /// An attempt of the step at this position has ended.
    Ended(usize),
}

pub(super) fn roster(rules: &[RosterRule]) -> Result<Roster, RecordingError> {
    Roster::new(rules.to_vec()).map_err(|error| RecordingError::Roster { why: error.to_string() })
}

/// Which steps a roster names, as it would have named them when they arrived. What the user declared for a step by path, header,
/// key or metadata outranks a roster, then as ever. The recording is one without facts; `request` gives the request of the step
/// at a position. File and rules are the caller's to add.
pub(super) fn by_roster(recording: &Recording, roster: Roster, request: impl Fn(usize, &Step) -> Bytes) -> LaterRoster {
    let steps = &recording.trajectory.steps;
    let identity = Identity { roster, ..Identity::default() };
    let mut speakers = Speakers::default();
    let mut told: Vec<Option<Attribution>> = vec![None; steps.len()];
    let mut numbers = vec![LedgerNumber::MAX; steps.len()];
    for moment in moments(recording) {
        let (LogMoment::Opened(at) | LogMoment::Ended(at)) = moment;
        let Some(step) = steps.get(at) else { continue };
        let body = request(at, step);
        let hash = step_hash(step, &body);
        let surface = surface_of(step);
        match moment {
            LogMoment::Opened(_) => {
                let outline = surface.and_then(|surface| door::outline_at(surface, &step.path, &body).ok());
                let declared = is_declared(step.attribution.source).then(|| step.attribution.clone());
                let AttributedCall { attribution: named, number, .. } =
                    speakers.attribute(&identity, outline.as_ref(), declared, &LedgerRequest::from_hash(hash));
                if let Some(place) = numbers.get_mut(at) {
                    *place = number;
                }
                if let Some(told) = told.get_mut(at) {
                    *told = Some(by_looks(&identity.roster, step, outline).unwrap_or(named));
                }
            }
            LogMoment::Ended(_) => {
                let Some(Some(who)) = told.get(at) else { continue };
                let reply = surface.zip(step.last_attempt()).and_then(|(surface, attempt)| {
                    let body = attempt.delivered();
                    if attempt.streamed { surface.read_stream(body).ok() } else { surface.read_reply(body).ok() }
                });
                let number = numbers.get(at).copied().unwrap_or(LedgerNumber::MAX);
                let ended = EndedCall { number, reply: reply.as_ref(), failed: reply.is_none(), at_us: 0 };
                speakers.ended(who, &ended);
            }
        }
    }
    grouped(steps, &told)
}

/// A rule by learned looks names a step by the name that it was recorded under, too: that is the one that users see.
fn by_looks(roster: &Roster, step: &Step, outline: Option<Outline<'_>>) -> Option<Attribution> {
    roster.identify(&outline.unwrap_or_default(), step.attribution.agent.hash_of_unnamed()?)
}

fn is_declared(source: Source) -> bool {
    matches!(source, Source::Path | Source::Header | Source::Key | Source::Metadata)
}

fn surface_of(step: &Step) -> Option<&'static dyn Surface> {
    surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default())
}

fn moments(recording: &Recording) -> Vec<LogMoment> {
    let places: HashMap<_, _> =
        recording.trajectory.steps.iter().enumerate().map(|(at, step)| (step.step, at)).collect();
    let mut moments = Vec::new();
    for exchange in &recording.exchanges {
        let Some(at) = places.get(&exchange.step).copied() else { continue };
        if exchange.attempt == 0 {
            moments.push((exchange.opened, LogMoment::Opened(at)));
        }
        moments.extend(exchange.closed.map(|closed| (closed, LogMoment::Ended(at))));
    }
    moments.sort_by_key(|(place, _)| *place);
    moments.into_iter().map(|(_, moment)| moment).collect()
}

/// The steps that the roster names, by whom it names them, and how many steps each agent then has.
fn grouped(steps: &[Step], told: &[Option<Attribution>]) -> LaterRoster {
    let mut named: Vec<NamedSteps> = Vec::new();
    let mut places: HashMap<(&str, u32, bool, &str), usize> = HashMap::new();
    let mut agents: BTreeMap<String, u64> = BTreeMap::new();
    for (step, told) in steps.iter().zip(told) {
        let by_roster =
            told.as_ref().filter(|told| told.source == Source::Roster && !is_declared(step.attribution.source));
        let agent = by_roster.map_or(&step.attribution.agent, |told| &told.agent);
        *agents.entry(agent.to_string()).or_default() += 1;
        let Some(Attribution { agent, instance, ambiguous, evidence, .. }) = by_roster else { continue };
        let place = *places.entry((agent.as_str(), *instance, *ambiguous, evidence)).or_insert(named.len());
        match named.get_mut(place) {
            Some(group) => group.steps.push(step.step),
            None => named.push(NamedSteps {
                agent: agent.clone(),
                instance: *instance,
                ambiguous: *ambiguous,
                evidence: evidence.clone(),
                steps: vec![step.step],
            }),
        }
    }
    LaterRoster { named, agents, ..LaterRoster::default() }
}

/// Gives steps these names, and tells anew what follows from names: calls, turns, overlaps, what was planted where. `request` gives
/// the request of the step at a position.
pub(super) fn apply(recording: &mut Recording, named: &[NamedSteps], request: impl Fn(usize, &Step) -> Bytes) {
    let names: HashMap<_, _> =
        named.iter().flat_map(|group| group.steps.iter().map(move |step| (*step, group))).collect();
    let steps = &mut recording.trajectory.steps;
    for step in steps.iter_mut() {
        let Some(group) = names.get(&step.step) else { continue };
        step.attribution = Attribution {
            agent: group.agent.clone(),
            instance: group.instance,
            source: Source::Roster,
            evidence: format!("{}, given later", group.evidence),
            confidence: if group.ambiguous { 0.5 } else { 1.0 },
            ambiguous: group.ambiguous,
        };
    }
    number_calls(steps);
    overlap::mark_anew(steps, &recording.exchanges);
    turns::number(steps, request);
    for sign in &mut recording.watched {
        if let Some(group) = names.get(&sign.step) {
            sign.agent = group.agent.clone();
            sign.instance = group.instance;
        }
    }
    // What the late pass made of learned names is no word against declared ones.
    recording.late.retain(|late| late.overlapping_in_reference || !names.contains_key(&late.step));
    if let Some(label) = recording.label.take() {
        recording.label = Some(label.under_names_of(&recording.trajectory.steps));
    }
}

/// Numbers the calls of each agent instance, and says of what was planted whom it hit.
fn number_calls(steps: &mut [Step]) {
    let mut calls: HashMap<(String, u32), u32> = HashMap::new();
    for step in steps {
        let Attribution { agent, instance, .. } = &step.attribution;
        let next = calls.entry((agent.to_string(), *instance)).or_default();
        step.call = *next;
        *next += 1;
        for error in &mut step.injected {
            error.agent.clone_from(agent);
            error.instance = *instance;
            error.call = step.call;
        }
    }
}
