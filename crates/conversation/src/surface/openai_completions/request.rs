//! A request body: reading it, and splicing an edited view into it.

use bytes::Bytes;

use crate::surface::{
    Conversation, Message, Part, Role, SurfaceError,
    fields::{self, entries, is_true, number, owned, string, text, unreadable},
    parameters::Parameters,
    splice::{Node, Splices, encode_string, member},
};

const EXPECTED: &str = "a completion request";

/// What the parameters are called.
const PARAMETERS: Parameters =
    Parameters { request: EXPECTED, longest: "max_tokens", stop: Some("stop"), seed: Some("seed") };

/// What a prompt of token numbers is read as.
const TOKENS: &str = "tokens";

pub(super) fn read(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let prompt = member(&members, "prompt").filter(|prompt| prompt.is_array() || prompt.string().is_some());
    let prompt = prompt.ok_or_else(|| unreadable(EXPECTED, "`prompt` is missing or is neither a text nor a list"))?;
    Ok(Conversation {
        model: text(&members, "model"),
        messages: prompts(&prompt)
            .into_iter()
            .enumerate()
            .map(|(origin, part)| Message {
                parts: vec![part],
                origin: Some(origin),
                ..Message::text_of(Role::User, String::new())
            })
            .collect(),
        stream: is_true(&members, "stream"),
        stream_usage: member(&members, "stream_options")
            .is_some_and(|options| is_true(&options.members(), "include_usage")),
        choices: number(&members, "n").and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
        max_tokens: number(&members, "max_tokens"),
        stop: member(&members, "stop").map(|v| fields::strings(&v)).unwrap_or_default(),
        metadata: member(&members, "metadata").map(|v| owned(entries(&v))).unwrap_or_default(),
        sampling: PARAMETERS.sampling(&members),
        user: string(&members, "user"),
        ..Conversation::default()
    })
}

/// A text, several texts, the token numbers of one text, or those of several.
fn prompts(prompt: &Node<'_>) -> Vec<Part> {
    if let Some(text) = prompt.string() {
        return vec![Part::Text(text.into_owned())];
    }
    let elements = prompt.elements();
    if elements.iter().any(|element| element.string().is_none() && !element.is_array()) {
        return vec![Part::Opaque(TOKENS.to_owned())];
    }
    let part = |element: &Node<'_>| match element.string() {
        Some(text) => Part::Text(text.into_owned()),
        None => Part::Opaque(TOKENS.to_owned()),
    };
    elements.iter().map(part).collect()
}

/// Splices the edited view into the body. A message that an edit added joins the one prompt: there are no roles.
pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let root = Node::parsed_before(fields::source(body, EXPECTED)?);
    let members = root.members();
    let prompt = member(&members, "prompt").ok_or_else(|| no_place("`prompt` is missing"))?;
    let mut splices = Splices::default();
    if before.messages != after.messages {
        let single = prompt.string().is_some();
        let kept = after.messages.iter().zip(&before.messages).all(|(new, old)| new.origin == old.origin);
        if after.messages.iter().any(|message| !message.tool_calls.is_empty()) {
            return Err(no_place("a completion request has no tool calls"));
        }
        let role = |message: &Message| before.messages.get(message.origin?).map(|old| old.role != message.role);
        if after.messages.iter().any(|message| role(message) == Some(true)) {
            return Err(no_place("a completion request has no roles"));
        }
        if single {
            let texts: Vec<_> = after.messages.iter().map(Message::text).collect();
            splices.replace(prompt.span(), encode_string(&texts.join("\n\n")));
        } else if kept && after.messages.len() == before.messages.len() {
            for ((element, old), new) in prompt.elements().iter().zip(&before.messages).zip(&after.messages) {
                if old.parts != new.parts && element.string().is_none() {
                    return Err(no_place("the prompt is given as token numbers"));
                }
                if old.parts != new.parts {
                    splices.replace(element.span(), encode_string(&new.text()));
                }
            }
        } else {
            return Err(no_place("several prompts are asked at once: each is a request of its own, not a history"));
        }
    }
    if before.tools != after.tools {
        return Err(no_place("a completion request has no tools"));
    }
    PARAMETERS.write(&root, &members, before, after, &mut splices)?;
    Ok(splices.apply(body))
}

fn no_place(why: &str) -> SurfaceError {
    SurfaceError::NoPlace(why.to_owned())
}
