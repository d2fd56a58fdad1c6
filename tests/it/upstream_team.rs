//! Replies of a team that runs at the upstream and that the upstream names (Responses, `multi_agent`): shown, edited and labelled
//! agent by agent, never as the words of the one that asks.

use aegis::{recording, ruling::NoLabel};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Setup},
    program::verb,
    scripted::{Act, Scripted, http},
    viewer::View,
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

/// What one agent says in the reply that a client got, whole or as events.
fn said(got: &str, agent: &str) -> Vec<String> {
    let last = got.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap_or(got);
    let last: Value = serde_json::from_str(last).expect("JSON");
    let output = last.pointer("/response/output").or_else(|| last.get("output")).and_then(Value::as_array).cloned();
    let of_agent = |item: &Value| item["agent"]["agent_name"] == agent;
    let items = output.unwrap_or_default().into_iter().filter(of_agent);
    items.filter_map(|item| item.pointer("/content/0/text").and_then(Value::as_str).map(str::to_owned)).collect()
}

/// A plan meets the agent that it names, by the upstream's name or by that of the agent that asks, and the label names whom it met.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_edits_the_agent_that_it_names_and_the_label_names_it() {
    for streamed in [false, true] {
        for (aim, root, solver, by) in [
            ("/root/solver", "The answer is 41", "result is 49", "/root/solver"),
            ("/root/*", "The answer is 41", "result is 49", "/root/solver"),
            ("/root", "The answer is 49", "result is 41", "/root"),
            ("main", "The answer is 49", "result is 41", "main"),
        ] {
            let edit = "manipulator.corrupt_number = { by = 8, which = \"last\" }\n";
            let (got, mut lab) =
                asked(&plan(edit).replace("\"main\"", &format!("\"{aim}\"")), &of_team(), streamed).await;
            assert_eq!(said(&got, "/root"), [root], "{aim} {got}");
            assert_eq!(said(&got, "/root/solver"), ["6*7 = 41", solver], "{aim} {got}");
            let sealed = lab.sealed("r0").await;
            let label = sealed.label.unwrap_or_else(|| panic!("a label of {aim}"));
            let error = &label.errors[0].error;
            assert_eq!((label.errors.len(), error.agent.as_str(), error.step, error.call), (1, by, 0, 0));
            assert!(error.speaker.as_ref().is_some_and(|name| by == "main" || name.as_str() == by), "{error:?}");
            let dir = lab.logs.join("r0");
            assert!(aegis::ruling::settle(&dir, None).expect("readable").is_ok());
            let (code, out, _) = verb(&lab.logs, &["show", "r0"]).await;
            assert!(code == Some(0) && out.contains(&format!("{by} at step 0")), "{out}");
            let (code, out, _) = verb(&lab.logs, &["agents", "r0"]).await;
            assert!(code == Some(0) && out.contains("/root/solver"), "{out}");
        }
    }
}

/// An export has a row for each utterance, and the label's row is what its agent said.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_a_row_for_each_utterance() {
    for (aim, step, agent, text) in
        [("/root/solver", 2, "/root/solver", "result is 49"), ("/root", 3, "main", "The answer is 49")]
    {
        let edit = "manipulator.corrupt_number = { by = 8, which = \"last\" }\n";
        let (_, mut lab) = asked(&plan(edit).replace("\"main\"", &format!("\"{aim}\"")), &of_team(), true).await;
        lab.sealed("r0").await;
        let recording = recording::read(&lab.logs.join("r0")).expect("readable");
        let sample = aegis::dataset::Sample::alone(&recording).expect("a sample");
        let rows: Vec<_> = sample.steps.iter().map(|row| (row.step, row.agent.as_str(), row.call)).collect();
        assert_eq!(rows, [(0, "main", 0), (1, "/root/solver", 0), (2, "/root/solver", 0), (3, "main", 0)]);
        assert_eq!(sample.task.question, "What is 6*7?");
        assert_eq!(sample.steps[0].output.as_ref().expect("said").text, "multi_agent_call spawn_agent {}");
        let truth = sample.label.as_ref().expect("a label");
        let error = &truth.errors[0];
        assert_eq!((error.step, error.agent.as_str(), error.call), (Some(step), agent, Some(0)));
        assert_eq!(sample.steps[step as usize].output.as_ref().expect("said").text, text);
        assert_eq!((truth.changes[0].step, truth.changes[0].after[0].text.as_str()), (step, text));
    }
}

/// An agent that nobody declared is met by the name that the upstream gives it, and its calls are the replies in which it speaks.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_known_by_its_name_and_its_replies_where_nobody_is_declared() {
    let alone = vec![message("/root", "I think of 41")];
    let script = [&alone, &of_team(), &of_team()].map(|output| vec![reply(output, false)]);
    let upstream = Scripted::start(script.to_vec()).await;
    let plan_text = plan(REPLY).replace("\"main\"", "\"/root/solver\"").replace("call = 0", "call = 1");
    let mut lab = Lab::before(upstream.address, Setup::planned(&plan_text)).await;
    let mut got = Vec::new();
    for question in ["one", "two", "three"] {
        let body =
            json!({"model": "m", "instructions": "Lead a team.", "multi_agent": {"enabled": true}, "input": question});
        got.push(lab.post("/v1/responses", body.to_string().as_bytes()).await.text());
    }
    assert_eq!(got[0], response(&alone).to_string(), "untouched, byte for byte");
    assert_eq!(got[1], response(&of_team()).to_string(), "untouched, byte for byte");
    assert_ne!(said(&got[2], "/root/solver"), said(&got[1], "/root/solver"));
    assert_eq!(said(&got[2], "/root"), ["The answer is 41"]);
    let label = lab.sealed("r0").await.label.expect("a label");
    let error = &label.errors[0].error;
    assert_eq!((error.agent.as_str(), error.step, error.call), ("/root/solver", 2, 1));
}

/// Two agents that ask may each have a team with the same names: a label could mean either.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_in_two_teams_is_no_one_agents() {
    let upstream = Scripted::always(vec![reply(&of_team(), false)]).await;
    let plan_text = plan(REPLY).replace("\"main\"", "\"/root/solver\"");
    let mut lab = Lab::before(upstream.address, Setup::planned(&plan_text)).await;
    for asker in ["main", "other"] {
        let body = json!({"model": "m", "multi_agent": {"enabled": true}, "input": asker});
        lab.post(&format!("/a/{asker}/v1/responses"), body.to_string().as_bytes()).await;
    }
    lab.sealed("r0").await;
    let dir = lab.logs.join("r0");
    assert_eq!(aegis::ruling::settle(&dir, None).expect("readable").expect_err("none"), NoLabel::ContestedName);
}

/// A reply is shown agent by agent.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_shown_agent_by_agent() {
    for streamed in [false, true] {
        let (_, mut lab) = asked(&plan(REPLY), &of_team(), streamed).await;
        lab.sealed("r0").await;
        let (code, out, _) = verb(&lab.logs, &["show", "r0", "--step", "0"]).await;
        assert_eq!(code, Some(0));
        let places: Vec<_> =
            ["/root", "spawn_agent {}", "/root/solver", "6*7 = 41", "/root/solver to /root", "result is 41"]
                .map(|words| out.find(words).unwrap_or_else(|| panic!("{words}: {out}")))
                .to_vec();
        assert!(places.is_sorted() && out.contains("[encrypted_content]"), "{out}");
    }
}

/// What one agent says may go, and come anew: the item names the agent, and nothing of the others moves.
#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_an_edit_makes_names_its_agent() {
    for streamed in [false, true] {
        let spawns = vec![of_team().remove(0), message("/root/solver", "6*7 = 41")];
        let refuse = plan("manipulator.refuse = { text = \"No.\" }\n").replace("\"main\"", "\"/root\"");
        let (got, mut lab) = asked(&refuse, &spawns, streamed).await;
        assert_eq!((said(&got, "/root"), said(&got, "/root/solver")), (vec!["No.".into()], vec!["6*7 = 41".into()]));
        assert_eq!(lab.sealed("r0").await.label.expect("a label").errors[0].error.agent.as_str(), "/root");
    }
}

/// The response ends early where the root is cut off, and as it did where an agent below the root is.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_ends_as_its_root_does() {
    for streamed in [false, true] {
        for (aim, early) in [("/root", true), ("/root/solver", false)] {
            let cut = plan("manipulator.truncate_output = { keep = 0.5 }\n").replace("\"main\"", &format!("\"{aim}\""));
            let (got, mut lab) = asked(&cut, &of_team(), streamed).await;
            assert_eq!(got.contains("max_output_tokens"), early, "{aim} {got}");
            assert!(lab.sealed("r0").await.label.is_some());
        }
    }
}

/// A root that says nothing in a reply is not edited in it.
#[tokio::test(flavor = "multi_thread")]
async fn an_asker_that_says_nothing_is_not_edited() {
    let (got, mut lab) = asked(&plan(REPLY), &[message("/root/solver", "The answer is 41")], false).await;
    assert!(got.contains("The answer is 41"), "{got}");
    let sealed = lab.sealed("r0").await;
    assert!(sealed.label.is_none() && sealed.manipulator_failures[0].why.contains("/root/solver"));
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
    }
}

/// The events of a reply as the API sends them: words come in pieces, and those of two agents by turns.
fn frames(output: &[Value]) -> Vec<String> {
    let mut events =
        vec![json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}})];
    let text = |item: &Value| item.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned();
    let each = |kind: &str, of: &dyn Fn(usize, &Value) -> Value| {
        let made = output.iter().enumerate().filter(|(_, item)| kind.contains("item") || item["type"] == "message");
        made.map(|(at, item)| {
            let mut event = of(at, item);
            event["type"] = format!("response.{kind}").into();
            event["output_index"] = at.into();
            event
        })
        .collect::<Vec<_>>()
    };
    events.extend(each("output_item.added", &|_, item| {
        let mut item = item.clone();
        if item["type"] == "message" {
            item["content"] = json!([]);
            item["status"] = "in_progress".into();
        }
        json!({"item": item})
    }));
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let of = |item: &Value| json!({"item_id": item["id"], "content_index": 0, "agent": item["agent"]});
    let with = |mut event: Value, key: &str, value: Value| {
        event[key] = value;
        event
    };
    events.extend(each("content_part.added", &|_, item| with(of(item), "part", part(""))));
    for half in 0..2 {
        events.extend(each("output_text.delta", &|_, item| {
            let text = text(item);
            let (first, second) = text.split_at(text.len() - 1);
            with(of(item), "delta", [first, second][half].into())
        }));
    }
    events.extend(each("output_text.done", &|_, item| with(of(item), "text", text(item).into())));
    events.extend(each("content_part.done", &|_, item| with(of(item), "part", part(&text(item)))));
    events.extend(each("output_item.done", &|_, item| json!({"item": item})));
    events.push(json!({"type": "response.completed", "response": response(output)}));
    let numbered = events.into_iter().enumerate().map(|(at, event)| with(event, "sequence_number", at.into()));
    numbered.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"))).collect()
}

/// An edit of what one agent says leaves each byte of the others, in every event and in the response that ends the stream.
#[tokio::test(flavor = "multi_thread")]
async fn what_other_agents_say_keeps_its_bytes() {
    let output = of_team();
    let edit = "manipulator.corrupt_number = { by = 8, which = \"last\" }\n";
    for streamed in [false, true] {
        for (aim, edited) in [("/root/solver", vec![1, 2]), ("/root", vec![0, 3])] {
            let sent = if streamed { frames(&output) } else { vec![response(&output).to_string()] };
            let kind = if streamed { "text/event-stream" } else { "application/json" };
            let upstream = Scripted::always(vec![http("200 OK", kind, &sent.concat())]).await;
            let mut lab =
                Lab::before(upstream.address, Setup::planned(&plan(edit).replace("\"main\"", &format!("\"{aim}\""))))
                    .await;
            let body =
                json!({"model": "m", "stream": streamed, "multi_agent": {"enabled": true}, "input": "What is 6*7?"});
            let got = lab.post("/a/main/v1/responses", body.to_string().as_bytes()).await.text();
            let got: Vec<String> = got.split_inclusive("\n\n").map(str::to_owned).collect();
            assert_eq!(got.len(), sent.len(), "{got:?}");
            let (mut changed, mut words) = (0, String::new());
            for (got, sent) in got.iter().zip(&sent) {
                let data = |frame: &str| -> Value {
                    serde_json::from_str(frame.split_once("data: ").map_or(frame, |(_, data)| data)).expect("JSON")
                };
                let (event, before) = (data(got), data(sent));
                let at = before["output_index"].as_u64();
                let is_own = at.is_none_or(|at| edited.contains(&at));
                assert!(got == sent || is_own, "{aim}: {sent} became {got}");
                changed += u32::from(got != sent);
                if before.get("response").or(before.get("output")).is_some_and(|_| got.contains("\"completed\"")) {
                    for (at, item) in output.iter().enumerate() {
                        assert!(edited.contains(&(at as u64)) || got.contains(&item.to_string()), "{aim}: {got}");
                    }
                }
                if event["type"] == "response.output_text.delta" && event["output_index"] == 3 {
                    words.push_str(event["delta"].as_str().expect("words"));
                }
            }
            assert!(changed > 0, "{aim}");
            let root = if aim == "/root" { "The answer is 49" } else { "The answer is 41" };
            assert!(!streamed || words == root, "{words}");
            assert!(lab.sealed("r0").await.label.is_some());
        }
    }
}

/// The page shows who says what, and so does a data set that is exported.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_and_an_export_name_the_agents() {
    for streamed in [false, true] {
        let edit = "manipulator.corrupt_number = { by = 8, which = \"last\" }\n";
        let (_, mut lab) = asked(&plan(edit).replace("\"main\"", "\"/root/solver\""), &of_team(), streamed).await;
        lab.sealed("r0").await;
        let view = View::of(&lab.logs, &["r0"]).await;
        let run = view.get("/api/run/r0").await;
        assert!(run["head"]["label"].to_string().contains("\"/root/solver\""), "{run:#}");
        let told = view.get("/api/run/r0/step/0").await.to_string();
        for who in ["\"/root\"", "\"/root/solver\"", "\"/root/solver to /root\"", "result is 49"] {
            assert!(told.contains(who), "{who}: {told}");
        }
        for format in ["atif", "otlp", "inspect"] {
            let to = ["export", "r0", "--unverified", "--to", format, "--out", format];
            let (code, _, talk) = verb(&lab.logs, &to).await;
            assert_eq!(code, Some(0), "{format}: {talk}");
            let out = lab.logs.join(format);
            let files = std::fs::read_dir(&out).into_iter().flatten().flatten().map(|file| file.path());
            let rows: String = files.chain([out]).filter_map(|file| std::fs::read_to_string(file).ok()).collect();
            for words in ["/root/solver", "result is 49", "The answer is 41"] {
                assert!(rows.contains(words), "{format}: {words}: {rows}");
            }
        }
    }
}

/// A reply of which a part could not be placed is not edited, whoever of its agents is meant, and the run says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_not_read_whole_is_edited_in_no_agents_words() {
    for streamed in [false, true] {
        for aim in ["/root/solver", "main"] {
            let mut output = of_team();
            output[1]["content"][0]["answer"] = "and 7*6 = 41".into();
            let (got, mut lab) =
                asked(&plan(REPLY).replace("\"main\"", &format!("\"{aim}\"")), &output, streamed).await;
            assert_eq!(said(&got, "/root/solver"), ["6*7 = 41", "result is 41"]);
            let sealed = lab.sealed("r0").await;
            let why = sealed.manipulator_failures.first().map(|failure| failure.why.as_str());
            assert!(sealed.label.is_none() && why.is_some_and(|why| why.contains("answer")), "{aim}: {why:?}");
        }
    }
}
