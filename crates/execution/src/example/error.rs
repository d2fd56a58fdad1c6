//! Why an example ended without an answer.

use hyper::StatusCode;

use crate::surface::SurfaceError;

/// Why an example ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ExampleError {
    /// No address of the API.
    #[error("`OPENAI_BASE_URL` is not set: expected a URL such as `http://127.0.0.1:8484/v1`")]
    NoBaseUrl,
    /// An address that this client cannot use.
    #[error("`OPENAI_BASE_URL` is `{0}`: expected a URL that starts with `http://`")]
    BadBaseUrl(String),
    /// No connection, or it ended early, after every retry.
    #[error("cannot reach `{url}`")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The API answered with an error.
    #[error("the API answered {status}: {body}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// The start of the body.
        body: String,
    },
    /// The reply is no chat completion.
    #[error("the reply cannot be read")]
    Unreadable(#[from] SurfaceError),
    /// The agents ended without a line `ANSWER: …`.
    #[error("no agent stated an answer")]
    NoAnswer,
    /// The asynchronous runtime could not start.
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
    /// Reading the task failed.
    #[error("cannot read the task from standard input")]
    Input(#[source] std::io::Error),
    /// Writing to standard output or error failed.
    #[error("cannot write the output")]
    Output(#[source] std::io::Error),
}
