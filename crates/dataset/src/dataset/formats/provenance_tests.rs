//! What formats tell of who spoke and of the modes of an error.

use std::fs;

use serde_json::json;

use super::{
    ALL,
    formats_tests::{dataset, exported, rows},
    testing::{clean, failure},
};
use crate::dataset::Sample;

#[test]
fn what_a_simulator_said_is_never_told_as_a_models_words() {
    let dir = tempfile::tempdir().expect("a directory");
    let named = |mut sample: Sample| {
        sample.steps.iter_mut().for_each(|step| step.model = Some("gpt-4o-mini".to_owned()));
        sample
    };
    let dataset = dataset(&dir.path().join("d"), &[named(clean("a", 4)), named(failure("a", 4))]);
    for format in ALL.iter().filter(|format| !["runs", "parquet", "huggingface"].contains(&format.name())) {
        let out = dir.path().join(format.name());
        exported(&dataset, format.name(), &out);
        let files = if out.is_dir() {
            fs::read_dir(&out).expect("lists").map(|entry| entry.expect("an entry").path()).collect()
        } else {
            vec![out]
        };
        for file in files {
            let text = fs::read_to_string(&file).expect("readable");
            assert!(!text.replace("simulator/gpt-4o-mini", "").contains("gpt-4o-mini"), "{}", format.name());
        }
    }
    let out = dir.path().join("hub");
    exported(&dataset, "huggingface", &out);
    let card = fs::read_to_string(out.join("README.md")).expect("the card");
    assert!(card.contains("| models | simulator/gpt-4o-mini (a scripted model, not a language model);"), "{card}");
    // A table of ours has a column for it.
    let out = dir.path().join("runs");
    exported(&dataset, "runs", &out);
    assert!(rows(&out).iter().all(|row| row["backend"] == "simulator"));
}

#[test]
fn an_edit_under_two_modes_goes_out_with_both_where_sets_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut sample = failure("a", 4);
    let error = &mut sample.label.as_mut().expect("a label").errors[0];
    let mode = crate::trajectory::FailureMode::IncorrectVerification;
    error.other_modes = vec![crate::dataset::Mode::from(mode)];
    let dataset = dataset(&dir.path().join("d"), &[clean("a", 4), sample]);
    let of = |name: &str| {
        let out = dir.path().join(name);
        exported(&dataset, name, &out);
        rows(&out).remove(1)
    };
    let pairs = of("aegis")["output"]["faulty_agents"].clone();
    assert_eq!((&pairs[0]["error_type"], &pairs[1]["error_type"]), (&json!("FM-2.6"), &json!("FM-3.3")));
    let vector = of("mast")["mast_annotation"].clone();
    assert_eq!((&vector["2.6"], &vector["3.3"], &vector["3.2"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(of("runs")["errors"][0]["other_modes"], json!(["FM-3.3"]));
    let sft = of("sft").to_string();
    assert!(
        sft.contains(r#"\"error_type\":\"FM-2.6\""#) && !sft.contains(r#"\"error_type\":\"FM-3.3\""#),
        "one: the first"
    );
}

#[test]
fn a_step_that_was_not_read_whole_is_named_in_every_format_or_its_manifest() {
    let dir = tempfile::tempdir().expect("a directory");
    let partly = |mut sample: Sample| {
        sample.steps[1].account = Some("partly read".to_owned());
        sample
    };
    let dataset = dataset(&dir.path().join("d"), &[clean("a", 4), partly(failure("a", 4))]);
    for format in ALL {
        let manifest = exported(&dataset, format.name(), &dir.path().join(format.name()));
        let named: Vec<_> =
            manifest.not_whole.values().flatten().map(|(step, words)| (*step, words.as_str())).collect();
        assert_eq!(named, [(1, "partly read")], "{}", format.name());
        // `contrastive` writes the clean run, with its failures in the same row.
        let counted = u64::from(format.name() != "contrastive");
        assert_eq!(manifest.account.partly_read, counted, "{}", format.name());
    }
    let text = |name: &str| {
        let path = dir.path().join(name);
        let files = if path.is_dir() {
            fs::read_dir(&path).expect("lists").map(|entry| entry.expect("an entry").path()).collect()
        } else {
            vec![path]
        };
        files
            .iter()
            .map(|file| fs::read_to_string(file).expect("readable"))
            .collect::<String>()
            .replace([' ', '\n'], "")
    };
    for (format, place) in [
        ("runs", r#""account":"partlyread""#),
        ("atif", r#""account":"partlyread""#),
        ("otlp", r#"{"key":"aegis.account","value":{"stringValue":"partlyread"}}"#),
        ("har", r#""_account":"partlyread""#),
        ("inspect", r#""account":{"1":"partlyread"}"#),
    ] {
        assert_eq!(text(format).matches(place).count(), 1, "{format}");
    }
}
