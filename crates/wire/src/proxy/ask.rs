//! What an edit wants to know is asked of the manipulator's model, and every question is recorded. Manipulators are pure
//! and only say what it is.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    asking::{ManipulatorModel, ModelExchange},
    error::Interrupted,
    heavy,
    open_step::OpenStep,
    skipped::SkipReason,
};
use crate::{
    budget::Price,
    manipulator::{Adaptive, ManipulatorError, Question},
    plan::{Hit, Injection},
    recording::ManipulatorCall,
};

/// Most questions of one edit: each answer of a reply may take some tries.
const QUESTIONS_MAX: usize = 64;

/// Makes an edit of so many bytes, asking the model whenever the edit wants to know something. The inner error is why it was not
/// made.
///
/// # Errors
/// A question could not be recorded.
pub(super) async fn edit_with_answers<T: Send>(
    step: &OpenStep,
    hit: &Hit,
    injection: &Injection,
    until: Option<Instant>,
    bytes: usize,
    edit: impl Fn(Adaptive<'_>) -> Result<T, ManipulatorError> + Sync,
) -> Result<Result<T, SkipReason>, Interrupted> {
    let asking = step.run.asking.as_deref();
    let mut answers: Vec<(Question, String)> = Vec::new();
    let began = Instant::now();
    loop {
        let adaptive = Adaptive {
            failure_mode: injection.failure_mode,
            task: step.run.task(),
            answers: &answers,
            templates: asking.and_then(|asking| asking.settings().templates.as_ref()),
        };
        let question = match heavy::in_turn(bytes, || edit(adaptive)).await {
            Err(ManipulatorError::Ask(question)) => *question,
            other => {
                return Ok(other.map_err(|error| SkipReason { why: error.to_string(), nothing: error.is_nothing() }));
            }
        };
        let (Some(asking), Some(until)) = (asking, until) else {
            return Ok(Err("no model is configured for manipulators".to_owned().into()));
        };
        if answers.len() >= QUESTIONS_MAX {
            return Ok(Err(format!("it asked {QUESTIONS_MAX} questions and wants to ask more").into()));
        }
        let started = Instant::now();
        let asked = asking.ask(&question, began, until).await;
        record(step, hit, injection, asking, &question, &asked, started.elapsed())?;
        match asked.reply {
            Ok(said) => answers.push((question, said)),
            Err(error) => return Ok(Err(error.to_string().into())),
        }
    }
}

fn record(
    step: &OpenStep,
    hit: &Hit,
    injection: &Injection,
    asking: &ManipulatorModel,
    question: &Question,
    asked: &ModelExchange,
    took: Duration,
) -> Result<(), Interrupted> {
    let error = asked.reply.as_ref().err().map(ToString::to_string);
    let priced = asking.settings().price != Price::default();
    step.run.recorder.record_manipulator_call(ManipulatorCall {
        step: step.numbers.step,
        attempt: step.numbers.attempt,
        injection: hit.injection,
        operator: &injection.name,
        upstream: asking.upstream(),
        model: &asking.settings().model,
        template: &question.template,
        question: &asked.question,
        answer: asked.answer.as_ref(),
        error: error.as_deref(),
        changed: asked.changed.as_deref(),
        usage: asked.usage,
        cost: asked.usage.filter(|_| priced).map(|usage| asking.price(usage)),
        took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    })?;
    Ok(())
}
