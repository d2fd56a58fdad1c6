//! What a foreign format is to the export: a name, a shape on disk, and what one sample becomes in it.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    balance::{Balance, CleanRows},
    fit::{PromptBudget, TraceCut},
    prompt::{AnswerForm, Prompt, PromptAsking, PromptTemplate},
    render::Inputs,
    schema::Type,
};
use crate::dataset::{Sample, Split, lint::Rule};

/// A foreign format that can be written.
pub trait Format: std::fmt::Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// One line: what it is, and the base of its steps.
    fn description(&self) -> &'static str;
    /// How its pieces lie on disk.
    fn shape(&self) -> DiskLayout;
    /// What a line, a file, or the whole document looks like.
    fn schema(&self) -> Type;
    /// What the columns of its rows are, where the user's choices leave some out.
    fn columns(&self, _: &ExportOptions) -> Type {
        self.schema()
    }
    /// Whether clean runs have a place in it.
    fn takes_clean(&self) -> bool {
        false
    }
    /// Whether a model is trained on its rows: then parts of the dataset are never mixed in a file, and clean runs are no more
    /// than failures, unless the user says so.
    fn trains(&self) -> bool {
        false
    }
    /// Whether its rows hold the question that a tracer is asked.
    fn holds_question(&self) -> bool {
        false
    }
    /// Whether its rows say of an error which failure mode it is.
    fn names_modes(&self) -> bool {
        false
    }
    /// Whether one recorded run may be written in it: it then claims nothing about who erred.
    fn takes_recordings(&self) -> bool {
        false
    }
    /// Whether a sample has a place in it, as far as that can be said without making its pieces.
    ///
    /// # Errors
    /// [`Unfit`] when it has none.
    fn fits(&self, _: &Sample) -> Result<(), Unfit> {
        Ok(())
    }
    /// Whether a failure is written together with its clean twin.
    fn wants_twin(&self) -> bool {
        false
    }
    /// Whether a clean run is written together with the failures that it is the twin of.
    fn wants_failures(&self) -> bool {
        false
    }
    /// What one sample becomes.
    ///
    /// # Errors
    /// [`Unfit`] when it has no place in the format; it is counted, and the export goes on.
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit>;
}

/// How the pieces of a format lie on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskLayout {
    /// One file of rows: one JSON object a line, or Parquet where the file is named `.parquet`.
    Lines,
    /// One Parquet file of rows, whatever its name.
    Table,
    /// One JSON document: its beginning, the pieces with commas between, its end.
    Document {
        /// What stands before the first piece; `{samples}` in it is how many there will be.
        open: &'static str,
        /// What stands behind the last.
        close: &'static str,
    },
    /// A directory with a file a piece.
    Files,
    /// A directory with a card, and a file of rows for each of several formats and parts.
    Folder,
}

/// One written thing.
#[derive(Debug, Clone)]
pub struct WrittenPiece {
    /// The name of its file, for [`DiskLayout::Files`]; the part of the dataset, for [`DiskLayout::Folder`].
    pub file: Cow<'static, str>,
    /// What is written.
    pub content: Content,
    /// What truncation left out.
    pub cut: Option<TraceCut>,
    /// The length of its prompt, in estimated tokens.
    pub prompt: Option<usize>,
    /// Whose row it is, for [`DiskLayout::Folder`].
    pub of: Option<&'static dyn Format>,
}

/// What is written.
#[derive(Debug, Clone)]
pub enum Content {
    /// A row, or an element of a document.
    Row(Value),
    /// The bytes of a file.
    Bytes(Vec<u8>),
}

impl WrittenPiece {
    /// A row.
    pub fn row(value: Value) -> Self {
        Self { file: Cow::Borrowed(""), content: Content::Row(value), cut: None, prompt: None, of: None }
    }

    /// A file of its own.
    pub fn file(name: String, text: Vec<u8>) -> Self {
        Self { file: name.into(), content: Content::Bytes(text), cut: None, prompt: None, of: None }
    }

    /// A row that asks a tracer: it says which part of the dataset it is of, and what was left out of its prompt.
    pub(super) fn asking(mut row: Value, sample: &Sample, asked: &Prompt) -> Self {
        if let Some(fields) = row.as_object_mut() {
            fields.extend(split_field(sample));
            fields.extend(asked.cut.map(|cut| ("cut".to_owned(), serde_json::json!(cut))));
        }
        Self { cut: asked.cut, prompt: Some(asked.tokens), ..Self::row(row) }
    }
}

/// The part of the dataset that a row is of, as a field.
pub(super) fn split_field(sample: &Sample) -> Option<(String, Value)> {
    sample.split.map(|split| ("split".to_owned(), split.name().into()))
}

/// Why a sample has no place in a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit(pub &'static str);

/// What a format may look at beside the sample.
#[derive(Debug)]
pub struct ExportContext<'a> {
    /// How many samples were written before, 0-based.
    pub number: usize,
    /// The choices of the user.
    pub options: &'a ExportOptions,
    /// The clean twin of a failure, where the format wants it and the dataset has it.
    pub twin: Option<Sample>,
    /// The failures of a clean run, where the format wants them.
    pub failures: Vec<Sample>,
    /// The clean runs that formats which are trained on take.
    pub balance: &'a Balance,
}

/// The choices of the user.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// The attribution prompt.
    pub template: PromptTemplate,
    /// Whether the prompt tells the right answer.
    pub gold_answer: bool,
    /// How `sft` rows answer.
    pub answer: AnswerForm,
    /// What of their inputs steps show; `None` is [`Inputs::New`] in prompts and stepwise rows, and nothing in the formats of
    /// others, whose entries are replies.
    pub inputs: Option<Inputs>,
    /// Longest prompt.
    pub budget: Option<PromptBudget>,
    /// Which clean runs formats that are trained on take.
    pub clean: CleanRows,
    /// Whether all parts of the dataset go into one file, in formats that are trained on.
    pub one_file: bool,
    /// Only this part of the dataset.
    pub split: Option<Split>,
    /// The share of wrong failures that is allowed in the mean, above 0 and below 1; `None` is 0.01.
    pub alpha: Option<f64>,
    /// Also labels that were verified under a former rule.
    pub former: bool,
    /// Also labels that were delivered and are not proven.
    pub unverified: bool,
    /// Also planted errors that give themselves away.
    pub obvious: bool,
    /// Also failures whose culprit is a tool or a peer.
    pub servers: bool,
    /// Also errors whose failure mode is only declared, in formats that name modes.
    pub declared_modes: bool,
    /// The kinds of claims that failures may make (`definition` of their label).
    pub definitions: DefinitionChoice,
    /// Whether what is read is one recorded run, which goes out whatever its outcome and label.
    pub recording: bool,
    /// What lint's findings lead to.
    pub lint: Lint,
    /// The formats of a folder; empty for those that it has by itself.
    pub configs: Vec<&'static dyn Format>,
    /// Whether a folder's rows are JSON lines instead of Parquet.
    pub lines: bool,
    /// What a folder's card says of its licence, by the hub's short name.
    pub license: Option<String>,
}

/// Which kinds of claims go out: what was planted, what traces found by one rule or another, people's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DefinitionChoice {
    /// Whichever it is, but one.
    #[default]
    One,
    /// Those of these definitions.
    Of(Vec<String>),
    /// All, side by side.
    All,
}

/// What lint's findings lead to. Samples that were imported are as their source has them: what is wrong with them was
/// reported then, and refuses nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lint {
    /// A finding refuses the export, but for those of these rules.
    RefuseBut(Vec<Rule>),
    /// Lint is not asked.
    Ignore,
}

impl Lint {
    /// Whether what a rule finds stays behind.
    pub(super) fn refuses(&self, rule: Rule) -> bool {
        matches!(self, Self::RefuseBut(allowed) if !allowed.contains(&rule))
    }
}

impl Default for Lint {
    fn default() -> Self {
        Lint::RefuseBut(Vec::new())
    }
}

impl ExportOptions {
    /// The attribution prompt of a sample.
    ///
    /// # Errors
    /// [`Unfit`] for a run of which no step is known: there is nothing to ask about.
    pub(super) fn prompt(&self, sample: &Sample, form: AnswerForm) -> Result<Prompt, Unfit> {
        if sample.steps.is_empty() {
            return Err(Unfit("no step"));
        }
        let inputs = self.prompt_inputs();
        let asking = PromptAsking { gold_answer: self.gold_answer, inputs, budget: self.budget, form };
        Ok(self.template.fill(sample, asking))
    }

    /// What of their inputs steps show in prompts.
    pub(super) fn prompt_inputs(&self) -> Inputs {
        self.inputs_or(self.template.usual_inputs())
    }

    /// What of their inputs steps show in a format that usually shows this.
    pub(super) fn inputs_or(&self, usual: Inputs) -> Inputs {
        self.inputs.unwrap_or(usual)
    }
}
