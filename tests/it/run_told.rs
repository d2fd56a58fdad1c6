//! What `aegis run` says of a run of which nothing can be told: a check that is none, an upstream that is not there.

use std::path::Path;

use tokio::net::TcpListener;

use crate::{
    program::aegis,
    scripted::{Act, Scripted, http},
};

const PIPELINE: &str = "example pipeline --task 'Ann has 40 pencils and gives away 12. How many are left?'";

/// Exit code and talk of a run of this shell line.
async fn run(dir: &Path, options: &[&str], line: &str) -> (Option<i32>, String) {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let line = line.replace("PIPELINE", &format!("{} {PIPELINE}", crate::program::AEGIS));
    let head = ["run", "--config", config];
    let output =
        aegis(dir).args([&head[..], options, &["--", "sh", "-c", &line]].concat()).output().await.expect("ran");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn a_check_that_cannot_tell_is_never_a_success() {
    let dir = tempfile::tempdir().expect("a directory");
    for (check, code, says) in [
        ("grepp 28", 2, &["error: --check cannot be run: check exited with 127", "RESULT  usage"][..]),
        ("./not-there", 2, &["error: --check cannot be run: check exited with 127", "RESULT  usage"]),
        ("/", 2, &["error: --check cannot be run: check exited with 126", "RESULT  usage"]),
        ("echo perhaps; exit 3", 1, &["outcome  check exited with 3: perhaps", "RESULT  finding", "outcome unknown"]),
        ("echo 27 expected; exit 1", 1, &["outcome  check exited with 1: 27 expected", "outcome failure"]),
        ("grep -q 'ANSWER: 28'", 0, &["RESULT  ok", "outcome success"]),
    ] {
        let (ended, said) = run(dir.path(), &["--upstream", "simulator", "--check", check], "PIPELINE").await;
        assert_eq!(ended, Some(code), "{check}: {said}");
        for words in says {
            assert!(said.contains(words), "{check}: `{words}` is not in\n{said}");
        }
    }
}

#[tokio::test]
async fn an_upstream_that_nobody_reaches_is_said_whatever_the_program_makes_of_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("its address").port();
    let nobody = format!("http://127.0.0.1:{port}");
    // One program says what it met and crashes, another is polite and says nothing.
    for line in ["PIPELINE", "PIPELINE || true"] {
        let (code, said) = run(dir.path(), &["--upstream", &nobody], line).await;
        assert_eq!(code, Some(3), "{line}: {said}");
        assert!(said.contains(&format!("error: none of the run's calls reached {nobody}")), "{line}: {said}");
        assert!(said.contains("RESULT  infrastructure"), "{line}: {said}");
    }
    // The program is told whom nobody reached.
    let (_, said) = run(dir.path(), &["--upstream", &nobody], "PIPELINE").await;
    assert!(said.contains(&format!("cannot reach the upstream {nobody}")), "{said}");
}

#[tokio::test]
async fn calls_of_an_api_that_is_not_read_are_counted_and_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", r#"{"candidates":[]}"#)]).await;
    let url = format!("http://{}", upstream.address);
    let call = "import os, urllib.request as u; \
        u.urlopen(u.Request(os.environ['OPENAI_BASE_URL'].removesuffix('/v1') + '/v1beta/models/g:embedContent', b'{}')).read()";
    let options = ["run", "--upstream", &url, "--run", "g", "--", "python3", "-c", call];
    let output = aegis(dir.path()).args(options).output().await.expect("ran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(
            "warning: 1 of the steps are calls that are recorded, not read: gemini_embed (embeddings; Google)"
        ),
        "{said}"
    );
    assert!(said.contains("1 steps  1 unread"), "{said}");
    let steps = aegis::recording::read(&dir.path().join("logs/g")).expect("read").trajectory.steps;
    assert_eq!((steps[0].surface.as_str(), steps[0].path.as_str()), ("gemini_embed", "/v1beta/models/g:embedContent"));
}

#[tokio::test]
async fn a_key_that_the_upstream_refuses_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let refusal = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: 32\r\n\r\n\
                   {\"error\":{\"message\":\"no such key\"}}";
    let refusal = refusal.replace("content-length: 32", "content-length: 35");
    let upstream = Scripted::start(vec![vec![Act::Say(refusal.into_bytes())]]).await;
    let url = format!("http://{}", upstream.address);
    let (code, said) = run(dir.path(), &["--upstream", &url], "PIPELINE || true").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("warning: {url} answered every call with 401")), "{said}");
    assert!(said.contains("hint: it wants a key"), "{said}");
}

/// The last line, where a verb has one.
fn result(said: &str) -> Option<&str> {
    said.lines().rev().find_map(|line| line.strip_prefix("RESULT  "))
}

#[tokio::test]
async fn what_ran_out_of_time_is_said_to_have() {
    let dir = tempfile::tempdir().expect("a directory");
    let (code, said) = run(dir.path(), &["--upstream", "simulator", "--timeout", "0.3"], "sleep 20").await;
    assert!(code == Some(3) && said.contains("error: the command timed out (--timeout)"), "{said}");
    let (code, said) =
        run(dir.path(), &["--upstream", "simulator", "--timeout", "3", "--run", "slow"], "PIPELINE; sleep 60").await;
    assert!(code == Some(1) && said.contains("outcome  the command ran out of time"), "{said}");
    assert!(result(&said).is_some_and(|line| line.contains("outcome failure: timed out (--timeout)")), "{said}");
    let (code, said) = run(dir.path(), &["--upstream", "simulator"], "PIPELINE; exit 7").await;
    assert!(code == Some(1) && said.contains("outcome failure: ended with 7"), "{said}");
}

#[tokio::test]
async fn a_rule_of_the_roster_that_meets_no_call_is_said_where_calls_have_no_name() {
    let dir = tempfile::tempdir().expect("a directory");
    let rule = |name: &str, says: &str| format!("[[agent]]\nname = \"{name}\"\nsystem_contains = \"{says}\"\n");
    let named = rule("planner", "You are the planner.") + &rule("solver", "You are the solver.");
    let warning = "warning: no step is of `critic`, and others are of agents that nobody named";
    for (rules, is_warned) in [
        (named.clone() + &rule("critic", "You are a critic."), true),
        (named.clone() + &rule("critic", "You are the critic."), false),
        // One more agent that was not called.
        (named + &rule("judge", "You are the critic.") + &rule("critic", "You rule."), false),
    ] {
        std::fs::write(dir.path().join("roster.toml"), &rules).expect("written");
        let options = ["run", "--config", "roster.toml", "--upstream", "simulator", "--", "sh", "-c"];
        let line = format!("{} {PIPELINE}", crate::program::AEGIS);
        let output = aegis(dir.path()).args(options).arg(&line).output().await.expect("ran");
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(talk.contains(warning), is_warned, "{rules}\n{talk}");
    }
}

/// CI servers look at the file, shells at the exit code: neither is green alone, and no file is without a case.
#[tokio::test]
async fn a_junit_file_is_red_exactly_where_the_exit_code_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let misspelt = "[[injection]]\nagent = \"solvr\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
                    manipulator.corrupt_number = { which = \"last\", by = 10 }\n";
    let delayed = "[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.latency = { ms = 1 }\n";
    for (name, plan) in [("misspelt.toml", misspelt), ("delayed.toml", delayed)] {
        std::fs::write(dir.path().join(name), plan).expect("written");
    }
    for (number, (options, line, code, says)) in [
        (&[][..], "PIPELINE", 0, "failures=\"0\""),
        (&["--check", "true"], "PIPELINE", 0, "failures=\"0\""),
        (&["--check", "false"], "PIPELINE", 1, "<failure message=\"finding: "),
        (&["--check", "exit 3"], "PIPELINE", 1, "outcome unknown"),
        (&[], "PIPELINE; exit 4", 1, "ended with 4"),
        (&["--plan", "misspelt.toml"], "PIPELINE", 1, "no altered byte was delivered"),
        (&["--plan", "delayed.toml"], "PIPELINE", 0, "failures=\"0\""),
        (&["--plan", "delayed.toml", "--check", "false"], "PIPELINE", 1, "outcome failure"),
        (&["--plan", "delayed.toml"], "true", 3, "<error message=\"inconclusive"),
        (&[], "true", 3, "<failure message=\"infrastructure: "),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.xml");
        let options = [&["--upstream", "simulator", "--junit", name.as_str()], options].concat();
        let (ended, said) = run(dir.path(), &options, line).await;
        assert_eq!(ended, Some(code), "{options:?}: {said}");
        let junit = std::fs::read_to_string(dir.path().join(&name)).expect("a file");
        let is_red = !(junit.contains("failures=\"0\"") && junit.contains("errors=\"0\""));
        assert_eq!(is_red, code != 0, "{options:?}: {junit}");
        assert!(junit.contains(says) && !junit.contains("tests=\"0\""), "{options:?}: {junit}");
    }
}

#[tokio::test]
async fn a_fault_that_was_delivered_is_not_said_to_have_altered_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let plan = "[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.spoil_answer = { how = \"empty\" }\n";
    std::fs::write(dir.path().join("spoil.toml"), plan).expect("written");
    let (_, said) = run(dir.path(), &["--upstream", "simulator", "--plan", "spoil.toml"], "PIPELINE").await;
    assert!(said.contains("altered reply"), "{said}");
    assert!(said.contains("no label: faults were delivered, and a fault is no agent's error"), "{said}");
    assert!(!said.contains("no altered byte"), "{said}");
}

#[tokio::test]
async fn calls_are_seen_as_they_pass() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_, said) = run(dir.path(), &["--upstream", "simulator", "-v", "--color", "never"], "PIPELINE").await;
    for (step, agent) in [(0, "planner"), (1, "solver"), (2, "critic")] {
        let line = said.lines().find(|line| line.contains(" call ") && line.contains(&format!("step={step}")));
        let line = line.unwrap_or_else(|| panic!("no line for step {step}:\n{said}"));
        for part in [&format!("agent=\"{agent}\"")[..], "status=200", "bytes=", "ms="] {
            assert!(line.contains(part), "{line}");
        }
    }
    let (_, said) = run(dir.path(), &["--upstream", "simulator"], "PIPELINE").await;
    assert!(!said.contains("status=200"), "only who asks is told: {said}");
}

/// The README names the verbs that end without `RESULT`; all others have one, also where they refuse nothing.
#[tokio::test]
async fn the_last_line_is_result_where_the_readme_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["a", "b"] {
        run(dir.path(), &["--upstream", "simulator", "--run", name], "PIPELINE").await;
    }
    let readme = include_str!("../../README.md");
    let said = readme.split("from the same value as the exit code; ").nth(1).expect("the sentence");
    let without = said.split(" have none").next().expect("the list");
    for (line, ends) in [
        ("diff logs/a logs/b", true),
        ("repair logs/a", true),
        ("plan check rate-limit", true),
        ("doctor --upstream simulator", true),
        ("runs", true),
        ("init mine", true),
        ("plan list hang", false),
        ("show logs/a", false),
        ("agents logs/a", false),
        ("completions bash", false),
        ("man man1", false),
        ("example pipeline --task 1", false),
    ] {
        let output = aegis(dir.path()).args(line.split(' ')).output().await.expect("ran");
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(result(&talk).is_some(), ends, "aegis {line}: {talk}");
        let verb = line.split(' ').next().expect("a verb");
        assert_eq!(without.contains(&format!("`{verb}`")), !ends || line == "plan check rate-limit", "README: {verb}");
    }
}
