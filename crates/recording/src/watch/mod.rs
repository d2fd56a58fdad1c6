//! Signs of trouble in a run, told step by step while it is under way, or from its record: rules without a model.
//!
//! [`Watching`] keeps what rules need of a run so far, bounded whatever the run's length; [`RULES`] is asked at each step.
//! A sign is a suspicion. How often each rule is wrong was measured on runs that nothing was wrong with
//! (`scripts/measure-watch`, docs/watch.md); one that is wrong in more than 2 % of them is off until it is named.
//! Pure: texts in, signs out. To add a rule: a function, one row of the list, one of docs/watch.md.

mod ending;
mod form;
mod history;
mod notation;
mod numbers;
mod past;
mod rates;
mod read;
mod repetition;
mod settings;
#[cfg(test)]
mod tests;
mod text;
mod tool_error;
mod tools;
mod watched_step;
mod watching;
mod wire;

pub use notation::in_text as numbers_in_text;
pub use past::Past;
pub use rates::{RateRow, RatedRun, Rates, RunShare, rates};
pub use read::read;
pub use settings::{UnknownRule, WatchSettings};
pub use watched_step::{WatchedCall, WatchedResult, WatchedStep};
pub use watching::Watching;
pub use wire::{WireAnswer, WireExchange};

/// One sign of trouble.
#[derive(Debug, Clone, Copy)]
pub struct WatchRule {
    /// Its name on the command line, in records and in reports.
    pub name: &'static str,
    /// Code of the failure mode that it is a sign of; empty where it is one of none.
    pub mode: &'static str,
    /// How much it says of who is to blame, 0 to 1: an order among the rules, for attribution; measured by nobody.
    pub weight: f64,
    /// Whether it is looked for where nobody names it.
    pub is_on: bool,
    /// What it looks for, with its threshold.
    pub says: &'static str,
    look: Look,
}

/// When a rule looks, and how.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// At each step, before the step joins the past.
    Step(fn(&Past, &WatchedStep) -> Option<Sighting>),
    /// When the run is over, with the names that the roster has.
    End(fn(&Past, &[String]) -> Option<Sighting>),
}

/// What a rule saw.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sighting {
    /// In words.
    seen: String,
    /// Words of the step.
    quote: String,
}

impl Sighting {
    /// Something seen in a text.
    #[expect(clippy::unnecessary_wraps, reason = "a rule says what it saw, or nothing")]
    fn new(seen: impl Into<String>, quote: impl Into<String>) -> Option<Self> {
        Some(Self { seen: seen.into(), quote: quote.into() })
    }
}

const fn at_step(
    name: &'static str,
    mode: &'static str,
    weight: f64,
    is_on: bool,
    says: &'static str,
    look: fn(&Past, &WatchedStep) -> Option<Sighting>,
) -> WatchRule {
    WatchRule { name, mode, weight, is_on, says, look: Look::Step(look) }
}

/// Every rule. Of one run, each speaks of an agent once.
pub const RULES: &[WatchRule] = &[
    at_step("no-answer", "", 0.9, true, "a reply without words and without a call", form::no_answer),
    at_step(
        "cut",
        "FM-1.1",
        0.8,
        true,
        "a reply that was cut at its longest, or filtered (`length`, `max_tokens`, `content_filter`)",
        form::cut,
    ),
    at_step("refusal", "FM-1.1", 0.7, true, "a reply that begins by refusing", form::refusal),
    at_step(
        "broken-json",
        "FM-1.1",
        0.8,
        true,
        "JSON was asked for, and the reply is none, or does not fit its schema",
        form::broken_json,
    ),
    at_step("unknown-tool", "FM-1.1", 0.7, true, "a call of a tool that was not offered", tools::unknown_tool),
    at_step(
        "bad-arguments",
        "FM-1.1",
        0.7,
        true,
        "a call whose arguments are no JSON, or do not fit the tool's schema",
        tools::bad_arguments,
    ),
    at_step(
        "repetition",
        "FM-1.3",
        0.5,
        true,
        "an agent says word for word what it said before, in 20 words or more",
        repetition::repetition,
    ),
    at_step(
        "cycle",
        "FM-1.3",
        0.5,
        true,
        "the last turns are the turns before them: 2 to 4 of them, the same agents with the same replies, three times",
        repetition::cycle,
    ),
    at_step(
        "same-call",
        "FM-1.3",
        0.6,
        true,
        "an agent calls the same tool with the same arguments for the third time",
        repetition::same_call,
    ),
    at_step(
        "retried-call",
        "FM-1.3",
        0.5,
        true,
        "a call that ended in an error is made again, unchanged; not where the error says that waiting helps",
        repetition::retried_call,
    ),
    at_step(
        "ignored-error",
        "FM-2.6",
        0.5,
        true,
        "all its tools answered with errors, and the agent goes on without a call and without a word about them",
        tools::ignored_error,
    ),
    at_step("tool-errors", "", 0.3, true, "3 or more of an agent's last 6 tool results are errors", tools::tool_errors),
    at_step(
        "lost-history",
        "FM-1.4",
        0.5,
        true,
        "a request lacks earlier messages of the agent's request before, but not all, and no message sums them up",
        history::lost_history,
    ),
    at_step(
        "after-end",
        "FM-1.5",
        0.2,
        true,
        "a call after a reply that ends the work: `TERMINATE` at its end, or what --watch-end matches",
        ending::after_end,
    ),
    at_step(
        "context-full",
        "",
        0.3,
        true,
        "a request of more than 80 % of --watch-window, or one that is refused as too long",
        ending::context_full,
    ),
    WatchRule {
        name: "no-verifier",
        mode: "FM-3.2",
        weight: 0.1,
        is_on: true,
        says: "the roster has an agent that verifies (critic, reviewer, tester, …), and the run ends without a call of it",
        look: Look::End(ending::no_verifier),
    },
    at_step("error-shown", "", 0.3, true, "a reply holds a traceback, or says that it was wrong", form::error_shown),
    at_step(
        "calculation",
        "FM-2.6",
        0.85,
        true,
        "a calculation in a reply is wrong by more than rounding",
        numbers::calculation,
    ),
    at_step(
        "other-result",
        "FM-2.6",
        0.75,
        false,
        "a reply calculates, and ends with a number that is none of its results",
        numbers::other_result,
    ),
    at_step(
        "new-number",
        "FM-2.6",
        0.4,
        false,
        "a number that stands in nothing that the agent was given, and that no calculation leads to",
        numbers::new_number,
    ),
];

/// The rule of that name.
pub fn rule(name: &str) -> Option<&'static WatchRule> {
    RULES.iter().find(|rule| rule.name == name)
}
