//! Foreign formats, one file each: what they are read from and written to. [`ALL`] is the list; a format is one file and
//! one line of it. [`import()`] reads the four that hold labels of others, [`export()`] writes all of them.

mod admit;
mod aegis;
mod agentracer;
mod atif;
mod chat;
mod contrastive;
mod dpo;
mod export;
mod foreign;
mod gold;
mod grpo;
mod har;
mod history;
mod import;
mod inspect;
mod mast;
mod otlp;
mod prm;
mod prompt;
mod sft;
mod sink;
mod verl;
mod whowhen;

#[cfg(test)]
mod formats_tests;
#[cfg(test)]
mod testing;

pub use export::{
    Context, CutTotal, ExportError, ExportManifest, Format, Lint, Options, Piece, Shape, Unfit, export, format,
};
pub use foreign::{Defect, RULES};
pub use gold::gold;
pub use import::{ImportError, Imported, Source, import};
pub use prompt::{Cut, Prompt, Template, TemplateError};
pub use sink::FileHash;

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
