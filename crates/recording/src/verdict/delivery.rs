//! What became of a plan's injections.

use serde::Serialize;

/// What became of an injection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct InjectionDelivery {
    /// Its index in the plan, 0-based.
    pub injection: u32,
    /// The manipulator or fault, by name.
    pub operator: String,
    /// The agents that it aims at, as the plan writes them.
    pub agents: String,
    /// Whether it edits content; else it is a fault.
    pub edits: bool,
    /// Whether a draw decides on it.
    pub by_chance: bool,
    /// How often it came to work.
    pub delivered: u32,
    /// Why the program has nothing that it is for, where that kept it from every call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub does_not_apply: Option<String>,
}
