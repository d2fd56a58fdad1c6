//! What the API shapes have in common: reading their members, and naming roles.

use std::{borrow::Cow, collections::HashMap};

use bytes::Bytes;

use super::{
    Part, Role, SurfaceError, ToolCall, scan,
    splice::{Member, Node, Splices, encode_string, member},
    sse,
};
use crate::trajectory::Usage;

/// The error for a body that is no `expected`.
pub(super) fn unreadable(expected: &'static str, detail: impl Into<String>) -> SurfaceError {
    SurfaceError::Unreadable { expected, detail: detail.into() }
}

/// A body as text.
pub(super) fn source<'a>(body: &'a [u8], expected: &'static str) -> Result<&'a str, SurfaceError> {
    std::str::from_utf8(body)
        .map_err(|error| unreadable(expected, format!("not UTF-8 at byte {}", error.valid_up_to())))
}

/// A string member, or nothing.
pub(super) fn text(members: &[Member<'_>], key: &str) -> String {
    string(members, key).unwrap_or_default()
}

/// A string member, if there is one.
pub(super) fn string(members: &[Member<'_>], key: &str) -> Option<String> {
    member(members, key).and_then(|value| value.string()).map(Cow::into_owned)
}

/// What a tool is called with: a string that holds JSON, or, as some servers write it, the JSON itself.
pub(super) fn arguments(node: &Node<'_>) -> Option<String> {
    node.string().map(Cow::into_owned).or_else(|| node.is_object().then(|| node.raw().to_owned()))
}

/// Token counts of a body: of the whole, or the last that events of a stream say.
pub(super) fn last_counted(body: &[u8], streamed: bool, counted: impl Fn(&Node<'_>) -> Option<Usage>) -> Option<Usage> {
    if !streamed {
        return counted(&Node::parse(body).ok()?);
    }
    let of_event = |event: &sse::Event| counted(&Node::parse(body.get(event.data.first()?.clone())?).ok()?);
    sse::events(body).iter().rev().find_map(of_event)
}

/// What a tool is called with, where the API takes an object only.
pub(super) fn object(arguments: &str) -> Result<&str, SurfaceError> {
    let object = Node::parse(arguments.as_bytes()).ok().filter(Node::is_object);
    let missing = || SurfaceError::NoPlace("the tool's arguments are no JSON object".to_owned());
    object.map(|object| object.raw()).ok_or_else(missing)
}

/// A number member, if there is one.
pub(super) fn number(members: &[Member<'_>], key: &str) -> Option<u64> {
    member(members, key).and_then(|value| value.value())
}

/// Whether a member is `true`.
pub(super) fn is_true(members: &[Member<'_>], key: &str) -> bool {
    member(members, key).is_some_and(|value| value.raw() == "true")
}

/// Whether a body says yes or no in a member of its own; nothing where it says neither.
pub(super) fn says_of_itself(body: &[u8], key: &str) -> Option<bool> {
    let (_, value) = scan::members(body).filter(|(member, _)| **member == *key.as_bytes()).last()?;
    match value {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// A string, or a list of strings.
pub(super) fn strings(node: &Node<'_>) -> Vec<String> {
    match node.string() {
        Some(one) => vec![one.into_owned()],
        None => node.elements().iter().filter_map(Node::string).map(Cow::into_owned).collect(),
    }
}

/// The string entries of an object.
pub(super) fn entries<'a>(node: &Node<'a>) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    node.members().into_iter().filter_map(|m| Some((m.key, m.value.string()?))).collect()
}

/// The same, owned.
pub(super) fn owned(entries: Vec<(Cow<'_, str>, Cow<'_, str>)>) -> Vec<(String, String)> {
    entries.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
}

/// The content of a message: a string, a list of parts, or nothing.
pub(super) fn parts(content: &Node<'_>) -> Vec<Part> {
    if let Some(text) = content.string() {
        return vec![Part::Text(text.into_owned())];
    }
    if content.is_object() {
        // No API has one here: what it says is carried, and not known.
        return vec![Part::Opaque(text(&content.members(), "type"))];
    }
    content.elements().iter().map(part).collect()
}

/// One part of a list: text where it has a `text`, otherwise its type.
pub(super) fn part(element: &Node<'_>) -> Part {
    let members = element.members();
    match string(&members, "text") {
        Some(text) => Part::Text(text),
        None => Part::Opaque(text(&members, "type")),
    }
}

/// The role of that name.
pub(super) fn role(name: Option<&str>) -> Role {
    match name {
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => Role::Other,
    }
}

impl Role {
    /// Its name in what Aegis shows and writes: `system`, `developer`, `user`, `assistant`, `tool`, `other`.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other => "other",
        }
    }
}

/// The name of a role in a request: APIs know no other one.
pub(super) fn role_name(role: Role) -> &'static str {
    if role == Role::Other { Role::User.name() } else { role.name() }
}

/// Replaces a member's value, or adds the member.
pub(super) fn set(object: &Node<'_>, members: &[Member<'_>], key: &str, value: &str, splices: &mut Splices) {
    match member(members, key) {
        Some(old) => splices.replace(old.span(), value),
        None => splices.insert_member(object, key, value),
    }
}

/// Takes members out of an object, each with the comma that parts it from its neighbour.
pub(super) fn remove_members(
    source: &str,
    object: &Node<'_>,
    members: &[Member<'_>],
    keys: &[&str],
    splices: &mut Splices,
) {
    let mut from = object.span().start + 1;
    let mut kept_before = false;
    let mut run: Option<std::ops::Range<usize>> = None;
    for member in members {
        let end = member.value.span().end;
        if keys.contains(&member.key.as_ref()) {
            run = Some(run.map_or(from, |run| run.start)..end);
        } else {
            if let Some(run) = run.take() {
                // Before the first member that stays, the comma behind the run goes; else the one before it.
                let comma =
                    source.get(run.end..).and_then(|rest| rest.find(',')).map_or(run.end, |at| run.end + at + 1);
                splices.replace(run.start..if kept_before { run.end } else { comma }, "");
            }
            kept_before = true;
        }
        from = end;
    }
    if let Some(run) = run {
        splices.replace(run, "");
    }
}

/// Word-wise pieces of a text, as models stream it: each word with the blanks before it.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let end = rest.get(word..)?.find(char::is_whitespace).map_or(rest.len(), |length| word + length);
        let (piece, tail) = rest.split_at_checked(end)?;
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}

/// For each part before an edit, its new text where that is another.
pub(super) fn new_texts(old: &[Part], new: &[Part]) -> Vec<Option<String>> {
    if old.len() == new.len() {
        let pair = |(old, new): (&Part, &Part)| new.as_text().filter(|_| old != new).map(str::to_owned);
        return old.iter().zip(new).map(pair).collect();
    }
    // Parts came or went: all text goes where the first text was.
    let mut all = Some(new.iter().filter_map(Part::as_text).collect::<String>());
    let fresh = |part: &Part| {
        let text = part.as_text()?;
        let fresh = all.take().unwrap_or_default();
        (fresh != text).then_some(fresh)
    };
    old.iter().map(fresh).collect()
}

/// The tool calls of a message, in the shape of chat completions.
pub(super) fn tool_calls(calls: &Node<'_>) -> Vec<ToolCall> {
    let call = |(origin, element): (usize, Node<'_>)| {
        let members = element.members();
        // Custom tools carry `custom.input` where functions carry `function.arguments`.
        let inner = member(&members, "function")
            .or_else(|| member(&members, "custom"))
            .map(|f| f.members())
            .unwrap_or_default();
        let text = |key: &str| member(&inner, key).and_then(|value| value.string()).map(Cow::into_owned);
        let said = |key: &str| member(&inner, key).and_then(|value| arguments(&value));
        ToolCall {
            id: member(&members, "id").and_then(|id| id.string()).unwrap_or_default().into_owned(),
            name: text("name").unwrap_or_default(),
            arguments: said("arguments").or_else(|| said("input")).unwrap_or_default(),
            origin: Some(origin),
        }
    };
    calls.elements().into_iter().enumerate().map(call).collect()
}

/// The calls that stood in a body, by where they stood there. Of several copies, the first.
pub(super) fn by_origin(calls: &[ToolCall]) -> HashMap<usize, &ToolCall> {
    let mut placed = HashMap::with_capacity(calls.len());
    for call in calls {
        if let Some(origin) = call.origin {
            placed.entry(origin).or_insert(call);
        }
    }
    placed
}

/// Edits the content of a message: text by text where the parts stay, with what is added behind them; otherwise as one text. `empty`
/// stands for no part at all.
pub(super) fn edit_parts(
    node: &Node<'_>,
    members: &[Member<'_>],
    key: &str,
    before: &[Part],
    after: &[Part],
    empty: &str,
    splices: &mut Splices,
) {
    let content = member(members, key);
    match content.filter(Node::is_array).map(|content| content.elements()) {
        Some(elements) if stays(before, after) => {
            for (element, (old, new)) in elements.iter().zip(before.iter().zip(after)) {
                if let (true, Part::Text(text), Some(place)) = (old != new, new, element.get("text")) {
                    splices.replace(place.span(), encode_string(text));
                }
            }
            let Some(last) = elements.last() else { return };
            for text in after.iter().skip(before.len()).filter_map(Part::as_text) {
                let end = last.span().end;
                let part = serde_json::json!({"type": text_type(&elements), "text": text});
                splices.replace(end..end, format!(",{part}"));
            }
        }
        _ => {
            let texts: Vec<_> = after.iter().filter_map(Part::as_text).collect();
            let whole = if after.is_empty() { empty.to_owned() } else { encode_string(&texts.join("\n")) };
            set(node, members, key, &whole, splices);
        }
    }
}

/// Whether the parts stay where they are, others behind them.
fn stays(before: &[Part], after: &[Part]) -> bool {
    let is_same_kind = |(old, new): (&Part, &Part)| old == new || (old.as_text().is_some() && new.as_text().is_some());
    before.len() == after.len()
        || (!before.is_empty() && before.len() < after.len() && before.iter().zip(after).all(is_same_kind))
}

/// What a text is called among these parts.
fn text_type(parts: &[Node<'_>]) -> &'static str {
    let is_of = |start: &str| {
        parts
            .iter()
            .any(|part| part.get("type").and_then(|kind| kind.string()).is_some_and(|kind| kind.starts_with(start)))
    };
    if is_of("output_") || is_of("refusal") {
        "output_text"
    } else if is_of("input_") && !is_of("input_audio") {
        "input_text"
    } else {
        "text"
    }
}

/// Whether a chunk of a stream has this member with a text as its value.
pub(super) fn says_string(chunk: &[u8], key: &[u8]) -> bool {
    let quoted = [b"\"", key, b"\""].concat();
    memchr::memmem::find_iter(chunk, &quoted).any(|at| {
        let value = chunk.get(at + quoted.len()..).unwrap_or_default().trim_ascii_start();
        value.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"\""))
    })
}

/// Names another model wherever a reply names one: in the body or the frames themselves, or in what they hold.
pub(super) fn write_model(body: &[u8], streamed: bool, model: &str) -> Result<Bytes, SurfaceError> {
    const EXPECTED: &str = "a reply";
    let source = source(body, EXPECTED)?;
    let whole = 0..source.len();
    let spans: Vec<_> =
        if streamed { sse::events(body).into_iter().flat_map(|event| event.data).collect() } else { vec![whole] };
    let mut splices = Splices::default();
    for span in spans {
        let Ok(root) = Node::parse_at(source, span) else { continue };
        for holder in
            [Some(root), root.get("response"), root.get("message"), root.get("interaction")].into_iter().flatten()
        {
            if let Some(place) = holder.get("model").filter(|place| place.string().is_some()) {
                splices.replace(place.span(), encode_string(model));
            }
        }
    }
    if splices.is_empty() {
        return Err(SurfaceError::NoPlace("the reply names no model".to_owned()));
    }
    Ok(splices.apply(body))
}
