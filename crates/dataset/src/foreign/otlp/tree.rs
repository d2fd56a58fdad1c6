//! From the spans of a run to its calls: which spans are calls, whose they are, what became of the run.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    super::{
        ForeignAgent, ForeignCall, ForeignFailure, ForeignRun, TraceAccount, account::CallAccount, messages, scored,
    },
    GatheredTrace, attributes, conventions,
    doubles::{self, CallSpan},
    span::{SpanEvent, SpanOf, SpanStatus, TraceSpan},
    span_tree::{HIGHEST, SpanTree},
};
use crate::{
    surface::{Message, Role},
    trajectory::{EVALUATION_EVENT, Verdict},
};

/// The run that some traces are.
pub(super) fn run(key: String, traces: Vec<GatheredTrace>) -> ForeignRun {
    let file = traces.first().map(|trace| trace.file.0).unwrap_or_default();
    let requests = "the messages that the spans hold";
    let mut run = ForeignRun { label: key.clone(), key, file, requests, ..ForeignRun::default() };
    let mut scores = Vec::new();
    let mut last: Option<(i64, Option<String>)> = None;
    let mut root_name = None;
    for trace in traces {
        let tree = SpanTree::build(trace.spans);
        run.account.leave_out("spans that were exported twice", tree.doubled);
        run.account.leave_out("spans whose parent is not in the trace", tree.orphans() as u64);
        run.account.add(&trace.account);
        scores.extend(trace.events.iter().filter_map(evaluation));
        tree.calls(&mut run);
        for root in tree.spans.iter().filter(|span| span.parent.is_none()) {
            run.task = run.task.take().or_else(|| task(root));
            root_name = root_name.take().or_else(|| (!root.name.trim().is_empty()).then(|| root.name.clone()));
            scores.extend(root.events.iter().filter_map(evaluation));
            // How a program ended is told by the span of the program that ended last: what failed in a tool or in a call fails
            // no run, for agents recover; but where a call is all there is.
            let is_piece = matches!(root.span_kind, Some(SpanOf::Tool | SpanOf::Call | SpanOf::Vectors));
            if is_piece && tree.spans.len() > 1 {
                continue;
            }
            let failed = root.status == SpanStatus::Error;
            let failed = failed.then(|| format!("the span `{}` ended with an error: {}", root.name, root.status_text));
            let ended = root.ended.or(root.began).unwrap_or_default();
            if last.as_ref().is_none_or(|(before, _)| *before <= ended) {
                last = Some((ended, failed));
            }
        }
    }
    run.task = run.task.take().or_else(|| first_user_text(&run)).or(root_name);
    let failed = last.and_then(|(_, failed)| failed).map(|evidence| (Verdict::Failure, evidence));
    run.outcome = scored::together(&scores, "evaluation").or(failed);
    run
}

/// What a root span says that the run is to do.
fn task(root: &TraceSpan) -> Option<String> {
    if matches!(root.span_kind, Some(SpanOf::Call | SpanOf::Tool | SpanOf::Vectors)) {
        return None;
    }
    let given = conventions::ALL.iter().find_map(|convention| convention.input_of_span(root));
    let told = given.map(|given| messages::unheld(&given, Role::User, &mut TraceAccount::default()));
    let asked = told.iter().flatten().find(|message| message.role == Role::User).map(Message::text);
    asked.filter(|text| !text.trim().is_empty()).or_else(|| root.text("gen_ai.workflow.name").map(str::to_owned))
}

/// What the first call's user asks.
fn first_user_text(run: &ForeignRun) -> Option<String> {
    let first = run.calls.iter().min_by_key(|call| call.began)?.request.as_ref()?;
    let asked = first.messages.iter().find(|message| message.role == Role::User)?.text();
    (!asked.trim().is_empty()).then_some(asked)
}

/// A result of an evaluation: one that stands at a root span is of the whole run.
fn evaluation(event: &SpanEvent) -> Option<(String, Value)> {
    if event.name != EVALUATION_EVENT {
        return None;
    }
    let fields = event.fields();
    let at = |name: &str| fields.get(name).filter(|value| !value.is_null()).cloned();
    let name = at("gen_ai.evaluation.name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    Some((name, at("gen_ai.evaluation.score.label").or_else(|| at("gen_ai.evaluation.score.value"))?))
}

impl SpanTree {
    fn calls(&self, run: &mut ForeignRun) {
        let vectors = self.spans.iter().filter(|span| span.span_kind == Some(SpanOf::Vectors));
        run.account.leave_out("calls for vectors", vectors.count() as u64);
        let mut calls = Vec::new();
        for span in self.spans.iter().filter(|span| is_call(span)) {
            let mut call =
                ForeignCall { began: span.began, ended: span.ended, failure: failure(span), ..ForeignCall::default() };
            let mut account = CallAccount::default();
            for convention in conventions::ALL {
                convention.read(span, &mut call, &mut account);
            }
            attributes::account(span, &mut account);
            call.unplaced = account.close(&mut run.account);
            call.answer = call.answer.take().filter(|_| call.failure.is_none());
            call.agent = self.agent(span);
            let address = span.text("server.address").or_else(|| span.text("gen_ai.provider.name"));
            let provider = address.or_else(|| span.text("gen_ai.system")).or_else(|| span.text("llm.system"));
            run.upstream = run.upstream.take().or_else(|| provider.map(str::to_owned));
            calls.push(CallSpan { span, call });
        }
        let above: HashSet<&str> =
            calls.iter().flat_map(|one| self.upwards(one.span)).map(|span| span.id.as_str()).collect();
        for span in self.spans.iter().filter(|span| !above.contains(span.id.as_str())) {
            attributes::without_call(span, &mut run.account);
        }
        let round = calls.iter().any(|one| self.upwards(one.span).count() == HIGHEST);
        let (calls, doubles) = doubles::without_doubles(self, calls);
        run.account.leave_out("spans around the span of the same call", doubles);
        run.account.leave_out("spans that are deeper than any program's, or their own parents", u64::from(round));
        run.calls.extend(calls);
    }

    /// Who made a call: the nearest span that names somebody, and is no whole program.
    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        self.upwards(span)
            .find_map(|span| span.agent.clone())
            .or_else(|| self.upwards(span).find_map(|span| span.node.clone()))
    }
}

fn is_call(span: &TraceSpan) -> bool {
    match span.span_kind {
        Some(kind) => kind == SpanOf::Call,
        None => span.text("gen_ai.request.model").is_some() || span.text("llm.model_name").is_some(),
    }
}

/// How a call failed, if its span says so.
fn failure(span: &TraceSpan) -> Option<ForeignFailure> {
    if span.status != SpanStatus::Error {
        return None;
    }
    let code = |name: &str| span.whole_number(name).and_then(|code| u16::try_from(code).ok());
    let status = code("http.response.status_code").or_else(|| code("error.type"));
    let kind = span.text("error.type").filter(|kind| !span.status_text.starts_with(kind));
    let why = [kind, Some(span.status_text.as_str())].into_iter().flatten().filter(|text| !text.is_empty());
    let why: Vec<&str> = why.collect();
    Some(ForeignFailure { status: status.filter(|status| (100..1000).contains(status)), why: why.join(": ") })
}
