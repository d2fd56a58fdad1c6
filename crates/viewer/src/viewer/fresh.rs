//! What a request says that its agent's call before did not: thirty steps of a growing conversation, each said once.

use std::collections::HashMap;

use serde::Serialize;

use super::step_view::{StepView, TextBlock};
use crate::trajectory::{Step, StepIndex};

/// A block of a request, and whether its agent has seen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SeenMessages {
    /// The block.
    #[serde(flatten)]
    pub block: TextBlock,
    /// It stood in the agent's request before, or is what it was answered then.
    pub known: bool,
}

/// The agent's call before a step: the last that arrived before it.
pub fn before<'a>(steps: &'a [Step], step: &Step) -> Option<(usize, &'a Step)> {
    let same = |earlier: &Step| {
        let (own, other) = (&step.attribution, &earlier.attribution);
        earlier.step < step.step && own.agent == other.agent && own.instance == other.instance
    };
    steps.iter().enumerate().rev().find(|(_, earlier)| same(earlier))
}

/// The blocks of a request, each with whether the agent's call before had it. A block that comes twice is known as often
/// as it came before.
pub fn fresh(request: Vec<TextBlock>, before: Option<&Step>) -> Vec<SeenMessages> {
    let mut known: HashMap<TextBlock, usize> = HashMap::new();
    let mut answers: HashMap<String, usize> = HashMap::new();
    if let Some(before) = before {
        let told = StepView::new(before);
        for block in told.request(before.request_sent.as_ref().unwrap_or(&before.request)) {
            *known.entry(block).or_default() += 1;
        }
        for block in told.request(&before.request) {
            known.entry(block).or_insert(1);
        }
        for block in told.answered() {
            *answers.entry(block.text).or_default() += 1;
        }
    }
    let take = |count: Option<&mut usize>| match count {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let seen = |block: TextBlock| {
        let own = block.who.starts_with("assistant");
        let known = take(known.get_mut(&block)) || (own && take(answers.get_mut(&block.text)));
        SeenMessages { block, known }
    };
    request.into_iter().map(seen).collect()
}

/// The step that a request goes on from, if anything in it is known.
pub fn since(seen: &[SeenMessages], before: Option<&Step>) -> Option<StepIndex> {
    before.filter(|_| seen.iter().any(|seen| seen.known)).map(|before| before.step)
}
