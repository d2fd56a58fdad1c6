//! A run in short: its head, and a row a step. Bodies are asked for one by one.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json, value::to_raw_value};

use super::{
    data,
    listing::Listing,
    opened::OpenedRun,
    origin::ReplyOrigins,
    page_data::{PageAnnotations, PageHead, RunPage},
    shown::RunHead,
    step_view::{StepView, first_words},
    suspected::Suspected,
    traced::Traced,
};
use crate::{
    dataset::DecoyCounts,
    proof,
    recording::each_in_threads,
    surface::account::ReadState,
    trajectory::{Evidence, LabelStatus, ReplyOrigin, Step, StepIndex},
};

/// How much of a reply stands in its row, in characters.
const WORDS: usize = 110;
/// How much of a system prompt stands for an agent that nothing named, in characters.
const INTRODUCED: usize = 90;

/// What a row's columns are, in order. Times are milliseconds.
pub(super) const COLUMNS: [&str; 13] =
    ["step", "agent", "call", "at", "ms", "state", "marks", "status", "attempts", "out_bytes", "in", "out", "words"];

/// How a call ended, or where its reply came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// Not yet, or never.
    Open,
    /// With an error, or not to its end.
    Error,
    /// It was answered: where the reply came from.
    #[serde(untagged)]
    Answered(ReplyOrigin),
}

/// The agents of a run, numbered by their first step.
#[derive(Debug, Default)]
pub(super) struct SkeletonAgents {
    numbers: HashMap<String, usize>,
    names: Vec<String>,
}

impl SkeletonAgents {
    /// The agents of steps.
    pub(super) fn from_steps(steps: &[Step]) -> Self {
        let mut agents = Self::default();
        for step in steps {
            let name = lane(step);
            if !agents.numbers.contains_key(&name) {
                agents.numbers.insert(name.clone(), agents.names.len());
                agents.names.push(name);
            }
        }
        agents
    }

    /// Their names; an instance behind the first has its number.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}

fn lane(step: &Step) -> String {
    let attribution = &step.attribution;
    attribution.agent.numbered(attribution.instance)
}

/// How agents are introduced that nothing named: the beginning of the first system prompt of each; of others nothing.
fn introduced(opened: &OpenedRun, agents: &SkeletonAgents) -> Vec<Option<String>> {
    let mut words = vec![None; agents.names.len()];
    for (number, name) in agents.names.iter().enumerate() {
        let first = opened.steps().iter().position(|step| lane(step) == *name);
        let step = first.and_then(|at| opened.at(at)).filter(|step| step.attribution.agent.hash_of_unnamed().is_some());
        let told = step.as_ref().map(|step| StepView::new(step).request(&step.request)).unwrap_or_default();
        let rule = told.iter().find(|block| block.who.starts_with("system") || block.who.starts_with("developer"));
        if let (Some(words), Some(rule)) = (words.get_mut(number), rule) {
            *words = Some(first_words(&rule.text, INTRODUCED));
        }
    }
    words
}

/// The page of a run as text: head, agents, rows, what stands beside it, and what people say of it.
///
/// # Errors
/// It cannot be written.
pub(super) fn run(opened: &OpenedRun, listing: &Listing, annotations: PageAnnotations) -> serde_json::Result<String> {
    let recording = &opened.recording;
    let label = recording.label.as_ref();
    let evidence = label.and_then(|label| label.evidence.as_ref());
    let twin = evidence.and_then(|evidence| evidence.twin.as_ref()).map(ToString::to_string);
    let twin = twin.and_then(|twin| listing.run_named(&twin, &opened.dir)).map(|row| row.key.clone());
    let like = listing.like(&opened.dir).map(|row| row.key.clone());
    let like = like.filter(|_| twin.is_none() && !opened.is_blind);
    let row = listing.runs.iter().find(|row| row.dir == opened.dir).filter(|_| !opened.is_blind);
    let task = recording.manifest.task.clone().or_else(|| Some(row?.task.as_deref()?.to_owned()));
    let campaign = row.and_then(|row| listing.campaign(row.campaign.as_deref()?));
    let decoys = campaign.and_then(|campaign| campaign.decoys);
    let suspected = opened.suspected(&listing.predictions);
    let agents = SkeletonAgents::from_steps(opened.steps());
    let head = data::run_head(recording, &opened.accounts().account, opened.no_label());
    let kept = crate::recording::read_kept(&opened.dir).ok().flatten();
    let rows = if let Some(rows) = opened.rows.get() {
        rows
    } else {
        let written = to_raw_value(&rows(opened, &agents, |_| true))?;
        opened.rows.get_or_init(|| written)
    };
    serde_json::to_string(&RunPage {
        head: PageHead { head: RunHead { task: &task, ..head }, can: opened.can(), kept },
        dir: opened.dir.display().to_string(),
        plan: &recording.manifest.plan,
        program: recording.manifest.launched.as_ref().map(|launched| &launched.command),
        twin,
        like,
        kind: row.map(|row| row.kind),
        sure: label.map(|label| sure(label.status, evidence, decoys)),
        fork: recorded_first(opened, opened.origins()),
        trace: opened.traced().as_ref().map(Traced::line),
        suspected: suspected.as_ref().map(Suspected::line),
        suspects: suspected.as_ref().map(Suspected::steps),
        position: position(opened),
        agents: agents.names(),
        introduced: introduced(opened, &agents),
        columns: &COLUMNS,
        annotations,
        rows,
    })
}

/// How sure a label is, in words: what was executed for it, and how often its campaign took a harmless change for an error.
pub(super) fn sure(status: LabelStatus, evidence: Option<&Evidence>, decoys: Option<DecoyCounts>) -> String {
    let Some(executed) = evidence.and_then(|evidence| evidence.executed.as_ref()) else {
        let words = match status {
            LabelStatus::Delivered => "not tested: it arrived, and no execution says that it matters",
            LabelStatus::Withdrawn => "withdrawn: later evidence contradicts it",
            _ => "not known: no executions are recorded for it",
        };
        return words.to_owned();
    };
    let decoys = decoys.map(|decoys| format!("; in its campaign {}", decoys.in_words()));
    proof::in_words(executed, "without it", "with it") + &decoys.unwrap_or_default()
}

/// How far the log goes that was read, in records.
pub(super) fn position(opened: &OpenedRun) -> u64 {
    let ends = opened.recording.exchanges.iter().map(|exchange| exchange.closed.unwrap_or(exchange.opened));
    let opens = opened.recording.exchanges.iter().map(|exchange| exchange.opened);
    ends.chain(opens).max().map_or(0, |last| last + 1)
}

/// Steps of which a record stands at a position of the log or behind it.
pub(super) fn touched(opened: &OpenedRun, from: u64) -> impl Fn(StepIndex) -> bool {
    let exchanges = opened.recording.exchanges.iter();
    let new = exchanges.filter(|exchange| exchange.opened >= from || exchange.closed.is_some_and(|end| end >= from));
    let steps: std::collections::BTreeSet<StepIndex> = new.map(|exchange| exchange.step).collect();
    move |step| steps.contains(&step)
}

/// The rows of the steps that are wanted.
pub(super) fn rows(opened: &OpenedRun, agents: &SkeletonAgents, wanted: impl Fn(StepIndex) -> bool) -> Vec<Value> {
    let recording = &opened.recording;
    let mut began: HashMap<StepIndex, (u64, u64)> = HashMap::new();
    for exchange in &recording.exchanges {
        let entry = began.entry(exchange.step).or_insert((exchange.at_us, exchange.at_us));
        entry.1 = exchange.at_us;
    }
    // Times count from the first request: a recording may have waited long for it.
    let zero = recording.exchanges.iter().map(|exchange| exchange.at_us).min().unwrap_or_default();
    let label = recording.label.as_ref();
    let origins = opened.origins();
    let traced = opened.traced();
    let blamed = |step: StepIndex| label.is_some_and(|label| label.errors.iter().any(|entry| entry.error.step == step));
    let read = &opened.accounts().words;
    let steps = opened.steps().iter().enumerate().filter(|(_, step)| wanted(step.step));
    let steps: Vec<(usize, &Step)> = steps.collect();
    let row = |(at, step): &(usize, &Step)| {
        let last = step.last_attempt();
        let usage = last.and_then(|attempt| attempt.usage);
        let (first, latest) = began.get(&step.step).copied().unwrap_or_default();
        let end = last.and_then(|attempt| attempt.last_byte_us).map(|took| latest + took);
        let state = state_of(step, origins.of_step(step));
        let delivered = step.injected.iter().any(|error| error.delivered);
        let found = traced.as_ref().map(|traced| traced.finding_words(step.step)).unwrap_or_default();
        let marks = [
            (delivered, "injected"),
            (!delivered && !step.injected.is_empty(), "not delivered"),
            (blamed(step.step), "labelled"),
            (step.attempts.len() > 1, "retried"),
            (step.overlapping, "overlapping"),
            (step.attribution.ambiguous, "ambiguous"),
        ];
        let read = read.get(*at).copied().filter(|words| *words != ReadState::Whole.words());
        let marks = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark);
        let marks: Vec<&str> = marks.chain(read).chain(found).collect();
        json!([
            step.step,
            agents.numbers.get(&lane(step)),
            step.call,
            millis(first - zero),
            end.map(|end| millis(end.saturating_sub(first))),
            state,
            marks,
            last.and_then(|attempt| attempt.status),
            step.attempts.len(),
            last.map_or(0, |attempt| attempt.delivered().len()),
            usage.map(|usage| usage.input),
            usage.map(|usage| usage.output),
            first_words(&StepView::new(step).reply_text(), WORDS),
        ])
    };
    each_in_threads(&steps, row)
}

fn state_of(step: &Step, origin: ReplyOrigin) -> State {
    let Some(last) = step.last_attempt() else { return State::Open };
    match last.cause {
        None => State::Open,
        Some(_) if last.is_answered() => State::Answered(origin),
        Some(_) => State::Error,
    }
}

/// How many of the first steps another record answered, before the first that the upstream did.
fn recorded_first(opened: &OpenedRun, origins: &ReplyOrigins) -> Option<usize> {
    let from_record = |step: &&Step| matches!(origins.of_step(step), ReplyOrigin::Recorded | ReplyOrigin::AlteredAgain);
    let first = opened.steps().iter().take_while(from_record).count();
    (first > 0).then_some(first)
}

/// Microseconds as milliseconds with one digit behind the point.
#[expect(clippy::cast_precision_loss, reason = "a time that is shown, of less than a century")]
fn millis(micros: u64) -> f64 {
    (micros / 100) as f64 / 10.0
}
