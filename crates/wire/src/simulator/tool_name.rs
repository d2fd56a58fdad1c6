//! What the name of a tool says of it.

/// Whether a tool passes the conversation on.
pub(super) fn is_hand_off(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["transfer_to", "handoff", "hand_off", "transfer_back", "handover", "switch_to_agent", "delegate_to_agent"]
        .iter()
        .any(|stem| lower.contains(stem))
}
