//! A run and its steps as data, as `show --format json` prints them: field names are stable, programs rely on them.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::{change, origin::ReplyOrigins, step_view::StepView};
use crate::{
    capability::Capabilities,
    recording::{Recording, RunFact, tool_callers},
    ruling,
    surface::account::{self, RunAccount},
    trajectory::{Attempt, ReplyOrigin, Step},
};

/// The run in its directory, with these of its steps.
pub fn shown(recording: &Recording, run_dir: &Path, steps: &[&Step], with_changes: bool) -> Value {
    let account = RunAccount::from_steps(&recording.trajectory.steps);
    let origins = ReplyOrigins::read(recording, run_dir);
    let mut head = head(recording, &account, ruling::objection(recording).as_deref());
    if let Some(object) = head.as_object_mut() {
        object.insert("can".to_owned(), Capabilities::new(recording, run_dir).data());
        let callers = tool_callers(&recording.trajectory.steps, &recording.exchanges);
        let steps = steps.iter().map(|step| {
            let called = callers.get(&step.step).map(|caller| json!({"called_by": caller}));
            with(step_of(step, &origins, with_changes), called.unwrap_or_default())
        });
        object.insert("steps".to_owned(), steps.collect());
    }
    head
}

/// The run without its steps. `no_label` says why it has no label, or why the one that it has does not hold.
pub(super) fn head(recording: &Recording, account: &RunAccount, no_label: Option<&str>) -> Value {
    let manifest = &recording.manifest;
    let failures = recording.manipulator_failures.iter().map(|failure| {
        json!({"step": failure.step, "attempt": failure.attempt, "injection": failure.injection,
            "operator": failure.operator, "why": failure.why})
    });
    let questions = recording.manipulator_questions.iter().map(|asked| {
        json!({"step": asked.step, "attempt": asked.attempt, "injection": asked.injection,
            "operator": asked.operator, "upstream": asked.upstream, "model": asked.model, "template": asked.template,
            "question": body(&asked.question), "answer": body(&asked.answer), "error": asked.error,
            "changed": asked.changed, "usage": asked.usage, "cost": asked.cost, "took_us": asked.took_us})
    });
    json!({
        "run": manifest.run,
        "task": manifest.task,
        "started": manifest.started,
        "ended": manifest.ended,
        "upstream": manifest.upstream,
        "imported": manifest.imported,
        "origin": manifest.origin,
        "seed": manifest.seed,
        "plan_digest": manifest.plan_digest,
        "sealed": recording.sealed,
        "open_exchanges": recording.open_exchanges,
        "outcome": manifest.outcome,
        "later": recording.facts_that_hold().map(RunFact::words).collect::<Vec<_>>(),
        "label": recording.label,
        "no_label": no_label,
        "account": account,
        "notes": recording.notes,
        "watched": recording.watched,
        "manipulator_failures": failures.collect::<Vec<_>>(),
        "manipulator_questions": questions.collect::<Vec<_>>(),
    })
}

/// One step.
pub fn step_of(step: &Step, origins: &ReplyOrigins, with_changes: bool) -> Value {
    let attribution = &step.attribution;
    let last = step.last_attempt();
    let more = json!({
        "source": attribution.source,
        "evidence": attribution.evidence,
        "status": last.and_then(|attempt| attempt.status),
        "cause": last.and_then(|attempt| attempt.cause),
        "ending": last.and_then(|attempt| attempt.ending),
        "usage": last.and_then(|attempt| attempt.usage),
        "request": body(&step.request),
        "request_sent": step.request_sent.as_ref().map(|sent| body(sent)),
        "reply": last.map(|attempt| body(attempt.delivered())),
        "text": StepView::new(step).reply_text(),
        "attempts": step.attempts.iter().map(|attempt| attempt_of(attempt, origins.of_attempt(step, attempt))).collect::<Vec<_>>(),
    });
    let mut value = with(step_facts(step), more);
    if with_changes && let Some(object) = value.as_object_mut() {
        object.insert("changes".to_owned(), json!(change::changes(step)));
    }
    value
}

/// What is said of a step wherever it is shown.
pub(super) fn step_facts(step: &Step) -> Value {
    let attribution = &step.attribution;
    json!({
        "step": step.step,
        "call": step.call,
        "turn": step.turn,
        "agent": attribution.agent,
        "instance": attribution.instance,
        "confidence": attribution.confidence,
        "ambiguous": attribution.ambiguous,
        "overlapping": step.overlapping,
        "surface": step.surface,
        "method": step.method,
        "path": step.path,
        "account": account::of_step(step),
        "injected": step.injected,
    })
}

/// What is said of an attempt wherever it is shown.
pub(super) fn attempt_facts(attempt: &Attempt, origin: ReplyOrigin) -> Value {
    json!({
        "attempt": attempt.attempt,
        "at": attempt.at,
        "status": attempt.status,
        "cause": attempt.cause,
        "ending": attempt.ending,
        "streamed": attempt.streamed,
        "first_byte_us": attempt.first_byte_us,
        "last_byte_us": attempt.last_byte_us,
        "usage": attempt.usage,
        "exact": attempt.exact,
        "origin": origin,
    })
}

/// Facts, and what one place says besides.
pub(super) fn with(mut facts: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (facts.as_object_mut(), more) {
        object.extend(more);
    }
    facts
}

fn attempt_of(attempt: &Attempt, origin: ReplyOrigin) -> Value {
    let more = json!({
        "uninspected": attempt.uninspected,
        "reply": body(&attempt.reply),
        "reply_delivered": attempt.reply_delivered.as_ref().map(|delivered| body(delivered)),
    });
    with(attempt_facts(attempt, origin), more)
}

/// A body: JSON as it is, other text as a string, other bytes as `{"base64": …}`.
fn body(bytes: &[u8]) -> Value {
    use base64::Engine;
    if bytes.is_empty() {
        return Value::Null;
    }
    match (serde_json::from_slice(bytes), std::str::from_utf8(bytes)) {
        (Ok(value), _) => value,
        (Err(_), Ok(text)) => text.into(),
        (Err(_), Err(_)) => json!({"base64": base64::engine::general_purpose::STANDARD.encode(bytes)}),
    }
}

/// The word that a value is written as.
pub fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
