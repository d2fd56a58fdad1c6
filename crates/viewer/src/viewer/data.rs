//! A run and its steps as data, as `show --format json` prints them: field names are stable, programs rely on them.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    change,
    origin::ReplyOrigins,
    shown::{AttemptFacts, RunHead, ShownAttempt, ShownFailure, ShownQuestion, ShownRun, ShownStep, StepFacts},
    step_view::StepView,
};
use crate::{
    capability::Capabilities,
    recording::{self, Recording, RunFact, tool_callers},
    ruling,
    surface::account::{self, RunAccount},
    trajectory::{Attempt, ReplyOrigin, Step},
};

/// The run in its directory, with these of its steps.
pub fn shown(recording: &Recording, run_dir: &Path, steps: &[&Step], with_changes: bool) -> Value {
    let account = RunAccount::from_steps(&recording.trajectory.steps);
    let origins = ReplyOrigins::read(recording, run_dir);
    let callers = tool_callers(&recording.trajectory.steps, &recording.exchanges);
    let objection = ruling::objection(recording);
    let steps = steps
        .iter()
        .map(|step| ShownStep { called_by: callers.get(&step.step), ..shown_step(step, &origins, with_changes) });
    as_value(&ShownRun {
        head: run_head(recording, &account, objection.as_deref()),
        kept: recording::read_kept(run_dir).ok().flatten(),
        can: Capabilities::new(recording, run_dir).by_verb(),
        steps: steps.collect(),
    })
}

/// A value of a type that is always written.
pub(super) fn as_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The run without its steps. `no_label` says why it has no label, or why the one that it has does not hold.
pub(super) fn run_head<'a>(
    recording: &'a Recording,
    account: &'a RunAccount,
    no_label: Option<&'a str>,
) -> RunHead<'a> {
    let manifest = &recording.manifest;
    let failures = recording.manipulator_failures.iter().map(|failure| ShownFailure {
        step: failure.step,
        attempt: failure.attempt,
        injection: failure.injection,
        operator: &failure.operator,
        why: &failure.why,
    });
    let questions = recording.manipulator_questions.iter().map(|asked| ShownQuestion {
        step: asked.step,
        attempt: asked.attempt,
        injection: asked.injection,
        operator: &asked.operator,
        upstream: &asked.upstream,
        model: &asked.model,
        template: &asked.template,
        question: body(&asked.question),
        answer: body(&asked.answer),
        error: &asked.error,
        changed: &asked.changed,
        usage: asked.usage,
        cost: asked.cost,
        took_us: asked.took_us,
    });
    RunHead {
        run: &manifest.run,
        task: &manifest.task,
        started: &manifest.started,
        ended: &manifest.ended,
        upstream: &manifest.upstream,
        imported: &manifest.imported,
        origin: manifest.origin,
        seed: manifest.seed,
        plan_digest: &manifest.plan_digest,
        sealed: recording.sealed,
        open_exchanges: recording.open_exchanges,
        outcome: &manifest.outcome,
        later: recording.facts_that_hold().map(RunFact::words).collect(),
        label: &recording.label,
        no_label,
        account,
        notes: &recording.notes,
        watched: &recording.watched,
        manipulator_failures: failures.collect(),
        manipulator_questions: questions.collect(),
    }
}

/// One step.
pub fn step_of(step: &Step, origins: &ReplyOrigins, with_changes: bool) -> Value {
    as_value(&shown_step(step, origins, with_changes))
}

fn shown_step<'a>(step: &'a Step, origins: &ReplyOrigins, with_changes: bool) -> ShownStep<'a> {
    let last = step.last_attempt();
    let attempts = step.attempts.iter().map(|attempt| shown_attempt(attempt, origins.of_attempt(step, attempt)));
    ShownStep {
        facts: facts_of_step(step),
        source: step.attribution.source,
        evidence: &step.attribution.evidence,
        status: last.and_then(|attempt| attempt.status),
        cause: last.and_then(|attempt| attempt.cause),
        ending: last.and_then(|attempt| attempt.ending),
        usage: last.and_then(|attempt| attempt.usage),
        request: body(&step.request),
        request_sent: step.request_sent.as_ref().map(|sent| body(sent)),
        reply: last.map(|attempt| body(attempt.delivered())),
        text: StepView::new(step).reply_text(),
        attempts: attempts.collect(),
        changes: with_changes.then(|| change::changes(step)),
        called_by: None,
    }
}

/// What is said of a step wherever it is shown.
pub(super) fn facts_of_step(step: &Step) -> StepFacts<'_> {
    let attribution = &step.attribution;
    StepFacts {
        step: step.step,
        call: step.call,
        turn: step.turn,
        agent: &attribution.agent,
        instance: attribution.instance,
        confidence: as_written(attribution.confidence),
        ambiguous: attribution.ambiguous,
        overlapping: step.overlapping,
        surface: &step.surface,
        method: &step.method,
        path: &step.path,
        account: account::of_step(step),
        injected: &step.injected,
    }
}

/// A number with the digits that it was given: its nearest number of twice the length has more.
pub fn as_written(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| f64::from(number))
}

/// What is said of an attempt wherever it is shown.
pub(super) fn facts_of_attempt(attempt: &Attempt, origin: ReplyOrigin) -> AttemptFacts<'_> {
    AttemptFacts {
        attempt: attempt.attempt,
        at: &attempt.at,
        status: attempt.status,
        cause: attempt.cause,
        ending: attempt.ending,
        streamed: attempt.streamed,
        first_byte_us: attempt.first_byte_us,
        last_byte_us: attempt.last_byte_us,
        usage: attempt.usage,
        exact: attempt.exact,
        origin,
        proxy_error: attempt.proxy_error.as_ref(),
    }
}

fn shown_attempt(attempt: &Attempt, origin: ReplyOrigin) -> ShownAttempt<'_> {
    ShownAttempt {
        facts: facts_of_attempt(attempt, origin),
        uninspected: attempt.uninspected,
        reply: body(&attempt.reply),
        reply_delivered: attempt.reply_delivered.as_ref().map(|delivered| body(delivered)),
    }
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
