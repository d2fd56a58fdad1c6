//! What a row says besides its errors, ids in rows, and what a rewritten manifest says of claims.

use bytes::Bytes;
use serde_json::json;

use super::{
    samples::set,
    tests::{answered, call, record, sample_facts},
    *,
};
use crate::{
    recording::Recording,
    trajectory::{FailureMode, Label, LabelContent, Verdict},
};

/// A solver of whose two answers both are corrupted.
fn twice(logs: &std::path::Path) -> Recording {
    let opening = [("system", "You solve."), ("user", "2 + 2?")];
    let [mut first, mut second] = [call("solver", 0, 0..10, &opening, "4"), call("solver", 1, 20..30, &opening, "4")];
    (first.delivered, second.delivered) = (Some(answered("5")), Some(answered("6")));
    record(logs, "r1", &[first, second], Verdict::Failure)
}

#[test]
fn what_was_planted_besides_is_kept_and_not_labelled() {
    let logs = tempfile::tempdir().expect("a directory");
    let mut recording = twice(logs.path());
    let label: &mut LabelContent = recording.label.as_mut().expect("a label");
    label.others.push(label.errors.remove(0));
    let truth = Sample::from_recording(&recording, sample_facts(SampleKind::Failure, None))
        .expect("builds")
        .label
        .expect("a label");
    assert_eq!((truth.steps(), truth.planted_steps()), (vec![1], vec![0, 1]));
    assert_eq!((truth.errors.len(), truth.others.len()), (1, 1));
    let changed: Vec<_> = truth.changes.iter().map(|change| (change.step, change.after[0].text.as_str())).collect();
    assert_eq!(changed, [(0, "5"), (1, "6")], "every change of bytes is listed");
}

#[test]
fn modes_find_their_edits_whether_these_are_needed_or_not() {
    let logs = tempfile::tempdir().expect("a directory");
    let mut recording = twice(logs.path());
    let label: &mut LabelContent = recording.label.as_mut().expect("a label");
    // Both at one call: two injections, of which the failure needs the second.
    let mut second = label.errors.remove(1);
    (second.error.step, second.error.call, second.error.injection) = (0, 0, 1);
    label.others.push(std::mem::replace(&mut label.errors[0], second));
    let mut other = label.clone();
    other.errors.insert(0, other.others.remove(0));
    (other.errors[0].error.failure_mode, other.errors[1].error.failure_mode) =
        (Some(FailureMode::StepRepetition), Some(FailureMode::IncorrectVerification));
    let mut truth = Sample::from_recording(&recording, sample_facts(SampleKind::Failure, None))
        .expect("builds")
        .label
        .expect("a label");
    truth.declare(&Label::ruled(other));
    let codes = |error: &LabelledError| error.modes().map(|mode| mode.code.clone()).collect::<Vec<_>>();
    assert_eq!(
        (codes(&truth.others[0]), codes(&truth.errors[0])),
        (vec!["FM-1.3".into(), "FM-2.6".into()], vec!["FM-2.6".into(), "FM-3.3".into()])
    );
}

/// A run that calls two tools and is told their results, with the ids that a backend drew.
fn calling(logs: &std::path::Path, run: &str, ids: [&str; 2]) -> String {
    let called = |id: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let asked = json!({"role": "assistant", "content": null, "tool_calls": [called(ids[0]), called(ids[1])]});
    let reply = |message: &serde_json::Value| {
        Bytes::from(
            json!({"id": format!("chatcmpl-{run}"), "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
            .to_string(),
        )
    };
    let result = |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let mut first = call("solver", 0, 0..10, &[("user", "2 + 2?")], "");
    first.reply = reply(&asked);
    let mut second = call("solver", 1, 20..30, &[], "");
    // The results come the other way round: the second is numbered by its call.
    let messages = json!([{"role": "user", "content": "2 + 2?"}, asked, result(ids[1], "b"), result(ids[0], "a")]);
    second.request = Bytes::from(json!({"model": "m", "messages": messages}).to_string());
    let one = called(ids[0]);
    second.reply = reply(&json!({"role": "assistant", "content": "4", "tool_calls": [one]}));
    second.delivered = Some(reply(&json!({"role": "assistant", "content": "5", "tool_calls": [one]})));
    let recording = record(logs, run, &[first, second], Verdict::Failure);
    let mut sample = Sample::from_recording(&recording, sample_facts(SampleKind::Failure, None)).expect("builds");
    let said = sample.input(1).expect("known").into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(said[2].answers.as_ref(), Some(&said[1].calls[1].id));
    assert_eq!(said[1].calls[0].id, "call_0");
    assert_eq!(
        sample.label.as_ref().expect("a label").changes[0].after[0],
        sample.steps[1].output.clone().expect("said")
    );
    let numbered = sample.clone();
    ids::number(&mut sample);
    assert_eq!(sample, numbered, "numbering again changes nothing");
    sample.id.clear();
    serde_json::to_string(&sample).expect("JSON")
}

#[test]
fn ids_that_a_backend_draws_are_not_in_a_row() {
    let logs = tempfile::tempdir().expect("a directory");
    let one = calling(logs.path(), "r1", ["call_Qx81aa", "call_1"]);
    assert_eq!(one, calling(logs.path(), "r2", ["call_1", "toolu_0917"]));
    assert!(!one.contains("Qx81aa"), "{one}");
}

#[test]
fn claims_are_stated_anew_or_cleared_with_a_word() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |rows: usize, say: &dyn Fn(&mut Writer)| {
        let mut writer = Writer::create(dir.path()).expect("creates");
        set().iter().take(rows).for_each(|sample| writer.push(sample).expect("writes"));
        say(&mut writer);
        writer.finish().expect("finishes")
    };
    let stated = write(4, &|writer| writer.state(Claims::from_e_values(0.05, 40, &[1792.0, 1792.0], 0)));
    assert_eq!(stated.claims.as_ref().map(|claims| (claims.begun, claims.rows)), Some((40, 2)));
    let further = write(8, &|writer| writer.begun_further(3)).claims.expect("stated anew");
    assert_eq!((further.begun, further.rows, further.alpha), (43, 4, 0.05));
    for _ in 0..2 {
        let cleared = write(8, &|_| {});
        assert_eq!(cleared.claims, None);
        assert!(cleared.cleared.expect("a word").contains("of 43 claims begun"));
    }
    let again = write(4, &|writer| writer.state(Claims::from_e_values(0.05, 40, &[1792.0, 1792.0], 0)));
    assert_eq!(again, stated);
}

/// A program that greets a server of tools first and says goodbye to it last: its task is what its agent was asked.
#[test]
fn messages_to_servers_are_neither_the_question_nor_the_answer() {
    let logs = tempfile::tempdir().expect("a directory");
    let calls = [
        call("mcp/calc", 0, 0..10, &[("user", "hello")], "welcome"),
        call("solver", 0, 20..30, &[("system", "You add."), ("user", "5 and 7?")], "12"),
        call("mcp/calc", 1, 40..50, &[("user", "bye")], "see you"),
    ];
    let recording = record(logs.path(), "run", &calls, Verdict::Success);
    let sample = Sample::alone(&recording).expect("a sample");
    assert_eq!((sample.task.question.as_str(), sample.final_answer.as_str()), ("5 and 7?", "12"));
    let mut stated = recording.clone();
    stated.manifest.task = Some("Add.".to_owned());
    assert_eq!(Sample::alone(&stated).expect("a sample").task.question, "Add.");
}
