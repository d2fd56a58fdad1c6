//! `echo_peer`: the agent has no view of its own.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable, say};
use crate::surface::Answer;
use crate::trajectory::{Side, TOOLS};

/// Replaces the answer by another agent's last answer.
///
/// Tool calls of the answer are lost. A JSON answer needs a peer's answer that is JSON of its schema, and no `opening`.
///
/// ```toml
/// [[injection]]
/// agent = "critic"
/// failure_mode = "FM-3.2"
/// when.call = 0
/// manipulator.echo_peer = { opening = "I agree. " }
///
/// [[check]]
/// agent = "critic"
/// messages = ["system: You are the critic.", "user: Is it right?"]
/// earlier = ["planner: Add both.", "solver: It is 41."]
/// reply = "It is not: 12 + 30 = 42."
/// expect = "I agree. It is 41."
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoPeer {
    /// The other agent. Default: whichever spoke last.
    pub from: Option<String>,
    /// Text before the answer.
    #[serde(default)]
    pub opening: String,
}

impl Manipulator for EchoPeer {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let peer = |agent: &str| self.from.as_deref().map_or(agent != context.agent && !agent.starts_with(TOOLS), |from| agent == from);
        let mut said = context.earlier.iter().rev().filter(|(agent, text)| peer(agent) && !text.trim().is_empty());
        let Some((_, text)) = said.next() else {
            let whom = self.from.as_ref().map_or("another agent".to_owned(), |from| format!("`{from}`"));
            return not_applicable(format!("there is no earlier answer of {whom} to echo"));
        };
        say(answer, format!("{}{text}", self.opening));
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        match &self.from {
            Some(from) if from.trim().is_empty() => Err("`from` is empty: expected an agent's name".to_owned()),
            _ => Ok(()),
        }
    }

    fn explain(&self) -> String {
        match &self.from {
            Some(from) => format!("replaces the answer by what `{from}` said last"),
            None => "replaces the answer by what another agent said last".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::edited_reply;
    use crate::manipulator::testing::{context, reply};
    use crate::surface::Conversation;

    #[test]
    fn the_latest_peer_is_echoed() {
        let earlier: Vec<(String, String)> = [("ada", "é1"), ("blaise", "2"), ("solver", "3"), ("blaise", " ")]
            .map(|(agent, text)| (agent.to_owned(), text.to_owned()))
            .to_vec();
        for (from, earlier, expected) in [
            (None, earlier.as_slice(), Some("2")),
            (Some("ada"), &earlier, Some("é1")),
            (Some("solver"), &earlier, Some("3")),
            (Some("carl"), &earlier, None),
            (None, &[], None),
        ] {
            let conversation = Conversation::default();
            let context = Context { earlier, ..context(&conversation) };
            let echo = EchoPeer { from: from.map(str::to_owned), opening: String::new() };
            let edited = edited_reply(&echo, &reply("x"), None, &context).ok();
            assert_eq!(edited.map(|mut reply| reply.answers.remove(0).message.text()).as_deref(), expected, "{from:?}");
        }
    }
}
