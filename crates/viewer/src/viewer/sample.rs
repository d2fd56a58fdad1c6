//! A dataset as the page shows it: counts, findings, its samples, and a sample in the shape of a run.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use regex::Regex;
use serde_json::{Value, json};

use super::{
    data::{as_value, word},
    listing::{Listing, ListingPlace},
    page_data::{
        DatasetPage, PageBlock, PageChange, PlantedError, QuotedSteps, SampleAttempt, SampleError, SampleFinding,
        SamplePage, SampleRow, SampleStepPage,
    },
    skeleton::{COLUMNS, sure},
    stamp::{Stamp, stamp_of_files},
    step::pairs,
    step_view::{TextBlock, first_words},
    suspected::Suspected,
};
use crate::{
    dataset::{
        Called, Dataset, DatasetError, Entry, LabelledError, PlacedSample, Sample, SampleMessage, lint, statistics,
    },
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
    let samples = dataset.samples().filter_map(Result::ok).map(|placed| row(placed, place, listing, &suspected));
    let findings = linted.findings.iter().map(|finding| SampleFinding {
        rule: finding.rule,
        line: finding.line,
        sample: &finding.sample,
        what: &finding.what,
        step: step_named(&finding.what),
    });
    let rules: HashMap<&str, &str> =
        linted.findings.iter().map(|finding| (finding.rule.name(), finding.rule.meaning())).collect();
    Ok(as_value(&DatasetPage {
        dir: place.dir.display().to_string(),
        statistics,
        samples: samples.collect(),
        findings: findings.collect(),
        rules,
        sure: &linted.sure,
    }))
}

/// The step that a finding's words name.
fn step_named(what: &str) -> Option<u32> {
    static STEP: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bstep (\d{1,9})\b").ok());
    STEP.as_ref()?.captures(what)?.get(1)?.as_str().parse().ok()
}

fn row<'a>(
    placed: PlacedSample,
    place: &ListingPlace,
    listing: &'a Listing,
    suspected: &HashMap<String, Suspected>,
) -> SampleRow<'a> {
    let sample = placed.sample;
    let errors = sample.label.iter().flat_map(|label| &label.errors).map(|error| SampleError {
        agent: error.agent.numbered(error.instance),
        step: error.step,
        mode: error.failure_mode.as_ref().map(|mode| mode.code.clone()),
    });
    SampleRow {
        errors: errors.collect(),
        status: sample.label.as_ref().map(|label| label.status),
        suspected: suspected.get(&sample.id).map(Suspected::line),
        run: listing.run_named(&sample.id, &place.dir).map(|row| row.key.as_str()),
        id: sample.id,
        kind: sample.kind,
        system: sample.system,
        task: sample.task.id,
        split: sample.split,
        outcome: sample.outcome,
        answer: sample.final_answer,
        expected: sample.task.answer,
        steps: sample.steps.len(),
        line: placed.line,
        twin: sample.clean_twin,
    }
}

/// Where the samples of datasets stand. Each dataset is gone through once, and again where its files have changed.
#[derive(Debug, Default)]
pub(super) struct SamplePlaces(Mutex<HashMap<PathBuf, PlacesOfDataset>>);

/// Where the samples of a dataset stand, and how its files looked when it was gone through.
#[derive(Debug)]
struct PlacesOfDataset {
    stamp: Stamp,
    places: Arc<Vec<Entry>>,
}

impl SamplePlaces {
    /// The sample at a position.
    ///
    /// # Errors
    /// There is no dataset.
    pub(super) fn at(&self, place: &ListingPlace, position: usize) -> Result<Option<Sample>, DatasetError> {
        let dataset = Dataset::open(&place.dir)?;
        let stamp = stamp_of_files(dataset.files());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = known.get(&place.dir).filter(|known| known.stamp == stamp).map(|known| Arc::clone(&known.places));
        let places = fits.unwrap_or_else(|| {
            let places = Arc::new(dataset.places());
            known.insert(place.dir.clone(), PlacesOfDataset { stamp, places: Arc::clone(&places) });
            places
        });
        drop(known);
        places.get(position).map(|entry| dataset.at(entry)).transpose()
    }
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
    let head = json!({"run": sample.id, "task": sample.task.question, "started": "", "upstream": sample.backend,
        "sealed": true, "open_exchanges": 0, "label": sample.label, "notes": [],
        "outcome": {"verdict": sample.outcome, "evidence": sample.outcome_evidence}});
    let (suspected, suspects) = (suspected.map(Suspected::line), suspected.map(Suspected::steps));
    let rows = rows.collect();
    let sure = sample.label.as_ref().map(|label| match label.definition.as_str() {
        "human" => "a person's word: nothing was executed for it".to_owned(),
        _ => sure(label.status, label.evidence.as_ref(), None),
    });
    as_value(&SamplePage { head, sample: true, sure, suspected, suspects, columns: &COLUMNS, rows, agents })
}

/// One step of a sample, in the shape of a run's step.
pub(super) fn step(sample: &Sample, number: u32) -> Option<Value> {
    let step = sample.steps.get(number as usize)?;
    let kept = step.input.as_ref().map_or(0, |input| input.kept as usize);
    let input = sample.input(number).unwrap_or_default();
    let request =
        input.iter().enumerate().map(|(at, said)| PageBlock { known: Some(at < kept), ..PageBlock::new(block(said)) });
    let changes = sample.label.iter().flat_map(|label| &label.changes).filter(|change| change.step == number);
    let changes = changes.map(|change| {
        let blocks = |said: &[SampleMessage]| said.iter().map(block).collect::<Vec<_>>();
        let pairs = pairs(&blocks(&change.before), &blocks(&change.after));
        let errors =
            sample.label.iter().flat_map(|label| label.errors.iter().chain(&label.others).chain(&label.not_shown));
        let is_it = |error: &&LabelledError| {
            error.step == Some(number) && error.side == Some(change.side) && error.operator.is_some()
        };
        let planted = errors.filter(is_it).map(PlantedError::Sampled).collect();
        PageChange { side: word(&change.side), planted, pairs }
    });
    let attempt = SampleAttempt {
        attempt: 0,
        status: step.status,
        origin: origin(sample),
        finish_reason: &step.finish_reason,
        edited: false,
        exact: true,
        reply: step.output.iter().map(block).map(PageBlock::new).collect(),
    };
    Some(as_value(&SampleStepPage {
        step: step.step,
        call: step.call,
        turn: step.turn,
        agent: step.agent.to_string(),
        instance: step.instance,
        known_by: (),
        ambiguous: step.ambiguous,
        overlapping: step.overlaps,
        sample: true,
        injected: Vec::new(),
        since: step.input.as_ref().and_then(|input| input.follows),
        request: request.collect(),
        edited_request: false,
        attempts: [attempt],
        tools: sample.tools.iter().filter(|tool| step.tools.contains(&tool.name)).collect(),
        changes: changes.collect(),
        quoted: QuotedSteps { words: "all", steps: Vec::new(), unread: 0 },
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
