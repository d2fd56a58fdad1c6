//! What came of a replay: which records were served, which calls went live, where the program left the record.

use hyper::Request;
use serde::Serialize;

use super::{Difference, OtherValue};
use crate::{
    proxy::upstream::{Asker, SentBody},
    surface,
    trajectory::{AgentName, Call, StepIndex, Usage},
};

/// What came of a replay or of a prefix.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct ReplayReport {
    /// Replies that came from the record, by step and attempt.
    pub served: Vec<ServedReply>,
    /// Steps of this run that a live upstream answered.
    pub live: Vec<StepIndex>,
    /// Tokens of the served replies: they were paid for when the record was made.
    pub saved: Usage,
    /// Requests that the record could not answer.
    pub missed: Vec<Departure>,
    /// Requests that are no steps of the record, and were refused: what was only fetched, and calls of which a record of an earlier
    /// version holds none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedRequest>,
    /// Where the run left the record before its fork point; such a run proves nothing.
    pub diverged: Option<Departure>,
    /// Steps of the record that were to be served and were not asked for.
    pub unused: Vec<StepIndex>,
    /// Steps of this run whose question was asked several times at once and answered differently, without a later request
    /// that quotes the answer: whether each asker got what it got then cannot be known.
    pub unsure: Vec<StepIndex>,
    /// Steps that were found by masking a value which differs, and which may be what the program asks about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_values: Vec<OtherValue>,
}

/// A reply that came from the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ServedReply {
    /// Step of this run.
    pub step: StepIndex,
    /// Step of the record.
    pub recorded: StepIndex,
    /// Attempt of the recorded step.
    pub attempt: u32,
    /// How the request fits the recorded one.
    pub fit: Fit,
    /// Whether the reply is what once passed, byte for byte; not so where secrets were masked or a body was cut.
    pub exact: bool,
    /// Whether another reply was given in the place of the recorded one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
}

/// A request that a record cannot answer, because it holds none of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RefusedRequest {
    /// Its method.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// Why the record holds none.
    pub why: &'static str,
}

impl RefusedRequest {
    pub(super) fn from_request(request: &Request<SentBody>) -> Self {
        let (method, path) = (request.method().as_str(), request.uri().path());
        let why = if surface::unread_call(method, path).is_none() {
            "it asks no model anything, and a record holds calls only"
        } else if request.extensions().get::<Asker>().is_some() {
            "the record was made by a version that did not record such calls"
        } else {
            "its body was too long to be looked for"
        };
        Self { method: method.to_owned(), path: path.to_owned(), why }
    }
}

impl std::fmt::Display for RefusedRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, path, why } = self;
        write!(formatter, "{method} {path} is no recorded model call: {why}")
    }
}

/// How a request fits the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// The same bytes.
    Bytes,
    /// The same canonical form: order of keys and declared volatile parts may differ.
    Canonical,
    /// The same bytes but for secrets that the record masks.
    Masked,
    /// The same but for values that change from call to call in the record itself.
    Volatile,
    /// The same but for results of tools, where these were allowed to differ.
    ToolResults,
    /// Whatever was asked: the agent's replies are set.
    Set,
}

/// A request that left the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Departure {
    /// Step of this run.
    pub step: StepIndex,
    /// The agent, as far as it is known.
    pub agent: AgentName,
    /// Its call.
    pub call: Call,
    /// Method and path, where no surface reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// How often the record answers this request; more than 0 when all of its answers were used up.
    pub answers: usize,
    /// The record that comes nearest.
    pub nearest: Option<Nearest>,
    /// Whether nothing but results of tools differs from the nearest record.
    pub tool_results_only: bool,
    /// Whether the record gives results of tools, too.
    pub tools_recorded: bool,
    /// Whether it quotes answers to equal questions, asked at once, in another order than the nearest record does.
    pub swapped: bool,
    /// Whether it differs from the nearest record in the order of its words, and that record holds the answers of branches as they
    /// finished.
    pub joined_otherwise: bool,
    /// A rules file that would have taken the first difference for none, where it looks as if each run made it anew.
    pub rule: Option<String>,
    /// The request's canonical form, which no record has.
    #[serde(skip)]
    pub form: String,
}

/// The record that comes nearest to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Nearest {
    /// Step of the record.
    pub step: StepIndex,
    /// Its agent.
    pub agent: AgentName,
    /// The agent's call.
    pub call: Call,
    /// The first difference; `None` when it is the same request.
    pub difference: Option<Difference>,
}

impl std::fmt::Display for Departure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { step, agent, call, unread, answers, nearest, tool_results_only, rule, .. } = self;
        match unread {
            Some(unread) => write!(formatter, "step {step} ({unread}, by `{agent}`) is not in the record")?,
            None => write!(formatter, "step {step} (call {call} of `{agent}`) is not in the record")?,
        }
        if *answers > 0 {
            return write!(formatter, ": the same request is there {answers} time(s), and each was used");
        }
        let Some(Nearest { step, agent, call, difference }) = nearest else {
            return write!(formatter, ", which holds no such call at all");
        };
        write!(formatter, ": nearest is step {step} (call {call} of `{agent}`)")?;
        if let Some(difference) = difference {
            write!(formatter, ", where {difference}")?;
        }
        if *tool_results_only {
            write!(formatter, "; only results of tools differ: ")?;
            if self.tools_recorded {
                write!(
                    formatter,
                    "equal calls came in another order or at another time (`--timing recorded` keeps both), or "
                )?;
            }
            write!(formatter, "the tools ran again (`--tool-results any` goes on)")?;
        } else if self.swapped {
            let why = "equal questions, asked at once, got each other's answers, and nothing tells them apart";
            write!(formatter, "; {why}")?;
        } else if self.joined_otherwise {
            let why = "branches that are joined as they finish came in another order";
            write!(formatter, "; {why}")?;
        } else if difference.as_ref().is_some_and(|difference| difference.reordered) {
            let why = "a set? Python orders it anew in each process unless PYTHONHASHSEED is set";
            write!(formatter, "; the same words in another order: {why}")?;
        } else if rule.is_some() {
            write!(formatter, "; if each run makes that anew, a rule says so (`--rules FILE`)")?;
        }
        Ok(())
    }
}
