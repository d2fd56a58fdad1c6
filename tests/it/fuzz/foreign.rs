//! Traces of others: whatever a file holds, what is imported is a recording that is read back whole.

use std::fs;

use aegis::{
    foreign::{self, ForeignError, ForeignOptions},
    recording,
};
use serde_json::json;

/// Words of spans.
pub const SPANS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "null",
    "\"resourceSpans\"",
    "\"scopeSpans\"",
    "\"spans\"",
    "\"traceId\"",
    "\"spanId\"",
    "\"parentSpanId\"",
    "\"startTimeUnixNano\":\"9223372036854775807\"",
    "\"endTimeUnixNano\":\"1\"",
    "\"attributes\"",
    "{\"key\":\"gen_ai.operation.name\",\"value\":{\"stringValue\":\"chat\"}}",
    "\"arrayValue\"",
    "\"kvlistValue\"",
    "\"intValue\"",
    "\"llm.input_messages.4294967295.message.role\"",
    "\"status\":{\"code\":2}",
];

/// Documents of a format that make sense.
pub fn examples(format: usize) -> Vec<Vec<u8>> {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let span = |id: &str, parent: &str, attributes: serde_json::Value| {
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": id, "parentSpanId": parent,
            "name": "chat m", "startTimeUnixNano": "5", "endTimeUnixNano": "9", "attributes": attributes,
            "events": [{"name": "gen_ai.evaluation.result", "attributes": []}], "status": {"code": 2}}]}]}]})
        .to_string()
    };
    let said = r#"[{"role":"user","parts":[{"type":"text","content":"x"},{"type":"tool_call_response","id":"c"}]}]"#;
    let called = r#"[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{}}]}]"#;
    let chat = json!([
        attribute("gen_ai.operation.name", "chat"),
        attribute("gen_ai.input.messages", said),
        attribute("gen_ai.output.messages", called),
        attribute("gen_ai.agent.name", "a")
    ]);
    let llm = json!([
        attribute("openinference.span.kind", "LLM"),
        attribute("llm.input_messages.0.message.role", "user"),
        attribute("llm.input_messages.0.message.content", "x"),
        attribute("llm.output_messages.0.message.tool_calls.0.tool_call.function.name", "f")
    ]);
    let agent = json!([attribute("openinference.span.kind", "AGENT")]);
    let spans = [
        span("a", "", chat.clone()),
        format!("{}\n{}\n", span("a", "b", llm), span("b", "", agent)),
        format!("{}\n{}", span("a", "b", chat.clone()), span("b", "a", chat)),
        "{\"resourceLogs\":[]}".to_owned(),
    ];
    let inspect = [
        r#"{"eval":{"model":"p/m"},"samples":[{"id":1,"scores":{"s":{"value":"C"}},"events_data":{"messages":[{"role":"user","content":"attachment://h"}]},"attachments":{"h":"x"},"events":[{"event":"span_begin","id":"s","parent_id":"s","type":"agent","name":"a"},{"event":"model","span_id":"s","timestamp":"2026-01-01T00:00:00Z","input_refs":[[0,1]],"output":{"choices":[{"message":{"role":"assistant","content":"y"},"stop_reason":"stop"}],"usage":{"input_tokens":1}}}]}]}"#,
        r#"{"eval":{},"samples":[{"id":"a b","epoch":2,"input":"x","messages":[{"role":"user","content":"x"},{"role":"assistant","source":"generate","content":[{"type":"text","text":"y"}],"metadata":{"agent":"a"}}]}]}"#,
        r#"{"eval":{},"samples":[]}"#,
        "PK",
    ];
    let atif = [
        r#"{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":"a"},"steps":[{"source":"user","message":"x"},{"source":"agent","message":"y","tool_calls":[{"tool_call_id":"c","function_name":"f","arguments":{}}],"observation":{"results":[{"source_call_id":"c","content":"z","subagent_trajectory_ref":[{"trajectory_id":"t"}]}]}}],"subagent_trajectories":[{"trajectory_id":"t","steps":[{"source":"agent","message":"w"}]}]}"#,
        r#"{"schema_version":"ATIF-v1.2","steps":[{"source":"agent","message":[],"timestamp":"9999-12-31T23:59:59Z"},{"source":"agent","timestamp":"0001-01-01T00:00:00Z"}],"extra":{"reward":1}}"#,
        r#"{"schema_version":"ATIF-v1.6","steps":[{"source":"agent","llm_call_count":0},{"source":"agent","is_copied_context":true}]}"#,
        "{}",
    ];
    let langfuse = [
        r#"{"id":"t","input":"x","scores":[{"name":"s","dataType":"BOOLEAN","value":1,"stringValue":"True"}],"observations":[{"id":"a","type":"AGENT","name":"a"},{"id":"g","type":"GENERATION","parentObservationId":"a","startTime":"2026-01-01T00:00:00Z","input":{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]},"output":{"role":"assistant","content":"y"},"usageDetails":{"input":1}}]}"#,
        r#"{"data":[{"id":"g","trace_id":"t","type":"GENERATION","input":"[{\"type\":\"human\",\"data\":{\"content\":\"x\"}}]","metadata":"{\"langgraph_node\":\"a\"}"}],"meta":{}}"#,
        r#"{"observations":["a"]}"#,
        r#"[{"id":"g","traceId":"t","type":"GENERATION","level":"ERROR","statusMessage":"x","input":["a",{"role":"tool"}],"output":{"choices":[]}}]"#,
    ];
    let logs = [
        "{\"agent\":\"a\",\"content\":\"x\",\"timestamp\":1e300}\n{\"role\":\"tool\",\"name\":\"f\",\"content\":[{\"toolResult\":{}}]}\n",
        r#"{"question":"q","success":false,"history":[{"name":"a","text":"x","inputs":{"messages":[[]]}},{"name":"b","error":{}}]}"#,
        r#"[{"who":"a"}]"#,
        r#"{"steps":[{"agent":"a","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":[{"text":"x"}]}]}"#,
    ];
    match format {
        0 => spans.map(String::into_bytes).to_vec(),
        1 => inspect.map(|text| text.as_bytes().to_vec()).to_vec(),
        3 => langfuse.map(|text| text.as_bytes().to_vec()).to_vec(),
        4 => logs.map(|text| text.as_bytes().to_vec()).to_vec(),
        _ => atif.map(|text| text.as_bytes().to_vec()).to_vec(),
    }
}

/// What is imported has as many steps as the trace has calls, no injection, no label, and nothing that is open.
pub fn check(format: usize, input: &[u8]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let (file, logs) = (dir.path().join("trace.json"), dir.path().join("logs"));
    fs::write(&file, input).expect("written");
    let format = foreign::ALL[format];
    let imported = match foreign::import(format, &[file], &logs, &ForeignOptions::default()) {
        Ok(imported) => imported,
        Err(ForeignError::Nothing { why, .. }) => {
            assert!(!logs.exists(), "nothing is written: {why}");
            return why.split('`').step_by(2).filter(|part| !part.contains('/')).take(2).collect();
        }
        Err(other) => panic!("{other}"),
    };
    for run in &imported.runs {
        let recording = recording::read(&logs.join(run.run.as_str())).expect("what was written is read");
        let steps = &recording.trajectory.steps;
        assert_eq!(steps.len() as u64, run.calls);
        assert!(recording.sealed && recording.label.is_none() && recording.open_exchanges == 0);
        assert!(steps.iter().flat_map(|step| &step.attempts).all(|attempt| !attempt.exact));
    }
    let kinds =
        imported.runs.iter().map(|run| (run.calls.min(4), run.outcome, run.agents.len().min(3), run.left_out.len()));
    format!("{:?} {}", kinds.take(3).collect::<Vec<_>>(), imported.defects.len().min(3))
}
