//! A dataset as the page shows it: counts, findings, its samples, and a sample in the shape of a run.

use std::{collections::HashMap, sync::LazyLock};

use regex::Regex;
use serde_json::{Value, json};

use super::{
    change::{self, ChangePair},
    listing::{Listing, ListingPlace},
    skeleton::COLUMNS,
    step_view::{TextBlock, first_words},
    suspected::Suspected,
};
use crate::{
    dataset::{Called, Dataset, DatasetError, PlacedSample, Sample, SampleMessage, lint, statistics},
    trajectory::{ReplyOrigin, Source},
};

/// Counts, findings and samples.
///
/// # Errors
/// A file cannot be read.
pub(super) fn dataset(place: &ListingPlace, listing: &Listing) -> Result<Value, DatasetError> {
    let dataset = Dataset::open(&place.dir)?;
    let linted = lint::lint(&dataset)?;
    // A line that is no sample is a finding; what can be counted is counted without it.
    let statistics = statistics::statistics(&dataset).ok();
    let suspected = Suspected::by_run(&listing.predictions);
    let samples = dataset.samples().filter_map(Result::ok).map(|placed| row(&placed, place, listing, &suspected));
    let findings = linted.findings.iter().map(|finding| {
        json!({"rule": finding.rule, "line": finding.line, "sample": finding.sample, "what": finding.what,
            "step": step_named(&finding.what)})
    });
    let rules: HashMap<&str, &str> =
        linted.findings.iter().map(|finding| (finding.rule.name(), finding.rule.meaning())).collect();
    Ok(json!({
        "dir": place.dir.display().to_string(),
        "statistics": statistics,
        "samples": samples.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
        "rules": rules,
        "sure": linted.sure,
    }))
}

/// The step that a finding's words name.
fn step_named(what: &str) -> Option<u32> {
    static STEP: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bstep (\d{1,9})\b").ok());
    STEP.as_ref()?.captures(what)?.get(1)?.as_str().parse().ok()
}

fn row(
    placed: &PlacedSample,
    place: &ListingPlace,
    listing: &Listing,
    suspected: &HashMap<String, Suspected>,
) -> Value {
    let sample = &placed.sample;
    let errors = sample.label.iter().flat_map(|label| &label.errors).map(|error| {
        json!({"agent": error.agent, "step": error.step,
            "mode": error.failure_mode.as_ref().map(|mode| &mode.code)})
    });
    json!({
        "id": sample.id,
        "kind": sample.kind,
        "system": sample.system,
        "task": sample.task.id,
        "split": sample.split,
        "outcome": sample.outcome,
        "answer": sample.final_answer,
        "expected": sample.task.answer,
        "steps": sample.steps.len(),
        "line": placed.line,
        "status": sample.label.as_ref().map(|label| label.status),
        "errors": errors.collect::<Vec<_>>(),
        "suspected": suspected.get(&sample.id).map(Suspected::line),
        "twin": sample.clean_twin,
        "run": listing.run_named(&sample.id, &place.dir).map(|row| &row.key),
    })
}

/// The sample at a position.
///
/// # Errors
/// There is no dataset.
pub(super) fn at(place: &ListingPlace, position: usize) -> Result<Option<Sample>, DatasetError> {
    Ok(Dataset::open(&place.dir)?.samples().filter_map(Result::ok).nth(position).map(|placed| placed.sample))
}

/// A sample in the shape of a run's page.
pub(super) fn run(sample: &Sample, suspected: Option<&Suspected>) -> Value {
    let agents: Vec<String> = sample.agents().iter().map(ToString::to_string).collect();
    let labelled =
        |step: u32| sample.label.iter().flat_map(|label| &label.errors).any(|error| error.step == Some(step));
    let changed = |step: u32| sample.label.iter().flat_map(|label| &label.changes).any(|change| change.step == step);
    let rows = sample.steps.iter().map(|step| {
        let number = agents.iter().position(|name| *name == step.agent.as_str());
        let marks =
            [(changed(step.step), "injected"), (labelled(step.step), "labelled"), (step.overlaps, "overlapping")];
        let marks: Vec<&str> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        let said = step.output.as_ref().map(block).map(|block| block.text).unwrap_or_default();
        let state = if step.output.is_some() { json!(origin(sample)) } else { json!("error") };
        json!([
            step.step,
            number,
            step.call,
            null,
            null,
            state,
            marks,
            step.status,
            step.attempts.unwrap_or(1),
            said.len(),
            null,
            null,
            first_words(&said, 110)
        ])
    });
    json!({
        "head": {"run": sample.id, "task": sample.task.question, "started": "", "upstream": sample.backend,
            "sealed": true, "open_exchanges": 0, "label": sample.label, "notes": [],
            "outcome": {"verdict": sample.outcome, "evidence": sample.outcome_evidence}},
        "sample": true,
        "suspected": suspected.map(Suspected::line),
        "suspects": suspected.map(Suspected::steps),
        "agents": agents,
        "columns": COLUMNS,
        "rows": rows.collect::<Vec<_>>(),
    })
}

/// One step of a sample, in the shape of a run's step.
pub(super) fn step(sample: &Sample, number: u32) -> Option<Value> {
    let step = sample.steps.get(number as usize)?;
    let kept = step.input.as_ref().map_or(0, |input| input.kept as usize);
    let input = sample.input(number).unwrap_or_default();
    let request = input.iter().enumerate().map(|(at, said)| {
        let block = block(said);
        json!({"who": block.who, "text": block.text, "known": at < kept})
    });
    let reply: Vec<TextBlock> = step.output.iter().map(block).collect();
    let changes = sample.label.iter().flat_map(|label| &label.changes).filter(|change| change.step == number);
    let changes = changes.map(|change| {
        let blocks = |said: &[SampleMessage]| said.iter().map(block).collect::<Vec<_>>();
        let pairs = change::side_by_side(&blocks(&change.before), &blocks(&change.after));
        let pairs = pairs.into_iter().map(|pair| match pair {
            ChangePair::Equal(count) => json!({"equal": count}),
            ChangePair::Edited(old, new) => {
                json!({"was": old.who, "who": new.who, "pieces": change::pieces(&old.text, &new.text)})
            }
            ChangePair::Gone(old) => json!({"gone": old}),
            ChangePair::Came(new) => json!({"came": new}),
        });
        json!({"side": change.side, "planted": [], "pairs": pairs.collect::<Vec<_>>()})
    });
    let tools = sample.tools.iter().filter(|tool| step.tools.contains(&tool.name));
    Some(json!({
        "step": step.step, "call": step.call, "turn": step.turn, "agent": step.agent, "instance": step.instance,
        "known_by": null, "ambiguous": step.ambiguous, "overlapping": step.overlaps, "sample": true,
        "injected": [], "since": step.input.as_ref().and_then(|input| input.follows),
        "request": request.collect::<Vec<_>>(), "edited_request": false,
        "attempts": [{"attempt": 0, "status": step.status, "origin": origin(sample), "finish_reason": step.finish_reason,
            "edited": false, "exact": true, "reply": reply}],
        "tools": tools.collect::<Vec<_>>(),
        "changes": changes.collect::<Vec<_>>(),
        "quoted": {"words": "all", "steps": [], "unread": 0},
    }))
}

/// Where the replies of a sample came from: those of a log that says of no step how its agent is known were never on a wire
/// that anybody recorded.
fn origin(sample: &Sample) -> ReplyOrigin {
    let is_recorded = sample.steps.iter().any(|step| step.source.is_some_and(|source| source != Source::Trace));
    if is_recorded { ReplyOrigin::Live } else { ReplyOrigin::Remade }
}

fn block(said: &SampleMessage) -> TextBlock {
    let name = said.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let answers = said.answers.as_ref().map(|id| format!(" answers {id}")).unwrap_or_default();
    let call = |call: &Called| format!("calls {}({})  [{}]", call.name, call.arguments, call.id);
    let parts = std::iter::once(said.text.clone()).chain(said.calls.iter().map(call));
    let text = parts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    TextBlock { who: format!("{}{name}{answers}", said.role), text }
}
