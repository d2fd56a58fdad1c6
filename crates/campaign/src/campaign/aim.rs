//! What an injection aims at, as reports count it.

use serde::{Deserialize, Serialize};

use crate::{
    plan::{self, Operator, Plan},
    trajectory::{FailureMode, Side},
};

/// What an injection aims at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Aim {
    /// The agents, as the plan writes them.
    pub agent: String,
    /// The failure mode; none for a fault.
    pub mode: Option<FailureMode>,
    /// The side; none for a fault.
    pub side: Option<Side>,
    /// The manipulator or fault.
    pub operator: String,
}

impl Aim {
    /// What the injections of a plan aim at.
    pub(super) fn all_in(plan: &Plan) -> Vec<Self> {
        let aim = |injection: &plan::Injection| Self {
            agent: injection.agents.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
            mode: injection.failure_mode,
            side: match &injection.operator {
                Operator::Manipulator { side, .. } => Some(*side),
                Operator::Fault(_) => None,
            },
            operator: injection.name.clone(),
        };
        plan.injections.iter().map(aim).collect()
    }
}
