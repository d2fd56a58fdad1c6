//! From a recording to the calls that met trouble.

use std::{cell::OnceCell, collections::HashMap, time::Duration};

use super::{
    ClientVerdict, Met, TroubledCall, Try,
    met::met,
    report::{self, PlannedFault},
};
use crate::{
    fault::Disturbance,
    plan::{self, Operator, Plan},
    recording::{ExchangeDetail, Recording},
    surface::{self, Surface, door},
    trajectory::{Attempt, CloseCause, RetryEvidence, Step},
};

/// The shortest text that proves a quotation: a few words may be said by chance.
const QUOTE_MIN: usize = 16;

/// A try with its place in the log and its text, as long as a call is being put together.
struct FoundTry<'a> {
    tried: Try,
    closed: Option<u64>,
    attempt: &'a Attempt,
    step: &'a Step,
}

/// How the program met the faults of a recorded run. Reads the plan that the recording carries; without one, what the
/// upstream itself did wrong is judged.
pub fn read(recording: &Recording) -> ClientVerdict {
    let text = recording.manifest.plan.as_deref().filter(|text| !text.is_empty());
    let plan = text.and_then(|text| plan::parse(text, "run.json").ok());
    let requests = RequestWords::from_steps(&recording.trajectory.steps);
    let chains = chains(recording, plan.as_ref());
    let calls = chains.iter().filter(|chain| chain.iter().any(is_trouble));
    let calls: Vec<TroubledCall> = calls.filter_map(|chain| call(recording, chain, &requests)).collect();
    let faults = plan.iter().flat_map(|plan| plan.injections.iter().enumerate()).filter_map(|(index, injection)| {
        let Operator::Fault(fault) = &injection.operator else { return None };
        let agents: Vec<String> = injection.agents.0.iter().map(ToString::to_string).collect();
        Some(PlannedFault {
            injection: u32::try_from(index).unwrap_or(u32::MAX),
            operator: injection.name.clone(),
            agents: agents.join(", "),
            says: fault.explain(),
            by_chance: injection.when.probability.is_some(),
        })
    });
    report::verdict(faults.collect(), &calls)
}

/// Whether a try is why we look at its call: a planned fault, or a failure of the upstream's own.
fn is_trouble(found: &FoundTry<'_>) -> bool {
    let own = matches!(found.attempt.cause, Some(CloseCause::Refused | CloseCause::Internal | CloseCause::Stopped));
    let failed = matches!(found.tried.met, Met::Refusal { .. } | Met::NoReply | Met::BrokenOff);
    !found.tried.faults.is_empty() || (failed && !own && found.attempt.cause.is_some())
}

/// The calls of the run, each with its tries: what is another try, the ledger of the run has said. Where it could not tell, the
/// whole run may: a program whose client never counted a try tries by itself, if anybody does.
fn chains<'a>(recording: &'a Recording, plan: Option<&Plan>) -> Vec<Vec<FoundTry<'a>>> {
    let details: HashMap<_, _> = recording.exchanges.iter().map(|d| ((d.step, d.attempt), d)).collect();
    let counts = recording.exchanges.iter().any(|detail| detail.relates.retry == Some(RetryEvidence::Counted));
    let mut chains: Vec<Vec<FoundTry<'_>>> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    for step in &recording.trajectory.steps {
        let mut tries: Vec<FoundTry<'_>> = step
            .attempts
            .iter()
            .filter_map(|attempt| Some(found_try(step, attempt, details.get(&(step.step, attempt.attempt))?, plan)))
            .collect();
        let may_repeat = details.get(&(step.step, 0)).and_then(|detail| detail.relates.may_repeat).filter(|_| !counts);
        let place = may_repeat.and_then(|of| places.get(&of).copied()).unwrap_or(chains.len());
        places.insert(step.step, place);
        match chains.get_mut(place) {
            Some(chain) => {
                tries.iter_mut().take(1).for_each(|first| first.tried.retry = Some(RetryEvidence::Equal));
                chain.extend(tries);
            }
            None => chains.push(tries),
        }
    }
    chains
}

fn found_try<'a>(step: &'a Step, attempt: &'a Attempt, detail: &ExchangeDetail, plan: Option<&Plan>) -> FoundTry<'a> {
    let acted: Vec<(u32, Disturbance)> = detail
        .injected
        .iter()
        .filter_map(|index| {
            let injection = plan?.injections.get(usize::try_from(*index).ok()?)?;
            let Operator::Fault(fault) = &injection.operator else { return None };
            let disturbance = fault.disturb(0, attempt.attempt)?;
            has_acted(&disturbance, attempt.cause).then_some((*index, disturbance))
        })
        .collect();
    let (faults, disturbances): (Vec<u32>, Vec<Disturbance>) = acted.into_iter().unzip();
    let began = Duration::from_micros(detail.at_us);
    let tried = Try {
        step: step.step,
        attempt: attempt.attempt,
        met: met(attempt, &detail.reply_headers, surface_of(step), &disturbances),
        retry: detail.relates.retry,
        other_key: detail.relates.other_key,
        faults,
        began,
        ended: began + Duration::from_micros(attempt.last_byte_us.unwrap_or_default()),
    };
    FoundTry { tried, closed: detail.closed, attempt, step }
}

/// Whether a fault that was recorded when the request came has come to act: one on the reply needs a reply.
fn has_acted(disturbance: &Disturbance, cause: Option<CloseCause>) -> bool {
    match disturbance {
        Disturbance::Reset(_) | Disturbance::Cut { .. } => cause == Some(CloseCause::Injected),
        Disturbance::Hang { .. } => {
            matches!(cause, Some(CloseCause::Injected | CloseCause::ClientGone | CloseCause::ClientStalled))
        }
        _ => true,
    }
}

fn call(recording: &Recording, chain: &[FoundTry<'_>], requests: &RequestWords<'_>) -> Option<TroubledCall> {
    let (first, last) = (chain.first()?, chain.last()?);
    let manifest = &recording.manifest;
    let after = |detail: &ExchangeDetail| last.closed.is_some_and(|closed| detail.opened > closed);
    let later = recording.exchanges.iter().filter(|detail| after(detail));
    Some(TroubledCall {
        agent: first.step.attribution.agent.clone(),
        instance: first.step.attribution.instance,
        step: first.step.step,
        call: first.step.call,
        tries: chain.iter().map(|found| found.tried.clone()).collect(),
        quoted_at: surface_of(last.step).and_then(|surface| {
            let later = || recording.exchanges.iter().filter(|detail| after(detail)).map(|detail| detail.step);
            let (body, streamed) = (last.attempt.delivered(), last.attempt.streamed);
            let text = surface::text_so_far(surface, body, streamed);
            let whole = requests.quoting(&text, last.step, later());
            whole.or_else(|| {
                let is_half = last.tried.met == Met::CutShort && !streamed;
                let texts = if is_half { half_texts(body) } else { Vec::new() };
                texts.iter().find_map(|text| requests.quoting(text, last.step, later()))
            })
        }),
        asked_on: later.map(|detail| Duration::from_micros(detail.at_us)).max(),
        may_go_on_at: may_repeat(recording, chain),
        repeated: is_repeated(recording, first.step),
        program_ended: program_ended(recording),
        program: manifest.program,
        outcome: manifest.outcome.clone(),
    })
}

/// The step that may be another try of a call and is not counted as one.
fn may_repeat(recording: &Recording, chain: &[FoundTry<'_>]) -> Option<u32> {
    let is_here = |step: u32| chain.iter().any(|found| found.step.step == step);
    let mut exchanges = recording.exchanges.iter();
    let found = exchanges.find(|detail| detail.relates.may_repeat.is_some_and(is_here) && !is_here(detail.step))?;
    Some(found.step)
}

/// Whether the agent of a step made another call with the same bytes after one was answered.
fn is_repeated(recording: &Recording, of: &Step) -> bool {
    let same = |step: &&Step| step.attribution.agent == of.attribution.agent && step.request == of.request;
    let answered = |step: &Step| step.attempts.iter().any(Attempt::is_answered);
    let mut alike = recording.trajectory.steps.iter().filter(same);
    alike.any(answered) && alike.next().is_some()
}

/// When the program ended, since the beginning of the recording, as far as the manifest says.
fn program_ended(recording: &Recording) -> Option<Duration> {
    let at = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let (started, ended) = (at(&recording.manifest.started)?, at(recording.manifest.ended.as_ref()?)?);
    Duration::try_from(ended.duration_since(started)).ok()
}

/// The longer texts of a piece of JSON that lacks its end, the last of which may lack its own.
fn half_texts(body: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(body);
    let mut texts = Vec::new();
    let mut rest = text.as_ref();
    while let Some((_, begun)) = rest.split_once('"') {
        let mut escaped = false;
        let end = begun.find(|sign: char| {
            let ends = sign == '"' && !escaped;
            escaped = sign == '\\' && !escaped;
            ends
        });
        let (inner, after) = begun.split_at_checked(end.unwrap_or(begun.len())).unwrap_or((begun, ""));
        let read = serde_json::from_str::<String>(&format!("\"{inner}\"")).ok();
        texts.extend(read.filter(|text| text.chars().count() >= QUOTE_MIN));
        rest = after.get(1..).unwrap_or_default();
    }
    texts
}

fn surface_of(step: &Step) -> Option<&'static dyn Surface> {
    surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default())
}

/// The words of each request, read when somebody asks for them.
struct RequestWords<'a> {
    steps: HashMap<u32, (&'a Step, OnceCell<String>)>,
}

impl<'a> RequestWords<'a> {
    fn from_steps(steps: &'a [Step]) -> Self {
        Self { steps: steps.iter().map(|step| (step.step, (step, OnceCell::new()))).collect() }
    }

    /// The first of the later steps whose request holds a text that the step's own request did not.
    fn quoting(&self, text: &str, step: &Step, mut later: impl Iterator<Item = u32>) -> Option<u32> {
        let text = squeezed(text);
        if text.chars().count() < QUOTE_MIN || self.words(step.step).contains(&text) {
            return None;
        }
        later.find(|later| self.words(*later).contains(&text))
    }

    fn words(&self, step: u32) -> &str {
        let Some((step, words)) = self.steps.get(&step) else { return "" };
        words.get_or_init(|| {
            let asked = surface_of(step).and_then(|surface| door::request(surface, &step.request).ok());
            let messages = asked.map(|asked| asked.messages).unwrap_or_default();
            messages.iter().map(|message| squeezed(&message.text())).collect::<Vec<_>>().join("\n")
        })
    }
}

/// A text without its spaces: programs trim and wrap what they quote.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}
