//! Runs that are watched: what is said, recorded, counted and refused, and that nothing is where nobody watches.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    lab::{Client, Reply, chat},
    program::{AEGIS, Served, verb},
    scripted::{Scripted, chat_reply, http},
};

const TASK: &str = "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?";
const LONG: &str = "I went through every single step of the plan once more and I am still quite sure that the result of it is \
                    as it was when I said it first";

async fn asked(served: &Served, path: &str, text: &str) -> Reply {
    let mut client = Client::connect(served.address).await;
    let body = chat(text);
    client.send(&crate::lab::request("POST", path, &body, "connection: close\r\n")).await;
    client.reply().await
}

fn roster(dir: &Path) {
    let roster = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    std::fs::copy(roster, dir.join("aegis.toml")).expect("copied");
}

#[tokio::test]
async fn a_rule_that_the_user_named_stops_its_run_and_no_other() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply(LONG))]).await;
    let url = format!("http://{}/v1", upstream.address);
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--upstream", &url, "--watch", "stop:repetition", "--control", "127.0.0.1:0"];
    let served = Served::start(dir.path(), &arguments).await;
    for (path, expected) in [
        ("/r/one/a/solver/v1/chat/completions", 200),
        ("/r/one/a/solver/v1/chat/completions", 200),
        ("/r/two/a/solver/v1/chat/completions", 200),
    ] {
        assert_eq!(asked(&served, path, &format!("question {path}")).await.status, expected, "{path}");
    }
    let refused = asked(&served, "/r/one/a/critic/v1/chat/completions", "third").await;
    refused.assert_own_error(409, "stopped_by_rule");
    assert!(refused.text().contains("run `one` was stopped by the rule `repetition` at step 1"), "{}", refused.text());
    assert_eq!(refused.header("x-should-retry").as_deref(), Some("false"));
    assert_eq!(asked(&served, "/r/two/a/critic/v1/chat/completions", "goes on").await.status, 200);
    assert_eq!(upstream.count(), 4, "a refused call costs nothing");
    let said = served.said();
    assert!(
        said.contains("watch    one  solver at step 1: repetition (FM-1.3 step repetition): the agent says again"),
        "{said}"
    );
    assert!(said.contains("stopped  one") && !said.contains("stopped  two"), "{said}");
    // What it counts, for whoever scrapes it.
    let (control, token) = said
        .lines()
        .find_map(|line| line.strip_prefix("control http://")?.split_once("/aegis/v1/runs  token "))
        .expect("a control listener");
    let mut client = Client::connect(control.parse().expect("an address")).await;
    let get = format!(
        "GET /metrics HTTP/1.1\r\nhost: {control}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    client.send(get.as_bytes()).await;
    let figures = client.reply().await.text();
    assert!(figures.contains("aegis_watch_signs_total{rule=\"repetition\"} 1"), "{figures}");
    assert!(figures.contains("aegis_runs_open 2") && !figures.contains("new-number"), "{figures}");
    // It stands in the log, and the run is whole.
    served.stop().await;
    let recording = aegis::recording::read(&dir.path().join("logs/one")).expect("a run");
    let signs: Vec<_> = recording.watched.iter().map(|sign| (sign.rule.as_str(), sign.step, sign.stops)).collect();
    assert_eq!((signs, recording.trajectory.steps.len()), (vec![("repetition", 1, true)], 2));
    assert!(recording.watched[0].quote.starts_with("I went through every single step"), "{:?}", recording.watched);
    // The next server lets no run go on that was stopped.
    let served = Served::start(dir.path(), &arguments).await;
    let refused = asked(&served, "/r/one/a/critic/v1/chat/completions", "fourth").await;
    refused.assert_own_error(409, "stopped_by_rule");
    assert_eq!(asked(&served, "/r/two/a/critic/v1/chat/completions", "goes on").await.status, 200);
    served.stop().await;
}

#[tokio::test]
async fn a_run_that_is_watched_says_records_and_shows_it() {
    let dir = tempfile::tempdir().expect("a directory");
    roster(dir.path());
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/plans/corrupt-number.toml");
    let check = "grep -q 'ANSWER: 84'";
    let tail = ["--check", check, "--", AEGIS, "example", "pipeline", "--task", TASK];
    let of = |head: &[&'static str]| -> Vec<&str> { [&["run", "--upstream", "simulator"][..], head, &tail].concat() };
    let (code, _, talk) = verb(dir.path(), &of(&["--run", "plain", "--plan", plan])).await;
    assert_eq!(code, Some(1), "{talk}");
    let watch = ["--run", "watched", "--plan", plan, "--watch", "warn", "--watch-rules", "other-result"];
    let (code, _, talk) = verb(dir.path(), &of(&watch)).await;
    assert!(code == Some(1) && talk.contains("watch    watched  solver at step 1: other-result (FM-2.6"), "{talk}");
    assert!(talk.lines().last().expect("a line").ends_with("1 signs of trouble"), "{talk}");
    // Nobody watched: nothing is recorded of it, and the same is seen afterwards.
    let read = |run: &str| aegis::recording::read(&dir.path().join("logs").join(run)).expect("a run");
    assert!(read("plain").watched.is_empty() && read("watched").watched.len() == 1);
    for run in ["plain", "watched"] {
        let dir = dir.path();
        let run = format!("logs/{run}");
        let (code, out, _) = verb(dir, &["show", &run, "--watch-rules", "other-result"]).await;
        assert!(code == Some(1) && out.starts_with("solver at step 1: other-result"), "{out}");
        let (code, out, _) = verb(dir, &["show", &run, "--watch-rules", "--format", "json"]).await;
        let data: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!((code, &data["watched"]), (Some(0), &json!([])), "what is off looks only where it is named");
    }
    let (_, out, _) = verb(dir.path(), &["show", "logs/watched"]).await;
    assert!(out.contains("watch    solver at step 1: other-result"), "{out}");
    // A stopped run is a finding, whatever its check would say of it.
    let stop = ["--run", "stopped", "--plan", plan, "--watch", "stop:other-result"];
    let (code, out, talk) = verb(dir.path(), &of(&stop)).await;
    assert!(code == Some(1) && talk.contains("stopped by other-result at step 1"), "{talk}{out}");
    assert_eq!(read("stopped").trajectory.steps.len(), 2, "the critic's call was refused");
    for (watch, expected) in [
        (&["--watch", "warn", "--watch-rules", "repetiton"][..], "did you mean `repetition`?"),
        (&["--watch", "stop:no-verifier"], "no call left that it could stop"),
        (&["--watch", "halt"], "expected `warn`, or `stop:RULE[,RULE]`"),
        (&["--watch", "warn", "--watch-end", "("], "--watch-end is not a regular expression"),
        (&["--watch-rules", "all"], "--watch"),
    ] {
        let (code, _, talk) = verb(dir.path(), &of(&[&["--run", "never"], watch].concat())).await;
        assert!(code == Some(2) && talk.contains(expected), "{watch:?}: {talk}");
    }
    assert!(!dir.path().join("logs/never").exists());
}

#[tokio::test]
async fn what_has_changed_since_is_told_with_intervals() {
    let dir = tempfile::tempdir().expect("a directory");
    roster(dir.path());
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/plans/corrupt-number.toml");
    for (run, planned) in [("a1", false), ("a2", false), ("b1", true), ("b2", true)] {
        let mut arguments = vec!["run", "--upstream", "simulator", "--run", run, "--check", "grep -q 'ANSWER: 84'"];
        arguments.extend(planned.then_some(["--plan", plan]).into_iter().flatten());
        arguments.extend(["--", AEGIS, "example", "pipeline", "--task", TASK]);
        verb(dir.path(), &arguments).await;
    }
    let since = ["runs", "logs", "--since", "b1", "--watch-rules", "all"];
    let (code, out, talk) = verb(dir.path(), &[&since[..], &["--format", "json"]].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    let data: Value = serde_json::from_str(&out).expect("JSON");
    let rates = &data["rates"];
    assert_eq!((&rates["before"], &rates["after"], &data["planned"]), (&2.into(), &2.into(), &2.into()), "{data}");
    let rows = rates["rows"].as_array().expect("rows");
    let row = |rule: &str| rows.iter().find(|row| row["rule"] == rule).unwrap_or_else(|| panic!("{rule}: {rows:?}"));
    assert_eq!((&row("failure")["before"]["runs"], &row("failure")["after"]["runs"]), (&0.into(), &2.into()));
    let other = row("other-result");
    assert_eq!((&other["agent"], &other["change"], &other["after"]["of"]), (&"solver".into(), &1.0.into(), &2.into()));
    assert!(other["interval"]["low"].as_f64() > Some(0.0), "{other}");
    let (_, out, _) = verb(dir.path(), &since).await;
    assert!(out.contains("solver other-result") && out.contains("2/2 [0.342, 1.000]"), "{out}");
    for (since, expected) in [("b9", "did you mean the run `b"), ("someday", "is no run here, and no time")] {
        let (code, _, talk) = verb(dir.path(), &["runs", "logs", "--since", since]).await;
        assert!(code == Some(2) && talk.contains(expected), "{talk}");
    }
    for since in ["1h", "2020-01-01", "2020-01-01T00:00:00Z"] {
        let (code, _, talk) = verb(dir.path(), &["runs", "logs", "--since", since]).await;
        assert!(code == Some(0) && talk.contains("0 runs before, 4 since"), "{talk}");
    }
}
