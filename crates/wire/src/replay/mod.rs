//! A recording as the upstream: the whole of it ([`Replayed`]), or up to a fork point with a live rest ([`Prefixed`]).
//!
//! A [`Cassette`] is an index over a recording. A request finds its record by surface, explicit agent and body: first
//! byte for byte, then by its canonical form under declared [`Rules`]; the inferred agent, its call number and the
//! order of the record only break ties. Never by position alone. Equal questions at once are told apart by what quotes
//! their answers. A strict replay owns no socket; a miss says what the
//! nearest record was and where it first differs. Verbs, campaigns and traces are built on this; it runs no program.

mod advice;
mod alike;
mod cassette;
mod compared;
mod comparison;
mod difference;
mod effects;
mod finishing;
mod fitting;
mod fork;
mod nearest;
mod other_value;
mod no_such_step;
mod play;
mod prefixed;
mod question;
mod quoted;
mod reading;
mod replayed;
mod recorded_calls;
mod reply;
mod report;
mod reword;
mod twins;

pub use crate::equality::{Rules, RulesError, ToolResults};
pub use cassette::Cassette;
pub use compared::{compared_run, learned_rules, rules_after_departure};
pub use comparison::{CallChange, CallPlace, Changed, Comparison, Pair};
pub use difference::Difference;
pub use fork::{AtFork, ForkPoint};
pub use no_such_step::NoSuchStep;
pub use other_value::OtherValue;
pub use prefixed::Prefixed;
pub use quoted::QuotedWords;
pub use reading::{same_answer, step_request_text};
pub use replayed::Replayed;
pub use reply::Timing;
pub use report::{Departure, Fit, Nearest, RefusedRequest, ReplayReport, ServedReply};
pub use reword::{NoReply, answer_text, as_answered_by, emptied, reworded};
