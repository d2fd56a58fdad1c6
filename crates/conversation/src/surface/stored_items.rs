//! What an upstream keeps of the calls that it answered.

/// What an upstream keeps of an exchange: one piece of JSON for each thing said, as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredItems {
    /// By the request.
    pub request: Vec<String>,
    /// By the reply.
    pub reply: Vec<String>,
}
