//! What the provider says when it refuses, and how much it says is left.

use std::time::Duration;

use crate::surface::ErrorBody;

/// Message and type that go with a status.
/// Source: <https://docs.anthropic.com/en/api/errors>.
pub(super) fn refusal(status: u16, code: Option<&str>) -> ErrorBody<'static> {
    let (message, kind) = match (status, code) {
        (400, Some("context_length_exceeded")) => {
            ("prompt is too long: it exceeds the maximum number of tokens", "invalid_request_error")
        }
        (401, _) => ("invalid x-api-key", "authentication_error"),
        (402, _) | (429, Some("insufficient_quota")) => {
            ("Your credit balance is too low to access the API.", "billing_error")
        }
        (403, _) => ("Your API key does not have permission to use the specified resource.", "permission_error"),
        (404, _) => ("The requested resource could not be found.", "not_found_error"),
        (413, _) => ("Request exceeds the maximum size", "request_too_large"),
        (429, _) => {
            ("This request would exceed your account's rate limit. Please try again later.", "rate_limit_error")
        }
        (408 | 504, _) => ("Request timed out", "timeout_error"),
        (503 | 529, _) => ("Overloaded", "overloaded_error"),
        (500..=599, _) => ("Internal server error", "api_error"),
        _ => ("The request could not be processed.", "invalid_request_error"),
    };
    ErrorBody { message, kind, code: None, param: None }
}

/// Headers that say how much of a limit on requests is left.
pub(super) fn limit_headers(limit: u32, left: u32, reset: Duration) -> Vec<(&'static str, String)> {
    vec![
        ("anthropic-ratelimit-requests-limit", limit.to_string()),
        ("anthropic-ratelimit-requests-remaining", left.to_string()),
        ("anthropic-ratelimit-requests-reset", format!("{:.0}", reset.as_secs_f64().ceil())),
    ]
}
