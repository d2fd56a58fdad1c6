//! What a method says, and how a judge's words become it.

use serde::Serialize;
use serde_json::{Value, json};

use super::{LoggedRow, LoggedRun};
use crate::{
    score::{Guess, PredictedAnswer, mode_key, read},
    trajectory::FailureMode,
};

/// One culprit that a method names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PredictedStep {
    /// The agent: canonical where one of that name speaks, else as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The step, 0-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Share of votes, or another number that orders the method's own predictions; no probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// A failure mode that the judge named; a guess, never a label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_mode: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What would repair it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
    /// Words of the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<QuotedEvidence>,
    /// Where agent and step contradict each other or the log: both are kept as said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
    /// Who speaks at the step, where that is somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_of_step: Option<String>,
}

/// Words of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct QuotedEvidence {
    /// The step that the words are said to be of.
    pub step: u32,
    /// The words.
    pub quote: String,
    /// Whether they stand there.
    pub stands: bool,
}

impl PredictedStep {
    /// A turn of the run, blamed.
    pub fn at(run: &LoggedRun, step: u32, reason: impl Into<String>) -> Self {
        let agent = run.turn(step).map(|turn| turn.agent.clone());
        Self { agent, step: Some(step), reason: reason.into(), ..Self::default() }
    }

    /// The same with a number that orders it.
    #[must_use]
    pub fn scored(self, score: f64) -> Self {
        Self { score: Some(score), ..self }
    }

    /// The same with words of the log.
    #[must_use]
    pub fn quoting(mut self, run: &LoggedRun, step: u32, quote: &str) -> Self {
        let quote = quote.trim();
        if !quote.is_empty() {
            let stands =
                run.turn(step).is_some_and(|turn| stands(&turn.words_and_calls(), quote) || stands(&turn.given, quote));
            self.evidence.push(QuotedEvidence { step, quote: quote.to_owned(), stands });
        }
        self
    }
}

/// Whether a text holds a quote, blanks and case aside.
pub(super) fn stands(text: &str, quote: &str) -> bool {
    let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let quote = bare(quote.trim_matches(|c: char| matches!(c, '"' | '\'' | '“' | '”' | '…')));
    !quote.is_empty() && bare(text).contains(&quote)
}

/// The form in which judges name a culprit.
pub(super) fn schema() -> Value {
    let modes: Vec<&str> = FailureMode::ALL.iter().map(|mode| mode.code()).chain([""]).collect();
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "reason": text(), "agent": text(), "step": {"type": "integer"}, "quote": text(), "fix": text(),
            "failure_mode": {"type": "string", "enum": modes},
        },
        "required": ["reason", "agent", "step", "quote", "fix", "failure_mode"],
        "additionalProperties": false,
    })
}

/// What a method answers.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodAnswer {
    /// Alternatives, the likeliest first; never none.
    Ranked(Vec<PredictedStep>),
    /// Errors that are all meant; none says that nobody erred.
    Set(Vec<PredictedStep>),
}

impl MethodAnswer {
    /// What is named, in order.
    pub fn steps(&self) -> &[PredictedStep] {
        match self {
            Self::Ranked(steps) | Self::Set(steps) => steps,
        }
    }
}

/// Reads a judge's words: the last JSON object that names somebody, a tag, or labelled lines. Of several that it names the
/// first.
pub(super) fn culprit(run: &LoggedRun, words: &str) -> Result<PredictedStep, String> {
    let guess = match read::answer(words) {
        PredictedAnswer::Unparsed(why) => return Err(why),
        answer => answer.claimed().first().cloned().ok_or("it names nobody")?,
    };
    let fields = object(words).unwrap_or_default();
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let found = guessed(run, &guess)?;
    let found = PredictedStep {
        reason: Some(text("reason")).filter(|said| !said.is_empty()).unwrap_or_else(|| spoken_reason(words)),
        fix: text("fix"),
        ..found
    };
    Ok(match found.step {
        Some(step) => found.quoting(run, step, &text("quote")),
        None => found,
    })
}

/// Reads the words of who was asked for one error: where it names several, all of them are meant.
pub(super) fn culprits(run: &LoggedRun, words: &str) -> Result<MethodAnswer, String> {
    match read::answer(words) {
        PredictedAnswer::Set(all) if all.len() > 1 => {
            Ok(MethodAnswer::Set(all.iter().map(|guess| guessed(run, guess)).collect::<Result<_, _>>()?))
        }
        _ => culprit(run, words).map(|found| MethodAnswer::Ranked(vec![found])),
    }
}

/// Reads the words of a tracer: a set, nobody, or a ranking. It counts steps as the row does.
pub(super) fn traced(run: &LoggedRun, row: &LoggedRow, words: &str) -> Result<MethodAnswer, String> {
    let place = |step: i64| u32::try_from(step).map_or(step, |step| i64::from(row.place(step)));
    let one = |guess: &Guess| guessed(run, &Guess { step: guess.step.map(place), ..guess.clone() });
    let all = |guesses: &[Guess]| guesses.iter().map(one).collect::<Result<Vec<_>, _>>();
    Ok(match read::answer(words) {
        PredictedAnswer::Unparsed(why) => return Err(why),
        PredictedAnswer::Set(guesses) => MethodAnswer::Set(all(&guesses)?),
        PredictedAnswer::Ranked(guesses) => MethodAnswer::Ranked(all(&guesses)?),
    })
}

/// A guess, held against the run.
fn guessed(run: &LoggedRun, guess: &Guess) -> Result<PredictedStep, String> {
    let step = guess.step.map(|step| u32::try_from(step).map_err(|_| format!("{step} is no step"))).transpose()?;
    if guess.agent.is_none() && step.is_none() {
        return Err("it names neither agent nor step".to_owned());
    }
    let written = guess.agent.as_deref();
    let known = written.and_then(|written| run.agent(written));
    let speaker = step.and_then(|step| run.turn(step)).map(|turn| turn.agent.as_str());
    let agent = known.or(written).or(speaker).map(str::to_owned);
    let conflict = match (step, speaker, written, known) {
        (Some(step), None, ..) => Some(format!("the run has no step {step}")),
        (_, _, Some(written), None) => Some(format!("nobody called `{written}` speaks in the run")),
        (Some(step), Some(speaker), Some(_), Some(known)) if speaker != known => {
            Some(format!("step {step} is {speaker}'s, not {known}'s"))
        }
        _ => None,
    };
    let mode = guess.mode.as_deref().map(mode_key).filter(|mode| FailureMode::parse(mode).is_ok());
    Ok(PredictedStep {
        agent_of_step: speaker.filter(|speaker| agent.as_deref() != Some(*speaker)).map(str::to_owned),
        agent,
        step,
        failure_mode: mode,
        conflict,
        ..PredictedStep::default()
    })
}

/// The last JSON object of a text.
pub(in crate::attribution) fn object(words: &str) -> Option<serde_json::Map<String, Value>> {
    let said = words.rsplit_once("</think>").map_or(words, |(_, said)| said);
    if let Ok(Value::Object(fields)) = serde_json::from_str(said.trim()) {
        return Some(fields);
    }
    let starts = said.match_indices('{').take(64);
    let read = |(at, _): (usize, &str)| {
        let mut values = serde_json::Deserializer::from_str(said.get(at..)?).into_iter::<Value>();
        match values.next()? {
            Ok(Value::Object(fields)) => Some((at + values.byte_offset(), fields)),
            _ => None,
        }
    };
    let mut last: Option<(usize, serde_json::Map<String, Value>)> = None;
    for start in starts {
        // What stands inside an object is no later one.
        if last.as_ref().is_none_or(|(end, _)| start.0 >= *end) {
            last = read(start).or(last);
        }
    }
    last.map(|(_, fields)| fields)
}

/// The reason of an answer in lines.
fn spoken_reason(words: &str) -> String {
    let after = words.split_once("Reason for Mistake:").or_else(|| words.split_once("Reason:"));
    after.map(|(_, reason)| reason.trim().to_owned()).unwrap_or_default()
}
