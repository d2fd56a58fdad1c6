//! What a reply says of its own length: token counts, and a backend's timings. Where an edit makes the reply longer or
//! shorter they follow it, at the rate of the reply as it came, so that no count tells an edited reply from others.

use bytes::Bytes;

use super::{
    Answer, Reply,
    splice::{Node, Splices, member},
    sse,
};

/// Counts of the reply's tokens, by the APIs' names; each with the object that says how many of them were no text, and with the
/// name of the sum that it is in. Gemini counts what was thought apart.
const REPLIED: &[(&str, &str, &str)] = &[
    ("completion_tokens", "completion_tokens_details", "total_tokens"),
    ("output_tokens", "output_tokens_details", "total_tokens"),
    ("candidatesTokenCount", "", "totalTokenCount"),
    ("total_output_tokens", "", "total_tokens"),
];
/// Members that hold the counts.
const HOLDERS: &[&str] = &["usage", "usageMetadata"];
/// Tokens that were thought and not said.
const THOUGHT: &str = "reasoning_tokens";
/// Characters of a token where the reply itself does not tell.
const CHARACTERS: u64 = 4;

/// How long a reply was, and is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReplyLengths {
    before: u64,
    after: u64,
}

/// The edited body with its counts as a reply of its length has them. What cannot be read is left as it is.
pub fn recounted(body: Bytes, streamed: bool, before: &Reply, after: &Reply) -> Bytes {
    let lengths = ReplyLengths { before: length(before), after: length(after) };
    let Some(source) = std::str::from_utf8(&body).ok().filter(|_| lengths.before != lengths.after) else {
        return body;
    };
    let mut splices = Splices::default();
    if streamed {
        for event in sse::events(source.as_bytes()) {
            let [span] = event.data.as_slice() else { continue };
            // Most frames count nothing, and are not taken apart.
            let counts =
                source.get(span.clone()).is_some_and(|text| text.contains("\"usage") || text.contains("\"timings\""));
            if let Some(root) = counts.then(|| Node::parse_at(source, span.clone()).ok()).flatten() {
                lengths.recount(&root, &mut splices);
            }
        }
    } else if let Ok(root) = Node::parse(source.as_bytes()) {
        lengths.recount(&root, &mut splices);
    }
    splices.apply(&body)
}

/// Characters of all that a reply says.
fn length(reply: &Reply) -> u64 {
    let count = |text: &str| text.chars().count() as u64;
    let calls = |answer: &Answer| -> u64 { answer.message.tool_calls.iter().map(|call| count(&call.arguments)).sum() };
    reply.answers.iter().map(|answer| count(&answer.message.text()) + calls(answer)).sum()
}

impl ReplyLengths {
    /// Rewrites what a reply, or the event that holds one, counts.
    fn recount(self, root: &Node<'_>, splices: &mut Splices) {
        let (whole, interaction) = (root.get("response"), root.get("interaction"));
        for holder in std::iter::once(root).chain(&whole).chain(&interaction) {
            for usage in HOLDERS.iter().filter_map(|key| holder.get(key)) {
                self.usage(&usage, splices);
            }
            if let Some(timings) = holder.get("timings") {
                self.timings(&timings, splices);
            }
        }
    }

    fn usage(self, usage: &Node<'_>, splices: &mut Splices) {
        let members = usage.members();
        let number = |key: &str| member(&members, key).and_then(|node| Some((node.value::<u64>()?, node.span())));
        for (key, details, sum) in REPLIED {
            let Some((count, span)) = number(key) else { continue };
            let thought = member(&members, details).and_then(|details| details.get(THOUGHT)?.value::<u64>());
            let thought = thought.unwrap_or_default().min(count);
            let now = thought + self.tokens(count - thought);
            splices.replace(span, now.to_string());
            if let Some((total, span)) = number(sum) {
                splices.replace(span, (total.saturating_sub(count) + now).to_string());
            }
        }
    }

    /// llama.cpp says how many tokens it made, and how long that took; a rate stays what it was.
    fn timings(self, timings: &Node<'_>, splices: &mut Splices) {
        let Some(made) = timings.get("predicted_n") else { return };
        let Some(count) = made.value::<u64>().filter(|count| *count > 0) else { return };
        let now = self.tokens(count);
        splices.replace(made.span(), now.to_string());
        if let Some((took, node)) = timings.get("predicted_ms").and_then(|node| Some((node.value::<f64>()?, node))) {
            #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
            let share = now as f64 / count as f64;
            splices.replace(node.span(), format!("{:.3}", took * share));
        }
    }

    /// So many tokens of the reply as it was, in the reply as it is.
    fn tokens(self, count: u64) -> u64 {
        let Self { before, after } = self;
        if before == 0 {
            return count + after.div_ceil(CHARACTERS);
        }
        let scaled = (count.saturating_mul(after) + before / 2) / before;
        scaled.max(u64::from(after > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{Message, Role};

    fn reply(text: &str) -> Reply {
        let message = Message::text_of(Role::Assistant, text);
        Reply { answers: vec![Answer { index: 0, message, finish_reason: None }], ..Reply::default() }
    }

    #[test]
    fn counts_follow_the_text_and_nothing_else_does() {
        let (long, short) = ("It is Paris, the capital.", "It is");
        for (before, after, body, expected) in [
            (
                long,
                short,
                r#"{"usage":{"prompt_tokens":9,"completion_tokens":10,"total_tokens":19}, "x":1}"#,
                r#"{"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}, "x":1}"#,
            ),
            (
                long,
                short,
                r#"{"usage":{"completion_tokens":110,"completion_tokens_details":{"reasoning_tokens":100}}}"#,
                r#"{"usage":{"completion_tokens":102,"completion_tokens_details":{"reasoning_tokens":100}}}"#,
            ),
            (
                long,
                short,
                r#"{"timings":{"prompt_n":9,"predicted_n":10,"predicted_ms":100.5,"predicted_per_second":99.5}}"#,
                r#"{"timings":{"prompt_n":9,"predicted_n":2,"predicted_ms":20.100,"predicted_per_second":99.5}}"#,
            ),
            (
                short,
                long,
                r#"{"response":{"usage":{"input_tokens":9,"output_tokens":2,"total_tokens":11}}}"#,
                r#"{"response":{"usage":{"input_tokens":9,"output_tokens":10,"total_tokens":19}}}"#,
            ),
            (
                long,
                short,
                r#"{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":10,"thoughtsTokenCount":4,"totalTokenCount":23}}"#,
                r#"{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"thoughtsTokenCount":4,"totalTokenCount":15}}"#,
            ),
            ("", "word", r#"{"usage":{"output_tokens":1}}"#, r#"{"usage":{"output_tokens":2}}"#),
            (long, "", r#"{"usage":{"output_tokens":7}}"#, r#"{"usage":{"output_tokens":0}}"#),
            (long, long, r#"{"usage":{"output_tokens":7}}"#, r#"{"usage":{"output_tokens":7}}"#),
            (long, short, r#"{"usage":null,"timings":{}}"#, r#"{"usage":null,"timings":{}}"#),
            (long, short, "no json", "no json"),
        ] {
            let (before, after) = (reply(before), reply(after));
            for streamed in [false, true] {
                let framed = |text: &str| {
                    if streamed { format!("data: {{}}\n\ndata: {text}\n\ndata: [DONE]\n\n") } else { text.to_owned() }
                };
                let written = recounted(Bytes::from(framed(body)), streamed, &before, &after);
                assert_eq!(String::from_utf8_lossy(&written), framed(expected));
            }
        }
    }
}
