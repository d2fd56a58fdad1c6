//! What the provider says when it refuses, and how much it says is left.

use std::time::Duration;

use crate::surface::ErrorBody;

/// Message, type and code that go with a status.
/// Source: <https://platform.openai.com/docs/guides/error-codes> and the errors that its SDKs' tests expect.
pub(in crate::surface) fn refusal(status: u16, code: Option<&str>) -> ErrorBody<'static> {
    const INVALID: &str = "invalid_request_error";
    let (message, kind, code) = match (status, code) {
        (429, Some("insufficient_quota")) => (
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            Some("insufficient_quota"),
        ),
        (400, Some("context_length_exceeded")) => (
            "This model's maximum context length is exceeded. Please reduce the length of the messages.",
            INVALID,
            Some("context_length_exceeded"),
        ),
        (400, Some("content_filter")) => (
            "The response was filtered due to the prompt triggering the content management policy.",
            INVALID,
            Some("content_filter"),
        ),
        (401, _) => ("Incorrect API key provided.", INVALID, Some("invalid_api_key")),
        (403, _) => ("You are not allowed to perform this operation.", INVALID, None),
        (404, _) => ("The model does not exist or you do not have access to it.", INVALID, Some("model_not_found")),
        (408 | 504, _) => ("The request timed out.", "server_error", Some("timeout")),
        (409, _) => ("The resource was updated by another request. Please try again.", INVALID, None),
        (413, _) => ("The request is too large.", INVALID, None),
        (429, _) => {
            ("Rate limit reached for requests. Please try again later.", "requests", Some("rate_limit_exceeded"))
        }
        (503, _) => ("The engine is currently overloaded, please try again later.", "server_error", None),
        (500..=599, _) => {
            ("The server had an error while processing your request. Sorry about that!", "server_error", None)
        }
        _ => ("The request could not be processed.", INVALID, None),
    };
    ErrorBody { message, kind, code, param: None }
}

/// Headers that say how much of a limit on requests is left.
pub(in crate::surface) fn limit_headers(limit: u32, left: u32, reset: Duration) -> Vec<(&'static str, String)> {
    vec![
        ("x-ratelimit-limit-requests", limit.to_string()),
        ("x-ratelimit-remaining-requests", left.to_string()),
        ("x-ratelimit-reset-requests", format!("{:.3}s", reset.as_secs_f64())),
    ]
}
