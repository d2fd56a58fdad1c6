//! What a foreign trace says of a run, in our nouns, before it is recorded.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::{FieldNames, TraceAccount};
use crate::{
    surface::{Answer, Message, Tool},
    trajectory::{StepUnplaced, Usage, Verdict},
};

/// A format of traces.
pub trait ForeignTrace: std::fmt::Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// One line: what is read, and what a run is.
    fn description(&self) -> &'static str;
    /// The extensions of its files, by which they are taken from a directory.
    fn extensions(&self) -> &'static [&'static str];
    /// What their names hold besides.
    fn in_names(&self) -> &'static str {
        ""
    }
    /// What to type for a file that is none: by its first bytes.
    fn advice(&self, _beginning: &[u8]) -> Option<&'static str> {
        None
    }
    /// Where, beside a file, something more is said of its run; relative to the file's directory.
    fn companion_file(&self) -> Option<&'static str> {
        None
    }
    /// The member that holds the records of a document, where they are to be read one at a time.
    fn records(&self) -> Option<&'static str> {
        None
    }
    /// A reader of one import. `names`: what the user calls the fields of a log.
    fn reader(&self, names: &FieldNames) -> Box<dyn ForeignReader>;
}

/// Reads the documents of one import, in order.
pub trait ForeignReader {
    /// Takes one document in.
    ///
    /// # Errors
    /// Why it is none of the format; others are read on.
    fn take(&mut self, document: &Value, place: &TracePlace<'_>) -> Result<(), String>;
    /// How many runs without a model call were read, and are not held.
    fn empty(&self) -> u64 {
        0
    }
    /// The runs, once all is read.
    fn finish(self: Box<Self>, grouping: Grouping) -> Vec<ForeignRun>;
}

/// Where a document stands.
#[derive(Debug, Clone, Copy)]
pub struct TracePlace<'a> {
    /// The file's name, without its directory.
    pub file: &'a str,
    /// Its number among the files of the import, 0-based: names may be equal.
    pub number: usize,
    /// The line of a file of lines, 1-based.
    pub line: Option<u64>,
    /// What stands beside the file ([`ForeignTrace::companion_file`]).
    pub beside: Option<&'a Value>,
}

/// What of several traces is one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grouping {
    /// Each trace.
    #[default]
    Trace,
    /// All traces of a conversation or session, as they name it.
    Session,
    /// All that stands in a file.
    File,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ForeignDefect {
    /// The file.
    pub file: String,
    /// Its line, 1-based, where it is a file of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What is wrong.
    pub why: String,
}

/// A run, as a trace tells it.
#[derive(Debug, Clone, Default)]
pub struct ForeignRun {
    /// What tells it from every other run of its format.
    pub key: String,
    /// What people would call it; may be that of others too.
    pub label: String,
    /// The file that it began in, by its number.
    pub file: usize,
    /// What it was to do, as the trace says it.
    pub task: Option<String>,
    /// Where its calls went, as the trace says it.
    pub upstream: Option<String>,
    /// Its model calls, in the order of the trace.
    pub calls: Vec<ForeignCall>,
    /// What it achieved, and what says so.
    pub outcome: Option<(Verdict, String)>,
    /// What its requests are: as the trace holds them, or rebuilt.
    pub requests: &'static str,
    /// What of it has no place in the recording: of its calls together, and what belongs to none of them.
    pub account: TraceAccount,
}

/// A model call, as a trace tells it.
#[derive(Debug, Clone, Default)]
pub struct ForeignCall {
    /// When it began, in nanoseconds since 1970; `None` where the trace has no clock.
    pub began: Option<i64>,
    /// When it ended.
    pub ended: Option<i64>,
    /// Who made it; `None` where the trace names nobody.
    pub agent: Option<ForeignAgent>,
    /// The model that was asked for.
    pub model: String,
    /// What it was asked; `None` where the trace does not hold it.
    pub request: Option<ForeignRequest>,
    /// What it answered; `None` where the trace does not hold it.
    pub answer: Option<Answer>,
    /// The reply's id.
    pub reply_id: String,
    /// The model that answered, where it is named.
    pub reply_model: Option<String>,
    /// Why it stopped.
    pub finish_reason: Option<String>,
    /// Its tokens.
    pub usage: Option<Usage>,
    /// How it failed, if it did.
    pub failure: Option<ForeignFailure>,
    /// What of it no reader knows.
    pub unplaced: StepUnplaced,
}

/// Who made a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignAgent {
    /// The trace's name.
    pub name: String,
    /// Where it stands.
    pub evidence: String,
}

/// What a model was asked. Messages are shared: each call of a growing conversation holds those before it.
#[derive(Debug, Clone, Default)]
pub struct ForeignRequest {
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools on offer.
    pub tools: Arc<Vec<Tool>>,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignFailure {
    /// The HTTP status, where the trace has it.
    pub status: Option<u16>,
    /// What the trace says.
    pub why: String,
}
