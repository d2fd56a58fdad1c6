//! What every execution leaves, whichever verb made it, and that it can be executed again from that alone.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    campaign::{Bench, DEBATE, PIPELINE, json, plans},
    program::verb,
};

/// What `run.json` says of each run whose program Aegis started.
const KEYS: [&str; 10] =
    ["format", "run", "upstream", "started", "ended", "versions", "outcome", "program", "launched", "agents"];

/// A campaign of the pipeline over one task, with a plan that makes it fail.
async fn campaign() -> Bench {
    let tasks = "upstream = \"simulator\"\ntasks = { file = \"ROOT/examples/tasks.jsonl\", first = 1 }\n";
    let plan = "[[plan]]\nfile = \"ROOT/plans/corrupt-number.toml\"\n";
    let bench = Bench::new(&[tasks, "clean.repeats = 1\nproof.repeatable = true\n", PIPELINE, plan].concat());
    let (code, _, said) = bench.run(&[]).await;
    assert_eq!(code, Some(0), "{said}");
    bench
}

/// The directories of recordings beneath a directory.
fn recordings(beneath: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(beneath).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.join("run.json").is_file() {
            found.push(path.clone());
        }
        if path.is_dir() {
            found.extend(recordings(&path));
        }
    }
    found.sort();
    found
}

/// Whether a run failed under a plan, and is no repeat of such a run.
fn is_labelled_failure(run: &Path) -> bool {
    run.join("label.json").is_file() && json(&run.join("run.json"))["outcome"]["verdict"] == "failure"
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Runs a verb and expects this exit code.
async fn expect(dir: &Path, arguments: &[&str], code: i32) -> String {
    let (got, out, talk) = verb(dir, arguments).await;
    assert_eq!(got, Some(code), "{arguments:?}: {talk}{out}");
    talk
}

/// A run that a campaign made says how its program was started and judged; so every verb that executes a run again takes it.
#[tokio::test(flavor = "multi_thread")]
async fn each_run_of_a_campaign_can_be_executed_again() {
    let bench = campaign().await;
    let dir = bench.dir.path();
    let runs = recordings(&bench.out().join("logs"));
    assert!(runs.len() >= 2, "{runs:?}");
    for run in &runs {
        let talk = expect(dir, &["replay", text(run), "--again"], 0).await;
        assert!(talk.contains(" 0 missed  0 of 3 steps unused"), "{talk}");
    }
    let failed = runs.iter().find(|run| is_labelled_failure(run));
    let failed = text(failed.expect("the plan makes one fail"));
    let talk = expect(dir, &["prove", failed, "--again"], 0).await;
    assert!(talk.contains("RESULT  ok label verified"), "{talk}");
    let talk = expect(dir, &["fork", failed, "--at", "1", "--again"], 0).await;
    assert!(talk.contains("1 of 1 succeeded"), "{talk}");
    let talk = expect(dir, &["trace", failed, "--redraw", "--first", "--again"], 0).await;
    assert!(talk.contains("earliest flip solver at step 1"), "{talk}");
    fs::write(dir.join("note.txt"), "Multiply first.").expect("written");
    let retry = ["retry", failed, "--critique", "note.txt", "--at", "1", "--samples", "1", "--again"];
    let (code, _, talk) = verb(dir, &retry).await;
    assert!(matches!(code, Some(0 | 1)) && talk.contains("4 executions"), "{talk}");
}

/// Clean runs, injected ones, and the arms of their proofs: the same bytes again, the same beginning without them, and with one of
/// several injections less. Each can be replayed, and each verb takes it or says why it does not, as the run says of itself.
#[tokio::test(flavor = "multi_thread")]
async fn each_arm_of_a_campaign_can_be_executed_again() {
    let head =
        "upstream = \"simulator\"\ntasks = { file = \"ROOT/examples/tasks.jsonl\", first = 1 }\nclean.repeats = 2\n";
    let plans = [plans(&["corrupt-number"], "\"pipeline\""), plans(&["corrupt-two-debaters"], "\"debate\"")].concat();
    let bench = Bench::new(&[head, PIPELINE, DEBATE, &plans].concat());
    let (code, _, said) = bench.run(&[]).await;
    assert_eq!(code, Some(0), "{said}");
    let mut arms: BTreeMap<String, PathBuf> = BTreeMap::new();
    for cell in bench.cells() {
        let run = bench.out().join("logs").join(cell["run"].as_str().expect("a run"));
        let talk = expect(bench.dir.path(), &["replay", text(&run), "--again"], 0).await;
        assert!(talk.contains(" 0 missed "), "{cell}: {talk}");
        arms.insert(cell["kind"]["cell"].as_str().expect("a kind").to_owned(), run);
    }
    let kinds: Vec<&str> = arms.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["again", "clean", "injected", "null", "without"]);
    for (kind, run) in &arms {
        let (_, out, _) = verb(bench.dir.path(), &["show", text(run), "--format", "json"]).await;
        let shown: Value = serde_json::from_str(out.trim()).expect("JSON");
        for (name, options) in [
            ("fork", &["--at", "0"][..]),
            ("trace", &["--redraw", "--budget", "runs=1"]),
            ("retry", &["--budget", "calls=2"]),
            ("prove", &["--pairs", "1"]),
        ] {
            let line = [&[name, text(run)], options, &["--again"]].concat();
            let (code, _, said) = verb(bench.dir.path(), &line).await;
            let can = &shown["can"][name];
            assert_eq!(code == Some(2), can["why"].is_string(), "{kind} {name}: {can}: {said}");
            assert!(!said.contains("holds no command"), "{kind} {name}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_json_has_one_form_whichever_verb_made_the_run() {
    let bench = campaign().await;
    let dir = bench.dir.path();
    let runs = recordings(&bench.out().join("logs"));
    let failed = runs.iter().find(|run| is_labelled_failure(run));
    let failed = text(failed.expect("the plan makes one fail"));
    let again = json(&Path::new(failed).join("run.json"))["launched"]["command"].clone();
    let command: Vec<&str> = again.as_array().expect("a command").iter().filter_map(Value::as_str).collect();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/plans/corrupt-number.toml");
    let to = ["--upstream", "simulator", "--config", config, "--check", "true"];
    let (code, _, talk) = verb(dir, &[&["run", "--run", "ran"], &to[..], &["--"], &command].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    let (code, _, talk) = verb(dir, &[&["test", plan, "--name", "tested"], &to[..], &["--"], &command].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    for (arguments, code) in [
        (&["replay", "logs/ran", "--again"][..], 0),
        (&["fork", "logs/ran", "--at", "1", "--again"], 0),
        (&["prove", failed, "--again"], 0),
        (&["trace", failed, "--redraw", "--first", "--again"], 0),
    ] {
        expect(dir, arguments, code).await;
    }
    let all = recordings(dir);
    assert!(all.len() > 20, "{all:?}");
    for run in &all {
        let manifest = json(&run.join("run.json"));
        let missing: Vec<_> = KEYS.iter().filter(|key| manifest.get(**key).is_none()).collect();
        assert!(missing.is_empty(), "{}: no {missing:?}: {manifest}", run.display());
        let launched = &manifest["launched"];
        assert_eq!(launched["command"], again, "{}", run.display());
        assert!(launched["directory"].is_string() && launched["config"].is_string(), "{launched}");
        // A replay is judged by its program's end, all others by what was said or by what judged the recorded run.
        let replays = manifest["repeat_of"] == "ran" && launched.get("upstream").is_none();
        assert!(launched.get("check").is_some() || replays, "{}: {manifest}", run.display());
    }
    let begin_alike = |beneath: &Path| {
        let trials = recordings(beneath);
        !trials.is_empty() && trials.iter().all(|run| json(&run.join("run.json"))["repeat_of"].is_string())
    };
    assert!(begin_alike(&Path::new(failed).join("proof")) && begin_alike(&Path::new(failed).join("trials")));
}

/// What judged a run is part of what its proof rests on: what was executed with another check does not count.
#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_a_run_counts_in_its_proof() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    failed_run(dir).await;
    assert_eq!(json(&dir.join("logs/r/run.json"))["launched"]["check"], PIPELINE_RUN[6]);
    let talk = expect(dir, &["prove", "logs/r", "--again"], 0).await;
    assert!(talk.contains("  12 executions made"), "{talk}");
    let talk = expect(dir, &["prove", "logs/r", "--check", "grep -q 'ANSWER: 84$'", "--again"], 0).await;
    assert!(talk.contains("  12 executions made"), "{talk}");
}

/// The example pipeline with a plan that makes it fail, recorded as `logs/r`.
async fn failed_run(dir: &Path) {
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/plans/corrupt-number.toml");
    let run = [&PIPELINE_RUN[..], &["--run", "r", "--plan", plan, "--"], &EXAMPLE].concat();
    expect(dir, &run, 1).await;
}

const PIPELINE_RUN: [&str; 7] = [
    "run",
    "--upstream",
    "simulator",
    "--config",
    concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml"),
    "--check",
    "grep -q 'ANSWER: 84'",
];
const EXAMPLE: [&str; 5] = [
    crate::program::AEGIS,
    "example",
    "pipeline",
    "--task",
    "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?",
];

/// Whatever the bound is of, the call beyond it is not made, and the verb says so by its exit code.
#[tokio::test(flavor = "multi_thread")]
async fn every_verb_that_makes_live_calls_keeps_to_one_budget() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    failed_run(dir).await;
    fs::write(dir.join("note.txt"), "Multiply first.").expect("written");
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/plans/corrupt-number.toml");
    let config = PIPELINE_RUN[4];
    let verbs: [(&[&str], &[&str]); 6] = [
        (&PIPELINE_RUN, &EXAMPLE),
        (&["test", plan, "--upstream", "simulator", "--config", config], &EXAMPLE),
        (&["fork", "logs/r", "--at", "1", "--again"], &[]),
        (&["prove", "logs/r", "--again"], &[]),
        (&["trace", "logs/r", "--redraw", "--again"], &[]),
        (&["retry", "logs/r", "--critique", "note.txt", "--at", "1", "--again"], &[]),
    ];
    for (verb, command) in verbs {
        let command = if command.is_empty() { Vec::new() } else { [&["--"], command].concat() };
        for bound in [&["calls=1"][..], &["tokens=9"], &["money=0.000001", "--price", "1,1"]] {
            let line = [verb, &["--budget"], bound, &command].concat();
            let talk = expect(dir, &line, 4).await;
            assert!(talk.contains("RESULT  budget "), "{line:?}: {talk}");
            assert!(!talk.contains("answered every call with 402"), "{line:?}: {talk}");
        }
        let talk = expect(dir, &[verb, &["--budget", "money=1"], &command].concat(), 2).await;
        assert!(talk.contains("--price IN,OUT"), "{talk}");
        let talk = expect(dir, &[verb, &["--budget", "steps=1"], &command].concat(), 2).await;
        assert!(talk.contains("`steps=1` is no limit: expected calls=N, tokens=N or money=X"), "{talk}");
    }
    for (former, now) in [
        (["trace", "--budget-runs", "3"], "write --budget runs=3"),
        (["trace", "--budget-calls", "3"], "write --budget calls=3"),
        (["retry", "--budget-tokens", "3"], "write --budget tokens=3"),
        (["retry", "--budget-money", "0.5"], "write --budget money=0.5"),
        (["trace", "--prior-budget", "calls=3"], "write --budget calls=3"),
    ] {
        let talk = expect(dir, &[former[0], "logs/r", former[1], former[2]], 2).await;
        assert!(talk.contains(now), "{talk}");
    }
    // What is bounded and not exceeded is as it would be without; a proof goes on from what a smaller budget paid for.
    let enough = [&PIPELINE_RUN[..], &["--budget", "calls=3,tokens=100000", "--"], &EXAMPLE].concat();
    expect(dir, &enough, 0).await;
    let talk = expect(dir, &["prove", "logs/r", "--again", "--budget", "calls=100"], 0).await;
    assert!(talk.contains("RESULT  ok label verified"), "{talk}");
}
