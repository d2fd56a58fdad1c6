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
    trajectory::{Attempt, CloseCause, Step},
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
    let requests = RequestWords::of(&recording.trajectory.steps);
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

/// The tries of the run, those of one call together: an SDK's tries are one step already; a program that asks again
/// after trouble sends the same bytes once more.
fn chains<'a>(recording: &'a Recording, plan: Option<&Plan>) -> Vec<Vec<FoundTry<'a>>> {
    let details: HashMap<_, _> = recording.exchanges.iter().map(|d| ((d.step, d.attempt), d)).collect();
    let mut chains: Vec<Vec<FoundTry<'_>>> = Vec::new();
    // Who asks the same again may look like another of several equal agents, so the instance does not count here.
    let mut alike: HashMap<(&str, &[u8]), Vec<usize>> = HashMap::new();
    for step in &recording.trajectory.steps {
        let opened = details.get(&(step.step, 0)).map(|detail| detail.opened);
        let alike = alike.entry((step.attribution.agent.as_str(), step.request.as_ref())).or_default();
        let earlier = alike.iter().copied().find(|at| {
            let last = chains.get(*at).and_then(|chain| chain.last());
            last.is_some_and(|last| !last.tried.met.is_answer() && last.closed.is_some() && last.closed < opened)
        });
        let at = earlier.unwrap_or_else(|| {
            chains.push(Vec::new());
            alike.push(chains.len() - 1);
            chains.len() - 1
        });
        let tries = step.attempts.iter().filter_map(|attempt| {
            let detail = details.get(&(step.step, attempt.attempt))?;
            Some(found(step, attempt, detail, plan))
        });
        if let Some(chain) = chains.get_mut(at) {
            chain.extend(tries);
        }
    }
    chains
}

fn found<'a>(step: &'a Step, attempt: &'a Attempt, detail: &ExchangeDetail, plan: Option<&Plan>) -> FoundTry<'a> {
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
    Some(TroubledCall {
        agent: first.step.attribution.agent.clone(),
        instance: first.step.attribution.instance,
        step: first.step.step,
        call: first.step.call,
        tries: chain.iter().map(|found| found.tried.clone()).collect(),
        quoted_at: surface_of(last.step).and_then(|surface| {
            let text = surface::text_so_far(surface, last.attempt.delivered(), last.attempt.streamed);
            let later = recording.exchanges.iter().filter(|detail| after(detail)).map(|detail| detail.step);
            requests.quoting(&text, last.step, later)
        }),
        asked_on: recording.exchanges.iter().any(after),
        program: manifest.program,
        outcome: manifest.outcome.clone(),
    })
}

fn surface_of(step: &Step) -> Option<&'static dyn Surface> {
    surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default())
}

/// The words of each request, read when somebody asks for them.
struct RequestWords<'a> {
    steps: HashMap<u32, (&'a Step, OnceCell<String>)>,
}

impl<'a> RequestWords<'a> {
    fn of(steps: &'a [Step]) -> Self {
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
