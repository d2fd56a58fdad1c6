//! Counts fit the samples; the probe finds a tell that is there and none where there is none.

use std::path::Path;

use super::*;
use crate::dataset::{
    Sample, Writer,
    samples::{benign, clean, corrupted, message, misled, set},
};

fn statistics_for(dir: &Path, samples: &[Sample]) -> Statistics {
    let mut writer = Writer::create(dir).expect("creates");
    samples.iter().for_each(|sample| writer.push(sample).expect("writes"));
    writer.finish().expect("finishes");
    statistics(&Dataset::open(dir).expect("a dataset")).expect("reads")
}

#[test]
fn one_mode_is_evenly_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let one: Vec<_> =
        set().into_iter().filter(|sample| sample.kind == crate::dataset::SampleKind::Failure).take(1).collect();
    let even = statistics_for(dir.path(), &one).labels.mode_evenness.expect("a mode");
    assert_eq!(format!("{even:.2}"), "0.00");
}

#[test]
fn counts_fit_the_samples() {
    let dir = tempfile::tempdir().expect("a directory");
    let counted = statistics_for(dir.path(), &set());
    assert_eq!((counted.samples, counted.tasks), (8, 2));
    assert_eq!(counted.kinds, [("benign", 2), ("clean", 2), ("failure", 4)].map(|(k, n)| (k.to_owned(), n)).into());
    assert_eq!(counted.labels.errors, 4);
    assert_eq!(counted.labels.modes["FM-2.6 reasoning-action mismatch"], 2);
    assert_eq!(counted.labels.modes_missing.len(), 12);
    let even = counted.labels.mode_evenness.expect("modes");
    assert!((even - 2f64.ln() / 14f64.ln()).abs() < 1e-9, "{even}");
    assert_eq!(counted.position.step, [(0, 2), (1, 2)].into());
    assert_eq!((counted.position.tenth[0], counted.position.tenth[3], counted.position.first_call), (2, 2, 4));
    assert_eq!((counted.twins.clean, counted.twins.paired, counted.twins.unpaired), (2, 4, 0));
    assert_eq!(counted.twins.failures_per_clean, Summary { count: 2, min: 2, median: 2, mean: 2.0, max: 2, total: 4 });
    let lengths = &counted.lengths;
    assert_eq!((lengths.steps.median, lengths.steps.total), (3, 8 * 3));
    let solver = counted.agents.iter().find(|agent| agent.agent == "solver").expect("there");
    assert_eq!((solver.steps, solver.errors), (8, 2));
    assert_eq!(counted.probe[0].auc, None, "too few for a figure");
}

#[test]
fn the_probe_finds_tells_and_only_those() {
    let dir = tempfile::tempdir().expect("a directory");
    let told = |n: u32| {
        let mut sample = misled(n);
        sample.steps[0].output = Some(message("assistant", &format!("As was demanded, I hereby add {n} and 9.")));
        sample.label.as_mut().expect("a label").errors[0].operator = Some("blatant".to_owned());
        sample
    };
    let mut samples: Vec<_> = (3..63).flat_map(|n| [clean(n), corrupted(n), told(n)]).collect();
    samples.push(benign(3));
    let counted = statistics_for(dir.path(), &samples);
    let auc = |name: &str| {
        let probed = counted.probe.iter().find(|probed| probed.manipulator == name).expect("probed");
        (probed.auc.expect("enough"), probed.interval.expect("enough"), probed.tells.clone())
    };
    let (blatant, _, tells) = auc("blatant");
    assert!(blatant > 0.99, "{blatant}");
    assert!(tells.iter().any(|tell| tell.contains("demanded") || tell.contains("hereby")), "{tells:?}");
    let (subtle, (low, high), _) = auc("corrupt_number");
    assert!(low <= 0.5 && high >= 0.5, "a number alone is no tell: {subtle} ({low} to {high})");
    let (all, ..) = auc("all");
    assert!(all > subtle && all < blatant, "{all}");
    assert_eq!(statistics_for(dir.path(), &samples), counted, "the same figures each time");
}

#[test]
fn an_empty_dataset_is_counted_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let counted = statistics_for(dir.path(), &[]);
    assert_eq!(counted.samples, 0);
}
