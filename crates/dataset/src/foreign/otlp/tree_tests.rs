//! Who is an agent, which spans are one call, what fails a run, and what has no place.

use serde_json::{Value, json};

use super::{
    ForeignRun,
    testing::{answered, attributes, joined, names, read, span, text, with_events, with_status},
};

#[test]
fn agents_are_nodes_and_agents_between_and_never_a_workflow() {
    let call = json!({"gen_ai.operation.name": "chat"});
    let in_graph = |fields: Value| span("c", "n", "ChatOpenAI", &joined(&[call.clone(), fields]));
    let root = |fields: Value| span("r", "", "LangGraph", &fields);
    let node = |fields: Value| span("n", "r", "intake", &fields);
    let nodes = json!(["intake", "auditor"]);
    for (case, spans, expected) in [
        (
            "OpenLLMetry's node",
            vec![
                root(
                    json!({"traceloop.span.kind": "workflow", "traceloop.entity.name": "LangGraph", "gen_ai.agent.name": "LangGraph"}),
                ),
                node(json!({"traceloop.span.kind": "task", "traceloop.entity.name": "intake"})),
                in_graph(json!({})),
            ],
            "intake",
        ),
        (
            "a task of the conventions",
            vec![
                root(json!({})),
                node(json!({"gen_ai.operation.name": "execute_task", "gen_ai.task.name": "intake"})),
                in_graph(json!({})),
            ],
            "intake",
        ),
        (
            "metadata of the call",
            vec![root(json!({})), in_graph(json!({"metadata": "{\"langgraph_node\": \"intake\"}"}))],
            "intake",
        ),
        (
            "metadata of the span above",
            vec![
                root(json!({})),
                node(json!({"openinference.span.kind": "CHAIN", "metadata": "{\"langgraph_node\": \"intake\"}"})),
                in_graph(json!({})),
            ],
            "intake",
        ),
        (
            "Langfuse's metadata",
            vec![in_graph(json!({"langfuse.observation.metadata.langgraph_node": "\"intake\""}))],
            "intake",
        ),
        (
            "association properties",
            vec![in_graph(json!({"traceloop.association.properties.langgraph_node": "intake"}))],
            "intake",
        ),
        (
            "a loop inside a node",
            vec![in_graph(
                json!({"metadata": text(&json!({"langgraph_node": "agent", "langgraph_checkpoint_ns": "team:1|intake:2|agent:3"}))}),
            )],
            "intake",
        ),
        (
            "an agent that has a name",
            vec![in_graph(json!({"metadata": text(&json!({"langgraph_node": "model", "lc_agent_name": "intake"}))}))],
            "intake",
        ),
        (
            "a loop alone",
            vec![root(json!({})), in_graph(json!({"metadata": "{\"langgraph_node\": \"agent\"}"}))],
            "agent",
        ),
        (
            "a workflow",
            vec![
                root(json!({"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": "crew"})),
                node(json!({})),
                in_graph(json!({})),
            ],
            "",
        ),
        (
            "a graph that calls itself an agent",
            vec![
                root(
                    json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "gen_ai.workflow.nodes": nodes}),
                ),
                node(json!({})),
                in_graph(json!({})),
            ],
            "",
        ),
        (
            "OpenLLMetry's workflow",
            vec![
                root(
                    json!({"traceloop.span.kind": "workflow", "traceloop.entity.name": "crew", "gen_ai.agent.name": "crew", "gen_ai.operation.name": "invoke_agent"}),
                ),
                node(json!({})),
                in_graph(json!({})),
            ],
            "",
        ),
        (
            "a chain of a framework",
            vec![
                root(json!({})),
                node(json!({"traceloop.span.kind": "task", "traceloop.entity.name": "RunnableSequence"})),
                in_graph(json!({})),
            ],
            "",
        ),
        (
            "OpenLLMetry's agent",
            vec![
                root(json!({})),
                span(
                    "n",
                    "r",
                    "Intake.agent",
                    &json!({"traceloop.span.kind": "agent", "traceloop.entity.name": "intake"}),
                ),
                in_graph(json!({})),
            ],
            "intake",
        ),
        (
            "a crew's agent",
            vec![
                root(json!({})),
                node(json!({"traceloop.span.kind": "agent", "crewai.agent.role": "intake"})),
                in_graph(json!({})),
            ],
            "intake",
        ),
        (
            "Langfuse's agent",
            vec![root(json!({})), node(json!({"langfuse.observation.type": "agent"})), in_graph(json!({}))],
            "intake",
        ),
        (
            "Pydantic AI's, former",
            vec![span("n", "", "agent run", &json!({"agent_name": "intake"})), in_graph(json!({}))],
            "intake",
        ),
        (
            "smolagents'",
            vec![
                span("n", "", "intake.run", &json!({"openinference.span.kind": "AGENT", "smolagents.max_steps": 3})),
                in_graph(json!({})),
            ],
            "intake",
        ),
        ("MLflow's agent", vec![node(json!({"mlflow.spanType": "\"AGENT\""})), in_graph(json!({}))], "intake"),
        ("a function of the AI SDK", vec![in_graph(json!({"ai.telemetry.functionId": "intake"}))], "intake"),
    ] {
        let run = read(&spans, &[]);
        assert_eq!(names(&run), [expected], "{case}");
        let agent = run.calls[0].agent.as_ref();
        assert!(agent.is_none_or(|agent| agent.evidence.contains("of the span `")), "{case}: {agent:?}");
    }
}

/// A call of `id` below `parent` that says something; `None`: its content was off.
fn said_by(id: &str, parent: &str, said: Option<&str>) -> Value {
    let mut fields = json!({"gen_ai.operation.name": "chat"});
    if let Some(said) = said {
        fields["gen_ai.output.messages"] = json!([{"role": "assistant", "parts": [{"type": "text", "content": said}]}]);
    }
    span(id, parent, "chat m", &fields)
}

#[test]
fn a_span_around_the_same_call_is_one_and_a_call_that_stays_open_is_its_own() {
    let agent = |id: &str, parent: &str, name: &str| {
        span(id, parent, "invoke_agent", &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}))
    };
    let tool = |id: &str, parent: &str| {
        span(id, parent, "execute_tool ask", &json!({"gen_ai.operation.name": "execute_tool"}))
    };
    for (case, spans, expected) in [
        (
            "the same words",
            vec![said_by("a", "", Some("It is 42.")), said_by("b", "a", Some("It  is 42.\n"))],
            vec!["It  is 42.\n"],
        ),
        (
            "only the outer says them",
            vec![said_by("a", "", Some("It is 42.")), said_by("b", "a", None)],
            vec!["It is 42."],
        ),
        (
            "only the inner says them",
            vec![said_by("a", "", None), said_by("b", "a", Some("It is 42."))],
            vec!["It is 42."],
        ),
        ("other words", vec![said_by("a", "", Some("41")), said_by("b", "a", Some("42"))], vec!["41", "42"]),
        (
            "another agent between, other words",
            vec![
                said_by("a", "", Some("41")),
                tool("t", "a"),
                agent("s", "t", "solver"),
                said_by("b", "s", Some("42")),
            ],
            vec!["41", "42"],
        ),
        (
            "another agent between, the same words",
            vec![
                said_by("a", "", Some("42")),
                tool("t", "a"),
                agent("s", "t", "solver"),
                said_by("b", "s", Some("42")),
            ],
            vec!["42", "42"],
        ),
        (
            "a tool that asks a model",
            vec![said_by("a", "", Some("42")), tool("t", "a"), said_by("b", "t", Some("42"))],
            vec!["42", "42"],
        ),
        (
            "without any words, an agent between",
            vec![said_by("a", "", None), agent("s", "a", "solver"), said_by("b", "s", None)],
            vec!["", ""],
        ),
        (
            "around a loop of calls",
            vec![
                said_by("a", "", Some("two")),
                said_by("b", "a", Some("one")),
                tool("t", "a"),
                said_by("d", "a", Some("two")),
            ],
            vec!["one", "two"],
        ),
        (
            "three around each other",
            vec![said_by("a", "", Some("x")), said_by("b", "a", Some("x")), said_by("d", "b", Some("x"))],
            vec!["x"],
        ),
    ] {
        let run = read(&spans, &[]);
        let told: Vec<String> = run.calls.iter().map(|call| answered(call).unwrap_or_default()).collect();
        assert_eq!(told, expected, "{case}");
    }
}

#[test]
fn only_the_program_itself_fails_a_run() {
    let agent = json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "solver"});
    let tool = json!({"openinference.span.kind": "TOOL"});
    let root = || span("r", "", "invoke_agent solver", &agent);
    let call = |parent: &str| said_by("c", parent, Some("It is 42."));
    for (case, spans, failed) in [
        ("a tool below the root", vec![root(), call("r"), with_status(span("t", "r", "tool", &tool), 2)], false),
        ("a tool without a parent", vec![root(), call("r"), with_status(span("t", "", "tool", &tool), 2)], false),
        (
            "a tool whose parent was not exported",
            vec![root(), call("r"), with_status(span("t", "gone", "tool", &tool), 2)],
            false,
        ),
        (
            "an agent whose parent was not exported",
            vec![call(""), with_status(span("a", "gone", "invoke_agent", &agent), 2)],
            false,
        ),
        (
            "a call without a parent beside the program",
            vec![root(), call("r"), with_status(said_by("d", "", None), 2)],
            false,
        ),
        ("the program", vec![with_status(root(), 2), call("r")], true),
        ("the only call", vec![with_status(said_by("d", "", None), 2)], true),
        ("nobody", vec![root(), call("r")], false),
    ] {
        let run = read(&spans, &[]);
        assert_eq!(run.outcome.is_some(), failed, "{case}: {:?}", run.outcome);
    }
    let result = |label: &str| json!({"gen_ai.evaluation.name": "right", "gen_ai.evaluation.score.label": label});
    let as_record = |span: &str| json!({"traceId": "t", "spanId": span, "eventName": "gen_ai.evaluation.result", "attributes": attributes(&result("pass"))});
    let passed =
        |run: ForeignRun| run.outcome.is_some_and(|(verdict, _)| verdict == crate::trajectory::Verdict::Success);
    assert!(passed(read(&[with_events(root(), &[("gen_ai.evaluation.result", result("pass"))]), call("r")], &[])));
    assert!(passed(read(&[root(), call("r")], &[as_record("r")])));
    assert!(!passed(read(&[root(), call("r")], &[as_record("c")])), "a call that was right is no run that was");
}

#[test]
fn ids_are_joined_whatever_their_case_and_what_has_no_place_is_named() {
    let upper = "ABCDEF0123456789";
    let mut root = span(
        upper,
        "AAAAAAAAAAA=",
        "invoke_agent solver",
        &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "solver"}),
    );
    root["traceId"] = "T".into();
    let mut call = said_by("c", &upper.to_lowercase(), Some("It is 42."));
    call["traceId"] = "T".into();
    call["attributes"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"key": "acme.answer.2.words", "value": {"stringValue": "a whole sentence"}}));
    let run = read(&[root, call], &[]);
    assert_eq!(names(&run), ["solver"]);
    assert_eq!(
        run.account.unplaced.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>(),
        [("acme.answer.#.words", 1)]
    );
}

#[test]
fn what_a_span_or_a_message_says_beside_its_call_is_named() {
    let said = |more: Value| {
        json!([joined(&[json!({"role": "assistant", "parts": [{"type": "text", "content": "It is 42."}]}), more])])
    };
    let call = |id: &str, message: Value| {
        span(id, "r", "chat m", &json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": message}))
    };
    let other = |id: &str, parent: &str| {
        let fields = json!({"gen_ai.operation.name": "summarize", "gen_ai.output.messages": said(json!({}))});
        span(id, parent, "summarize", &fields)
    };
    for (case, spans, expected) in [
        ("an answer above its call", vec![other("r", ""), call("c", said(json!({})))], vec![]),
        (
            "an answer of no call",
            vec![call("c", said(json!({}))), other("x", "r")],
            vec!["gen_ai.output.messages of a span that is no call"],
        ),
        (
            "a member of a message",
            vec![call("c", said(json!({"annex": "a whole sentence", "id": "m 1"})))],
            vec!["gen_ai.output.messages[#].annex"],
        ),
        (
            "a part of an unknown type",
            vec![call(
                "c",
                json!([{"role": "assistant", "parts": [{"type": "text", "content": "It is 42."},
                {"type": "verse", "lines": "a whole sentence"}]}]),
            )],
            vec!["gen_ai.output.messages[#].parts[#].lines"],
        ),
        (
            "a picture",
            vec![call(
                "c",
                json!([{"role": "assistant", "parts": [{"type": "text", "content": "It is 42."},
                {"type": "image", "alt": "a whole sentence"}]}]),
            )],
            vec![],
        ),
    ] {
        let run = read(&spans, &[]);
        assert_eq!(run.account.unplaced.keys().collect::<Vec<_>>(), expected, "{case}");
        // What is of a call is the reply's; an answer of no call is the trace's alone.
        let of_call: usize = run.calls.iter().map(|call| call.unplaced.reply.len()).sum();
        assert_eq!(of_call, expected.iter().filter(|name| !name.contains("no call")).count(), "{case}");
        assert!(run.calls.iter().all(|call| call.unplaced.request.is_empty()), "{case}");
    }
}

/// Some exporters send a span when it begins and again when it has ended, in either order; some count with a point.
#[test]
fn of_a_span_that_came_twice_the_ended_one_counts() {
    let said = json!([{"role": "assistant", "parts": [{"type": "text", "content": "42"}]}]);
    let begun = json!({"traceId": "t", "spanId": "c", "name": "chat", "startTimeUnixNano": "1",
        "attributes": attributes(&json!({"gen_ai.operation.name": "chat"}))});
    let mut ended = span(
        "c",
        "",
        "chat",
        &json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": text(&said), "gen_ai.usage.input_tokens": 5}),
    );
    ended["attributes"]
        .as_array_mut()
        .expect("attributes")
        .push(json!({"key": "gen_ai.usage.output_tokens", "value": {"doubleValue": 3.0}}));
    for spans in [[begun.clone(), ended.clone()], [ended, begun]] {
        let run = read(&spans, &[]);
        assert_eq!(run.calls.iter().map(answered).collect::<Vec<_>>(), [Some("42".to_owned())]);
        assert_eq!(run.calls[0].usage.map(|usage| (usage.input, usage.output)), Some((5, 3)));
    }
}
