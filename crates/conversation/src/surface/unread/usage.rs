//! Token counts of replies that no surface reads: the names that providers use for them, wherever they stand.

use crate::{
    surface::{scan, sse},
    trajectory::Usage,
};

/// Members that hold counts, or what holds them.
const HOLDERS: [&[u8]; 8] =
    [b"usage", b"usageMetadata", b"meta", b"tokens", b"metadata", b"response", b"interaction", b"result"];
/// Names of the tokens that were asked, and of those that were answered: by the chat APIs, Messages, Gemini,
/// Bedrock, Gemini's Interactions, Ollama.
const ASKED: [&[u8]; 6] = [
    b"prompt_tokens",
    b"input_tokens",
    b"promptTokenCount",
    b"inputTokens",
    b"total_input_tokens",
    b"prompt_eval_count",
];
const ANSWERED: [&[u8]; 6] = [
    b"completion_tokens",
    b"output_tokens",
    b"candidatesTokenCount",
    b"outputTokens",
    b"total_output_tokens",
    b"eval_count",
];
/// How deep holders may stand in one another.
const DEEPEST: usize = 3;
/// The longest reply that is looked through, in bytes.
const LONGEST: usize = 8 << 20;

/// The token counts that a reply names: whole JSON, or the last that a stream of events or of lines names. A count that is the
/// answer itself, as a token count's `input_tokens` is, was used by no model and is none.
pub fn unread_usage(body: &[u8]) -> Option<Usage> {
    if body.len() > LONGEST {
        return None;
    }
    let start = body.trim_ascii_start();
    if start.starts_with(b"{") && !has_more_lines(start) {
        return named(start, 0);
    }
    if start.starts_with(b"{") {
        return start.split(|byte| *byte == b'\n').rev().find_map(|line| named(line, 0));
    }
    let events = sse::events(body);
    events.iter().rev().find_map(|event| named(body.get(event.data.first()?.clone())?, 0))
}

/// Whether a body is one JSON object a line.
fn has_more_lines(body: &[u8]) -> bool {
    body.windows(3).any(|three| three == b"}\n{") || body.windows(4).any(|four| four == b"}\r\n{")
}

fn named(json: &[u8], depth: usize) -> Option<Usage> {
    let (mut asked, mut answered, mut below) = (None, None, None);
    for (key, value) in scan::members(json) {
        let key: &[u8] = key.as_ref();
        // At the top only Ollama counts, by names of its own.
        let counts = depth > 0 || key.ends_with(b"eval_count");
        if counts && ASKED.contains(&key) {
            asked = count(value).or(asked);
        } else if counts && ANSWERED.contains(&key) {
            answered = count(value).or(answered);
        } else if depth < DEEPEST && HOLDERS.contains(&key) {
            below = named(value, depth + 1).or(below);
        }
    }
    if asked.is_none() && answered.is_none() {
        return below;
    }
    Some(Usage { input: asked.unwrap_or_default(), output: answered.unwrap_or_default() })
}

/// A count; some write it as `3.0`.
fn count(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    text.parse().ok().or_else(|| text.strip_suffix(".0")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_where_providers_write_them() {
        for (body, expected) in [
            (r#"{"usage":{"prompt_tokens":5,"total_tokens":5}}"#, Some((5, 0))),
            (r#"{"id":"x","usage":{"input_tokens":7,"output_tokens":2}}"#, Some((7, 2))),
            (r#"{"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":9}}"#, Some((4, 9))),
            (r#"{"usage":{"inputTokens":4,"outputTokens":9}}"#, Some((4, 9))),
            (r#"{"usage":{"total_input_tokens":4,"total_output_tokens":9}}"#, Some((4, 9))),
            (r#"{"meta":{"tokens":{"input_tokens":3.0,"output_tokens":1.0}}}"#, Some((3, 1))),
            (
                r#"{"usage":{"billed_units":{"input_tokens":1},"tokens":{"input_tokens":3,"output_tokens":1}}}"#,
                Some((3, 1)),
            ),
            ("{\"done\":false}\n{\"done\":true,\"prompt_eval_count\":6,\"eval_count\":8}\n", Some((6, 8))),
            (
                "data: {\"usageMetadata\":{\"promptTokenCount\":1}}\n\ndata: {\"usageMetadata\":{\"promptTokenCount\":1,\"candidatesTokenCount\":2}}\n\n",
                Some((1, 2)),
            ),
            (
                "event: interaction.complete\ndata: {\"interaction\":{\"usage\":{\"total_input_tokens\":1,\"total_output_tokens\":2}}}\n\n",
                Some((1, 2)),
            ),
            (r#"{"input_tokens":14}"#, None),
            (r#"{"results":[{"usage":{"input_tokens":14}}]}"#, None),
            ("", None),
            ("\u{0}\u{1}", None),
            (r#"{"usage":{"prompt_tokens":"#, None),
        ] {
            let expected = expected.map(|(input, output)| Usage { input, output });
            assert_eq!(unread_usage(body.as_bytes()), expected, "{body}");
        }
    }
}
