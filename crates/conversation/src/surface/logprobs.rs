//! Log-probabilities of a reply's tokens: asked for in a request that does not, read out of a reply, and taken out of it again,
//! so that the client sees what it would have seen without.
//!
//! Where nobody asks, backends write `null` at the place, an empty list, or nothing. Which it is, the reply tells: those that
//! put the member before `finish_reason`, as the original API does, write `null` (or `[]`) there; those that put it last
//! leave it out.

use bytes::Bytes;

use super::{
    fields,
    splice::{Member, Node, Splices, member},
    sse,
};

/// The request with members that ask for log-probabilities; `None` where it says anything about them itself, or is no object.
pub(super) fn add_request(body: &[u8], add: &[(&str, &str)], own: &[&str]) -> Option<Bytes> {
    let root = Node::parse(body).ok().filter(Node::is_object)?;
    let members = root.members();
    if own.iter().any(|key| member(&members, key).is_some()) {
        return None;
    }
    let mut splices = Splices::default();
    for (key, value) in add {
        splices.insert_member(&root, key, value);
    }
    Some(splices.apply(body))
}

/// The JSON of a whole reply, or of one event of a streamed one, without them; `None` where it has none.
pub(super) fn dropped(json: &[u8], place: impl Fn(&Node<'_>, &str, &mut Splices)) -> Option<Bytes> {
    // Most events of a stream have none, and are not parsed for that.
    memchr::memmem::find(json, b"logprobs")?;
    let source = std::str::from_utf8(json).ok()?;
    let root = Node::parse(json).ok()?;
    let mut splices = Splices::default();
    place(&root, source, &mut splices);
    (!splices.is_empty()).then(|| splices.apply(json))
}

/// Takes them out of each choice.
pub(super) fn drop_of_choices(root: &Node<'_>, source: &str, splices: &mut Splices) {
    let choices = root.get("choices").map(|choices| choices.elements()).unwrap_or_default();
    for choice in choices {
        let members = choice.members();
        let Some(at) = members.iter().position(|member| member.key == "logprobs" && !member.value.is_null()) else {
            continue;
        };
        let closes = members.iter().position(|member| member.key == "finish_reason");
        if closes.is_none_or(|closes| at < closes) {
            replace(members.get(at), "null", splices);
        } else {
            fields::remove_members(source, &choice, &members, &["logprobs"], splices);
        }
    }
}

/// Empties them in each part of text, whether it stands alone, in an item, or in a whole response.
pub(super) fn drop_of_parts(root: &Node<'_>, splices: &mut Splices) {
    let members = root.members();
    let filled = |member: &&Member<'_>| member.key == "logprobs" && !member.value.elements().is_empty();
    replace(members.iter().find(filled), "[]", splices);
    for key in ["response", "item", "part"] {
        if let Some(inner) = member(&members, key) {
            drop_of_parts(&inner, splices);
        }
    }
    for key in ["output", "content"] {
        let inner = member(&members, key).map(|list| list.elements()).unwrap_or_default();
        for inner in &inner {
            drop_of_parts(inner, splices);
        }
    }
}

fn replace(member: Option<&Member<'_>>, with: &str, splices: &mut Splices) {
    if let Some(member) = member {
        splices.replace(member.value.span(), with);
    }
}

/// The log-probabilities in a reply, in order; of several choices those of the first.
pub(super) fn read(body: &[u8], streamed: bool, of: fn(&Node<'_>, &mut Vec<f64>)) -> Vec<f64> {
    let mut found = Vec::new();
    let mut look = |json: &[u8]| {
        if let Ok(root) = Node::parse(json) {
            of(&root, &mut found);
        }
    };
    if streamed {
        for event in sse::events(body) {
            event.data.into_iter().filter_map(|span| body.get(span)).for_each(&mut look);
        }
    } else {
        look(body);
    }
    found
}

/// Those of the first choice: a list of tokens, each with its own, or a list of numbers.
pub(super) fn of_choices(root: &Node<'_>, found: &mut Vec<f64>) {
    let choices = root.get("choices").map(|choices| choices.elements()).unwrap_or_default();
    let is_first = |choice: &&Node<'_>| choice.get("index").is_none_or(|index| index.raw() == "0");
    let Some(logprobs) = choices.iter().find(is_first).and_then(|choice| choice.get("logprobs")) else { return };
    for key in ["content", "refusal"] {
        let tokens = logprobs.get(key).map(|tokens| tokens.elements()).unwrap_or_default();
        found.extend(tokens.iter().filter_map(|token| token.get("logprob")?.value::<f64>()));
    }
    let numbers = logprobs.get("token_logprobs").map(|numbers| numbers.elements()).unwrap_or_default();
    found.extend(numbers.iter().filter_map(Node::value::<f64>));
}

/// Those of the parts of text: of a whole response, or of the events that carry its text piece by piece.
pub(super) fn of_parts(root: &Node<'_>, found: &mut Vec<f64>) {
    let tokens = |node: &Node<'_>, found: &mut Vec<f64>| {
        let tokens = node.get("logprobs").map(|tokens| tokens.elements()).unwrap_or_default();
        found.extend(tokens.iter().filter_map(|token| token.get("logprob")?.value::<f64>()));
    };
    if root.get("type").and_then(|kind| kind.string()).as_deref() == Some("response.output_text.delta") {
        return tokens(root, found);
    }
    for item in root.get("output").map(|output| output.elements()).unwrap_or_default() {
        let parts = item.get("content").map(|parts| parts.elements()).unwrap_or_default();
        for part in &parts {
            tokens(part, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::surface::{OpenaiChat, OpenaiCompletions, OpenaiResponses, Surface};

    fn without(surface: &dyn Surface, json: &str) -> String {
        let dropped = surface.drop_logprobs(json.as_bytes());
        dropped.map_or_else(|| "unchanged".to_owned(), |dropped| String::from_utf8(dropped.to_vec()).expect("text"))
    }

    #[test]
    fn a_request_that_says_nothing_of_them_asks() {
        let cases: [(&dyn Surface, &str, Option<&str>); 8] = [
            (&OpenaiChat, r#"{"model": "m", "messages":[]}"#, Some(r#"{"logprobs":true,"model": "m", "messages":[]}"#)),
            (&OpenaiChat, r#"{"logprobs":false,"messages":[]}"#, None),
            (&OpenaiChat, r#"{"top_logprobs":2,"messages":[]}"#, None),
            (&OpenaiChat, "[]", None),
            (&OpenaiCompletions, r#"{"prompt":"p"}"#, Some(r#"{"logprobs":1,"prompt":"p"}"#)),
            (&OpenaiResponses, r#"{"input":"p"}"#, Some(r#"{"include":["message.output_text.logprobs"],"input":"p"}"#)),
            (
                &OpenaiResponses,
                r#"{"include": ["reasoning.encrypted_content" ],"input":"p"}"#,
                Some(r#"{"include": ["reasoning.encrypted_content","message.output_text.logprobs" ],"input":"p"}"#),
            ),
            (&OpenaiResponses, r#"{"include":["message.output_text.logprobs"]}"#, None),
        ];
        for (surface, body, expected) in cases {
            let asked = surface.ask_logprobs(body.as_bytes());
            let asked = asked.as_deref().map(|asked| std::str::from_utf8(asked).expect("text"));
            assert_eq!(asked, expected, "{} {body}", surface.name());
        }
    }

    #[test]
    fn what_was_asked_for_is_taken_out_and_nothing_else_moves() {
        let list = r#"{"content":[{"token":"a","logprob":-0.1,"bytes":[97],"top_logprobs":[]}],"refusal":null}"#;
        let chat = |before: &str, after: &str| {
            format!(r#"{{"choices":[ {{"index":0,{before}"finish_reason":"stop"{after}}} ]}}"#)
        };
        // As the original API writes it.
        let null = chat(r#""logprobs": null , "#, "");
        assert_eq!(without(&OpenaiChat, &chat(&format!(r#""logprobs": {list} , "#), "")), null);
        assert_eq!(without(&OpenaiChat, &null), "unchanged");
        // As servers write it that leave it out where nobody asks.
        assert_eq!(without(&OpenaiChat, &chat("", &format!(r#","logprobs":{list}"#))), chat("", ""));
        assert_eq!(without(&OpenaiChat, &chat("", &format!(r#","logprobs":{list},"x":1"#))), chat("", r#","x":1"#));
        assert_eq!(without(&OpenaiChat, r#"{"choices":[{"message":{"content":"logprobs"}}]}"#), "unchanged");
        assert_eq!(without(&OpenaiChat, "data: logprobs"), "unchanged");
        let old = r#"{"choices":[{"text":"a","index":0,"logprobs":{"tokens":["a"],"token_logprobs":[-0.5]},"finish_reason":"stop"}]}"#;
        assert_eq!(
            without(&OpenaiCompletions, old),
            r#"{"choices":[{"text":"a","index":0,"logprobs":null,"finish_reason":"stop"}]}"#
        );
        let part = |inner: &str| format!(r#"{{"type":"output_text","annotations":[],"logprobs":{inner},"text":"a"}}"#);
        let token = r#"[{"token":"a","logprob":-0.1}]"#;
        for around in [
            r#"{"output":[{"type":"message","content":[PART]}],"top_logprobs":0}"#,
            r#"{"type":"response.completed","response":{"output":[{"content":[PART]}]}}"#,
            r#"{"type":"response.output_item.done","item":{"content":[PART]}}"#,
            r#"{"type":"response.content_part.done","part":PART}"#,
            "PART",
        ] {
            let whole = |inner: &str| around.replace("PART", &part(inner));
            assert_eq!(without(&OpenaiResponses, &whole(token)), whole("[]"));
            assert_eq!(without(&OpenaiResponses, &whole("[]")), "unchanged");
        }
    }

    #[test]
    fn they_are_read_whole_and_streamed() {
        let chat = r#"{"choices":[{"index":1,"logprobs":{"content":[{"logprob":-9}]}},{"index":0,"logprobs":{"content":[{"logprob":-1.5},{"logprob":-0.5}]}}]}"#;
        assert_eq!(OpenaiChat.logprobs(chat.as_bytes(), false), [-1.5, -0.5]);
        let stream =
            format!("data: {chat}\n\n: comment\n\ndata: {{\"choices\":[]}}\n\ndata: {chat}\n\ndata: [DONE]\n\n");
        assert_eq!(OpenaiChat.logprobs(stream.as_bytes(), true), [-1.5, -0.5, -1.5, -0.5]);
        let old = r#"{"choices":[{"logprobs":{"token_logprobs":[null,-2]}}]}"#;
        assert_eq!(OpenaiCompletions.logprobs(old.as_bytes(), false), [-2.0]);
        let response = r#"{"output":[{"type":"reasoning"},{"content":[{"text":"a","logprobs":[{"logprob":-0.25}]}]}]}"#;
        assert_eq!(OpenaiResponses.logprobs(response.as_bytes(), false), [-0.25]);
        // What ends a stream says all of it again.
        let delta = r#"{"type":"response.output_text.delta","delta":"a","logprobs":[{"logprob":-0.25}]}"#;
        let done = r#"{"type":"response.output_text.done","logprobs":[{"logprob":-0.25}]}"#;
        let end = format!(r#"{{"type":"response.completed","response":{response}}}"#);
        let stream = format!("event: x\ndata: {delta}\n\ndata: {done}\n\ndata: {end}\n\n");
        assert_eq!(OpenaiResponses.logprobs(stream.as_bytes(), true), [-0.25]);
        assert!(crate::surface::AnthropicMessages.ask_logprobs(b"{}").is_none());
    }
}
