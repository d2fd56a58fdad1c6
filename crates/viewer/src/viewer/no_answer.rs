//! Why the page gets no answer.

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nothing has this name.
    #[error("{0}")]
    Unknown(String),
    /// What was sent is not what is expected.
    #[error("{0}")]
    Wrong(String),
    /// It is there and cannot be read.
    #[error("{0}")]
    Unreadable(String),
}
