//! Halves (Who&When): in which half of the segment is the decisive error? Until one step is left.

use serde_json::{Value, json};

use super::{Dialogue, LoggedRun, Method, Pause, PredictedStep, View, predicted, prompt::LogPrompt, whowhen};

/// Halves the log.
#[derive(Debug)]
pub(super) struct BinarySearch;

impl Method for BinarySearch {
    fn name(&self) -> &'static str {
        "binary-search"
    }

    fn description(&self) -> &'static str {
        "which half holds the error, until one step is left (Who&When)"
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
        let Some(mut last) = run.turns.len().checked_sub(1) else {
            return Err(Pause::Abstain(super::Abstention::Inapplicable("the run has no step".to_owned())));
        };
        if view.compat {
            return whowhen::binary_search(run, dialogue).map(|found| vec![found]);
        }
        let mut first = 0;
        let mut reason = String::new();
        while first < last {
            let middle = first + (last - first) / 2;
            let question = || segment(run, view, first, middle, last);
            let (upper, why) = dialogue.ask(question, half)?;
            (first, last) = if upper { (first, middle) } else { (middle + 1, last) };
            reason = why;
        }
        let step = run.turns.get(first).map_or(0, |turn| turn.step);
        Ok(vec![PredictedStep::at(run, step, reason)])
    }
}

fn segment(run: &LoggedRun, view: View<'_>, first: usize, middle: usize, last: usize) -> super::JudgeQuestion {
    let number = |at: usize| run.turns.get(at).map_or(0, |turn| turn.step);
    let asked = format!(
        "The log above is the segment from step {} to step {}. Is the decisive error in its upper half, steps {} to {}, or in \
         its lower half, steps {} to {}? Answer with one JSON object: {{\"reason\": why, \"half\": \"upper\" or \"lower\"}}.",
        number(first),
        number(last),
        number(first),
        number(middle),
        number(middle + 1),
        number(last)
    );
    let schema = json!({
        "type": "object",
        "properties": {"reason": {"type": "string"}, "half": {"type": "string", "enum": ["upper", "lower"]}},
        "required": ["reason", "half"],
        "additionalProperties": false,
    });
    LogPrompt {
        turns: run.turns.iter().skip(first).take(last + 1 - first).collect(),
        pivot: Some(middle - first),
        schema: Some(schema),
        // With an odd count of steps the upper half is the longer one.
        longest_way: json!({"reason": "", "half": "upper"}).to_string(),
        ..LogPrompt::about_whole_log(run, asked)
    }
    .question(view)
}

/// Whether the upper half was named, and why. Words that name both halves name none.
fn half(words: &str) -> Result<(bool, String), String> {
    let fields = predicted::object(words).unwrap_or_default();
    let reason = fields.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    let said = fields.get("half").and_then(Value::as_str).unwrap_or(words).to_lowercase();
    match (said.contains("upper"), said.contains("lower")) {
        (true, false) => Ok((true, reason)),
        (false, true) => Ok((false, reason)),
        _ => Err("it names neither the upper nor the lower half alone".to_owned()),
    }
}
