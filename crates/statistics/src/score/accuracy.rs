//! Accuracy of agent, step and both, near misses, and the best of k.
//!
//! A label that is a set is hit by any of its members. Rows whose label does not know a step are no evidence about
//! steps, so each share has its own denominator; rows without an answer count as wrong in the share over all rows and
//! are left out of the share over answered ones.

use serde::Serialize;

use super::{
    gold::Gold,
    interval::Share,
    names::agent_key,
    prediction::{Guess, PredictedAnswer},
    ratio, real,
};

/// Widest tolerance that is reported, in steps.
const TOLERANCE: u64 = 5;
/// The k of top-k.
const TOP: [usize; 2] = [3, 5];

/// Accuracy over rows.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Accuracy {
    /// The first guess names a true agent.
    pub agent: Share,
    /// The first guess names a true step.
    pub step: Share,
    /// Both, of the same culprit.
    pub joint: Share,
    /// `agent` over rows whose answer names one.
    pub agent_of_answered: Share,
    /// `step` over rows whose answer names one.
    pub step_of_answered: Share,
    /// Step within ±1, ±2, … ±5.
    pub step_within: Vec<Share>,
    /// Mean distance to the nearest true step, over rows whose answer names a step.
    pub mean_step_distance: Option<f64>,
    /// How many rows that mean is of.
    pub step_distances: usize,
    /// Best of the first k; empty unless some answer is ranked.
    pub top: Vec<TopK>,
}

/// Best of the first k guesses.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TopK {
    /// How many guesses are looked at.
    pub k: usize,
    /// One of them names a true agent.
    pub agent: Share,
    /// One of them names a true step.
    pub step: Share,
    /// One of them names both of one culprit.
    pub joint: Share,
}

/// A gold row beside its answer; steps of the answer count from `base`.
pub(super) struct Judged<'a> {
    pub(super) gold: &'a Gold,
    pub(super) answer: Option<&'a PredictedAnswer>,
    pub(super) base: i64,
}

impl Judged<'_> {
    pub(super) fn guesses(&self) -> &[Guess] {
        self.answer.map(PredictedAnswer::guesses).unwrap_or_default()
    }

    fn knows_agent(&self) -> bool {
        self.gold.culprits.iter().any(|culprit| culprit.agent.is_some())
    }

    fn knows_step(&self) -> bool {
        self.gold.culprits.iter().any(|culprit| culprit.step.is_some())
    }

    fn agent_in(&self, k: usize) -> bool {
        self.guesses()
            .iter()
            .take(k)
            .filter_map(|guess| guess.agent.as_deref())
            .any(|agent| self.gold.blames(&agent_key(agent)))
    }

    /// The step of a guess, 0-based. One before the first is none: it is no step of any run, near to nothing.
    fn step_of(&self, guess: &Guess) -> Option<i64> {
        guess.step?.checked_sub(self.base).filter(|step| *step >= 0)
    }

    /// Distance of a guess to the nearest true step.
    fn distance(&self, guess: &Guess) -> Option<u64> {
        let said = self.step_of(guess)?;
        self.gold.culprits.iter().filter_map(|culprit| culprit.step).map(|step| said.abs_diff(i64::from(step))).min()
    }

    fn step_in(&self, k: usize) -> bool {
        self.guesses().iter().take(k).any(|guess| self.distance(guess) == Some(0))
    }

    fn both_in(&self, k: usize) -> bool {
        self.guesses().iter().take(k).any(|guess| {
            let (Some(agent), Some(step)) = (guess.agent.as_deref(), self.step_of(guess)) else { return false };
            let agent = agent_key(agent);
            self.gold.culprits.iter().any(|culprit| {
                culprit.agent.as_deref().is_some_and(|name| agent_key(name) == agent)
                    && culprit.step.is_some_and(|gold| step == i64::from(gold))
            })
        })
    }
}

/// Scores rows.
pub(super) fn accuracy(rows: &[Judged<'_>]) -> Accuracy {
    let with_agent: Vec<&Judged<'_>> = rows.iter().filter(|row| row.knows_agent()).collect();
    let with_step: Vec<&Judged<'_>> = rows.iter().filter(|row| row.knows_step()).collect();
    let share = |rows: &[&Judged<'_>], hit: &dyn Fn(&Judged<'_>) -> bool| {
        Share::new(rows.iter().filter(|row| hit(row)).count(), rows.len())
    };
    let says = |rows: &[&Judged<'_>], field: &dyn Fn(&Judged<'_>, &Guess) -> bool| {
        rows.iter().filter(|row| row.guesses().first().is_some_and(|guess| field(row, guess))).count()
    };
    let agent = share(&with_agent, &|row| row.agent_in(1));
    let step = share(&with_step, &|row| row.step_in(1));
    let distances: Vec<u64> =
        with_step.iter().filter_map(|row| row.guesses().first().and_then(|guess| row.distance(guess))).collect();
    let within =
        |tolerance: u64| Share::new(distances.iter().filter(|far| **far <= tolerance).count(), with_step.len());
    let ranked =
        rows.iter().any(|row| matches!(row.answer, Some(PredictedAnswer::Ranked(guesses)) if guesses.len() > 1));
    let top = |k: usize| TopK {
        k,
        agent: share(&with_agent, &|row| row.agent_in(k)),
        step: share(&with_step, &|row| row.step_in(k)),
        joint: share(&with_step, &|row| row.both_in(k)),
    };
    Accuracy {
        agent,
        step,
        joint: share(&with_step, &|row| row.both_in(1)),
        agent_of_answered: Share::new(agent.hits, says(&with_agent, &|_, guess| guess.agent.is_some())),
        step_of_answered: Share::new(step.hits, says(&with_step, &|row, guess| row.step_of(guess).is_some())),
        step_within: (1..=TOLERANCE).map(within).collect(),
        mean_step_distance: mean(&distances),
        step_distances: distances.len(),
        top: if ranked { TOP.map(top).into() } else { Vec::new() },
    }
}

/// The mean of distances; a step beyond 2^32 is as far as one can be.
fn mean(distances: &[u64]) -> Option<f64> {
    let sum: f64 = distances.iter().map(|far| f64::from(u32::try_from(*far).unwrap_or(u32::MAX))).sum();
    (!distances.is_empty()).then(|| sum / real(distances.len()))
}

/// Share of rows, for callers that have only counts.
pub(super) fn plain_share(hits: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| ratio(hits, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::Culprit;

    fn gold(agent: &str, step: u32) -> Gold {
        Gold { culprits: vec![Culprit { agent: Some(agent.into()), step: Some(step), mode: None }], ..Gold::default() }
    }

    fn guess(agent: &str, step: i64) -> Guess {
        Guess { agent: Some(agent.into()), step: Some(step), mode: None }
    }

    #[test]
    fn agent_step_joint_and_near_misses() {
        let golds = [gold("Solver", 4), gold("Critic", 2), gold("Solver", 0), gold("Solver", 9)];
        let answers = [
            Some(PredictedAnswer::Set(vec![guess("solver", 4)])),
            Some(PredictedAnswer::Set(vec![guess("Solver", 3)])),
            Some(PredictedAnswer::Unparsed("no".into())),
            None,
        ];
        let rows: Vec<_> = golds
            .iter()
            .zip(&answers)
            .map(|(gold, answer)| Judged { gold, answer: answer.as_ref(), base: 0 })
            .collect();
        let score = accuracy(&rows);
        assert_eq!((score.agent.hits, score.agent.of), (1, 4));
        assert_eq!((score.agent_of_answered.hits, score.agent_of_answered.of), (1, 2));
        assert_eq!((score.step.hits, score.joint.hits), (1, 1));
        assert_eq!(score.step_within.iter().map(|share| share.hits).collect::<Vec<_>>(), [2, 2, 2, 2, 2]);
        assert_eq!(score.mean_step_distance, Some(0.5));
        assert!(score.top.is_empty());
    }

    #[test]
    fn a_step_before_the_first_is_no_step() {
        let gold = gold("Solver", 0);
        for (step, base, hits, answered) in
            [(-1, 0, 0, 0), (i64::MIN, 0, 0, 0), (0, 1, 0, 0), (1, 0, 1, 1), (2, 1, 1, 1)]
        {
            let answer = PredictedAnswer::Set(vec![guess("Solver", step)]);
            let score = accuracy(&[Judged { gold: &gold, answer: Some(&answer), base }]);
            let within = score.step_within.first().map(|share| share.hits);
            assert_eq!((within, score.step_of_answered.of), (Some(hits), answered), "{step} from {base}");
            assert_eq!((score.step_distances, score.agent.hits), (answered, 1), "{step} from {base}");
        }
    }

    #[test]
    fn a_set_label_is_hit_by_any_member_and_joint_wants_one_and_the_same() {
        let mut both = gold("Solver", 1);
        both.culprits.push(Culprit { agent: Some("Critic".into()), step: Some(5), mode: None });
        for (answer, agent, step, joint) in [
            (guess("Critic", 5), 1, 1, 1),
            (guess("Critic", 1), 1, 1, 0),
            (guess("Critic", 6), 1, 0, 0),
            (guess("x", -1), 0, 0, 0),
        ] {
            let answer = PredictedAnswer::Set(vec![answer]);
            let score = accuracy(&[Judged { gold: &both, answer: Some(&answer), base: 0 }]);
            assert_eq!((score.agent.hits, score.step.hits, score.joint.hits), (agent, step, joint), "{answer:?}");
        }
    }

    #[test]
    fn ranked_answers_have_top_k_and_bases_shift() {
        let gold = gold("Solver", 4);
        let answer = PredictedAnswer::Ranked(vec![guess("A", 1), guess("B", 2), guess("Solver", 5)]);
        let score = accuracy(&[Judged { gold: &gold, answer: Some(&answer), base: 1 }]);
        assert_eq!((score.agent.hits, score.step.hits), (0, 0));
        let top = score.top.first().expect("ranked");
        assert_eq!((top.k, top.agent.hits, top.step.hits, top.joint.hits), (3, 1, 1, 1));
    }

    #[test]
    fn labels_without_a_step_say_nothing_about_steps() {
        let mut label = gold("Solver", 0);
        label.culprits[0].step = None;
        let answer = PredictedAnswer::Set(vec![guess("Solver", 0)]);
        let score = accuracy(&[Judged { gold: &label, answer: Some(&answer), base: 0 }]);
        assert_eq!((score.agent.hits, score.step.of, score.mean_step_distance), (1, 0, None));
        label.culprits[0] = Culprit { step: Some(0), ..Culprit::default() };
        let score = accuracy(&[Judged { gold: &label, answer: Some(&answer), base: 0 }]);
        assert_eq!((score.agent.of, score.step.hits), (0, 1), "nor those without an agent about agents");
    }
}
