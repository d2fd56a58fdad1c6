//! Foreign formats, one file each: what they are read from and written to. [`ALL`] is the list. A format is one file,
//! its `mod`, one line of the list, a schema in `schemas/` and a row of `docs/formats.md`. [`import()`] reads those that hold
//! labels of others, [`export()`] writes all of them.

mod admit;
mod aegis;
mod aegis_entry;
mod agentracer;
mod annotated;
mod atif;
mod balance;
mod card;
mod chat;
mod codetracebench;
mod contrastive;
mod dpo;
mod export;
mod fit;
mod foreign;
mod format;
mod grpo;
mod har;
mod history;
mod huggingface;
mod import;
mod inspect;
mod selected_claims;
mod manifest;
mod mast;
mod mpbench;
mod otlp;
mod own;
mod prm;
mod prompt;
mod recorded;
mod refused;
mod render;
mod rows;
mod runs;
mod schema;
mod sft;
mod shred;
mod sink;
mod published;
mod traceelephant;
mod tracer;
mod trained;
mod trail;
mod verl;
mod whowhen;
mod whowhen_pro;

#[cfg(test)]
mod formats_tests;
#[cfg(test)]
mod selected_claims_tests;
#[cfg(test)]
mod left_out_tests;
#[cfg(test)]
mod provenance_tests;
#[cfg(test)]
mod mpbench_tests;
#[cfg(test)]
mod published_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tracer_tests;
#[cfg(test)]
mod unlabelled_tests;

pub use annotated::{SpokenError, UnspokenError, read_annotated, write_annotated};
pub use balance::{Balance, CleanRows};
pub use dpo::preference;
pub use export::{config, export, format, json_schema};
pub use fit::{BudgetUnit, PromptBudget, TraceCut};
pub use foreign::{Defect, RULES};
pub use format::{
    Content, DefinitionChoice, DiskLayout, ExportContext, ExportOptions, Format, Lint, Unfit, WrittenPiece,
};
pub use import::{ImportError, ImportSource, Imported, import, read_foreign};
pub use manifest::{CutTotal, ExportManifest, Prompts};
pub use prompt::{AnswerForm, Prompt, PromptAsking, PromptTemplate, PromptTemplateError};
pub use recorded::{export_recording, is_recording};
pub use refused::ExportError;
pub use render::Inputs;
pub use rows::{FileHash, RowError};
pub use schema::{Field, Type};
pub use selected_claims::SelectedClaims;
pub use shred::Misfit;
pub use tracer::{TracerPrompt, TracerPromptError};
pub use trained::row_ids;

/// Every format that is written.
pub const ALL: &[&dyn Format] = &[
    &aegis::Aegis,
    &whowhen::Whowhen,
    &whowhen::WhowhenHandCrafted,
    &agentracer::Agentracer,
    &mast::Mast,
    &sft::Sft,
    &verl::Verl,
    &grpo::Grpo,
    &dpo::Dpo,
    &contrastive::Contrastive,
    &prm::Prm,
    &runs::RunsFormat,
    &runs::Parquet,
    &huggingface::HuggingFace,
    &inspect::Inspect,
    &atif::Atif,
    &otlp::Otlp,
    &har::Har,
];

/// JSON over several lines, indented by these bytes, with a line end.
fn pretty(value: &serde_json::Value, indent: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Writing a value into memory cannot fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    bytes.push(b'\n');
    bytes
}
