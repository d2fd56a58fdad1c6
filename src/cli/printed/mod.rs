//! What verbs print with `--format json`: a type each, so that its schema (`aegis reference --schemas`) is what is printed.
//! What other rooms print as it is written to files (`stats`, `certify`) has its type there.

mod datasets;
mod executions;
mod machine;
mod plans;
mod runs;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub(super) use self::{datasets::*, executions::*, machine::*, plans::*, runs::*};

/// What is printed, as the end of a verb carries it.
pub(super) fn printed(data: &impl Serialize) -> Value {
    // Each of these types can be written: none has keys that are no texts.
    serde_json::to_value(data).unwrap_or_default()
}

/// What a verb with a last word prints: its own data, then that word.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PrintedEnd<T> {
    /// The verb's own data.
    #[serde(flatten)]
    pub(super) data: T,
    /// The result line: a word of docs/reference/exit-codes.md, then what came of it.
    pub(super) result: String,
    /// The exit code.
    pub(super) exit: u8,
}

/// Nothing but the last word: a signal or a budget ended the verb.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NoData {}

/// Why a verb could not do its work.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PrintedFailure<'a> {
    pub(super) error: PrintedError<'a>,
    /// The word, then the first line of the message.
    pub(super) result: String,
    /// The exit code.
    pub(super) exit: u8,
}

/// An error, for programs and for people.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PrintedError<'a> {
    /// The word of the exit code.
    pub(super) code: &'a str,
    /// What is wrong, and where.
    pub(super) message: &'a str,
    /// What to do next.
    pub(super) hint: Option<&'a str>,
}
