//! `wrong_entity`: the agent takes one person, place or thing for another.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Context, Manipulator, ManipulatorError, not_applicable, passage, quoted};
use crate::surface::{Answer, Message};
use crate::trajectory::Side;

/// Replaces a name in the answer by another name of the conversation, everywhere.
///
/// Without `find` it is a name that the answer says most often, and without `with` one that the conversation has and that
/// differs; which, depends on the draw. A name is a word, or words in a row, with a capital inside a sentence.
///
/// ```toml
/// [[injection]]
/// agent = "researcher"
/// failure_mode = "FM-2.3"
/// when.call = 0
/// manipulator.wrong_entity = {}
///
/// [[check]]
/// agent = "researcher"
/// messages = ["user: Was it Marie Curie or Lise Meitner?"]
/// reply = "The first was Marie Curie, in Paris."
/// expect = "The first was Lise Meitner, in Paris."
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrongEntity {
    /// Name to replace.
    pub find: Option<String>,
    /// New name.
    pub with: Option<String>,
}

impl Manipulator for WrongEntity {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let said = answer.message.text();
        let asked: Vec<String> = context.conversation.messages.iter().map(Message::text).collect();
        let asked = asked.join("\n");
        let known = [names(&asked), names(&said)].concat();
        let differ = |one: &str, other: &str| !one.contains(other) && !other.contains(one);
        let in_answer = |name: &&String| contains_word(&said, name);
        let candidates: Vec<&String> = match &self.find {
            Some(find) => Some(find).into_iter().filter(in_answer).collect(),
            None => known.iter().filter(in_answer).collect(),
        };
        let pick = |list: &[String]| list.get(usize::try_from(context.draw % list.len().max(1) as u64).ok()?).cloned();
        let pair = candidates.iter().find_map(|old| {
            let others: Vec<String> = known.iter().filter(|name| differ(name, old)).cloned().collect();
            let new = self.with.clone().filter(|with| with != *old).or_else(|| pick(&others))?;
            Some(((*old).clone(), new))
        });
        let Some((old, new)) = pair else {
            return not_applicable("the answer and its conversation hold no two names");
        };
        passage::edit(answer, &context.conversation.format, |text| {
            contains_word(text, &old).then(|| text.replace(&old, &new))
        })?;
        Ok(())
    }

    fn check(&self, _: Side) -> Result<(), String> {
        for (key, name) in [("find", &self.find), ("with", &self.with)] {
            if name.as_ref().is_some_and(|name| name.trim().is_empty()) {
                return Err(format!("`{key}` is empty: expected a name"));
            }
        }
        if self.find.is_some() && self.find == self.with {
            return Err("`find` and `with` are equal".to_owned());
        }
        Ok(())
    }

    fn explain(&self) -> String {
        let old = self.find.as_ref().map_or("a name in the answer".to_owned(), |find| quoted(find));
        let new = self.with.as_ref().map_or("another name of the conversation".to_owned(), |with| quoted(with));
        format!("replaces {old} by {new}")
    }
}

/// The names of a text, in order, each once.
fn names(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for sentence in passage::sentences(text) {
        let mut name: Vec<&str> = Vec::new();
        let words = sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
        for (at, word) in words.enumerate() {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            let capital = bare.chars().next().is_some_and(char::is_uppercase)
                && bare.chars().any(char::is_lowercase)
                && bare.chars().all(|c| c.is_alphabetic() || c == '-');
            // The first word of a sentence has its capital for another reason.
            if capital && at > 0 {
                name.push(bare);
            }
            let closes = word.ends_with(|c: char| !c.is_alphanumeric());
            if !name.is_empty() && (closes || !capital) {
                add(&mut found, &name);
                name.clear();
            }
        }
        add(&mut found, &name);
    }
    found
}

fn add(found: &mut Vec<String>, name: &[&str]) {
    let name = name.join(" ");
    if name.len() > 1 && !found.contains(&name) {
        found.push(name);
    }
}

/// Whether a text holds a name as whole words.
fn contains_word(text: &str, name: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|tail| tail.chars().next());
        !is_letter(before) && !is_letter(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::edited_reply;
    use crate::manipulator::testing::{context, reply, request};

    #[test]
    fn one_name_takes_anothers_place() {
        let both = "user: Is it Ada or Blaise?";
        for (find, with, messages, text, expected) in [
            (None, None, both, "It is Ada. Yes, Ada.", Some("It is Blaise. Yes, Blaise.")),
            (Some("Ada"), Some("Émilie"), "", "It is Ada.", Some("It is Émilie.")),
            (Some("Ada"), None, both, "It is Adam.", None),
            (None, None, "user: who?", "It is Ada.", None),
            (None, None, both, "", None),
            (None, None, both, r#"{"who": "it is Ada"}"#, Some(r#"{"who": "it is Blaise"}"#)),
        ] {
            let edit = WrongEntity { find: find.map(str::to_owned), with: with.map(str::to_owned) };
            let conversation = request(messages);
            let edited = edited_reply(&edit, &reply(text), None, &context(&conversation)).ok();
            assert_eq!(edited.map(|mut reply| reply.answers.remove(0).message.text()).as_deref(), expected, "{text}");
        }
    }
}
