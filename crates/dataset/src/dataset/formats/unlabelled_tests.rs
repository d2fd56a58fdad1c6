//! Rows of Who&When that are no labelled failure: a success, a log that nobody labelled, a file that lacks a field.

use std::fs;

use serde_json::Value;

use super::{
    formats_tests::{crafted, generated, imported},
    *,
};
use crate::{
    dataset::{Dataset, SampleKind, gold},
    trajectory::Verdict,
};

/// What a file gives: kind, outcome, whether it is labelled, speakers, and what `score` measures against.
fn facts(file: &Value) -> (SampleKind, Verdict, bool, Vec<String>, Option<usize>) {
    let (samples, _) = imported(ImportSource::Whowhen, "7.json", &file.to_string());
    let sample = &samples[0];
    let speakers = sample.steps.iter().map(|step| step.agent.to_string()).collect();
    let gold = gold(sample).map(|gold| gold.culprits.len());
    (sample.kind, sample.outcome, sample.label.is_some(), speakers, gold)
}

#[test]
fn a_success_is_clean_and_a_log_without_a_label_stays_without_one() {
    let without = |base: Value, names: &[&str]| {
        let mut file = base;
        names.iter().for_each(|name| drop(file.as_object_mut().expect("an object").remove(*name)));
        file
    };
    let label = ["mistake_agent", "mistake_step", "mistake_reason"];
    let mut succeeded = generated();
    succeeded["is_correct"] = true.into();
    let mut nobody = generated();
    nobody["mistake_agent"] = "".into();
    let all = ["Maths_Expert", "Checker"].map(str::to_owned).to_vec();
    for (file, expected) in [
        (generated(), (SampleKind::Failure, Verdict::Failure, true, all.clone(), Some(1))),
        (succeeded.clone(), (SampleKind::Clean, Verdict::Success, false, all.clone(), Some(0))),
        (without(succeeded, &label), (SampleKind::Clean, Verdict::Success, false, all.clone(), Some(0))),
        (without(generated(), &label), (SampleKind::Failure, Verdict::Failure, false, all.clone(), None)),
        (nobody, (SampleKind::Failure, Verdict::Failure, false, all.clone(), None)),
        (
            without(generated(), &[&label[..], &["is_correct"]].concat()),
            (SampleKind::Failure, Verdict::Unknown, false, all, None),
        ),
    ] {
        assert_eq!(facts(&file), expected, "{file}");
    }
    for base in [generated(), crafted()] {
        for gone in ["role", "name"] {
            let mut file = base.clone();
            for entry in file["history"].as_array_mut().expect("entries") {
                let (role, entry) = (entry["role"].clone(), entry.as_object_mut().expect("an entry"));
                entry.entry("name").or_insert(role);
                entry.remove(gone);
            }
            let (samples, rules) = imported(ImportSource::Whowhen, "7.json", &file.to_string());
            assert!(
                !rules.contains(&"wrong-shape")
                    && samples[0].steps.len() == file["history"].as_array().expect("entries").len(),
                "{rules:?}"
            );
        }
    }
}

#[test]
fn a_system_is_named_only_where_the_published_set_lies() {
    for (dir, expected) in [("Algorithm-Generated", "captain-agent"), ("Hand-Crafted", "magentic-one"), ("mine", "")] {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join(dir);
        fs::create_dir(&dir).expect("made");
        fs::write(dir.join("1.json"), generated().to_string()).expect("written");
        let (samples, _) = read_foreign(ImportSource::Whowhen, &dir.join("1.json")).expect("read");
        assert_eq!(samples[0].system, expected);
    }
}

#[test]
fn a_failure_that_nobody_labelled_is_no_row_to_learn_from() {
    let root = tempfile::tempdir().expect("a directory");
    let mut file = generated();
    file.as_object_mut().expect("an object").remove("mistake_agent");
    fs::write(root.path().join("1.json"), file.to_string()).expect("written");
    let out = root.path().join("out");
    import(ImportSource::Whowhen, &root.path().join("1.json"), &out, false).expect("imported");
    let data = Dataset::open(&out).expect("a dataset");
    for name in ["sft", "grpo", "verl", "aegis", "mast", "whowhen", "agentracer"] {
        let written =
            export(&data, super::format(name).expect("a format"), &root.path().join(name), &ExportOptions::default());
        assert!(!written.is_ok_and(|written| written.written > 0), "{name}");
    }
    for name in ["otlp", "atif", "inspect"] {
        let written =
            export(&data, super::format(name).expect("a format"), &root.path().join(name), &ExportOptions::default());
        assert_eq!(written.expect("written").written, 1, "{name}");
    }
}
