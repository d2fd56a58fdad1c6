//! A ranking of the steps of a failed run, made before anything is executed: which step a search looks at first.
//!
//! It is fused of what methods say of the log. It moves the price of a search, never what is concluded: only executions do
//! that.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    Corrections,
    methods::{LoggedRun, PredictedStep, combined},
};
use crate::trajectory::StepIndex;

/// The weight of a step that nobody names, beside 1 of the one that is named most.
const UNNAMED: f64 = 0.04;
/// How much more a step weighs whose words reach the end of the run.
const REACHES: f64 = 2.0;

/// How suspicious each step is.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Prior {
    /// What it was made of.
    #[serde(rename = "said")]
    pub rankings: Vec<PriorRanking>,
    /// Every step, the most suspicious first; of equals the earlier one.
    pub ranked: Vec<RankedStep>,
}

/// What one method says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PriorRanking {
    /// The method, or the file that it was read from.
    pub by: String,
    /// The steps that it names, the likeliest first.
    pub steps: Vec<StepIndex>,
    /// Why it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abstained: Option<String>,
}

/// A step and its weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RankedStep {
    /// The step.
    pub step: StepIndex,
    /// Above 0, at most 1; orders the steps, and is no probability.
    pub weight: f64,
    /// Whether its words stand in the requests that lead to the end.
    pub reaches: bool,
}

impl Prior {
    /// Fuses rankings: s(step) = Σ 1 / (5 + rank) over those that name the step, twice as much where its words reach the end.
    pub fn fused(run: &LoggedRun, said: Vec<PriorRanking>) -> Self {
        let named: Vec<(&str, Vec<PredictedStep>)> = said
            .iter()
            .map(|one| {
                let steps = one.steps.iter().map(|step| PredictedStep::at(run, *step, ""));
                (one.by.as_str(), steps.collect())
            })
            .collect();
        let named: Vec<(&str, &[PredictedStep])> = named.iter().map(|(by, steps)| (*by, steps.as_slice())).collect();
        let scores: BTreeMap<StepIndex, f64> =
            combined(run, &named).iter().filter_map(|found| Some((found.step?, found.score?))).collect();
        let most = scores.values().copied().fold(f64::MIN_POSITIVE, f64::max);
        let reaching = reaching(run);
        let ranked = run.turns.iter().map(|turn| {
            let reaches = reaching.contains(&turn.step);
            let named = scores.get(&turn.step).map_or(0.0, |score| score / most).max(UNNAMED);
            RankedStep { step: turn.step, weight: named * if reaches { 1.0 } else { 1.0 / REACHES }, reaches }
        });
        let mut ranked: Vec<RankedStep> = ranked.collect();
        // Stable: of equals the earlier step stays first.
        ranked.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        Self { rankings: said, ranked }
    }

    /// Whether anybody names a step.
    pub fn names_any(&self) -> bool {
        self.rankings.iter().any(|said| !said.steps.is_empty())
    }

    /// Makes each correction as suspicious as its step; a step that the log does not show is the last.
    pub fn suspect(&self, corrections: &mut Corrections) {
        for (step, correction) in &mut corrections.by_step {
            let weight = self.ranked.iter().find(|ranked| ranked.step == *step).map(|ranked| ranked.weight);
            correction.suspicion = Some(weight.unwrap_or(UNNAMED / (2.0 * REACHES)));
        }
    }
}

/// The steps whose words reach the last one: it, those that it heard, those that they heard, and so on.
pub(super) fn reaching(run: &LoggedRun) -> BTreeSet<StepIndex> {
    let mut reached: BTreeSet<StepIndex> = run.turns.last().map(|turn| turn.step).into_iter().collect();
    for turn in run.turns.iter().rev() {
        if reached.contains(&turn.step) {
            reached.extend(turn.quoted.iter().copied());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::methods::LoggedTurn;

    /// Five turns; the fourth is heard by nobody.
    fn run() -> LoggedRun {
        let turn = |(step, heard): (u32, &[u32])| LoggedTurn {
            step,
            agent: "a".to_owned(),
            quoted: heard.to_vec(),
            ..LoggedTurn::default()
        };
        let heard: [(u32, &[u32]); 5] = [(0, &[]), (1, &[0]), (2, &[1]), (3, &[2]), (4, &[2])];
        LoggedRun { turns: heard.map(turn).to_vec(), ..LoggedRun::default() }
    }

    fn says(by: &str, steps: &[u32]) -> PriorRanking {
        PriorRanking { by: by.to_owned(), steps: steps.to_vec(), abstained: None }
    }

    fn order(said: Vec<PriorRanking>) -> Vec<u32> {
        Prior::fused(&run(), said).ranked.iter().map(|ranked| ranked.step).collect()
    }

    #[test]
    fn what_reaches_the_end_weighs_twice_and_ties_go_to_the_earlier() {
        assert_eq!(reaching(&run()).into_iter().collect::<Vec<_>>(), [0, 1, 2, 4]);
        assert_eq!(order(vec![]), [0, 1, 2, 4, 3], "nobody says anything");
        assert_eq!(order(vec![says("x", &[2])]), [2, 0, 1, 4, 3]);
        // Named first, but heard by nobody: half of what the second place is worth.
        assert_eq!(order(vec![says("x", &[3, 1])]), [1, 3, 0, 2, 4]);
        // Named second by both beats named first by one.
        assert_eq!(order(vec![says("x", &[0, 2]), says("y", &[4, 2])]), [2, 0, 4, 1, 3]);
        assert_eq!(order(vec![says("x", &[9])]), [0, 1, 2, 4, 3], "a step that the run does not have");
    }

    #[test]
    fn weights_are_above_nothing_and_at_most_one() {
        let prior = Prior::fused(&run(), vec![says("x", &[2, 3])]);
        assert!(prior.names_any() && !Prior::fused(&run(), vec![says("x", &[])]).names_any());
        assert!(prior.ranked.iter().all(|ranked| ranked.weight > 0.0 && ranked.weight <= 1.0), "{prior:?}");
    }
}
