//! A panel (ECHO, arXiv 2510.04886): analysts from lenient to strict read the log in layers, vote with their confidence, and
//! where no step has half of the votes they hear each other and vote once more.

use serde_json::{Value, json};

use super::{
    Dialogue, LoggedRun, Method, Pause, PredictedStep, View, fused, predicted,
    prompt::{LogPrompt, form},
};

/// Who sits on the panel.
const ANALYSTS: [&str; 5] = [
    "You are a lenient analyst: only a step that is plainly wrong, with the words to show it, is an error.",
    "You look at facts and numbers: what was misread, miscalculated or made up, and where it first appears.",
    "You look at plans and instructions: which decision sent the others the wrong way.",
    "You look at hand-overs: what an agent was told and did not use, or knew and did not say.",
    "You are a strict analyst: a step that should have been better is a candidate, and the earliest such step weighs most.",
];

/// Five analysts and a vote.
#[derive(Debug)]
pub(super) struct Panel;

impl Method for Panel {
    fn name(&self) -> &'static str {
        "panel"
    }

    fn description(&self) -> &'static str {
        "five analysts vote with their confidence, and once more where they disagree (ECHO)"
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        let first = vote(run, view, dialogue, &[])?;
        let counted = fused::counted(&first);
        if counted.first().and_then(|found| found.score).is_some_and(|share| share >= 0.5) {
            return Ok(counted);
        }
        let said: Vec<String> = first
            .iter()
            .map(|(found, _)| {
                let step = found.step.map_or_else(|| "no step".to_owned(), |step| format!("step {step}"));
                format!("{} at {step}: {}", found.agent.as_deref().unwrap_or("nobody"), found.reason)
            })
            .collect();
        Ok(fused::counted(&vote(run, view, dialogue, &said)?))
    }
}

/// One round: each analyst's answer, and the weight that it gives itself.
fn vote(
    run: &LoggedRun,
    view: View<'_>,
    dialogue: &mut Dialogue<'_>,
    before: &[String],
) -> Result<Vec<(PredictedStep, f64)>, Pause> {
    let mut votes = Vec::new();
    for (seat, analyst) in ANALYSTS.iter().enumerate() {
        votes.push(dialogue.ask(|| question(run, view, seat, analyst, before), |words| read(run, words))?);
    }
    Ok(votes)
}

fn question(run: &LoggedRun, view: View<'_>, seat: usize, analyst: &str, before: &[String]) -> super::JudgeQuestion {
    let heard = if before.is_empty() {
        String::new()
    } else {
        format!("The panel said before:\n- {}\nYou may keep your view or take another.\n", before.join("\n- "))
    };
    let asked = format!(
        "{heard}Which agent made the decisive error, and at which step?\n{} Add \"confidence\": a number from 0 to 1.",
        form()
    );
    let mut schema = predicted::schema();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("confidence".to_owned(), json!({"type": "number"}));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.push("confidence".into());
    }
    // In a dry run everybody names another step.
    let step = run.turns.get(seat % run.turns.len().max(1)).map_or(0, |turn| turn.step);
    let longest_way = super::prompt::culprit_of(run, step);
    LogPrompt { particular: analyst, schema: Some(schema), longest_way, ..LogPrompt::about_whole_log(run, asked) }
        .question(view)
}

/// An answer and its weight; without a confidence that is a number from 0 to 1, a half.
fn read(run: &LoggedRun, words: &str) -> Result<(PredictedStep, f64), String> {
    let found = predicted::culprit(run, words)?;
    let fields = predicted::object(words).unwrap_or_default();
    let confidence = fields.get("confidence").and_then(Value::as_f64).filter(|weight| (0.0..=1.0).contains(weight));
    Ok((found, confidence.unwrap_or(0.5)))
}
