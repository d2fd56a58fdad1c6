//! `negate_verdict`: the agent approves what it rejected, or the other way round.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use super::json_text::{self, LeafKind, JsonLeaf};
use super::shape::{TextShape, shape, visible};
use super::{Context, Manipulator, ManipulatorError, not_applicable};
use crate::mode::{JSON_VERDICTS, STANDING_ALONE, VERDICTS};
use crate::surface::{Answer, Conversation};

/// Verbs that `not` stands behind, each with the one word that both make.
const AUXILIARIES: &[(&str, &str)] = &[
    ("is", "isn't"),
    ("are", "aren't"),
    ("was", "wasn't"),
    ("were", "weren't"),
    ("does", "doesn't"),
    ("do", "don't"),
    ("did", "didn't"),
    ("has", "hasn't"),
    ("have", "haven't"),
    ("had", "hadn't"),
    ("can", "can't"),
    ("could", "couldn't"),
    ("will", "won't"),
    ("would", "wouldn't"),
    ("should", "shouldn't"),
    ("must", "mustn't"),
];

/// Reverses the verdict of the answer.
///
/// Whole words are swapped, in their own case: correct and incorrect, approve and reject, valid and invalid, passed
/// and failed; yes and no, true and false, pass and fail only where they stand alone. A sentence that goes on from yes or no
/// without a verdict word agrees with it: “No, it does not” becomes “Yes, it does”. Where the conversation offers
/// another opposite, such as REVISE, that is used. In a JSON answer booleans whose key names a verdict are flipped too.
///
/// ```toml
/// [[injection]]
/// agent = "critic"
/// failure_mode = "FM-3.3"
/// when.always = true
/// manipulator.negate_verdict = {}
///
/// [[check]]
/// agent = "critic"
/// messages = ["system: Answer APPROVED or REVISE.", "user: 12 + 30 = 41"]
/// reply = "No, that is incorrect: no carry. REVISE"
/// expect = "Yes, that is correct: no carry. APPROVED"
/// ```
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NegateVerdict {}

impl Manipulator for NegateVerdict {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let offered = conversation_text(context.conversation);
        let mut found = false;
        for text in answer.message.texts_mut().filter(|text| !text.is_empty()) {
            let shape = shape(text, &context.conversation.format)?;
            let seen = visible(text, shape);
            let mut edits: Vec<(Range<usize>, String)> = words(&seen)
                .into_iter()
                .filter_map(|range| {
                    let opposite = opposite(&seen, range.clone(), &offered)?;
                    Some((range, opposite))
                })
                .collect();
            let agreeing: Vec<_> = edits.iter().filter_map(|(word, _)| agreeing(&seen, word, &edits)).collect();
            edits.extend(agreeing);
            edits.sort_by_key(|(range, _)| range.start);
            if shape == TextShape::Json {
                edits.extend(flipped_booleans(text));
            }
            found |= !edits.is_empty();
            *text = json_text::splice(text, edits);
        }
        if found { Ok(()) } else { not_applicable("the answer holds no verdict word") }
    }

    fn explain(&self) -> String {
        "turns the verdict of the answer into its opposite".to_owned()
    }
}

/// Everything that the conversation says, in lower case: where an alternative to a verdict may be offered.
fn conversation_text(conversation: &Conversation) -> String {
    let texts = conversation.messages.iter().map(crate::surface::Message::text);
    texts.collect::<Vec<_>>().join("\n").to_lowercase()
}

/// The words of a text that are not part of a longer word or of an identifier.
fn words(text: &str) -> Vec<Range<usize>> {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\'' | '\u{2019}');
    let mut words = Vec::new();
    let mut from = 0;
    for piece in text.split_inclusive(|c: char| !joins(c)) {
        let word = piece.trim_end_matches(|c: char| !joins(c));
        let bare = word.trim_start_matches(['-', '\'']);
        let start = from + word.len() - bare.len();
        words.push(start..start + bare.trim_end_matches(['-', '\'']).len());
        from += piece.len();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn opposite(text: &str, word: Range<usize>, offered: &str) -> Option<String> {
    let after = text.get(word.end..)?;
    let word = text.get(word)?;
    let lower = word.to_lowercase();
    let entry = |list: &'static [(&str, &[&'static str])]| {
        list.iter().find(|(known, _)| *known == lower).map(|(_, opposites)| *opposites)
    };
    let opposites = entry(VERDICTS).or_else(|| entry(STANDING_ALONE).filter(|_| stands_alone(after)))?;
    let is_offered = |candidate: &&&str| words(offered).into_iter().any(|word| offered.get(word) == Some(**candidate));
    let chosen = opposites.iter().find(is_offered).or_else(|| opposites.first())?;
    Some(cased(chosen, word))
}

/// What makes the rest of a sentence agree with the yes or no that it now begins with; nothing where it holds a verdict of
/// its own, or no verb that could deny it.
fn agreeing(text: &str, word: &Range<usize>, edits: &[(Range<usize>, String)]) -> Option<(Range<usize>, String)> {
    let was_no = match text.get(word.clone())?.to_lowercase().as_str() {
        "no" => true,
        "yes" => false,
        _ => return None,
    };
    let rest = text.get(word.end..)?;
    let length = rest.find(['.', '!', '?', ';', '\n', '"']).unwrap_or(rest.len());
    let sentence = word.end..word.end + length;
    if edits.iter().any(|(other, _)| other != word && sentence.contains(&other.start)) {
        return None;
    }
    let said: Vec<(Range<usize>, String)> = words(rest.get(..length)?)
        .into_iter()
        .map(|range| range.start + word.end..range.end + word.end)
        .map(|range| (range.clone(), text.get(range).unwrap_or_default().to_lowercase().replace('\u{2019}', "'")))
        .collect();
    let verb = |said: &str| AUXILIARIES.iter().find(|(verb, _)| *verb == said).map(|(verb, _)| *verb);
    let denied = |said: &str| if said == "cannot" { Some("can") } else { AUXILIARIES.iter().find(|(_, one)| *one == said).map(|(verb, _)| *verb) };
    let negation = said.iter().enumerate().find_map(|(at, (range, said))| {
        if let Some(verb) = denied(said) {
            return Some((range.clone(), verb.to_owned()));
        }
        // The blank before it goes with it.
        let blank = range.start.checked_sub(1).filter(|blank| text.get(*blank..range.start) == Some(" "))?;
        (said == "not" && at > 0).then(|| (blank..range.end, String::new()))
    });
    if was_no {
        return negation;
    }
    let denial = || said.iter().find(|(_, said)| verb(said).is_some()).map(|(range, _)| (range.end..range.end, " not".to_owned()));
    if negation.is_some() { None } else { denial() }
}

fn stands_alone(after: &str) -> bool {
    let after = after.trim_start_matches(['*', '_', '`', '"', '\'']);
    after.trim_start_matches(' ').chars().next().is_none_or(|c| c == '\n' || (!after.starts_with(' ') && ".,;:!?)]}".contains(c)))
}

/// `word` in the case of `like`: all capitals, one capital, or none.
fn cased(word: &str, like: &str) -> String {
    let mut letters = like.chars().filter(|c| c.is_alphabetic());
    let (first, second) = (letters.next(), letters.next());
    match (first.is_some_and(char::is_uppercase), second.is_some_and(char::is_uppercase)) {
        (true, true) => word.to_uppercase(),
        (true, false) => {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
        _ => word.to_owned(),
    }
}

/// Booleans under a key that names a verdict; the only boolean of an answer is one whatever its key.
fn flipped_booleans(text: &str) -> Vec<(Range<usize>, String)> {
    let mut booleans = json_text::leaves(text).unwrap_or_default();
    booleans.retain(|leaf| leaf.kind == LeafKind::Boolean);
    if booleans.len() > 1 {
        booleans.retain(|leaf| JSON_VERDICTS.iter().any(|key| leaf.key.to_lowercase().contains(key)));
    }
    let flipped = |leaf: JsonLeaf| {
        let now = text.get(leaf.range.clone()) == Some("true");
        (leaf.range, (!now).to_string())
    };
    booleans.into_iter().map(flipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::edited_reply;
    use crate::manipulator::testing::{context, reply, request};
    use crate::surface::RequiredFormat;

    fn check(prompt: &str, text: &str, format: RequiredFormat, expected: Option<&str>) {
        let conversation = Conversation { format, ..request(prompt) };
        let edited = edited_reply(&NegateVerdict {}, &reply(text), None, &context(&conversation));
        let edited = edited.ok().map(|mut reply| reply.answers.remove(0).message.text());
        assert_eq!(edited.as_deref(), expected, "{text}");
    }

    #[test]
    fn whole_words_in_their_case() {
        for (text, expected) in [
            ("The answer is correct.", Some("The answer is incorrect.")),
            ("INCORRECT: é", Some("CORRECT: é")),
            ("**Yes**, valid", Some("**No**, invalid")),
            ("No errors found; tests passed", Some("No errors found; tests failed")),
            ("Verdict: PASS", Some("Verdict: FAIL")),
            ("Approved", Some("Rejected")),
            ("No, the draft does not answer it.", Some("Yes, the draft does answer it.")),
            ("No, it isn’t. Not at all.", Some("Yes, it is. Not at all.")),
            ("No. It cannot be.", Some("Yes. It cannot be.")),
            ("No, the draft cannot stand: x", Some("Yes, the draft can stand: x")),
            ("Yes, the draft does answer it.", Some("No, the draft does not answer it.")),
            ("Yes, it is valid.", Some("No, it is invalid.")),
            ("Yes, every number follows.", Some("No, every number follows.")),
            ("It is true that 3 = 3. True.", Some("It is true that 3 = 3. False.")),
            ("Correctly validated, uncorrected, is_valid, non-valid", None),
            ("pass the value", None),
            ("", None),
        ] {
            check("", text, RequiredFormat::Text, expected);
        }
    }

    #[test]
    fn the_conversation_offers_the_opposite() {
        check("system: Say APPROVED or REVISE.", "APPROVED", RequiredFormat::Text, Some("REVISE"));
        check("system: Say APPROVE or REVISE.", "Revise: add units", RequiredFormat::Text, Some("Approve: add units"));
        check("system: Say ok or unrevised.", "APPROVED", RequiredFormat::Text, Some("REJECTED"));
    }

    #[test]
    fn json_booleans_and_values_but_never_keys() {
        for (text, expected) in [
            (r#"{"correct": true, "stream": true}"#, Some(r#"{"correct": false, "stream": true}"#)),
            (r#"{"stream": false}"#, Some(r#"{"stream": true}"#)),
            (r#"{"valid": "valid"}"#, Some(r#"{"valid": "invalid"}"#)),
            (r#"{"n": 1, "a": "x"}"#, None),
        ] {
            check("", text, RequiredFormat::JsonObject, expected);
        }
        let schema = serde_json::json!({"properties": {"verdict": {"enum": ["approved", "revise"]}}});
        let format = RequiredFormat::JsonSchema { name: "verdict".to_owned(), schema };
        check("", r#"{"verdict": "approved"}"#, format.clone(), None);
        check("user: approved or revise?", r#"{"verdict": "approved"}"#, format, Some(r#"{"verdict": "revise"}"#));
    }
}
