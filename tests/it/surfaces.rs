//! Every surface of the list at the wire, before the simulator: recorded, attributed, edited alike whole and streamed.

use std::sync::Arc;

use aegis::{
    simulator::Simulator,
    surface::{self, Message, OpenaiResponses, Role, Surface},
    trajectory::{CloseCause, LabelStatus},
};

use crate::lab::{Lab, Reply, Setup};

/// A request that asks a system and a user text.
fn asked(surface: &dyn Surface, streamed: bool) -> Vec<u8> {
    let blank = surface.read_request(surface.blank_request()).expect("a request");
    let mut asked = blank.clone();
    asked.messages =
        vec![Message::text_of(Role::System, "You solve."), Message::text_of(Role::User, "What is 12 + 30?")];
    let body = surface.write_request(surface.blank_request(), &blank, &asked).expect("a place");
    if !streamed {
        return body.to_vec();
    }
    let body = String::from_utf8(body.to_vec()).expect("utf-8");
    body.replacen('{', "{\"stream\": true, ", 1).into_bytes()
}

/// Surfaces that say words.
fn wordy() -> impl Iterator<Item = &'static dyn Surface> {
    surface::ALL.iter().copied().filter(|surface| surface.name() != "openai_embeddings")
}

fn text(surface: &dyn Surface, streamed: bool, reply: &Reply) -> String {
    let read = if streamed { surface.read_stream(&reply.body) } else { surface.read_reply(&reply.body) };
    read.unwrap_or_else(|error| panic!("{error}: {}", reply.text())).answers[0].message.text()
}

const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_edits_every_surface_whole_and_streamed() {
    for surface in wordy() {
        let mut said = Vec::new();
        for streamed in [false, true] {
            let mut lab = Lab::over(Arc::new(Simulator::new(0)), Setup::planned(PLAN)).await;
            let body = asked(surface, streamed);
            let mut replies = Vec::new();
            for agent in ["solver", "critic"] {
                let path = if streamed { surface.path_for_stream() } else { surface.path() };
                let reply = lab.post(&format!("/r/run/a/{agent}{path}"), &body).await;
                assert!(reply.status == 200 && reply.whole, "{surface:?}: {} {}", reply.status, reply.text());
                replies.push(reply);
            }
            let recording = lab.sealed("run").await;
            assert_eq!(recording.manipulator_failures, [], "{surface:?} {streamed}");
            let steps = &recording.trajectory.steps;
            for (step, reply) in steps.iter().zip(&replies) {
                let attempt = &step.attempts[0];
                assert_eq!((step.surface.as_str(), attempt.streamed), (surface.name(), streamed));
                assert_eq!(attempt.cause, Some(CloseCause::Complete), "{surface:?} {streamed}");
                assert_eq!(attempt.delivered(), &reply.body[..], "{surface:?} {streamed}");
                let counted = attempt.usage.is_some_and(|usage| usage.input > 0 && usage.output > 0);
                let silent = streamed && matches!(surface.name(), "openai_chat" | "openai_completions");
                assert!(counted || silent, "{surface:?} {streamed}: {:?}", attempt.usage);
            }
            let (edited, plain) = (text(surface, streamed, &replies[0]), text(surface, streamed, &replies[1]));
            assert!(plain.contains("42") && edited.contains("52"), "{surface:?} {streamed}: {edited}");
            assert_eq!(steps[1].attempts[0].reply_delivered, None, "nobody wanted it edited");
            let label = recording.label.as_ref().expect("a label");
            assert_eq!((label.status, label.errors.len()), (LabelStatus::Delivered, 1), "{surface:?}");
            said.push((edited, plain));
        }
        assert_eq!(said[0], said[1], "{surface:?}: whole and streamed say the same");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn embeddings_pass_and_are_recorded() {
    let mut lab = Lab::over(Arc::new(Simulator::new(0)), Setup::planned(PLAN)).await;
    for (format, is_text) in [("float", false), ("base64", true)] {
        let body = format!(r#"{{"model":"m","input":["a b","c"],"encoding_format":"{format}","dimensions":8}}"#);
        let reply = lab.post("/a/critic/v1/embeddings", body.as_bytes()).await;
        let data = reply.json()["data"].clone();
        assert_eq!((reply.status, data.as_array().map(Vec::len)), (200, Some(2)), "{}", reply.text());
        assert_eq!(data[0]["embedding"].is_string(), is_text, "{data}");
    }
    let recording = lab.sealed("r0").await;
    let steps = &recording.trajectory.steps;
    assert!(steps.iter().all(|step| step.surface == "openai_embeddings" && step.attempts[0].usage.is_some()));
}

/// What the upstream keeps is what the model said: a call that goes on from an edited reply says so in the record.
#[tokio::test(flavor = "multi_thread")]
async fn state_divergence_is_labelled() {
    let mut lab = Lab::over(Arc::new(Simulator::new(0)), Setup::planned(PLAN)).await;
    let ask =
        async |body: serde_json::Value| lab.post("/a/solver/v1/responses", body.to_string().as_bytes()).await.json();
    let first = ask(serde_json::json!({"input": "What is 12 + 30?"})).await;
    assert!(first.to_string().contains("52"), "{first}");
    let second = ask(serde_json::json!({"input": "What is 1 + 1?", "previous_response_id": first["id"]})).await;
    assert_eq!(second["status"], "completed");
    ask(serde_json::json!({"input": "What is 1 + 1?", "previous_response_id": second["id"]})).await;
    let notes = lab.sealed("r0").await.notes;
    assert_eq!(notes.iter().filter(|note| note.contains("keeps unedited")).count(), 2, "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("step 1 goes on from `resp_")), "{notes:?}");
}

/// With `retell`, a call that goes on from an edited reply says what its agent was told, whoever makes it, once.
#[tokio::test(flavor = "multi_thread")]
async fn stored_state_is_told_again() {
    let plan = PLAN.replace("when.call = 0", "when.call = 0\nretell = true");
    for streamed in [false, true] {
        let mut lab = Lab::over(Arc::new(Simulator::new(0)), Setup::planned(&plan)).await;
        let ask = async |agent: &str, mut body: serde_json::Value| {
            body["stream"] = streamed.into();
            let reply = lab.post(&format!("/a/{agent}/v1/responses"), body.to_string().as_bytes()).await;
            let read = if streamed {
                OpenaiResponses.read_stream(&reply.body)
            } else {
                OpenaiResponses.read_reply(&reply.body)
            };
            read.unwrap_or_else(|error| panic!("{error}: {}", reply.text()))
        };
        let first = ask("solver", serde_json::json!({"input": "What is 12 + 30?", "instructions": "You solve."})).await;
        assert!(first.answers[0].message.text().contains("52"), "{first:?}");
        let second = serde_json::json!({"input": "Is it right?", "previous_response_id": first.id, "temperature": 0});
        let second = ask("critic", second).await;
        ask("critic", serde_json::json!({"input": "Sure?", "previous_response_id": second.id})).await;
        let recording = lab.sealed("r0").await;
        let steps = &recording.trajectory.steps;
        let sent = steps[1].request_sent.as_ref().expect("the request was mended");
        let sent = String::from_utf8(sent.to_vec()).expect("utf-8");
        let read = OpenaiResponses.read_request(sent.as_bytes()).expect("a request");
        let said: Vec<String> = read.messages.iter().map(Message::text).collect();
        assert_eq!((read.continues, said.len()), (None, 3), "{sent}");
        assert_eq!((said[0].as_str(), said[2].as_str()), ("What is 12 + 30?", "Is it right?"));
        assert_eq!(said[1], first.answers[0].message.text(), "what the program was told");
        assert_eq!(steps[2].request_sent, None, "from there on both know the same");
        assert!(
            recording.notes.iter().any(|note| note.starts_with("step 1 tells the upstream")),
            "{:?}",
            recording.notes
        );
        assert!(!recording.notes.iter().any(|note| note.contains("keeps unedited")), "{:?}", recording.notes);
        let label = recording.label.expect("a label");
        assert_eq!(label.errors.iter().map(|entry| entry.error.step).collect::<Vec<_>>(), [0], "mending is no error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_errors_have_the_shape_of_the_api() {
    let lab = Lab::over(Arc::new(Simulator::new(0)), Setup::planned(PLAN)).await;
    for (path, own) in [("/v1/messages", true), ("/v1/responses", false), ("/v1/chat/completions", false)] {
        let reply = lab.post(&format!("/a/solver{path}"), b"{").await;
        let body = reply.json();
        assert_eq!((reply.status, body["type"] == "error"), (400, own), "{path}: {body}");
        assert!(body["error"]["message"].is_string() && reply.header("x-aegis-error").is_some(), "{path}: {body}");
    }
}
