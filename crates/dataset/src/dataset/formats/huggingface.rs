//! A folder as Hugging Face's `datasets` and its hub read it: a card, and for each of several formats a file of rows a
//! part. All rows of a task are in one part, whatever their format.

use std::borrow::Cow;

use super::{
    balance::SURPLUS,
    dpo::Dpo,
    format::{DiskLayout, ExportContext, ExportOptions, Format, Unfit, WrittenPiece},
    grpo::Grpo,
    prm::Prm,
    runs::RunsFormat,
    schema::Type,
    sft::Sft,
    sink::part_of,
};
use crate::dataset::{Sample, SampleKind};

/// What a folder holds if nothing else is asked for; the first is what a reader gets who names none.
const USUAL: [&dyn Format; 5] = [&RunsFormat, &Sft, &Grpo, &Dpo, &Prm];

/// Writes folders.
#[derive(Debug)]
pub(super) struct HuggingFace;

/// The formats of a folder.
pub(super) fn configs(options: &ExportOptions) -> &[&'static dyn Format] {
    if options.configs.is_empty() { &USUAL } else { &options.configs }
}

impl Format for HuggingFace {
    fn name(&self) -> &'static str {
        "huggingface"
    }
    fn description(&self) -> &'static str {
        "Hugging Face folder: card, and runs, sft, grpo, dpo, prm (or `--config`) as Parquet by part"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Folder
    }
    fn schema(&self) -> Type {
        Type::Json
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn wants_twin(&self) -> bool {
        true
    }
    fn wants_failures(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let part = part_of(sample);
        let mut pieces = Vec::new();
        let mut unfit = Unfit("no format of the folder takes it");
        for format in configs(context.options).iter().copied() {
            match rows(format, sample, context) {
                Ok(rows) => pieces.extend(rows.into_iter().map(|piece| WrittenPiece {
                    file: Cow::Borrowed(part),
                    of: Some(format),
                    ..piece
                })),
                Err(why) => unfit = why,
            }
        }
        if pieces.is_empty() { Err(unfit) } else { Ok(pieces) }
    }
}

/// What a sample becomes in one of the formats.
fn rows(format: &'static dyn Format, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
    if sample.kind == SampleKind::Clean && !format.takes_clean() {
        return Err(Unfit("a clean run"));
    }
    if sample.kind == SampleKind::Clean && !context.balance.is_exported(format.name(), &sample.id) {
        return Err(SURPLUS);
    }
    format.pieces(sample, context)
}

/// The formats of the folder that have no row of a sample, and why.
pub(super) fn left_out<'a>(
    sample: &'a Sample,
    context: &'a ExportContext<'_>,
) -> impl Iterator<Item = (&'static dyn Format, Unfit)> + 'a {
    configs(context.options).iter().filter_map(|format| Some((*format, rows(*format, sample, context).err()?)))
}
