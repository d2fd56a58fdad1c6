//! One question a step (Who&When): is the last of these steps an error that derails the run? The first yes ends it.

use serde_json::{Value, json};

use super::{
    Abstention, Dialogue, LoggedRun, LoggedTurn, Method, Pause, PredictedStep, View, predicted, prompt::LogPrompt,
    whowhen,
};

const ASKED: &str = "Does this step contain an error that hinders the run or leads it to a wrong solution? Do not be overly \
    critical: only errors that clearly derail the run count, and only errors that this step makes itself, not those that it \
    was handed. Answer with one JSON object: {\"reason\": why or why not, \"error\": true or false, \"quote\": its wrong \
    words, copied from the log, or \"\", \"fix\": what it should have said instead, or \"\"}.";

/// Judges the steps one after the other.
#[derive(Debug)]
pub(super) struct StepByStep;

impl Method for StepByStep {
    fn name(&self) -> &'static str {
        "step-by-step"
    }

    fn description(&self) -> &'static str {
        "a question a step until one is an error (Who&When)"
    }

    fn is_public(&self) -> bool {
        true
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        scan(run, view, dialogue, |_| true).map(|found| vec![found])
    }
}

/// The first of these steps that is judged an error.
pub(super) fn scan(
    run: &LoggedRun,
    view: View<'_>,
    dialogue: &mut Dialogue<'_>,
    which: impl Fn(&LoggedTurn) -> bool,
) -> Result<PredictedStep, Pause> {
    if view.compat {
        return whowhen::step_by_step(run, dialogue, which);
    }
    for (at, turn) in run.turns.iter().enumerate().filter(|(_, turn)| which(turn)) {
        let question = || {
            LogPrompt {
                turns: run.turns.iter().take(at + 1).collect(),
                pivot: Some(at),
                schema: Some(schema()),
                longest_way: json!({"reason": "", "error": false, "quote": "", "fix": ""}).to_string(),
                ..LogPrompt::about_whole_log(
                    run,
                    format!("The log ends with step {}, by {}. {ASKED}", turn.step, turn.agent),
                )
            }
            .question(view)
        };
        if let Some(found) = dialogue.ask(question, |words| judged(run, turn, words))? {
            return Ok(found);
        }
    }
    Err(Pause::Abstain(Abstention::NothingFound("no step was judged to be an error".to_owned())))
}

fn schema() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {"reason": text(), "error": {"type": "boolean"}, "quote": text(), "fix": text()},
        "required": ["reason", "error", "quote", "fix"],
        "additionalProperties": false,
    })
}

/// What was said of one step.
fn judged(run: &LoggedRun, turn: &LoggedTurn, words: &str) -> Result<Option<PredictedStep>, String> {
    let fields = predicted::object(words).ok_or("it holds no JSON object")?;
    let error = match fields.get("error") {
        Some(Value::Bool(error)) => *error,
        Some(Value::String(word)) if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("yes") => true,
        Some(Value::String(word)) if word.eq_ignore_ascii_case("false") || word.eq_ignore_ascii_case("no") => false,
        _ => return Err("it has no `error` that is true or false".to_owned()),
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    Ok(error.then(|| {
        let found = PredictedStep::at(run, turn.step, text("reason")).quoting(run, turn.step, text("quote"));
        PredictedStep { fix: text("fix").to_owned(), ..found }
    }))
}
