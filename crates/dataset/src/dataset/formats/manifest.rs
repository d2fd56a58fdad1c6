//! What an export says that it wrote.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    AnswerForm, ExportOptions, Format, Inputs, PromptBudget, SelectedClaims, Unfit, format::WrittenPiece,
    rows::FileHash,
};
use crate::{
    dataset::{Sample, task_sets},
    surface::account::{ReadState, RunAccount},
};

/// The format of the manifest.
const MANIFEST: u32 = 1;

/// What was written; it lies beside it as `NAME.manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ExportManifest {
    /// Format of this manifest.
    pub format: u32,
    /// The foreign format.
    pub to: &'static str,
    /// Samples read.
    pub read: u64,
    /// Samples written.
    pub written: u64,
    /// Rows or files written; some formats make none or several of a sample.
    pub pieces: u64,
    /// Samples without a place in the format, by the reason.
    pub left_out: BTreeMap<String, u64>,
    /// Of a folder: samples that one of its formats has no place for, by format and reason; others may have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out_of: BTreeMap<String, BTreeMap<String, u64>>,
    /// Manipulators whose failures were left out because they give themselves away, each with what tells it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gives_itself_away: BTreeMap<String, String>,
    /// How sure the failures are, and which of them were kept for it.
    pub claims: SelectedClaims,
    /// Samples that were written with a label, by the kind of claim that it makes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub definitions: BTreeMap<String, u64>,
    /// Planted errors of samples that were written of which it is not shown whether the failure needs them: the format names the
    /// others.
    #[serde(skip_serializing_if = "is_none")]
    pub not_shown: u64,
    /// Samples of tasks whose authors ask that they stay out of published text, by task set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keep_private: BTreeMap<&'static str, u64>,
    /// How many steps of the samples that were written had been read when they were recorded.
    pub account: RunAccount,
    /// Those of them that had not been read whole, by sample and step, in the words of `aegis show`: a format may have no place
    /// for it. Steps of the twins and failures that stand in the rows of others are among them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub not_whole: BTreeMap<String, BTreeMap<u32, String>>,
    /// What prompts show and how long they are, where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Prompts>,
    /// Prompts that were cut to size.
    pub cut: CutTotal,
    /// Each file with its bytes and hash.
    pub files: BTreeMap<String, FileHash>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_text(form: &AnswerForm) -> bool {
    *form == AnswerForm::Text
}

/// How a tracer is asked in the rows, so that it can be asked in the same words later, and how long prompts are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Prompts {
    /// The user's own template, or the name of a shipped one; none is the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Whether they tell the right answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gold_answer: bool,
    /// How the tracer answers.
    #[serde(default, skip_serializing_if = "is_text")]
    pub answer: AnswerForm,
    /// What of their inputs steps show.
    pub inputs: Inputs,
    /// How long they were allowed to be.
    pub budget: Option<PromptBudget>,
    /// The longest, in estimated tokens.
    pub longest_tokens: usize,
}

/// The steps of a sample that had not been read whole when they were recorded or imported, by their numbers.
pub(super) fn not_whole(sample: &Sample) -> BTreeMap<u32, String> {
    sample.steps.iter().filter_map(|step| Some((step.step, step.account.clone()?))).collect()
}

/// Truncation over all samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct CutTotal {
    /// Prompts.
    pub prompts: u64,
    /// Steps of whose input only beginning and end are left.
    pub shortened_inputs: u64,
    /// Steps whose input is gone.
    pub dropped_inputs: u64,
    /// Steps of which only beginning and end are left.
    pub shortened_steps: u64,
    /// Steps that are gone.
    pub dropped_steps: u64,
}

impl ExportManifest {
    /// Of nothing yet.
    pub(super) fn new(format: &'static str, claims: SelectedClaims) -> Self {
        Self {
            format: MANIFEST,
            to: format,
            read: 0,
            written: 0,
            pieces: 0,
            left_out: BTreeMap::new(),
            left_out_of: BTreeMap::new(),
            gives_itself_away: claims.giveaways.clone(),
            claims,
            definitions: BTreeMap::new(),
            not_shown: 0,
            keep_private: BTreeMap::new(),
            account: RunAccount::default(),
            not_whole: BTreeMap::new(),
            prompts: None,
            cut: CutTotal::default(),
            files: BTreeMap::new(),
        }
    }

    /// Counts a sample of a folder that has no row in one of its formats.
    pub(super) fn leave_out_of(&mut self, format: &dyn Format, why: Unfit) {
        let reasons = self.left_out_of.entry(format.name().to_owned()).or_default();
        *reasons.entry(why.0.to_owned()).or_default() += 1;
    }

    /// Counts a sample that was written.
    pub(super) fn wrote(&mut self, sample: &Sample) {
        self.written += 1;
        let stated = sample.steps.iter().map(|step| step.account.as_deref());
        stated.for_each(|words| self.account.add_stated(words.unwrap_or(ReadState::Whole.words())));
        self.name_not_whole(sample);
        if let Some(truth) = &sample.label {
            *self.definitions.entry(truth.definition.clone()).or_default() += 1;
            self.not_shown += truth.not_shown.len() as u64;
        }
        if let Some((set, _)) = task_sets::keep_private(&sample.task) {
            *self.keep_private.entry(set).or_default() += 1;
        }
    }

    /// Names the steps of a sample that had not been read whole: one that is written, or stands in the row of another.
    pub(super) fn name_not_whole(&mut self, sample: &Sample) {
        let steps = not_whole(sample);
        if !steps.is_empty() {
            self.not_whole.insert(sample.id.clone(), steps);
        }
    }

    /// Counts a piece.
    pub(super) fn count(&mut self, piece: &WrittenPiece, options: &ExportOptions) {
        self.pieces += 1;
        if let Some(tokens) = piece.prompt {
            let prompts = self.prompts.get_or_insert_with(|| Prompts {
                template: options.template.recorded(),
                gold_answer: options.gold_answer,
                // Only `sft` has rows that answer by a call.
                answer: if self.to == "sft" { options.answer } else { AnswerForm::Text },
                inputs: options.prompt_inputs(),
                budget: options.budget,
                longest_tokens: 0,
            });
            prompts.longest_tokens = prompts.longest_tokens.max(tokens);
        }
        if let Some(cut) = piece.cut {
            self.cut.prompts += 1;
            self.cut.shortened_inputs += cut.shortened_inputs as u64;
            self.cut.dropped_inputs += cut.dropped_inputs as u64;
            self.cut.shortened_steps += cut.shortened_steps as u64;
            self.cut.dropped_steps += cut.dropped_steps as u64;
        }
    }
}
