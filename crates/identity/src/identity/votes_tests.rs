//! Votes for names, step by step.

use serde_json::json;

use super::*;
use crate::surface::{OpenaiChat, Surface};

/// Steps as (agent, messages, reply) → proposals as `agent=name`.
fn proposed(steps: &[(&str, serde_json::Value, serde_json::Value)]) -> String {
    let steps: Vec<_> = steps
        .iter()
        .map(|(agent, messages, reply)| {
            let asked = json!({"model": "m", "messages": messages}).to_string();
            let answered = json!({"choices": [{"index": 0, "message": reply}]}).to_string();
            (AgentName::parse(agent).expect("a name"), asked, answered)
        })
        .collect();
    let heard: Vec<ObservedStep<'_>> = steps
        .iter()
        .map(|(agent, asked, answered)| ObservedStep {
            agent,
            outline: OpenaiChat.outline(asked.as_bytes()).expect("a request"),
            reply: OpenaiChat.read_reply(answered.as_bytes()).ok(),
        })
        .collect();
    let shown = |(agent, p): (&AgentName, &Proposal)| format!("{agent}={}{}", p.name, if p.firm { "" } else { "?" });
    propose(&heard).iter().map(shown).collect::<Vec<_>>().join(" ")
}

#[test]
fn names_slip_out_where_agents_speak_of_each_other() {
    let say = |text: &str| json!({"role": "assistant", "content": text});
    let user = |text: &str| json!([{"role": "user", "content": text}]);
    let call = |name: &str, arguments: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": format!("id-{name}"), "type": "function", "function": {"name": name, "arguments": arguments}}]})
    };
    let answer = |name: &str, text: &str| {
        json!([{"role": "user", "content": "go"}, call(name, "{}"),
        {"role": "tool", "tool_call_id": format!("id-{name}"), "content": text}])
    };
    for (steps, expected) in [
        (
            vec![
                ("a", user("go"), say("First words here.")),
                ("b", json!([{"role": "user", "name": "writer", "content": "First words here."}]), say("x")),
            ],
            "a=writer",
        ),
        (
            vec![
                ("a", user("go"), say("First words here.")),
                ("b", user("So far\nTech Writer: First words here."), say("x")),
            ],
            "a=Tech Writer?",
        ),
        // Two speakers make a transcript; verbs of speech are no part of a name.
        (
            vec![
                ("a", user("go"), say("First words here.")),
                ("b", user("go on"), say("Second words here.")),
                ("c", user("Ann said: First words here.\nBo says: Second words here."), say("x")),
            ],
            "a=Ann b=Bo",
        ),
        // What was made is nobody's name, nor are words of the task.
        (
            vec![
                ("a", user("Make tea"), say("First words here.")),
                ("b", user("go on"), say("Second words here.")),
                ("c", user("Plan: First words here.\nTea: Second words here."), say("x")),
            ],
            "a=Plan? b=Tea?",
        ),
        (
            vec![
                ("a", user("go"), call("transfer_to_seat_agent", "{}")),
                ("b", answer("transfer_to_seat_agent", r#"{"assistant": "Seat Agent"}"#), say("x")),
            ],
            "b=Seat Agent",
        ),
        (
            vec![
                ("a", user("go"), call("transfer_to_math", "{}")),
                ("b", answer("transfer_to_math", "Successfully transferred to math"), say("x")),
            ],
            "b=math",
        ),
        (
            vec![
                ("a", user("go"), call("task_finance", r#"{"objective": "Find what the vans cost us"}"#)),
                ("b", user("Find what the vans cost us"), say("x")),
            ],
            "b=finance?",
        ),
        // Its answer comes back as the tool's result.
        (
            vec![
                ("a", user("go"), call("task_finance", r#"{"objective": "Find what the vans cost us"}"#)),
                ("b", user("Find what the vans cost us"), say("They cost us nine thousand a year.")),
                ("a", answer("task_finance", "They cost us nine thousand a year."), say("x")),
            ],
            "b=finance",
        ),
        (
            vec![
                ("a", user("go"), call("task_finance", r#"{"objective": "Find what the vans cost us"}"#)),
                ("b", user("Find what the vans cost us"), say("ANSWER: 9")),
                ("a", answer("task_finance", "ANSWER: 9"), say("x")),
            ],
            "b=finance",
        ),
        (
            vec![
                ("a", user("go"), call("task_finance", r#"{"objective": "Find what the vans cost us"}"#)),
                ("b", user("Find what the vans cost us"), say("ANSWER: 9")),
                ("a", answer("task_finance", "ANSWER: 8"), say("x")),
            ],
            "b=finance?",
        ),
        (
            vec![
                ("a", user("go"), call("task_complete", r#"{"summary": "All the vans are sold now"}"#)),
                ("b", user("All the vans are sold now"), say("x")),
            ],
            "b=complete?",
        ),
        (
            vec![
                (
                    "a",
                    user("go"),
                    call(
                        "Agent",
                        r#"{"subagent_type": "finance", "messages": [{"content": [{"text": "Find what the vans cost us"}]}]}"#,
                    ),
                ),
                ("b", user("Find what the vans cost us"), say("x")),
            ],
            "b=finance",
        ),
        // A text where a name should stand is no name.
        (
            vec![
                (
                    "a",
                    user("go"),
                    call(
                        "delegate",
                        r#"{"member_id": "What the vans cost us?", "task": "Find what the vans cost us"}"#,
                    ),
                ),
                ("b", user("Find what the vans cost us"), say("x")),
            ],
            "",
        ),
        (vec![("s/selector", user("who?"), say("Planner")), ("b", user("go"), say("x"))], "b=Planner"),
        // Two agents that one name would fit: neither gets it.
        (
            vec![
                ("s/selector", user("who?"), say("Planner")),
                ("b", user("go"), say("x")),
                ("s/selector", user("who?"), say("Planner")),
                ("c", user("go"), say("x")),
            ],
            "",
        ),
        (vec![("a", user("go"), say("hello")), ("b", user("<b>x</b>: hello"), say("x"))], ""),
    ] {
        assert_eq!(proposed(&steps), expected);
    }
}
