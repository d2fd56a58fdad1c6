//! Several answers as one: votes of one method, and the rankings of several methods.

use std::collections::BTreeMap;

use super::{LoggedRun, MethodAnswer, PredictedStep};

/// The name of the row that combines methods.
pub const COMBINED: &str = "combined";
/// The constant of reciprocal-rank fusion (Cormack, Clarke and Büttcher 2009, who take 60 for lists of a thousand; a run has
/// tens of steps).
const RANK: f64 = 5.0;

/// What votes are for: agent and step.
type VotedFor = (Option<u32>, Option<String>);

fn candidate(found: &PredictedStep) -> VotedFor {
    (found.step, found.agent.clone())
}

/// Predictions with weights, counted: each candidate once, with its share of all weight as its score, the greatest first, of
/// equal ones the earlier step. Its words are those of its weightiest vote.
pub(super) fn counted(votes: &[(PredictedStep, f64)]) -> Vec<PredictedStep> {
    let all: f64 = votes.iter().map(|(_, weight)| weight).sum();
    let mut tally: BTreeMap<(u32, Option<String>), (f64, f64, &PredictedStep)> = BTreeMap::new();
    for (found, weight) in votes {
        let (step, agent) = candidate(found);
        // A vote without a step comes after those with one.
        let entry = tally.entry((step.unwrap_or(u32::MAX), agent)).or_insert((0.0, *weight, found));
        entry.0 += weight;
        if *weight > entry.1 {
            (entry.1, entry.2) = (*weight, found);
        }
    }
    let mut found: Vec<PredictedStep> = tally
        .into_values()
        .map(|(weight, _, found)| found.clone().scored(if all > 0.0 { weight / all } else { 0.0 }))
        .collect();
    // Stable: of equal shares the earlier step stays before the later.
    found.sort_by(|a, b| b.score.unwrap_or(0.0).total_cmp(&a.score.unwrap_or(0.0)));
    found
}

/// Votes of one method as one answer, out of so many that were asked for; those that abstained count as shares of nobody.
/// `None` where nobody answered.
///
/// Rankings are counted by their first prediction. Of sets stays what more than half of all votes name: nothing is left where
/// most say that nobody erred. Where both were cast, the kind that more are of is counted.
pub fn voted(votes: &[MethodAnswer], of: u32) -> Option<MethodAnswer> {
    let sets = votes.iter().filter(|vote| matches!(vote, MethodAnswer::Set(_))).count();
    if votes.is_empty() {
        None
    } else if sets * 2 > votes.len() {
        Some(MethodAnswer::Set(majority(votes, of)))
    } else {
        let firsts = votes.iter().filter(|vote| matches!(vote, MethodAnswer::Ranked(_)));
        let firsts: Vec<PredictedStep> = firsts.filter_map(|vote| vote.steps().first().cloned()).collect();
        Some(MethodAnswer::Ranked(firsts_counted(&firsts, of)))
    }
}

fn firsts_counted(votes: &[PredictedStep], of: u32) -> Vec<PredictedStep> {
    let weighted: Vec<(PredictedStep, f64)> = votes.iter().map(|vote| (vote.clone(), 1.0)).collect();
    let answered = u32::try_from(votes.len()).map_or(0.0, f64::from);
    let share = |found: PredictedStep| {
        let score = found.score.unwrap_or(0.0) * answered / f64::from(of.max(1));
        found.scored(score)
    };
    counted(&weighted).into_iter().map(share).collect()
}

/// What more than half of all votes name: each agent, step and mode with its share.
fn majority(votes: &[MethodAnswer], of: u32) -> Vec<PredictedStep> {
    type MemberKey = (Option<u32>, Option<String>, Option<String>);
    let mut tally: BTreeMap<MemberKey, (u32, &PredictedStep)> = BTreeMap::new();
    for vote in votes {
        let mut named: Vec<MemberKey> = Vec::new();
        for found in vote.steps() {
            let key = (found.step, found.agent.clone(), found.failure_mode.clone());
            if !named.contains(&key) {
                tally.entry(key.clone()).or_insert((0, found)).0 += 1;
                named.push(key);
            }
        }
    }
    let most = tally.into_values().filter(|(count, _)| count * 2 > of);
    most.map(|(count, found)| found.clone().scored(f64::from(count) / f64::from(of.max(1)))).collect()
}

/// Rankings of several methods as one: s(step) = Σ 1 / (5 + rank) over the methods that name it, normalised to 1. The reason
/// says who named it.
pub fn combined(run: &LoggedRun, said: &[(&str, &[PredictedStep])]) -> Vec<PredictedStep> {
    let mut scores: BTreeMap<u32, (f64, Vec<&str>, Option<&PredictedStep>)> = BTreeMap::new();
    for (method, predictions) in said {
        let mut below = RANK;
        for found in *predictions {
            below += 1.0;
            let Some(step) = found.step.filter(|step| run.turn(*step).is_some()) else { continue };
            let entry = scores.entry(step).or_insert((0.0, Vec::new(), None));
            if !entry.1.contains(method) {
                entry.0 += 1.0 / below;
                entry.1.push(method);
                entry.2 = entry.2.or(Some(found));
            }
        }
    }
    let all: f64 = scores.values().map(|(score, ..)| score).sum();
    let mut found: Vec<PredictedStep> = scores
        .into_iter()
        .map(|(step, (score, methods, first))| {
            let evidence = first.map(|first| first.evidence.clone()).unwrap_or_default();
            let fix = first.map(|first| first.fix.clone()).unwrap_or_default();
            let at = PredictedStep::at(run, step, format!("named by {}", methods.join(", "))).scored(score / all);
            PredictedStep { fix, evidence, ..at }
        })
        .collect();
    found.sort_by(|a, b| b.score.unwrap_or(0.0).total_cmp(&a.score.unwrap_or(0.0)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::methods::testing::run;

    fn at(step: u32) -> PredictedStep {
        PredictedStep::at(&run(&["a", "b", "c"]), step, "")
    }

    #[test]
    fn votes_are_shares_of_all_that_were_asked_and_ties_go_to_the_earlier_step() {
        let votes = [at(2), at(1), at(2), at(1)].map(|vote| MethodAnswer::Ranked(vec![vote]));
        let found = voted(&votes, 5).expect("an answer");
        let shape: Vec<_> = found.steps().iter().map(|found| (found.step, found.score)).collect();
        assert_eq!(shape, [(Some(1), Some(0.4)), (Some(2), Some(0.4))]);
        assert_eq!(voted(&[], 3), None);
    }

    #[test]
    fn of_sets_stays_what_more_than_half_of_all_votes_name() {
        let set = |steps: &[u32]| MethodAnswer::Set(steps.iter().map(|step| at(*step)).collect());
        for (votes, of, expected) in [
            (vec![set(&[0, 1]), set(&[1]), set(&[1, 2])], 3, Some(vec![1])),
            (vec![set(&[0, 0]), set(&[0]), set(&[])], 3, Some(vec![0])),
            (vec![set(&[]), set(&[]), set(&[2])], 3, Some(vec![])),
            (vec![set(&[2])], 3, Some(vec![])),
            (vec![MethodAnswer::Ranked(vec![at(2)]), set(&[1]), set(&[1])], 3, Some(vec![1])),
        ] {
            let found = voted(&votes, of);
            let steps = found.map(|found| found.steps().iter().filter_map(|found| found.step).collect::<Vec<_>>());
            assert_eq!(steps, expected, "{votes:?}");
        }
    }

    #[test]
    fn a_step_that_two_methods_name_second_beats_one_that_one_names_first() {
        let run = run(&["a", "b", "c"]);
        let (first, second) = ([at(0), at(2)], [at(1), at(2)]);
        let found = combined(&run, &[("x", &first), ("y", &second)]);
        assert_eq!(found.iter().map(|found| found.step).collect::<Vec<_>>(), [Some(2), Some(0), Some(1)]);
        assert_eq!(found[0].reason, "named by x, y");
        assert!((found.iter().filter_map(|found| found.score).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
