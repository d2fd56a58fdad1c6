//! What an error means that a provider says in a body: whom it blames, told from its codes, its words and its status.
//!
//! Codes and words are those of `OpenAI`, Azure, Anthropic, Gemini's `OpenAI` endpoint, Mistral, Groq, xAI, `DeepSeek`, Bedrock,
//! `OpenRouter`, `LiteLLM`, vLLM, `SGLang`, llama.cpp and Ollama, as their documentation, their sources and reports of their users have them.

use std::borrow::Cow;

use super::{
    fields::string,
    splice::{Node, member},
};
use crate::trajectory::{CallEnding, RefusalKind};

/// So much of an error's text is looked at, in bytes: what providers say of themselves comes first, and quotes of the request after.
const LOOKED_AT: usize = 4096;

/// Members that make an object an error where no member of an answer stands beside them.
const BARE: &[&str] = &["detail", "errors", "message", "msg", "error_message", "error_msg", "errorMessage"];

/// Codes and types that say enough by themselves. Case, `_`, `-` and blanks do not count.
const CODES: &[(CallEnding, &[&str])] = &[
    (
        CallEnding::Refused(RefusalKind::Rate),
        &[
            "rate_limit_exceeded",
            "rate_limit_error",
            "rate_limited",
            "RateLimitError",
            "too_many_requests",
            "insufficient_quota",
            "quota_exceeded",
            "billing_error",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_balance",
            "payment_required",
            "usage_not_included",
            "usage_limit_reached",
            "RESOURCE_EXHAUSTED",
            "ThrottlingException",
            "throttling",
            "tokens",
            "requests",
            "capacity_exceeded",
        ],
    ),
    (
        CallEnding::Refused(RefusalKind::TooLong),
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "ContextWindowExceededError",
            "exceed_context_size_error",
            "request_too_large",
            "prompt_too_long",
            "input_too_long",
            "string_above_max_length",
            "array_above_max_length",
            "model_max_prompt_tokens_exceeded",
            "max_input_tokens_exceeded",
        ],
    ),
    (
        CallEnding::Refused(RefusalKind::Content),
        &[
            "content_filter",
            "content_policy_violation",
            "ContentPolicyViolationError",
            "ResponsibleAIPolicyViolation",
            "invalid_prompt",
            "image_content_policy_violation",
            "data_inspection_failed",
            "cyber_policy",
            "moderation_blocked",
            "prohibited_content",
            "safety_violations",
            "sensitive",
        ],
    ),
    (
        CallEnding::Refused(RefusalKind::Auth),
        &[
            "authentication_error",
            "AuthenticationError",
            "invalid_api_key",
            "incorrect_api_key",
            "permission_error",
            "PERMISSION_DENIED",
            "PermissionDeniedError",
            "UNAUTHENTICATED",
            "unauthorized",
            "access_denied",
            "AccessDeniedException",
            "account_deactivated",
            "invalid_authentication",
            "invalid_token",
            "unsupported_country_region_territory",
        ],
    ),
];

/// Codes and types that say only who is to blame: a status beside them says more.
const GENERAL: &[(CallEnding, &[&str])] = &[
    (
        CallEnding::Failed,
        &[
            "server_error",
            "internal_server_error",
            "InternalServerError",
            "internal_error",
            "INTERNAL",
            "api_error",
            "overloaded_error",
            "engine_overloaded",
            "server_is_overloaded",
            "slow_down",
            "timeout_error",
            "timeout",
            "service_unavailable",
            "ServiceUnavailableError",
            "UNAVAILABLE",
            "DEADLINE_EXCEEDED",
            "bad_gateway",
            "provider_unavailable",
            "upstream_error",
            "vector_store_timeout",
        ],
    ),
    (
        CallEnding::Refused(RefusalKind::Other),
        &[
            "invalid_request_error",
            "invalid_request",
            "BadRequestError",
            "bad_request",
            "not_found_error",
            "NotFoundError",
            "not_found",
            "model_not_found",
            "INVALID_ARGUMENT",
            "FAILED_PRECONDITION",
            "unsupported_parameter",
            "unsupported_value",
            "unknown_parameter",
            "invalid_value",
            "invalid_type",
            "missing_required_parameter",
            "invalid_request_body",
            "ValidationException",
            "extra_forbidden",
            "missing",
            "UnprocessableEntityError",
            "conflict_error",
        ],
    ),
];

/// Words of messages, in small letters.
const WORDS: &[(CallEnding, &[&str])] = &[
    (
        CallEnding::Refused(RefusalKind::TooLong),
        &[
            "maximum context length",
            "context length exceeded",
            "context_length",
            "context window",
            "context size",
            "exceed context limit",
            "contextwindowexceeded",
            "prompt is too long",
            "input is too long",
            "prompt exceeds max length",
            "too large for model with",
            "exceeds the maximum number of tokens",
            "maximum prompt length",
            "longer than the model's context",
            "exceeded model token limit",
            "reduce the length of",
            "range of input length",
            "prompt token count of",
            "maximum number of tokens allowed",
        ],
    ),
    (
        CallEnding::Refused(RefusalKind::Content),
        &[
            "content management policy",
            "content filter",
            "content_filter",
            "content policy",
            "flagged as",
            "usage policies",
            "usage policy",
            "safety system",
            "moderation",
            "inappropriate content",
            "prohibited content",
            "responsible ai",
        ],
    ),
    (
        CallEnding::Refused(RefusalKind::Rate),
        &[
            "rate limit",
            "rate-limit",
            "ratelimit",
            "too many requests",
            "too many tokens",
            "quota",
            "insufficient credits",
            "insufficient balance",
            "credit balance is too low",
            "request limit reached",
            "limit exceeded for account",
        ],
    ),
    (
        CallEnding::Refused(RefusalKind::Auth),
        &[
            "invalid api key",
            "incorrect api key",
            "api key not valid",
            "no auth credentials",
            "unauthorized",
            "not authenticated",
            "permission denied",
            "not authorized",
            "authentication failed",
            "does not have access",
        ],
    ),
];

/// Words that lay it on the request, where nothing says more.
const ABOUT_THE_REQUEST: &[&str] = &[
    "not supported",
    "unsupported",
    "unknown parameter",
    "unrecognized",
    "not permitted",
    "field required",
    "not found",
    "does not exist",
    "bad request",
    "must be",
    "is required",
];

/// The part of a body, or of an event's data, that says an error; `None` where it says none. `answers`: the members that only an
/// answer of this API has.
pub(super) fn find<'a>(root: &Node<'a>, answers: &[&str]) -> Option<Node<'a>> {
    // Gemini's OpenAI endpoint says an error as a list of one.
    let root = if root.is_array() { root.elements().into_iter().next()? } else { *root };
    let members = root.members();
    if let Some(error) = member(&members, "error").filter(is_error_value) {
        return Some(error);
    }
    let says = |key: &str| string(&members, key).is_some_and(|word| word.eq_ignore_ascii_case("error"));
    if says("type") || says("object") {
        return Some(root);
    }
    // FastChat and Baidu beside the words, MiniMax in an object of its own; 0 is no error.
    let is_code = |value: &Node<'_>| value.value::<i64>().is_some_and(|code| code != 0);
    if member(&members, "error_code").as_ref().is_some_and(is_code) {
        return Some(root);
    }
    let base = member(&members, "base_resp");
    if base.as_ref().and_then(|base| base.get("status_code")).as_ref().is_some_and(is_code) {
        return base;
    }
    if answers.iter().any(|key| member(&members, key).is_some()) {
        return None;
    }
    BARE.iter().any(|key| member(&members, key).as_ref().is_some_and(is_error_value)).then_some(root)
}

/// The error that a choice of a chat completion carries beside what was said of it, as `OpenRouter` sends it.
pub(super) fn find_in_choices<'a>(root: &Node<'a>) -> Option<Node<'a>> {
    let choices = root.get("choices").map(|choices| choices.elements()).unwrap_or_default();
    choices.iter().find_map(|choice| choice.get("error").filter(is_error_value))
}

/// Whether a value says something: gateways write `null`, `""`, `{}` and objects of nothing else where nothing went wrong.
pub(super) fn is_error_value(value: &Node<'_>) -> bool {
    let says = |value: &Node<'_>| !matches!(value.raw(), "null" | "false" | "0" | "\"\"" | "\"0\"" | "{}" | "[]");
    says(value) && !(value.is_object() && value.members().iter().all(|member| !says(&member.value)))
}

/// How a call ended whose body says this error. `status`: that of the reply, where it is one of an error.
pub(super) fn ending(error: &Node<'_>, status: Option<u16>) -> CallEnding {
    let said = ProviderError::read(error);
    let by_status = status.map(CallEnding::of_status).filter(|ending| !ending.is_answered());
    if by_status == Some(CallEnding::Refused(RefusalKind::Rate)) {
        return CallEnding::Refused(RefusalKind::Rate);
    }
    let certain = said.code(CODES).or_else(|| ending_of_words(&said.text)).or(by_status);
    let inner = || said.status.map(CallEnding::of_status).filter(|ending| !ending.is_answered());
    let blamed = || said.code(GENERAL).or_else(|| about_the_request(&said.text));
    certain.or_else(inner).or_else(blamed).unwrap_or(CallEnding::Failed)
}

/// How a call ended that was answered with a text that is none of the API: a page, a line of a proxy.
pub(super) fn ending_of_text(text: &str) -> CallEnding {
    let text = start(text).to_lowercase();
    ending_of_words(&text).or_else(|| about_the_request(&text)).unwrap_or(CallEnding::Failed)
}

/// What an error says of itself.
#[derive(Debug, Default)]
struct ProviderError {
    codes: Vec<String>,
    status: Option<u16>,
    /// Its messages, in small letters.
    text: String,
}

impl ProviderError {
    fn read(error: &Node<'_>) -> Self {
        let mut said = Self::default();
        said.take(error, 0);
        said
    }

    /// Takes a value in. Errors of providers stand within those of gateways, as objects or as JSON in a text.
    fn take(&mut self, value: &Node<'_>, depth: u8) {
        if let Some(text) = value.string() {
            self.text.push_str(&start(&text).to_lowercase());
            self.text.push('\n');
            return;
        }
        for member in value.members() {
            let value = &member.value;
            match member.key.as_ref() {
                "code" | "type" | "status" | "error_type" | "error_code" | "status_code" => match value.string() {
                    Some(word) => self.code_or_status(word),
                    None => self.status = self.status.or_else(|| value.value().filter(|status| *status >= 400)),
                },
                "message" | "msg" | "detail" | "error_message" | "error_msg" | "errorMessage" | "status_msg"
                | "raw" | "reason" => match value.string() {
                    Some(_) => self.take(value, depth),
                    None => self.list(value, depth),
                },
                "error" | "errors" | "innererror" | "inner_error" | "metadata" | "details" => self.list(value, depth),
                _ => {}
            }
        }
    }

    fn list(&mut self, value: &Node<'_>, depth: u8) {
        if depth >= 3 {
            return;
        }
        if value.is_array() {
            value.elements().iter().take(4).for_each(|one| self.take(one, depth + 1));
        } else {
            self.take(value, depth + 1);
        }
    }

    /// A code is a word, or a status written as one.
    fn code_or_status(&mut self, word: Cow<'_, str>) {
        match word.parse::<u16>() {
            Ok(status) => self.status = self.status.or(Some(status).filter(|status| (400..600).contains(status))),
            Err(_) => self.codes.push(word.into_owned()),
        }
    }

    fn code(&self, table: &[(CallEnding, &[&str])]) -> Option<CallEnding> {
        let known = |codes: &[&str]| codes.iter().any(|code| self.codes.iter().any(|said| is_same(code, said)));
        table.iter().find(|(_, codes)| known(codes)).map(|(ending, _)| *ending)
    }
}

fn ending_of_words(text: &str) -> Option<CallEnding> {
    WORDS.iter().find(|(_, words)| words.iter().any(|word| text.contains(word))).map(|(ending, _)| *ending)
}

fn about_the_request(text: &str) -> Option<CallEnding> {
    let about = ABOUT_THE_REQUEST.iter().any(|word| text.contains(word));
    about.then_some(CallEnding::Refused(RefusalKind::Other))
}

/// Whether two codes are the same word, however it is written.
fn is_same(one: &str, other: &str) -> bool {
    fn letters(word: &str) -> impl Iterator<Item = u8> {
        word.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase())
    }
    letters(one).eq(letters(other))
}

/// The part of a text that is looked at.
fn start(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or(text)
}
