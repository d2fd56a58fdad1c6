//! Samples are built from real recordings, written, and read back the same.

use std::{ops::Range, path::Path};

use bytes::Bytes;
use jiff::Timestamp;

use super::*;
use crate::{
    recording::{
        self, Captured, Close, Launched, Manifest as RunManifest, Open, RecordedCheck, Recorder, Recording, Settings,
        sample,
    },
    trajectory::{
        AgentName, Attribution, FailureMode, LabelStatus, ModeClaim, Outcome, RunId, Source, StepIndex, Verdict,
    },
};

pub(super) fn request_body(messages: &[(&str, &str)]) -> Bytes {
    let messages: Vec<_> =
        messages.iter().map(|(role, text)| serde_json::json!({"role": role, "content": text})).collect();
    Bytes::from(serde_json::json!({"model": "m", "messages": messages}).to_string())
}

pub(super) fn answered(text: &str) -> Bytes {
    answered_as("x", text)
}

/// A reply as a backend sends it that numbers its replies and says when.
pub(super) fn answered_as(id: &str, text: &str) -> Bytes {
    let answer =
        serde_json::json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
    Bytes::from(
        serde_json::json!({"id": id, "created": id.len(), "system_fingerprint": format!("fp-{id}"), "model": "m",
            "object": "chat.completion", "choices": [answer]})
        .to_string(),
    )
}

/// A call to be recorded: agent, its number, when it came and ended (µs), request and replies.
pub(super) struct Call<'a> {
    agent: &'a str,
    call: u32,
    from: u64,
    to: u64,
    pub(super) request: Bytes,
    pub(super) reply: Bytes,
    /// What the agent got instead.
    pub(super) delivered: Option<Bytes>,
}

impl Call<'_> {
    fn open(&self, recorder: &Recorder, step: StepIndex) {
        let attribution = Attribution {
            agent: AgentName::parse(self.agent).expect("a name"),
            instance: 0,
            source: Source::Header,
            evidence: String::new(),
            confidence: 1.0,
            ambiguous: false,
        };
        let open = Open { call: self.call, at_us: self.from, ..sample::opening(step, &attribution, &self.request) };
        recorder.open(open).expect("records");
        if let Some(delivered) = &self.delivered {
            recorder.inject(sample::injection(step, &self.reply, delivered)).expect("records");
        }
    }

    fn close(&self, recorder: &Recorder, step: StepIndex) {
        let took = Some(self.to - self.from);
        let whole = Captured::Whole(std::slice::from_ref(&self.reply));
        let close = Close {
            delivered: self.delivered.as_ref(),
            reply_with_logprobs: None,
            first_byte_us: took,
            last_byte_us: took,
            ..sample::closing(step, whole)
        };
        recorder.close(close).expect("records");
    }
}

pub(super) fn call<'a>(agent: &'a str, call: u32, at: Range<u64>, said: &[(&str, &str)], reply: &str) -> Call<'a> {
    Call {
        agent,
        call,
        from: at.start,
        to: at.end,
        request: request_body(said),
        reply: answered(reply),
        delivered: None,
    }
}

pub(super) fn record(logs: &Path, name: &str, calls: &[Call<'_>], verdict: Verdict) -> Recording {
    let run = RunId::parse(name).expect("an id");
    let command = vec!["python".to_owned(), "CANARY.py".to_owned()];
    let (directory, upstream) = (Some("/home/CANARY".to_owned()), Some("http://CANARY/v1".to_owned()));
    let check = Some(RecordedCheck::Command("grep CANARY".to_owned()));
    let environment = [("PLACE".to_owned(), "CANARY".to_owned())].into();
    let launched = Launched { command, directory, environment, upstream, check, ..Launched::default() };
    let manifest = RunManifest::new(run, "simulator", Timestamp::UNIX_EPOCH).with_plan("format = 1", 7);
    let manifest = RunManifest { launched: Some(launched), ..manifest };
    let recorder = Recorder::create(logs, manifest, &Settings::default()).expect("creates");
    // What happened first stands first in a log; at the same moment, an end before a beginning.
    let mut events: Vec<(u64, bool, StepIndex, &Call<'_>)> = Vec::new();
    for (step, call) in (0..).zip(calls) {
        events.extend([(call.from, true, step, call), (call.to, false, step, call)]);
    }
    events.sort_by_key(|(at, opens, step, _)| (*at, *opens, *step));
    for (_, opens, step, call) in events {
        if opens { call.open(&recorder, step) } else { call.close(&recorder, step) }
    }
    let outcome = Outcome { verdict, reason: None, evidence: "expected `4`, got `5`".to_owned() };
    recorder.set_outcome(outcome).expect("sets");
    recorder.seal().expect("seals");
    let dir = logs.join(name);
    let _ = crate::ruling::settle(&dir, None).expect("reads");
    recording::read(&dir).expect("reads")
}

pub(super) fn sample_facts(kind: SampleKind, twin: Option<&str>) -> UnrecordedFacts {
    let task = Task { id: "t1".to_owned(), question: "2 + 2?".to_owned(), answer: "4".to_owned(), ..Task::default() };
    UnrecordedFacts {
        kind,
        system: "pair".to_owned(),
        task,
        final_answer: "5".to_owned(),
        split: Some(Split::Train),
        clean_twin: twin.map(str::to_owned),
    }
}

/// A solver whose first answer is corrupted, and a critic.
pub(super) fn failed(logs: &Path, name: &str) -> Recording {
    let opening = [("system", "You solve."), ("user", "2 + 2?")];
    let second = [opening[0], opening[1], ("assistant", "5"), ("user", "sure?")];
    let mut first = call("solver", 0, 0..10, &opening, "4");
    first.delivered = Some(answered("5"));
    let critic = call("critic", 0, 20..30, &[("system", "You check."), ("user", "5")], "fine");
    record(logs, name, &[first, critic, call("solver", 1, 40..50, &second, "5")], Verdict::Failure)
}

/// A failure whose recording is kept in `logs` of a directory.
pub(super) fn recorded_failure(dir: &Path) -> Sample {
    let logs = dir.join("logs");
    std::fs::create_dir_all(&logs).expect("makes");
    Sample::from_recording(&failed(&logs, "run-one"), sample_facts(SampleKind::Failure, None)).expect("builds")
}

#[test]
fn a_recording_becomes_a_sample() {
    let logs = tempfile::tempdir().expect("a directory");
    let recording = failed(logs.path(), "r1");
    let sample = Sample::from_recording(&recording, sample_facts(SampleKind::Failure, Some("r0"))).expect("builds");
    assert_eq!((sample.id.as_str(), sample.outcome, sample.backend.as_str()), ("r1", Verdict::Failure, "simulator"));
    assert_eq!(sample.agents().iter().map(|agent| agent.as_str()).collect::<Vec<_>>(), ["solver", "critic"]);
    let output = |step: usize| sample.steps[step].output.as_ref().map(|said| said.text.as_str());
    assert_eq!((output(0), output(1)), (Some("5"), Some("fine")), "what the agent got");

    let last = sample.steps[2].input.as_ref().expect("known");
    assert_eq!((last.follows, last.kept, last.messages.len()), (Some(0), 2, 2), "only new messages are written");
    let whole = sample.input(2).expect("known");
    assert_eq!(whole.iter().map(|said| said.text.as_str()).collect::<Vec<_>>(), ["You solve.", "2 + 2?", "5", "sure?"]);

    assert!(recording.manifest.launched.is_some());
    assert!(
        !serde_json::to_string(&sample).expect("writes").contains("CANARY"),
        "how it was started stays with the run"
    );

    let truth = sample.label.expect("a label");
    assert_eq!((truth.status, truth.steps()), (LabelStatus::Delivered, vec![0]));
    assert_eq!(truth.errors[0].failure_mode, Some(Mode::from(FailureMode::ReasoningActionMismatch)));
    let change = &truth.changes[0];
    assert_eq!((change.before[0].text.as_str(), change.after[0].text.as_str()), ("4", "5"));
    assert_ne!(truth.errors[0].before, truth.errors[0].after);
}

/// The sample of a run whose solver's reply had an id, and was altered; from a backend at a port.
fn altered(logs: &Path, run: &str, id: &str, upstream: &str) -> (Sample, Recording) {
    let mut first = call("solver", 0, 0..10, &[("user", "2 + 2?")], "4");
    (first.reply, first.delivered) = (answered_as(id, "4"), Some(answered_as(id, "5")));
    let mut recording = record(logs, run, &[first], Verdict::Failure);
    upstream.clone_into(&mut recording.manifest.upstream);
    let mut sample = Sample::from_recording(&recording, sample_facts(SampleKind::Failure, Some("r0"))).expect("builds");
    sample.id.clear();
    (sample, recording)
}

#[test]
fn the_same_words_make_the_same_row_whatever_the_backend_numbers() {
    let logs = tempfile::tempdir().expect("a directory");
    let (one, recorded) = altered(logs.path(), "r1", "chatcmpl-1", "http://127.0.0.1:4001");
    let (other, _) = altered(logs.path(), "r2", "chatcmpl-longer", "http://127.0.0.1:4002");
    let bytes = |sample: &Sample| serde_json::to_string(sample).expect("JSON");
    assert_eq!(bytes(&one), bytes(&other));
    assert_eq!(one.backend, "local");

    // The bytes are still told by the run: its label, and its log.
    let hash = |body: &[u8]| blake3::hash(body).to_hex().to_string();
    let attempt = recorded.trajectory.steps[0].last_attempt().expect("one");
    let label: serde_json::Value =
        serde_json::from_slice(&std::fs::read(logs.path().join("r1/label.json")).expect("there")).expect("JSON");
    assert_eq!(label["errors"][0]["before_bytes"], hash(&attempt.reply));
    assert_eq!(label["errors"][0]["after_bytes"], hash(attempt.delivered()));
    let truth = one.label.expect("a label");
    assert!(truth.errors[0].before != truth.errors[0].after && truth.errors[0].before != hash(&attempt.reply));
}

#[test]
fn labels_of_earlier_versions_are_read() {
    let logs = tempfile::tempdir().expect("a directory");
    let recording = failed(logs.path(), "r1");
    let path = logs.path().join("r1/label.json");
    let text = std::fs::read_to_string(&path).expect("there");
    let old = text.replace("\"before_bytes\"", "\"before\"").replace("\"after_bytes\"", "\"after\"");
    assert_ne!(old, text);
    std::fs::write(&path, old).expect("writes");
    assert_eq!(recording::read(&logs.path().join("r1")).expect("reads").label, recording.label);
}

#[test]
fn an_edit_under_two_declared_modes_is_one_error_with_both() {
    let logs = tempfile::tempdir().expect("a directory");
    let recording = failed(logs.path(), "r1");
    let declared = |modes: &[FailureMode]| {
        let labels = modes.iter().map(|mode| {
            let mut label = recording.label.clone().expect("a label");
            label.errors[0].error.failure_mode = Some(*mode);
            label
        });
        let mut labels = labels.collect::<Vec<_>>().into_iter();
        let mut recording = Recording { label: labels.next(), ..recording.clone() };
        let planted = recording.trajectory.steps.iter_mut().flat_map(|step| &mut step.injected);
        planted.for_each(|error| error.failure_mode = modes.first().copied());
        let mut sample = Sample::from_recording(&recording, sample_facts(SampleKind::Failure, None)).expect("builds");
        labels.for_each(|label| sample.label.as_mut().expect("a label").declare(&label));
        sample.label.expect("a label").errors.remove(0)
    };
    let (first, second) = (FailureMode::ReasoningActionMismatch, FailureMode::IncorrectVerification);
    let one = declared(&[first]);
    assert_eq!(
        (one.mode_claim.clone(), one.other_modes.len()),
        (Some(ModeClaim::looked_at(Some("reasoned-action"))), 0)
    );
    let both = declared(&[first, second]);
    assert_eq!(both, declared(&[second, first, second]), "the order of plans does not matter");
    let codes: Vec<_> = both.modes().map(|mode| mode.code.as_str()).collect();
    assert_eq!(codes, ["FM-2.6", "FM-3.3"]);
}

#[test]
fn overlapping_steps_stand_in_one_order_and_the_label_follows() {
    let logs = tempfile::tempdir().expect("a directory");
    let said = |name: &'static str| [("user", name)];
    let opening = call("zoe", 0, 0..10, &said("begin"), "go");
    let closing = |at| call("ada", 1, at, &said("end"), "done");
    // bob and ada overlap; whichever came first, ada stands first.
    let ada = |at| call("ada", 0, at, &said("a"), "1");
    let bob = |at| Call { delivered: Some(answered("3")), ..call("bob", 0, at, &said("b"), "2") };
    let orders = [
        [opening, ada(20..40), bob(21..50), closing(60..70)],
        [call("zoe", 0, 0..10, &said("begin"), "go"), bob(20..50), ada(21..30), closing(60..70)],
    ];
    let mut samples = Vec::new();
    for (number, calls) in orders.iter().enumerate() {
        let recording = record(logs.path(), &format!("r{number}"), calls, Verdict::Failure);
        let mut sample = Sample::from_recording(&recording, sample_facts(SampleKind::Failure, None)).expect("builds");
        sample.id.clear();
        samples.push(sample);
    }
    assert_eq!(samples[0], samples[1]);
    let agents: Vec<_> = samples[0].steps.iter().map(|step| step.agent.as_str()).collect();
    assert_eq!(agents, ["zoe", "ada", "bob", "ada"]);
    assert_eq!(samples[0].label.as_ref().expect("a label").steps(), [2]);
}

#[test]
fn overlapping_calls_of_one_agent_are_all_unsure() {
    let logs = tempfile::tempdir().expect("a directory");
    let said = |name: &'static str| [("user", name)];
    let planted = |at| Call { delivered: Some(answered("3")), ..call("ada", 0, at, &said("a"), "2") };
    for (number, (second, unsure)) in [(30..60, true), (49..50, true), (50..60, false)].into_iter().enumerate() {
        let calls = [
            planted(20..50),
            call("bob", 0, 20..90, &said("long"), "4"),
            call("ada", 1, second.clone(), &said("b"), "2"),
            call("ada", 2, 70..80, &said("c"), "2"),
        ];
        let recording = record(logs.path(), &format!("r{number}"), &calls, Verdict::Failure);
        let marks: Vec<_> = recording.trajectory.steps.iter().map(|step| step.overlapping).collect();
        assert_eq!(marks, [unsure, false, unsure, false], "{second:?}");
        assert_eq!(recording.label.is_none(), unsure, "{second:?}");
        let sample = Sample::from_recording(&recording, sample_facts(SampleKind::Failure, None)).expect("builds");
        let ambiguous =
            |call| sample.steps.iter().any(|step| step.agent.as_str() == "ada" && step.call == call && step.ambiguous);
        assert_eq!([0, 1, 2].map(ambiguous), [unsure, unsure, false], "{second:?}");
    }
}

#[test]
fn a_step_that_waited_stays_after_what_it_waited_for() {
    let logs = tempfile::tempdir().expect("a directory");
    let said = |name: &'static str| [("user", name)];
    // One long call overlaps all; `ada` answers what `zed` said, so it stays after it.
    let calls = [
        call("mia", 0, 0..100, &said("long"), "x"),
        call("zed", 0, 10..20, &said("z"), "1"),
        call("ada", 0, 30..40, &said("a"), "2"),
    ];
    let recording = record(logs.path(), "r", &calls, Verdict::Success);
    let sample = Sample::from_recording(&recording, sample_facts(SampleKind::Clean, None)).expect("builds");
    let agents: Vec<_> = sample.steps.iter().map(|step| step.agent.as_str()).collect();
    assert_eq!(agents, ["mia", "zed", "ada"]);
}

#[test]
fn a_writer_that_is_dropped_leaves_what_was_there() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join(FILE), "before").expect("writes");
    drop(Writer::create(dir.path()).expect("creates"));
    assert_eq!(std::fs::read_to_string(dir.path().join(FILE)).expect("there"), "before");
    assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 1);
}

#[test]
fn bad_lines_are_named_and_the_next_ones_are_read() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = tempfile::tempdir().expect("a directory");
    let sample =
        Sample::from_recording(&failed(logs.path(), "r"), sample_facts(SampleKind::Failure, None)).expect("builds");
    let good = serde_json::to_string(&sample).expect("serialises");
    let future = good.replacen("\"format\":1", "\"format\":2", 1);
    let path = dir.path().join("some.jsonl");
    let text = format!("{good}\n\n{{\"history\":[]}}\n{future}\n{good}\n{}", &good[..100]);
    std::fs::write(&path, text).expect("writes");
    let dataset = Dataset::open(&path).expect("a file");
    let read: Vec<_> = dataset.samples().collect();
    let shown: Vec<_> =
        read.iter().map(|read| read.as_ref().err().map(ToString::to_string).unwrap_or_default()).collect();
    assert!(read[0].is_ok() && read[3].is_ok());
    assert!(shown[1].contains("some.jsonl:3:") && shown[1].contains("aegis import"), "{}", shown[1]);
    assert!(shown[2].contains("some.jsonl:4: the sample has format 2"), "{}", shown[2]);
    assert!(shown[4].contains("some.jsonl:6:") && shown[4].contains("cut"), "{}", shown[4]);
    assert!(matches!(Dataset::open(dir.path()), Err(DatasetError::NotADataset { .. })));
}

#[test]
fn tasks_are_read_with_their_own_fields() {
    let text = "{\"id\":\"a\",\"question\":\"?\",\"answer\":\"1\",\"check\":{\"numeric\":{}},\"topic\":\"sums\"}\n";
    let tasks = parse_tasks(text, Path::new("t.jsonl")).expect("reads");
    assert_eq!(tasks[0].extra["topic"], "sums");
    assert_eq!(tasks[0].check.as_ref().map(crate::verify::Check::name), Some("numeric"));
    for (bad, why) in [
        ("{\"id\":\"a\"}", "t.jsonl:1:"),
        ("{\"id\":\" \",\"question\":\"?\"}", "not empty"),
        ("{\"id\":\"a\",\"question\":\"?\",\"check\":{\"numerc\":{}}}", "numeric"),
    ] {
        let error = parse_tasks(bad, Path::new("t.jsonl")).expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    }
    // All at once, each with one place and no word of the parser's.
    let bad =
        "{\"id\":\"ä\",\"question\":\"1 2\",\"answer\":\"6\"\nnot json\n\n[1]\n{\"id\":\"a\",\"question\":\"?\",}\n";
    let error = parse_tasks(bad, Path::new("t.jsonl")).expect_err("refused").to_string();
    let places: Vec<&str> = error.lines().filter_map(|line| line.split_once(": ")).map(|(place, _)| place).collect();
    assert_eq!(places, ["t.jsonl:1:39", "t.jsonl:2:2", "t.jsonl:4:1", "t.jsonl:5:26"], "{error}");
    for word in ["at line", "ident", "EOF", "struct"] {
        assert!(!error.contains(word), "{word}: {error}");
    }
    assert!(error.contains("ends in the middle") && error.contains("no JSON"), "{error}");
    let many = parse_tasks(&"x\n".repeat(27), Path::new("t.jsonl")).expect_err("refused").to_string();
    assert!(many.lines().count() == 21 && many.ends_with("and 7 more lines of `t.jsonl`"), "{many}");
    assert!(
        parse_tasks(&text.repeat(2), Path::new("t.jsonl")).expect_err("twice").to_string().contains("stands twice")
    );
}

#[test]
fn an_input_that_follows_nothing_is_unknown() {
    let logs = tempfile::tempdir().expect("a directory");
    let mut sample =
        Sample::from_recording(&failed(logs.path(), "r"), sample_facts(SampleKind::Failure, None)).expect("builds");
    for (follows, kept) in [(Some(2), 1), (None, 1), (Some(9), 1)] {
        sample.steps[2].input = Some(Input { follows, kept, messages: Vec::new() });
        assert_eq!(sample.input(2), None, "{follows:?}");
    }
    assert_eq!(sample.input(99), None);
}
