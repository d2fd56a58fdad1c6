//! Golden transcripts: what a client's socket sees of each fault, on every surface, whole and streamed.
//!
//! A transcript says status, telling headers, how the connection ended, and where the body leaves that of an
//! undisturbed reply. `INSTA_UPDATE=always cargo test --test it transcripts` writes them anew.

use std::{fmt::Write as _, io::ErrorKind, sync::Arc};

use aegis::{
    plan::{Operation, catalogue},
    simulator::Simulator,
    surface::{self, Conversation, Message, Role, Surface, Tool},
};

use crate::lab::{Lab, Reply, Setup, request};

/// Each fault of the catalogue, so that it is over in no time.
const FAULTS: &[(&str, &str)] = &[
    ("latency", "{ ms = 1 }"),
    ("latency", "{ uniform = { min_ms = 0, max_ms = 2 } }"),
    ("latency", "{ normal = { mean_ms = 1, sd_ms = 1 } }"),
    ("latency", "{ lognormal = { median_ms = 1, sigma = 0.2 } }"),
    ("slow_stream", "{ frame_ms = 1 }"),
    ("hang", "{ at = \"before_request\", at_most_s = 0.01 }"),
    ("hang", "{ at = \"before_body\", at_most_s = 0.01 }"),
    ("hang", "{ at = { after_bytes = 40 }, at_most_s = 0.01 }"),
    ("refuse_connection", "{}"),
    ("reset", "{ at = \"before_request\" }"),
    ("reset", "{ at = \"before_body\" }"),
    ("reset", "{ at = { after_bytes = 40 } }"),
    ("cut", "{ at = { after_bytes = 40 } }"),
    ("cut", "{ at = \"before_end\", clean = true }"),
    ("cut", "{ at = { after_frames = 5 }, clean = true, done = true }"),
    ("status", "{ code = 429, retry_after_s = 1, sdk_retry = \"suppress\" }"),
    ("status", "{ code = 529 }"),
    ("status", "{ code = 400, code_name = \"context_length_exceeded\" }"),
    ("rate_limit", "{ requests = 0, per_s = 60 }"),
    ("rpc_error", "{}"),
    ("html_page", "{ status = 502 }"),
    ("empty_body", "{}"),
    ("wrong_content_type", "{ content_type = \"text/plain\" }"),
    ("malformed_chunk", "{ frame = 4 }"),
    ("bad_utf8", "{ frame = 4 }"),
    ("repeat_frames", "{ frame = 4 }"),
    ("reorder_frames", "{ frame = 4 }"),
    ("drop_frames", "{ frame = 4 }"),
    ("error_event", "{ after_frames = 5 }"),
    ("wrong_model", "{ model = \"other\" }"),
    ("wrong_finish", "{ reason = \"length\" }"),
    ("wrong_field", "{ pointer = \"/choices\", drop = true }"),
    ("wrong_field", "{ pointer = \"/id\", null = true }"),
    ("wrong_field", "{ pointer = \"/object\", rename = \"kind\" }"),
    ("stale_answer", "{}"),
    ("spoil_answer", "{ how = \"error_text\" }"),
    ("spoil_answer", "{ how = \"timeout_text\" }"),
    ("spoil_answer", "{ how = \"html_page\" }"),
    ("spoil_answer", "{ how = \"policy\" }"),
    ("spoil_answer", "{ how = \"filtered\" }"),
    ("spoil_answer", "{ how = \"empty\" }"),
    ("spoil_answer", "{ how = \"truncated\" }"),
    ("spoil_answer", "{ how = \"mojibake\" }"),
    ("spoil_tool_call", "{ how = \"no_arguments\" }"),
    ("spoil_tool_call", "{ how = \"lost\" }"),
    ("spoil_tool_call", "{ how = \"dropped\" }"),
    ("spoil_tool_call", "{ how = \"truncated\" }"),
    ("spoil_tool_call", "{ how = \"symbols\" }"),
    ("spoil_tool_call", "{ how = \"unknown_keys\" }"),
    ("spoil_tool_call", "{ how = \"stale\" }"),
    ("spoil_tool_call", "{ how = \"other_entity\" }"),
];

const HEADERS: &[&str] = &[
    "content-type",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-ratelimit-reset-requests",
    "anthropic-ratelimit-requests-reset",
];

/// A request of one question; with a tool where the fault needs a call of it.
fn asked(surface: &dyn Surface, streamed: bool, tool: bool) -> Option<Vec<u8>> {
    let blank = surface.read_request(surface.blank_request()).expect("a request");
    let mut asked: Conversation = blank.clone();
    asked.messages = vec![Message::text_of(Role::User, "What is 12 + 30?")];
    if tool {
        let parameters = serde_json::json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
        let (name, description) = ("calculator".to_owned(), "Computes an expression.".to_owned());
        asked.tools = vec![Tool { name, description, parameters, origin: None }];
    }
    let body = surface.write_request(surface.blank_request(), &blank, &asked).ok()?;
    let body = String::from_utf8(body.to_vec()).expect("utf-8");
    Some(if streamed { body.replacen('{', "{\"stream\":true,", 1) } else { body }.into_bytes())
}

async fn seen(lab: &Lab, agent: &str, path: &str, body: &[u8]) -> (Reply, Option<ErrorKind>) {
    let mut client = lab.client().await;
    client.send(&request("POST", &format!("/a/{agent}{path}"), body, "Connection: close\r\n")).await;
    let end = client.rest().await;
    (Reply::parse(&client.seen), end)
}

/// Where a body leaves another, and what it says from there.
fn difference(clean: &[u8], body: &[u8]) -> String {
    if clean == body {
        return "as undisturbed".to_owned();
    }
    let front = clean.iter().zip(body).take_while(|(a, b)| a == b).count();
    let back = clean[front..].iter().rev().zip(body[front..].iter().rev()).take_while(|(a, b)| a == b).count();
    let part = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(&bytes[front..bytes.len() - back]).into_owned();
        let short: String = text.chars().take(150).collect();
        if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
    };
    format!("after {front} of {} bytes {} became {}", clean.len(), part(clean), part(body))
}

async fn transcript(fault: &'static str, parameters: &'static str) -> String {
    let mut out = format!("fault.{fault} = {parameters}\n");
    let plan = format!(
        "format = 1\nseed = 7\n[[injection]]\nagent = \"solver-*\"\nwhen.call = 1\nfault.{fault} = {parameters}\n"
    );
    let lab = Lab::over(Arc::new(Simulator::new(0)), Setup::planned(&plan)).await;
    let mut noted = 0;
    for surface in surface::ALL.iter().copied().filter(|surface| surface.name() != "openai_embeddings") {
        for streamed in [false, true] {
            let mode = if streamed { "streamed" } else { "whole" };
            let _ = write!(out, "\n{} {mode}: ", surface.name());
            let Some(body) = asked(surface, streamed, fault == "spoil_tool_call") else {
                out.push_str("has no tools\n");
                continue;
            };
            let agent = format!("solver-{}-{mode}", surface.name());
            let path = if streamed { surface.path_for_stream() } else { surface.path() };
            let (_, _) = seen(&lab, &agent, surface.path(), &asked(surface, false, false).expect("a request")).await;
            let (reply, end) = seen(&lab, &agent, path, &body).await;
            let (clean, _) = seen(&lab, "critic", path, &body).await;
            let how = match (end, reply.whole && reply.status != 0) {
                (Some(ErrorKind::ConnectionReset), _) => "reset",
                (None, true) => "whole",
                (None, false) => "broken off",
                other => panic!("{other:?}"),
            };
            let headers = HEADERS.iter().filter_map(|name| Some(format!(", {name}: {}", reply.header(name)?)));
            let _ = writeln!(out, "{} {how}{}", reply.status, headers.collect::<String>());
            let _ = writeln!(out, "  {}", difference(&clean.body, &reply.body));
            assert!(!reply.head.to_lowercase().contains("aegis") && !reply.text().contains("inject"), "{}", reply.head);
            let notes = lab.recorded("r0").notes;
            out.extend(notes.iter().skip(noted).map(|note| format!("  note: {note}\n")));
            noted = notes.len();
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_has_its_transcript() {
    let mut known = FAULTS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    known.dedup();
    for entry in catalogue().into_iter().filter(|entry| entry.operation == Operation::Fault) {
        assert!(known.contains(&entry.name), "{} has a transcript", entry.name);
    }
    let mut all = String::new();
    let tasks: Vec<_> = FAULTS.iter().map(|(fault, parameters)| tokio::spawn(transcript(fault, parameters))).collect();
    for task in tasks {
        all += &task.await.expect("a transcript");
        all.push('\n');
    }
    insta::assert_snapshot!(all);
}
