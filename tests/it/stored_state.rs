//! What an upstream keeps of an edited reply, at the wire: whoever fetches it sees what the program was told, and what
//! goes on from it is marked, or says it again.

use std::sync::Arc;

use aegis::{
    recording::Recording,
    simulator::Simulator,
    surface::{OpenaiResponses, Surface, sse},
};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Reply, Setup, request},
    scripted::{Scripted, http, http_with},
};

const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n";
const QUESTION: &str = "What is 12 + 30?";

pub async fn simulated(plan: &str) -> Lab {
    Lab::over(Arc::new(Simulator::new(0)), Setup::planned(plan)).await
}

pub async fn get(lab: &Lab, path: &str) -> Reply {
    Reply::parse(&lab.raw(&request("GET", path, b"", "Connection: close\r\n")).await)
}

/// The answer to a call, however it is sent.
pub async fn respond(lab: &Lab, agent: &str, mut body: Value, streamed: bool) -> Value {
    body["stream"] = streamed.into();
    let reply = lab.post(&format!("/a/{agent}/v1/responses"), body.to_string().as_bytes()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    if !streamed {
        return reply.json();
    }
    let last = sse::events(&reply.body).pop().expect("an end");
    let last: Value = serde_json::from_slice(&reply.body[last.data[0].clone()]).expect("JSON");
    last["response"].clone()
}

pub fn notes<'a>(recording: &'a Recording, what: &'a str) -> Vec<&'a String> {
    recording.notes.iter().filter(|note| note.contains(what)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetched_reply_is_what_its_program_was_told() {
    for streamed in [false, true] {
        let mut lab = simulated(PLAN).await;
        let told = respond(&lab, "solver", json!({"input": QUESTION}), streamed).await;
        assert!(told.to_string().contains("52"), "{told}");
        let id = told["id"].as_str().expect("an id").to_owned();
        let fetched = get(&lab, &format!("/v1/responses/{id}")).await;
        assert_eq!((fetched.status, &fetched.json()["output"]), (200, &told["output"]), "{streamed}");
        assert!(fetched.header("x-aegis-error").is_none());
        // Nobody wanted this one edited: it passes as it is kept.
        let plain = respond(&lab, "critic", json!({"input": "What is 1 + 1?"}), streamed).await;
        let path = format!("/v1/responses/{}", plain["id"].as_str().expect("an id"));
        assert_eq!(get(&lab, &path).await.json()["output"], plain["output"]);
        assert_eq!(get(&lab, "/v1/responses/resp_none").await.status, 404, "an error passes verbatim");
        let recording = lab.sealed("r0").await;
        assert_eq!(recording.trajectory.steps.len(), 2, "a fetch is no call");
        assert_eq!(notes(&recording, "was fetched, and shown as its program was told it").len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetched_stream_goes_on_by_the_edited_numbers() {
    let plan = PLAN.replace("corrupt_number = { which = \"last\", by = 10 }", "truncate_output = { keep = 0.5 }");
    let lab = simulated(&plan).await;
    let told = respond(&lab, "solver", json!({"input": QUESTION}), true).await;
    let path = format!("/v1/responses/{}?stream=true", told["id"].as_str().expect("an id"));
    let numbers = |body: &[u8]| -> Vec<u64> {
        let number = |event: sse::Event| {
            let event: Value = serde_json::from_slice(&body[event.data[0].clone()]).expect("JSON");
            event["sequence_number"].as_u64().expect("a number")
        };
        sse::events(body).into_iter().map(number).collect()
    };
    let whole = get(&lab, &path).await;
    let read = OpenaiResponses.read_stream(&whole.body).expect("a stream");
    assert_eq!(read.answers[0].message.text(), told["output"][0]["content"][0]["text"], "{}", whole.text());
    let all = numbers(&whole.body);
    assert!(all.iter().copied().eq(0..all.len() as u64), "{all:?}");
    let rest = get(&lab, &format!("{path}&starting_after=3")).await;
    assert_eq!(numbers(&rest.body), all[4..], "{}", rest.text());
    assert!(whole.text().ends_with(&rest.text()));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_items_hold_what_the_program_was_told() {
    let lab = simulated(PLAN).await;
    let first = respond(&lab, "solver", json!({"input": QUESTION}), false).await;
    let second = json!({"input": "What is 1 + 1?", "previous_response_id": first["id"]});
    let second = respond(&lab, "solver", second, false).await;
    let path = format!("/v1/responses/{}/input_items", second["id"].as_str().expect("an id"));
    for (query, at) in [("?order=asc", 1), ("", 1)] {
        let list = get(&lab, &format!("{path}{query}")).await.json();
        let data = list["data"].as_array().expect("a list");
        assert_eq!((data.len(), &data[at]), (3, &first["output"][0]), "{query}: {list}");
        assert_eq!((&list["first_id"], &list["last_id"]), (&data[0]["id"], &data[2]["id"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_that_an_edit_drops_or_adds_are_dropped_and_added_in_lists() {
    let tools = json!([{"type": "function", "name": "calculator", "description": "Evaluate an arithmetic expression such as 3 * (4 + 5).",
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}]);
    for (manipulator, kinds) in [
        ("edit_tool_call = { drop = true }", &[][..]),
        ("edit_tool_call = { duplicate = true }", &["function_call", "function_call"]),
        ("end_early = {}", &["message"]),
    ] {
        let plan = PLAN.replace("corrupt_number = { which = \"last\", by = 10 }", manipulator);
        let lab = simulated(&plan).await;
        let asked = json!({"input": QUESTION, "tools": tools});
        let first = respond(&lab, "solver", asked, false).await;
        let next = json!({"input": "Go on.", "previous_response_id": first["id"]});
        let second = respond(&lab, "critic", next, false).await;
        let told = first["output"].as_array().expect("items");
        let path = format!("/v1/responses/{}/input_items?order=asc", second["id"].as_str().expect("an id"));
        let list = get(&lab, &path).await.json();
        let data = list["data"].as_array().expect("a list");
        let told_kinds: Vec<_> = told.iter().map(|item| item["type"].as_str().expect("a type")).collect();
        assert_eq!(told_kinds, kinds, "{manipulator}: {first}");
        assert_eq!(&data[1..data.len() - 1], &told[..], "{manipulator}: {list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_chat_completions_are_fetched_as_told() {
    let lab = simulated(PLAN).await;
    for (streamed, number) in [(false, 0), (true, 1)] {
        let plan_call = format!("{QUESTION} ({number})");
        let body = json!({"model": "m", "store": true, "stream": streamed,
            "messages": [{"role": "user", "content": plan_call}]});
        let agent = if number == 0 { "solver" } else { "critic" };
        let reply = lab.post(&format!("/a/{agent}/v1/chat/completions"), body.to_string().as_bytes()).await;
        let read = if streamed {
            aegis::surface::OpenaiChat.read_stream(&reply.body)
        } else {
            aegis::surface::OpenaiChat.read_reply(&reply.body)
        };
        let told = read.expect("a reply");
        let fetched = get(&lab, &format!("/v1/chat/completions/{}", told.id)).await;
        let fetched = fetched.json();
        assert_eq!(fetched["choices"][0]["message"]["content"], told.answers[0].message.text(), "{fetched}");
        assert_eq!(fetched.to_string().contains("52"), number == 0, "{fetched}");
    }
    let unkept = lab.post("/a/judge/v1/chat/completions", &crate::lab::chat(QUESTION)).await.json();
    let path = format!("/v1/chat/completions/{}", unkept["id"].as_str().expect("an id"));
    assert_eq!(get(&lab, &path).await.status, 404, "not kept without `store`");
}

/// In a conversation the next call is marked, and all that follow; with `retell` it says the edited reply once more.
#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_marked_or_told_again() {
    for retell in [false, true] {
        let plan = if retell { PLAN.replace("when.call = 0", "when.call = 0\nretell = true") } else { PLAN.to_owned() };
        let mut lab = simulated(&plan).await;
        let thread = lab.post("/v1/conversations", b"{}").await.json()["id"].clone();
        let ask = async |agent: &str, text: &str| {
            respond(&lab, agent, json!({"input": text, "conversation": thread}), false).await
        };
        let first = ask("solver", QUESTION).await;
        assert!(first.to_string().contains("52"), "{first}");
        ask("critic", "Is it right?").await;
        ask("critic", "Sure?").await;
        let path = format!("/v1/conversations/{}/items?order=asc&limit=20", thread.as_str().expect("an id"));
        let items = get(&lab, &path).await.json();
        assert_eq!(items["data"][1], first["output"][0], "{items}");
        let recording = lab.sealed("r0").await;
        let (made, steps) = recording.trajectory.steps.split_first().expect("steps");
        assert_eq!((made.surface.as_str(), made.path.as_str()), ("conversations", "/v1/conversations"));
        let marked = notes(&recording, "keeps unedited").len();
        if retell {
            let sent = String::from_utf8(steps[1].request_sent.as_ref().expect("mended").to_vec()).expect("utf-8");
            let told = first["output"][0]["content"][0]["text"].as_str().expect("a text");
            let read = OpenaiResponses.read_request(sent.as_bytes()).expect("a request");
            let said: Vec<String> = read.messages.iter().map(aegis::surface::Message::text).collect();
            assert_eq!(said, [told, "Is it right?"], "{sent}");
            assert_eq!((steps[2].request_sent.is_none(), marked), (true, 0), "{:?}", recording.notes);
        } else {
            assert_eq!(marked, 2, "{:?}", recording.notes);
        }
        let label = recording.label.expect("a label");
        assert_eq!(label.errors.len(), 1, "mending is no error");
    }
}

/// What goes on from an edited reply is marked however far down the chain, and whatever reworded it.
#[tokio::test(flavor = "multi_thread")]
async fn the_whole_chain_after_an_edited_reply_is_marked() {
    let fault = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.spoil_answer = { how = \"truncated\" }\n";
    for plan in [PLAN, fault] {
        let mut lab = simulated(plan).await;
        let mut last = respond(&lab, "solver", json!({"input": QUESTION}), false).await;
        for _ in 0..3 {
            let next = json!({"input": "What is 1 + 1?", "previous_response_id": last["id"]});
            last = respond(&lab, "critic", next, false).await;
        }
        let aside = respond(&lab, "critic", json!({"input": "What is 2 + 2?"}), false).await;
        let next = json!({"input": "And then?", "previous_response_id": aside["id"]});
        respond(&lab, "critic", next, false).await;
        let recording = lab.sealed("r0").await;
        let marked = notes(&recording, "keeps unedited");
        assert_eq!(marked.len(), 3, "{:?}", recording.notes);
        assert!((1..4).all(|step| marked[step - 1].starts_with(&format!("step {step} goes on from"))), "{marked:?}");
    }
}

/// What was said before the run began cannot be told again: that is said, not passed over.
#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_is_not_known_whole_is_marked() {
    let plan = PLAN.replace("when.call = 0", "when.call = 0\nretell = true");
    let simulator = Arc::new(Simulator::new(0));
    let before = Lab::over(Arc::clone(&simulator) as Arc<_>, Setup::default()).await;
    let old = respond(&before, "solver", json!({"input": "Hello."}), false).await;
    let mut lab = Lab::over(simulator, Setup::planned(&plan)).await;
    let first = json!({"input": QUESTION, "previous_response_id": old["id"]});
    let first = respond(&lab, "solver", first, false).await;
    let next = json!({"input": "Sure?", "previous_response_id": first["id"]});
    respond(&lab, "critic", next, false).await;
    let recording = lab.sealed("r0").await;
    assert_eq!(recording.trajectory.steps[1].request_sent, None);
    assert_eq!(notes(&recording, "could not be told what its program was told").len(), 1, "{:?}", recording.notes);
}

/// A request that goes on from a kept reply holds a tool's result without its call: the run knows what tool it is of.
#[tokio::test(flavor = "multi_thread")]
async fn results_without_their_calls_are_known_by_the_calls_served() {
    let tools = json!([{"type": "function", "name": "calculator", "description": "Evaluate an arithmetic expression such as 3 * (4 + 5).",
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}}]);
    for streamed in [false, true] {
        for (tool, hit) in [("calculator", true), ("search", false)] {
            let plan = format!(
                "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen = {{ tool = \"{tool}\" }}\nmanipulator.corrupt_tool_result = {{ tool = \"{tool}\", with = \"1000\" }}\n"
            );
            let mut lab = simulated(&plan).await;
            let first = respond(&lab, "solver", json!({"input": QUESTION, "tools": tools}), streamed).await;
            let call = &first["output"][0]["call_id"];
            let result = json!([{"type": "function_call_output", "call_id": call, "output": "42"}]);
            let next = json!({"input": result, "tools": tools, "previous_response_id": first["id"]});
            let second = respond(&lab, "solver", next, streamed).await;
            assert_eq!(second.to_string().contains("1000"), hit, "{second}");
            let recording = lab.sealed("r0").await;
            assert_eq!(recording.manipulator_failures, [], "{tool}");
            assert_eq!(recording.trajectory.steps[1].injected.len(), usize::from(hit));
            let plan = aegis::plan::parse(&plan, "plan.toml").expect("a plan");
            let matched = aegis::plan::against(&plan, &recording.trajectory).expect("resolved");
            assert_eq!(matched[0].steps, if hit { vec![1] } else { Vec::new() }, "the check of the plan says so too");
        }
    }
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
    let lab = Lab::before(upstream.address, Setup::planned(PLAN)).await;
    respond(&lab, "solver", json!({"model": "m", "input": "x"}), false).await;
    let path = "/v1/responses/resp_1?stream=true&starting_after=0";
    assert_eq!(get(&lab, path).await.text(), event(1));
    let heads = upstream.heads();
    let asked: Vec<&str> = heads[1..].iter().filter_map(|head| head.lines().next()?.split(' ').nth(1)).collect();
    assert_eq!(asked, ["/v1/responses/resp_1?stream=true", path], "in part, as it was asked for");
}

/// A request may name a kept item instead of saying it: the upstream then takes what the model said, not what the program
/// was told.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_an_edited_item_is_marked() {
    let mut lab = simulated(PLAN).await;
    let edited = respond(&lab, "solver", json!({"input": QUESTION}), false).await;
    let plain = respond(&lab, "critic", json!({"input": "What is 1 + 1?"}), false).await;
    let mut last = json!(null);
    for item in [&edited["output"][0]["id"], &plain["output"][0]["id"]] {
        let input = json!([{"type": "item_reference", "id": item}, {"role": "user", "content": "Sure?"}]);
        last = respond(&lab, "critic", json!({"input": input}), false).await;
    }
    let from_marked = json!({"input": "And now?", "previous_response_id": last["id"]});
    respond(&lab, "critic", from_marked, false).await;
    let recording = lab.sealed("r0").await;
    let item = edited["output"][0]["id"].as_str().expect("an id");
    let expected = format!("step 2 goes on from `{item}`, which the upstream keeps unedited");
    assert_eq!(notes(&recording, "keeps unedited"), [&expected], "{:?}", recording.notes);
}

/// Lists hold requests as the upstream got them; where those were edited, the record says that somebody has looked.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_holds_an_edited_request_is_noted() {
    let edit = PLAN.replace(
        "manipulator.corrupt_number = { which = \"last\", by = 10 }",
        "side = \"request\"\nmanipulator.replace_text = { pattern = \"30\", with = \"31\", messages = \"user\" }",
    );
    for (plan, noted) in [(&edit, 1), (&PLAN.to_owned(), 0)] {
        let mut lab = simulated(plan).await;
        let first = respond(&lab, "solver", json!({"input": QUESTION}), false).await;
        let path = format!("/v1/responses/{}", first["id"].as_str().expect("an id"));
        assert_eq!(get(&lab, &path).await.json()["output"], first["output"]);
        let list = get(&lab, &format!("{path}/input_items")).await.json();
        assert_eq!(list["data"][0]["content"] == QUESTION, noted == 0, "{list}");
        let recording = lab.sealed("r0").await;
        assert_eq!(notes(&recording, "as the upstream got them, edits included").len(), noted, "{:?}", recording.notes);
    }
}
