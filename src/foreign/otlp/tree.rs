//! From the spans of a run to its calls: which spans are calls, whose they are, what became of the run.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    super::{ForeignAgent, ForeignCall, ForeignFailure, ForeignRun, scored},
    GatheredTrace, genai, openinference,
    span::{SpanStatus, TraceSpan},
};
use crate::trajectory::Verdict;

/// How far up agents and wrappers are looked for.
const HIGHEST: usize = 256;

/// The run that some traces are.
pub(super) fn run(key: String, traces: Vec<GatheredTrace>) -> ForeignRun {
    let file = traces.first().map(|trace| trace.file.0).unwrap_or_default();
    let requests = "the messages that the spans hold";
    let mut run = ForeignRun { label: key.clone(), key, file, requests, ..ForeignRun::default() };
    let mut scores = Vec::new();
    let mut failed = None;
    for trace in traces {
        let tree = SpanTree::of(trace.spans);
        run.leave_out("spans that were exported twice", tree.doubled);
        tree.calls(&mut run);
        for root in tree.spans.iter().filter(|span| tree.parent(span).is_none()) {
            run.task = run.task.take().or_else(|| task(root));
            scores.extend(evaluations(root));
            if root.status == SpanStatus::Error && failed.is_none() {
                failed = Some(format!("the span `{}` ended with an error: {}", root.name, root.said));
            }
        }
    }
    let failed = failed.map(|evidence| (Verdict::Failure, evidence));
    run.outcome = scored::together(&scores, "evaluation").or(failed);
    run
}

/// What a root span says that the run is to do.
fn task(root: &TraceSpan) -> Option<String> {
    let is_json = root.text("input.mime_type") == Some("application/json");
    let input = root.text("input.value").filter(|text| !is_json && !text.trim_start().starts_with(['{', '[']));
    let named = input.or_else(|| root.text("gen_ai.workflow.name"));
    let bare =
        (genai::is_call(root) != Some(true) && openinference::is_call(root) != Some(true)).then_some(&*root.name);
    named.or(bare).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Results of evaluations that stand at a root span: those are of the whole run.
fn evaluations(root: &TraceSpan) -> Vec<(String, Value)> {
    let results = root.events.iter().filter(|event| event.name == "gen_ai.evaluation.result");
    let read = |event: &super::span::SpanEvent| {
        let at = |name: &str| event.attributes.get(name).filter(|value| !value.is_null()).cloned();
        let name = at("gen_ai.evaluation.name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        Some((name, at("gen_ai.evaluation.score.label").or_else(|| at("gen_ai.evaluation.score.value"))?))
    };
    results.filter_map(read).collect()
}

/// The spans of one trace, and who is above whom.
struct SpanTree {
    spans: Vec<TraceSpan>,
    places: HashMap<String, usize>,
    doubled: u64,
}

impl SpanTree {
    fn of(all: Vec<TraceSpan>) -> Self {
        let (mut spans, mut places, mut doubled) = (Vec::with_capacity(all.len()), HashMap::new(), 0);
        for span in all {
            if places.contains_key(&span.id) {
                doubled += 1;
                continue;
            }
            places.insert(span.id.clone(), spans.len());
            spans.push(span);
        }
        Self { spans, places, doubled }
    }

    /// The span above; `None` at a root, and where the one above is not in the trace.
    fn parent(&self, span: &TraceSpan) -> Option<&TraceSpan> {
        self.spans.get(*self.places.get(span.parent.as_ref()?)?)
    }

    /// A span and those above it, up to a height: a trace may go round.
    fn upwards<'a>(&'a self, span: &'a TraceSpan) -> impl Iterator<Item = &'a TraceSpan> {
        std::iter::successors(Some(span), |span| self.parent(span)).take(HIGHEST)
    }

    fn calls(&self, run: &mut ForeignRun) {
        let mut calls: Vec<&TraceSpan> = self.spans.iter().filter(|span| is_call(span)).collect();
        let vectors = self.spans.iter().filter(|span| genai::is_embedding(span) || openinference::is_embedding(span));
        run.leave_out("calls for vectors", vectors.count() as u64);
        // A framework's span and its SDK's are one call; the inner one is nearer to the wire.
        let above = calls.iter().flat_map(|span| self.upwards(span).skip(1)).map(|span| span.id.as_str());
        let wrappers: HashSet<&str> = above.collect();
        let before = calls.len();
        calls.retain(|span| !wrappers.contains(span.id.as_str()));
        run.leave_out("spans around the span of the same call", (before - calls.len()) as u64);
        for span in calls {
            let mut call = ForeignCall {
                began: span.began,
                ended: span.ended,
                agent: self.agent(span),
                failure: failure(span),
                ..ForeignCall::default()
            };
            for what in genai::read(span, &mut call).into_iter().chain(openinference::read(span, &mut call)) {
                run.leave_out(what, 1);
            }
            let address = span.text("server.address").or_else(|| span.text("gen_ai.provider.name"));
            let provider = address.or_else(|| span.text("gen_ai.system")).or_else(|| span.text("llm.system"));
            run.upstream = run.upstream.take().or_else(|| provider.map(str::to_owned));
            run.calls.push(call);
        }
    }

    /// Who made a call: the nearest span that names somebody.
    fn agent(&self, span: &TraceSpan) -> Option<ForeignAgent> {
        self.upwards(span).find_map(|span| genai::agent(span).or_else(|| openinference::agent(span)))
    }
}

fn is_call(span: &TraceSpan) -> bool {
    let told = genai::is_call(span).or_else(|| openinference::is_call(span));
    told.unwrap_or_else(|| span.text("gen_ai.request.model").is_some())
}

/// How a call failed, if its span says so.
fn failure(span: &TraceSpan) -> Option<ForeignFailure> {
    if span.status != SpanStatus::Error {
        return None;
    }
    let code = |name: &str| span.whole(name).and_then(|code| u16::try_from(code).ok());
    let status = code("http.response.status_code").or_else(|| code("error.type"));
    let kind = span.text("error.type").filter(|kind| !span.said.starts_with(kind));
    let why = [kind, Some(span.said.as_str())].into_iter().flatten().filter(|text| !text.is_empty());
    let why: Vec<&str> = why.collect();
    Some(ForeignFailure { status: status.filter(|status| (100..1000).contains(status)), why: why.join(": ") })
}
