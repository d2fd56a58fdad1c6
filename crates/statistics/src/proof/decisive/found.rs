//! What a search has shown.

use serde::Serialize;

use super::{Offer, Search, SearchEnding, Stands, TriedWords};

/// What a search says of a rule that names a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleAnswer {
    /// It is this step: its effect is shown, and every step that could stand in its place is cleared.
    Step(usize),
    /// It may be this step, whose effect is shown, but those named are not cleared.
    Unsure {
        /// The step that is shown, if one is.
        shown: Option<usize>,
        /// The steps that may stand in its place.
        open: Vec<usize>,
    },
    /// It is shown of words that a model proposes: nothing says that they are a correction.
    Proposed(usize),
    /// It was not sought.
    NotSought,
    /// There is none: every step is cleared, or the failure does not come again.
    None,
}

/// What a search has shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Found {
    /// The earliest decisive step.
    pub earliest_flip: RuleAnswer,
    /// The last decisive step: after it the failure stands.
    pub commitment: RuleAnswer,
    /// All steps whose own effect is shown, in order.
    pub flips: Vec<usize>,
    /// Two steps that heal the run together and neither alone.
    pub coupled: Option<(usize, usize)>,
    /// Why it ended early, if it did.
    pub ending: Option<SearchEnding>,
}

impl Search {
    /// What the executions so far amount to.
    pub fn found(&self) -> Found {
        let ending = self.ended();
        if ending == Some(SearchEnding::NotReproduced) {
            let (flips, coupled) = (Vec::new(), None);
            return Found { earliest_flip: RuleAnswer::None, commitment: RuleAnswer::None, flips, coupled, ending };
        }
        let all = self.question.steps.len();
        let flips: Vec<usize> = (0..all).filter(|step| self.stands(*step) == Stands::Shown).collect();
        let (first, last) = (flips.first().copied(), flips.last().copied());
        let before = 0..first.unwrap_or(all);
        let after = last.map_or(0, |last| last + 1)..all;
        Found {
            earliest_flip: self.answer(self.question.earliest, first, before),
            commitment: self.answer(self.question.last, last, after),
            coupled: if flips.is_empty() { self.coupled() } else { None },
            flips,
            ending,
        }
    }

    /// What is said of a rule whose step, if it is the one that is shown, has to have these others cleared.
    fn answer(&self, sought: bool, shown: Option<usize>, others: std::ops::Range<usize>) -> RuleAnswer {
        let open: Vec<usize> = others.filter(|step| !self.stands(*step).is_cleared()).collect();
        let proposed = |step: &usize| {
            matches!(self.question.steps.get(*step), Some(Offer::Other { by: TriedWords::Proposed, .. }))
        };
        match shown {
            Some(step) if proposed(&step) => RuleAnswer::Proposed(step),
            Some(_) if !sought => RuleAnswer::NotSought,
            Some(step) if open.is_empty() => RuleAnswer::Step(step),
            None if open.is_empty() => RuleAnswer::None,
            _ => RuleAnswer::Unsure { shown, open },
        }
    }

    fn coupled(&self) -> Option<(usize, usize)> {
        let alone = |step| self.stands(step) == Stands::Excluded;
        let mut couples = self.question.couples.iter().enumerate();
        let shown = couples.find(|(index, couple)| {
            let shown = self.couple(*index).is_some_and(|tried| tried.stands == Stands::Shown);
            shown && alone(couple.steps.0) && alone(couple.steps.1)
        });
        shown.map(|(_, couple)| couple.steps)
    }
}
