//! An error in no API's words: what each surface writes its error bodies from.

/// What an error body says.
#[derive(Debug, Clone, Copy)]
pub struct ErrorBody<'a> {
    /// For people.
    pub message: &'a str,
    /// The API's error type, for example `invalid_request_error`.
    pub kind: &'a str,
    /// The API's error code, if any.
    pub code: Option<&'a str>,
    /// The offending parameter, if any.
    pub param: Option<&'a str>,
}
