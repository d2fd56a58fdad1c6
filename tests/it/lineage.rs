//! Runs that nobody named: opened by lineage, audited, learned and named; and what must stay explicit.

use std::{collections::BTreeSet, path::Path};

use serde_json::{Value, json};

use crate::{
    lab::{Client, request, until},
    program::{Served, aegis},
    scripted::{Scripted, chat_reply, http},
};

const PLAN: &str = "format = 1\nseed = 1\n[[injection]]\nagent = \"*\"\nfailure_mode = \"FM-2.6\"\nwhen.always = true\nmanipulator.corrupt_number = { by = 10 }\n";

async fn ask(served: &Served, path: &str, messages: &Value) -> crate::lab::Reply {
    let body = json!({"model": "m", "messages": messages}).to_string();
    let mut client = Client::connect(served.address).await;
    client.send(&request("POST", path, body.as_bytes(), "Connection: close\r\n")).await;
    client.reply().await
}

fn runs(logs: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(logs).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let mut names: Vec<String> = entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

async fn agents(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let done = aegis(dir).arg("agents").args(arguments).output().await.expect("it runs");
    let said = String::from_utf8(done.stdout).expect("text");
    (done.status.code().unwrap_or(-1), said + &String::from_utf8_lossy(&done.stderr))
}

/// A writer and a critic on one task, then on another: who quotes whom is one run.
async fn two_tasks(served: &Served, replies: &[&str]) {
    for (task, replies) in
        [("Write a text about tides please.", &replies[..2]), ("Write about the bees please.", &replies[2..])]
    {
        let writer = json!([{"role": "system", "content": "You write. Be brief."}, {"role": "user", "content": task}]);
        assert_eq!(ask(served, "/v1/chat/completions", &writer).await.status, 200);
        let critic = json!([{"role": "system", "content": "You criticise."},
            {"role": "user", "name": "user", "content": task}, {"role": "user", "name": "Tide Writer", "content": replies[0]}]);
        assert_eq!(ask(served, "/v1/chat/completions", &critic).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_program_is_learned_once_and_named_ever_after() {
    let replies = [
        "Tides rise and fall twice a day by the moon.",
        "The first claim holds.",
        "Bees find home by the sun and by their noses.",
        "The second claim holds.",
    ];
    let script = || replies.iter().map(|text| vec![http("200 OK", "application/json", &chat_reply(text))]).collect();
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::start(script()).await;
    let url = format!("http://{}", upstream.address);
    let served = Served::start(dir.path(), &["--upstream", &url, "--log-dir", "logs"]).await;
    two_tasks(&served, &replies).await;
    assert_eq!(served.stop().await, Some(0));
    let found = runs(&dir.path().join("logs"));
    assert_eq!(found.len(), 2, "{found:?}");
    let first = format!("logs/{}", found[0]);

    let (code, audit) = agents(dir.path(), &[&first, "--format", "json"]).await;
    let audit: Value = serde_json::from_str(&audit).expect(&audit);
    assert_eq!(code, 0);
    for key in ["step", "call", "turn", "agent", "instance", "kind", "source", "confidence", "ambiguous"] {
        assert!(audit["steps"][0].get(key).is_some(), "{key}: {audit}");
    }
    assert_eq!(audit["steps"][0]["source"], "fingerprint");
    assert_eq!(audit["steps"][0]["display"], "Tide Writer", "its answer came back under that name");
    assert_eq!(audit["steps"][1]["run_source"], "quotes");
    let (_, shown) = agents(dir.path(), &[&first, "--evidence"]).await;
    assert!(shown.contains("perhaps `Tide Writer`") && shown.contains("(run by quotes)"), "{shown}");

    // What it proposes is a configuration; a person names the one that nobody named.
    let (_, proposed) = agents(dir.path(), &[&first, "--suggest"]).await;
    let unnamed = audit["steps"][1]["agent"].as_str().expect("a name");
    let roster = proposed.replace(&format!("name = \"{unnamed}\""), "name = \"Critic\"");
    assert_ne!(roster, proposed, "{proposed}");
    std::fs::write(dir.path().join("aegis.toml"), &roster).expect("written");
    let (code, change) = agents(dir.path(), &[&first, "--roster", "aegis.toml"]).await;
    assert!(code == 0 && change.contains("becomes Critic") && change.contains("becomes Tide Writer"), "{change}");
    let stray = format!("{roster}\n[[agent]]\nname = \"Nobody\"\nsystem_contains = \"never said\"\n");
    std::fs::write(dir.path().join("stray.toml"), stray).expect("written");
    let (code, change) = agents(dir.path(), &[&first, "--roster", "stray.toml"]).await;
    assert!(code == 1 && change.contains("number 3 fits no step"), "{change}");

    let upstream = Scripted::start(script()).await;
    let url = format!("http://{}", upstream.address);
    let served = Served::start(dir.path(), &["--upstream", &url, "--log-dir", "again"]).await;
    two_tasks(&served, &replies).await;
    assert_eq!(served.stop().await, Some(0));
    for run in runs(&dir.path().join("again")) {
        let recording = aegis::recording::read(&dir.path().join("again").join(run)).expect("a recording");
        let steps = &recording.trajectory.steps;
        let names: Vec<&str> = steps.iter().map(|step| step.attribution.agent.as_str()).collect();
        assert_eq!(names, ["Tide Writer", "Critic"]);
        assert!(steps.iter().all(|step| step.attribution.is_certain()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_wants_to_be_told_the_run_and_hits_nobody_by_belief() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("The total is 12."))]).await;
    std::fs::write(dir.path().join("plan.toml"), PLAN).expect("written");
    let url = format!("http://{}", upstream.address);
    let served = Served::start(dir.path(), &["--upstream", &url, "--log-dir", "logs", "--plan", "plan.toml"]).await;
    let messages = json!([{"role": "system", "content": "You add."}, {"role": "user", "content": "5 and 7"}]);
    let refused = ask(&served, "/v1/chat/completions", &messages).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let believed = ask(&served, "/r/one/v1/chat/completions", &messages).await;
    assert!(believed.text().contains("The total is 12."), "known by its looks only: not hit");
    let declared = ask(&served, "/r/two/a/adder/v1/chat/completions", &messages).await;
    assert!(!declared.text().contains("The total is 12."), "declared: hit");
    assert_eq!(served.stop().await, Some(0));
    let recording = aegis::recording::read(&dir.path().join("logs/one")).expect("a recording");
    assert!(recording.notes.iter().any(|note| note.contains("is only believed")), "{:?}", recording.notes);
    assert!(recording.label.is_none());
}

/// Many runs at once, each named: nothing of one is in another, whatever lineage would say.
#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_named_runs_at_once_hold_no_foreign_exchange() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream =
        Scripted::always(vec![http("200 OK", "application/json", &chat_reply("Understood, all of it."))]).await;
    let url = format!("http://{}", upstream.address);
    let served = std::sync::Arc::new(Served::start(dir.path(), &["--upstream", &url, "--log-dir", "logs"]).await);
    let mut programs = tokio::task::JoinSet::new();
    for run in 0..64 {
        let served = std::sync::Arc::clone(&served);
        programs.spawn(async move {
            for call in 0..4 {
                let messages = json!([{"role": "system", "content": "You act."}, {"role": "user", "content": format!("task {run} call {call}.")}]);
                assert_eq!(ask(&served, &format!("/r/run-{run}/v1/chat/completions"), &messages).await.status, 200);
            }
        });
    }
    programs.join_all().await;
    let served = std::sync::Arc::into_inner(served).expect("the last one");
    assert_eq!(served.stop().await, Some(0));
    let found: BTreeSet<String> = runs(&dir.path().join("logs")).into_iter().collect();
    assert_eq!(found.len(), 64);
    for run in 0..64 {
        let recording = aegis::recording::read(&dir.path().join(format!("logs/run-{run}"))).expect("a recording");
        assert_eq!(recording.trajectory.steps.len(), 4);
        for step in &recording.trajectory.steps {
            assert!(
                String::from_utf8_lossy(&step.request).contains(&format!("task {run} call ")),
                "a foreign call in {run}"
            );
        }
    }
}

/// Each open run holds descriptors, so requests that have nothing in common end the oldest one each, before they run out.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_have_nothing_in_common_never_run_out_of_descriptors() {
    const STRANGERS: usize = 1500;
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("Fine."))]).await;
    let url = format!("http://{}", upstream.address);
    let served = Served::start_after("ulimit -n 2300", dir.path(), &["--upstream", &url, "--log-dir", "logs"]).await;
    for number in 0..STRANGERS {
        let task = format!("Question {number}: which of {} and {} is prime?", number * 31 + 1, number * 37 + 5);
        let reply = ask(&served, "/v1/chat/completions", &json!([{"role": "user", "content": task}])).await;
        assert_eq!(reply.status, 200, "{number}: {}", reply.text());
    }
    let logs = dir.path().join("logs");
    let found = runs(&logs);
    assert_eq!(found.len(), STRANGERS);
    let open = || found.iter().filter(|run| !logs.join(run).join("seal.json").exists()).count();
    // Of those that made room, sixteen at most are being sealed beside the traffic.
    let now = open();
    assert!(now <= 1024 + 16, "{now} runs are open");
    until("those that made room are sealed", || open() <= 1024).await;
    assert_eq!(served.stop().await, Some(0));
    for run in &found {
        let recording = aegis::recording::read(&logs.join(run)).expect("a recording");
        assert_eq!(recording.trajectory.steps.len(), 1, "{run}");
    }
    // The next server takes up what this one left, and has room for more.
    let served = Served::start_after("ulimit -n 2300", dir.path(), &["--upstream", &url, "--log-dir", "logs"]).await;
    let reply = ask(&served, "/v1/chat/completions", &json!([{"role": "user", "content": "Is nine prime?"}])).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(served.stop().await, Some(0));
}
