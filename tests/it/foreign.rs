//! `aegis import` of traces: what others wrote becomes runs that are read like recorded ones, and are told from them.

mod round_trips;

use std::{
    fs,
    path::{Path, PathBuf},
};

use aegis::{
    dataset::{Sample, SampleKind, SampleMessage, Task, UnrecordedFacts},
    foreign::{self, ForeignOptions},
    recording::{self, Recording},
    trajectory::{Reason, Source, Verdict},
};
use serde_json::{Value, json};

use crate::program::aegis;

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/foreign").join(name);
    path.to_str().expect("text").to_owned()
}

async fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let done = aegis(dir).args(arguments).output().await.expect("it ran");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// The directories of the runs below a directory, by name.
fn runs(logs: &Path) -> Vec<PathBuf> {
    let mut runs: Vec<PathBuf> =
        fs::read_dir(logs).expect("lists").map(|entry| entry.expect("an entry").path()).collect();
    runs.sort();
    runs
}

fn imported(from: &str, files: &[String], logs: &Path) -> Vec<Recording> {
    let format = foreign::ALL.iter().find(|format| format.name() == from).expect("a format");
    let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let done = foreign::import(*format, &files, logs, &ForeignOptions::default()).expect("imports");
    assert!(done.defects.is_empty(), "{:?}", done.defects);
    done.runs.iter().map(|run| recording::read(&logs.join(run.run.as_str())).expect("reads")).collect()
}

/// The run as a sample: what its agents were asked, and said.
fn sample(recording: &Recording) -> Sample {
    let about = UnrecordedFacts {
        kind: SampleKind::Clean,
        system: String::new(),
        task: Task::default(),
        final_answer: String::new(),
        split: None,
        clean_twin: None,
    };
    Sample::from_recording(recording, about).expect("a sample")
}

/// A message in short: who, what, calls, whom it answers.
fn line(said: &SampleMessage) -> String {
    let calls: Vec<String> = said.calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
    let answers = said.answers.as_ref().map(|_| "<").unwrap_or_default();
    format!("{}{answers} {} {}", said.role, said.text, calls.join(" "))
}

/// The steps: agent, messages asked, message said.
fn steps(sample: &Sample) -> Vec<(String, Vec<String>, Option<String>)> {
    let step = |step: &aegis::dataset::SampleStep| {
        let asked = sample.input(step.step).unwrap_or_default().into_iter().map(line).collect();
        (step.agent.to_string(), asked, step.output.as_ref().map(line))
    };
    sample.steps.iter().map(step).collect()
}

const PROGRAM: [(&str, &[&str], Option<&str>); 4] = [
    ("planner", &["system You plan. ", "user What is 12 + 30? "], Some("assistant The answer is 42. ")),
    ("solver", &["system You solve. ", "user What is 12 + 30? "], Some("assistant  add({\"a\":12,\"b\":30})")),
    (
        "solver",
        &["system You solve. ", "user What is 12 + 30? ", "assistant  add({\"a\":12,\"b\":30})", "tool< 42 "],
        Some("assistant The answer is 42. "),
    ),
    ("critic", &["user fail me "], None),
];

/// Both tracers saw the same program: two agents, a tool, and a third agent whose call was refused.
#[test]
fn spans_of_real_tracers_are_runs() {
    for (file, evidence) in [
        ("genai.jsonl", "gen_ai.agent.name of the span `invoke_agent solver`"),
        ("openinference.jsonl", "agent.name of the span `solver`"),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let [recording] = &imported("otlp", &[fixture(file)], dir.path())[..] else { panic!("{file}: one run") };
        let told: Vec<_> = steps(&sample(recording))
            .into_iter()
            .map(|(agent, asked, said)| {
                let plain = |text: String| text.replace("\": ", "\":").replace(", \"", ",\"");
                (agent, asked.into_iter().map(plain).collect::<Vec<_>>(), said.map(plain))
            })
            .collect();
        let wanted = PROGRAM.map(|(agent, asked, said)| {
            (agent.to_owned(), asked.iter().map(|&line| line.to_owned()).collect::<Vec<_>>(), said.map(str::to_owned))
        });
        assert_eq!(told, wanted, "{file}");
        let told = &recording.trajectory.steps[1];
        assert_eq!((told.attribution.source, &*told.attribution.evidence), (Source::Trace, evidence), "{file}");
        let attempt = told.last_attempt().expect("an attempt");
        assert_eq!(attempt.usage.map(|usage| (usage.input, usage.output)), Some((11, 7)), "{file}");
        assert!(!attempt.exact && attempt.status.is_none() && attempt.last_byte_us.is_some(), "{file}: {attempt:?}");
        let outcome = &recording.trajectory.outcome;
        assert_eq!((outcome.verdict, outcome.reason), (Verdict::Failure, Some(Reason::Trace)), "{file}");
        assert!(outcome.evidence.contains("the span `workflow`") && outcome.evidence.contains("429"), "{file}");
        let from = recording.manifest.imported.as_ref().expect("it says where it comes from");
        assert_eq!((from.format.as_str(), from.file.as_str()), ("otlp", file));
        assert!(recording.label.is_none() && recording.sealed && recording.open_exchanges == 0, "{file}");
        assert_eq!(sample(recording).tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), {
            // The GenAI instrumentation does not write the tools on offer.
            if file == "openinference.jsonl" { vec!["add"] } else { vec![] }
        });
    }
}

/// What frameworks under real tracers wrote: the same names on the same words, whoever traced.
#[test]
fn spans_of_frameworks_name_their_agents() {
    let graph = ["intake: Add 12 and 30.", "pricer: add", "pricer: The answer is 42.", "auditor: The answer is 42."];
    let delegated = ["planner: delegate", "solver: add", "solver: The answer is 42.", "planner: The answer is 42."];
    for (format, file, expected, evidence) in [
        ("otlp", "langgraph-openllmetry.jsonl", &graph[..], "traceloop.association.properties.langgraph_node"),
        ("otlp", "langgraph-openinference.jsonl", &graph, "metadata.langgraph_node"),
        ("otlp", "langgraph-langfuse.jsonl", &graph, "langfuse.observation.metadata.langgraph_node"),
        ("langfuse", "langfuse.json", &graph, "langfuse.observation.metadata.langgraph_node"),
        ("otlp", "pydantic-ai.jsonl", &delegated, "gen_ai.agent.name"),
        ("otlp", "smolagents.jsonl", &["boss: final_answer"], "the name"),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let [recording] = &imported(format, &[fixture(file)], dir.path())[..] else { panic!("{file}: one run") };
        let told: Vec<String> = steps(&sample(recording))
            .into_iter()
            .map(|(agent, asked, said)| {
                assert!(asked.len() > 1 && asked[0].starts_with("system "), "{file}: {asked:?}");
                let said = said.unwrap_or_default();
                format!(
                    "{agent}: {}",
                    said.trim_start_matches("assistant").trim().split('(').next().unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(told, expected, "{file}");
        let first = &recording.trajectory.steps[0].attribution;
        assert!(first.source == Source::Trace && first.evidence.starts_with(evidence), "{file}: {first:?}");
        let notes = recording.notes.join("\n");
        assert!(!notes.contains("partly read") && !notes.contains("does not hold"), "{file}: {notes}");
        let wanted = if format == "langfuse" { Verdict::Success } else { Verdict::Unknown };
        assert_eq!(recording.trajectory.outcome.verdict, wanted, "{file}: {:?}", recording.trajectory.outcome);
        let asks = if file == "smolagents.jsonl" { None } else { Some("What is 12 + 30?") };
        assert!(asks.is_none() || recording.manifest.task.as_deref() == asks, "{file}: {:?}", recording.manifest.task);
    }
    let dir = tempfile::tempdir().expect("a directory");
    let runs = imported("otlp", &[fixture("ai-sdk.jsonl")], dir.path());
    let mut agents: Vec<&str> =
        runs.iter().flat_map(|run| &run.trajectory.steps).map(|step| step.attribution.agent.as_str()).collect();
    agents.sort_unstable();
    assert_eq!((runs.len(), agents), (2, vec!["critic", "solver", "solver"]), "each call of the SDK is a trace");
}

#[test]
fn what_a_trace_does_not_hold_is_counted_and_not_made_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let [recording] = &imported("otlp", &[fixture("genai-without-content.jsonl")], dir.path())[..] else {
        panic!("one run")
    };
    assert_eq!(recording.trajectory.steps.len(), 4);
    for step in &recording.trajectory.steps {
        let attempt = step.last_attempt().expect("an attempt");
        assert!(step.request.is_empty() && attempt.reply.is_empty(), "{step:?}");
        assert_eq!(attempt.usage.is_some(), step.attribution.agent.as_str() != "critic");
    }
    let notes = recording.notes.join("\n");
    assert!(notes.contains("does not hold the request of 4 calls"), "{notes}");
    assert!(notes.contains("does not hold the reply of 3 calls"), "{notes}");
}

#[test]
fn a_log_of_inspect_is_a_run_a_sample() {
    let dir = tempfile::tempdir().expect("a directory");
    let [recording] = &imported("inspect", &[fixture("inspect.json")], dir.path())[..] else { panic!("one run") };
    let told = steps(&sample(recording));
    let agents: Vec<&str> = told.iter().map(|(agent, ..)| agent.as_str()).collect();
    assert_eq!(agents, ["planner", "solver_agent", "solver_agent"]);
    let asked = format!("user {} ", "What is 1 + 1? ".repeat(20));
    assert_eq!(told[0].1, [asked]);
    assert_eq!(told[2].1.len(), 4, "the pool's messages are in the request: {:?}", told[2].1);
    assert_eq!(told[2].1[3], "tool< 42 ");
    assert_eq!(told[2].2.as_deref(), Some("assistant The answer is 42. "));
    let outcome = &recording.trajectory.outcome;
    assert_eq!((outcome.verdict, outcome.evidence.as_str()), (Verdict::Success, "score `includes` is \"C\""));
    assert_eq!(recording.trajectory.steps[1].turn, recording.trajectory.steps[2].turn, "one tool loop");
}

#[test]
fn a_trial_of_harbor_is_a_run_with_its_reward() {
    let dir = tempfile::tempdir().expect("a directory");
    let [recording] = &imported("atif", &[fixture("trial")], dir.path())[..] else { panic!("one run") };
    let told = steps(&sample(recording));
    let agents: Vec<&str> = told.iter().map(|(agent, ..)| agent.as_str()).collect();
    assert_eq!(agents, ["terminus", "searcher", "terminus"], "the helper's step stands where it was called");
    assert_eq!(told[1].1, ["user Find x. "], "a helper has a conversation of its own");
    assert_eq!(told[2].1.last().map(String::as_str), Some("tool< error: x "));
    let outcome = &recording.trajectory.outcome;
    assert_eq!((outcome.verdict, outcome.evidence.as_str()), (Verdict::Failure, "reward `reward` is 0.0"));
    let from = recording.manifest.imported.as_ref().expect("imported");
    assert!(from.requests.starts_with("rebuilt"), "{}", from.requests);
}

#[test]
fn files_of_one_name_are_told_apart() {
    let dir = tempfile::tempdir().expect("a directory");
    for (trial, reward) in [("a", 0), ("b", 1)] {
        let agent = dir.path().join("job").join(trial).join("agent");
        fs::create_dir_all(&agent).expect("made");
        let document = fs::read_to_string(fixture("trial/agent/trajectory.json")).expect("readable");
        fs::write(agent.join("trajectory.json"), document.replace("Done.", trial)).expect("written");
        let result = json!({"verifier_result": {"rewards": {"reward": reward}}}).to_string();
        fs::write(agent.join("../result.json"), result).expect("written");
    }
    let job = dir.path().join("job").to_str().expect("text").to_owned();
    let runs = imported("atif", &[job], &dir.path().join("logs"));
    let verdicts: Vec<Verdict> = runs.iter().map(|run| run.trajectory.outcome.verdict).collect();
    assert_eq!(verdicts, [Verdict::Failure, Verdict::Success]);
    let hashes: Vec<&str> =
        runs.iter().filter_map(|run| Some(run.manifest.imported.as_ref()?.blake3.as_str())).collect();
    assert!(hashes.len() == 2 && hashes[0] != hashes[1] && hashes[0].len() == 64, "{hashes:?}");
}

#[tokio::test]
async fn verbs_read_an_imported_run_and_none_takes_it_for_a_recorded_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let otlp = fixture("genai.jsonl");
    let first = ["import", "--from", "otlp", &otlp, "--log-dir", "logs"];
    let (code, said, talk) = run(dir, &first).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(said.contains("4 calls: critic 1, planner 1, solver 2  failure"), "{said}");
    assert!(talk.contains("RESULT  ok 1 run with 4 calls from 1 file, 0 defects; in logs"), "{talk}");
    let path = runs(&dir.join("logs")).remove(0);
    let made = format!("logs/{}", path.file_name().expect("a name").to_str().expect("text"));
    for (arguments, code, words) in [
        (&["show", &made][..], 0, "imported otlp genai.jsonl"),
        (&["show", &made, "--step", "1"], 0, "(remade from a trace)"),
        (&["runs", "logs"], 0, "imported from otlp"),
        (&["diff", &made, &made], 0, ""),
        (&["agents", &made], 0, "solver"),
        (&["export", &made, "--to", "atif", "--out", "out"], 0, ""),
        (&["replay", &made], 2, "was imported from otlp: its bodies are remade"),
        (&["fork", &made, "--at", "1", "--empty", "--", "true"], 2, "was imported from otlp"),
        (&["trace", &made, "--redraw", "--check", "true", "--", "true"], 2, "was imported from otlp"),
        (&["prove", &made, "--check", "true", "--", "true"], 2, "was imported from otlp"),
    ] {
        let (ended, said, talk) = run(dir, arguments).await;
        assert_eq!(ended, Some(code), "{arguments:?}: {said} {talk}");
        assert!(format!("{said}{talk}").contains(words), "{arguments:?}: {said} {talk}");
    }
    let before = fs::read(path.join("run.json")).expect("readable");
    let (code, _, talk) = run(dir, &first).await;
    assert!(code == Some(2) && talk.contains("already") && talk.contains("--overwrite"), "{talk}");
    let (code, _, talk) = run(dir, &[&first[..], &["--overwrite"]].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    assert_eq!(fs::read(path.join("run.json")).expect("readable"), before, "the same trace makes the same run");
    // A recorded run is never replaced, whatever is said.
    let mut manifest: Value = serde_json::from_slice(&before).expect("JSON");
    manifest.as_object_mut().expect("an object").remove("imported");
    fs::write(path.join("run.json"), manifest.to_string()).expect("written");
    let (code, _, talk) = run(dir, &[&first[..], &["--overwrite"]].concat()).await;
    assert!(code == Some(2) && talk.contains("it was recorded and is never replaced"), "{talk}");
}

#[tokio::test]
async fn what_cannot_be_imported_says_where_and_what_to_type() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let span = |id: &str, parent: &str| {
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": id, "parentSpanId": parent,
            "name": "chat m", "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]}]}]}]})
        .to_string()
    };
    let round = format!("{}\n{}\n", span("a", "b"), span("b", "a"));
    let torn = format!("{}\n{{\"resourceSpans\": [", span("a", ""));
    let deep = "[".repeat(100_000);
    // A few lines name one long message so often that the request would have 100 MB.
    let bomb = json!({"eval": {}, "samples": [{"id": "bomb",
        "events_data": {"messages": [{"role": "user", "content": "x".repeat(1 << 20)}]},
        "events": [{"event": "model", "input_refs": vec![[0, 1]; 100]}]}]})
    .to_string();
    for (name, text) in [
        ("bomb.json", bomb.as_str()),
        ("empty.json", ""),
        ("words.json", "no trace at all"),
        ("other.json", "{\"a\": 1}"),
        ("deep.json", &deep),
        ("log.eval", "PK\u{3}\u{4}"),
        ("round.jsonl", &round),
        ("torn.jsonl", &torn),
        (
            "wide.json",
            "{\"eval\": {}, \"samples\": [{\"id\": 1, \"events_data\": {\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}, \"events\": [{\"event\": \"model\", \"input_refs\": [[0, 18446744073709551615], [1, 0], [\"a\"]]}]}]}",
        ),
    ] {
        fs::write(dir.join(name), text).expect("written");
    }
    for (arguments, code, words) in [
        (&["--from", "otlp", "empty.json"][..], 2, "empty.json: no JSON: EOF while parsing a value at line 1"),
        (&["--from", "otlp", "words.json"], 2, "no JSON: expected"),
        (&["--from", "otlp", "other.json"], 2, "expected an object with `resourceSpans`"),
        (&["--from", "inspect", "other.json"], 2, "expected an object with `eval` and `samples`"),
        (&["--from", "atif", "other.json"], 2, "`schema_version` of `ATIF-v1…`"),
        (&["--from", "otlp", "deep.json"], 2, "recursion limit"),
        (&["--from", "inspect", "log.eval"], 2, "inspect log convert FILE --to json"),
        (&["--from", "otlp", "nothing"], 2, "cannot read `nothing`"),
        (&["--from", "otlp", "other.json", "--out", "x"], 2, "traces become runs"),
        (&["--from", "mast", "other.json"], 2, "`--out DIR`"),
        (&["--from", "langfuse", "other.json"], 2, "expected a trace with `observations`"),
        (&["--from", "log", "other.json"], 2, "--map agent=NAME"),
        (&["--from", "otlp", "torn.jsonl"], 0, "torn.jsonl:2: no JSON"),
        // Each of two spans is the other's parent: neither is the call.
        (&["--from", "otlp", "round.jsonl", "--run-by", "file"], 2, "hold no model call"),
        (&["--from", "inspect", "bomb.json"], 0, "left out: requests that are too long, alone or together (1)"),
        (&["--from", "inspect", "wide.json"], 0, "1 call without a request"),
    ] {
        let (ended, said, talk) = run(dir, &[&["import", "--log-dir", "logs"][..], arguments].concat()).await;
        assert_eq!(ended, Some(code), "{arguments:?}: {said} {talk}");
        assert!(format!("{said}{talk}").contains(words), "{arguments:?}: {said} {talk}");
    }
}

#[tokio::test]
async fn a_log_with_names_of_its_own_is_read_by_naming_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let entry = json!({"who": "planner", "text": "Add.", "annex": "more words"});
    fs::write(dir.join("own.jsonl"), format!("{entry}\n")).expect("written");
    for (arguments, code, words) in [
        (&["log", "own.jsonl"][..], 2, "the entry names nobody"),
        (&["log", "own.jsonl", "--map", "whom=who"], 2, "FIELD one of agent, content, time"),
        (&["otlp", "own.jsonl", "--map", "agent=who"], 2, "names the fields of a plain log"),
        (&["log", "own.jsonl", "--map", "agent=who"], 0, "1 call (1 partly read): planner 1"),
        (
            &["log", "own.jsonl", "--map", "agent=who", "--overwrite"],
            0,
            "partly read: text that no reader knows in `annex` (1)",
        ),
    ] {
        let (ended, said, talk) = run(dir, &[&["import", "--log-dir", "logs", "--from"][..], arguments].concat()).await;
        assert_eq!(ended, Some(code), "{arguments:?}: {said} {talk}");
        assert!(format!("{said}{talk}").contains(words), "{arguments:?}: {said} {talk}");
    }
}

/// Tracers without a root span give each call a trace of its own.
#[tokio::test]
async fn traces_of_one_session_or_file_may_be_one_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let lines = (0..4).map(|at: u64| {
        let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let said = json!([{"role": "user", "parts": [{"type": "text", "content": format!("question {at}")}]}]);
        let span = json!({"traceId": format!("t{at}"), "spanId": "s", "name": "chat m", "startTimeUnixNano": (9 - at).to_string(),
            "attributes": [attribute("gen_ai.operation.name", "chat"), attribute("session.id", ["x", "y"][(at % 2) as usize]),
                attribute("gen_ai.input.messages", &said.to_string())]});
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).to_string()
    });
    fs::write(dir.join("calls.jsonl"), lines.collect::<Vec<_>>().join("\n")).expect("written");
    for (by, expected) in [("trace", vec![1, 1, 1, 1]), ("session", vec![2, 2]), ("file", vec![4])] {
        let (code, said, talk) =
            run(dir, &["import", "--from", "otlp", "calls.jsonl", "--log-dir", by, "--run-by", by]).await;
        assert_eq!(code, Some(0), "{talk}");
        let recordings: Vec<Recording> =
            runs(&dir.join(by)).iter().map(|run| recording::read(run).expect("reads")).collect();
        let counts: Vec<usize> = recordings.iter().map(|recording| recording.trajectory.steps.len()).collect();
        assert_eq!(counts, expected, "{by}");
        assert_eq!(said.contains("`--run-by file` makes one of a file"), by == "trace", "{said}");
        if by == "file" {
            let asked = steps(&sample(&recordings[0]));
            assert_eq!(asked[0].1, ["user question 3 "], "steps are in the order of their times");
            let sources: Vec<Source> =
                recordings[0].trajectory.steps.iter().map(|step| step.attribution.source).collect();
            assert!(sources.iter().all(|source| *source != Source::Trace), "nobody is named: {sources:?}");
        }
    }
}
