//! What is on disk of a run: writer, reader, recovery, seal.
//!
//! A run is a directory (`run.json`, `log.jsonl`, `blobs/`, `label.json`, `seal.json`, `facts.jsonl`). Records are appended by the
//! exchange itself: serialised and hashed outside the run's lock, one write inside it. A growing conversation is
//! stored once ([`encode`]); a long log is compressed while it grows ([`roll`], [`head`]); keys are masked before the first write ([`redact`]); the first failed write ends the
//! recording for good. Reading never changes a file. The proxy writes, every verb that looks at a run reads.

mod amended;
mod amendment;
mod annotation;
mod assemble;
mod content_hash;
mod cards;
mod contract;
mod counts;
mod credentials;
mod decode;
mod disk;
mod encode;
mod ended;
mod error;
mod escaped;
mod facts;
mod frames;
mod head;
mod injected;
mod client_credentials;
mod identity;
mod imported;
mod json_file;
mod hash_cache;
mod keep;
mod label;
mod launched;
mod line;
mod lock;
mod log;
mod machine;
mod manifest;
mod manipulated;
mod masked;
mod of_process;
mod overlap;
mod own_hash;
mod prune;
mod put_down;
mod read;
mod recent;
mod record;
mod recorded_run;
mod recorder;
mod recover;
mod requests;
mod redact;
mod renamed;
mod repair;
mod roll;
mod rolled;
mod run_fact;
mod run_file;
mod scan;
mod seal;
mod segment;
mod settings;
mod shapes;
mod share;
mod spread;
mod strings;
mod threads;
mod tool_callers;
mod turns;
mod unplaced;
mod values;
mod write;

#[cfg(any(test, feature = "testing"))]
pub mod sample;
#[cfg(test)]
mod tests;

pub use amended::{FACTS_FILE, mode_verdicts, read_facts};
pub use amendment::{Amendment, AmendmentSource, GivenRoster, amend};
pub use annotation::{
    AnnotatedStep, Annotation, AnnotationError, GivenAnnotation, annotate, annotation_of, annotations, annotator_named,
};
pub use cards::{RecordedCard, read_cards, write_cards};
pub use contract::{cards_schema, identity_schema, log_schema};
pub use credentials::{is_credential, is_secret_query, keys_of_environment};
pub use disk::{create_private, make_private_dir};
pub use error::RecordingError;
pub use facts::{Captured, Close, HeaderPairs, Inject, ManipulatorCall, ManipulatorFailed, Open, StreamedRequest};
pub use identity::write_identity;
pub use imported::ImportedFrom;
pub use json_file::write_beside;
pub use keep::{KeepMark, keep_run, read_kept, release_run};
pub use label::{LABEL_FILE, label_bytes, read_label};
pub use launched::{Launched, RecordedCheck};
pub use log::Queued;
pub use machine::MachineKey;
pub use manifest::{Manifest, RunOrigin, Seal, VERSION, Versions};
pub use manipulated::{ManipulatorFailure, ManipulatorQuestion};
pub use masked::{AppendedLines, Masked, MaskedFile, MaskedJson};
pub use prune::{KeepLimit, RunFate, StayReason, SurveyedRun, USER_MARK, prune, survey};
pub use put_down::check_room;
pub use read::{read, read_apart, read_manifest, read_recorded, read_seal, read_under};
pub use recorded_run::{ExchangeDetail, Recording, rules_of_both};
pub use recorder::Recorder;
pub use redact::{Redactor, Secrets, first_key};
pub use repair::{Repaired, discard, repair, seal_left};
pub use requests::Requests;
pub use run_fact::{FactContent, FactSource, LaterRoster, NamedSteps, RunFact};
pub use run_file::{RunFile, link_plain, link_plain_tree};
pub use settings::{Clock, Durability, Settings};
pub use threads::{each_in_threads, in_threads};
pub use tool_callers::{ToolCaller, UnknownCaller, tool_callers};
