//! Why a model stopped: which of the words of all APIs say that it did not answer.

use super::Reply;
use crate::trajectory::{CallEnding, RefusalKind};

/// Words for an answer that a filter kept back: `OpenAI` and Azure, Anthropic, Gemini, Zhipu, Bedrock.
const FILTERED: &[&str] = &[
    "content_filter",
    "content_filtered",
    "refusal",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "image_safety",
    "image_prohibited_content",
    "image_recitation",
    "sensitive",
    "guardrail_intervened",
];

/// Words for an answer that failed: `OpenRouter` and Mistral, Zhipu, `DeepSeek`, Gemini.
const FAILED: &[&str] = &[
    "error",
    "failed",
    "server_error",
    "internal_error",
    "network_error",
    "insufficient_system_resource",
    "malformed_function_call",
    "unexpected_tool_call",
    "function_call_filter",
];

/// Words for an answer that the server gave up: vLLM and `SGLang`.
const GIVEN_UP: &[&str] = &["abort", "aborted", "interrupted"];

/// Words for an answer that somebody took back.
const CANCELLED: &[&str] = &["cancelled", "canceled"];

/// Words for an answer that stops before all of it was said, in the words of the APIs: at the length that was asked for, at the
/// model's window, at a filter.
const STOPPED_SHORT: &[&str] =
    &["length", "max_tokens", "max_output_tokens", "content_filter", "model_context_window_exceeded"];

/// Whether a model stopped before it had said all, by the word for why it stopped.
pub fn stopped_short(reason: &str) -> bool {
    STOPPED_SHORT.iter().any(|word| word.eq_ignore_ascii_case(reason))
}

/// How a call ended by the word for why its model stopped. Words that are not known are answers: there are many for one that is
/// whole, and for one that stops at the length that was asked for.
pub(super) fn ending(reason: &str) -> CallEnding {
    // Gemini's OpenAI endpoint writes `content_filter: SAFETY`.
    let reason = reason.split(':').next().unwrap_or_default().trim();
    let is_of = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(reason));
    if is_of(FILTERED) {
        CallEnding::Refused(RefusalKind::Content)
    } else if is_of(FAILED) {
        CallEnding::Failed
    } else if is_of(GIVEN_UP) {
        CallEnding::Cut
    } else if is_of(CANCELLED) {
        CallEnding::Abandoned
    } else {
        CallEnding::Answered
    }
}

/// How a call ended by all alternatives of its reply: one that is an answer is enough.
pub(super) fn of_reply(reply: &Reply) -> CallEnding {
    let mut endings =
        reply.answers.iter().map(|answer| answer.finish_reason.as_deref().map_or(CallEnding::Answered, ending));
    let Some(first) = endings.next() else { return CallEnding::Answered };
    if endings.any(CallEnding::is_answered) { CallEnding::Answered } else { first }
}

/// The last text that a body has for this key, its quotes taken off and its escapes unread.
pub(super) fn last_word<'a>(body: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let quoted = format!("\"{key}\"");
    memchr::memmem::rfind_iter(body, quoted.as_bytes()).find_map(|at| {
        let value = body.get(at + quoted.len()..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let word = value.strip_prefix(b"\"")?;
        word.get(..memchr::memchr(b'"', word)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_apis_word_for_a_stop_before_the_end_is_known() {
        let words = ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "content_filter"];
        assert!(words.into_iter().all(stopped_short));
        assert!(!["stop", "end_turn", "tool_calls", ""].into_iter().any(stopped_short));
    }
}
