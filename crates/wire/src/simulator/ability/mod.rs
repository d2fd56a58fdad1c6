//! What the simulator can do: one list, one line per ability, tried in order.

mod calculator;
mod delegate;
mod hand_off;
mod react;
mod recruit;
mod select;
mod structured;
mod text;
mod tool;

use super::{reading::ReadConversation, rewriting, utterance::Utterance};

/// An ability: its name, and what it says; `None` where it has nothing to say.
#[derive(Clone, Copy)]
pub(super) struct Ability {
    /// Its name.
    pub(super) name: &'static str,
    /// What it does.
    pub(super) run: fn(&ReadConversation<'_>) -> Option<Utterance>,
}

/// All abilities, in the order in which they are tried.
pub(super) const ALL: &[Ability] = &[
    Ability { name: "rewrite", run: rewriting::run },
    Ability { name: "select", run: select::run },
    Ability { name: "calculator", run: calculator::run },
    Ability { name: "delegate", run: delegate::run },
    Ability { name: "hand_off", run: hand_off::run },
    Ability { name: "tool", run: tool::run },
    Ability { name: "structured", run: structured::run },
    Ability { name: "react", run: react::run },
    Ability { name: "recruit", run: recruit::run },
    Ability { name: "plan", run: text::plan },
    Ability { name: "check", run: text::check },
    Ability { name: "summary", run: text::summary },
    Ability { name: "answer", run: text::answer },
];
