//! Traces and data sets of strangers: what is read of them is bounded by what they hold, and nothing is waited for.

use std::fs;

use serde_json::{Value, json};

use crate::{
    lab::within,
    program::{aegis, verb},
};

/// Memory of the whole process, program text and stacks included, in kilobytes.
const ADDRESSES: u32 = 420_000;

/// Imports a log of Inspect in a process that may not grow.
async fn imported(dir: &std::path::Path, log: &str) -> (bool, String) {
    fs::write(dir.join("log.json"), log).expect("written");
    let program = aegis(dir).as_std().get_program().to_owned();
    let mut command = tokio::process::Command::new("sh");
    let line = format!("ulimit -v {ADDRESSES}; exec \"$0\" import --from inspect log.json --log-dir logs --overwrite");
    command.args(["-c", &line]).arg(program).current_dir(dir).env("MALLOC_ARENA_MAX", "1").kill_on_drop(true);
    let done = command.output().await.expect("started");
    let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    (done.status.success(), text)
}

fn log(samples: &Value) -> String {
    json!({"eval": {"model": "p/m", "eval_id": "e"}, "samples": samples}).to_string()
}

fn event(input: &Value) -> Value {
    let message = json!({"role": "assistant", "content": "Done."});
    json!({"event": "model", "model": "m", "input": input, "output": {"choices": [{"message": message, "stop_reason": "stop"}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_that_are_none_take_no_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let one = json!({"id": 1, "epoch": 1, "events": [event(&json!([{"role": "user", "content": "Hello"}]))]});
    let none = "0,".repeat(700_000);
    let text = log(&json!([])).replace("[]", &format!("[{none}{one}]"));
    let (well, said) = imported(dir.path(), &text).await;
    assert!(well && said.contains("1 run with 1 call"), "{said}");
    assert!(said.contains("700000 traces"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_that_is_named_a_thousand_times_is_held_a_few_times() {
    let dir = tempfile::tempdir().expect("a directory");
    let attachment = "attachment://0123456789abcdef0123456789abcdef";
    let events = (0..40).map(|call| {
        let named = |at: usize| json!({"role": "user", "id": format!("{call}-{at}"), "content": attachment});
        event(&(0..20).map(named).collect())
    });
    let events: Value = events.collect();
    let attachments = json!({"0123456789abcdef0123456789abcdef": "word ".repeat(200_000)});
    let text = log(&json!([{"id": 1, "epoch": 1, "events": events, "attachments": attachments}]));
    let (well, said) = imported(dir.path(), &text).await;
    assert!(well && said.contains("1 run with 40 calls"), "{said}");
    assert!(said.contains("named so often"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_is_not_waited_for() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("set")).expect("made");
    nix::unistd::mkfifo(&dir.path().join("set/1.json"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    for arguments in [
        &["import", "--from", "whowhen", "set", "--out", "out"][..],
        &["import", "--from", "whowhen", "set/1.json", "--out", "out"],
        &["import", "--from", "otlp", "set/1.json", "--log-dir", "logs"],
        &["import", "--from", "otlp", "set", "--log-dir", "logs"],
    ] {
        let (code, _, talk) = within(verb(dir.path(), arguments)).await;
        assert_eq!(code, Some(2), "{arguments:?}: {talk}");
    }
}
