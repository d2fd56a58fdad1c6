//! Answers that name a set of culprits, against the set that is true: each guess is held to at most one true culprit, and
//! each of these to at most one guess, the best pairs first.

use crate::score::{
    gold::Culprit,
    names::{agent_key, mode_key},
    prediction::{Guess, PredictedAnswer},
    real,
};

/// How much of a culprit each part is worth. Parts that the truth does not state count for nothing, and the others for
/// more, so that the whole truth is always worth 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shares {
    /// The agent.
    pub(super) agent: f64,
    /// The step: all of it for the step itself, less the further away.
    pub(super) step: f64,
    /// The failure mode.
    pub(super) mode: f64,
    /// σ of the Gaussian by which a step counts less, in steps.
    pub(super) sigma: f64,
}

/// Of the graded reward.
const GRADED: Shares = Shares { agent: 0.4, step: 0.4, mode: 0.2, sigma: 1.0 };
/// What an answer that cannot be read is worth.
const UNREAD: f64 = -1.0;

/// Rewards an answer, 0 to 1; −1 where it could not be read. For each true culprit 0.4 for the agent, 0.4 for the step
/// (exp(−d²/2) of it at d steps away: 61 % at one, 14 % at two) and 0.2 for the mode, over the larger of the two sets. Nobody where
/// nobody erred is worth 1, and 0 in every other case.
pub fn graded(answer: &PredictedAnswer, truth: &[Culprit]) -> f64 {
    match answer {
        PredictedAnswer::Unparsed(_) => UNREAD,
        read => matched(read.claimed(), truth, GRADED),
    }
}

/// The mean worth of the pairs, over the larger of the two sets.
pub(super) fn matched(said: &[Guess], truth: &[Culprit], shares: Shares) -> f64 {
    if said.is_empty() || truth.is_empty() {
        return if said.is_empty() && truth.is_empty() { 1.0 } else { 0.0 };
    }
    let mut pairs = Vec::with_capacity(said.len().saturating_mul(truth.len()));
    for (one, guess) in said.iter().enumerate() {
        for (other, culprit) in truth.iter().enumerate() {
            let (got, possible) = worth(guess, culprit, shares);
            if got > 0.0 {
                pairs.push((got / possible, possible, one, other));
            }
        }
    }
    // Of equal pairs the one whose truth states more, so that a guess is not spent on a truth that asks for less of it.
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
    let (mut guesses, mut culprits) = (vec![false; said.len()], vec![false; truth.len()]);
    let mut sum = 0.0;
    for (score, _, one, other) in pairs {
        if let (Some(guess @ false), Some(culprit @ false)) = (guesses.get_mut(one), culprits.get_mut(other)) {
            (*guess, *culprit) = (true, true);
            sum += score;
        }
    }
    sum / real(said.len().max(truth.len()))
}

/// What a guess earns of a culprit, and what there is to earn.
fn worth(guess: &Guess, culprit: &Culprit, shares: Shares) -> (f64, f64) {
    let hit = |right: bool| if right { 1.0 } else { 0.0 };
    let agent = culprit.agent.as_deref().map(|agent| {
        let right = guess.agent.as_deref().is_some_and(|name| agent_key(name) == agent_key(agent));
        (shares.agent, hit(right))
    });
    let step = culprit.step.map(|step| (shares.step, guess.step.map_or(0.0, |said| near(said, step, shares.sigma))));
    let mode = culprit.mode.as_deref().map(|mode| {
        let right = guess.mode.as_deref().is_some_and(|said| mode_key(said) == mode_key(mode));
        (shares.mode, hit(right))
    });
    let stated = [agent, step, mode];
    let stated = stated.iter().flatten();
    stated.fold((0.0, 0.0), |(got, possible), (share, hit)| (got + share * hit, possible + share))
}

/// How much a step counts that far from the true one; one before the first is no step, and counts for nothing.
pub(super) fn near(said: i64, gold: u32, sigma: f64) -> f64 {
    if said < 0 {
        return 0.0;
    }
    let far = f64::from(u32::try_from(said.abs_diff(i64::from(gold))).unwrap_or(u32::MAX));
    (-(far * far) / (2.0 * sigma * sigma)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::read::answer;

    fn truth(entries: &[(&str, Option<u32>, Option<&str>)]) -> Vec<Culprit> {
        let culprit = |(agent, step, mode): &(&str, Option<u32>, Option<&str>)| Culprit {
            agent: Some((*agent).to_owned()),
            step: *step,
            mode: mode.map(str::to_owned),
        };
        entries.iter().map(culprit).collect()
    }

    fn answer_text(agent: &str, step: u32, mode: &str) -> String {
        format!(r#"{{"faulty_agents":[{{"agent_name":"{agent}","step":{step},"error_type":"{mode}"}}]}}"#)
    }

    #[test]
    fn each_part_is_paid_and_a_near_step_less_than_the_step() {
        let gold = truth(&[("solver", Some(4), Some("FM-2.6"))]);
        for (text, expected) in [
            (answer_text("solver", 4, "FM-2.6"), 1.0),
            (answer_text("Solver", 4, "FM-1.1"), 0.8),
            (answer_text("critic", 4, "FM-2.6"), 0.6),
            (answer_text("solver", 5, "FM-2.6"), 0.6 + 0.4 * (-0.5_f64).exp()),
            (answer_text("solver", 2, "FM-2.6"), 0.6 + 0.4 * (-2.0_f64).exp()),
            (answer_text("solver", 11, "FM-2.6"), 0.6),
            (answer_text("critic", 40, "FM-1.1"), 0.0),
            (r#"{"faulty_agents":[]}"#.to_owned(), 0.0),
            ("who knows".to_owned(), -1.0),
        ] {
            let reward = graded(&answer(&text), &gold);
            assert!((reward - expected).abs() < 1e-9, "{text}: {reward}, not {expected}");
        }
    }

    #[test]
    fn sets_are_matched_one_to_one() {
        let gold = truth(&[("a", Some(1), Some("FM-1.1")), ("b", Some(2), Some("FM-2.1"))]);
        let entry = |agent: &str, step: u32, mode: &str| {
            format!(r#"{{"agent_name":"{agent}","step":{step},"error_type":"{mode}"}}"#)
        };
        let (one, two) = (entry("a", 1, "FM-1.1"), entry("b", 2, "FM-2.1"));
        let stray = entry("c", 9, "FM-3.1");
        for (entries, expected) in [
            (vec![&two, &one], 1.0),
            (vec![&one], 0.5),
            (vec![&one, &one], 0.5 + 0.4 * (-0.5_f64).exp() / 2.0),
            (vec![&one, &two, &stray, &stray], 0.5),
        ] {
            let text = format!(
                r#"{{"faulty_agents":[{}]}}"#,
                entries.iter().map(|e| e.as_str()).collect::<Vec<_>>().join(",")
            );
            let reward = graded(&answer(&text), &gold);
            assert!((reward - expected).abs() < 1e-9, "{text}: {reward}, not {expected}");
        }
        assert!((graded(&answer(r#"{"faulty_agents":[]}"#), &[]) - 1.0).abs() < 1e-15);
        assert!(graded(&answer(&answer_text("a", 1, "FM-1.1")), &[]).abs() < 1e-15);
    }

    #[test]
    fn what_the_truth_does_not_state_is_not_asked_for() {
        let gold = truth(&[("a", None, None), ("a", Some(3), None)]);
        let text = r#"{"faulty_agents":[{"agent_name":"a","step":3},{"agent_name":"a"}]}"#;
        assert!((graded(&answer(text), &gold) - 1.0).abs() < 1e-15);
    }
}
