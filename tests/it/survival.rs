//! `aegis test`: plans × program. What it says, what it exits with, that a red run is red again, that nothing recorded is
//! lost, that the `JUnit` file is red exactly when the exit code is.

use std::{fs, path::Path};

use serde_json::Value;

use crate::program::{AEGIS, verb};

const TASK: &str = "A box holds 6 eggs. How many eggs do 7 boxes hold?";
/// The example of three agents, one call each; its client does not try again.
const PROGRAM: &[&str] = &[AEGIS, "example", "pipeline", "--task", TASK];

/// A test of a program in a directory: exit code, its data, its `JUnit` file, all that it said.
async fn tested(dir: &Path, arguments: &[&str], program: &[&str]) -> (i32, Value, String, String) {
    let junit = dir.join("junit.xml");
    let _ = fs::remove_file(&junit);
    let before = ["--format", "json", "test", "--upstream", "simulator", "--junit", "junit.xml"];
    let (code, out, talk) = verb(dir, &[&before[..], arguments, &["--"], program].concat()).await;
    let data = serde_json::from_str(out.lines().last().unwrap_or_default()).unwrap_or(Value::Null);
    (code.expect("ended by itself"), data, fs::read_to_string(junit).unwrap_or_default(), talk)
}

fn is_red(junit: &str) -> bool {
    junit.contains("<failure ") || junit.contains("<error ")
}

/// What each run came to, in order.
fn results(data: &Value) -> Vec<&str> {
    let plans = data["plans"].as_array().map(Vec::as_slice).unwrap_or_default();
    let runs = plans.iter().flat_map(|plan| plan["runs"].as_array().map(Vec::as_slice).unwrap_or_default());
    runs.filter_map(|run| run["result"].as_str()).collect()
}

fn plan(dir: &Path, name: &str, body: &str) {
    fs::write(dir.join(name), format!("# A plan of a test.\nformat = 1\nseed = 7\n[[injection]]\n{body}\n"))
        .expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_has_its_result_its_exit_code_and_its_colour() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    plan(dir, "late.toml", "agent = \"*\"\nwhen.always = true\nfault.latency = { ms = 5 }");
    plan(dir, "denied.toml", "agent = \"*\"\nwhen.call = 0\nfault.status = { code = 401 }");
    plan(dir, "tools.toml", "tool = \"*\"\nwhen.always = true\nfault.status = { code = 500 }");
    plan(dir, "nobody.toml", "agent = \"nobody\"\nwhen.always = true\nfault.status = { code = 500 }");
    plan(
        dir,
        "edit.toml",
        "agent = \"*\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nside = \"request\"\nmanipulator.append_instruction = { text = \"Be brief.\" }",
    );
    plan(
        dir,
        "idle.toml",
        "agent = \"*\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 9\nside = \"request\"\nmanipulator.append_instruction = { text = \"Be brief.\" }",
    );
    fs::write(dir.join("roster.toml"), include_str!("../../examples/pipeline/aegis.toml")).expect("written");
    let polite: &[&str] = &["sh", "-c", "\"$0\" \"$@\" || true", AEGIS, "example", "pipeline", "--task", TASK];
    for (arguments, program, code, expected, says) in [
        (&["late.toml"][..], PROGRAM, 0, &["passed"][..], ""),
        (&["edit.toml", "--config", "roster.toml"], PROGRAM, 0, &["passed"], ""),
        (&["edit.toml"], PROGRAM, 1, &["inconclusive"], "name the agents in aegis.toml"),
        (&["late.toml", "--check", "grep -q 42"], PROGRAM, 0, &["passed"], ""),
        (&["late.toml", "--check", "grep -q 43"], PROGRAM, 1, &["failed"], "check exited with 1"),
        (&["late.toml", "--check", "exit 5"], PROGRAM, 1, &["inconclusive"], "check exited with 5"),
        (&["late.toml", "edit.toml", "--check", "grepp 42"], PROGRAM, 2, &["void"], "check exited with 127"),
        (&["denied.toml", "late.toml"], PROGRAM, 1, &["failed", "passed"], "name=\"crashed\"><failure"),
        (&["denied.toml", "--allow", "crashed"], polite, 0, &["passed"], ""),
        (&["denied.toml", "--allow", "crashed"], PROGRAM, 1, &["failed"], "exited with 1"),
        (&["denied.toml"], polite, 0, &["passed"], ""),
        (&["nobody.toml"], PROGRAM, 1, &["inconclusive"], "the plan never fired: status at nobody"),
        (&["tools.toml"], PROGRAM, 0, &["skipped"], "the run has no call of a tool that Aegis answers"),
        (&["idle.toml"], PROGRAM, 0, &["skipped"], "the plan never fired: append_instruction at *"),
        (&["idle.toml", "--strict"], PROGRAM, 1, &["skipped"], "the plan never fired: append_instruction at *"),
        (
            &["nobody.toml", "--allow-inconclusive"],
            PROGRAM,
            0,
            &["inconclusive"],
            "the plan never fired: status at nobody",
        ),
        (&["late.toml", "edit.toml"], &["true"], 3, &["void"], "made no model call"),
        (&["late.toml"], &["sh", "-c", "exit 4"], 3, &["void"], "made no model call"),
        (&["late.toml", "--timeout", "0.3"], &["sleep", "60"], 3, &["void"], "made no model call"),
    ] {
        let (got, data, junit, talk) = tested(dir, arguments, program).await;
        assert_eq!((got, results(&data).as_slice()), (code, expected), "{arguments:?}: {data}\n{talk}");
        assert_eq!(is_red(&junit), code != 0, "{arguments:?}: {junit}");
        // A program that ended with 0 and was not judged is not said to have succeeded, here nor in its record.
        let unjudged = expected.contains(&"passed") && !arguments.contains(&"--check");
        assert_eq!(talk.contains("outcome unknown of 1: without --check"), unjudged, "{talk}");
        assert!(junit.contains("<testcase ") && junit.contains(says), "{arguments:?}: {junit}");
        assert!(talk.lines().last().unwrap_or_default().starts_with("RESULT  "), "{talk}");
        assert_eq!(data["exit"], code, "{data}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_red_run_is_red_again_and_another_name_draws_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    plan(dir, "maybe.toml", "agent = \"*\"\nwhen.probability = 0.3\nfault.status = { code = 401 }");
    let drawn = async |name: &str, more: &[&str]| {
        let arguments = [&["maybe.toml", "--runs", "8", "--name", name][..], more].concat();
        let (_, data, _, talk) = tested(dir, &arguments, PROGRAM).await;
        let results: Vec<String> = results(&data).into_iter().map(str::to_owned).collect();
        assert_eq!(results.len(), 8, "{talk}");
        results
    };
    let first = drawn("nightly", &[]).await;
    assert!(first.contains(&"failed".to_owned()) && first.iter().any(|result| result != "failed"), "{first:?}");
    let (code, _, _, talk) = tested(dir, &["maybe.toml", "--runs", "8", "--name", "nightly"], PROGRAM).await;
    assert!(code == 2 && talk.contains("is recorded already") && talk.contains("--overwrite"), "{talk}");
    assert_eq!(first, drawn("nightly", &["--overwrite"]).await);
    assert_eq!(first, drawn("nightly", &["--log-dir", "elsewhere"]).await);
    let others: Vec<_> = [drawn("weekly", &[]).await, drawn("monthly", &[]).await].into();
    assert!(others.iter().any(|other| *other != first), "{first:?} {others:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_without_a_name_takes_a_place_of_its_own_and_draws_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_, first, ..) = tested(dir.path(), &["slow-service"], PROGRAM).await;
    let (_, second, ..) = tested(dir.path(), &["slow-service"], PROGRAM).await;
    assert_eq!((&first["dir"], &second["dir"]), (&"logs/test".into(), &"logs/test.2".into()));
    let run = |data: &Value| data["plans"][0]["runs"][0]["run"].clone();
    assert_eq!((run(&first), run(&first)), ("test-slow-service-1".into(), run(&second)));
    assert!(dir.path().join("logs/test/test-slow-service-1/seal.json").is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn overwriting_takes_no_other_directory_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let mine = dir.path().join("logs/n/n-slow-service-1");
    fs::create_dir_all(&mine).expect("made");
    fs::write(mine.join("thesis.txt"), "mine").expect("written");
    let (code, _, _, talk) = tested(dir.path(), &["slow-service", "--name", "n", "--overwrite"], PROGRAM).await;
    assert!(code != 0 && talk.contains("is not a recorded run"), "{talk}");
    assert_eq!(fs::read_to_string(mine.join("thesis.txt")).expect("still there"), "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_made_plans_are_found_by_name_and_mistakes_are_answered() {
    let dir = tempfile::tempdir().expect("a directory");
    for (arguments, says) in [
        (&["rate-limits"][..], "did you mean the ready-made plan `rate-limit`?"),
        (&["rate-limit", "rate-limit"], "two plans are called `rate-limit`"),
        (&["rate-limit", "--name", "a b"], "`--name a b` is not allowed"),
        (&["no/such.toml"], "is neither a file nor a ready-made plan"),
    ] {
        let (code, _, _, talk) = tested(dir.path(), arguments, PROGRAM).await;
        assert!(code == 2 && talk.contains(says), "{arguments:?}: {talk}");
    }
    let (code, _, _, talk) = tested(dir.path(), &["slow-service"], &["/no/such/program"]).await;
    assert!(code == 2 && talk.contains("cannot start `/no/such/program`"), "{talk}");
    let (code, out, _) = verb(dir.path(), &["plan", "ready", "rate-limit"]).await;
    assert!(code == Some(0) && out.contains("retry_after_s = 1"), "{out}");
    let (code, out, _) = verb(dir.path(), &["plan", "check", "rate-limit"]).await;
    assert!(code == Some(0) && out.contains("rate-limit: 1 injection"), "{out}");
    let (code, out, _) = verb(dir.path(), &["plan", "ready"]).await;
    assert!(code == Some(0) && out.contains("faults/rate-limit "), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_says_plan_agent_and_call_and_annotates() {
    let dir = tempfile::tempdir().expect("a directory");
    plan(dir.path(), "denied.toml", "agent = \"*\"\nwhen.call = 0\nfault.status = { code = 401 }");
    let arguments =
        ["test", "denied.toml", "slow-service", "--upstream", "simulator", "--github", "--html", "r.html", "--"];
    let (code, out, talk) = verb(dir.path(), &[&arguments[..], PROGRAM].concat()).await;
    assert_eq!(code, Some(1), "{out}\n{talk}");
    for line in ["denied  0 of 1 passed", "slow-service  1 of 1 passed", "! crashed: the program then exited with 1"] {
        assert!(out.contains(line), "`{line}` is not in\n{out}");
    }
    assert!(
        out.contains("::error title=aegis test%3A denied%2C failed::") && out.contains("::error title=aegis test::"),
        "{out}"
    );
    assert!(talk.contains("1/2  denied") && talk.contains(" left"), "{talk}");
    let page = fs::read_to_string(dir.path().join("r.html")).expect("a page");
    assert!(page.contains("test-denied-1") && page.contains("test-slow-service-1"), "the runs are on the page");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_nobody_reaches_is_no_verdict() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments =
        ["--format", "json", "test", "slow-service", "--junit", "j.xml", "--upstream", "http://127.0.0.1:9/v1"];
    plan(dir.path(), "nobody.toml", "agent = \"nobody\"\nwhen.always = true\nfault.status = { code = 500 }");
    for plan in ["nobody.toml", "slow-service"] {
        let arguments: Vec<&str> =
            arguments.iter().map(|&word| if word == "slow-service" { plan } else { word }).collect();
        let (code, out, talk) = verb(dir.path(), &[&arguments[..], &["--"], PROGRAM].concat()).await;
        assert!(code == Some(3) && out.contains("127.0.0.1:9"), "{plan}: {out}\n{talk}");
        assert!(is_red(&fs::read_to_string(dir.path().join("j.xml")).expect("a file")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_replaces_a_recording_only_where_it_is_told_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = async |more: &[&str]| {
        let arguments = [&["run", "--upstream", "simulator", "--run", "r1"][..], more, &["--"], PROGRAM].concat();
        verb(dir.path(), &arguments).await
    };
    assert_eq!(run(&[]).await.0, Some(0));
    let (code, _, talk) = run(&[]).await;
    assert!(code == Some(2) && talk.contains("is sealed"), "{talk}");
    assert_eq!(run(&["--overwrite"]).await.0, Some(0));
}

/// Programs print their keys when they fail, and a test keeps what they print.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_prints_is_kept_without_its_keys() {
    let dir = tempfile::tempdir().expect("a directory");
    let key = ["sk-proj-", "Vq3nT7xKpL9wZr2MbYc4HdJ8sGfA6eUo"].concat();
    let script = "echo out $KEY; echo err $KEY >&2; \"$0\" \"$@\"; exit 7".replace("$KEY", &key);
    let program = [&["sh", "-c", &script][..], PROGRAM].concat();
    let (code, data, junit, talk) = tested(dir.path(), &["rate-limit", "--name", "keys"], &program).await;
    assert_eq!(code, 1, "{talk}");
    let files = crate::secrets::everything(dir.path());
    let leaks: Vec<_> = files.iter().filter(|(_, text)| text.contains(&key)).map(|(path, _)| path).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
    let printed = files.iter().filter(|(_, text)| text.starts_with("out ") || text.starts_with("err ")).count();
    assert!(printed >= 2, "what it printed is kept");
    assert!(!format!("{data}{junit}{talk}").contains(&key));
}
