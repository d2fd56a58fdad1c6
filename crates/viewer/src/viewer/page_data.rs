//! The types of what the page gets. What `show`, `diff` and `runs` print, too, has its type there.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{
    change::Pieces,
    listing::{ListingPlace, RunKind, RunRow},
    search::{FoundStep, FoundTexts},
    shown::{AttemptFacts, RunHead, StepFacts},
    step_view::TextBlock,
    suspected::SuspectedRow,
};
use crate::{
    dataset::{LabelledError, OfferedTool, SampleKind, Split, lint::Rule, statistics::Statistics},
    recording::{Annotation, KeepMark},
    trajectory::{InjectedError, LabelStatus, ReplyOrigin, StepIndex, Verdict},
};

/// What there is.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunTree<'a> {
    /// The newest runs, 1,000 at most.
    pub(super) runs: &'a [Arc<RunRow>],
    pub(super) campaigns: &'a [ListingPlace],
    pub(super) datasets: &'a [ListingPlace],
    /// How many runs there are.
    pub(super) total: usize,
    /// How many of them are executions of a trace.
    pub(super) trials: usize,
    /// The name of an annotator, where one looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) annotator: Option<&'a str>,
    /// The runs that it has annotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) annotated: Option<Vec<&'a str>>,
}

/// Runs that were asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FoundRuns<'a> {
    pub(super) rows: Vec<&'a Arc<RunRow>>,
    /// How many there are; the first 1,000 stand here.
    pub(super) total: usize,
    /// Where words were looked for in their texts: where those stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) texts: Option<FoundTexts>,
}

/// A run, a row a step. The rows are written when they are asked for first: ten thousand of them are not put together again for each
/// reader.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunPage<'a> {
    pub(super) head: PageHead<'a>,
    pub(super) dir: String,
    pub(super) plan: &'a Option<String>,
    /// The command that was run.
    pub(super) program: Option<&'a Vec<String>>,
    /// The run that its label was proven against.
    pub(super) twin: Option<String>,
    /// Where there is no twin: a run of the same program that went well.
    pub(super) like: Option<String>,
    pub(super) kind: Option<RunKind>,
    /// How sure its label is.
    pub(super) sure: Option<String>,
    /// How many of its first steps another record answered.
    pub(super) fork: Option<usize>,
    /// What a trace found.
    pub(super) trace: Option<String>,
    /// Whom methods name from the log alone.
    pub(super) suspected: Option<String>,
    /// The same by step: the methods.
    pub(super) suspects: Option<BTreeMap<StepIndex, Vec<String>>>,
    /// How many records of its log were read.
    pub(super) position: u64,
    pub(super) agents: &'a [String],
    /// Of agents that nothing named: the beginning of their prompt.
    pub(super) introduced: Vec<Option<String>>,
    /// What stands in a row.
    pub(super) columns: &'a [&'static str],
    #[serde(flatten)]
    pub(super) annotations: PageAnnotations,
    #[schemars(with = "Vec<Vec<Value>>")]
    pub(super) rows: &'a RawValue,
}

/// What is said of a run as a whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageHead<'a> {
    #[serde(flatten)]
    pub(super) head: RunHead<'a>,
    /// What can be done with it, by verb: `line`, or `why` not.
    pub(super) can: &'a Value,
    pub(super) kept: Option<KeepMark>,
}

/// What people say of a run, as far as who looks may see it.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct PageAnnotations {
    /// The name of an annotator, where one looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) annotator: Option<String>,
    /// What that annotator has said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) annotation: Option<Annotation>,
    /// To all others: the last word of everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) annotations: Option<Vec<Annotation>>,
    /// What an annotator of modes is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mode_questions: Option<Vec<ModeQuestion>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) annotations_unreadable: Option<String>,
}

/// Which mode a planted change shows.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModeQuestion {
    pub(super) step: StepIndex,
    pub(super) injection: u32,
    pub(super) agent: String,
    pub(super) side: &'static str,
    pub(super) pairs: Vec<PagePair>,
    pub(super) offered: Vec<OfferedMode>,
    /// What the annotator said before.
    pub(super) said: Option<GivenMode>,
}

/// A mode to choose.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OfferedMode {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
}

/// A mode that was chosen, or none.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GivenMode {
    pub(super) shown: Option<&'static str>,
    pub(super) why: String,
}

/// What was written for an annotator.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum WrittenAnnotation {
    /// Which step decided the run.
    Step(Annotation),
    /// Which mode a change shows.
    Mode { step: StepIndex, injection: u32, shown: Option<&'static str> },
}

/// A step, read.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageStep<'a> {
    #[serde(flatten)]
    pub(super) facts: StepFacts<'a>,
    /// What named the agent.
    pub(super) known_by: &'a str,
    /// The step that its request goes on from.
    pub(super) since: Option<StepIndex>,
    pub(super) request: Vec<PageBlock>,
    pub(super) request_bytes: usize,
    pub(super) edited_request: bool,
    pub(super) attempts: Vec<PageAttempt<'a>>,
    pub(super) tools: Vec<PageTool>,
    pub(super) changes: Vec<PageChange<'a>>,
    pub(super) quoted: QuotedSteps,
}

/// A message; of a long text its beginning, whose length is `bytes`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageBlock {
    #[serde(flatten)]
    pub(super) block: TextBlock,
    /// How long the whole text is, where this is its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<usize>,
    /// In a request: whether its agent has seen it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) known: Option<bool>,
}

/// An attempt of a step.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageAttempt<'a> {
    #[serde(flatten)]
    pub(super) facts: AttemptFacts<'a>,
    pub(super) edited: bool,
    pub(super) bytes: usize,
    /// Frames in which its body came.
    pub(super) events: usize,
    pub(super) finish_reason: Option<&'a String>,
    pub(super) request_headers: Option<&'a Vec<(String, String)>>,
    pub(super) reply_headers: Option<&'a Vec<(String, String)>>,
    pub(super) reply: Vec<PageBlock>,
}

/// A tool that is offered.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageTool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: Value,
}

/// What became of one side of a step.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageChange<'a> {
    /// `request` or `response`.
    pub(super) side: String,
    pub(super) planted: Vec<PlantedError<'a>>,
    pub(super) pairs: Vec<PagePair>,
}

/// An error that was planted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum PlantedError<'a> {
    /// As a run recorded it.
    Recorded(&'a InjectedError),
    /// As a sample has it.
    Sampled(&'a LabelledError),
}

/// What became of blocks.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum PagePair {
    /// So many are equal.
    Equal { equal: usize },
    /// One was edited.
    Edited { was: String, who: String, pieces: Pieces },
    /// One went.
    Gone { gone: PageBlock },
    /// One came.
    CaseResult { came: PageBlock },
}

/// Later steps whose request tells a step's reply again.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct QuotedSteps {
    /// `new`: what an injection put in; `all`: all that it says.
    pub(super) words: &'static str,
    pub(super) steps: Vec<QuotedStep>,
    /// Later steps that were not searched.
    pub(super) unread: usize,
}

/// Such a step.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct QuotedStep {
    pub(super) step: StepIndex,
    /// Whether it tells all of it.
    pub(super) whole: bool,
}

/// A body as it is stored; of a long one its beginning.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StoredBody {
    pub(super) bytes: usize,
    /// How many of them stand here.
    pub(super) shown: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// Where it is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base64: Option<String>,
}

/// Where words stand in a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FoundWords {
    pub(super) words: String,
    pub(super) steps: Vec<FoundStep>,
}

/// What methods of attribution say.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SuspectedRows<'a> {
    pub(super) rows: &'a [SuspectedRow],
}

/// A data set.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DatasetPage<'a> {
    pub(super) dir: String,
    pub(super) statistics: Option<Statistics>,
    pub(super) samples: Vec<SampleRow<'a>>,
    pub(super) findings: Vec<SampleFinding<'a>>,
    /// What the rules of the findings mean.
    pub(super) rules: HashMap<&'a str, &'a str>,
    pub(super) sure: &'a str,
}

/// A defect of a data set.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SampleFinding<'a> {
    pub(super) rule: Rule,
    pub(super) line: u64,
    pub(super) sample: &'a str,
    pub(super) what: &'a str,
    /// The step that its words name.
    pub(super) step: Option<u32>,
}

/// A sample in a line.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SampleRow<'a> {
    pub(super) id: String,
    pub(super) kind: SampleKind,
    pub(super) system: String,
    pub(super) task: String,
    pub(super) split: Option<Split>,
    pub(super) outcome: Verdict,
    pub(super) answer: String,
    pub(super) expected: String,
    pub(super) steps: usize,
    pub(super) line: u64,
    pub(super) status: Option<LabelStatus>,
    pub(super) errors: Vec<SampleError>,
    pub(super) suspected: Option<String>,
    pub(super) twin: Option<String>,
    /// The run that it was made of, where that is in the list.
    pub(super) run: Option<&'a str>,
}

/// An error of a sample's label.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SampleError {
    pub(super) agent: String,
    pub(super) step: Option<u32>,
    pub(super) mode: Option<String>,
}

/// A sample in the shape of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SamplePage<'a> {
    /// Of a run's head what a sample says.
    pub(super) head: Value,
    /// True.
    pub(super) sample: bool,
    /// How sure its label is.
    pub(super) sure: Option<String>,
    pub(super) suspected: Option<String>,
    pub(super) suspects: Option<BTreeMap<StepIndex, Vec<String>>>,
    pub(super) agents: Vec<String>,
    pub(super) columns: &'a [&'static str],
    pub(super) rows: Vec<Value>,
}

/// A step of a sample in the shape of a run's step.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SampleStepPage<'a> {
    pub(super) step: u32,
    pub(super) call: u32,
    pub(super) turn: u32,
    pub(super) agent: String,
    pub(super) instance: u32,
    /// Null: no sample says it.
    pub(super) known_by: (),
    pub(super) ambiguous: bool,
    pub(super) overlapping: bool,
    /// True.
    pub(super) sample: bool,
    /// Empty: what was planted stands at its changes.
    pub(super) injected: Vec<InjectedError>,
    pub(super) since: Option<u32>,
    pub(super) request: Vec<PageBlock>,
    pub(super) edited_request: bool,
    pub(super) attempts: [SampleAttempt<'a>; 1],
    pub(super) tools: Vec<&'a OfferedTool>,
    pub(super) changes: Vec<PageChange<'a>>,
    pub(super) quoted: QuotedSteps,
}

/// The attempt of a sample's step.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SampleAttempt<'a> {
    pub(super) attempt: u32,
    pub(super) status: Option<u16>,
    pub(super) origin: ReplyOrigin,
    pub(super) finish_reason: &'a Option<String>,
    pub(super) edited: bool,
    pub(super) exact: bool,
    pub(super) reply: Vec<PageBlock>,
}

/// Why there is no answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageError<'a> {
    pub(super) error: &'a str,
}
