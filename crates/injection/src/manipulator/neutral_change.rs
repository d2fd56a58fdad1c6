//! `neutral_change`: a change that means nothing, as a decoy: what is planted like an error and is none.

use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::{
    proof::{NeutralSentences, neutral_reply, neutral_request, neutral_result},
    surface::{Answer, Conversation, Message, Role},
    trajectory::{AgentName, PrincipalKind},
};

/// Makes a neutral change: blanks or an empty line; in a request also a polite word or an unrelated sentence.
///
/// It is planted like an error and is none. A campaign plants some by itself, as decoys (`proof.decoys`), and counts how many of
/// them its proof takes for errors. Which change, and where, depends on the draw. A request is changed at the end of its system
/// text or of its last user text; a reply only where it is prose, and only in its blanks, for programs read replies too. Of a tool's
/// result the blanks of its first text are changed, of JSON and other values those at the end.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-1.1"
/// when.call = 0
/// side = "request"
/// manipulator.neutral_change = {}
///
/// [[check]]
/// agent = "solver"
/// messages = ["system: You solve.", "user: What is 12 + 30?"]
/// expect_changed = true
/// ```
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeutralChange {}

impl Manipulator for NeutralChange {
    fn edit_request(&self, conversation: &mut Conversation, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let mut draws = ChaCha8Rng::seed_from_u64(context.draw);
        let of_system = draws.random_bool(0.5);
        let place = neutral_place(conversation, of_system);
        let message = place.and_then(|place| conversation.messages.get_mut(place));
        match message.and_then(|message| message.texts_mut().last()) {
            Some(text) => *text = neutral_request(text, &NeutralSentences::default(), &mut draws),
            None => return not_applicable("it has no text of the system or the user"),
        }
        Ok(())
    }

    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let mut draws = ChaCha8Rng::seed_from_u64(context.draw);
        if AgentName::parse(context.agent).is_ok_and(|name| name.kind() == PrincipalKind::Tool) {
            return match answer.message.texts_mut().find(|text| !text.trim().is_empty()) {
                Some(text) => {
                    *text = neutral_result(text, &mut draws);
                    Ok(())
                }
                None => not_applicable("the result has no text"),
            };
        }
        let prose = answer.message.tool_calls.is_empty().then(|| neutral_reply(&answer.message.text(), &mut draws)).flatten();
        let Some(text) = prose else {
            return not_applicable("the answer is no prose, and a program may read what is none");
        };
        answer.message.set_text(&text);
        Ok(())
    }

    fn explain(&self) -> String {
        "changes what means nothing: blanks, a polite word, or a sentence that says nothing of the task".to_owned()
    }
}

/// The message of a request that gets a neutral change, by its index: the last of the system, or the last of the user; the other where
/// that one is missing. `None` where there is neither, or where vectors stand for each letter.
pub fn neutral_place(conversation: &Conversation, of_system: bool) -> Option<usize> {
    if conversation.vectors.is_some() {
        return None;
    }
    let is_system = |message: &Message| matches!(message.role, Role::System | Role::Developer);
    let is_user = |message: &Message| message.role == Role::User;
    let messages = &conversation.messages;
    let (system, user) = (messages.iter().rposition(is_system), messages.iter().rposition(is_user));
    if of_system { system.or(user) } else { user.or(system) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::manipulator::testing::{answer, call, context, reply};
    use crate::surface::RequiredFormat;

    #[test]
    fn a_request_is_changed_in_its_system_text_or_its_last_user_text() {
        let asked = |roles: &[Role]| Conversation {
            messages: roles.iter().map(|role| Message::text_of(*role, "One two three.")).collect(),
            ..Conversation::default()
        };
        for (roles, expected) in [
            (&[Role::System, Role::User, Role::Assistant, Role::User][..], &[0, 3][..]),
            (&[Role::User], &[0]),
            (&[Role::System], &[0]),
            (&[Role::Assistant], &[]),
            (&[], &[]),
        ] {
            let mut places = BTreeSet::new();
            for draw in 0..50 {
                let (before, mut after) = (asked(roles), asked(roles));
                let context = Context { draw, ..context(&before) };
                if NeutralChange::default().edit_request(&mut after, &context).is_ok() {
                    places.extend((0..roles.len()).filter(|at| before.messages[*at] != after.messages[*at]));
                }
            }
            assert_eq!(places.into_iter().collect::<Vec<_>>(), expected, "{roles:?}");
        }
    }

    #[test]
    fn only_an_answer_in_prose_is_changed() {
        let edited = |text: &str| answer(&NeutralChange {}, text, RequiredFormat::Text, 3).ok();
        let changed = edited("The sum of both is 42.").expect("prose").message.text();
        let words = changed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(changed != "The sum of both is 42." && words == "The sum of both is 42.", "{changed:?}");
        assert!(edited("42").is_none());
        let conversation = Conversation::default();
        for result in ["42", "{\"amount\": 1100.0}", "amount: 1100.0"] {
            let mut answer = reply(result).answers.remove(0);
            let context = Context { agent: "mcp/bank/balance", ..context(&conversation) };
            NeutralChange::default().edit_answer(&mut answer, &context).expect("a result of a tool");
            let text = answer.message.text();
            assert!(text != result && text.split_whitespace().eq(result.split_whitespace()), "{text:?}");
        }
        let mut calling = reply("The sum of both is 42.").answers.remove(0);
        calling.message.tool_calls.push(call("f", "{}"));
        assert!(NeutralChange::default().edit_answer(&mut calling, &context(&Conversation::default())).is_err());
    }
}
