//! A sample beside the recording that it was made from, where that lies beside the dataset: `logs/<run>`.

use super::{NotedFindings, Rule, is_imported};
use crate::{
    dataset::{Dataset, LabelledError, Mode, PlacedSample, Sample, SampleKind, Truth, UnrecordedFacts, ids},
    proof,
    recording::{self, Recording},
    ruling::{NoLabel, PLANTED, Ruling},
    trajectory::{Evidence, Executed, Label, LabelEntry},
};

/// Makes the sample again and compares.
pub(super) fn check(placed: &PlacedSample, dataset: &Dataset, noted: &mut NotedFindings<'_>) {
    let sample = &placed.sample;
    let Some(dir) = dataset.recording_dir(placed).filter(|_| !is_imported(sample)) else { return };
    let recording = match recording::read(&dir) {
        Ok(recording) => recording,
        Err(error) => return noted.note(Rule::RecordingDiffers, format!("it cannot be read: {error}")),
    };
    match Sample::from_recording(&recording, sample_facts(sample)) {
        Ok(again) => {
            // Rows of earlier versions have the ids that a backend gave.
            let mut sample = sample.clone();
            ids::number(&mut sample);
            compare(&sample, &again, &recording, noted);
        }
        Err(error) => noted.note(Rule::RecordingDiffers, error.to_string()),
    }
}

fn sample_facts(sample: &Sample) -> UnrecordedFacts {
    UnrecordedFacts {
        kind: sample.kind,
        system: sample.system.clone(),
        task: sample.task.clone(),
        final_answer: sample.final_answer.clone(),
        split: sample.split,
        clean_twin: sample.clean_twin.clone(),
    }
}

fn compare(sample: &Sample, again: &Sample, recording: &Recording, noted: &mut NotedFindings<'_>) {
    let mut differs = |what: String| noted.note(Rule::RecordingDiffers, what);
    recording.edited.iter().for_each(|name| differs(format!("its `{name}` differs from its hash")));
    if sample.outcome != again.outcome {
        differs("it has another outcome".to_owned());
    }
    // Rows of others' data, and of earlier versions, may not say it.
    if !sample.backend.is_empty() && sample.backend != again.backend {
        differs(format!("it was answered by `{}` there", again.backend));
    }
    if let Some(number) = first_difference(sample, again) {
        differs(format!("step {number} is another there"));
    }
    // Earlier versions labelled what a gate refuses now.
    let marked = |number: u32| sample.steps.get(number as usize).is_some_and(|step| step.ambiguous);
    let is_marked = sample.label.iter().flat_map(Truth::steps).any(marked);
    if let Some(why) = refused(sample, recording).filter(|why| !(is_marked && why.is_about_identity())) {
        differs(format!("no label may name what was done there: {why}"));
    }
    // What the proof made of a decoy stands in its row alone: no label beside a run calls one verified.
    let is_proven_alone = sample.kind == SampleKind::Decoy;
    if let (Some(truth), Some(own), false) = (&sample.label, &again.label, is_proven_alone) {
        if truth.status != own.status {
            differs("its label has another status".to_owned());
        }
        if (&truth.definition, truth.seed) != (&own.definition, own.seed) {
            differs("its label is of another kind or seed".to_owned());
        }
        let entries = |of: fn(&Label) -> &Vec<LabelEntry>| recording.label.iter().flat_map(of);
        let same = same_errors(&truth.errors, &own.errors, entries(|label| &label.errors))
            && same_errors(&truth.others, &own.others, entries(|label| &label.others))
            && same_errors(&truth.not_shown, &own.not_shown, entries(|label| &label.not_shown));
        if !same {
            differs("its label names other errors or modes, or other hashes of what was before and after".to_owned());
        }
        if truth.changes != own.changes {
            differs("something else was changed there".to_owned());
        }
        let twin = |truth: &Truth| truth.evidence.as_ref().and_then(|evidence| evidence.twin.clone());
        if twin(truth) != twin(own) {
            differs("its label is proven beside another twin".to_owned());
        } else if label_text(truth) != label_text(own) {
            differs("its label rests on other runs: after `prove`, `campaign --resume` takes them in".to_owned());
        }
    }
}

/// Why the recording of a labelled sample allows no label, if it does not.
fn refused(sample: &Sample, recording: &Recording) -> Option<NoLabel> {
    let truth = sample.label.as_ref()?;
    let ruling = Ruling::new(recording);
    match &recording.label {
        Some(label) => ruling.objects_to(label),
        None if truth.definition == PLANTED => ruling.label().err(),
        None => None,
    }
}

/// What was executed for a label, in words: an e-value may move by a rounding when it is read and written again.
fn label_text(truth: &Truth) -> Option<String> {
    let Evidence { executed, necessity, overdetermined, joint, clean, controls, .. } = truth.evidence.as_ref()?;
    let words = |executed: &Executed| proof::in_words(executed, "without", "with");
    let necessity =
        necessity.iter().map(|one| (one.injection, &one.agent, one.instance, one.state, words(&one.executed)));
    let necessity: Vec<_> = necessity.collect();
    Some(format!("{:?} {necessity:?} {overdetermined} {joint} {clean:?} {controls:?}", executed.as_ref().map(words)))
}

/// The first step that was made by another, asked or answered otherwise.
fn first_difference(sample: &Sample, again: &Sample) -> Option<usize> {
    let same = |number: usize| {
        let (Some(one), Some(other)) = (sample.steps.get(number), again.steps.get(number)) else { return false };
        let asked = |sample: &Sample| {
            let input = sample.input(u32::try_from(number).ok()?)?;
            Some(input.into_iter().cloned().collect::<Vec<_>>())
        };
        (&one.agent, one.instance, one.call, &one.model, &one.output, one.status)
            == (&other.agent, other.instance, other.call, &other.model, &other.output, other.status)
            && asked(sample) == asked(again)
    };
    (0..sample.steps.len().max(again.steps.len())).find(|number| !same(*number))
}

/// Whether both name the same errors. Rows of earlier versions have the hashes of the bytes.
fn same_errors<'a>(
    errors: &[LabelledError],
    own: &[LabelledError],
    entries: impl Iterator<Item = &'a LabelEntry>,
) -> bool {
    let same = |((one, other), entry): ((&LabelledError, &LabelledError), &LabelEntry)| {
        let place = |error: &LabelledError| {
            (
                error.agent.clone(),
                error.instance,
                error.step,
                error.call,
                error.side,
                error.planted_by().map(str::to_owned),
            )
        };
        // People and models may name a mode after the run; what its plan declared stands in the recording.
        let declared = |error: &LabelledError| error.mode_claim.is_some();
        // One edit under two modes is one row: the other mode stands in another run's recording.
        let named = |mode: &Option<Mode>| {
            one.failure_mode == *mode || one.other_modes.iter().any(|other| Some(other) == mode.as_ref())
        };
        // How far a mode is established is the label's, which a judge or a person may have added to since.
        let same_mode = !declared(one) || !declared(other) || named(&other.failure_mode);
        let hashes = (&one.before, &one.after);
        let hashed = hashes == (&other.before, &other.after) || hashes == (&entry.error.before, &entry.error.after);
        place(one) == place(other) && hashed && same_mode
    };
    errors.len() == own.len() && errors.iter().zip(own).zip(entries).all(same)
}
