//! A value that a rule masks, as a replay tells it.

/// A value that a rule masks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedValue {
    /// The rule.
    pub rule: String,
    /// The value.
    pub value: String,
    /// Whether it is a point in time.
    pub is_time: bool,
}
