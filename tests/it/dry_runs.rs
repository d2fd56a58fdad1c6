//! A dry run is refused wherever the line itself is, in the same words, and says a price only of what could be executed.

use std::fs;

use serde_json::Value;

use crate::{
    program::{AEGIS, verb},
    suggested::{CAMPAIGN, Runs, TASK},
};

/// What is refused before anything is executed or asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_is_refused_in_the_words_of_the_line_itself() {
    let runs = Runs::make().await;
    fs::write(runs.at("ready.toml"), CAMPAIGN.replace("PLAN", "fm-1.1-request")).expect("written");
    fs::write(runs.at("note.txt"), "Multiply first.").expect("written");
    let call = "http://127.0.0.1:1/v1/chat/completions";
    let trace = |run, more: &[&'static str]| [&["trace", run, "--redraw", "--check", "false"], more].concat();
    let retry = |more: &[&'static str]| [&["retry", "logs/failed", "--check", "false", "--again"], more].concat();
    let lines = [
        (trace("logs/served", &["--", "true"]), "which nothing you configured names"),
        (trace("logs/served", &["--again"]), "holds no command"),
        (trace("logs/passed", &["--again"]), "succeeded"),
        (trace("logs/failed", &["--again", "--upstream", call]), "the address of one call"),
        (trace("logs/failed", &["--again", "--timeout=-1"]), "--timeout"),
        (trace("logs/failed", &["--again", "--alpha", "2"]), "`alpha` is 2"),
        (trace("logs/failed", &["--again", "--config", "none.toml"]), "none.toml"),
        (
            vec!["trace", "logs/failed", "--twin", "logs/planted", "--check", "false", "--again"],
            "failed: its replies correct nothing",
        ),
        (retry(&["--critique", "note.txt", "--at", "9"]), "step 9"),
        (retry(&["--method", "a2p", "--judge", call]), "the address of one call"),
        (retry(&["--method", "alignment"]), "they give the answer away"),
        (retry(&["--upstream", call]), "the address of one call"),
        (retry(&["--timeout=-1"]), "--timeout"),
        (retry(&["--preferences", "plan.toml"]), "plan.toml"),
        (vec!["attribute", "logs/failed", "--method", "a2p"], "asks a model, and none is named"),
        (
            vec!["attribute", "logs/failed", "--method", "a2p", "--upstream", "http://127.0.0.1:1/v1"],
            "the judge has no name",
        ),
        (
            vec!["attribute", "logs/failed", "--method", "a2p", "--upstream", call, "--model", "m"],
            "the address of one call",
        ),
        (vec!["attribute", "logs/failed", "--method", "rules", "--out", "plan.toml"], "plan.toml"),
        (vec!["attribute", "logs/failed", "--method", "learned"], "no file of it is named"),
        (vec!["campaign", "ready.toml", "--out", "none"], "no model is named"),
        (vec!["campaign", "c.toml", "--resume", "--out", "none"], "none"),
        (vec!["campaign", "c.toml", "--only", "nothing"], "names no task"),
    ];
    for (line, why) in lines {
        let (code, out, said) = verb(runs.path(), &line).await;
        assert!(code == Some(2) && said.contains(why), "{line:?}: {code:?} {out}{said}");
        let split = line.iter().position(|word| *word == "--").unwrap_or(line.len());
        let dry = [&line[..split], &["--dry-run"], &line[split..]].concat();
        let (code, out, dry_said) = verb(runs.path(), &dry).await;
        let errors = |said: &str| said.lines().filter(|line| line.starts_with("error:")).collect::<Vec<_>>().join("\n");
        assert_eq!((code, errors(&dry_said)), (Some(2), errors(&said)), "{dry:?}: {out}{dry_said}");
    }
    assert!(!runs.at("logs/failed/trials").exists() && !runs.at("logs/failed/retry").exists(), "nothing was executed");
}

/// What a dry run may be asked before it is said, it names.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_what_the_line_itself_needs() {
    let runs = Runs::make().await;
    for (line, needs) in [
        (&["trace", "logs/failed", "--redraw", "--dry-run"][..], "; the line itself needs --check CMD and -- CMD"),
        (&["retry", "logs/failed", "--check", "false", "--dry-run"], "; the line itself needs -- CMD"),
        (&["trace", "logs/failed", "--redraw", "--again", "--dry-run"], "nothing was executed\n"),
    ] {
        let (code, out, said) = verb(runs.path(), line).await;
        assert!(code == Some(0) && said.contains(needs), "{line:?}: {out}{said}");
    }
}

/// A trace spends no more than its dry run says, whatever the check says of its executions.
#[tokio::test(flavor = "multi_thread")]
async fn a_trace_stays_below_what_its_dry_run_says() {
    let runs = Runs::make().await;
    let program = ["--", AEGIS, "example", "pipeline", "--task", TASK];
    for check in ["false", "exit 3", "test $((0x$(head -c1 /dev/urandom | od -An -tx1 | tr -d ' ') % 3)) -ne 0"] {
        let trace = ["trace", "logs/failed", "--redraw", "--pairs", "6", "--check", check, "--format", "json"];
        let read = async |more: &[&str]| -> Value {
            let (_, out, said) = verb(runs.path(), &[&trace[..], more, &program].concat()).await;
            serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {said}{out}"))
        };
        let (most, spent) = (read(&["--dry-run"]).await["at_most"].clone(), read(&[]).await["spent"].clone());
        for (most, spent) in [(&most["executions"], &spent["runs"]), (&most["calls"], &spent["calls"])] {
            assert!(spent.as_u64() <= most.as_u64() && most.as_u64() > Some(0), "{check}: {spent} of at most {most}");
        }
    }
}
