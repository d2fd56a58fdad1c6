//! What goes out as a trace and comes back as a run.

use aegis::{
    dataset::{
        Dataset, Sample, Writer,
        formats::{self, ExportOptions, Lint},
    },
    recording,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{imported, run, runs, sample, steps};

/// What goes out as spans and comes back has the same agents in the same order, who were asked and said the same.
#[tokio::test]
async fn recorded_runs_come_back_from_their_spans() {
    let dir = tempfile::tempdir().expect("a directory");
    for system in ["pipeline", "debate"] {
        let task =
            "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
        let command = ["--", crate::program::AEGIS, "example", system, "--task", task];
        let (code, _, talk) =
            run(dir.path(), &[&["run", "--upstream", "simulator", "--run", system][..], &command].concat()).await;
        assert_eq!(code, Some(0), "{talk}");
        let (recorded, spans) = (format!("logs/{system}"), format!("{system}.jsonl"));
        let (code, _, talk) = run(dir.path(), &["export", &recorded, "--to", "otlp", "--out", &spans]).await;
        assert_eq!(code, Some(0), "{talk}");
        let logs = dir.path().join(format!("again-{system}"));
        let [again] = &imported("otlp", &[dir.path().join(&spans).to_str().expect("text").to_owned()], &logs)[..]
        else {
            panic!("{system}: one run")
        };
        let before = recording::read(&dir.path().join(recorded)).expect("reads");
        let (before, again) = (sample(&before), sample(again));
        assert!(before.steps.len() > 2, "{system}");
        assert_eq!(steps(&again), steps(&before), "{system}");
        assert_eq!(again.backend, "simulator", "what answered is still named");
    }
    for (format, file) in [("inspect", "log.json"), ("atif", "trajectories")] {
        let (code, _, talk) = run(dir.path(), &["export", "logs/pipeline", "--to", format, "--out", file]).await;
        assert_eq!(code, Some(0), "{talk}");
        let logs = dir.path().join(format!("again-{format}"));
        let path = dir.path().join(file);
        let path = if path.is_dir() { runs(&path).remove(0) } else { path };
        let [again] = &imported(format, &[path.to_str().expect("text").to_owned()], &logs)[..] else {
            panic!("{format}: one run")
        };
        let before = sample(&recording::read(&dir.path().join("logs/pipeline")).expect("reads"));
        let said =
            |sample: &Sample| steps(sample).into_iter().map(|(agent, _, said)| (agent, said)).collect::<Vec<_>>();
        assert_eq!(said(&sample(again)), said(&before), "{format}: agents, order and words");
        let from = again.manifest.imported.as_ref().expect("imported");
        assert!(from.requests.starts_with("rebuilt"), "{format}: {}", from.requests);
    }
}

fn told() -> impl Strategy<Value = Value> {
    let text = "[a-z \"\\\\{}\u{e9}\n]{1,12}";
    let call = (text, "[a-z]{1,6}")
        .prop_map(|(argument, name)| json!({"id": "", "name": name, "arguments": json!({"x": argument}).to_string()}));
    (prop_oneof!["system", "user", "assistant"], text, proptest::collection::vec(call, 0..2)).prop_map(
        |(role, text, calls)| {
            let calls = if role == "assistant" { calls } else { Vec::new() };
            json!({"role": role, "text": text, "calls": calls})
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever was asked and said, by whomever, in whatever order.
    #[test]
    fn any_conversation_comes_back_from_its_spans(
        told in proptest::collection::vec(
            ("[a-c]", proptest::collection::vec(told(), 1..4), "[a-z \n\"]{1,12}"), 1..6,
        ),
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let steps_of: Vec<Value> = told.iter().enumerate().map(|(at, (agent, asked, said))| json!({
            "step": at, "call": 0, "turn": at, "agent": agent, "model": "m",
            "input": {"kept": 0, "messages": asked}, "output": {"role": "assistant", "text": said},
        })).collect();
        let row = json!({"format": 1, "id": "r-1", "kind": "clean", "system": "s", "backend": "b",
            "task": {"id": "t", "question": "q", "answer": "a"}, "outcome": "success", "final_answer": "",
            "tools": [], "steps": steps_of});
        let sample_of: Sample = serde_json::from_value(row).expect("a sample");
        let data = dir.path().join("data");
        let mut writer = Writer::create(&data).expect("a writer");
        writer.push(&sample_of).expect("pushes");
        writer.finish().expect("finishes");
        let spans = dir.path().join("spans.jsonl");
        let options = ExportOptions { lint: Lint::Ignore, ..ExportOptions::default() };
        let otlp = formats::format("otlp").expect("a format");
        formats::export(&Dataset::open(&data).expect("opens"), otlp, &spans, &options).expect("exports");
        let logs = dir.path().join("logs");
        let again = imported("otlp", &[spans.to_str().expect("text").to_owned()], &logs);
        prop_assert_eq!(again.len(), 1);
        prop_assert_eq!(steps(&sample(&again[0])), steps(&sample_of));
    }
}
