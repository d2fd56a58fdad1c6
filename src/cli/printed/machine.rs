//! What verbs print that serve, or write files of the set-up.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

/// A server that listens: `serve`, `reward`, `replay` without a command.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ListeningAt {
    /// Address and port.
    pub(in crate::cli) listen: String,
    /// Of the control listener, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) control: Option<String>,
}

/// `view`, while it serves.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ViewedAt<'a> {
    pub(in crate::cli) listen: String,
    /// The page, with its token.
    pub(in crate::cli) url: &'a str,
}

/// `view --html`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct WrittenPage<'a> {
    pub(in crate::cli) file: &'a Path,
    pub(in crate::cli) runs: usize,
    pub(in crate::cli) bytes: usize,
}

/// `init`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct FirstFiles<'a> {
    pub(in crate::cli) files: &'a [String],
}

/// `token --remove`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RemovedToken<'a> {
    /// The user.
    pub(in crate::cli) name: &'a str,
}

/// `token`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct MadeToken<'a> {
    pub(in crate::cli) name: &'a str,
    /// Shown this once.
    pub(in crate::cli) token: &'a str,
    pub(in crate::cli) sha256: String,
}
