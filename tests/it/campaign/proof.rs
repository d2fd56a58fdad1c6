//! What is verified is proven, what is not is counted; the same whatever runs side by side.

use std::fs;

use aegis::recording;
use serde_json::Value;

use super::{Bench, DEBATE, PIPELINE, json, plans, tasks};

fn bench() -> Bench {
    let one = plans(&["corrupt-number", "end-early"], "\"pipeline\"");
    let two = plans(&["corrupt-one-debater", "corrupt-two-debaters"], "\"debate\"");
    let sample = "[sample]\ntemplates = [\"ROOT/plans/corrupt-number.toml\", \"ROOT/plans/truncate-plan.toml\"]\n\
                  positions = [\"first\", \"uniform\", \"every\"]\ntargets = [1, 2]\nper_task = 2\n";
    Bench::new(&format!(
        "upstream = \"simulator\"\n{}proof.repeatable = true\n{PIPELINE}{DEBATE}{one}{two}{sample}",
        tasks(1)
    ))
}

#[tokio::test]
async fn a_label_is_verified_only_with_all_that_proves_it() {
    let bench = bench();
    let (code, _, said) = bench.run(&["--junit", "junit.xml"]).await;
    assert_eq!(code, Some(0), "{said}");
    let last = said.lines().last().expect("a line").to_owned();
    assert!(last.starts_with("RESULT  ok "), "{last}");
    let report = bench.report();
    let counted: u64 = report["classes"].as_object().expect("classes").values().filter_map(Value::as_u64).sum();
    assert_eq!(report["funnel"]["attempts"], counted, "each run is in one class");
    let verified = report["funnel"]["verified"].as_u64().expect("a count");
    assert!(verified > 0 && report["classes"]["benign"].as_u64() > Some(0), "{report}");
    assert_eq!(report["funnel"]["flipped"].as_u64().expect("a count"), verified, "the simulator is no gambler");
    let mut labels = 0;
    let sum = |key: &str| bench.cells().iter().filter_map(|cell| cell["spent"][key].as_f64()).sum::<f64>();
    for (total, key) in [("calls", "calls"), ("input_tokens", "input"), ("output_tokens", "output")] {
        assert_eq!(report["cost"]["by_cells"][total].as_f64(), Some(sum(key)), "totals are sums of cells");
    }
    for cell in bench.cells() {
        let run = cell["run"].as_str().expect("an id");
        let recording = recording::read(&bench.out().join("logs").join(run)).expect("a recording");
        assert!(recording.sealed);
        let steps = recording.trajectory.steps.len() as u64;
        let paid = cell["spent"]["calls"].as_u64().expect("a count");
        let served = cell["prefix"]["calls"].as_u64().expect("a count");
        assert_eq!(paid + served, steps, "each call is answered by the record or by the upstream: {cell}");
        if cell["kind"]["cell"] == "null" || cell["kind"]["cell"] == "injected" {
            assert!(served > 0 || paid == steps, "{cell}");
        }
        let Some(label) = recording.label.filter(|label| label.status == aegis::trajectory::LabelStatus::Verified)
        else {
            continue;
        };
        labels += 1;
        let evidence = label.evidence.clone().expect("a verified label says what proves it");
        let executed = evidence.executed.as_ref().expect("and what was executed for it");
        assert!(evidence.clean.all() && evidence.twin.is_some() && evidence.fork_step.is_some());
        assert!(executed.repeatable && executed.control.passed == 2 && executed.treated.failed >= 2, "{executed:?}");
        for entry in &label.errors {
            let step = &recording.trajectory.steps[entry.error.step as usize];
            let delivered = step.last_attempt().expect("an attempt").delivered();
            assert_eq!(blake3::hash(delivered).to_hex().as_str(), entry.error.after, "the delivered bytes are these");
            assert_ne!(entry.error.before, entry.error.after);
        }
    }
    assert_eq!(labels, verified);
    let junit = fs::read_to_string(bench.dir.path().join("junit.xml")).expect("a JUnit file");
    assert!(junit.contains("failures=\"0\"") && junit.matches("<testcase").count() as u64 == counted + 1, "{junit}");
}

#[tokio::test]
async fn the_dataset_is_the_same_whatever_runs_side_by_side() {
    let (one, four) = (bench(), bench());
    let (code, _, said) = one.run(&["--jobs", "1", "-q"]).await;
    assert_eq!((code, four.run(&["--jobs", "4", "-q"]).await.0), (Some(0), Some(0)), "{said}");
    for file in ["dataset.jsonl", "benign.jsonl", "dataset.json"] {
        let [a, b] = [&one, &four].map(|bench| fs::read(bench.out().join(file)).expect("a file"));
        assert!(!a.is_empty() && a == b, "{file} differs");
    }
    // Read back, no row holds a path, a port or a plan's vocabulary.
    let text = fs::read_to_string(one.out().join("dataset.jsonl")).expect("a dataset");
    for word in ["127.0.0.1", "c.toml", "corrupt_number\",\"messages", env!("CARGO_MANIFEST_DIR")] {
        assert!(!text.contains(word), "{word}");
    }
}

#[tokio::test]
async fn plans_of_several_injections_are_narrowed_to_what_the_failure_needs() {
    let bench = Bench::new(&format!(
        "upstream = \"simulator\"\n{}{DEBATE}[[plan]]\nfile = \"pair.toml\"\n[[plan]]\nfile = \"judge.toml\"\n",
        tasks(1)
    ));
    let hit = |agent: &str| {
        format!(
            "[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"FM-2.6\"\nwhen.always = true\n\
             manipulator.corrupt_number = {{ which = \"last\", by = 10 }}\n"
        )
    };
    fs::write(bench.dir.path().join("pair.toml"), hit("ada") + &hit("blaise")).expect("written");
    fs::write(bench.dir.path().join("judge.toml"), hit("ada") + &hit("judge")).expect("written");
    let (code, _, said) = bench.run(&[]).await;
    assert_eq!(code, Some(0), "{said}");
    let report = bench.report();
    let necessary = |number: usize| {
        let necessity = report["cells"][number]["necessity"].as_array().expect("a list").iter();
        necessity.map(|one| (one["injection"].as_u64(), one["state"].as_str())).collect::<Vec<_>>()
    };
    let (needed, needless) = (Some("necessary"), Some("not_needed"));
    assert_eq!(necessary(0), [(Some(0), needed), (Some(1), needed)], "it takes two of three debaters");
    assert_eq!(necessary(1), [(Some(0), needless), (Some(1), needed)], "the judge alone suffices");
    let run = report["cells"][1]["run"].as_str().expect("an id");
    let label = json(&bench.out().join("logs").join(run).join("label.json"));
    let agents =
        |list: &str| label[list].as_array().expect("a list").iter().map(|one| one["agent"].clone()).collect::<Vec<_>>();
    assert_eq!(
        (agents("errors"), agents("others")),
        (vec!["judge".into()], vec!["ada".into(), "ada".into()]),
        "{label}"
    );
}
