//! Rules on the form of a reply.

use serde_json::Value;

use super::{
    Past, Sighting, WatchedStep,
    text::{first, folded_words},
};
use crate::surface::{RequiredFormat, schema, stopped_short};

/// How a reply begins that is a refusal.
const REFUSALS: &[&str] =
    &["i'm sorry, but i can", "i cannot help", "i can't help", "i am unable to", "i'm unable to", "as an ai"];
/// What stands in a reply that shows an error.
const ERRORS: &[&str] =
    &["traceback (most recent call last)", "exitcode: 1", "i made a mistake", "my mistake", "that was incorrect"];

/// Nothing was said.
pub(super) fn no_answer(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    let is_silent = step.reply.trim().is_empty() && step.calls.is_empty() && !step.says_more;
    match step.status {
        _ if step.refused.is_some() => None,
        Some(0) => Sighting::new("got no answer from the model", ""),
        Some(status) => Sighting::new(format!("got status {status} from the model"), ""),
        None if is_silent => Sighting::new("the reply is empty", ""),
        None => None,
    }
}

/// The reply was cut short.
pub(super) fn cut(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    let finish = step.finish.as_deref().filter(|finish| stopped_short(finish))?;
    let end: Vec<&str> = step.reply.split_whitespace().rev().take(12).collect();
    let end = end.into_iter().rev().collect::<Vec<_>>().join(" ");
    Sighting::new(format!("the reply was cut short (`{finish}`)"), end)
}

/// The agent would not.
pub(super) fn refusal(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    let start: String = step.reply.chars().take(200).collect();
    let said = folded_words(&start).replace('’', "'");
    let refuses = REFUSALS.iter().any(|open| said.starts_with(open));
    if refuses { Sighting::new("the agent would not do it", first(&step.reply)) } else { None }
}

/// Something else than the JSON that was asked for.
pub(super) fn broken_json(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    let cut = step.finish.as_deref().is_some_and(stopped_short);
    if step.format == RequiredFormat::Text || !step.calls.is_empty() || step.reply.trim().is_empty() || cut {
        return None;
    }
    let why = match (serde_json::from_str::<Value>(step.reply.trim()), &step.format) {
        (Err(_), _) => "the reply is none".to_owned(),
        (Ok(value), RequiredFormat::JsonSchema { schema, .. }) => match schema::fits(schema, None, &value) {
            schema::SchemaFit::No(rule) => format!("the reply breaks the rule `{rule}` of its schema"),
            schema::SchemaFit::Yes | schema::SchemaFit::Unsure(_) => return None,
        },
        (Ok(value), _) if !value.is_object() => "the reply is no object".to_owned(),
        (Ok(_), _) => return None,
    };
    Sighting::new(format!("JSON was asked for, and {why}"), first(&step.reply))
}

/// An error shows in the reply.
pub(super) fn error_shown(_: &Past, step: &WatchedStep) -> Option<Sighting> {
    let said = folded_words(&step.reply);
    let mark = ERRORS.iter().find(|mark| said.contains(**mark))?;
    Sighting::new(format!("`{mark}` stands in it"), first(&step.reply))
}
