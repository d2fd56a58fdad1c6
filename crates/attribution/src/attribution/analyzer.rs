//! An analyzer model proposes corrections (`AgenTracer`, section 3.2): minimal, local, without giving the answer away.
//!
//! It is asked one question a step through the proxy, as a run of its own, so every question and answer is recorded.
//! It may be told what the verifier said and the right answer, each only where the user says so. What it proposes is
//! checked before it is tried; what does not pass is asked for once more, then the step is left out with the reason.

use std::{fmt::Write, sync::Arc};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::{Correction, CorrectionOrigin, Corrections, TraceJournal, leak, line::ModelLine};
use crate::{
    execution::{ExecutionError, ListeningProxy, Meter},
    proxy::{NegotiatingUpstream, upstream::Upstream},
    replay::{AtFork, answer_text, reworded, step_request_text},
    surface::{Conversation, Message, OpenaiChat, ParameterSettings, RequiredFormat, Role, door},
    trajectory::{FailureMode, RunId, Step, Trajectory},
};

/// Longest text of a step that the analyzer is shown, in characters.
const SHOWN: usize = 4000;
/// Longest text of an earlier step, in characters.
const SHOWN_EARLIER: usize = 800;
/// Longest text of all earlier steps together, in characters: a question of a long run costs what one of a short run does.
const SHOWN_BEFORE: usize = 12_000;
/// How often a step is asked about.
const TRIES: usize = 2;

const INSTRUCTION: &str = "You examine one step of a failed run of a multi-agent system. Say whether this step itself \
    introduces an error, given what its agent was asked. If it does, write the reply that the agent should have given: \
    change as little as possible, keep its form, and correct only what this agent could have known from what it was \
    asked. Never state the final result of the task in a step that does not compute it. Answer by the JSON schema: \
    `wrong`, `suspicion` (0 to 1: how likely this step decides the failure), `reply` (the corrected reply, or empty), \
    `mode` (the code of the kind of error from the list below, or empty), `reason` (one sentence).";

/// An analyzer model.
#[derive(Debug, Clone)]
pub struct Analyzer {
    /// Where it is asked.
    pub upstream: Arc<dyn Upstream>,
    /// Its name.
    pub model: String,
    /// The right answer, where it may know it.
    pub gold: Option<String>,
    /// What the verifier said, where it may know that.
    pub feedback: Option<String>,
    /// Parameters that the user sets by hand.
    pub parameters: ParameterSettings,
}

/// What the analyzer says of a step.
#[derive(Debug, Deserialize)]
struct AnalyzerReply {
    wrong: bool,
    #[serde(default)]
    suspicion: f64,
    #[serde(default)]
    reply: String,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    reason: String,
}

impl Analyzer {
    /// Asks about every step of a run, within the budget; the questions are recorded as the run `own`.
    ///
    /// # Errors
    /// [`ExecutionError`] when that run cannot be recorded. What the analyzer gets wrong is no error: the step is left out.
    pub async fn corrections(
        &self,
        through: &ListeningProxy,
        run: &Trajectory,
        own: &RunId,
        meter: &Arc<Meter>,
        journal: &TraceJournal,
    ) -> Result<Corrections, ExecutionError> {
        let counted = meter.metered(Arc::clone(&self.upstream), &Arc::default());
        let upstream = NegotiatingUpstream::over(Arc::new(counted), None);
        let line = ModelLine::open(through, own, upstream, "analyzer").await?;
        let mut corrections = Corrections::default();
        let (mut answered, mut failed) = (false, None);
        for (index, step) in run.steps.iter().enumerate() {
            if meter.is_spent() {
                corrections.left_out.insert(step.step, "the budget ended before the analyzer was asked".to_owned());
                continue;
            }
            if answer_text(step).is_empty() {
                corrections.left_out.insert(step.step, "its reply has no text to correct".to_owned());
                continue;
            }
            let earlier = run.steps.get(..index).unwrap_or_default();
            match self.correct(&line, journal, step, earlier, &mut answered).await {
                Ok((said, body)) => {
                    let (at, source) = (AtFork::Instead(body), CorrectionOrigin::Analyzer);
                    let suspicion = Some(said.suspicion.clamp(0.0, 1.0));
                    // A proposal that names no mode of the taxonomy is none.
                    let mode = FailureMode::parse(&said.mode).ok();
                    corrections.add(step, Correction { at, source, reason: said.reason, suspicion, mode });
                }
                Err(why) => {
                    corrections.left_out.insert(step.step, why.clone());
                    failed = Some(why);
                    // It was asked several times, and nobody was there.
                    if !answered {
                        break;
                    }
                }
            }
        }
        corrections.unanswered = failed.filter(|_| !answered);
        line.hang_up(through)?;
        Ok(corrections)
    }

    /// A correction of a step that passes every check, or why there is none.
    async fn correct(
        &self,
        line: &ModelLine,
        journal: &TraceJournal,
        step: &Step,
        earlier: &[Step],
        answered: &mut bool,
    ) -> Result<(AnalyzerReply, Bytes), String> {
        let before = answer_text(step);
        let mut refused = String::new();
        for _ in 0..TRIES {
            let body = self.ask(line, journal, step, earlier, &refused).await?;
            *answered = true;
            let said = match read_reply(&body) {
                Ok(said) => said,
                Err(why) => {
                    refused = why;
                    continue;
                }
            };
            if !said.wrong {
                return Err(format!("the analyzer finds nothing wrong: {}", said.reason));
            }
            match leak::check(&before, &said.reply, self.gold.as_deref()) {
                Ok(()) => {
                    let body = reworded(step, &said.reply).map_err(|error| error.to_string())?;
                    return Ok((said, body));
                }
                Err(unfit) => refused = unfit.to_string(),
            }
        }
        Err(format!("the analyzer gave no correction that can be used: {refused}"))
    }

    /// Asks what no earlier start of the trace asked.
    async fn ask(
        &self,
        line: &ModelLine,
        journal: &TraceJournal,
        step: &Step,
        earlier: &[Step],
        refused: &str,
    ) -> Result<Bytes, String> {
        let question = Conversation {
            model: self.model.clone(),
            messages: vec![
                Message::text_of(Role::System, instruction()),
                Message::text_of(Role::User, self.question(step, earlier, refused)),
            ],
            format: RequiredFormat::JsonSchema { name: "correction".to_owned(), schema: schema() },
            ..Conversation::default()
        };
        let body = self.parameters.apply(OpenaiChat::compose_request(&question, Some(0.0)));
        if let Some(answer) = journal.answer(&body) {
            return Ok(answer.into());
        }
        let answer = line.ask(body.clone()).await?;
        Ok(journal.add_answer(&body, &answer).map_err(|error| format!("its answer cannot be kept: {error}"))?.into())
    }

    fn question(&self, step: &Step, earlier: &[Step], refused: &str) -> String {
        let mut text = String::new();
        if let Some(feedback) = &self.feedback {
            let _ = write!(text, "The run failed. The verifier says: {}\n\n", shown(feedback, SHOWN_EARLIER));
        }
        if let Some(gold) = &self.gold {
            let _ = write!(text, "The right final result is: {}\n\n", shown(gold, SHOWN_EARLIER));
        }
        text.push_str(&before(earlier));
        let (asked, said) = (step_request_text(step), answer_text(step));
        let agent = &step.attribution.agent;
        let _ = write!(
            text,
            "Step {} by {agent} is to be examined. It was asked:\n{}\n\n",
            step.step,
            shown(&asked, SHOWN)
        );
        let _ = write!(text, "It replied:\n{}\n", shown(&said, SHOWN));
        if !refused.is_empty() {
            let _ = write!(text, "\nYour last correction could not be used: {refused}. Give another.\n");
        }
        text
    }
}

fn read_reply(body: &[u8]) -> Result<AnalyzerReply, String> {
    let reply = door::reply(&OpenaiChat, body, false).map_err(|error| error.to_string())?;
    let text = reply.answers.first().map(|answer| answer.message.text()).unwrap_or_default();
    // An upstream that takes no schema answers in a fence, or among words.
    let json = text.find('{').and_then(|from| text.get(from..)).unwrap_or_default();
    let said = serde_json::Deserializer::from_str(json).into_iter().next();
    let said = said.unwrap_or_else(|| serde_json::from_str(&text));
    said.map_err(|error| format!("its answer does not fit the schema: {error}"))
}

/// What was said before, the nearest steps where there is no room for all.
fn before(earlier: &[Step]) -> String {
    let told = |step: &Step| {
        let said = shown(&answer_text(step), SHOWN_EARLIER);
        format!("Step {} by {}:\n{said}\n\n", step.step, step.attribution.agent)
    };
    let (mut room, mut texts) = (SHOWN_BEFORE, Vec::new());
    for text in earlier.iter().rev().map(told) {
        let length = text.chars().count();
        if length > room {
            texts.push("[Earlier steps are left out.]\n\n".to_owned());
            break;
        }
        room -= length;
        texts.push(text);
    }
    texts.reverse();
    texts.concat()
}

/// What it is told, with the failure modes that it may name.
fn instruction() -> String {
    let mut text = format!("{INSTRUCTION}\n");
    for mode in FailureMode::ALL {
        let _ = write!(text, "\n{} {}: {}", mode.code(), mode.name(), mode.meaning());
    }
    text
}

fn schema() -> serde_json::Value {
    let codes: Vec<&str> = FailureMode::ALL.iter().map(|mode| mode.code()).chain([""]).collect();
    json!({
        "type": "object",
        "properties": {
            "wrong": {"type": "boolean"},
            "suspicion": {"type": "number"},
            "reply": {"type": "string"},
            "mode": {"type": "string", "enum": codes},
            "reason": {"type": "string"},
        },
        "required": ["wrong", "suspicion", "reply", "mode", "reason"],
        "additionalProperties": false,
    })
}

/// The end of a long text says more than its middle: both ends are shown.
fn shown(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let start: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(length - half).collect();
    format!("{start}\n[…]\n{end}")
}
