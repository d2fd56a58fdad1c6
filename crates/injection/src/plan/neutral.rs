//! Neutral changes beside a plan: they plant nothing, and every call that no record answers gets one.

use std::{collections::HashSet, sync::Arc};

use super::{Agents, Injection, Operator, Plan, Target, When};
use crate::{manipulator::Manipulator, trajectory::Side};

/// The name under which a record keeps a neutral change.
const NEUTRAL_CHANGE: &str = "neutral_change";

impl Plan {
    /// A plan made by hand, with this text.
    pub(super) fn handmade(text: String, injections: Vec<Injection>) -> Self {
        let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
        Self {
            seed: 0,
            draws_of: None,
            settled: None,
            left_out: None,
            without_faults: false,
            injections,
            checks: Vec::new(),
            text,
            digest,
        }
    }

    /// The same plan, or one that plants nothing, with a [neutral](Manipulator::is_neutral) change to the request of every call
    /// but the `recorded` ones, whoever makes it. What cannot be changed passes as it is, and no change makes a label.
    pub fn with_neutral_changes(plan: Option<&Self>, change: Arc<dyn Manipulator>, recorded: HashSet<Target>) -> Self {
        let mut plan = plan.map_or_else(|| Self::handmade(String::new(), Vec::new()), Self::clone);
        plan.injections.push(Injection {
            agents: Agents(Vec::new()),
            instance: None,
            failure_mode: None,
            when: When { recorded: Some(Arc::new(recorded)), ..When::default() },
            choice: None,
            retell: false,
            name: NEUTRAL_CHANGE.to_owned(),
            operator: Operator::Manipulator { side: Side::Request, manipulator: change },
            place: 0..0,
        });
        plan
    }
}
