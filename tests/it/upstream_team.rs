//! Replies of a team that runs at the upstream and that the upstream names (Responses, `multi_agent`): shown by agent, never
//! edited or blamed as the words of the one that asks.

use aegis::{recording, ruling::NoLabel};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Setup},
    program::verb,
    scripted::{Act, Scripted, http},
};

const REPLY: &str = "manipulator.corrupt_number = { by = 8 }\n";
const REQUEST: &str = "manipulator.append_instruction = { text = \"Be brief.\" }\n";

fn plan(edit: &str) -> String {
    format!("format = 1\nseed = 7\n[[injection]]\nagent = \"main\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n{edit}")
}

fn message(agent: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let id = format!("m_{}", agent.len());
    json!({"id": id, "type": "message", "role": "assistant", "status": "completed", "agent": {"agent_name": agent}, "content": content})
}

fn of_team() -> Vec<Value> {
    vec![
        json!({"id": "mac_1", "type": "multi_agent_call", "call_id": "c1", "action": "spawn_agent", "arguments": "{}",
            "agent": {"agent_name": "/root"}}),
        message("/root/solver", "6*7 = 41"),
        json!({"id": "am_1", "type": "agent_message", "author": "/root/solver", "recipient": "/root",
            "content": [{"type": "text", "text": "result is 41"}, {"type": "encrypted_content", "encrypted_content": "gAAA"}],
            "agent": {"agent_name": "/root/solver"}}),
        message("/root", "The answer is 41"),
    ]
}

fn response(output: &[Value]) -> Value {
    json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": output})
}

/// The reply with these items, whole or as events.
fn reply(output: &[Value], streamed: bool) -> Act {
    if !streamed {
        return http("200 OK", "application/json", &response(output).to_string());
    }
    let items = output.iter().enumerate();
    let events = items.flat_map(|(at, item)| {
        ["added", "done"]
            .map(|when| json!({"type": format!("response.output_item.{when}"), "output_index": at, "item": item}))
    });
    let last = json!({"type": "response.completed", "response": response(output)});
    let frame = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    http("200 OK", "text/event-stream", &events.chain([last]).map(frame).collect::<String>())
}

/// Asks once, under a plan: what the client got, and the run.
async fn asked(plan_text: &str, output: &[Value], streamed: bool) -> (String, Lab) {
    let upstream = Scripted::always(vec![reply(output, streamed)]).await;
    let lab = Lab::before(upstream.address, Setup::planned(plan_text)).await;
    let body = json!({"model": "m", "stream": streamed, "multi_agent": {"enabled": true}, "input": "What is 6*7?"});
    let got = lab.post("/a/main/v1/responses", body.to_string().as_bytes()).await;
    assert_eq!(got.status, 200, "{}", got.text());
    (got.text(), lab)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_of_several_agents_is_not_edited_as_the_askers() {
    for streamed in [false, true] {
        let (got, mut lab) = asked(&plan(REPLY), &of_team(), streamed).await;
        assert!(got.contains("The answer is 41") && got.contains("6*7 = 41"), "{got}");
        let sealed = lab.sealed("r0").await;
        assert!(sealed.trajectory.steps[0].injected.is_empty(), "streamed {streamed}");
        let why = &sealed.manipulator_failures[0].why;
        assert!(why.contains("/root, /root/solver"), "{why}");
        let dir = lab.logs.join("r0");
        assert_eq!(aegis::ruling::settle(&dir, None).expect("readable").expect_err("none"), NoLabel::ManipulatorFailed);
        let (code, out, _) = verb(&lab.logs, &["show", "r0", "--step", "0"]).await;
        assert_eq!(code, Some(0));
        let places: Vec<_> =
            ["/root", "spawn_agent {}", "/root/solver", "6*7 = 41", "/root/solver to /root", "result is 41"]
                .map(|words| out.find(words).unwrap_or_else(|| panic!("{words}: {out}")))
                .to_vec();
        assert!(places.is_sorted() && out.contains("[encrypted_content]"), "{out}");
    }
}

/// What was asked was edited as it left `main`, and whose error came of it the reply does not tell.
#[tokio::test(flavor = "multi_thread")]
async fn no_label_names_the_asker_of_a_team() {
    for streamed in [false, true] {
        let (_, mut lab) = asked(&plan(REQUEST), &of_team(), streamed).await;
        assert_eq!(lab.sealed("r0").await.trajectory.steps[0].injected.len(), 1);
        let dir = lab.logs.join("r0");
        assert_eq!(
            aegis::ruling::settle(&dir, None).expect("readable").expect_err("none"),
            NoLabel::SeveralAgentsReply
        );
        assert!(recording::read(&dir).expect("readable").label.is_none());
    }
}

/// A root that answers alone is the agent that asks; an agent below it is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_root_alone_is_the_asker() {
    for streamed in [false, true] {
        let (got, mut lab) = asked(&plan(REPLY), &[message("/root", "The answer is 41")], streamed).await;
        assert!(got.contains("The answer is 49") && !got.contains("41"), "{got}");
        assert_eq!(lab.sealed("r0").await.label.expect("a label").errors.len(), 1);
        let (got, _lab) = asked(&plan(REPLY), &[message("/root/solver", "The answer is 41")], streamed).await;
        assert!(got.contains("The answer is 41"), "{got}");
    }
}
