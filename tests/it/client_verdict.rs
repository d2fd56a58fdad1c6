//! How clients met their faults: told from the recording of what went over the wire.

use std::time::Duration;

use aegis::verdict::{self, ClientVerdict, Judgement, RULES};

use crate::{
    lab::{Lab, Setup, chat},
    program::{AEGIS, verb},
    scripted::{Scripted, chat_stream},
};

fn plan(injections: &[(&str, u32, &str)]) -> String {
    let injections = injections
        .iter()
        .map(|(agent, call, fault)| format!("[[injection]]\nagent = \"{agent}\"\nwhen.call = {call}\nfault.{fault}\n"));
    format!("format = 1\nseed = 7\n{}", injections.collect::<String>())
}

/// The rules that hold for an agent, over all its calls.
fn held(verdict: &ClientVerdict, agent: &str) -> Vec<&'static str> {
    let calls = verdict.calls.iter().filter(|call| call.agent.as_str() == agent);
    calls.flat_map(|call| &call.remarks).map(|remark| remark.rule).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_do_is_told_from_the_recording() {
    let said = ["The boxes ", "hold twelve ", "eggs in all, ", "so it is 12."];
    let upstream = Scripted::always(chat_stream(&said)).await;
    let text = plan(&[
        ("hasty", 0, "status = { code = 429, retry_after_s = 5, attempts = \"first\" }"),
        ("patient", 0, "status = { code = 503, retry_after_ms = 120, attempts = \"first\" }"),
        ("stubborn", 0, "status = { code = 401 }"),
        ("believer", 0, "cut = { at = { after_frames = 3 }, clean = true }"),
        ("asker", 0, "cut = { at = { after_frames = 3 }, clean = true, attempts = \"first\" }"),
        ("late", 9, "status = { code = 500 }"),
    ]);
    let mut lab = Lab::before(upstream.address, Setup::planned(&text)).await;
    let ask = async |agent: &str, body: &[u8]| {
        lab.post(&format!("/a/{agent}/v1/chat/completions"), body).await;
    };
    for agent in ["hasty", "patient", "stubborn", "asker"] {
        ask(agent, &chat("How many eggs?")).await;
        // The very wait that is judged.
        tokio::time::sleep(Duration::from_millis(150)).await;
        ask(agent, &chat("How many eggs?")).await;
    }
    ask("believer", &chat("How many eggs?")).await;
    ask("reader", &chat("A colleague says: The boxes hold twelve eggs in all,")).await;
    let verdict = verdict::read(&lab.sealed("r0").await);
    for (agent, expected) in [
        ("hasty", &["healed", "ignored_retry_after"][..]),
        ("patient", &["healed"]),
        // A fault of every try meets the second, too: it is no call of its own.
        ("stubborn", &["retried", "retried_non_retryable", "gave_up"]),
        ("asker", &["healed"]),
        ("believer", &["accepted_truncated"]),
        ("reader", &[]),
    ] {
        assert_eq!(held(&verdict, agent), expected, "{agent}: {verdict:#?}");
    }
    let delivered: Vec<u32> = verdict.faults.iter().map(|fault| fault.delivered).collect();
    assert_eq!(delivered, [1, 1, 2, 1, 1, 0]);
    let results = [0, 1, 5].map(|index| verdict.faults[index].result);
    assert_eq!(results, [Judgement::Failed, Judgement::Passed, Judgement::Inconclusive]);
    assert_eq!(verdict.result, Judgement::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_the_same_again_is_one_caller_whatever_it_looks_like() {
    let upstream = Scripted::always(chat_stream(&["It is 12."])).await;
    let text =
        "format = 1\nseed = 7\n[[injection]]\nagent = \"*\"\nwhen.always = true\nfault.status = { code = 401 }\n";
    let mut lab = Lab::before(upstream.address, Setup::planned(text)).await;
    for _ in 0..3 {
        assert_eq!(lab.post("/v1/chat/completions", &chat("How many eggs?")).await.status, 401);
    }
    assert_eq!(lab.post("/v1/chat/completions", &chat("How many hens?")).await.status, 401);
    let verdict = verdict::read(&lab.sealed("r0").await);
    let tries: Vec<usize> = verdict.calls.iter().map(|call| call.tries.len()).collect();
    assert_eq!(tries, [3, 1], "{verdict:#?}");
}

/// What `run` says of a program that ships with the proxy, under a plan: exit code, data, `JUnit` file.
async fn run(plan: &str) -> (Option<i32>, serde_json::Value, String, String) {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("plan.toml"), plan).expect("written");
    let arguments = ["--format", "json", "run", "--upstream", "simulator", "--run", "r1", "--plan", "plan.toml"];
    let program = [
        "--junit",
        "junit.xml",
        "--",
        AEGIS,
        "example",
        "pipeline",
        "--task",
        "A box holds 6 eggs. How many eggs do 7 boxes hold?",
    ];
    let (code, out, talk) = verb(dir.path(), &[&arguments[..], &program].concat()).await;
    let last = out.lines().last().unwrap_or_default();
    let data = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {out}\n{talk}"));
    let junit = std::fs::read_to_string(dir.path().join("junit.xml")).expect("a file");
    let shown = verb(dir.path(), &["show", "logs/r1", "--verdict"]).await;
    assert_eq!(shown.0, code.map(|code| code.min(1)), "{}", shown.1);
    // A rule that is allowed, here or in aegis.toml, finds no defect.
    let allowed = verb(dir.path(), &["show", "logs/r1", "--verdict", "--allow", "crashed"]).await;
    std::fs::write(dir.path().join("own.toml"), "[test]\nallow = [\"crashed\"]\n").expect("written");
    let configured = verb(dir.path(), &["show", "logs/r1", "--verdict", "--config", "own.toml"]).await;
    assert_eq!(
        (allowed.0, configured.0),
        if shown.1.contains("! crashed") { (Some(0), Some(0)) } else { (shown.0, shown.0) },
        "{}",
        allowed.1
    );
    (code, data, junit, shown.1)
}

#[tokio::test(flavor = "multi_thread")]
async fn run_tells_a_passed_a_failed_and_an_inconclusive_verdict_apart() {
    let all = |fault: &str| plan(&[("*", 0, fault)]);
    let (code, data, junit, shown) = run(&all("status = { code = 429, retry_after_ms = 30, attempts = 1 }")).await;
    assert_eq!((code, &data["client"]["result"]), (Some(0), &"passed".into()), "{data}");
    assert!(junit.contains("failures=\"0\" errors=\"0\""), "{junit}");
    assert!(shown.contains("healed") && data["result"].as_str().expect("a line").contains("client passed"), "{shown}");

    let (code, data, junit, shown) = run(&all("status = { code = 401 }")).await;
    assert_eq!((code, &data["client"]["result"]), (Some(1), &"failed".into()), "{data}");
    assert!(
        junit.contains("name=\"crashed\"><failure message=") && junit.contains("the program then exited with 1"),
        "{junit}"
    );
    assert!(shown.contains("! crashed"), "{shown}");

    let (code, data, junit, shown) = run(&plan(&[("*", 50, "status = { code = 500 }")])).await;
    assert_eq!((code, &data["client"]["result"]), (Some(1), &"inconclusive".into()), "{data}");
    assert!(junit.contains("<error message=\"inconclusive, never delivered: status at * (injection 0)\"/>"), "{junit}");
    assert!(shown.contains("inconclusive, never delivered"), "{shown}");
}

#[test]
fn the_page_lists_every_rule() {
    let page = include_str!("../../docs/client-verdict.md");
    for rule in RULES {
        assert!(page.contains(&format!("| `{}` |", rule.name)), "docs/client-verdict.md lacks `{}`", rule.name);
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, RULES.len(), "rows without a rule");
}
