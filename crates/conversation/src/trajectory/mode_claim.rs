//! How far it is established that what was done is the failure mode that it is called.

use serde::{Deserialize, Serialize};

/// How far it is established that an error is of its failure mode. That it is the agent's, at that step, and that it turned the
/// outcome are other claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModeState {
    /// The plan calls it so, and nothing more is known.
    Declared,
    /// The plan calls it so, and all that the mode needs is so at the call.
    Applicable,
    /// A judge or a person looked at the change and calls it so too.
    Confirmed,
    /// A judge or a person looked at the change and does not call it so.
    Refuted,
}

impl ModeState {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Applicable => "applicable",
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
        }
    }

    /// Whether data that needs a mode takes it.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Applicable | Self::Confirmed)
    }
}

/// What is known of an error's failure mode. Earlier versions wrote the state alone, which was always `declared`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "WrittenClaim")]
pub struct ModeClaim {
    /// How far it is established.
    pub state: ModeState,
    /// What the mode needs and the call does not have, or what was edited that it leaves alone: a name of the `mode` room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<String>,
    /// Who confirmed or refuted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum WrittenClaim {
    State(ModeState),
    Claim {
        state: ModeState,
        #[serde(default)]
        unmet: Option<String>,
        #[serde(default)]
        by: Option<String>,
    },
}

impl From<WrittenClaim> for ModeClaim {
    fn from(written: WrittenClaim) -> Self {
        match written {
            WrittenClaim::State(state) => Self { state, unmet: None, by: None },
            WrittenClaim::Claim { state, unmet, by } => Self { state, unmet, by },
        }
    }
}

impl ModeClaim {
    /// What a plan says, where nobody has looked.
    pub const DECLARED: Self = Self { state: ModeState::Declared, unmet: None, by: None };

    /// What a call that was looked at says of what its plan calls the error.
    pub fn looked_at(unmet: Option<&str>) -> Self {
        let state = if unmet.is_none() { ModeState::Applicable } else { ModeState::Declared };
        Self { state, unmet: unmet.map(str::to_owned), by: None }
    }

    /// The state, and who says so.
    pub fn text(&self) -> String {
        match &self.by {
            Some(by) => format!("{} by {by}", self.state.word()),
            None => self.state.word().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_alone_is_read_too() {
        for (written, claim) in [
            (json!("declared"), ModeClaim::DECLARED),
            (json!({"state": "applicable"}), ModeClaim::looked_at(None)),
            (json!({"state": "declared", "unmet": "history"}), ModeClaim::looked_at(Some("history"))),
        ] {
            assert_eq!(serde_json::from_value::<ModeClaim>(written).expect("a claim"), claim);
            let again = serde_json::to_value(&claim).expect("serialises");
            assert_eq!(serde_json::from_value::<ModeClaim>(again).expect("reads back"), claim);
        }
    }
}
