//! Who&When (ICML 2025): one JSON file a failure, two layouts. Algorithm-generated files name the speaker in `name`,
//! hand-crafted ones in `role`, where one agent is logged under several remarks. Steps are 0-based entries of `history`.

use std::path::Path;

use serde_json::Value;

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    admit::culprit,
    foreign::Defects,
    history::{HistoryFormat, SpeakerField},
    render::Inputs,
    schema::{
        Field::{May, Needed},
        LATER_AGENTS, Type,
    },
};
use crate::dataset::Sample;

/// The algorithm-generated layout (CaptainAgent).
const GENERATED: HistoryFormat = HistoryFormat {
    format: "whowhen",
    speaker: SpeakerField::Name,
    definition: "human",
    system: "",
    outcome: Some("is_correct"),
    numbered: false,
};

/// The hand-crafted layout (Magentic-One).
const CRAFTED: HistoryFormat = HistoryFormat {
    format: "whowhen-hand-crafted",
    speaker: SpeakerField::Role,
    definition: "human",
    system: "",
    outcome: Some("is_corrected"),
    numbered: false,
};

/// What a file of the algorithm-generated layout holds.
const NAMED: Type = Type::Open(&[
    Needed("is_correct", Type::Flag),
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
        ])),
    ),
    Needed("mistake_agent", Type::Text),
    Needed("mistake_step", Type::Text),
    Needed("mistake_reason", Type::Text),
    LATER_AGENTS,
    May("system_prompt", Type::Map(&Type::Text)),
]);

/// What a file of the hand-crafted layout holds.
const ROLED: Type = Type::Open(&[
    Needed("is_corrected", Type::Flag),
    Needed("question", Type::Text),
    Needed("question_ID", Type::Text),
    May("level", Type::Json),
    Needed("ground_truth", Type::Text),
    Needed("history", Type::List(&Type::Open(&[Needed("content", Type::Text), Needed("role", Type::Text)]))),
    Needed("mistake_agent", Type::Text),
    Needed("mistake_step", Type::Text),
    Needed("mistake_reason", Type::Text),
    LATER_AGENTS,
]);

/// Directories of the published set, and the system that each is of. A file elsewhere says nothing of its system.
const SYSTEMS: &[(&str, &str)] = &[("Algorithm-Generated", "captain-agent"), ("Hand-Crafted", "magentic-one")];

/// Reads a file of either layout; its id is `whowhen-ag-12` or `whowhen-hc-12`. `path`: where it lies.
pub(super) fn read(value: &Value, stem: &str, path: &Path, defects: &mut Defects) -> Option<Sample> {
    let first = value.pointer("/history/0");
    let named = first.is_some_and(|entry| entry.get("name").is_some());
    let generated = named || value.get("is_correct").is_some();
    let (layout, prefix) = if generated { (GENERATED, "ag") } else { (CRAFTED, "hc") };
    let within = |dir: &str| path.components().any(|part| part.as_os_str() == dir);
    let system = SYSTEMS.iter().find(|(dir, _)| within(dir)).map_or("", |(_, system)| system);
    HistoryFormat { system, ..layout }.read(value, &format!("whowhen-{prefix}-{stem}"), defects)
}

/// A sample of ours in the algorithm-generated layout; `None` where it has no labelled step.
pub(super) fn written(sample: &Sample) -> Option<Value> {
    GENERATED.write(sample, Inputs::None)
}

/// Writes the algorithm-generated layout.
#[derive(Debug)]
pub(super) struct Whowhen;

/// Writes the hand-crafted layout.
#[derive(Debug)]
pub(super) struct WhowhenHandCrafted;

impl Format for Whowhen {
    fn name(&self) -> &'static str {
        GENERATED.format
    }
    fn description(&self) -> &'static str {
        "Who&When, algorithm-generated layout: one file a failure, speakers in `name`, steps from 0"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Files
    }
    fn schema(&self) -> Type {
        NAMED
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        file(GENERATED, sample, context)
    }
}

impl Format for WhowhenHandCrafted {
    fn name(&self) -> &'static str {
        CRAFTED.format
    }
    fn description(&self) -> &'static str {
        "Who&When, hand-crafted layout: one file a failure, speakers in `role`, steps from 0"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Files
    }
    fn schema(&self) -> Type {
        ROLED
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        file(CRAFTED, sample, context)
    }
}

/// One pretty file, indented by four as theirs are; named as the file it came from, else by the sample's id.
fn file(layout: HistoryFormat, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
    culprit(sample)?;
    let value = layout.write(sample, context.options.inputs_or(Inputs::None)).ok_or(Unfit("no labelled step"))?;
    let own = sample.extra.get("format").and_then(Value::as_str) == Some(layout.format);
    let name = sample.extra.get("file").and_then(Value::as_str).filter(|_| own);
    let name = name.map_or_else(|| format!("{}.json", sample.id), str::to_owned);
    Ok(vec![WrittenPiece::file(name, super::pretty(&value, b"    "))])
}
