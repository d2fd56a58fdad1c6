//! Rules about a sample as it stands: task, steps, outcome.

use std::collections::HashSet;

use super::{NotedFindings, Rule, answer, is_imported, quoted};
use crate::{
    dataset::{BENIGN_FILE, Dataset, FILE, PlacedSample, Sample, SampleKind, SampleStep},
    trajectory::{StepIndex, Verdict},
    verify::{answers, same_number, same_words},
};

/// The longest block of steps whose replica is looked for.
const BLOCK_MAX: usize = 64;
/// Shortest answer that is not repeated by chance, in characters.
const TELLING: usize = 40;

pub(super) fn check(placed: &PlacedSample, dataset: &Dataset, noted: &mut NotedFindings<'_>) {
    let sample = &placed.sample;
    place(placed, dataset, noted);
    task(sample, noted);
    steps(sample, noted);
    outcome(sample, noted);
    answer::checked(sample, noted);
    if let Some(first) = replicated(sample) {
        noted.note(Rule::ReplicatedBlock, format!("step {first} stands there already"));
    }
}

fn place(placed: &PlacedSample, dataset: &Dataset, noted: &mut NotedFindings<'_>) {
    let name = dataset.files().get(placed.file).and_then(|file| file.file_name()).unwrap_or_default();
    let benign = placed.sample.kind == SampleKind::Benign;
    if (benign && name == FILE) || (!benign && name == BENIGN_FILE) {
        let kind = if benign { "a benign sample" } else { "a sample that is not benign" };
        noted.note(Rule::BenignApart, format!("{kind} stands in `{}`", name.to_string_lossy()));
    }
}

fn task(sample: &Sample, noted: &mut NotedFindings<'_>) {
    for (what, text) in [("id", &sample.task.id), ("question", &sample.task.question), ("answer", &sample.task.answer)]
    {
        // A task that its own checker decides may have no answer in words, nor need a run that its recorded check judged.
        let needless = what == "answer" && (sample.task.check.is_some() || noted.of_corpus);
        if text.trim().is_empty() && !needless {
            noted.note(Rule::TaskMissing, format!("the task has no {what}"));
        }
    }
}

fn steps(sample: &Sample, noted: &mut NotedFindings<'_>) {
    if sample.steps.is_empty() {
        noted.note(Rule::NoSteps, "expected at least one step");
    }
    if let Some((index, step)) = (0..).zip(&sample.steps).find(|(index, step)| step.step != *index) {
        let base = sample.steps.first().is_some_and(|first| first.step == 1);
        let hint = if base { "; the steps look numbered from 1" } else { "" };
        noted.note(Rule::StepBase, format!("step {} stands at place {index}{hint}", step.step));
    }
    if let Some((step, turn, most)) = turn_gap(sample) {
        noted.note(Rule::TurnGap, format!("step {step} is of turn {turn}, and at most turn {most} could begin there"));
    }
    let planted = sample.label.as_ref().map(super::super::Truth::planted_steps).unwrap_or_default();
    for (index, step) in (0..).zip(&sample.steps) {
        let lives = step
            .output
            .as_ref()
            .is_some_and(|said| !said.text.trim().is_empty() || !said.calls.is_empty() || said.opaque > 0);
        let planted = planted.contains(&index);
        if step.status.is_some_and(|status| status == 429 || status >= 500) && !planted {
            let status = step.status.unwrap_or_default();
            noted.note(Rule::UpstreamError, format!("step {index} ended with status {status}"));
        } else if !lives && !planted && !is_notification(step) {
            noted.note(Rule::EmptyStep, format!("step {index} (`{}`) got no answer", step.agent));
        }
        if step.input.is_some() && sample.input(index).is_none() {
            noted.note(Rule::InputBroken, format!("the input of step {index} continues one that is not there"));
        }
    }
}

/// Whether a step is a message to a server that asks nothing: it is accepted, and not answered.
fn is_notification(step: &SampleStep) -> bool {
    !step.agent.is_agent() && step.status == Some(202)
}

/// The first step whose turn is not one that began before, nor the next: its step, its turn and the next.
fn turn_gap(sample: &Sample) -> Option<(StepIndex, u32, u32)> {
    let mut next = 0;
    for step in &sample.steps {
        if step.turn > next {
            return Some((step.step, step.turn, next));
        }
        next = next.max(step.turn.saturating_add(1));
    }
    None
}

fn outcome(sample: &Sample, noted: &mut NotedFindings<'_>) {
    let expected = match sample.kind {
        SampleKind::Failure => Verdict::Failure,
        SampleKind::Clean | SampleKind::Benign => Verdict::Success,
        SampleKind::Decoy => return,
    };
    if sample.outcome != expected {
        let kind = format!("{:?}", sample.kind).to_lowercase();
        noted.note(Rule::OutcomeDiffers, format!("a {kind} sample has the outcome {}", word(sample.outcome)));
    } else if let Some(label) = sample.label.as_ref().filter(|label| label.outcome != sample.outcome) {
        let (own, run) = (word(label.outcome), word(sample.outcome));
        noted.note(Rule::OutcomeDiffers, format!("the label says {own}, the run {run}"));
    }
    // A checker that looks at more than the answer may fail a right one: its form, its side effects.
    let more = ["regex:", "command:", "json_pointer:", "model_judge:"];
    let words_decide = !more.iter().any(|checker| sample.outcome_evidence.starts_with(checker));
    let (expected, given) = (sample.task.answer.as_str(), sample.final_answer.as_str());
    if sample.kind == SampleKind::Failure {
        if words_decide && (same_words(expected, given) || same_number(expected, given)) {
            noted.note(
                Rule::RightAnswer,
                format!("the final answer is {}, expected {}", quoted(given), quoted(expected)),
            );
        }
    } else if words_decide
        && !expected.trim().is_empty()
        && !is_imported(sample)
        && !answers(&sample.task.question, expected, given)
    {
        noted.note(Rule::WrongAnswer, format!("the final answer is {}, expected {}", quoted(given), quoted(expected)));
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Success => "success",
        Verdict::Failure => "failure",
        Verdict::Unknown => "unknown",
    }
}

/// The first step that stands there again. What the wire carried has a call number of its own each time, however alike
/// it is; what has no requests (it was imported) is compared by its words, block by block.
fn replicated(sample: &Sample) -> Option<StepIndex> {
    let mut calls = HashSet::new();
    let again = (0..)
        .zip(&sample.steps)
        .find(|(_, step)| step.input.is_some() && !calls.insert((step.agent.as_str(), step.instance, step.call)));
    if let Some((index, _)) = again {
        return Some(index);
    }
    let said = |step: &SampleStep| {
        let text = step.output.as_ref().map(|said| said.text.trim()).unwrap_or_default();
        let telling = step.input.is_none() && text.chars().count() >= TELLING;
        telling.then(|| (step.agent.as_str().to_owned(), text.to_owned()))
    };
    let said: Vec<_> = sample.steps.iter().map(said).collect();
    (1..=(said.len() / 2).min(BLOCK_MAX)).find_map(|length| {
        let place = said.windows(2 * length).position(|pair| {
            let (first, second) = pair.split_at(length);
            first == second && first.iter().all(Option::is_some)
        })?;
        StepIndex::try_from(place + length).ok()
    })
}
