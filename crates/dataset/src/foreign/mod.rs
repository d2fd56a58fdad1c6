//! Traces of others as runs of ours: what a tracer, an evaluation framework or a harness wrote becomes a recording that
//! `show`, `runs`, `diff` and `view` read as they read recorded ones. [`ALL`] is the list; a format is one file and one
//! line of it.
//!
//! A trace holds what was said, never the bytes: bodies are remade as chat completions, `run.json` says whose trace it
//! was ([`ImportedFrom`](crate::recording::ImportedFrom)), and what replays refuses such a run. What a trace does not hold is
//! counted and said, never made up.

mod account;
mod agents;
mod atif;
mod documents;
mod error;
mod field_names;
mod fields;
mod held;
mod import;
mod inspect;
mod langfuse;
mod log;
mod messages;
mod otlp;
mod parts;
mod rebuilt;
mod record;
mod scored;
mod trace;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod log_tests;

pub use account::TraceAccount;
pub use error::ForeignError;
pub use field_names::FieldNames;
pub use import::{ForeignImport, ForeignOptions, import};
pub use record::{RecordedForeign, Remade};
pub use trace::{
    ForeignAgent, ForeignCall, ForeignDefect, ForeignFailure, ForeignReader, ForeignRequest, ForeignRun, ForeignTrace,
    Grouping, TracePlace,
};

/// Every format of traces that is read.
pub const ALL: &[&dyn ForeignTrace] =
    &[&otlp::OtlpSpans, &inspect::InspectLog, &atif::AtifTrajectory, &langfuse::LangfuseExport, &log::PlainLog];
