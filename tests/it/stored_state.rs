//! What an upstream keeps of an edited reply, at the wire: what goes on from it is marked, or says it again, and a fetch of
//! it undoes the edit.

use std::sync::Arc;

use aegis::{
    recording::Recording,
    ruling::Ruling,
    simulator::Simulator,
    surface::{OpenaiChat, OpenaiResponses, Surface, sse},
};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Reply, Setup, request},
    scripted::{Scripted, http},
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

/// What is fetched is what the upstream keeps. Where that shows the model's own words in place of edited ones, the edit is
/// none: the record says so, and the run has no label.
#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_of_an_edited_reply_undoes_the_edit() {
    type RequestBody = fn(bool) -> Value;
    let chat = |streamed: bool| json!({"model": "m", "store": true, "stream": streamed, "messages": [{"role": "user", "content": QUESTION}]});
    let responses = |streamed: bool| json!({"model": "m", "stream": streamed, "input": QUESTION});
    let fault = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.spoil_answer = { how = \"truncated\" }\n";
    let surfaces: [(&dyn Surface, &str, RequestBody); 2] =
        [(&OpenaiChat, "/v1/chat/completions", chat), (&OpenaiResponses, "/v1/responses", responses)];
    for ((surface, path, body), plan) in surfaces.into_iter().flat_map(|surface| [(surface, PLAN), (surface, fault)]) {
        for (streamed, fetches) in [(false, true), (true, true), (false, false)] {
            let mut lab = simulated(plan).await;
            let reply = lab.post(&format!("/a/solver{path}"), body(streamed).to_string().as_bytes()).await;
            let read = if streamed { surface.read_stream(&reply.body) } else { surface.read_reply(&reply.body) };
            let told = read.expect("a reply");
            let plain =
                lab.post(&format!("/a/critic{path}"), body(false).to_string().replace("12", "13").as_bytes()).await;
            let unedited = surface.read_reply(&plain.body).expect("a reply");
            let again = get(&lab, &format!("{path}/{}", unedited.id)).await;
            assert_eq!(again.body, plain.body, "nobody wanted this one edited");
            assert_eq!(get(&lab, &format!("{path}/none")).await.status, 404, "an error passes verbatim");
            for _ in 0..if fetches { 2 } else { 0 } {
                let kept = get(&lab, &format!("{path}/{}", told.id)).await;
                let kept = surface.read_reply(&kept.body).expect("a reply").answers[0].message.text();
                assert!(kept.contains("42") && kept != told.answers[0].message.text(), "{kept}");
            }
            let recording = lab.sealed("r0").await;
            assert_eq!(recording.trajectory.steps.len(), 2, "a fetch is no call");
            let failed = &recording.manipulator_failures;
            let why =
                format!("`{path}/{}` was fetched, and shows the reply as the upstream keeps it, unedited", told.id);
            let said: Vec<_> = failed.iter().map(|failed| (failed.step, failed.why.as_str())).collect();
            assert_eq!(said, if fetches { vec![(0, why.as_str())] } else { vec![] }, "{path} {streamed}");
            assert_eq!(notes(&recording, &why).len(), said.len());
            assert_eq!(Ruling::new(&recording).label().is_ok(), !fetches && plan == PLAN, "{path} {streamed}");
        }
    }
}

/// A list of what an edited reply was gone on from holds it as the upstream keeps it.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_holds_an_edited_reply_undoes_the_edit() {
    for (list, undone) in [("resp_2/input_items", 1), ("resp_2", 0), ("resp_1", 1), ("resp_3/input_items", 0)] {
        let reply = |id: &str| {
            let text = json!([{"type": "output_text", "text": "It is 42.", "annotations": []}]);
            let item =
                json!({"type": "message", "id": "msg_9", "role": "assistant", "status": "completed", "content": text});
            json!({"id": id, "object": "response", "status": "completed", "model": "m", "output": [item]}).to_string()
        };
        let answer = |body: &str| vec![http("200 OK", "application/json", body)];
        let script = ["resp_1", "resp_2", "resp_3"].map(|id| answer(&reply(id))).into_iter();
        let upstream = Scripted::start(script.chain([answer("{\"object\":\"list\",\"data\":[]}")]).collect()).await;
        let mut lab = Lab::before(upstream.address, Setup::planned(PLAN)).await;
        respond(&lab, "solver", json!({"input": QUESTION}), false).await;
        respond(&lab, "critic", json!({"input": "Sure?", "previous_response_id": "resp_1"}), false).await;
        respond(&lab, "critic", json!({"input": QUESTION}), false).await;
        get(&lab, &format!("/v1/responses/{list}")).await;
        assert_eq!(lab.sealed("r0").await.manipulator_failures.len(), undone, "{list}");
    }
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
    for (plan, noted) in [(edit.as_str(), 1), (PLAN, 0)] {
        let list = vec![http("200 OK", "application/json", "{\"object\":\"list\",\"data\":[]}")];
        let reply = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": []})
            .to_string();
        let path = "/v1/responses/resp_1";
        let upstream = Scripted::start(vec![vec![http("200 OK", "application/json", &reply)], list]).await;
        let mut lab = Lab::before(upstream.address, Setup::planned(plan)).await;
        respond(&lab, "solver", json!({"input": QUESTION}), false).await;
        get(&lab, path).await;
        get(&lab, &format!("{path}/input_items")).await;
        let recording = lab.sealed("r0").await;
        let said = notes(&recording, "as the upstream got them, edits included").len();
        assert_eq!(said, noted, "{:?}", recording.notes);
    }
}
