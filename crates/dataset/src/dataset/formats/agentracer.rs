//! AgenTracer's rows: the Who&When shape with a number in every entry. Its own data is Parquet; here it is JSON, one
//! row a line. Steps are 0-based entries of `history`.

use serde_json::Value;

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    admit::culprit,
    foreign::Defects,
    history::{HistoryFormat, SpeakerField},
    render::{Inputs, spoken},
    schema::{
        Field::{May, Needed},
        LATER_AGENTS, Type,
    },
};
use crate::dataset::{Sample, lint};

const LAYOUT: HistoryFormat = HistoryFormat {
    format: "agentracer",
    speaker: SpeakerField::Name,
    definition: "earliest_flip",
    system: "metagpt",
    outcome: None,
    numbered: true,
};

/// Words of the pipeline that show in tampered traces.
const LEAKS: &[&str] = &["_attacked_solution"];

/// Reads a row.
pub(super) fn read(value: &Value, id: &str, defects: &mut Defects) -> Option<Sample> {
    let sample = LAYOUT.read(value, id, defects)?;
    let texts = || sample.steps.iter().map(spoken);
    if let Some(word) = LEAKS.iter().find(|word| texts().any(|text| text.contains(**word))) {
        defects.add("origin-leak", format!("`{word}`"));
    }
    if texts().any(|text| lint::holds_machine_path(&text)) {
        defects.add("path-leak", "an absolute path");
    }
    let doubled = sample.steps.iter().enumerate().find(|(place, step)| {
        let before = sample.steps.get(..*place).unwrap_or_default();
        let text = spoken(step);
        !text.trim().is_empty() && before.iter().any(|other| other.agent == step.agent && spoken(other) == text)
    });
    if let Some((place, step)) = doubled {
        defects.add("doubled-entry", format!("history[{place}] of `{}`", step.agent));
    }
    Some(sample)
}

/// What a row holds.
const ROW: Type = Type::Open(&[
    Needed("question", Type::Text),
    Needed("question_ID", Type::Text),
    May("level", Type::Json),
    Needed("ground_truth", Type::Text),
    Needed(
        "history",
        Type::List(&Type::Open(&[
            Needed("content", Type::Text),
            Needed("role", Type::Text),
            Needed("name", Type::Text),
            Needed("step", Type::Whole),
        ])),
    ),
    Needed("mistake_agent", Type::Text),
    Needed("mistake_step", Type::Text),
    Needed("mistake_reason", Type::Text),
    May("system_prompt", Type::Map(&Type::Text)),
    May("is_correct", Type::Flag),
    May("is_corrected", Type::Flag),
    May("model_prediction", Type::Json),
    LATER_AGENTS,
]);

/// Writes rows.
#[derive(Debug)]
pub(super) struct Agentracer;

impl Format for Agentracer {
    fn name(&self) -> &'static str {
        LAYOUT.format
    }
    fn description(&self) -> &'static str {
        "AgenTracer rows: history entries with their number, label agent and step from 0"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Lines
    }
    fn schema(&self) -> Type {
        ROW
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        culprit(sample)?;
        let value = LAYOUT.write(sample, context.options.inputs_or(Inputs::None)).ok_or(Unfit("no labelled step"))?;
        Ok(vec![WrittenPiece::row(value)])
    }
}
