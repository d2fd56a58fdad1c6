//! What a foreign format is to the export: a name, a shape on disk, and what one sample becomes in it.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    prompt::{AnswerForm, Prompt, PromptTemplate, Truncated},
    schema::Type,
};
use crate::dataset::{Sample, Split, lint::Rule};

/// A foreign format that can be written.
pub trait Format: std::fmt::Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// One line: what it is, and the base of its steps.
    fn about(&self) -> &'static str;
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
        /// What stands before the first piece.
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
    pub cut: Option<Truncated>,
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
        Self { file: Cow::Borrowed(""), content: Content::Row(value), cut: None, of: None }
    }

    /// A file of its own.
    pub fn file(name: String, text: Vec<u8>) -> Self {
        Self { file: name.into(), content: Content::Bytes(text), cut: None, of: None }
    }

    /// With what truncation left out.
    #[must_use]
    pub fn cut(mut self, cut: Option<Truncated>) -> Self {
        self.cut = cut;
        self
    }
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
    /// Longest prompt in estimated tokens.
    pub tokens: Option<usize>,
    /// Only this part of the dataset.
    pub split: Option<Split>,
    /// The share of wrong failures that is allowed in the mean, above 0 and below 1; `None` is 0.01.
    pub alpha: Option<f64>,
    /// Also labels that were verified under the former rule.
    pub former: bool,
    /// Also labels that were delivered and are not proven.
    pub unverified: bool,
    /// What lint's findings lead to.
    pub lint: Lint,
    /// The formats of a folder; empty for those that it has by itself.
    pub configs: Vec<&'static dyn Format>,
    /// Whether a folder's rows are JSON lines instead of Parquet.
    pub lines: bool,
    /// What a folder's card says of its licence, by the hub's short name.
    pub license: Option<String>,
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
        Ok(self.template.fill(sample, self.gold_answer, self.tokens, form))
    }
}
