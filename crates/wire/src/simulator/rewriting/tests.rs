//! Tests of [`super`]: every weakness is really written, in its own way, and equally each time.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::FailureMode;
use crate::{
    simulator::answer,
    surface::{Conversation, Message, Role},
};

const SOLUTION: &str = "12 * 8 = 96\n96 - 12 = 84\nANSWER: 84";
const TASK: &str = "Problem: Ann has 12 boxes of 8 pencils and gives 12 pencils away. How many are left?";

fn question(mode: FailureMode, side: &str, text: &str, calls: &str) -> Conversation {
    let fence = "=== 00ff ===";
    let calls = if calls.is_empty() {
        String::new()
    } else {
        format!("\n## Tool calls that the agent makes\n{fence}\n{calls}\n{fence}\n")
    };
    let user = format!(
        "## Weakness\n{} {} (v): {}.\n\n## How it is to show\nSo.\n\n## Task\n{fence}\n{TASK}\n{fence}\n{calls}\n\
         ## Message to rewrite: {side}\n{fence}\n{text}\n{fence}\n",
        mode.code(),
        mode.name(),
        mode.meaning()
    );
    let messages = vec![Message::text_of(Role::System, "You rewrite messages."), Message::text_of(Role::User, user)];
    Conversation { messages, choices: 1, ..Conversation::default() }
}

fn answer_value(conversation: &Conversation) -> Value {
    let reply = answer(conversation, 7);
    serde_json::from_str(&reply.answers[0].message.text()).expect("the JSON that was asked for")
}

fn text(mode: FailureMode, side: &str, before: &str) -> String {
    answer_value(&question(mode, side, before, ""))["edited_text"].as_str().expect("a text").to_owned()
}

#[test]
fn every_weakness_is_written_in_its_own_way() {
    for (side, before) in [("what the agent answered", SOLUTION), ("what the agent is about to be asked", TASK)] {
        let mut seen = HashSet::from([before.to_owned()]);
        for mode in FailureMode::ALL {
            let after = text(*mode, side, before);
            assert_eq!(after, text(*mode, side, before), "the same each time");
            assert!(!after.trim().is_empty(), "{mode:?}");
            assert!(seen.insert(after.clone()), "{mode:?} {side}: {after}");
        }
    }
}

#[test]
fn the_ways_are_true_to_the_weakness() {
    let answered = |mode: FailureMode| text(mode, "what the agent answered", SOLUTION);
    let mismatch = answered(FailureMode::ReasoningActionMismatch);
    assert!(mismatch.starts_with("12 * 8 = 96\n96 - 12 = 84\nANSWER: ") && !mismatch.ends_with(" 84"), "{mismatch}");
    assert_eq!(answered(FailureMode::PrematureTermination), "12 * 8 = 96\nANSWER: 96");
    assert!(!answered(FailureMode::UnawareOfTermination).contains("ANSWER"));
    assert_eq!(answered(FailureMode::StepRepetition).matches("12 * 8 = 96").count(), 2);
    let verdict = text(FailureMode::IncorrectVerification, "what the agent answered", "APPROVE\nThe result is 84.");
    assert!(verdict.starts_with("REVISE: ") && verdict.contains("not 84"), "{verdict}");
    let verdict = text(FailureMode::IncorrectVerification, "what the agent answered", "REVISE: 84 should be 85.");
    assert!(verdict.starts_with("APPROVE"), "{verdict}");
    let asked = text(FailureMode::DisobeyTaskSpecification, "what the agent is about to be asked", TASK);
    assert!(!asked.contains("12 boxes") && asked.contains("boxes of 8 pencils"), "{asked}");
}

#[test]
fn json_and_tool_calls_keep_their_shape() {
    let after = text(FailureMode::IncorrectVerification, "what the agent answered", r#"{"ok": true, "note": "fine"}"#);
    assert_eq!(serde_json::from_str::<Value>(&after).expect("JSON"), json!({"ok": false, "note": "fine"}));
    let call = json!({"id": "c1", "name": "add", "arguments": "{\"a\": 12, \"b\": 30}"}).to_string();
    let mode = FailureMode::ReasoningActionMismatch;
    let edited = answer_value(&question(mode, "what the agent answered", "", &call));
    let made = &edited["calls"][0];
    assert_eq!((made["id"].as_str(), made["name"].as_str()), (Some("c1"), Some("add")), "{edited}");
    let arguments: Value = serde_json::from_str(made["arguments"].as_str().expect("text")).expect("JSON");
    assert!(arguments["a"] == 12 && arguments["b"] != 30, "{arguments}");
    let ended = answer_value(&question(FailureMode::PrematureTermination, "what the agent answered", "", &call));
    assert!(ended["calls"] == json!([]) && ended["edited_text"] != "", "{ended}");
}

#[test]
fn what_is_no_such_question_is_left_to_others() {
    let other = Conversation {
        messages: vec![Message::text_of(Role::User, "What is 12 + 30?")],
        choices: 1,
        ..Conversation::default()
    };
    assert!(answer(&other, 7).answers[0].message.text().contains("42"));
}
