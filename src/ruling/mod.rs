//! May a label name what was done in a run, and what does it say? Every gate that a label passes stands in one list, with a name
//! and a sentence for users ([`GATES`]). All verbs that execute a program end at [`settle`]; all that show a run, list its
//! agents, write rows or check them ask the same list through [`Ruling`] and print the first gate that refuses.

mod contested;
mod gate;
mod reference;
mod settle;

pub use gate::{GATES, LabelGate, NoLabel, Ruling};
pub use settle::settle;
