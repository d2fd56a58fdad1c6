//! The list of what must not be missed, each point with the tests that hold it; and the points that no other file holds.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

use crate::{
    lab::{Lab, Setup},
    scripted::{Act, Scripted, chunk, last_chunk, stream_head},
};

/// A point, and where it is held: (file, test).
pub type Point = (&'static str, &'static [(&'static str, &'static str)]);

const POINTS: &[Point] = &[
    (
        "an exchange that nothing changes is the same bytes both ways",
        &[
            ("tests/it/passing.rs", "an_untouched_step_leaves_as_the_bytes_that_came"),
            ("tests/it/passing.rs", "any_path_and_method_passes"),
            ("tests/it/bodies.rs", "what_no_plan_needs_to_read_passes_verbatim"),
            ("tests/it/bodies.rs", "odd_streams_pass_unchanged_and_are_kept"),
        ],
    ),
    (
        "edited JSON differs inside the edited spans only",
        &[
            ("tests/it/plans.rs", "an_edit_leaves_every_other_byte"),
            ("crates/conversation/src/surface/splice/tests.rs", "an_edit_moves_nothing_else"),
            ("tests/it/fuzz/mod.rs", "the_corpus_of_each_target_is_replayed"),
        ],
    ),
    (
        "SDKs get the same object from the edited stream and from the edited whole reply",
        &[
            ("tests/it/plans.rs", "an_edited_stream_says_what_the_edited_whole_reply_says"),
            ("tests/it/surfaces.rs", "a_plan_edits_every_surface_whole_and_streamed"),
            ("crates/conversation/src/surface/tests.rs", "every_edit_says_the_same_whole_and_streamed"),
        ],
    ),
    (
        "chat: role, id and name once, usage last, the end as found, indexes ascending",
        &[("tests/it/acceptance.rs", "an_edited_chat_stream_keeps_its_grammar")],
    ),
    (
        "responses: five places agree, ids stay, numbers without gap, an end",
        &[
            ("crates/conversation/src/surface/openai_responses/tests.rs", "five_places_say_the_edited_text"),
            ("crates/conversation/src/surface/openai_responses/tests.rs", "items_come_and_go_and_the_numbers_close_up"),
        ],
    ),
    (
        "messages: event lines stay, signed thinking is not touched",
        &[(
            "crates/conversation/src/surface/anthropic_messages/tests.rs",
            "streams_are_edited_and_signed_thinking_is_not",
        )],
    ),
    (
        "retries meet the decision of the first attempt, and are its attempts",
        &[
            ("tests/it/invariants.rs", "a_retry_meets_the_decision_of_its_first_attempt"),
            ("tests/it/identity.rs", "retries_are_attempts_of_one_step"),
            ("tests/it/faults.rs", "a_status_meets_the_attempts_that_it_names"),
        ],
    ),
    (
        "a client that leaves cancels the upstream, a slow one takes no memory, free streams do not wait",
        &[
            ("tests/it/clients.rs", "a_client_that_leaves_within_a_stream_cancels_the_call"),
            ("tests/it/memory.rs", "clients_that_do_not_read_take_little_memory"),
            ("tests/it/passing.rs", "a_stream_passes_frame_by_frame"),
        ],
    ),
    ("no secret reaches the disk", &[("tests/it/secrets.rs", "no_secret_is_at_rest_or_said")]),
    (
        "the same seed and plan decide alike whatever arrives when",
        &[("tests/it/invariants.rs", "decisions_do_not_depend_on_the_order_of_arrival")],
    ),
    (
        "what the upstream keeps unedited is said, or told again",
        &[
            ("tests/it/surfaces.rs", "state_divergence_is_labelled"),
            ("tests/it/surfaces.rs", "stored_state_is_told_again"),
            ("tests/it/stored_state.rs", "the_whole_chain_after_an_edited_reply_is_marked"),
            ("tests/it/stored_state.rs", "a_fetch_of_an_edited_reply_undoes_the_edit"),
            ("tests/it/stored_state.rs", "conversations_are_marked_or_told_again"),
        ],
    ),
    (
        "a program that ignores the base URL is no success",
        &[("tests/it/acceptance.rs", "a_program_that_ignores_the_base_url_is_no_success")],
    ),
];

#[test]
fn each_point_has_its_tests() {
    held(POINTS);
}

/// Whether each test of each point is there, and is one that `cargo test` runs.
pub fn held(points: &[Point]) {
    for (point, tests) in points {
        for (file, test) in *tests {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let source = fs::read_to_string(&path).expect(file);
            assert!(is_run(&source, test), "{point}: {file} has no test `{test}` that is run");
            assert!(is_compiled(&path), "{point}: no module takes in {file}");
        }
    }
}

/// Whether a function stands in a source as a test that is not ignored.
fn is_run(source: &str, test: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let head = |line: &&str| line.starts_with(&format!("fn {test}(")) || line.starts_with(&format!("async fn {test}("));
    let Some(at) = lines.iter().position(head) else { return false };
    let above = lines.iter().take(at).rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    let attributes: Vec<&str> = above.filter(|line| line.starts_with("#[")).copied().collect();
    let marks = |line: &&str| **line == *"#[test]" || line.starts_with("#[tokio::test");
    attributes.iter().any(marks) && !attributes.iter().any(|line| line.contains("ignore") || line.contains("cfg("))
}

/// Whether some module beside a file, or above it, takes it in.
fn is_compiled(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let stem = name.trim_end_matches(".rs");
    let dir = path.parent().expect("a directory");
    let stem = if stem == "mod" { dir.file_name().and_then(|name| name.to_str()).expect("a name") } else { stem };
    let around = [Some(dir), dir.parent()].into_iter().flatten().filter_map(|dir| fs::read_dir(dir).ok()).flatten();
    let sources =
        around.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "rs"));
    // Rooms of which each file is one line in a list declare them by a macro.
    let listed = fs::read_to_string(dir.join("list.rs")).is_ok_and(|list| list.contains("mod $"));
    let in_list = |line: &str| listed && line.split([',', ' ']).any(|word| word.starts_with(&format!("{stem}::")));
    let takes = |source: &str| {
        source.lines().map(str::trim).any(|line| {
            line.trim_start_matches("pub(crate) ").trim_start_matches("pub ") == format!("mod {stem};")
                || line == format!("#[path = \"{name}\"]")
                || in_list(line)
        })
    };
    sources.filter_map(|path| fs::read_to_string(path).ok()).any(|source| takes(&source))
}

#[test]
fn a_name_that_no_test_has_holds_nothing() {
    let source = "#[test]\nfn runs() {}\n/// Words.\n#[tokio::test]\nasync fn waits() {}\n#[test]\nREST\nfn rests() {}\nfn helps() {}\n";
    let source = &source.replace("REST", concat!("#[ig", "nore]"));
    for (test, run) in [("runs", true), ("waits", true), ("rests", false), ("helps", false), ("none", false)] {
        assert_eq!(is_run(source, test), run, "{test}");
    }
}

fn frame(choices: &Value, more: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":{choices}{more}}}\n\n"
    )
}

/// A stream of two alternatives: words in one, two calls in the other.
fn stream(done: bool) -> String {
    let said = |index: u32, delta: Value, finish: Option<&str>| {
        frame(
            &serde_json::json!([{"index": index, "delta": delta, "logprobs": null, "finish_reason": finish}]),
            ",\"usage\":null",
        )
    };
    let call = |at: u32, id: &str| serde_json::json!({"tool_calls": [{"index": at, "id": id, "type": "function", "function": {"name": "add", "arguments": ""}}]});
    let more =
        |at: u32, text: &str| serde_json::json!({"tool_calls": [{"index": at, "function": {"arguments": text}}]});
    let text = |text: &str| serde_json::json!({"content": text});
    [
        said(0, serde_json::json!({"role": "assistant", "content": ""}), None),
        said(1, serde_json::json!({"role": "assistant", "content": null}), None),
        said(0, text("The total"), None),
        said(0, text(" is 12."), None),
        said(1, call(0, "call_a"), None),
        said(1, more(0, "{\"a\":"), None),
        said(1, more(0, "1}"), None),
        said(1, call(1, "call_b"), None),
        said(1, more(1, "{\"a\":2}"), None),
        said(0, serde_json::json!({}), Some("stop")),
        said(1, serde_json::json!({}), Some("tool_calls")),
        frame(&serde_json::json!([]), ",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}"),
        if done { "data: [DONE]\n\n".to_owned() } else { String::new() },
    ]
    .concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_chat_stream_keeps_its_grammar() {
    for (manipulator, choice) in [
        ("corrupt_number = { which = \"last\" }", 0),
        ("truncate_output = { keep = 0.5 }", 0),
        ("empty = {}", 0),
        ("refuse = {}", 1),
        ("edit_tool_call = { drop = true }", 1),
        ("edit_tool_call = { duplicate = true }", 1),
        ("edit_tool_call = { name = \"subtract\" }", 1),
    ] {
        for done in [true, false] {
            let plan = format!(
                "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nchoice = {choice}\nmanipulator.{manipulator}\n"
            );
            let source = stream(done);
            let acts: Vec<Act> = [stream_head(), chunk(&source), last_chunk()].into();
            let upstream = Scripted::always(acts).await;
            let lab = Lab::before(upstream.address, Setup::planned(&plan)).await;
            let body = br#"{"model":"m","stream":true,"n":2,"messages":[{"role":"user","content":"x"}]}"#;
            let reply = lab.post("/a/solver/v1/chat/completions", body).await;
            assert_ne!(
                reply.text(),
                source,
                "{manipulator}: nothing was edited: {:?}",
                lab.recorded("r0").manipulator_failures
            );
            check_grammar(&reply.text(), done, manipulator);
        }
    }
}

fn check_grammar(stream: &str, done: bool, name: &str) {
    let mut frames: Vec<&str> = stream.split_terminator("\n\n").map(|frame| &frame["data: ".len()..]).collect();
    assert_eq!(frames.last() == Some(&"[DONE]"), done, "{name}: the end as found");
    frames.retain(|frame| *frame != "[DONE]");
    let frames: Vec<Value> = frames.iter().map(|frame| serde_json::from_str(frame).expect("JSON")).collect();
    let (last, before) = frames.split_last().expect("frames");
    let (total, replied) = (&last["usage"]["total_tokens"], &last["usage"]["completion_tokens"]);
    assert!(
        total.as_u64() == replied.as_u64().map(|replied| replied + 3)
            && before.iter().all(|frame| frame["usage"].is_null()),
        "{name}: usage last"
    );
    assert!(frames.iter().all(|frame| frame["id"] == "chatcmpl-1" && frame["model"] == "m"), "{name}: one id");
    let mut once: BTreeMap<String, u32> = BTreeMap::new();
    let mut calls: BTreeMap<u64, u64> = BTreeMap::new();
    for choice in frames.iter().flat_map(|frame| frame["choices"].as_array().expect("choices")) {
        let index = choice["index"].as_u64().expect("an index");
        let mut count = |what: String, node: &Value| *once.entry(what).or_default() += u32::from(node.is_string());
        count(format!("role {index}"), &choice["delta"]["role"]);
        count(format!("finish {index}"), &choice["finish_reason"]);
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let at = call["index"].as_u64().expect("an index");
            let next = calls.entry(index).or_default();
            assert!(at <= *next, "{name}: call {at} before {next}");
            *next = (*next).max(at + 1);
            count(format!("id {index} {at}"), &call["id"]);
            count(format!("name {index} {at}"), &call["function"]["name"]);
        }
    }
    assert!(once.values().all(|count| *count == 1), "{name}: once each: {once:?}");
}

#[test]
fn a_program_that_ignores_the_base_url_is_no_success() {
    let dir = tempfile::tempdir().expect("a directory");
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_aegis"))
        .args(["run", "--upstream", "simulator", "--", "true"])
        .current_dir(dir.path())
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("made no model call") && said.contains("OPENAI_BASE_URL"), "{said}");
    // One that dies first has another problem than its URL.
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_aegis"))
        .args(["run", "--upstream", "simulator", "--", "sh", "-c", "echo TypeError >&2; exit 7"])
        .current_dir(dir.path())
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("ended with 7 before it made a model call") && !said.contains("OPENAI_BASE_URL"), "{said}");
}
