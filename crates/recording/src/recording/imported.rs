//! Where the recording of a run comes from that was not recorded, but imported from somebody's trace.

use serde::{Deserialize, Serialize};

use super::redact::Redactor;

/// Whose trace a run was. Its bodies are remade: nothing about bytes, and nothing about what was shown to whom beyond what
/// [`requests`](ImportedFrom::requests) says, may be concluded from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ImportedFrom {
    /// The format: `otlp`, `inspect`, `atif`.
    pub format: String,
    /// The file's name, without its directory.
    pub file: String,
    /// blake3 of the file.
    pub blake3: String,
    /// What tells the run from others in it: a trace id, a sample, a session.
    pub key: String,
    /// What the requests are: as the trace holds them, or rebuilt.
    pub requests: String,
}

impl ImportedFrom {
    /// The same with secrets masked, as it may be stored.
    pub(super) fn redacted(self, redactor: &Redactor) -> Self {
        let [file, key] = [self.file, self.key].map(|text| redactor.text(&text).into_owned());
        Self { file, key, ..self }
    }
}
