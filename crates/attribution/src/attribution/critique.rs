//! The note that a blamed agent is given: from a prediction or from a file, and never with the right answer in it.

use serde::{Deserialize, Serialize};

use super::{leak, methods::PredictedStep};
use crate::trajectory::{AgentName, FailureMode, Label, Step, StepIndex};

/// How each note begins.
const OPENING: &str = "Review note on your previous attempt: ";
/// What anybody could say of any attempt.
const GENERIC: &str =
    "check your work. Go through what was asked and what you were given, step by step, before you answer.";
/// What is known of a step that executions found, where nobody says more.
const SHOWN: &str = "executions showed that another reply at this point makes the outcome right; the reply that was given here was wrong";
/// The source of a critique that rests on a label.
pub const LABEL_SOURCE: &str = "label";
/// Longest note, in characters: it is a hint, no second prompt.
const LONGEST: usize = 2000;

/// What is said to whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Critique {
    /// The blamed agent.
    pub agent: AgentName,
    /// Its step.
    pub step: StepIndex,
    /// The note, its opening included.
    pub note: String,
    /// Who says so: a method, or `file`.
    pub source: String,
}

/// Why there is no critique.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCritique {
    /// The prediction names no step of the run.
    #[error("it names no step of the run{}", .0.map(|step| format!(": step {step}")).unwrap_or_default())]
    NoStep(Option<StepIndex>),
    /// There is nothing to say.
    #[error("it says nothing that could be told the agent")]
    Empty,
    /// It would tell the agent the right answer.
    #[error("it gives the right answer away, which the agent was not told: a repair by it would show nothing")]
    GivesAway,
    /// The file has another form.
    #[error(
        "{0}: expected the rows of `aegis attribute --out`, {{\"step\": N, \"note\": \"…\"}}, or words together with --at STEP"
    )]
    Form(String),
}

impl Critique {
    /// What a method says of the run, as a note. Of its words as many are taken as do not hold the right answer.
    ///
    /// # Errors
    /// [`NoCritique`].
    pub fn from_prediction(
        found: &PredictedStep,
        source: &str,
        steps: &[Step],
        gold: Option<&str>,
    ) -> Result<Self, NoCritique> {
        let quotes = found.evidence.iter().filter(|evidence| evidence.stands && Some(evidence.step) == found.step);
        let mode = mode_words(found.failure_mode.as_deref(), [&found.reason, &found.fix]);
        let said = CritiqueWords {
            reason: mode.as_deref().unwrap_or(&found.reason),
            fix: &found.fix,
            quote: quotes.map(|evidence| evidence.quote.as_str()).next(),
        };
        said.critique(found.step, source, steps, gold)
    }

    /// What the label of a traced run says: the step whose correction turned the outcome, shown by executions.
    ///
    /// # Errors
    /// [`NoCritique`]. The label names no step of the run.
    pub fn from_label(label: &Label, steps: &[Step], gold: Option<&str>) -> Result<Self, NoCritique> {
        let error = label.errors.first().map(|entry| &entry.error);
        let mode = error.and_then(|error| error.failure_mode).map(FailureMode::code);
        let mode = mode_words(mode, ["", ""]);
        let said = CritiqueWords { reason: SHOWN, fix: mode.as_deref().unwrap_or_default(), quote: None };
        said.critique(error.map(|error| error.step), LABEL_SOURCE, steps, gold)
    }

    /// What a file says: rows of predictions (the first one), a step with a note, or plain words about the step `at`.
    ///
    /// # Errors
    /// [`NoCritique`].
    pub fn from_file(
        text: &str,
        at: Option<StepIndex>,
        steps: &[Step],
        gold: Option<&str>,
    ) -> Result<Self, NoCritique> {
        let first = text.trim();
        if !first.starts_with('{') {
            let step = at.ok_or_else(|| NoCritique::Form("it holds words, and no step".to_owned()))?;
            return CritiqueWords { reason: first, fix: "", quote: None }.critique(Some(step), "file", steps, gold);
        }
        let line: CritiqueLine = serde_json::Deserializer::from_str(first)
            .into_iter()
            .next()
            .unwrap_or_else(|| Ok(CritiqueLine::default()))
            .map_err(|error| NoCritique::Form(error.to_string()))?;
        if let (Some(step), Some(note)) = (line.step.or(at), &line.note) {
            return CritiqueWords { reason: note, fix: "", quote: None }.critique(Some(step), "file", steps, gold);
        }
        let found = line.predictions.first().ok_or_else(|| NoCritique::Form("it predicts nothing".to_owned()))?;
        let quote = found.evidence.iter().find(|evidence| evidence.stands && Some(evidence.step) == found.step);
        let mode = mode_words(found.failure_mode.as_deref(), [&found.reason, &found.fix]);
        let said = CritiqueWords {
            reason: mode.as_deref().unwrap_or(&found.reason),
            fix: &found.fix,
            quote: quote.map(|quote| quote.quote.as_str()),
        };
        said.critique(at.or(found.step), line.method.as_deref().unwrap_or("file"), steps, gold)
    }
}

/// What a failure mode says of a reply, where nothing else does: a tracer names the mode and gives no reason.
fn mode_words(mode: Option<&str>, said: [&str; 2]) -> Option<String> {
    let mode = FailureMode::parse(mode?).ok()?;
    said.iter().all(|said| said.trim().is_empty()).then(|| {
        let (name, meaning) = (mode.name(), mode.meaning());
        format!("it shows this kind of error: {name}, that is, somebody {meaning}")
    })
}

/// The note that says nothing in particular.
pub(super) fn generic() -> String {
    format!("{OPENING}{GENERIC}")
}

/// A line of a file of critiques: a row of `attribute`, or words.
#[derive(Debug, Default, Deserialize)]
struct CritiqueLine {
    step: Option<StepIndex>,
    note: Option<String>,
    method: Option<String>,
    #[serde(default)]
    predictions: Vec<CritiqueReply>,
}

#[derive(Debug, Deserialize)]
struct CritiqueReply {
    step: Option<StepIndex>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    fix: String,
    failure_mode: Option<String>,
    #[serde(default)]
    evidence: Vec<CritiqueQuote>,
}

#[derive(Debug, Deserialize)]
struct CritiqueQuote {
    step: StepIndex,
    quote: String,
    #[serde(default)]
    stands: bool,
}

/// What there is to say.
struct CritiqueWords<'a> {
    reason: &'a str,
    fix: &'a str,
    quote: Option<&'a str>,
}

impl CritiqueWords<'_> {
    fn critique(
        &self,
        step: Option<StepIndex>,
        source: &str,
        steps: &[Step],
        gold: Option<&str>,
    ) -> Result<Critique, NoCritique> {
        let at = steps.iter().find(|known| Some(known.step) == step).ok_or(NoCritique::NoStep(step))?;
        let quote = self.quote.map(|quote| format!("You wrote: \"{quote}\".")).unwrap_or_default();
        let sentence = |text: &str| {
            let text = text.trim();
            if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
        };
        let known = step_input(at);
        let unsaid = |text: &str| gold.map_or_else(|| text.to_owned(), |gold| leak::without_answer(text, &known, gold));
        let gives_away = |text: &str| gold.is_some_and(|gold| leak::gives_away(text, &known, gold));
        let (reason, fix) = (sentence(&unsaid(self.reason)), sentence(&unsaid(self.fix)));
        // Half a quotation is none.
        let quote = if gives_away(&quote) { String::new() } else { quote };
        let words: Vec<String> = [reason, quote, fix].into_iter().filter(|words| !words.is_empty()).collect();
        let words = words.join(" ");
        // An answer of several words may be told from one sentence into the next.
        if gives_away(&words)
            || (words.is_empty()
                && [self.reason, self.fix, self.quote.unwrap_or_default()].map(gives_away).contains(&true))
        {
            return Err(NoCritique::GivesAway);
        }
        if words.is_empty() {
            return Err(NoCritique::Empty);
        }
        let note: String = format!("{OPENING}{words}").chars().take(LONGEST).collect();
        let (agent, source) = (at.attribution.agent.clone(), source.to_owned());
        Ok(Critique { agent, step: at.step, note, source })
    }
}

/// What the agent reads at the step: what it was asked. Its recorded reply is not in the request that is asked again.
fn step_input(step: &Step) -> String {
    let asked = crate::surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
    let asked =
        asked.and_then(|surface| crate::surface::door::request(surface, &step.request).ok()).unwrap_or_default();
    asked.messages.iter().map(crate::surface::Message::text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::methods::QuotedEvidence;

    fn step(number: u32) -> Step {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"How many? There are 96 and 12."}]}"#;
        let reply = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"96 - 12 = 94"},"finish_reason":"stop"}]}"#;
        let attempt = crate::trajectory::Attempt {
            attempt: 0,
            at: String::new(),
            status: Some(200),
            cause: None,
            ending: None,
            reply: reply.into(),
            reply_with_logprobs: None,
            reply_delivered: None,
            streamed: false,
            first_byte_us: None,
            last_byte_us: None,
            usage: None,
            uninspected: None,
            exact: true,
            origin: crate::trajectory::ReplyOrigin::default(),
            proxy_error: None,
        };
        Step {
            step: number,
            call: number,
            turn: number,
            attribution: crate::recording::sample::agent("solver"),
            surface: "openai_chat".to_owned(),
            method: "POST".to_owned(),
            path: "/v1/chat/completions".to_owned(),
            request: body.into(),
            request_sent: None,
            attempts: vec![attempt],
            injected: Vec::new(),
            overlapping: false,
            unplaced: crate::trajectory::StepUnplaced::default(),
        }
    }

    #[test]
    fn a_mode_alone_is_told_in_its_words() {
        let found = PredictedStep { step: Some(0), failure_mode: Some("FM-2.6".into()), ..PredictedStep::default() };
        let note = Critique::from_prediction(&found, "mine", &[step(0)], None).expect("a note").note;
        let said =
            "it shows this kind of error: reasoning-action mismatch, that is, somebody acts against its own reasoning.";
        assert_eq!(note, format!("{OPENING}{said}"));
        let row = r#"{"method": "mine", "predictions": [{"agent": "a", "step": 0, "failure_mode": "FM-2.6"}]}"#;
        assert_eq!(Critique::from_file(row, None, &[step(0)], None).expect("a note").note, note);
        let said = PredictedStep { reason: "the sum is wrong".into(), ..found };
        let note = Critique::from_prediction(&said, "mine", &[step(0)], None).expect("a note").note;
        assert_eq!(note, format!("{OPENING}the sum is wrong."));
    }

    #[test]
    fn a_note_says_what_was_wrong_and_never_the_answer() {
        let steps = [step(0), step(1)];
        let found = PredictedStep {
            step: Some(1),
            reason: "the subtraction is wrong".to_owned(),
            fix: "It is 84".to_owned(),
            evidence: vec![QuotedEvidence { step: 1, quote: "96 - 12 = 94".to_owned(), stands: true }],
            ..PredictedStep::default()
        };
        let of = |found: &PredictedStep, gold| {
            Critique::from_prediction(found, "a2p", &steps, gold).map(|critique| critique.note)
        };
        let whole = "Review note on your previous attempt: the subtraction is wrong. You wrote: \"96 - 12 = 94\".";
        assert_eq!(of(&found, None), Ok(format!("{whole} It is 84.")));
        assert_eq!(of(&found, Some("84")), Ok(whole.to_owned()), "the fix is left out");
        let unquoted = "Review note on your previous attempt: the subtraction is wrong. It is 84.";
        assert_eq!(
            of(&found, Some("94")),
            Ok(unquoted.to_owned()),
            "its reply does not stand in what it is asked again"
        );
        assert_eq!(of(&found, Some("96")), Ok(format!("{whole} It is 84.")), "what it was asked is no secret");
        let leaking = PredictedStep { reason: "it should be 84".to_owned(), evidence: Vec::new(), ..found.clone() };
        assert_eq!(of(&leaking, Some("84")), Err(NoCritique::GivesAway));
        for reason in ["ANSWER:84", "40+44=84", "It is 84.0"] {
            let leaking = PredictedStep { reason: reason.to_owned(), ..leaking.clone() };
            assert_eq!(of(&leaking, Some("84")), Err(NoCritique::GivesAway), "{reason}");
        }
        let half =
            PredictedStep { reason: "Think again. The total is 84.".to_owned(), fix: String::new(), ..leaking.clone() };
        assert_eq!(of(&half, Some("84")), Ok(format!("{OPENING}Think again.")));
        let nowhere = PredictedStep { step: Some(9), ..found.clone() };
        assert_eq!(of(&nowhere, None), Err(NoCritique::NoStep(Some(9))));
        assert_eq!(of(&PredictedStep { step: Some(1), ..PredictedStep::default() }, None), Err(NoCritique::Empty));
    }

    #[test]
    fn files_are_rows_notes_or_words() {
        let steps = [step(0), step(1)];
        let row = r#"{"id":"r","method":"rules","predictions":[{"step":1,"reason":"wrong","evidence":[{"step":1,"quote":"94","stands":true}]}]}"#;
        for (text, at, expected) in [
            (row, None, Ok((1, "wrong. You wrote: \"94\".", "rules"))),
            (row, Some(0), Ok((0, "wrong. You wrote: \"94\".", "rules"))),
            (
                "{\"step\": 0, \"note\": \"Look again\"}\n{\"step\": 1, \"note\": \"no\"}",
                None,
                Ok((0, "Look again.", "file")),
            ),
            ("Look again.\n", Some(1), Ok((1, "Look again.", "file"))),
            ("Look again.", None, Err(())),
            ("{\"predictions\": []}", None, Err(())),
            ("{\"step\": 5, \"note\": \"x\"}", None, Err(())),
            ("{oops", Some(1), Err(())),
            ("", Some(1), Err(())),
        ] {
            let found = Critique::from_file(text, at, &steps, None);
            let said = found.as_ref().map(|found| {
                (found.step, found.note.strip_prefix(OPENING).expect("its opening"), found.source.as_str())
            });
            assert_eq!(said.map_err(|_| ()), expected, "{text}");
        }
    }
}
