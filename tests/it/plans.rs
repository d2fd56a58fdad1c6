//! Every manipulator at the wire, whole and streamed: the edit is the same, everything else stays, and the label says
//! what was delivered.

use std::sync::Arc;

use aegis::{
    recording::Recording,
    simulator::Simulator,
    trajectory::{LabelStatus, Side},
};
use serde_json::{Value, json};

use crate::{
    assembled::{assembled, both, normal, whole},
    lab::{Lab, Setup, chat},
    scripted::{Act, Scripted},
};

/// What an agent asks that has a history: prompts, a named peer, a tool's result.
fn asked(streamed: bool, call: u32) -> Vec<u8> {
    let mut body = json!({"model": "m", "messages": [
        {"role": "system", "content": "You solve.  Use the tools."},
        {"role": "user", "content": "I have 3 apples; how many are 12 + 30?"},
        {"role": "user", "name": "planner", "content": "First add the apples, then check."},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":12,\"b\":30}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "42 apples"},
        {"role": "user", "content": format!("Go on ({call}).")}
    ], "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]});
    if streamed {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
    }
    body.to_string().into_bytes()
}

/// A choice of a reply: its text, and tool calls as `(name, arguments)`.
type Choice = (&'static str, &'static [(&'static str, &'static str)]);

const TEXT: &[Choice] = &[("12 + 30 = 42 — “äöü😀”.\nThe answer is correct: 42.", &[])];
const TOOLS: &[Choice] = &[("I add.", &[("add", "{\"a\": 12, \"b\": 30}"), ("say", "{\"text\":\"ü😀\"}")])];
const TWO: &[Choice] = &[("The answer is correct: 42.", &[]), ("It is correct, 43.", &[])];

/// One row a manipulator and side; `changed` is how the edited object is recognised.
const RESPONSES: &[(&str, &[Choice], &str)] = &[
    ("corrupt_number = { which = \"last\", by = 10 }", TEXT, "The answer is correct: 52."),
    ("corrupt_number = { which = \"first\", by = 1000 }", TEXT, "1012 + 30"),
    ("corrupt_number = { which = \"all\", by = 1 }", TWO, "It is correct, 44."),
    ("replace_text = { find = \"42\", with = \"„\\\"7\\\"\\n\" }", TEXT, "12 + 30 = „\\\"7\\\"\\n —"),
    ("replace_text = { pattern = '(\\d+) \\+ (\\d+)', with = '$2 + $1' }", TEXT, "30 + 12 = 42"),
    ("negate_verdict = {}", TEXT, "The answer is incorrect: 42."),
    ("negate_verdict = {}", TWO, "It is incorrect, 43."),
    ("truncate_output = { keep = 0.5 }", TEXT, "\"length\""),
    ("truncate_output = { chars = 3 }", TOOLS, "\"I a\""),
    ("end_early = { text = \"Done. 😀\" }", TEXT, "\"Done. 😀\""),
    ("end_early = {}", TOOLS, "\"stop\""),
    ("repeat_step = {}", TEXT, "\"An earlier answer.\""),
    ("edit_tool_call = { tool = \"add\", set = { \"/b\" = 31 } }", TOOLS, "{\\\"a\\\": 12, \\\"b\\\": 31}"),
    ("edit_tool_call = { tool = \"say\", arguments = { text = \"no\" } }", TOOLS, "\\\"no\\\""),
    ("edit_tool_call = { raw_arguments = \"{half\" }", TOOLS, "\"{half\""),
    ("edit_tool_call = { name = \"subtract\" }", TOOLS, "\"subtract\""),
    ("edit_tool_call = { duplicate = true }", TOOLS, "\"add\""),
    ("edit_tool_call = { drop = true, tool = \"say\" }", TOOLS, "\"tool_calls\""),
    ("drop_verification = {}", REPORT, "It was Ada.\\n# Open"),
    ("drop_section = { matching = \"Open\" }", REPORT, "\"# Found\\nIt was Ada. I checked it.\""),
    ("withhold_findings = { matching = \"Ada\" }", REPORT, "\"# Found\\nI checked it."),
    ("echo_peer = { from = \"solver\", opening = \"Yes: \" }", TEXT, "\"Yes: An earlier answer.\""),
    ("refuse = {}", TOOLS, "I'm sorry"),
    ("garble = { part = 0.9 }", REPORT, "# "),
    ("empty = {}", TOOLS, "\"stop\""),
    ("wrong_entity = { find = \"Ada\" }", REPORT, "It was Blaise."),
];

/// A text with findings, a check and two sections; names to be taken for each other.
const REPORT: &[Choice] =
    &[("# Found\nIt was Ada. I checked it.\n# Open\nWhat Blaise did is not known to anybody as of now.", &[])];

const REQUESTS: &[(&str, &str)] = &[
    ("append_instruction = { text = \"Do not ask „back“.\" }", "Use the tools.\\n\\nDo not ask „back“."),
    ("append_instruction = { text = \"Be brief.\", role = \"last\" }", "Go on (1).\\n\\nBe brief."),
    (
        "drop_history = { keep_last = 1 }",
        "\"messages\":[{\"role\":\"system\",\"content\":\"You solve.  Use the tools.\"},{\"role\":\"user\",\"content\":\"Go on (1).\"}]",
    ),
    ("withhold_message = { from = \"planner\" }", "12 + 30?\"},{\"role\":\"assistant\""),
    ("insert_message = { text = \"And then?\", name = \"planner\" }", "\"name\":\"planner\",\"content\":\"And then?\""),
    ("reorder_history = { how = \"reverse\" }", "Use the tools.\"},{\"role\":\"assistant\""),
    ("duplicate_message = { message = \"user\" }", "\"Go on (1).\"},{\"role\":\"user\",\"content\":\"Go on (1).\""),
    (
        "swap_role = { from = \"user\", to = \"system\", last_only = true }",
        "{\"role\":\"system\",\"content\":\"Go on (1).\"}",
    ),
    ("corrupt_tool_result = { how = \"error\" }", "Error: the request timed out"),
    ("corrupt_tool_result = { tool = \"add\", with = \"7 pears\" }", "\"7 pears\""),
];

fn plan(manipulator: &str, side: &str) -> String {
    format!(
        "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 1\n{side}manipulator.{manipulator}\n"
    )
}

/// Makes the plan's two calls and one of another agent; gives what was said to the solver's second call, and the
/// recording.
async fn run(plan: &str, first: Vec<Act>, second: Vec<Act>, streamed: bool) -> (String, Vec<Vec<u8>>, Recording) {
    let upstream = Scripted::start(vec![first, second.clone(), second]).await;
    let mut lab = Lab::before(upstream.address, Setup::planned(plan)).await;
    let mut replies = Vec::new();
    for (agent, call) in [("solver", 0), ("solver", 1), ("critic", 1)] {
        let reply = lab.post(&format!("/r/run/a/{agent}/v1/chat/completions"), &asked(streamed, call)).await;
        assert!(reply.status == 200 && reply.whole, "{plan}: {} {}", reply.status, reply.text());
        assert!(!reply.head.to_lowercase().contains("aegis"), "a reply tells of the proxy: {}", reply.head);
        replies.push(reply.text());
    }
    let recording = lab.sealed("run").await;
    let steps = &recording.trajectory.steps;
    assert_eq!(recording.manipulator_failures, [], "{plan}");
    // What nobody wanted edited left as it came.
    for (number, agent) in [(0, "solver"), (2, "critic")] {
        assert_eq!(replies[number].as_bytes(), &steps[number].attempts[0].reply[..], "{plan}");
        assert_eq!(steps[number].attempts[0].reply_delivered, None, "{plan}");
        assert_eq!((steps[number].attribution.agent.as_str(), &steps[number].request_sent), (agent, &None), "{plan}");
    }
    assert_eq!(steps[1].attempts[0].delivered(), replies[1].as_bytes(), "{plan}: delivered is what the client got");
    (replies.remove(1), upstream.bodies(), recording)
}

fn assert_label(plan: &str, recording: &Recording, side: Side) {
    let label = recording.label.as_ref().unwrap_or_else(|| panic!("{plan}: no label"));
    assert_eq!((label.status, label.seed, label.errors.len()), (LabelStatus::Delivered, 7, 1), "{plan}");
    let error = &label.errors[0].error;
    assert_eq!((error.agent.as_str(), error.step, error.call, error.side), ("solver", 1, 1, side), "{plan}");
    assert!(plan.contains(&format!("manipulator.{}", error.operator)), "{plan}: {}", error.operator);
    let step = &recording.trajectory.steps[1];
    let (before, after) = match side {
        Side::Request => (step.request.clone(), step.request_sent.clone().expect("it was edited")),
        Side::Response => (step.attempts[0].reply.clone(), step.attempts[0].delivered().clone()),
    };
    assert_ne!(before, after, "{plan}");
    let hash = |body: &[u8]| blake3::hash(body).to_hex().to_string();
    assert_eq!((&error.before, &error.after), (&hash(&before), &hash(&after)), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_stream_says_what_the_edited_whole_reply_says() {
    for (manipulator, choices, changed) in RESPONSES {
        let plan = plan(manipulator, "side = \"response\"\n");
        let (whole_reply, stream) = both(choices);
        let (earlier, earlier_stream) = both(&[("An earlier answer.", &[])]);
        let (edited, _, recording) = run(&plan, earlier, whole_reply, false).await;
        assert_label(&plan, &recording, Side::Response);
        let original = String::from_utf8(recording.trajectory.steps[1].attempts[0].reply.to_vec()).expect("utf-8");
        let (streamed, _, recording) = run(&plan, earlier_stream, stream, true).await;
        assert_label(&plan, &recording, Side::Response);
        let (from_whole, from_stream) = (normal(whole(&edited)), normal(assembled(&streamed)));
        assert_eq!(from_stream, from_whole, "{manipulator}");
        assert!(from_whole.to_string().contains(changed), "{manipulator}: {from_whole}");
        assert_ne!(from_whole, normal(whole(&original)), "{manipulator}");
        let (counted, before) = (&from_whole["usage"], &whole(&original)["usage"]);
        let count = |key: &str| counted[key].as_u64().expect("a count");
        assert_eq!(
            counted["prompt_tokens"], before["prompt_tokens"],
            "{manipulator}: what was asked is the upstream's"
        );
        let sum = count("prompt_tokens") + count("completion_tokens");
        assert_eq!(count("total_tokens"), sum, "{manipulator}: the counts fit each other");
        assert!(streamed.ends_with("data: [DONE]\n\n"), "{manipulator}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_request_is_the_same_streamed_or_not() {
    for (manipulator, changed) in REQUESTS.iter().chain(&[
        ("replace_text = { find = \"apples\", with = \"pears\", messages = \"user\" }", "I have 3 pears; how many"),
        ("replace_text = { pattern = '(\\d+) apples', with = '$1 pears', messages = \"tool\" }", "\"42 pears\""),
    ]) {
        let side = if manipulator.starts_with("replace_text") { "side = \"request\"\n" } else { "" };
        let plan = plan(manipulator, side);
        let (reply, stream) = both(TEXT);
        let mut messages = Vec::new();
        for (streamed, acts) in [(false, reply), (true, stream)] {
            let (_, bodies, recording) = run(&plan, acts.clone(), acts, streamed).await;
            assert_label(&plan, &recording, Side::Request);
            assert_eq!([&bodies[0], &bodies[2]], [&asked(streamed, 0), &asked(streamed, 1)], "{manipulator}");
            let sent = String::from_utf8(bodies[1].clone()).expect("utf-8");
            assert!(sent.contains(changed), "{manipulator}: {sent}");
            let body: Value = serde_json::from_str(&sent).expect("JSON");
            // Only the messages differ, and what follows them is there byte for byte.
            let original = String::from_utf8(asked(streamed, 1)).expect("utf-8");
            let tail = &original[original.find("],\"tools\"").expect("tools")..];
            assert!(sent.ends_with(tail), "{manipulator}: {sent}");
            messages.push(body["messages"].clone());
        }
        assert_eq!(messages[0], messages[1], "{manipulator}");
    }
}

/// Tools and parameters: what is not named stays byte for byte.
#[tokio::test(flavor = "multi_thread")]
async fn tools_and_parameters_are_edited_in_place() {
    let head = r#"{ "model":"m", "temperature": 0.20,"messages":[{"role":"user","content":"caf\u00e9"}]"#;
    let tool = |name: &str| format!(r#"{{"type":"function","function":{{"name":"{name}","x":1.50}}}}"#);
    let (add, sub) = (tool("add"), tool("sub"));
    let choice = r#""tool_choice":{"type":"function","function":{"name":"add"}}"#;
    let body = format!(r#"{head}, "tools":[{add}, {sub}], {choice} ,"parallel_tool_calls":false, "stop":"x" }}"#);
    for (manipulator, expected) in [
        ("drop_tools = {}", format!(r#"{head}, "stop":"x" }}"#)),
        (
            "drop_tools = { tools = [\"add\"] }",
            body.replace(&format!("{add}, "), "").replace(choice, "\"tool_choice\":\"auto\""),
        ),
        ("rename_tool = { tool = \"add\", to = \"plus\" }", body.replace("\"add\"", "\"plus\"")),
        ("set_parameter = { temperature = 1.5 }", body.replace("0.20", "1.5")),
        (
            "set_parameter = { model = \"n\", stop = [\"y\"] }",
            body.replace("\"m\"", "\"n\"").replace("\"x\" }", "[\"y\"] }"),
        ),
        ("set_parameter = { max_tokens = 5 }", body.replacen('{', "{\"max_completion_tokens\":5,", 1)),
    ] {
        let (reply, _) = both(TEXT);
        let upstream = Scripted::always(reply).await;
        let plan = plan(manipulator, "").replace("call = 1", "call = 0");
        let mut lab = Lab::before(upstream.address, Setup::planned(&plan)).await;
        assert_eq!(lab.post("/a/solver/v1/chat/completions", body.as_bytes()).await.status, 200);
        assert_eq!(String::from_utf8_lossy(&upstream.bodies()[0]), expected, "{manipulator}");
        assert_eq!(lab.sealed("r0").await.label.expect("a label").errors.len(), 1, "{manipulator}");
    }
}

/// Edited JSON differs only inside the edited span.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_leaves_every_other_byte() {
    let odd = |number: &str| {
        format!(
            "{{ \"id\":\"x\", \"created\" : 1e0,\n\t\"choices\":[ {{\"index\":0, \"message\":{{\"role\":\"assistant\",\"content\":\"caf\\u00e9\\/ is {number}\", \"odd\":12345678901234567890123}},\"finish_reason\":\"stop\" , \"x\":[1.50,null]}} ], \"z\":\"\\u00e9\" }}\n"
        )
    };
    let upstream = Scripted::always(vec![crate::scripted::http("200 OK", "application/json", &odd("42"))]).await;
    let lab = Lab::before(
        upstream.address,
        Setup::planned(&plan("corrupt_number = { by = 10 }", "").replace("call = 1", "call = 0")),
    )
    .await;
    let reply = lab.post("/a/solver/v1/chat/completions", &chat("x")).await;
    let prefix = odd("42").find("caf").expect("the text");
    let suffix = odd("42").len() - odd("42").find("42\"").expect("the number") - 2;
    let text = reply.text();
    assert!(text.contains("is 52\"") && text.len() > prefix + suffix, "{text}");
    assert_eq!(text[..prefix], odd("42")[..prefix]);
    assert_eq!(text[text.len() - suffix..], odd("42")[odd("42").len() - suffix..]);
}

/// Two injections on one step: in plan order, each on the former's output; the label lists both.
#[tokio::test(flavor = "multi_thread")]
async fn two_injections_on_one_step_apply_in_order() {
    let injection = |manipulator: &str, mode: &str| {
        format!(
            "[[injection]]\nagent = \"sol*\"\nfailure_mode = \"{mode}\"\nwhen.call = 0\nmanipulator.{manipulator}\n"
        )
    };
    let text = format!(
        "format = 1\nseed = 3\n{}{}{}",
        injection("corrupt_number = { which = \"last\", by = 10 }", "FM-2.6"),
        injection("replace_text = { find = \"52\", with = \"sixty\" }", "FM-3.3")
            .replace("manipulator.", "side = \"response\"\nmanipulator."),
        injection("append_instruction = { text = \"Hurry.\" }", "FM-1.1"),
    );
    let (reply, stream) = both(TEXT);
    for acts in [reply, stream] {
        let upstream = Scripted::always(acts).await;
        let mut lab = Lab::before(upstream.address, Setup::planned(&text)).await;
        let reply = lab.post("/a/solver/v1/chat/completions", &chat("x")).await;
        let object = if reply.text().starts_with('{') { whole(&reply.text()) } else { assembled(&reply.text()) };
        let said = object["choices"]["0"]["message"]["content"].as_str().expect("text").to_owned();
        assert!(said.ends_with("The answer is correct: sixty."), "{said}");
        assert!(String::from_utf8_lossy(&upstream.bodies()[0]).contains("Hurry."));
        let label = lab.sealed("r0").await.label.expect("a label");
        let listed: Vec<_> = label.errors.iter().map(|entry| (entry.error.injection, entry.error.side)).collect();
        assert_eq!(listed, [(0, Side::Response), (1, Side::Response), (2, Side::Request)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn max_times_counts_delivered_edits() {
    let text = plan("end_early = { text = \"Done.\" }", "")
        .replace("when.call = 1", "when = { always = true, max_times = 2 }");
    let (reply, _) = both(TEXT);
    let upstream = Scripted::always(reply).await;
    let mut lab = Lab::before(upstream.address, Setup::planned(&text)).await;
    let mut edited = Vec::new();
    for call in 0..4 {
        let reply = lab.post("/a/solver/v1/chat/completions", &chat(&format!("call {call}"))).await;
        edited.push(reply.text().contains("Done."));
    }
    assert_eq!(edited, [true, true, false, false]);
    assert_eq!(lab.sealed("r0").await.label.expect("a label").errors.len(), 2);
}

/// On one thread, where calls that come together wait for each other's records: each is decided, and counted, in turn.
#[tokio::test]
async fn max_times_counts_calls_that_come_together() {
    let text = plan("append_instruction = { text = \"Hurry.\" }", "")
        .replace("when.call = 1", "when = { always = true, max_times = 2 }");
    let (reply, _) = both(TEXT);
    let upstream = Scripted::always(reply).await;
    let lab = Lab::before(upstream.address, Setup::planned(&text)).await;
    let bodies = ["one", "two", "three"].map(chat);
    let [first, second, third] = bodies.each_ref().map(|body| lab.post("/a/solver/v1/chat/completions", body));
    let replies = tokio::join!(first, second, third);
    assert_eq!([replies.0.status, replies.1.status, replies.2.status], [200; 3]);
    let edited = upstream.bodies().iter().filter(|body| String::from_utf8_lossy(body).contains("Hurry.")).count();
    assert_eq!((upstream.count(), edited), (3, 2));
}

/// Through the simulator, which knows of no plan: the planted number is in what the agent gets, and in the label.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_planted_in_the_simulators_answer() {
    for streamed in [false, true] {
        let text = plan("corrupt_number = { which = \"last\", by = 100 }", "").replace("call = 1", "call = 0");
        let mut lab = Lab::over(Arc::new(Simulator::new(7)), Setup::planned(&text)).await;
        let body = json!({"model": "m", "stream": streamed, "messages": [
            {"role": "system", "content": "You solve arithmetic problems."},
            {"role": "user", "content": "What is 17 + 25? State the final answer as a number."}]});
        let clean = lab.post("/a/critic/v1/chat/completions", body.to_string().as_bytes()).await.text();
        let edited = lab.post("/a/solver/v1/chat/completions", body.to_string().as_bytes()).await.text();
        let said = |text: &str| {
            let object = if streamed { assembled(text) } else { whole(text) };
            object["choices"]["0"]["message"]["content"].as_str().expect("text").to_owned()
        };
        assert!(said(&clean).contains("42") && !said(&clean).contains("142"), "{}", said(&clean));
        assert!(said(&edited).contains("142"), "{}", said(&edited));
        let label = lab.sealed("r0").await.label.expect("a label");
        assert_eq!((label.errors.len(), label.errors[0].error.step), (1, 1));
    }
}
