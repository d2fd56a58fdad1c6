//! `aegis init`: what it writes is run, and nothing that is there is replaced.

use std::{fs, path::Path};

use crate::program::aegis;

async fn typed(dir: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = aegis(dir).args(words).output().await.expect("ran");
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.code(), said)
}

async fn fine(dir: &Path, words: &[&str]) -> String {
    let (code, said) = typed(dir, words).await;
    assert_eq!(code, Some(0), "aegis {}\n{said}", words.join(" "));
    said
}

#[tokio::test]
async fn a_start_runs_as_it_stands() {
    let dir = tempfile::tempdir().expect("a directory");
    fine(dir.path(), &["init", "mine"]).await;
    fine(dir.path(), &["plan", "check", "mine/plan.toml", "--config", "mine/aegis.toml"]).await;
    let told = fine(dir.path(), &["campaign", "mine/campaign.toml", "--dry-run"]).await;
    assert!(told.contains("clean runs     4") && told.contains("holds no clean run of it"), "{told}");
    let told = fine(dir.path(), &["campaign", "mine/campaign.toml", "--out", "run"]).await;
    assert!(told.contains("1 verified failure from 2 injected runs"), "{told}");
    // Of what is made the cost is known.
    let told = fine(dir.path(), &["campaign", "mine/campaign.toml", "--out", "run", "--dry-run"]).await;
    assert!(
        told.contains("all of it is made") && told.contains("3.0 calls a clean run (3.0 to 3.0, 2 tasks)"),
        "{told}"
    );
    assert!(told.contains("model calls expected, at most"), "{told}");
}

#[tokio::test]
async fn what_is_there_is_never_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("plan.toml"), "mine").expect("written");
    let (code, said) = typed(dir.path(), &["init"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("has plan.toml already, and nothing is replaced")
            && said.contains("hint: name another directory")
    );
    assert_eq!(fs::read_to_string(dir.path().join("plan.toml")).expect("there"), "mine");
    assert!(!dir.path().join("aegis.toml").exists(), "nothing else is written either");
}

/// Of two programs, one with a roster and one without: the plan meets the run, the campaign runs and labels.
#[tokio::test]
async fn a_run_proposes_agents_a_plan_and_a_campaign() {
    let dir = tempfile::tempdir().expect("a directory");
    let roster = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let task = "A box holds 6 eggs. How many eggs do 7 boxes hold?";
    for (example, config) in [("pipeline", &["--config", roster][..]), ("debate", &[])] {
        let head = ["run", "--upstream", "simulator", "--run", example];
        let program = ["--", crate::program::AEGIS, "example", example, "--task", task];
        fine(dir.path(), &[&head[..], config, &program].concat()).await;
        let run = format!("logs/{example}");
        let said = fine(dir.path(), &["init", example, "--from", &run]).await;
        assert!(said.contains(&format!("aegis plan check {example}/plan.toml --against {run}")), "{said}");
        let [plan, campaign, roster] = ["plan", "campaign", "aegis"].map(|file| format!("{example}/{file}.toml"));
        fine(dir.path(), &["agents", &run, "--roster", &roster]).await;
        fine(dir.path(), &["plan", "check", &plan, "--against", &run]).await;
        fine(dir.path(), &["campaign", &campaign, "--dry-run"]).await;
        let text = fs::read_to_string(dir.path().join(&campaign)).expect("the campaign");
        assert!(
            text.contains(r#"command = ["{aegis}", "example""#) && text.contains(r#""--task", "{question}"]"#),
            "{text}"
        );
        let out = format!("{example}-run");
        let (_, said) = typed(dir.path(), &["campaign", &campaign, "--out", &out]).await;
        assert!(said.contains("clean     2 runs   2 passed   1 of 1 tasks × systems go on"), "{said}");
        assert!(said.contains("inject    1 runs   delivered 1"), "{said}");
    }
}

/// Two agents whose prompts begin alike and that a roster told apart, and two with one prompt that it could not.
#[tokio::test]
async fn agents_that_a_roster_named_get_rules_of_their_own_in_the_new_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let rule = |name: &str, words: &str| format!("[[agent]]\nname = \"{name}\"\n{words}\n");
    let roster = rule("alpha", "system_contains = \"Work carefully, from the beginning.\"")
        + &rule("beta", "system_contains = \"Work fast, and check units.\"")
        + &rule("one", "system_contains = \"You judge.\"\nfirst_user_contains = \"3 + 4\"")
        + &rule("two", "system_contains = \"You judge.\"\nfirst_user_contains = \"5 + 6\"");
    fs::write(dir.path().join("aegis.toml"), roster).expect("written");
    let script = "import json, os, urllib.request\n\
        def ask(system, user):\n    \
        messages = [{'role': 'system', 'content': system}, {'role': 'user', 'content': user}]\n    \
        body = json.dumps({'model': 'm', 'messages': messages}).encode()\n    \
        request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body)\n    \
        request.add_header('content-type', 'application/json')\n    \
        urllib.request.urlopen(request).read()\n\
        ask('You are a solver. Work carefully, from the beginning. End with a line.', 'What is 3 + 4?')\n\
        ask('You are a solver. Work fast, and check units. End with a line.', 'What is 3 + 4?')\n\
        ask('You judge. Be fair to all who ask.', 'What is 3 + 4?')\n\
        ask('You judge. Be fair to all who ask.', 'What is 5 + 6?')\n";
    fs::write(dir.path().join("two.py"), script).expect("written");
    fine(dir.path(), &["run", "--upstream", "simulator", "--run", "r", "--", "python3", "two.py"]).await;
    fine(dir.path(), &["init", "from", "--from", "logs/r"]).await;
    let text = fs::read_to_string(dir.path().join("from/aegis.toml")).expect("a roster");
    let table: toml::Table = toml::from_str(&text).expect("TOML");
    let rules = table.get("agent").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let names: Vec<&str> = rules.iter().filter_map(|rule| rule.get("name")?.as_str()).collect();
    assert_eq!(names, ["alpha", "beta"], "{text}");
    let comment = "named by your roster; nothing in its prompt tells it from the others";
    assert_eq!(text.matches(comment).count(), 2, "{text}");
    fine(dir.path(), &["plan", "check", "from/plan.toml", "--against", "logs/r"]).await;
    // The new roster knows them again.
    let again =
        ["run", "--upstream", "simulator", "--config", "from/aegis.toml", "--run", "s", "--", "python3", "two.py"];
    fine(dir.path(), &again).await;
    let said = fine(dir.path(), &["agents", "logs/s"]).await;
    assert!(said.contains("alpha") && said.contains("beta"), "{said}");
}

/// Equal agents that a declared order told apart.
#[tokio::test]
async fn equal_agents_of_a_roster_keep_their_order_in_the_new_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let roster = "[[agent]]\nname = \"debater\"\nsystem_contains = \"You debate.\"\ninstances = 3\norder = \"turn\"\n";
    fs::write(dir.path().join("aegis.toml"), roster).expect("written");
    let script = "import json, os, urllib.request\n\
        messages = [{'role': 'system', 'content': 'You debate.'}, {'role': 'user', 'content': 'What is 3 + 4?'}]\n\
        body = json.dumps({'model': 'm', 'messages': messages}).encode()\n\
        for _ in range(3):\n    \
        request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body)\n    \
        request.add_header('content-type', 'application/json')\n    \
        urllib.request.urlopen(request).read()\n";
    fs::write(dir.path().join("three.py"), script).expect("written");
    let run = |config: &'static str, name: &'static str| {
        ["run", "--upstream", "simulator", "--config", config, "--run", name, "--", "python3", "three.py"]
    };
    fine(dir.path(), &run("aegis.toml", "r")).await;
    fine(dir.path(), &["init", "from", "--from", "logs/r"]).await;
    fine(dir.path(), &run("from/aegis.toml", "s")).await;
    for name in ["logs/r", "logs/s"] {
        let shown = fine(dir.path(), &["show", name]).await;
        assert!(shown.contains("debater#2  200") && !shown.contains('?'), "{name}: {shown}");
    }
}
