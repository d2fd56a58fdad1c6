//! What the provider says when it refuses.

use crate::surface::ErrorBody;

/// Words of statuses, and the HTTP status of each. Source: <https://ai.google.dev/gemini-api/docs/troubleshooting>.
const STATUSES: &[(&str, u16)] = &[
    ("INVALID_ARGUMENT", 400),
    ("FAILED_PRECONDITION", 400),
    ("UNAUTHENTICATED", 401),
    ("PERMISSION_DENIED", 403),
    ("NOT_FOUND", 404),
    ("ABORTED", 409),
    ("RESOURCE_EXHAUSTED", 429),
    ("CANCELLED", 499),
    ("INTERNAL", 500),
    ("UNAVAILABLE", 503),
    ("DEADLINE_EXCEEDED", 504),
];

/// Message and status that go with an HTTP status.
pub(super) fn refusal(status: u16, code: Option<&str>) -> ErrorBody<'static> {
    let (message, kind) = match (status, code) {
        (400, Some("context_length_exceeded")) => {
            ("The input token count exceeds the maximum number of tokens allowed.", "INVALID_ARGUMENT")
        }
        (401, _) => ("Request had invalid authentication credentials.", "UNAUTHENTICATED"),
        (402, _) | (429, Some("insufficient_quota")) => {
            ("You exceeded your current quota, please check your plan and billing details.", "RESOURCE_EXHAUSTED")
        }
        (403, _) => ("The caller does not have permission", "PERMISSION_DENIED"),
        (404, _) => ("The requested resource was not found.", "NOT_FOUND"),
        (409, _) => ("The request was aborted.", "ABORTED"),
        (413, _) => ("Request payload size exceeds the limit.", "INVALID_ARGUMENT"),
        (429, _) => ("Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"),
        (503, _) => ("The model is overloaded. Please try again later.", "UNAVAILABLE"),
        (408 | 504, _) => ("Deadline expired before operation could complete.", "DEADLINE_EXCEEDED"),
        (500..=599, _) => ("An internal error has occurred. Please retry.", "INTERNAL"),
        _ => ("Request contains an invalid argument.", "INVALID_ARGUMENT"),
    };
    ErrorBody { message, kind, code: None, param: None }
}

/// The word and the number of a status by the type of an error, which may be one of another API.
pub(super) fn status(kind: &str) -> (&str, u16) {
    let known = STATUSES.iter().find(|(word, _)| *word == kind);
    let by_words = || if kind.contains("invalid_request") { ("INVALID_ARGUMENT", 400) } else { ("INTERNAL", 500) };
    known.copied().unwrap_or_else(by_words)
}
