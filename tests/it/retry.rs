//! `aegis retry`: four arms from the blamed step, a note in the blamed agent's request, and no label.

use std::{net::SocketAddr, path::Path};

use aegis::{plan, recording, trajectory::Verdict};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    lab::find,
    program::{AEGIS, verb},
    scripted::{chat_reply, split_head},
};

const TASK: &str = "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?";
const CHECK: &str = "grep -q 'ANSWER: 84$'";
const OPENING: &str = "Review note on your previous attempt: ";

/// A model that calculates wrongly until it is told so: it answers by what stands in the request.
async fn teachable() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut seen, mut buffer) = (Vec::new(), vec![0; 65536]);
                loop {
                    let Ok(count @ 1..) = stream.read(&mut buffer).await else { return };
                    seen.extend_from_slice(&buffer[..count]);
                    while let Some(whole) = whole(&seen) {
                        let text = String::from_utf8_lossy(&seen[..whole]).into_owned();
                        seen.drain(..whole);
                        let body = chat_reply(&answer(&text));
                        let head = format!(
                            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                            body.len()
                        );
                        if stream.write_all((head + &body).as_bytes()).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

/// The length of the first request, once it is whole.
fn whole(seen: &[u8]) -> Option<usize> {
    let end = find(seen, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(split_head(seen).0).to_lowercase();
    let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())?;
    (seen.len() >= end + length).then_some(end + length)
}

fn answer(asked: &str) -> String {
    let told = asked.contains("is wrong: it is 84");
    match () {
        () if asked.contains("You are the planner") => "1. Multiply. 2. Subtract.".to_owned(),
        () if asked.contains("You are the solver") && told => "12 * 8 = 96, so 96 - 12 = 84\nANSWER: 84".to_owned(),
        () if asked.contains("You are the solver") => "12 * 8 = 96, so 96 - 12 = 94\nANSWER: 94".to_owned(),
        () => "APPROVE".to_owned(),
    }
}

/// A failed run of the pipeline before that model.
async fn failed(dir: &Path, upstream: &str, agents: bool) {
    if agents {
        std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml"), dir.join("aegis.toml"))
            .expect("copied");
    }
    let run = ["run", "--upstream", upstream, "--run", "bad", "--check", CHECK];
    let (code, _, talk) = verb(dir, &program(&run)).await;
    assert_eq!(code, Some(1), "{talk}");
}

fn program<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--", AEGIS, "example", "pipeline", "--task", TASK]].concat()
}

fn file(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

/// How many steps were told something, and how many runs nothing; what each note must hold to.
fn notes(runs: &Path) -> (usize, usize) {
    // The note stands below the last user message of the one call, in its own record; prompts and the program's bytes do not move.
    let (mut noted, mut plain) = (0, 0);
    for run in std::fs::read_dir(runs).expect("runs").flatten() {
        let recording = recording::read(&run.path()).expect("a run");
        assert_eq!(recording.manifest.origin, Some(recording::RunOrigin::Feedback));
        assert!(recording.label.is_none() && !run.path().join("label.json").exists());
        let edited: Vec<_> = recording.trajectory.steps.iter().filter(|step| step.request_sent.is_some()).collect();
        plain += usize::from(edited.is_empty());
        for step in edited {
            noted += 1;
            let sent: Value = serde_json::from_slice(step.request_sent.as_ref().expect("sent")).expect("JSON");
            let own: Value = serde_json::from_slice(&step.request).expect("JSON");
            assert_eq!(sent["messages"][0], own["messages"][0], "the system prompt");
            let of = |body: &Value| {
                body["messages"].as_array().and_then(|all| all.last()).expect("a message")["content"].clone()
            };
            let told = of(&sent).as_str().expect("text").to_owned();
            let rest = told.strip_prefix(of(&own).as_str().expect("text")).expect("what was there stays");
            assert!(rest.starts_with(&format!("\n\n{OPENING}")), "{rest}");
            assert!(
                step.injected.iter().all(|note| note.delivered && note.failure_mode.is_none()),
                "{:?}",
                step.injected
            );
        }
        // Only the blamed agent, told what it was told, does better.
        let told = |step: &aegis::trajectory::Step| {
            let sent = step.request_sent.as_deref().unwrap_or_default();
            find(sent, b"it is 84").is_some() && find(sent, b"You are the solver").is_some()
        };
        let solved = recording.trajectory.outcome.verdict == Verdict::Success;
        assert_eq!(solved, recording.trajectory.steps.iter().any(told));
    }
    (noted, plain)
}

fn one_pair(path: &Path) {
    // One pair: all accepted replies are the same words.
    let pairs = std::fs::read_to_string(path).expect("pairs");
    let pairs: Vec<Value> = pairs.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(pairs.len(), 1, "{pairs:?}");
    let (chosen, rejected) = (pairs[0]["chosen"][0]["content"].as_str(), pairs[0]["rejected"][0]["content"].as_str());
    assert!(
        chosen.expect("text").ends_with("ANSWER: 84") && rejected.expect("text").ends_with("ANSWER: 94"),
        "{pairs:?}"
    );
    assert!(
        !pairs[0]["prompt"].to_string().contains("Review note") && pairs[0]["note"].to_string().contains("Review note")
    );
    assert_eq!((&pairs[0]["origin"], &pairs[0]["arm"]), (&"feedback".into(), &"critique".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_critique_repairs_what_nothing_else_does_and_labels_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = format!("http://{}/v1", teachable().await);
    failed(dir.path(), &upstream, true).await;
    let retry = ["retry", "logs/bad", "--upstream", &upstream, "--check", CHECK, "--samples", "2"];
    // What it would cost is said for nothing.
    let (code, out, talk) = verb(dir.path(), &[&retry[..], &["--dry-run"]].concat()).await;
    assert!(code == Some(0) && talk.contains("at most 24 executions"), "{talk}{out}");
    assert!(!dir.path().join("logs/bad/retry").exists());

    let (code, out, talk) = verb(dir.path(), &program(&[&retry[..], &["--preferences", "pairs.jsonl"]].concat())).await;
    assert_eq!(code, Some(0), "{talk}{out}");
    for words in [
        "round 1  solver at step 1  by rules",
        "note     Review note on your previous attempt: calculation: `96 - 12 = 94` is wrong: it is 84.",
        "resample             0 of 2 passed",
        "same note elsewhere  0 of 2 passed",
        "check your work      0 of 2 passed",
        "critique             2 of 2 passed",
        "gain     +1.00 [0.07, 1.00] over resample",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(talk.contains("RESULT  ok passed with the note in round 1  gain +1.00"), "{talk}");
    assert!(talk.contains("without --answer nobody can tell"), "{talk}");
    crate::contract::files_have(dir.path(), &["files/retry"]);
    let kept = file(&dir.path().join("logs/bad/retry.json"));
    assert_eq!(
        (&kept["origin"], &kept["repaired_in_round"], &kept["spent"]["runs"]),
        (&"feedback".into(), &1.into(), &8.into())
    );

    let (noted, plain) = notes(&dir.path().join("logs/bad/retry"));
    assert_eq!((noted, plain), (6, 2), "three arms of two are told something");
    assert!(!dir.path().join("logs/bad/label.json").exists());

    one_pair(&dir.path().join("pairs.jsonl"));
    let (_, out, _) = verb(dir.path(), &["runs", "logs"]).await;
    assert!(out.contains("bad") && out.lines().count() == 2, "its executions are nobody's runs: {out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_critiques_add_is_said_over_all_failures_and_nothing_is_paid_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let upstream = format!("http://{}/v1", teachable().await);
    failed(dir, &upstream, true).await;
    let again = ["run", "--upstream", &upstream, "--run", "worse", "--check", CHECK];
    assert_eq!(verb(dir, &program(&again)).await.0, Some(1));
    // What a plan made fail is no failure to learn from.
    let planted = ["run", "--upstream", "simulator", "--run", "planted", "--plan", "corrupt-number", "--check", CHECK];
    assert_eq!(verb(dir, &program(&planted)).await.0, Some(1));
    let retry = ["retry", "logs", "--again", "--samples", "2", "--rounds", "1"];
    let (code, out, talk) = verb(dir, &retry).await;
    assert_eq!(code, Some(0), "{talk}{out}");
    for words in [
        "label, else rules  2 runs\n",
        "  resample             0 of 4 passed\n",
        "  critique             4 of 4 passed\n",
        "  gain     +1.00 [0.31, 1.00] over resample\n",
        "  paired   +1.00 too few runs for an interval within runs\n",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(talk.contains("RESULT  ok label, else rules: gain +1.00") && talk.contains("2 of 2 retried"), "{talk}");
    crate::contract::files_have(dir, &["files/retried"]);
    let (code, again, talk) = verb(dir, &retry).await;
    assert!(code == Some(0) && out.ends_with(&again) && !talk.contains("round 1"), "nobody is executed: {talk}");

    // The step that executions found outranks what a method suspects.
    std::fs::write(
        dir.join("corrections.jsonl"),
        serde_json::json!({"step": 1, "reply": "12 * 8 = 96, so 96 - 12 = 84\nANSWER: 84"}).to_string() + "\n",
    )
    .expect("written");
    let trace = ["trace", "logs/bad", "--again", "--corrections", "corrections.jsonl", "--label", "flip"];
    let (_, found, talk) = verb(dir, &trace).await;
    assert!(dir.join("logs/bad/label.json").exists(), "{talk}{found}");
    let (_, out, _) = verb(dir, &["retry", "logs/bad", "--again", "--samples", "1", "--rounds", "1"]).await;
    assert!(
        out.contains("solver at step 1  by label") && out.contains("executions showed that another reply"),
        "{out}"
    );
    // Whoever is named speaks for itself.
    let named = ["retry", "logs/bad", "--again", "--samples", "1", "--rounds", "1", "--method", "rules"];
    let (_, out, _) = verb(dir, &named).await;
    assert!(out.contains("  by rules"), "{out}");
    for place in ["logs", "logs/bad"] {
        let (code, _, talk) = verb(dir, &["retry", place, "--again", "--method", "spectrum,rules"]).await;
        assert!(code == Some(2) && talk.contains("hint: --method all-at-once|"), "{code:?} {talk}");
    }
}

/// Whether an execution with the note came to a verdict.
fn is_tried(talk: &str) -> bool {
    ["critique: failed", "critique: passed"].iter().any(|words| talk.contains(words))
}

const NEVER_PASSED: &str = "never passed with the note in 1 round";

#[tokio::test(flavor = "multi_thread")]
async fn rounds_budgets_and_notes_have_their_ends() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = format!("http://{}/v1", teachable().await);
    failed(dir.path(), &upstream, true).await;
    std::fs::write(dir.path().join("vague.txt"), "Something is off.\n").expect("written");
    std::fs::write(dir.path().join("telling.txt"), "It should be 84.\n").expect("written");
    let retry = ["retry", "logs/bad", "--upstream", &upstream, "--check", CHECK, "--samples", "1"];
    let vague = ["--critique", "vague.txt", "--at", "1"];
    for (more, code, expected) in [
        // A note that does not help is not repaired, and a file says nothing of later failures.
        (&vague[..], 1, "RESULT  finding never passed with the note in 1 round  gain +0.00"),
        (&[&vague[..], &["--rounds", "5"]].concat(), 1, NEVER_PASSED),
        // The gold answer: a note that is nothing but that is refused; of one that also says what was wrong, the rest is said.
        (&["--critique", "telling.txt", "--at", "1", "--answer", "84"], 2, "it gives the right answer away"),
        (&["--answer", "84"], 1, "You wrote: \"96 - 12 = 94\"."),
        (&[&vague[..], &["--budget", "runs=2"]].concat(), 4, "RESULT  budget n"),
        (&[&vague[..], &["--budget", "calls=1"]].concat(), 4, "RESULT  budget"),
        (&[&vague[..], &["--budget", "tokens=1"]].concat(), 4, "RESULT  budget"),
        (&[&vague[..], &["--budget", "money=0.000001", "--price", "1,1"]].concat(), 4, "RESULT  budget"),
        (&["--critique", "vague.txt", "--at", "9"], 2, "it names no step of the run: step 9"),
        (&["--critique", "vague.txt"], 2, "together with --at STEP"),
        (&["--method", "alignment"], 2, "speaks with the words of runs that passed"),
        (&["--method", "rule"], 2, "did you mean `rules`?"),
        (&["--budget", "money=1"], 2, "--price"),
    ] {
        let (got, out, talk) = verb(dir.path(), &program(&[&retry[..], more].concat())).await;
        assert!(got == Some(code) && talk.contains(expected), "{more:?}: {got:?} {talk}{out}");
        // Which arms a budget leaves is drawn; a note that was not tried has not failed.
        assert!(code != 4 || talk.contains(NEVER_PASSED) == is_tried(&talk), "{more:?}: {talk}");
    }
    // An upstream that nobody reaches, a check that cannot be run, a run that did not fail.
    for (arguments, code, expected) in [
        (
            &[
                "retry",
                "logs/bad",
                "--upstream",
                "http://127.0.0.1:9",
                "--check",
                CHECK,
                "--samples",
                "1",
                "--rounds",
                "1",
            ][..],
            3,
            "unanswered",
        ),
        (
            &["retry", "logs/bad", "--upstream", &upstream, "--check", "no-such-checker", "--samples", "1"],
            2,
            "--check cannot be run",
        ),
        (&["retry", "logs/bad", "--upstream", &upstream], 2, "a retry needs --check CMD"),
    ] {
        let (got, out, talk) = verb(dir.path(), &program(arguments)).await;
        assert!(got == Some(code) && talk.contains(expected), "{arguments:?}: {got:?} {talk}{out}");
    }
    let (code, _, talk) = verb(dir.path(), &retry).await;
    // What was typed is said again in the line to type.
    let said = ["no command was given", "aegis retry logs/bad --upstream ", " --samples 1 -- "];
    assert!(code == Some(2) && said.iter().all(|words| talk.contains(words)), "{talk}");
    let (code, _, talk) = verb(dir.path(), &[&retry[..], &["--again"]].concat()).await;
    assert!(code == Some(0) && talk.contains("passed with the note in round 1"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_said_or_judged_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = format!("http://{}/v1", teachable().await);
    failed(dir.path(), &upstream, true).await;
    std::fs::write(dir.path().join("shaped.txt"), "40+44=84\n").expect("written");
    std::fs::write(dir.path().join("half.txt"), "Think again. The total is 84.\n").expect("written");
    let retry = ["retry", "logs/bad", "--upstream", &upstream, "--samples", "2", "--rounds", "1", "--at", "1"];
    let untold = "not known in round 1: no execution with the note tells anything (2 without a verdict)";
    for (more, code, expected) in [
        // The gold answer in another shape, and in one of two sentences.
        (["--critique", "shaped.txt", "--answer", "84", "--check", CHECK], 2, "it gives the right answer away"),
        (["--critique", "half.txt", "--answer", "84", "--check", CHECK], 1, "previous attempt: Think again.\n"),
        // The note was given, and the check cannot tell what came of it.
        (["--critique", "half.txt", "--answer", "5", "--check", "exit 3"], 1, untold),
    ] {
        let (got, out, talk) = verb(dir.path(), &program(&[&retry[..], &more].concat())).await;
        assert!(got == Some(code) && format!("{out}{talk}").contains(expected), "{more:?}: {got:?} {talk}{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_take_no_note_is_said() {
    // Without a roster nobody knows for sure who makes a call.
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = format!("http://{}/v1", teachable().await);
    failed(dir.path(), &upstream, false).await;
    let retry = ["retry", "logs/bad", "--upstream", &upstream, "--check", CHECK];
    let (code, _, talk) = verb(dir.path(), &program(&retry)).await;
    assert!(code == Some(2) && talk.contains("can take no note") && talk.contains("only believed"), "{talk}");
    assert!(!dir.path().join("logs/bad/retry").exists());

    let recording = recording::read(&dir.path().join("logs/bad")).expect("a run");
    let mut step = recording.trajectory.steps[1].clone();
    step.attribution.source = aegis::trajectory::Source::Roster;
    step.attribution.confidence = 1.0;
    assert!(plan::note(&step, "look").is_ok(), "{:?}", step.attribution);
    for (path, body, expected) in [
        ("/v1/embeddings", r#"{"model":"m","input":"x"}"#, "vectors"),
        ("/v1/images", "{}", "no surface reads"),
        ("/v1/chat/completions", "{", "takes none"),
    ] {
        let other = aegis::trajectory::Step { path: path.to_owned(), request: body.into(), ..step.clone() };
        let why = plan::note(&other, "look").expect_err(path).to_string();
        assert!(why.contains(expected), "{path}: {why}");
    }
}
