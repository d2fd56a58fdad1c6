//! How calls end, over the wire: each surface × each way of failing inside a 200. None of them is an answer, so no label stands on
//! one, whether the failing call was edited or another.

use aegis::{
    ruling::{NoLabel, Ruling},
    trajectory::{CallEnding, RefusalKind},
};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Setup},
    scripted::{Act, Scripted, http},
};

/// An API: its name, its path, a request of it, an answer of it whole and in events.
struct Api {
    name: &'static str,
    path: &'static str,
    asked: fn(&str) -> Value,
    whole: fn() -> Value,
    events: fn() -> Vec<String>,
}

fn event(data: &Value) -> String {
    let kind = data.get("type").and_then(Value::as_str).map(|kind| format!("event: {kind}\n")).unwrap_or_default();
    format!("{kind}data: {data}\n\n")
}

const DONE: &str = "data: [DONE]\n\n";

const APIS: &[Api] = &[
    Api {
        name: "chat",
        path: "/v1/chat/completions",
        asked: |text| json!({"model": "m", "messages": [{"role": "user", "content": text}]}),
        whole: || json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "It is 12."}, "finish_reason": "stop"}]}),
        events: || {
            let chunk = |delta: Value, finish: Value| {
                event(
                    &json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
                )
            };
            vec![
                chunk(json!({"role": "assistant", "content": "It is 12."}), Value::Null),
                chunk(json!({}), json!("stop")),
                DONE.to_owned(),
            ]
        },
    },
    Api {
        name: "completions",
        path: "/v1/completions",
        asked: |text| json!({"model": "m", "prompt": text}),
        whole: || json!({"id": "c", "object": "text_completion", "model": "m", "choices": [{"index": 0, "text": "It is 12.", "finish_reason": "stop"}]}),
        events: || {
            let chunk = |text: &str, finish: Value| {
                event(
                    &json!({"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": text, "finish_reason": finish}]}),
                )
            };
            vec![chunk("It is 12.", Value::Null), chunk("", json!("stop")), DONE.to_owned()]
        },
    },
    Api {
        name: "responses",
        path: "/v1/responses",
        asked: |text| json!({"model": "m", "input": text}),
        whole: || response("completed", &Value::Null),
        events: || {
            let item = json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "It is 12.", "annotations": []}]});
            vec![
                event(
                    &json!({"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": [], "error": null}}),
                ),
                event(
                    &json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m", "role": "assistant", "content": []}}),
                ),
                event(
                    &json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": "It is 12."}),
                ),
                event(&json!({"type": "response.output_item.done", "output_index": 0, "item": item})),
                event(&json!({"type": "response.completed", "response": response("completed", &Value::Null)})),
            ]
        },
    },
    Api {
        name: "messages",
        path: "/v1/messages",
        asked: |text| json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}),
        whole: || json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "It is 12."}], "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 2}}),
        events: || {
            vec![
                event(
                    &json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
                ),
                event(
                    &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                ),
                event(
                    &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is 12."}}),
                ),
                event(&json!({"type": "content_block_stop", "index": 0})),
                event(
                    &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
                ),
                event(&json!({"type": "message_stop"})),
            ]
        },
    },
];

fn response(status: &str, error: &Value) -> Value {
    json!({"id": "r", "object": "response", "model": "m", "status": status, "error": error, "output": [{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "It is 12.", "annotations": []}]}]})
}

const TOO_LONG: CallEnding = CallEnding::Refused(RefusalKind::TooLong);
const RATE: CallEnding = CallEnding::Refused(RefusalKind::Rate);
const CONTENT: CallEnding = CallEnding::Refused(RefusalKind::Content);
const OTHER: CallEnding = CallEnding::Refused(RefusalKind::Other);

fn json(body: &Value) -> Act {
    http("200 OK", "application/json", &body.to_string())
}

fn stream(events: &[String]) -> Act {
    http("200 OK", "text/event-stream", &events.concat())
}

/// The first events of an API's stream, up to its first text.
fn begun(api: &Api) -> Vec<String> {
    (api.events)().into_iter().take(if api.name == "messages" || api.name == "responses" { 3 } else { 1 }).collect()
}

/// The ways in which a call of any API fails inside a 200: the reply, and how the call ends by it.
fn ways(api: &Api) -> Vec<(&'static str, Act, CallEnding)> {
    let long = json!({"error": {"message": "maximum context length exceeded", "code": "context_length_exceeded"}});
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let limited =
        json!({"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}});
    let said = begun(api);
    let after = |error: &Value| [&said[..], &[event(error)]].concat();
    vec![
        ("an error, whole", json(&long), TOO_LONG),
        ("a server's error, whole", json(&overloaded), CallEnding::Failed),
        ("a limit, whole", json(&limited), RATE),
        ("a detail, whole", json(&json!({"detail": "Method not supported"})), OTHER),
        (
            "an object of errors",
            json(&json!({"object": "error", "message": "no such field, bad request", "code": 400})),
            OTHER,
        ),
        ("a text as the error", json(&json!({"error": "the model runner stopped"})), CallEnding::Failed),
        (
            "a list of one error",
            json(&json!([{"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}}])),
            CallEnding::Failed,
        ),
        ("a page", http("200 OK", "text/html", "<html><body>Bad gateway</body></html>"), CallEnding::Failed),
        ("a line", http("200 OK", "text/plain", "upstream connect error"), CallEnding::Failed),
        ("nothing", http("200 OK", "application/json", ""), CallEnding::Failed),
        ("an error that is typed as a stream", http("200 OK", "text/event-stream", &long.to_string()), TOO_LONG),
        ("an error frame", stream(&[event(&long)]), TOO_LONG),
        ("an error frame, then the end marker", stream(&[event(&long), DONE.to_owned()]), TOO_LONG),
        ("an error frame after a part", stream(&after(&overloaded)), CallEnding::Failed),
        ("a limit after a part, then the end marker", stream(&[after(&limited), vec![DONE.to_owned()]].concat()), RATE),
        ("a stream of nothing", stream(&[": ping\n\n".to_owned(), DONE.to_owned()]), CallEnding::Failed),
    ]
}

/// The ways that only this API has.
fn own_ways(api: &Api) -> Vec<(&'static str, Act, CallEnding)> {
    let said = begun(api);
    let mut ways = Vec::new();
    let spoilt = |from: &str, to: &str| {
        let whole = (api.whole)().to_string().replace(from, to);
        let events: Vec<String> = (api.events)().iter().map(|event| event.replace(from, to)).collect();
        (http("200 OK", "application/json", &whole), stream(&events))
    };
    match api.name {
        "chat" | "completions" => {
            for (word, ending) in [
                ("error", CallEnding::Failed),
                ("content_filter", CONTENT),
                ("insufficient_system_resource", CallEnding::Failed),
            ] {
                let (whole, events) = spoilt("\"finish_reason\":\"stop\"", &format!("\"finish_reason\":\"{word}\""));
                ways.extend([("a finish reason, whole", whole, ending), ("a finish reason, streamed", events, ending)]);
            }
        }
        "messages" => {
            let (whole, events) = spoilt("\"stop_reason\":\"end_turn\"", "\"stop_reason\":\"refusal\"");
            ways.extend([("a refusal, whole", whole, CONTENT), ("a refusal, streamed", events, CONTENT)]);
        }
        _ => {
            let long = json!({"code": "context_length_exceeded", "message": "too long"});
            ways.push(("a failed response, whole", json(&response("failed", &long)), TOO_LONG));
            let failed = event(&json!({"type": "response.failed", "response": response("failed", &long)}));
            ways.push(("a failed response", stream(&[&said[..], &[failed]].concat()), TOO_LONG));
            let error =
                event(&json!({"type": "error", "code": "server_error", "message": "An error occurred", "param": null}));
            ways.push(("an error event", stream(&[&said[..], &[error]].concat()), CallEnding::Failed));
            let mut filtered = response("incomplete", &Value::Null);
            filtered["incomplete_details"] = json!({"reason": "content_filter"});
            ways.push(("a filtered response, whole", json(&filtered), CONTENT));
            let filtered = event(&json!({"type": "response.incomplete", "response": filtered}));
            ways.push(("a filtered response", stream(&[&said[..], &[filtered]].concat()), CONTENT));
        }
    }
    ways
}

/// Edits of what the solver is asked, and of what it answers.
const ASKED: &str = "append_instruction = { text = \"Add one to each number.\" }";
const ANSWERED: &str = "corrupt_number = { which = \"last\", by = 10 }";

/// What is ruled of a run in which the planner's call gets the first reply and the solver's, which is edited, the second;
/// and how each of the two ended. A label may name what was answered, and nothing else.
async fn ruled(api: &Api, edit: &str, replies: [Act; 2]) -> (Result<(), NoLabel>, Vec<Option<CallEnding>>) {
    let plan = format!(
        "format = 1
seed = 7
[[injection]]
agent = \"solver\"
failure_mode = \"FM-1.1\"
when.call = 0
manipulator.{edit}
"
    );
    let upstream = Scripted::start(replies.map(|act| vec![act]).to_vec()).await;
    let mut lab = Lab::before(upstream.address, Setup::planned(&plan)).await;
    for agent in ["planner", "solver"] {
        let path = format!("/a/{agent}{}", api.path);
        lab.post(&path, (api.asked)(&format!("{agent} asks")).to_string().as_bytes()).await;
    }
    let recording = lab.sealed("r0").await;
    let endings: Vec<_> =
        recording.trajectory.steps.iter().map(|step| step.last_attempt().and_then(|last| last.ending)).collect();
    let ruling = Ruling::new(&recording);
    for (step, ending) in (0..).zip(&endings) {
        let expected = if *ending == Some(CallEnding::Answered) { Ok(()) } else { Err(NoLabel::Unanswered) };
        assert_eq!(ruling.may_name(step), expected, "{} {ending:?}: whether a label may name it", api.name);
    }
    let ruled = ruling.label().map(|_| ());
    assert_eq!(recording.label.is_some(), ruled.is_ok(), "{} {ruled:?}", api.name);
    (ruled, endings)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_label_stands_on_a_call_that_failed_inside_a_200() {
    for api in APIS {
        let answer = || http("200 OK", "application/json", &(api.whole)().to_string());
        let streamed = http("200 OK", "text/event-stream", &(api.events)().concat());
        for fine in [answer(), streamed] {
            let (ruled, endings) = ruled(api, ASKED, [answer(), fine]).await;
            assert_eq!((ruled, endings), (Ok(()), vec![Some(CallEnding::Answered); 2]), "{}: answered", api.name);
        }
        for (way, reply, expected) in ways(api).into_iter().chain(own_ways(api)) {
            let what = format!("{}: {way}", api.name);
            let (edited, endings) = ruled(api, ASKED, [answer(), reply.clone()]).await;
            let infrastructure = matches!(expected, CallEnding::Failed | RATE);
            let why = if infrastructure { NoLabel::InfraError } else { NoLabel::EditRefused };
            assert_eq!(
                (edited, endings),
                (Err(why), vec![Some(CallEnding::Answered), Some(expected)]),
                "{what}, as edited"
            );
            let (edited, endings) = ruled(api, ANSWERED, [answer(), reply.clone()]).await;
            assert!(edited.is_err(), "{what}, its answer edited");
            assert_eq!(endings, vec![Some(CallEnding::Answered), Some(expected)], "{what}, its answer edited");
            let (beside, endings) = ruled(api, ASKED, [reply, answer()]).await;
            assert_eq!(beside, Err(NoLabel::InfraError), "{what}, at another agent");
            assert_eq!(endings, vec![Some(expected), Some(CallEnding::Answered)], "{what}, at another agent");
        }
    }
}
