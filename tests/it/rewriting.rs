//! `rewrite_with_model` at the wire, with the simulator as the model that rewrites: every mode, both sides, whole and
//! streamed, text, tool calls and structured output. Every question is recorded, and nothing of it reaches an agent.

use std::{sync::Arc, time::Duration};

use aegis::{
    budget::Price,
    manipulator::Templates,
    plan,
    proxy::{AskingSettings, ManipulatorModel, RecordedAnswers, RunSetup},
    recording::Recording,
    simulator::Simulator,
    trajectory::{FailureMode, LabelStatus, RunId, Side},
};
use serde_json::{Value, json};

use crate::{
    assembled::{assembled, both, whole},
    lab::{Lab, Setup},
    scripted::{Act, Scripted},
};

const SOLUTION: &str = "12 * 8 = 96\n96 - 12 = 84\nI checked it: 84 + 12 = 96.\nANSWER: 84";
const TASK: &str = "Problem: Ann has 12 boxes of 8 pencils and gives 12 pencils away. How many are left?";

/// The simulator in the manipulator's role.
fn simulated() -> Arc<ManipulatorModel> {
    let settings = AskingSettings {
        model: "rewriter".to_owned(),
        price: Price { input: 2.0, output: 8.0 },
        ..AskingSettings::default()
    };
    Arc::new(ManipulatorModel::new(Arc::new(Simulator::new(7)), settings))
}

fn injection(mode: FailureMode, side: Side) -> String {
    let side = if side == Side::Request { "request" } else { "response" };
    format!(
        "[[injection]]\nagent = \"solver\"\nfailure_mode = \"{}\"\nwhen.call = 0\nside = \"{side}\"\n\
         manipulator.rewrite_with_model = {{ instruction = \"mast\" }}\n",
        mode.code()
    )
}

fn asked(streamed: bool) -> Value {
    json!({"model": "m", "stream": streamed, "messages": [
        {"role": "system", "content": "You are Sol, the solver. Check each sum: say APPROVE or REVISE of it.  End with `ANSWER: <number>`."},
        {"role": "user", "name": "planner", "content": format!("{TASK}\n\nPlan:\n1. Multiply.\n2. Subtract.")}]})
}

/// Opens a run with a plan of its own and makes the solver's call in it; gives what the agent got.
async fn call(lab: &Lab, run: &str, plan: &str, body: &Value) -> String {
    let parsed = plan::parse(plan, "plan.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let id = RunId::parse(run).expect("an id");
    lab.proxy.runs.open(&id, RunSetup { plan: Some(Arc::new(parsed)), ..RunSetup::default() }).await.expect("a run");
    let reply = lab.post(&format!("/r/{run}/a/solver/v1/chat/completions"), body.to_string().as_bytes()).await;
    assert!(reply.status == 200 && reply.whole, "{plan}: {} {}", reply.status, reply.text());
    assert!(!reply.head.to_lowercase().contains("aegis"), "{}", reply.head);
    reply.text()
}

fn text_of(object: &Value) -> String {
    object["choices"]["0"]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// Everything of the planted edit stands in the record: question, answer, tokens, cost, label.
fn assert_recorded(recording: &Recording, side: Side) {
    assert_eq!(recording.manipulator_failures, [], "{}", recording.manifest.run);
    let [question] = recording.manipulator_questions.as_slice() else { panic!("one question") };
    assert_eq!((question.upstream.as_str(), question.model.as_str()), ("simulator", "rewriter"));
    assert!(question.template.starts_with("FM-") && question.template.ends_with(" v1"), "{}", question.template);
    let body: Value = serde_json::from_slice(&question.question).expect("a question");
    assert_eq!((&body["model"], &body["temperature"]), (&json!("rewriter"), &json!(0.7)));
    assert_eq!(body["response_format"]["json_schema"]["strict"], true);
    assert!(body["messages"][1]["content"].as_str().expect("text").contains("You are Sol, the solver."));
    let usage = question.usage.expect("tokens");
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    let cost = (usage.input as f64 * 2.0 + usage.output as f64 * 8.0) / 1e6;
    assert!(usage.input > 100 && question.cost.is_some_and(|found| (found - cost).abs() < 1e-12), "{question:?}");
    let label = recording.label.as_ref().expect("a label");
    assert_eq!((label.status, label.errors.len(), label.errors[0].error.side), (LabelStatus::Delivered, 1, side));
    let step = &recording.trajectory.steps[0];
    let after = match side {
        Side::Request => step.request_sent.clone().expect("it was edited"),
        Side::Response => step.attempts[0].delivered().clone(),
    };
    assert_eq!(label.errors[0].error.after, blake3::hash(&after).to_hex().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mode_is_planted_on_both_sides_whole_and_streamed() {
    let (reply, stream) = both(&[(SOLUTION, &[])]);
    let (replies, streams) = (Scripted::always(reply).await, Scripted::always(stream).await);
    for (streamed, upstream) in [(false, &replies), (true, &streams)] {
        let asking = simulated();
        let setup = Setup { asking: Some(Arc::clone(&asking)), ..Setup::default() };
        let mut lab = Lab::before(upstream.address, setup).await;
        let mut said = Vec::new();
        for (number, mode) in FailureMode::ALL.iter().enumerate() {
            for side in [Side::Response, Side::Request] {
                let run = format!("{number}-{}", side == Side::Response);
                let got = call(&lab, &run, &injection(*mode, side), &asked(streamed)).await;
                said.push((run, side, text_of(&if streamed { assembled(&got) } else { whole(&got) })));
            }
        }
        assert_eq!(asking.spent().calls, 28, "one client for all runs");
        lab.sealed("0-true").await;
        let bodies = upstream.bodies();
        for (call, (run, side, text)) in said.iter().enumerate() {
            let recording = lab.recorded(run);
            assert_recorded(&recording, *side);
            let template = &recording.manipulator_questions[0].template;
            let sent: Value = serde_json::from_slice(&bodies[call]).expect("JSON");
            let sent = sent["messages"][1]["content"].as_str().expect("text").to_owned();
            assert!(!bodies[call].windows(8).any(|bytes| bytes == b"Weakness"), "{template}");
            match side {
                Side::Response => assert!(text != SOLUTION && sent.contains(TASK), "{template}: {text}"),
                Side::Request => assert!(
                    text == SOLUTION && sent.trim() != asked(false)["messages"][1]["content"],
                    "{template}: {sent}"
                ),
            }
        }
    }
}

/// Same plan, same run name, same model: the same edit, streamed or not.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_by_a_model_is_the_same_streamed_or_whole() {
    let (reply, stream) = both(&[(SOLUTION, &[])]);
    let mut texts = Vec::new();
    for (streamed, acts) in [(false, reply), (true, stream)] {
        let upstream = Scripted::always(acts).await;
        let lab = Lab::before(upstream.address, Setup { asking: Some(simulated()), ..Setup::default() }).await;
        let plan = injection(FailureMode::ReasoningActionMismatch, Side::Response);
        let got = call(&lab, "same", &plan, &asked(streamed)).await;
        texts.push(text_of(&if streamed { assembled(&got) } else { whole(&got) }));
    }
    assert_eq!(texts[0], texts[1]);
    assert!(texts[0].starts_with("12 * 8 = 96\n96 - 12 = 84\n") && !texts[0].ends_with(" 84"), "{}", texts[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_calls_and_structured_output_keep_their_shape() {
    let calls: &[(&str, &str)] = &[("add", "{\"a\": 12, \"b\": 30}"), ("say", "{\"text\":\"ü😀\"}")];
    let tools = json!([
        {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties":
            {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"], "additionalProperties": false}}},
        {"type": "function", "function": {"name": "say", "parameters": {"type": "object"}}}]);
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}, "answer": {"type": "string"}},
        "required": ["ok", "answer"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "verdict", "strict": true, "schema": schema}});
    // The mode itself leaves bare tool calls alone; who gives an instruction of their own knows what it is for.
    let plan =
        injection(FailureMode::IncorrectVerification, Side::Response).replace("\"mast\"", "\"Let a value be wrong.\"");
    for streamed in [false, true] {
        let pick = |(reply, stream): (Vec<Act>, Vec<Act>)| if streamed { stream } else { reply };
        let read = |got: &str| if streamed { assembled(got) } else { whole(got) };
        let upstream =
            Scripted::start(vec![pick(both(&[("", calls)])), pick(both(&[(r#"{"ok":true,"answer":"84"}"#, &[])]))])
                .await;
        let mut lab = Lab::before(upstream.address, Setup { asking: Some(simulated()), ..Setup::default() }).await;
        let mut body = asked(streamed);
        body["tools"] = tools.clone();
        let choice = read(&call(&lab, "tools", &plan, &body).await)["choices"]["0"].clone();
        let made = choice["message"]["tool_calls"].as_array().expect("calls").clone();
        assert_eq!((made.len(), &choice["finish_reason"]), (2, &json!("tool_calls")), "{choice}");
        assert_eq!((&made[0]["id"], &made[0]["function"]["name"]), (&json!("call_0_0"), &json!("add")));
        let arguments = |call: &Value| call["function"]["arguments"].as_str().expect("text").to_owned();
        let first: Value = serde_json::from_str(&arguments(&made[0])).expect("JSON");
        assert!(first["a"] == 12 && first["b"].as_i64().is_some_and(|b| b != 30), "{first}");
        let mut body = asked(streamed);
        body["response_format"] = format.clone();
        let object = read(&call(&lab, "shape", &plan, &body).await);
        let verdict: Value = serde_json::from_str(&text_of(&object)).expect("still JSON");
        assert_eq!(verdict, json!({"ok": false, "answer": "84"}));
        lab.sealed("tools").await;
        for run in ["tools", "shape"] {
            assert_eq!(lab.recorded(run).label.expect("a label").errors.len(), 1);
        }
    }
}

/// A replay asks nothing: what the model said stands in the recording, and makes the same edit again.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_answer_makes_the_same_edit_again() {
    let plan = injection(FailureMode::IncompleteVerification, Side::Response);
    let upstream = Scripted::always(both(&[(SOLUTION, &[])]).0).await;
    let settings = AskingSettings { model: "rewriter".to_owned(), ..AskingSettings::default() };
    let once = |asking: ManipulatorModel| Setup { asking: Some(Arc::new(asking)), ..Setup::default() };
    let mut first =
        Lab::before(upstream.address, once(ManipulatorModel::new(Arc::new(Simulator::new(7)), settings.clone()))).await;
    let got = call(&first, "same", &plan, &asked(false)).await;
    let recorded = Arc::new(RecordedAnswers::from_recording(&first.sealed("same").await));
    let mut second =
        Lab::before(upstream.address, once(ManipulatorModel::new(Arc::clone(&recorded) as _, settings.clone()))).await;
    assert_eq!(call(&second, "same", &plan, &asked(false)).await, got);
    let recording = second.sealed("same").await;
    assert_eq!(recording.manipulator_questions[0].upstream, "recording");
    assert!(recording.label.is_some());
    // Another run has another draw, so its question is another, and nobody is asked in its place.
    let mut other = Lab::before(upstream.address, once(ManipulatorModel::new(recorded, settings))).await;
    assert!(call(&other, "other", &plan, &asked(false)).await.contains("I checked it"));
    assert!(other.sealed("other").await.manipulator_failures[0].why.contains("holds no answer to this question"));
}

/// Each alternative of a reply is a question of its own.
#[tokio::test(flavor = "multi_thread")]
async fn every_choice_is_rewritten() {
    let (reply, _) = both(&[(SOLUTION, &[]), ("5 + 5 = 10\nANSWER: 10", &[])]);
    let upstream = Scripted::always(reply).await;
    let mut lab = Lab::before(upstream.address, Setup { asking: Some(simulated()), ..Setup::default() }).await;
    let plan = injection(FailureMode::ReasoningActionMismatch, Side::Response);
    let object = whole(&call(&lab, "two", &plan, &asked(false)).await);
    for (index, before) in [("0", "ANSWER: 84"), ("1", "ANSWER: 10")] {
        let text = object["choices"][index]["message"]["content"].as_str().expect("text").to_owned();
        assert!(text.contains("ANSWER: ") && !text.ends_with(before), "{text}");
    }
    assert_eq!(lab.sealed("two").await.manipulator_questions.len(), 2);
}

/// A user's own template takes the place of the shipped one, and the record says which was used.
#[tokio::test(flavor = "multi_thread")]
async fn a_template_of_ones_own_is_used_and_named() {
    let own = "[[template]]\nfailure_mode = \"FM-2.6\"\nname = \"reasoning-action mismatch\"\n\
        taxonomy = \"MAST-2503.13657v2\"\nside = \"response\"\nversion = 4\norder = \"Let the end contradict the way.\"\n\
        [template.kinds]\nmaths = \"m\"\ncode = \"c\"\nmultiple_choice = \"o\"\nscience = \"s\"\ngeneral = \"g\"\n";
    let settings = AskingSettings {
        model: "rewriter".to_owned(),
        templates: Some(Templates::parse(own).expect("templates")),
        ..AskingSettings::default()
    };
    let asking = Arc::new(ManipulatorModel::new(Arc::new(Simulator::new(7)), settings));
    let upstream = Scripted::always(both(&[(SOLUTION, &[])]).0).await;
    let mut lab = Lab::before(upstream.address, Setup { asking: Some(asking), ..Setup::default() }).await;
    call(&lab, "own", &injection(FailureMode::ReasoningActionMismatch, Side::Response), &asked(false)).await;
    let question = lab.sealed("own").await.manipulator_questions.remove(0);
    assert_eq!(question.template, "FM-2.6 response maths v4");
    assert!(String::from_utf8_lossy(&question.question).contains("Let the end contradict the way."));
}

/// While a stream is held, its client sees that it is alive, at once gets what comes, and the record has no comment.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_stream_is_kept_alive() {
    let usable = json!({"edited_text": SOLUTION.replace("ANSWER: 84", "ANSWER: 48"), "rationale": "r"}).to_string();
    let answer = crate::scripted::http("200 OK", "application/json", &crate::scripted::chat_reply(&usable));
    let model = Scripted::always(vec![Act::Gate, answer]).await;
    let settings = AskingSettings { keep_alive: Duration::from_millis(5), ..AskingSettings::default() };
    let origin = aegis::proxy::UpstreamOrigin::parse(&format!("http://{}", model.address), Some(("KEY", "k-model")))
        .expect("an origin");
    let behind =
        aegis::proxy::HttpUpstream::new(origin, Vec::new(), None, Duration::from_secs(10)).expect("an upstream");
    let asking = Arc::new(ManipulatorModel::new(behind.shared(), settings));
    let upstream = Scripted::always(both(&[(SOLUTION, &[])]).1).await;
    let plan = injection(FailureMode::ReasoningActionMismatch, Side::Response);
    let mut lab = Lab::before(upstream.address, Setup { asking: Some(asking), ..Setup::planned(&plan) }).await;
    let mut client = lab.client().await;
    let body = asked(true).to_string();
    let head = "Authorization: Bearer k-agent\r\nConnection: close\r\n";
    client.send(&crate::lab::request("POST", "/a/solver/v1/chat/completions", body.as_bytes(), head)).await;
    assert!(client.read_until(b": keep-alive\n\n").await);
    assert!(crate::lab::find(&client.seen, b"data:").is_none(), "nothing passes before the edit");
    model.open_gate();
    let reply = client.reply().await;
    assert!(reply.whole && text_of(&assembled(&reply.text())).ends_with("ANSWER: 48"), "{}", reply.text());
    // The agent's key is the agent's, the model's the model's.
    assert!(model.heads()[0].contains("Bearer k-model") && !model.heads()[0].contains("k-agent"));
    assert!(upstream.heads()[0].contains("Bearer k-agent"));
    let recording = lab.sealed("r0").await;
    let delivered = String::from_utf8(recording.trajectory.steps[0].attempts[0].delivered().to_vec()).expect("text");
    assert!(!delivered.contains("keep-alive") && reply.text().ends_with(&delivered), "{delivered}");
    assert_eq!(recording.label.expect("a label").errors.len(), 1);
}
