//! Is a planted change the failure mode that it is called? `aegis modes`, asked of judges whose answers are written down, and of
//! people on the page; what they say, every verb that reads the label says too.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    attribute::ScriptedJudge,
    program::verb,
    viewer::{View, json_of, recorded},
};

/// What acts against its own reasoning, which the recorded plan calls its edit.
const MEANING: &str = "acts against its own reasoning";

/// The letter in front of a mode, by its meaning; that of none where it is not offered.
fn letter(question: &str, meaning: &str) -> String {
    let line = question.lines().find(|line| line.contains(meaning)).unwrap_or("D");
    line.chars().next().expect("a letter").to_string()
}

fn answer(letter: &str) -> (u16, String) {
    (200, json!({"reason": "so it looks", "letter": letter}).to_string())
}

fn asked_of(body: &Value) -> &str {
    body["messages"][1]["content"].as_str().unwrap_or_default()
}

/// What `show` says of the mode of the run `second`.
async fn shown(dir: &Path) -> String {
    let (_, said, _) = verb(dir, &["show", "logs/second"]).await;
    said.lines().find(|line| line.starts_with("label")).expect("a label").to_owned()
}

async fn ask(dir: &Path, judge: &ScriptedJudge, name: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let url = judge.url();
    let common = ["modes", "logs", "--upstream", &url, "--model", name, "--cassette", "asked"];
    verb(dir, &[&common[..], more].concat()).await
}

#[tokio::test]
async fn judges_and_people_confirm_and_refute_and_the_label_is_read_with_what_they_say() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    recorded(dir).await;
    assert!(shown(dir).await.ends_with("mode FM-2.6 reasoning-action mismatch applicable"), "{}", shown(dir).await);
    let label = std::fs::read(dir.join("logs/second/label.json")).expect("a label");

    let right = ScriptedJudge::start(|body| answer(&letter(asked_of(body), MEANING))).await;
    let (code, table, talk) = ask(dir, &right, "careful", &[]).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(talk.contains("1 planted change, 1 judged: 1 confirmed, 0 refuted, 0 undecided; answers replayed 0 of 2"));
    let counts: Vec<&str> = table.lines().nth(1).expect("a row").split_whitespace().skip(3).collect();
    assert_eq!(counts, ["1", "0", "0", "1", "0"], "{table}");
    assert!(shown(dir).await.ends_with("FM-2.6 reasoning-action mismatch confirmed by careful"));
    // Two of three are enough; each is asked in its own order, and none is told what the plan calls it.
    let asked = right.asked();
    assert_eq!(asked.len(), 2);
    let orders: Vec<Vec<&str>> = asked
        .iter()
        .map(|body| {
            asked_of(body)
                .lines()
                .filter(|line| line.starts_with(char::is_alphabetic) && line.get(1..3) == Some(". "))
                .map(|line| &line[3..])
                .collect()
        })
        .collect();
    assert!(orders.iter().all(|order| order.len() == 4) && orders[0] != orders[1], "{orders:?}");
    assert!(asked.iter().all(|body| asked_of(body).contains("[-84-]{+94+}")), "{}", asked_of(&asked[0]));

    // The same again asks nobody and adds nothing.
    let facts = std::fs::read(dir.join("logs/second/facts.jsonl")).expect("facts");
    let (_, _, talk) = ask(dir, &right, "careful", &[]).await;
    assert!(talk.contains("answers replayed 2 of 2") && right.asked().len() == 2, "{talk}");
    assert_eq!(std::fs::read(dir.join("logs/second/facts.jsonl")).expect("facts"), facts);
    assert_eq!(
        std::fs::read(dir.join("logs/second/label.json")).expect("a label"),
        label,
        "the label is read with facts"
    );

    // Judges who disagree leave it as it was.
    let other = ScriptedJudge::start(|_| answer("D")).await;
    let (code, table, talk) = ask(dir, &other, "hasty", &["--votes", "3/3"]).await;
    assert!(code == Some(0) && talk.contains("0 confirmed, 1 refuted"), "{talk}");
    assert!(table.contains("1 change that several looked at: 0 of 1 pairs of answers agree"), "{table}");
    assert!(table.contains("  careful and hasty: 0 of 1 (0 to"), "{table}");
    assert!(shown(dir).await.ends_with("mismatch applicable"));
    people_outweigh_them(dir).await;
}

/// Goes on from two judges who disagree.
async fn people_outweigh_them(dir: &Path) {
    let page = View::of(dir, &["logs", "--annotate", "ada", "--modes"]).await;
    let run = page.get("/api/run/second").await;
    let question = &run["mode_questions"][0];
    let offered: Vec<&str> =
        question["offered"].as_array().expect("modes").iter().filter_map(|mode| mode["code"].as_str()).collect();
    assert!(offered.len() == 3 && offered.contains(&"FM-2.6") && question["said"].is_null(), "{question}");
    assert!(question["pairs"].to_string().contains("94") && run["head"]["label"].is_null(), "{run}");
    let tree = page.get("/api/tree").await;
    assert_eq!((&tree["runs"][0]["key"], tree["runs"].as_array().map(Vec::len)), (&json!("second"), Some(1)), "{tree}");
    let token = format!("x-aegis-token: {}\r\nContent-Type: application/json\r\n", page.token);
    let say = async |shown: Value, status: u16| {
        let said = json!({"step": 1, "injection": 0, "shown": shown, "why": "it says 84 and hands on 94"}).to_string();
        let reply = page.ask("POST", "/api/annotation/second", &said, &token).await;
        assert_eq!(reply.status, status, "{}", reply.text());
    };
    let stranger = ["FM-1.1", "FM-2.1", "FM-3.1", "FM-3.2"].into_iter().find(|code| !offered.contains(code));
    say(json!(stranger), 400).await;
    say(json!("FM-9.9"), 400).await;
    say(json!("FM-2.6"), 200).await;
    assert!(shown(dir).await.ends_with("mismatch confirmed by ada"));
    assert_eq!(page.get("/api/tree").await["annotated"], json!(["second"]));
    let said = page.get("/api/run/second").await["mode_questions"][0]["said"].clone();
    assert_eq!(said, json!({"shown": "FM-2.6", "why": "it says 84 and hands on 94"}));
    let found = json_of(dir, &["modes", "logs"]).await;
    assert_eq!(found["changes"][0]["said"], json!({"ada": "FM-2.6", "careful": "FM-2.6", "hasty": "none"}), "{found}");
    assert_eq!(found["agreement"]["all"]["pairs"]["hits"], 1, "{found}");
    say(Value::Null, 200).await;
    assert!(shown(dir).await.ends_with("mismatch refuted by ada"));
    let (_, _, talk) = verb(dir, &["show", "logs/second", "--format", "json"]).await;
    assert!(talk.is_empty(), "{talk}");
}

#[tokio::test]
async fn a_judge_of_no_use_writes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    recorded(dir).await;
    let rambling = ScriptedJudge::start(|_| (200, "Perhaps the first, or the second.".to_owned())).await;
    let (code, _, talk) = ask(dir, &rambling, "rambling", &[]).await;
    assert!(code == Some(1) && talk.contains("1 without an answer"), "{talk}");
    let torn = ScriptedJudge::start(|body| answer(&letter(asked_of(body), "C. "))).await;
    let (code, _, talk) = ask(dir, &torn, "torn", &["--votes", "3/3"]).await;
    assert!(code == Some(0) && talk.contains("1 undecided"), "{talk}");
    let failing = ScriptedJudge::start(|_| (400, "no".to_owned())).await;
    let (code, _, talk) = ask(dir, &failing, "failing", &[]).await;
    assert!(code == Some(3) && talk.contains("unanswered"), "{talk}");
    assert!(!dir.join("logs/second/facts.jsonl").exists());
    for (more, why) in [
        (&["--votes", "1/2"][..], "more than half of at most 99"),
        (&["--votes", "2"], "expected K/N"),
        (&["--timeout", "0"], "expected seconds above 0"),
    ] {
        let (code, _, talk) = ask(dir, &failing, "failing", more).await;
        assert!(code == Some(2) && talk.contains(why), "{talk}");
    }
    let (code, _, talk) = verb(dir, &["modes", "logs", "--upstream", "http://127.0.0.1:1/v1"]).await;
    assert!(code == Some(2) && talk.contains("--model NAME"), "{talk}");
    let (code, _, talk) = verb(dir, &["modes", "logs", "--upstream", "simulator"]).await;
    assert!(code == Some(2) && talk.contains("the simulator is a script"), "{talk}");
    let (code, table, talk) = verb(dir, &["modes", "logs/first"]).await;
    assert!(code == Some(0) && table.contains("no run here has a label"), "{table} {talk}");
}
