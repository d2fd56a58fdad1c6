//! An edited body, read again before it leaves: it says what was meant, and nothing of the old answer is left in it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use super::{
    Answer, Conversation, Message, Part, Reading, Reply, Surface, ToolCall, Unplaced,
    account::{self, ANSWERING, DEPTH_MAX},
    door,
    splice::Node,
    sse,
};

/// A text of fewer bytes may stand in other words by chance: it is looked for as a whole value, where an answer can stand.
const TELLING: usize = 8;
/// Most pieces of the old answer that are looked for.
const OLD_MAX: usize = 64;
/// Most pieces of the old answer that are looked for in the new one, of those that are no whole text of it.
const CHANGED_MAX: usize = 256;
/// Members of a reply that say back what was asked.
const ECHOES: &[&str] = &["input", "instructions", "metadata", "prompt", "text", "tool_choice", "tools"];

/// Why a body with unplaced pieces is not edited.
pub fn not_placed(piece: &Unplaced) -> String {
    let Unplaced { place, what, .. } = piece;
    format!("not all of it was read, so that no edit is sure to reach the whole answer: `{place}` is {}", what.words())
}

/// Reads an edited reply again, and gives what it says. `before`: what the reply said before the edit; `meant`: what the edit made of
/// it.
///
/// # Errors
/// What it does not say as it was meant, or what of the old answer is left.
pub fn reply(
    surface: &dyn Surface,
    body: &[u8],
    streamed: bool,
    before: &Reply,
    meant: &Reply,
) -> Result<Reply, String> {
    let Reading { view, unplaced } = door::reading(surface, body, streamed)
        .map_err(|error| format!("the edited reply could not be read: {error}"))?;
    if let Some(Unplaced { place, what, .. }) = unplaced.first() {
        return Err(format!("the edited reply would not be read whole: `{place}` is {}", what.words()));
    }
    let read = match before.speaker.as_deref() {
        Some(speaker) if words_of_others(&view, speaker) != words_of_others(before, speaker) => {
            return Err(format!(
                "the edited reply would not say what was meant: another agent's words than {speaker}'s would differ"
            ));
        }
        Some(speaker) => Cow::Owned(view.of_speaker(speaker)),
        None => Cow::Borrowed(&view),
    };
    if read.answers.len() != meant.answers.len() {
        return Err("the edited reply would have another number of answers".to_owned());
    }
    for ((read, meant), before) in read.answers.iter().zip(&meant.answers).zip(&before.answers) {
        if let Some(what) = differs(read, meant, before) {
            return Err(format!("the edited reply would not say what was meant: its {what} would differ"));
        }
    }
    let old = OldAnswer::dropped(before, meant);
    match old.left_in(body, streamed) {
        Some(place) => Err(format!("a piece of the old answer would be left at `{place}`")),
        None => Ok(view),
    }
}

/// What the agents of a team say in a reply that an edit of one agent's words leaves alone.
fn words_of_others(reply: &Reply, speaker: &str) -> Vec<(Option<String>, Message)> {
    let others = reply.utterances.iter().filter(|uttered| uttered.agent.as_deref() != Some(speaker));
    others.map(|uttered| (uttered.agent.clone(), Message { origin: None, ..uttered.message.clone() })).collect()
}

/// In what an answer that was read again differs from the one that was meant.
fn differs(read: &Answer, meant: &Answer, before: &Answer) -> Option<&'static str> {
    // Edits part a text otherwise than servers do.
    let text = |answer: &Answer| {
        let texts = answer.message.parts.iter().filter_map(Part::as_text);
        texts.flat_map(str::chars).filter(|character| *character != '\n').collect::<String>()
    };
    if text(read) != text(meant) {
        return Some("text");
    }
    let (read_calls, meant_calls) = (&read.message.tool_calls, &meant.message.tool_calls);
    if read_calls.len() != meant_calls.len() || !read_calls.iter().zip(meant_calls).all(|(a, b)| is_same_call(a, b)) {
        return Some("calls");
    }
    let is_lost = meant.finish_reason != before.finish_reason && read.finish_reason == before.finish_reason;
    (is_lost && before.finish_reason.is_some()).then_some("reason to stop")
}

/// Whether two calls are one. A call that an edit made may get its id where it is written.
fn is_same_call(read: &ToolCall, meant: &ToolCall) -> bool {
    read.name == meant.name
        && (meant.origin.is_none() || read.id == meant.id)
        && is_same_value(&read.arguments, &meant.arguments)
}

fn is_same_value(one: &str, other: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    one == other || value(one).is_some_and(|one| value(other) == Some(one))
}

/// What an edit took out of the answers.
#[derive(Debug, Default)]
struct OldAnswer {
    /// Texts and arguments.
    texts: Vec<String>,
    /// Names and ids of calls.
    labels: Vec<String>,
}

impl OldAnswer {
    /// What of the old answers none of the new ones says.
    fn dropped(before: &Reply, meant: &Reply) -> Self {
        let texts = |message: &Message| {
            let parts = message.parts.iter().filter_map(Part::as_text).map(str::to_owned);
            let calls = message.tool_calls.iter().map(|call| call.arguments.clone());
            parts.chain(calls).map(|text| text.trim().to_owned()).collect::<Vec<_>>()
        };
        let labels = |message: &Message| {
            message.tool_calls.iter().flat_map(|call| [call.name.clone(), call.id.clone()]).collect::<Vec<_>>()
        };
        let pairs = || before.answers.iter().zip(&meant.answers).filter(|(old, new)| old.message != new.message);
        let new_texts: Vec<_> = meant.answers.iter().flat_map(|answer| texts(&answer.message)).collect();
        let new_labels: HashSet<_> = meant.answers.iter().flat_map(|answer| labels(&answer.message)).collect();
        let says_much = |text: &String| !matches!(text.as_str(), "" | "{}" | "[]" | "null");
        // Another agent of a team may say the same.
        let others = before.speaker.as_deref().map(|speaker| words_of_others(before, speaker)).unwrap_or_default();
        let other_texts: Vec<_> = others.iter().flat_map(|(_, message)| texts(message)).collect();
        let kept: HashSet<_> = new_texts.iter().chain(&other_texts).collect();
        let is_gone = |old: &String| {
            let within = |new: &&String| memchr::memmem::find(new.as_bytes(), old.as_bytes()).is_some();
            !kept.iter().any(within)
        };
        let changed = |old: &String| says_much(old) && !kept.contains(old);
        let old_texts = pairs().flat_map(|(old, _)| texts(&old.message)).filter(changed).take(CHANGED_MAX);
        let old_labels = pairs().flat_map(|(old, _)| labels(&old.message));
        Self {
            texts: old_texts.filter(is_gone).take(OLD_MAX).collect(),
            labels: old_labels.filter(|old| !old.is_empty() && !new_labels.contains(old)).take(OLD_MAX).collect(),
        }
    }

    /// Where a piece of it still stands: in a string of the body, or in what the events say together at one place.
    fn left_in(&self, body: &[u8], streamed: bool) -> Option<String> {
        let mut search = LeftSearch { old: self, found: None, joined: BTreeMap::new() };
        if !door::is_stream(body, streamed) {
            let root = Node::parse(door::whole_and_rest(door::json(body)).0).ok()?;
            search.walk("", &root, DEPTH_MAX);
            return search.found;
        }
        let source = sse::single_lines(std::str::from_utf8(body).ok()?);
        for (_, span) in sse::objects(&source) {
            if let Ok(event) = Node::parse_at(&source, span) {
                search.walk("", &event, DEPTH_MAX);
            }
        }
        let holds = |said: &String| self.texts.iter().any(|old| old.len() >= TELLING && said.contains(old.as_str()));
        let joined = || search.joined.iter().find(|(_, said)| holds(said)).map(|(place, _)| place.clone());
        search.found.clone().or_else(joined)
    }

    /// Whether a string at a member of this name is a piece of it.
    fn is_in(&self, key: &str, said: &str) -> bool {
        let is_text = |old: &String| {
            if old.len() < TELLING {
                ANSWERING.contains(&key) && said.trim() == old
            } else {
                said.contains(old.as_str())
            }
        };
        let is_label = matches!(key, "name" | "id" | "call_id") && self.labels.iter().any(|old| old == said);
        is_label || self.texts.iter().any(is_text)
    }
}

struct LeftSearch<'a> {
    old: &'a OldAnswer,
    found: Option<String>,
    /// What the strings at one place say together.
    joined: BTreeMap<String, String>,
}

impl LeftSearch<'_> {
    fn walk(&mut self, path: &str, node: &Node<'_>, depth: usize) {
        let Some(depth) = depth.checked_sub(1).filter(|_| self.found.is_none()) else { return };
        if let Some(said) = node.string() {
            let key = path.rsplit('.').next().unwrap_or_default().trim_end_matches("[]");
            if self.old.is_in(key, &said) {
                self.found = Some(path.to_owned());
            }
            self.joined.entry(path.to_owned()).or_default().push_str(&said);
            return;
        }
        if node.is_array() {
            let path = format!("{path}[]");
            return node.elements().iter().for_each(|element| self.walk(&path, element, depth));
        }
        let members = node.members();
        let of = |key: &str| members.iter().find(|member| member.key == key).map(|member| member.value);
        let is_marked = of("thought").is_some_and(|mark| mark.raw() == "true");
        if is_marked || of("type").and_then(|kind| kind.string()).is_some_and(|kind| is_thought(&kind)) {
            return;
        }
        // What is numbered is told apart.
        let numbers = ["output_index", "content_index", "index"].iter().filter_map(|key| of(key));
        let path = numbers.fold(path.to_owned(), |path, number| format!("{path}#{}", number.raw()));
        for member in &members {
            let key = member.key.as_ref();
            let may_echo = matches!(path.as_str(), "" | "response") && ECHOES.contains(&key);
            let is_echo = may_echo && !(key == "text" && member.value.string().is_some());
            if !is_echo && !is_thought(key) && key != "logprobs" {
                self.walk(&account::joined(&path, key), &member.value, depth);
            }
        }
    }
}

/// Whether a name is that of what a model thinks, which is no answer.
fn is_thought(name: &str) -> bool {
    let name = name.strip_prefix("response.").unwrap_or(name);
    ["reasoning", "thinking", "redacted_thinking", "summary"].iter().any(|start| name.starts_with(start))
}

/// Reads an edited request again. `body`: the request before the edit; `meant`: what the edit made of it. Neither is packed.
///
/// # Errors
/// What it does not say as it was meant, or a piece that nobody reads in an element that the edit changed.
pub fn request(surface: &dyn Surface, body: &[u8], edited: &[u8], meant: &Conversation) -> Result<(), String> {
    let read =
        door::request(surface, edited).map_err(|error| format!("the edited request could not be read: {error}"))?;
    let what = if !has_same_words(&read, meant) {
        "words"
    } else if !has_same_calls(&read, meant) {
        "calls"
    } else if tools(&read) != tools(meant) {
        "tools"
    } else if !has_all_opaque(&read, meant) {
        "images, files or other parts that are no text"
    } else {
        return touches_unplaced(surface, body, edited);
    };
    Err(format!("the edited request would not say what was meant: its {what} would differ"))
}

/// Surfaces part messages and order prompts otherwise than an edit does: the words must be the same, wherever they stand. As a rule
/// they stand where they were meant to, and nothing need be sorted.
fn has_same_words(read: &Conversation, meant: &Conversation) -> bool {
    let in_order = texts(read).eq(texts(meant));
    let sorted = |conversation| {
        let mut words: Vec<&str> = texts(conversation).flat_map(str::split_whitespace).collect();
        words.sort_unstable();
        words
    };
    in_order || sorted(read) == sorted(meant)
}

fn texts(conversation: &Conversation) -> impl Iterator<Item = &str> {
    let parts = conversation.messages.iter().flat_map(|message| &message.parts);
    parts.filter_map(Part::as_text).filter(|text| !text.is_empty())
}

/// The same of calls, whose arguments are values.
fn has_same_calls(read: &Conversation, meant: &Conversation) -> bool {
    let in_order = calls(read).eq(calls(meant));
    let sorted = |conversation| {
        let value =
            |text: &str| serde_json::from_str::<serde_json::Value>(text).map_or(text.to_owned(), |v| v.to_string());
        let mut calls: Vec<_> = calls(conversation).map(|(name, arguments)| (name, value(arguments))).collect();
        calls.sort_unstable();
        calls
    };
    in_order || sorted(read) == sorted(meant)
}

fn calls(conversation: &Conversation) -> impl Iterator<Item = (&str, &str)> {
    let calls = conversation.messages.iter().flat_map(|message| &message.tool_calls);
    calls.map(|call| (call.name.as_str(), call.arguments.as_str()))
}

/// Whether nothing that is no text is lost.
fn has_all_opaque(read: &Conversation, meant: &Conversation) -> bool {
    let counted = |conversation: &Conversation| {
        let mut counts = BTreeMap::<String, usize>::new();
        for part in conversation.messages.iter().flat_map(|message| &message.parts) {
            if let Part::Opaque(kind) = part {
                *counts.entry(kind.clone()).or_default() += 1;
            }
        }
        counts
    };
    let read = counted(read);
    counted(meant).iter().all(|(kind, count)| read.get(kind).is_some_and(|read| read >= count))
}

fn tools(conversation: &Conversation) -> Vec<(&str, &str)> {
    conversation.tools.iter().map(|tool| (tool.name.as_str(), tool.description.as_str())).collect()
}

/// Whether an edit left each message that holds a piece which nobody reads as it came, or removed it as a whole.
///
/// # Errors
/// The first such piece that stands in a changed message.
pub(super) fn touches_unplaced(surface: &dyn Surface, body: &[u8], edited: &[u8]) -> Result<(), String> {
    let edited = door::json(edited);
    for unplaced in account::of_request(surface, edited) {
        let element = edited.get(unplaced.element.clone()).unwrap_or_default();
        if memchr::memmem::find(body, element).is_none() {
            return Err(not_placed(&unplaced.piece));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{OpenaiChat, OpenaiResponses};

    /// What comes of an edit of all text of a reply that is written by replacing one string of its body.
    fn checked(surface: &dyn Surface, body: &str, old: &str, new: &str, edited: &str) -> Result<(), String> {
        let before = door::reply(surface, body.as_bytes(), false).expect("a reply");
        let mut meant = before.clone();
        meant.answers[0].message.set_text(before.answers[0].message.text().replace(old, new));
        reply(surface, edited.as_bytes(), false, &before, &meant).map(drop)
    }

    #[test]
    fn what_is_not_as_it_was_meant_is_refused() {
        let body = |text: &str, beside: &str| {
            format!(
                r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}]{beside}}}"#
            )
        };
        let of = |edited: &str| checked(&OpenaiChat, &body("It is 42 now.", ""), "42", "57", edited);
        assert_eq!(of(&body("It is 57 now.", "")), Ok(()));
        assert_eq!(of(&body("It is 57 now.", r#","debug":{"content":"It is 57 now."}"#)), Ok(()));
        for edited in [
            body("It is 42 now.", ""),
            body("It is 58 now.", ""),
            body("It is 57 now.", r#","debug":{"said":"It is 42 now."}"#),
            body("It is 57 now.", r#","output_text":"It is 57 now.""#),
            "{}".to_owned(),
        ] {
            assert!(of(&edited).is_err(), "{edited}");
        }
    }

    #[test]
    fn an_old_answer_in_pieces_is_found() {
        let event = |index: u32, delta: &str| {
            format!("data: {{\"type\":\"response.x.delta\",\"output_index\":{index},\"words\":\"{delta}\"}}\n\n")
        };
        let old = OldAnswer { texts: vec!["It is 42 now.".to_owned()], labels: vec!["call_1".to_owned()] };
        let stream = [event(0, "It is "), event(1, "else "), event(0, "42 now.")].concat();
        assert_eq!(old.left_in(stream.as_bytes(), true).as_deref(), Some("#0.words"));
        assert_eq!(old.left_in(event(0, "It is 57 now.").as_bytes(), true), None);
        assert!(old.left_in(br#"{"output":[{"call_id":"call_1"}]}"#, false).is_some());
        assert!(old.left_in(br#"{"reasoning":"It is 42 now."}"#, false).is_none(), "what a model thinks is no answer");
        assert!(old.left_in(br#"{"instructions":"It is 42 now."}"#, false).is_none(), "what was asked is no answer");
    }

    #[test]
    fn a_request_is_changed_beside_what_nobody_reads_alone() {
        let body = |first: &str, second: &str| {
            format!(
                r#"{{"input":[{{"role":"user","content":"{first}"}},{{"role":"user","content":[{{"type":"speech","words":"Hm."}},{{"type":"input_text","text":"{second}"}}]}}]}}"#
            )
        };
        let before = body("One.", "Two.");
        for (edited, passes) in [(body("Other.", "Two."), true), (body("One.", "Other."), false)] {
            let meant = door::request(&OpenaiResponses, edited.as_bytes()).expect("a request");
            let checked = request(&OpenaiResponses, before.as_bytes(), edited.as_bytes(), &meant);
            assert_eq!(checked.is_ok(), passes, "{checked:?}");
        }
        let meant = door::request(&OpenaiResponses, body("Else.", "Two.").as_bytes()).expect("a request");
        assert!(request(&OpenaiResponses, before.as_bytes(), body("Other.", "Two.").as_bytes(), &meant).is_err());
    }
}
