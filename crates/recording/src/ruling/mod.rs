//! May a label name what was done in a run, and what does it say? Every gate that a label passes stands in one list, with a name
//! and a sentence for users ([`GATES`]). All verbs that execute a program end at [`settle`]; all that show a run, list its
//! agents, write rows or check them ask the same list through [`Ruling`] and print the first gate that refuses. Labels are made
//! and written here and nowhere else: the architecture test holds that.

mod contested;
mod gate;
mod made;
mod mode_claim;
mod no_label;
mod reference;
mod settle;
mod why;

pub use gate::{GATES, LabelGate, Ruling};
pub use made::{LabelChange, PLANTED, after_finding, natural, proven};
pub use no_label::NoLabel;
pub use settle::{former_schema, restore, settle, settle_amended, settle_finding, settle_proof, settle_recording};
pub use why::{objection, refused, repeats, why_none};
