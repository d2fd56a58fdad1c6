//! What is told of a server's calls: counts for Prometheus, spans for a collector of OpenTelemetry.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value as Any,
    trace::v1::{Span, status::StatusCode},
};
use prost::Message;
use tokio::net::TcpListener;

use crate::{
    lab::{Client, request},
    program::{AEGIS, Served, aegis},
    scripted::{Scripted, http},
};

const KEY: &str = "sk-proj-abcdefghijklmnopqrstuvwx0123456789";

/// A configuration that names a collector.
fn configured(dir: &std::path::Path, endpoint: &str, more: &str) {
    let text = format!("[otlp]\nendpoint = \"{endpoint}\"\n{more}");
    std::fs::write(dir.join("told.toml"), text).expect("written");
}

/// A collector, and the spans that it got.
async fn collector() -> Scripted {
    Scripted::always(vec![http("200 OK", "application/x-protobuf", "")]).await
}

fn spans(collector: &Scripted) -> Vec<Span> {
    let read = |body: Vec<u8>| ExportTraceServiceRequest::decode(body.as_slice()).expect("OTLP");
    let requests = collector.bodies().into_iter().map(read);
    requests.flat_map(|r| r.resource_spans).flat_map(|r| r.scope_spans).flat_map(|s| s.spans).collect()
}

fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let text = |value: &Any| match value {
        Any::StringValue(text) => text.clone(),
        Any::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let value = |kv: &opentelemetry_proto::tonic::common::v1::KeyValue| kv.value.clone()?.value.map(|v| text(&v));
    span.attributes.iter().filter_map(|kv| Some((kv.key.as_str(), value(kv)?))).collect()
}

/// A run of the example behind `aegis run` with such a configuration.
async fn run(dir: &std::path::Path, task: &str) {
    let line = ["run", "--config", "told.toml", "--upstream", "simulator", "--run", "told", "--"];
    let program = [AEGIS, "example", "pipeline", "--task", task];
    let output = aegis(dir).args(line).args(program).output().await.expect("ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_collector_gets_a_span_of_each_call_below_one_of_the_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let collector = collector().await;
    configured(dir.path(), &format!("http://{}", collector.address), "content = true\n");
    run(dir.path(), &format!("Ann has 40 pencils and gives away 12. How many are left? My key is {KEY}.")).await;
    assert!(collector.heads().iter().all(|head| head.starts_with("POST /v1/traces ")), "{:?}", collector.heads());
    let spans = spans(&collector);
    let (runs, calls): (Vec<_>, Vec<_>) = spans.iter().partition(|span| span.parent_span_id.is_empty());
    assert_eq!((runs.len(), calls.len()), (1, 3));
    let agents: Vec<String> = calls.iter().map(|span| attributes(span)["gen_ai.agent.name"].clone()).collect();
    assert_eq!(agents.len(), 3, "{agents:?}");
    for (step, span) in calls.iter().enumerate() {
        assert_eq!(span.parent_span_id, runs[0].span_id);
        assert_eq!(span.trace_id, runs[0].trace_id);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        let told = attributes(span);
        assert_eq!(told["gen_ai.operation.name"], "chat");
        assert_eq!(told["gen_ai.conversation.id"], "told");
        assert_eq!(told["aegis.step"], step.to_string());
        assert!(told["gen_ai.usage.output_tokens"].parse::<u64>().expect("a number") > 0);
        let asked: serde_json::Value = serde_json::from_str(&told["gen_ai.input.messages"]).expect("messages");
        assert_eq!(asked[0]["parts"][0]["type"], "text");
        assert!(told["gen_ai.output.messages"].contains("finish_reason"));
    }
    // What recordings mask no collector is told.
    let whole: String = calls.iter().flat_map(|span| attributes(span).into_values()).collect();
    assert!(whole.contains("pencils") && !whole.contains(KEY));
}

#[tokio::test]
async fn without_the_users_word_no_words_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let collector = collector().await;
    configured(dir.path(), &format!("http://{}/v1/traces", collector.address), "");
    run(dir.path(), "Ann has 40 pencils and gives away 12. How many are left?").await;
    let spans = spans(&collector);
    assert_eq!(spans.len(), 4);
    for span in &spans {
        let told = attributes(span);
        assert!(!told.values().any(|value| value.contains("pencils")), "{told:?}");
        assert!(!told.contains_key("gen_ai.input.messages"));
    }
}

#[tokio::test]
async fn a_collector_that_is_away_keeps_nobody_from_anything() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("its address").port();
    configured(dir.path(), &format!("http://127.0.0.1:{port}"), "");
    run(dir.path(), "Ann has 40 pencils and gives away 12. How many are left?").await;
    assert_eq!(aegis::recording::read(&dir.path().join("logs/told")).expect("read").trajectory.steps.len(), 3);
}

#[tokio::test]
async fn a_configuration_that_was_only_found_names_no_collector() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("aegis.toml"), "[otlp]\nendpoint = \"http://127.0.0.1:4318\"\n").expect("written");
    let output = aegis(dir.path()).args(["run", "--upstream", "simulator", "--", "true"]).output().await.expect("ran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("[otlp]"), "{said}");
}

#[tokio::test]
async fn an_error_of_the_upstream_is_one_of_the_span() {
    let dir = tempfile::tempdir().expect("a directory");
    let (collector, upstream) =
        (collector().await, Scripted::always(vec![http("500 Oh", "application/json", "{}")]).await);
    configured(dir.path(), &format!("http://{}", collector.address), "");
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--config", "told.toml", "--control", "127.0.0.1:0"];
    let served = Served::start(dir.path(), &arguments).await;
    let mut client = Client::connect(served.address).await;
    client
        .send(&request("POST", "/r/one/v1/chat/completions", &crate::lab::chat("hello"), "Connection: close\r\n"))
        .await;
    assert_eq!(client.reply().await.status, 500);
    assert_eq!(served.stop().await, Some(0));
    let spans = spans(&collector);
    let call = spans.iter().find(|span| !span.parent_span_id.is_empty()).expect("the call's");
    assert_eq!(call.status.as_ref().expect("a status").code, i32::from(StatusCode::Error));
    assert_eq!(attributes(call)["error.type"], "500");
}

#[tokio::test]
async fn prometheus_is_told_the_counts_by_who_knows_the_token() {
    let dir = tempfile::tempdir().expect("a directory");
    let environment = [("AEGIS_CONTROL_TOKEN", "open-sesame".to_owned())];
    let arguments = ["--upstream", "simulator", "--control", "127.0.0.1:0"];
    let served = Served::start_with(dir.path(), &arguments, &environment).await;
    let mut client = Client::connect(served.address).await;
    client
        .send(&request("POST", "/r/one/v1/chat/completions", &crate::lab::chat("hello"), "Connection: close\r\n"))
        .await;
    assert_eq!(client.reply().await.status, 200);
    let asked = |header: &str| request("GET", "/metrics", b"", &format!("Connection: close\r\n{header}"));
    let mut other = Client::connect(served.control.expect("a control listener")).await;
    other.send(&asked("")).await;
    assert_eq!(other.reply().await.status, 401);
    let mut scraper = Client::connect(served.control.expect("a control listener")).await;
    scraper.send(&asked("Authorization: Bearer open-sesame\r\n")).await;
    let reply = scraper.reply().await;
    assert!(reply.header("content-type").expect("a type").starts_with("application/openmetrics-text"));
    for line in [
        r#"aegis_calls_total{surface="openai_chat",cause="complete",ending="answered",status="2xx"} 1"#,
        "aegis_calls_under_way 0",
        "aegis_runs_open 1",
        "aegis_call_duration_seconds_count 1",
    ] {
        assert!(reply.text().contains(line), "{line}\n{}", reply.text());
    }
}
