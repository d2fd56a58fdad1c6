//! `replay`, `fork` and `diff` as a user runs them, on the example programs and the simulator.

use std::path::Path;

use serde_json::json;

use crate::program::{AEGIS, Served, verb};

const TASK: &str =
    "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
const CHECK: &str = "grep -q 'ANSWER: 84$'";
const RIGHT: &str = "Step 1: 12 * 8 = 96 (pencils).\nStep 2: 96 - 12 = 84 (pencils left).\nANSWER: 84\n";

/// What comes after the verb: the pipeline as a child, on the task.
fn pipeline<'a>(arguments: &[&'a str], task: &'a str) -> Vec<&'a str> {
    [arguments, &["--", AEGIS, "example", "pipeline", "--task", task]].concat()
}

/// A clean run `clean` and one with a wrong number in the solver's reply, `bad`.
async fn recorded(dir: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(root.join("examples/pipeline/aegis.toml"), dir.join("aegis.toml")).expect("copied");
    let plan = root.join("plans/corrupt-number.toml");
    let plan = plan.to_str().expect("text");
    let run = ["run", "--upstream", "simulator", "--check", CHECK, "--run"];
    let (code, _, talk) = verb(dir, &pipeline(&[&run[..], &["clean"]].concat(), TASK)).await;
    assert_eq!(code, Some(0), "{talk}");
    let (code, _, talk) = verb(dir, &pipeline(&[&run[..], &["bad", "--plan", plan]].concat(), TASK)).await;
    assert_eq!(code, Some(1), "{talk}");
}

fn parsed(out: &str) -> serde_json::Value {
    serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_needs_no_upstream_and_no_configuration() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    std::fs::remove_file(dir.path().join("aegis.toml")).expect("removed");
    let (code, out, talk) = verb(dir.path(), &pipeline(&["replay", "logs/bad", "--run", "again"], TASK)).await;
    assert_eq!((code, out.as_str()), (Some(0), "ANSWER: 94\n"), "{talk}");
    assert!(talk.contains("RESULT  ok again  3 served  0 missed  0 of 3 steps unused"), "{talk}");
    // The record's names hold, whatever the rules of this replay would say; and nothing differs.
    let (code, out, _) = verb(dir.path(), &["diff", "logs/bad", "logs/again"]).await;
    assert!(code == Some(0) && out.contains("no difference"), "{out}");

    let other = TASK.replace("12 boxes", "13 boxes");
    let (code, out, talk) = verb(dir.path(), &pipeline(&["replay", "logs/bad", "--explain"], &other)).await;
    assert_eq!((code, out.as_str()), (Some(1), ""), "{talk}");
    assert!(talk.contains("missed   step 0") && talk.contains("its canonical form is {\"messages\""), "{talk}");
    assert!(talk.contains("unused   step 2  call 0 of critic"), "{talk}");
    let (code, _, talk) = verb(dir.path(), &["replay", "logs"]).await;
    assert!(code == Some(2) && talk.contains("is not a recorded run"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_command_is_shown_and_runs_only_where_it_is_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let path = dir.path().canonicalize().expect("a path");
    let manifest = || std::fs::read_to_string(dir.path().join("logs/clean/run.json")).expect("readable");
    let launched = parsed(&manifest())["launched"].clone();
    assert_eq!(launched["command"], json!([AEGIS, "example", "pipeline", "--task", TASK]));
    assert_eq!((launched["directory"].as_str(), launched["upstream"].as_str()), (path.to_str(), Some("simulator")));

    let (code, out, talk) = verb(dir.path(), &["replay", "logs/clean", "--again"]).await;
    assert_eq!((code, out.trim()), (Some(0), "ANSWER: 84"), "{talk}");
    let (code, _, talk) = verb(dir.path(), &["replay", "logs/clean", "--again", "--", "ls"]).await;
    assert!(code == Some(2) && talk.contains("cannot be used with"), "{talk}");
    // Without either a server waits, and says what was recorded.
    let served = Served::start_replay(dir.path(), "logs/clean").await;
    let talk = std::fs::read_to_string(&served.talk).expect("readable");
    let line = format!("recorded aegis replay logs/clean -- {AEGIS} example pipeline --task '{TASK}'\n");
    assert!(talk.contains(&line), "{talk}");

    // A secret is masked on disk, whatever it looks like, and what is masked is not run.
    let command = format!("MY_TOKEN=blue-canary exec {AEGIS} example pipeline --task '{TASK}'");
    let run = ["run", "--upstream", "simulator", "--run", "keyed", "--", "sh", "-c", &command];
    let (code, _, talk) = verb(dir.path(), &run).await;
    assert_eq!(code, Some(0), "{talk}");
    for file in std::fs::read_dir(dir.path().join("logs/keyed")).expect("a directory").flatten() {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        assert!(!bytes.windows(11).any(|window| window == b"blue-canary"), "{}", file.path().display());
    }
    let (code, _, talk) = verb(dir.path(), &["replay", "logs/keyed", "--again"]).await;
    assert!(code == Some(2) && talk.contains("held a secret") && talk.contains("-- sh -c"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_says_what_would_have_happened() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    std::fs::write(dir.path().join("fix.txt"), RIGHT).expect("written");
    let fork = ["fork", "logs/bad", "--check", CHECK, "--format", "json"];
    for (options, code, served, live) in [
        (&["--at", "1", "--replace", "fix.txt"][..], 0, 2, 1),
        (&["--at", "1", "--keep"], 1, 2, 1),
        (&["--at", "1"], 0, 1, 2),
        (&["--drop-injection"], 0, 2, 1),
        (&["--at", "2", "--empty"], 0, 3, 2),
    ] {
        let (got, out, talk) = verb(dir.path(), &pipeline(&[&fork[..], options].concat(), TASK)).await;
        assert_eq!(got, Some(code), "{options:?}: {talk}");
        let report = parsed(&out)["samples"][0]["report"].clone();
        let count = |what: &str| report[what].as_array().map_or(0, Vec::len);
        assert_eq!((count("served"), count("live")), (served, live), "{options:?}: {report}");
        let replaced = report["served"].as_array().is_some_and(|all| all.iter().any(|one| one["replaced"] == true));
        assert_eq!(replaced, options.contains(&"--replace") || options.contains(&"--empty"), "{options:?}: {report}");
        assert!(report["diverged"].is_null() && report["unused"] == serde_json::json!([]), "{options:?}: {report}");
    }
    // The same fork under an injection: the plan finds its own step, the label is the plan's.
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/corrupt-number.toml");
    let options =
        ["fork", "logs/clean", "--check", CHECK, "--format", "json", "--samples", "2", "--jobs", "2", "--plan"];
    let (code, out, talk) =
        verb(dir.path(), &pipeline(&[&options[..], &[plan.to_str().expect("text")]].concat(), TASK)).await;
    assert_eq!(code, Some(1), "{talk}");
    let data = parsed(&out);
    assert_eq!((&data["successes"], &data["judged"]), (&0.into(), &2.into()));
    for sample in data["samples"].as_array().expect("samples") {
        assert_eq!(sample["label"]["errors"][0]["step"], 1, "{sample}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_of_another_program_stops_and_says_where_it_left() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let other = TASK.replace("12 boxes", "13 boxes");
    let (code, _, talk) = verb(dir.path(), &pipeline(&["fork", "logs/bad", "--at", "1"], &other)).await;
    assert_eq!(code, Some(1), "{talk}");
    assert!(talk.contains("diverged before the fork point: step 0 (call 0 of `planner`)"), "{talk}");
    assert!(talk.contains("`messages[1].content`") && talk.contains("13 boxes"), "{talk}");
    for (arguments, expected) in [
        (&["fork", "logs/bad", "--at", "9"][..], "step 9 is not in the record: expected 0 to 2"),
        (&["fork", "logs/clean", "--drop-injection"], "the run has no delivered injection"),
        (&["fork", "logs/bad", "--at", "1", "--replace", "none.txt"], "cannot read `none.txt`"),
        (&["fork", "logs/bad"], "--at <STEP>"),
    ] {
        let (code, _, talk) = verb(dir.path(), &pipeline(arguments, TASK)).await;
        assert!(code == Some(2) && talk.contains(expected), "{arguments:?}: {talk}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_names_the_first_divergence_and_its_spread() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let (code, out, _) = verb(dir.path(), &["diff", "logs/clean", "logs/bad"]).await;
    assert_eq!(code, Some(1));
    assert!(out.contains("first divergence: solver call 0") && out.contains("ANSWER: [-84-]{+94+}"), "{out}");
    assert!(out.contains("its words are quoted in b at step 2"), "{out}");
    let (_, out, _) = verb(dir.path(), &["diff", "logs/clean", "logs/bad", "--format", "json"]).await;
    let data = parsed(&out);
    let changes: Vec<_> = data["pairs"].as_array().expect("pairs").iter().map(|pair| pair["change"].clone()).collect();
    assert_eq!(changes, ["same", "reply", "both"]);
    assert_eq!((&data["first_divergence"], &data["spread"]), (&1.into(), &serde_json::json!([2])));
}
