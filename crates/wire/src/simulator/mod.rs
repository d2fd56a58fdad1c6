//! The embedded backend: a deterministic scripted model that really reads its prompt and really computes.
//!
//! It works on the neutral conversation alone: it knows no JSON field names, no plans, no labels and no agents'
//! names but those that the conversation tells. Equal conversation and seed, equal reply. It stands in for a real
//! model in the demo, the examples and the tests, and is always named as such.

mod ability;
mod conclusion;
mod duty;
mod expression;
mod function;
mod language;
mod orders;
mod plan;
mod problem;
mod reading;
mod reply;
mod rewriting;
mod stated;
mod stored;
mod tool_name;
mod upstream;
mod utterance;
mod vectors;

pub use upstream::Simulator;

use crate::surface::{Conversation, Reply};

/// The reply to a conversation. `seed` moves every draw (such as whether a checker catches a wrong answer).
pub fn answer(conversation: &Conversation, seed: u64) -> Reply {
    reply::give(conversation, seed).0
}

#[cfg(test)]
mod tests;
