//! What `show` prints.

use bytes::Bytes;

use super::*;
use crate::viewer::recorded;

fn body(content: &str) -> Bytes {
    serde_json::json!({"model": "m", "messages": [
        {"role": "system", "content": "You solve."}, {"role": "user", "content": content}]})
    .to_string()
    .into()
}

fn reply(content: &str) -> Bytes {
    serde_json::json!({"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]})
    .to_string()
    .into()
}

/// A run of two steps: the second one's reply is changed.
fn two_steps(logs: &std::path::Path, agent: &str, said: &str) {
    let recorder = recorded::recorder(logs);
    let (request, before) = (body("What is 6 × 4?"), reply(said));
    let after = reply(&said.replace("24", "27"));
    for step in 0..2 {
        recorded::call(&recorder, step, agent, &request, &before, (step == 1).then_some(&after));
    }
    recorder.seal().expect("seals");
}

fn shown(logs: &std::path::Path, step: Option<u32>, before_after: bool, json: bool) -> String {
    let mut out = Vec::new();
    let arguments = ShowArgs { step: step.map(|step| Steps(step, step)), before_after, ..show_args(logs) };
    run(&arguments, json, Screen::new(110, false), &mut out).expect("shows");
    String::from_utf8(out).expect("text")
}

/// Nothing but the run.
fn show_args(logs: &std::path::Path) -> ShowArgs {
    ShowArgs {
        dir: logs.join("r"),
        step: None,
        new: false,
        all: false,
        agent: None,
        before_after: false,
        verdict: false,
        junit: None,
        watch_rules: None,
        allow: Vec::new(),
        config: None,
    }
}

fn text(arguments: &ShowArgs, screen: Screen) -> String {
    let mut out = Vec::new();
    run(arguments, false, screen, &mut out).expect("shows");
    String::from_utf8(out).expect("text")
}

#[test]
fn a_run_its_steps_and_what_was_changed() {
    let logs = tempfile::tempdir().expect("a directory");
    two_steps(logs.path(), "solver", "The product is 24, that is certain.");
    assert_eq!(
        shown(logs.path(), None, false, false),
        "\
run      r  (sealed)
began    1970-01-01T00:00:00Z  upstream http://upstream.test
outcome  unknown
label    none: no gate refuses one, but none was written when the run ended
plan     none
can      replay, fork, trace, retry; not prove (no label)

step  call  agent   status   ms  tokens  injected  reply
   0     0  solver  200     2.0                    The product is 24, that is certain.
   1     1  solver  200     2.0          *FM-2.6   The product is 27, that is certain.
"
    );
    assert_eq!(
        shown(logs.path(), Some(1), false, false),
        "\
step 1  turn 1  solver call 1  (known by the path)
POST /v1/chat/completions  surface openai_chat
injected FM-2.6 reasoning-action mismatch, corrupt_number, response side, delivered

== request
   (2 messages are known since step 0: `--all` shows them)

== reply 0: 200  first byte 1.5 ms  whole 2.0 ms
-- assistant (stop)
The product is 27, that is certain.

*FM-2.6: `--before-after` shows what was changed
"
    );
    assert_eq!(
        shown(logs.path(), None, true, false).split_once("\n\n").expect("a head").1,
        "\
== step 1  solver call 1  response  corrupt_number FM-2.6 reasoning-action mismatch
-- assistant (stop)
The product is [-24,-]{+27,+} that is certain.

"
    );
}

#[test]
fn data_has_stable_names() {
    let logs = tempfile::tempdir().expect("a directory");
    two_steps(logs.path(), "solver", "The product is 24.");
    let value: serde_json::Value = serde_json::from_str(&shown(logs.path(), None, true, true)).expect("JSON");
    for key in ["run", "outcome", "label", "steps", "sealed", "notes"] {
        assert!(value.get(key).is_some(), "{key}");
    }
    let step = &value["steps"][1];
    assert_eq!(step["agent"], "solver");
    assert_eq!(step["request"]["messages"][0]["content"], "You solve.");
    assert_eq!(step["text"], "The product is 27.");
    assert_eq!(step["injected"][0]["failure_mode"]["code"], "FM-2.6");
    assert_eq!(step["changes"][0]["side"], "response");
}

#[test]
fn nothing_that_was_recorded_steers_the_terminal() {
    let logs = tempfile::tempdir().expect("a directory");
    two_steps(logs.path(), "solver", "\u{1b}]0;title\u{7} 24 \r\u{202e}gnp.exe \u{9b}31m");
    for (step, before_after) in [(None, false), (Some(1), false), (None, true), (Some(1), true)] {
        let text = shown(logs.path(), step, before_after, false);
        let steers = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(steers, None, "{text}");
    }
}

#[test]
fn a_step_that_is_not_there() {
    let logs = tempfile::tempdir().expect("a directory");
    two_steps(logs.path(), "solver", "24");
    for (arguments, said) in [
        (ShowArgs { step: Some(Steps(9, 9)), ..show_args(logs.path()) }, "step `9` is not in the run: expected 0 to 1"),
        (
            ShowArgs { agent: Some("critic".to_owned()), ..show_args(logs.path()) },
            "agent `critic` has no step in the run: expected one of solver",
        ),
    ] {
        let failure = run(&arguments, false, Screen::new(110, false), &mut Vec::new()).expect_err("no such step");
        assert_eq!((failure.exit, failure.error.to_string().as_str()), (Exit::Usage, said));
    }
}

#[test]
fn ranges_of_steps() {
    for (text, expected) in [
        ("3", Some(Steps(3, 3))),
        ("3-7", Some(Steps(3, 7))),
        ("7-3", None),
        ("", None),
        ("-3", None),
        ("3-", None),
        ("a", None),
    ] {
        assert_eq!(text.parse::<Steps>().ok(), expected, "{text}");
    }
}

#[test]
fn what_is_new_or_all_of_one_agent() {
    let logs = tempfile::tempdir().expect("a directory");
    two_steps(logs.path(), "solver", "The product is 24, that is certain.");
    let screen = Screen::new(110, false);
    let new = text(&ShowArgs { new: true, agent: Some("solver#0".to_owned()), ..show_args(logs.path()) }, screen);
    let all = text(&ShowArgs { all: true, ..show_args(logs.path()) }, screen);
    assert_eq!((new.matches("What is 6 × 4?").count(), all.matches("What is 6 × 4?").count()), (1, 2), "{new}");
    let range = text(&ShowArgs { step: Some(Steps(0, 1)), ..show_args(logs.path()) }, screen);
    assert_eq!(range.matches("== reply 0").count(), 2);
}

#[test]
fn lines_fit_the_terminal_and_colour_is_where_it_is_asked_for() {
    let logs = tempfile::tempdir().expect("a directory");
    two_steps(logs.path(), "solver", &"The product is 24, that is certain. ".repeat(9));
    for width in [40, 60, 80, 200] {
        let shown = text(&show_args(logs.path()), Screen::new(width, false));
        let rows = shown.split_once("\n\n").expect("a table").1;
        let longest = rows.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(width) && longest >= Some(width - 2), "{width}: {rows}");
    }
    let painted = text(&show_args(logs.path()), Screen::new(110, true));
    let plain: String = painted.split('\u{1b}').enumerate().fold(String::new(), |text, (at, piece)| {
        text + if at == 0 { piece } else { piece.split_once('m').map_or(piece, |(_, rest)| rest) }
    });
    assert!(painted.contains('\u{1b}') && plain == text(&show_args(logs.path()), Screen::new(110, false)), "{plain}");
}
