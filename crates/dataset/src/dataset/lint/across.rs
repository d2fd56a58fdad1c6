//! Rules about several samples. What is kept of each is small: hashes, its task, its place.

use std::collections::{BTreeMap, HashMap};

use twox_hash::XxHash3_64;

use super::{NotedFindings, Rule, is_imported, quoted};
use crate::{
    dataset::{Entry, LabelledError, PlacedSample, Sample, SampleKind, SampleStep, Split, Truth, split::words},
    trajectory::{StepIndex, TAXONOMY},
};

/// What earlier samples leave to later ones.
#[derive(Debug, Default)]
pub(super) struct EarlierSamples {
    /// Samples by id.
    pub(super) ids: HashMap<String, Entry>,
    /// Samples that name a twin: id, twin and place.
    pub(super) paired: Vec<Entry>,
    /// Runs with their labels, by hash.
    runs: HashMap<u64, String>,
    /// Steps by hash: the task that they were first seen in.
    steps: HashMap<u64, u32>,
    /// Tasks by id: number, question and answer.
    tasks: HashMap<String, (u32, u64)>,
    /// Parts of the dataset by the words of the question.
    splits: HashMap<u64, Split>,
    /// Samples in a part, and in none.
    parted: (u64, u64),
    taxonomies: BTreeMap<String, String>,
    /// Kinds of claims that failures make: the first sample of each.
    kinds: BTreeMap<String, String>,
}

impl EarlierSamples {
    pub(super) fn add(&mut self, placed: &PlacedSample, noted: &mut NotedFindings<'_>) {
        let sample = &placed.sample;
        let place = Entry { file: placed.file, line: placed.line, offset: placed.offset, kind: sample.kind };
        if self.ids.contains_key(&sample.id) {
            noted.note(Rule::DuplicateId, format!("another sample has the id {}", quoted(&sample.id)));
        }
        self.ids.entry(sample.id.clone()).or_insert(place);
        self.paired.push(place);
        let task = self.task(sample, noted);
        self.split(sample, noted);
        self.taxonomy(sample, noted);
        self.kind(sample, noted);
        self.repeated(sample, task, noted);
    }

    fn task(&mut self, sample: &Sample, noted: &mut NotedFindings<'_>) -> u32 {
        let number = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
        // What was imported has in its task whatever its source says of the run.
        let more =
            if is_imported(sample) { String::new() } else { serde_json::to_string(&sample.task).unwrap_or_default() };
        let said = hash_of(0, [sample.task.question.as_str(), &sample.task.answer, &more]);
        let (number, first) = *self.tasks.entry(sample.task.id.clone()).or_insert((number, said));
        if first != said {
            let id = quoted(&sample.task.id);
            noted.note(Rule::TaskDiffers, format!("task {id} has another question, answer or other field than before"));
        }
        number
    }

    fn split(&mut self, sample: &Sample, noted: &mut NotedFindings<'_>) {
        let Some(split) = sample.split else {
            self.parted.1 += 1;
            if self.parted.0 > 0 {
                noted.note(Rule::SplitByTask, "the sample is in no part of the dataset, others are");
            }
            return;
        };
        if self.parted.0 == 0 && self.parted.1 > 0 {
            noted.note(Rule::SplitByTask, "the sample is in a part of the dataset, those before it are in none");
        }
        self.parted.0 += 1;
        let first = *self.splits.entry(hash_of(0, [words(&sample.task.question).as_str()])).or_insert(split);
        if first != split {
            let (was, is) = (format!("{first:?}").to_lowercase(), format!("{split:?}").to_lowercase());
            let id = quoted(&sample.task.id);
            noted.note(Rule::SplitByTask, format!("the question of task {id} is in `{was}` and in `{is}`"));
        }
    }

    fn taxonomy(&mut self, sample: &Sample, noted: &mut NotedFindings<'_>) {
        let modes = sample.label.iter().flat_map(Truth::planted).flat_map(LabelledError::modes);
        // What was imported has the code book of its source.
        let own = !is_imported(sample);
        for mode in modes {
            let met = self.taxonomies.contains_key(&mode.taxonomy);
            if own && !met && mode.taxonomy != TAXONOMY {
                let what = format!("{} is not known here: expected {}", quoted(&mode.taxonomy), quoted(TAXONOMY));
                noted.note(Rule::OneTaxonomy, what);
            }
            if let Some((first, id)) = self.taxonomies.iter().next().filter(|_| !met) {
                let what = format!("{} here, {} in sample {}", quoted(&mode.taxonomy), quoted(first), quoted(id));
                noted.note(Rule::OneTaxonomy, what);
            }
            self.taxonomies.entry(mode.taxonomy.clone()).or_insert_with(|| sample.id.clone());
        }
    }

    /// What was imported makes the claims of its source.
    fn kind(&mut self, sample: &Sample, noted: &mut NotedFindings<'_>) {
        let truth = sample.label.as_ref().filter(|_| sample.kind == SampleKind::Failure && !is_imported(sample));
        let Some(truth) = truth.filter(|truth| !self.kinds.contains_key(&truth.definition)) else { return };
        if let Some((first, id)) = self.kinds.iter().next() {
            let what = format!(
                "the label says {}, that of sample {} says {}",
                quoted(&truth.definition),
                quoted(id),
                quoted(first)
            );
            noted.note(Rule::MixedKinds, what);
        }
        self.kinds.insert(truth.definition.clone(), sample.id.clone());
    }

    /// Whether the run, or most of its steps, stand elsewhere too.
    fn repeated(&mut self, sample: &Sample, task: u32, noted: &mut NotedFindings<'_>) {
        let (mut shared, mut speaking) = (0, 0);
        let marks = fingerprints(sample);
        for (hash, said) in marks.iter().copied() {
            if !said {
                continue;
            }
            speaking += 1;
            shared += u32::from(*self.steps.entry(hash).or_insert(task) != task);
        }
        let run = content_hash(sample, &marks);
        match self.runs.get(&run) {
            Some(other) if !sample.steps.is_empty() && *other != sample.id => {
                noted.note(Rule::DuplicateSample, format!("sample {} holds the same run", quoted(other)));
            }
            Some(_) => {}
            None => drop(self.runs.insert(run, sample.id.clone())),
        }
        if shared >= 2 && 2 * shared > speaking {
            noted.note(Rule::SharedSteps, format!("{shared} of {speaking} steps stand in runs of other tasks too"));
        }
    }
}

/// What a run holds, and what was done to it: equal of two runs that are one as data.
pub(in crate::dataset) fn hash_of_run(sample: &Sample) -> u64 {
    content_hash(sample, &fingerprints(sample))
}

fn content_hash(sample: &Sample, marks: &[(u64, bool)]) -> u64 {
    let errors = sample
        .label
        .as_ref()
        .map(|label| serde_json::to_string(&(&label.errors, &label.others, &label.not_shown)).unwrap_or_default());
    let steps = marks.iter().fold(0, |run, (hash, _)| add(run, &hash.to_le_bytes()));
    hash_of(steps, [&errors.unwrap_or_default(), &sample.system, &sample.task.id])
}

fn fingerprints(sample: &Sample) -> Vec<(u64, bool)> {
    (0..).zip(&sample.steps).map(|(index, step)| fingerprint(sample, index, step)).collect()
}

/// A step by what was asked and answered, and whether anything was.
fn fingerprint(sample: &Sample, index: StepIndex, step: &SampleStep) -> (u64, bool) {
    let (mut hash, mut length) = (0, 0);
    let input = sample.input(index).unwrap_or_default();
    let texts = input.into_iter().chain(&step.output).flat_map(super::super::SampleMessage::texts);
    for text in std::iter::once(step.agent.as_str()).chain(texts) {
        length += text.len();
        hash = add(hash, text.as_bytes());
    }
    (hash, length > step.agent.as_str().len())
}

/// A hash of what was hashed before and of these texts.
fn hash_of<const N: usize>(before: u64, texts: [&str; N]) -> u64 {
    texts.iter().fold(before, |hash, text| add(hash, text.as_bytes()))
}

fn add(hash: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(hash, bytes)
}
