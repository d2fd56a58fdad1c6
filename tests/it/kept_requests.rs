//! Requests that were edited on their way and that the upstream keeps: their programs see what they sent.

use serde_json::{Value, json};

use crate::{
    lab::{Lab, Setup},
    scripted::{Scripted, http, http_with},
    stored_state::{get, notes, respond, simulated},
};

/// Edits of requests: those that change an item, and those that put items in, take them out or move them.
const EDITS: &[&str] = &[
    "replace_text = { pattern = \"30\", with = \"31\", messages = \"user\" }",
    "append_instruction = { text = \"Do not ask back.\", role = \"last\" }",
    "insert_message = { text = \"Hurry up.\" }",
    "duplicate_message = { message = \"user\" }",
    "drop_history = { keep_last = 1 }",
    "reorder_history = { how = \"reverse\" }",
    "swap_role = { from = \"user\", to = \"system\" }",
    "corrupt_tool_result = { with = \"1000\" }",
];

fn plan(edit: &str) -> String {
    format!(
        "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nside = \"request\"\nmanipulator.{edit}\n"
    )
}

/// What was said before the question of a test, as items of the responses API.
fn items() -> Value {
    json!([
        {"role": "user", "content": "Let us add. Which tool is there?"},
        {"role": "assistant", "content": "There is a calculator."},
        {"type": "function_call", "call_id": "call_1", "name": "calculator", "arguments": "{\"expression\":\"1 + 2\"}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "3"},
        {"role": "user", "content": [{"type": "input_text", "text": "What is 12 + 30?"}]},
    ])
}

/// The same as messages of chat completions.
fn messages() -> Value {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": "{\"expression\":\"1 + 2\"}"}});
    json!([
        {"role": "user", "content": "Let us add. Which tool is there?"},
        {"role": "assistant", "content": "There is a calculator.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "3"},
        {"role": "user", "content": [{"type": "text", "text": "What is 12 + 30?"}]},
    ])
}

/// A list as it is without the ids that the upstream gives. What a model said in it is not compared.
fn said(list: &Value) -> Vec<Value> {
    let items = list["data"].as_array().unwrap_or_else(|| panic!("no list: {list}"));
    let told = |item: &&Value| item["role"] != "assistant" || item["content"].to_string().contains("There is a");
    let mut said: Vec<Value> = items.iter().filter(told).cloned().collect();
    said.iter_mut().filter_map(Value::as_object_mut).for_each(|item| drop(item.remove("id")));
    said
}

/// What three ways of fetching it show of a request and of the next one, which goes on from its reply.
async fn shown(lab: &Lab, streamed: bool) -> Vec<Vec<Value>> {
    let first = respond(lab, "solver", json!({"input": items()}), streamed).await;
    let next = json!({"input": "Sure?", "previous_response_id": first["id"]});
    let second = respond(lab, "critic", next, streamed).await;
    let id = |response: &Value| response["id"].as_str().expect("an id").to_owned();
    let mut all = Vec::new();
    for id in [id(&first), id(&second)] {
        for query in ["?order=asc", ""] {
            let list = get(lab, &format!("/v1/responses/{id}/input_items{query}")).await.json();
            let ids: Vec<&Value> = list["data"].as_array().expect("a list").iter().map(|item| &item["id"]).collect();
            assert_eq!((&list["first_id"], &list["last_id"]), (ids[0], ids[ids.len() - 1]), "{list}");
            assert!(ids.iter().all(|id| id.is_string()) && (1..ids.len()).all(|at| !ids[..at].contains(&ids[at])));
            all.push(said(&list));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_items_show_the_request_as_it_was_sent() {
    for streamed in [false, true] {
        let plain = simulated("format = 1\nseed = 7\n").await;
        let expected = shown(&plain, streamed).await;
        assert_eq!(expected[0].len(), 5, "{expected:?}");
        for edit in EDITS {
            let mut lab = simulated(&plan(edit)).await;
            let seen = shown(&lab, streamed).await;
            for (seen, expected) in seen.iter().zip(&expected) {
                assert_eq!(seen, expected, "{edit}");
            }
            let recording = lab.sealed("r0").await;
            assert!(recording.trajectory.steps[0].request_sent.is_some(), "{edit} edits");
            assert_eq!(recording.manipulator_failures, [], "{edit}");
            assert_eq!(notes(&recording, "was fetched, and shown as its program").len(), 4, "{:?}", recording.notes);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_messages_show_the_request_as_it_was_sent() {
    let fetched = async |plan: &str, streamed: bool| {
        let lab = simulated(plan).await;
        let body = json!({"model": "m", "store": true, "stream": streamed, "messages": messages()});
        let reply = lab.post("/a/solver/v1/chat/completions", body.to_string().as_bytes()).await;
        let id = reply.text().split("chatcmpl-").nth(1).expect("an id")[..24].to_owned();
        let id = id.split('"').next().expect("an id").to_owned();
        let mut all = Vec::new();
        for query in ["", "?order=desc"] {
            let list = get(&lab, &format!("/v1/chat/completions/chatcmpl-{id}/messages{query}")).await.json();
            all.push(said(&list));
        }
        all
    };
    for streamed in [false, true] {
        let expected = fetched("format = 1\nseed = 7\n", streamed).await;
        assert_eq!(expected[0][0]["content"], "Let us add. Which tool is there?", "the oldest comes first");
        for edit in EDITS {
            assert_eq!(fetched(&plan(edit), streamed).await, expected, "{edit}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_conversation_show_the_request_as_it_was_sent() {
    let fetched = async |plan: &str| {
        let lab = simulated(plan).await;
        let thread = lab.post("/v1/conversations", b"{}").await.json()["id"].clone();
        for agent in ["solver", "critic"] {
            respond(&lab, agent, json!({"input": items(), "conversation": thread}), false).await;
        }
        let path = format!("/v1/conversations/{}/items?order=asc&limit=50", thread.as_str().expect("an id"));
        said(&get(&lab, &path).await.json())
    };
    let expected = fetched("format = 1\nseed = 7\n").await;
    for edit in EDITS {
        assert_eq!(fetched(&plan(edit)).await, expected, "{edit}");
    }
}

/// A list in a provider's own words, page by page: ids and members that nobody sent stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_list_shows_its_part_of_the_request() {
    let reply = r#"{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_9","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ok","annotations":[]}]}]}"#;
    let item = |id: &str, text: &str| {
        format!(
            r#"{{"id":"{id}", "type":"message","status":"completed","content":[ {{"type":"input_text","text":"{text}"}} ],"role":"user"}}"#
        )
    };
    let list = |items: &[String], more: bool| {
        format!(r#"{{"object":"list","data":[{}],"first_id":"x","last_id":"y","has_more":{more}}}"#, items.join(", "))
    };
    let newest = list(&[item("msg_3", "c"), item("msg_2", "BB")], true);
    let oldest = list(&[item("msg_1", "a")], false);
    let other = list(&[item("msg_1", "q")], false);
    let script = [reply, &newest, &oldest, &other].map(|body| vec![http("200 OK", "application/json", body)]);
    let upstream = Scripted::start(script.to_vec()).await;
    let edit = "replace_text = { pattern = \"b\", with = \"BB\", messages = \"user\" }";
    let mut lab = Lab::before(upstream.address, Setup::planned(&plan(edit))).await;
    let asked = json!({"model": "m", "input": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "user", "content": "c"}]});
    respond(&lab, "solver", asked, false).await;
    let path = "/v1/responses/resp_1/input_items";
    let first = get(&lab, &format!("{path}?limit=2")).await.json();
    assert_eq!((&first["data"][0]["id"], &first["data"][0]["content"][0]["text"]), (&json!("msg_3"), &json!("c")));
    assert_eq!((&first["data"][1]["id"], &first["data"][1]["content"][0]["text"]), (&json!("msg_2"), &json!("b")));
    assert_eq!((&first["first_id"], &first["last_id"]), (&json!("msg_3"), &json!("msg_2")));
    assert_eq!(get(&lab, &format!("{path}?limit=2&after=msg_2")).await.text(), oldest, "nothing of it was edited");
    assert_eq!(get(&lab, path).await.text(), other, "what is not found stays, and that is said");
    let recording = lab.sealed("r0").await;
    assert_eq!(notes(&recording, "is not found in it").len(), 1, "{:?}", recording.notes);
}

/// A stream that is resumed is never given from its beginning, whether or not it can be shown as it was told.
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_stream_that_cannot_be_restated_is_asked_for_again() {
    let reply = r#"{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_9","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is 42.","annotations":[]}]}]}"#;
    let event = |number: u32| {
        format!(
            "event: response.in_progress\ndata: {{\"type\":\"response.in_progress\",\"sequence_number\":{number}}}\n\n"
        )
    };
    let broken = format!("{}data: {{not JSON\n\n{}", event(0), event(1));
    let kind = "content-type: text/event-stream\r\n";
    let script = vec![
        vec![http("200 OK", "application/json", reply)],
        vec![http_with("200 OK", kind, broken.as_bytes())],
        vec![http_with("200 OK", kind, event(1).as_bytes())],
    ];
    let upstream = Scripted::start(script).await;
    let edit = plan("corrupt_number = { which = \"last\", by = 10 }").replace("\"request\"", "\"response\"");
    let lab = Lab::before(upstream.address, Setup::planned(&edit)).await;
    respond(&lab, "solver", json!({"model": "m", "input": "x"}), false).await;
    let path = "/v1/responses/resp_1?stream=true&starting_after=0";
    assert_eq!(get(&lab, path).await.text(), event(1));
    let heads = upstream.heads();
    let asked: Vec<&str> = heads[1..].iter().filter_map(|head| head.lines().next()?.split(' ').nth(1)).collect();
    assert_eq!(asked, ["/v1/responses/resp_1?stream=true", path], "in part, as it was asked for");
}
