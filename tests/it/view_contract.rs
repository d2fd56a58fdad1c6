//! The page's server answers each path of its table, and as the `OpenAPI` document says.

use std::fs;

use serde_json::{Value, json};

use crate::{
    contract::check_answer,
    lab::{Client, request},
    score::{failure, write_lines},
    viewer::{View, recorded},
};

/// What stands in a path where the document has a name.
fn filled(template: &str) -> String {
    let names = [
        ("{query}", "%7B%22text%22:%22pencils%22%7D"),
        ("{words}", "pencils"),
        ("{campaign}", "campaign"),
        ("{dataset}", "own.jsonl"),
        ("{sample}", "0"),
        ("{step}", "1"),
        ("{run}", "second"),
        ("{a}/{b}", "first/second"),
        ("{body}/{attempt}", "reply/0"),
        ("{body}", "request"),
        ("{file}", "app.js"),
    ];
    names.iter().fold(template.to_owned(), |path, (name, filling)| path.replace(name, filling))
}

#[tokio::test]
async fn every_path_of_the_page_is_answered_as_documented() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    recorded(dir).await;
    fs::write(dir.join("logs/second/trace.json"), json!({"steps": []}).to_string()).expect("written");
    fs::create_dir(dir.join("campaign")).expect("made");
    fs::write(dir.join("campaign/report.json"), json!({"campaign": "c", "cells": []}).to_string()).expect("written");
    write_lines(&dir.join("own.jsonl"), &[failure("r1", "solver", 1, "FM-2.6")]);
    let row = |id: &str| json!({"id": id, "method": "rules", "predictions": [{"agent": "solver", "step": 1}]});
    write_lines(&dir.join("said.jsonl"), &[row("second"), row("r1")]);
    let what = ["logs", "campaign", "own.jsonl", "said.jsonl"];
    let (reading, annotating) = (View::of(dir, &what).await, View::of(dir, &["logs", "--annotate", "ada"]).await);
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/openapi.json")).expect("a file");
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let mut answered = 0;
    for (template, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            if operation["tags"] != json!(["view"]) {
                continue;
            }
            let (path, method) = (filled(template).replace("vendor/app.js", "vendor/preact.js"), method.to_uppercase());
            let is_annotation = template.starts_with("/api/annotation/");
            let view = if is_annotation { &annotating } else { &reading };
            let headers = format!("x-aegis-token: {}\r\ncontent-type: application/json\r\n", view.token);
            if template.starts_with("/api/live/") {
                // It goes on for as long as somebody listens.
                let mut events = Client::connect(view.address).await;
                events.send(&request("GET", &path, b"", &headers)).await;
                assert!(events.read_until(b"text/event-stream").await && events.read_until(b"data: {").await);
            } else {
                let said = json!({"step": 1, "why": "it is wrong"}).to_string();
                let body = if is_annotation { &said } else { &view.token };
                let reply = view.ask(&method, &path, body, &headers).await;
                let data = serde_json::from_slice(&reply.body).unwrap_or_default();
                let expected = if template == "/session" { 204 } else { 200 };
                assert_eq!(reply.status, expected, "{method} {path}: {}", reply.text());
                check_answer(&method, &path, reply.status, &data);
            }
            answered += 1;
        }
    }
    assert!(answered >= 24, "{answered}");
    // All that the page itself asks for is there.
    for file in aegis::viewer::page::MODULES.iter().chain(aegis::viewer::page::STYLES) {
        assert_eq!(reading.ask("GET", &format!("/page/{}", file.name), "", "").await.status, 200, "{}", file.name);
    }
    // What is refused is documented, too.
    let headers = format!("x-aegis-token: {}\r\n", reading.token);
    for (path, shown, status) in
        [("/api/run/none", &headers, 404), ("/api/runs/no", &headers, 400), ("/api/tree", &String::new(), 401)]
    {
        let reply = reading.ask("GET", path, "", shown).await;
        assert_eq!(reply.status, status, "{path}");
        check_answer("GET", path, reply.status, &reply.json());
    }
}
