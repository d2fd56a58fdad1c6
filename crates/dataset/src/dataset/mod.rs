//! Datasets: verified failures with their clean twins, and benign injections apart.
//!
//! A dataset is a directory: `dataset.jsonl` (failures and the clean runs of their tasks), `benign.jsonl` (injections
//! that changed nothing about the outcome; there only if there are any) and `dataset.json` (counts and hashes). One
//! line is one [`Sample`]: the run as its agents lived it, its task, its outcome and its [`Truth`]. Samples are built
//! from recordings ([`Sample::from_recording`]), read one at a time ([`Dataset`]) and written whole files at a time ([`Writer`]).
//! The campaign writes datasets; lint, statistics, exports and scores read them.

pub mod formats;
pub mod task_sets;

mod backend;
mod build;
mod claims;
mod content;
mod corpus;
mod decoys;
mod error;
mod gold;
mod harvest;
mod ids;
pub mod lint;
mod order;
mod read;
mod same;
mod sample;
mod sample_message;
mod sample_line;
mod split;
mod spoken;
pub mod statistics;
mod step_surface;
mod tasks;
mod truth;
mod values;
mod write;

#[cfg(test)]
mod row_tests;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod write_tests;

pub use build::UnrecordedFacts;
pub use claims::{ALPHA, Claims, Ground, Grounds, failures};
pub use corpus::{Corpus, CorpusFacts, task_of_run};
pub use decoys::DecoyCounts;
pub use error::DatasetError;
pub use gold::gold;
pub use harvest::Harvest;
pub use read::{Dataset, Entry, Index, PlacedSample};
pub use sample::{FORMAT, Input, OfferedTool, Place, Sample, SampleKind, SampleStep, Split, Task};
pub use sample_line::SampleLine;
pub use sample_message::{Called, SampleMessage};
pub use split::Splits;
pub use tasks::{parse_tasks, read_tasks};
pub use truth::{Change, LabelledError, Mode, Truth};
pub use write::{DatasetManifest, FileFacts, Writer};

/// The file of failures and their clean twins.
pub const FILE: &str = "dataset.jsonl";
/// The file of benign injections.
pub const BENIGN_FILE: &str = "benign.jsonl";
/// The file of decoys.
pub const DECOYS_FILE: &str = "decoys.jsonl";
/// The file of counts and hashes.
pub const MANIFEST_FILE: &str = "dataset.json";
