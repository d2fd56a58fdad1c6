//! What an ability says: a text, calls of tools, or both.

/// What an ability says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Utterance {
    /// The text; empty where only a tool is called.
    pub(super) text: String,
    /// Tool calls: name and arguments, as JSON.
    pub(super) calls: Vec<(String, serde_json::Value)>,
}

impl Utterance {
    /// A text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), calls: Vec::new() }
    }

    /// A call of one tool.
    pub(super) fn call(name: &str, arguments: serde_json::Value) -> Self {
        Self { text: String::new(), calls: vec![(name.to_owned(), arguments)] }
    }
}
