//! The 65 faults of `AgentChaos`, each played over the wire: what its name says happens, on the calls that it says.

use std::{fs, path::Path, time::Instant};

use serde_json::{Value, json};

use crate::{
    lab::{Lab, Setup},
    scripted::{Scripted, http},
};

/// What the model always says: words, and a call.
const TEXT: &str = "In 2026 it's \"warm\" in Berlin - as always.";
const ARGUMENTS: &str = r#"{"city":"Berlin and Rome","year":2026}"#;
/// Calls of the agent in each case; an intermittent fault shows itself in more.
const CALLS: usize = 4;
const CALLS_OF_INTERMITTENT: usize = 24;

/// One reply as the agent reads it.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    text: String,
    arguments: Option<String>,
    finish: String,
    waited_ms: u128,
}

fn undisturbed() -> Value {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}});
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
        "message": {"role": "assistant", "content": TEXT, "tool_calls": [call]}, "finish_reason": "tool_calls"}]})
}

fn plan(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("plans/faults/agentchaos/{name}.toml"));
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What the agent reads of so many calls under a plan, one after the other, none like another.
async fn played(name: &str, calls: usize) -> Vec<Said> {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &undisturbed().to_string())]).await;
    let lab = Lab::before(upstream.address, Setup::planned(&plan(name))).await;
    let mut said = Vec::new();
    for call in 0..calls {
        let start = Instant::now();
        let reply = lab.post("/a/solver/v1/chat/completions", &crate::lab::chat(&format!("Question {call}?"))).await;
        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        let choice = reply.json()["choices"][0].clone();
        let message = &choice["message"];
        said.push(Said {
            text: message["content"].as_str().unwrap_or_default().to_owned(),
            arguments: message["tool_calls"][0]["function"]["arguments"].as_str().map(str::to_owned),
            finish: choice["finish_reason"].as_str().unwrap_or_default().to_owned(),
            waited_ms: start.elapsed().as_millis(),
        });
    }
    said
}

/// Whether a reply is what the fault of this name makes of the model's.
fn is_of(fault: &str, said: &Said) -> bool {
    let Said { text, arguments, finish, waited_ms } = said;
    let arguments = arguments.as_deref();
    let read: Value = arguments.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let city = read["city"].as_str().unwrap_or_default();
    let words_only = arguments.is_none() && finish == "stop";
    let as_said = text == TEXT && finish == "tool_calls";
    let changed = |from: &str, to: &str| from.chars().zip(to.chars()).filter(|(a, b)| a != b).count();
    match fault {
        // A crash that is said as content: the words of a 5xx, of a time-out.
        "llm_error" => words_only && text.contains("503"),
        "llm_timeout" | "tool_timeout" => words_only && text.contains("timed out"),
        "llm_empty" => text.is_empty() && arguments == Some(ARGUMENTS),
        // 30 percent stay.
        "llm_truncate" => {
            *text == TEXT.chars().take(TEXT.chars().count() * 3 / 10).collect::<String>() && finish == "length"
        }
        "llm_corrupt" => text.contains('â') && text.contains("Berlin") && arguments == Some(ARGUMENTS),
        "llm_schema" => words_only && serde_json::from_str::<Value>(text).is_ok_and(|said| said["error"].is_object()),
        "tool_error" => as_said && arguments == Some("{}"),
        "tool_empty" => words_only && text == TEXT,
        "tool_truncate" => as_said && city == "Berl" && read["year"] == 2026,
        // About a fifth of the characters.
        "tool_corrupt" => as_said && city.len() == 15 && (1..=6).contains(&changed(city, "Berlin and Rome")),
        "tool_schema" => as_said && read.as_object().is_some_and(|read| !read.contains_key("city") && read.len() == 2),
        "api_degradation" => words_only && text.contains("503") && *waited_ms >= 3000,
        "content_filter" => arguments.is_none() && finish == "content_filter" && text != TEXT,
        "max_tokens" => *text == TEXT.chars().take(TEXT.chars().count() / 2).collect::<String>() && finish == "length",
        "proxy_html" => words_only && text.contains("502 Bad Gateway") && text.contains("nginx"),
        "stale_data" => as_said && read["year"] == 2024 && city == "Berlin and Rome",
        "wrong_entity" => as_said && !city.is_empty() && city != "Berlin and Rome",
        "slow_response" => as_said && arguments == Some(ARGUMENTS) && *waited_ms >= 5000,
        other => panic!("no such fault: {other}"),
    }
}

/// The plan does what its name says, on these calls and no others.
async fn check(name: &str, fault: &str, calls: usize, hits: impl Fn(usize) -> bool) {
    let replies = played(name, calls).await;
    for (call, said) in replies.iter().enumerate() {
        if hits(call) {
            assert!(is_of(fault, said), "{name}: call {call}: {said:?}");
        } else {
            assert_eq!((said.text.as_str(), said.arguments.as_deref()), (TEXT, Some(ARGUMENTS)), "{name}: call {call}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_the_65_does_what_its_name_says() {
    let mut played_names = 0;
    for target in ["llm", "tool"] {
        for kind in ["error", "timeout", "empty", "truncate", "corrupt", "schema"] {
            let fault = format!("{target}_{kind}");
            check(&format!("{fault}_single"), &fault, CALLS, |call| call == 0).await;
            check(&format!("{fault}_persistent"), &fault, CALLS, |_| true).await;
            check(&format!("{fault}_burst"), &fault, CALLS, |call| call < 3).await;
            let replies = played(&format!("{fault}_intermittent"), CALLS_OF_INTERMITTENT).await;
            let hit = replies.iter().filter(|said| is_of(&fault, said)).count();
            let passed =
                replies.iter().filter(|said| (said.text.as_str(), said.finish.as_str()) == (TEXT, "tool_calls"));
            let passed = passed.filter(|said| said.arguments.as_deref() == Some(ARGUMENTS)).count();
            assert_eq!(hit + passed, CALLS_OF_INTERMITTENT, "{fault}_intermittent");
            assert!(
                (2..=13).contains(&hit),
                "{fault}_intermittent: about three in ten, not {hit} of {CALLS_OF_INTERMITTENT}"
            );
            played_names += 4;
        }
    }
    for kind in ["error", "timeout", "schema"] {
        let fault = format!("llm_{kind}");
        for (position, at) in [("early", 0), ("mid", 1), ("late", 2)] {
            check(&format!("{fault}_{position}"), &fault, CALLS, |call| call == at).await;
            played_names += 1;
        }
    }
    for fault in ["content_filter", "max_tokens", "proxy_html", "stale_data", "wrong_entity"] {
        check(fault, fault, 2, |_| true).await;
        played_names += 1;
    }
    // These wait for seconds, as their names say: both at the same time.
    tokio::join!(
        check("api_degradation", "api_degradation", 1, |_| true),
        check("slow_response", "slow_response", 1, |_| true)
    );
    a_stale_cache_answers_again().await;
    assert_eq!(played_names + 3, 65);
}

/// `stale_cache`: an earlier answer comes again; there is none yet for the first call.
async fn a_stale_cache_answers_again() {
    let reply = |text: &str| {
        let mut reply = undisturbed();
        reply["choices"][0]["message"] = json!({"role": "assistant", "content": text});
        vec![http("200 OK", "application/json", &reply.to_string())]
    };
    let upstream = Scripted::start(vec![reply("One."), reply("Two.")]).await;
    let lab = Lab::before(upstream.address, Setup::planned(&plan("stale_cache"))).await;
    let mut said = Vec::new();
    for call in 0..2 {
        let reply = lab.post("/a/solver/v1/chat/completions", &crate::lab::chat(&format!("Question {call}?"))).await;
        said.push(reply.json()["choices"][0]["message"]["content"].as_str().expect("words").to_owned());
    }
    assert_eq!(said, ["One.", "One."]);
}
