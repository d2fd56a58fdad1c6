//! What rules without a model score on the same data. A method that does not beat them has found nothing.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use serde::Serialize;

use super::{
    accuracy::{Judged, accuracy, plain_share},
    answer_sets::{agent_sets, agents_of, mode_sets, modes_of, pair_sets, pairs_of},
    drawn::expected_f1,
    gold::{Gold, Speaker},
    names::{agent_key, is_agent, mode_key},
    prediction::{Guess, PredictedAnswer},
    ratio, real,
    sets::{RuleF1, SetScore},
    shape::{ShapeProbed, Unseen, probe},
};
use crate::trajectory::FailureMode;

/// One rule's figures, each 0 to 1; `None` where the data at hand cannot feed the rule.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Baseline {
    /// The rule, in words.
    pub rule: &'static str,
    /// Whether it looks at the gold labels of this very data, as only a constant chosen in hindsight can.
    pub hindsight: bool,
    /// Agent accuracy.
    pub agent: Option<f64>,
    /// Step accuracy.
    pub step: Option<f64>,
    /// Joint accuracy.
    pub joint: Option<f64>,
    /// Share of runs whose label has the guessed failure mode.
    pub mode: Option<f64>,
    /// F1 of (agent, failure mode) pairs; `None` where the rule guesses none, or no label knows one.
    pub pair_f1: Option<RuleF1>,
    /// F1 of agents.
    pub agent_f1: Option<RuleF1>,
    /// F1 of failure modes.
    pub mode_f1: Option<RuleF1>,
}

/// All rules on these labels, the shape probe among them where there is enough for it.
pub(super) fn baselines(golds: &[Gold]) -> Vec<Baseline> {
    let shapes = UNSEEN.iter().filter_map(|(name, unseen)| Some(probed(name, &probe(golds, *unseen).ok()?)));
    trivial(golds).into_iter().chain(shapes).collect()
}

/// The shape probe and the best of the trivial rules about steps, where the probe is far above it: then the outline of a log
/// gives the labelled steps away.
pub fn shape_probe(golds: &[Gold]) -> Option<(ShapeProbed, Baseline)> {
    let probed = probe(golds, Unseen::Task).ok()?;
    let best = trivial(golds).into_iter().max_by(|a, b| a.step.unwrap_or(0.0).total_cmp(&b.step.unwrap_or(0.0)))?;
    (probed.step.interval.low > best.step? + FAR_ABOVE).then_some((probed, best))
}

/// How many failure modes there are to draw from.
const MODES: usize = FailureMode::ALL.len();

/// What the probe's interval must be above the best trivial rule to be far above it.
const FAR_ABOVE: f64 = 0.1;

/// The rules that learn nothing.
fn trivial(golds: &[Gold]) -> Vec<Baseline> {
    let agents_only = |gold: &Gold| gold.cast().into_iter().filter(|speaker| is_agent(&speaker.key)).collect();
    let mut all = vec![
        random("random speaker, random step, random mode", golds, Gold::cast),
        random("random speaker that is an agent, random step", golds, agents_only),
        rule("first speaker, step 0", golds, |gold| guess(gold.speakers.first(), Some(0))),
        rule("last speaker, last step", golds, |gold| guess(gold.speakers.last(), gold.speakers.len().checked_sub(1))),
        rule("busiest agent, at its first step", golds, |gold| {
            let cast: Vec<Speaker> = agents_only(gold);
            let busiest = cast.iter().min_by_key(|speaker| (Reverse(speaker.turns), speaker.first));
            guess(busiest.map(|speaker| &speaker.key), busiest.map(|speaker| speaker.first))
        }),
    ];
    let labelled =
        |gold: &Gold| gold.culprits.iter().filter_map(|culprit| culprit.agent.as_deref()).map(agent_key).collect();
    if let Some(agent) = most_frequent(golds, labelled) {
        all.push(constant("most frequent true agent, at its first step", golds, |gold| {
            let first = gold.cast().into_iter().find(|speaker| speaker.key == agent).map(|speaker| speaker.first);
            guess(Some(&agent), first)
        }));
    }
    let steps = |gold: &Gold| gold.culprits.iter().filter_map(|culprit| culprit.step).collect();
    if let Some(step) = most_frequent(golds, steps) {
        all.push(constant("most frequent true step, its speaker", golds, |gold| {
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            guess(gold.speakers.get(step), Some(step))
        }));
    }
    if let Some(mode) = most_frequent(golds, modes) {
        all.push(constant("most frequent true mode", golds, |_| Guess {
            mode: Some(mode.clone()),
            ..Guess::default()
        }));
    }
    all
}

/// The shape probe as rules.
const UNSEEN: [(&str, Unseen); 3] = [
    ("shape of the log, learned on other tasks", Unseen::Task),
    ("shape of the log, other tasks and systems", Unseen::System),
    ("shape of the log, other tasks and templates", Unseen::Template),
];

fn probed(rule: &'static str, probed: &ShapeProbed) -> Baseline {
    let (agent, step) = (Some(probed.agent.share), Some(probed.step.share));
    Baseline {
        rule,
        hindsight: true,
        agent,
        step,
        joint: step,
        mode: None,
        pair_f1: None,
        agent_f1: None,
        mode_f1: None,
    }
}

fn guess(agent: Option<&String>, step: Option<usize>) -> Guess {
    Guess { agent: agent.cloned(), step: step.and_then(|step| i64::try_from(step).ok()), mode: None }
}

fn modes(gold: &Gold) -> Vec<String> {
    gold.culprits.iter().filter_map(|culprit| culprit.mode.as_deref()).map(mode_key).collect()
}

/// A rule that answers each run; a figure is `None` where the rule never says anything about it.
fn rule(rule: &'static str, golds: &[Gold], answer: impl Fn(&Gold) -> Guess) -> Baseline {
    let answers: Vec<PredictedAnswer> = golds.iter().map(|gold| PredictedAnswer::Set(vec![answer(gold)])).collect();
    let rows: Vec<Judged<'_>> =
        golds.iter().zip(&answers).map(|(gold, answer)| Judged { gold, answer: Some(answer), base: 0 }).collect();
    let said = |field: &dyn Fn(&Guess) -> bool| rows.iter().any(|row| row.guesses().first().is_some_and(field));
    let score = accuracy(&rows);
    let of = |share: super::Share, said: bool| plain_share(share.hits, share.of).filter(|_| said);
    let (agent, step) = (said(&|guess| guess.agent.is_some()), said(&|guess| guess.step.is_some()));
    let mode = said(&|guess| guess.mode.is_some()).then(|| {
        let known: Vec<&Judged<'_>> = rows.iter().filter(|row| !modes(row.gold).is_empty()).collect();
        let hit = |row: &Judged<'_>| {
            row.guesses().iter().filter_map(|guess| guess.mode.as_ref()).any(|mode| modes(row.gold).contains(mode))
        };
        ratio(known.iter().filter(|row| hit(row)).count(), known.len())
    });
    Baseline {
        rule,
        hindsight: false,
        agent: of(score.agent, agent),
        step: of(score.step, step),
        joint: of(score.joint, agent && step),
        pair_f1: pair_sets(&rows).filter(|_| agent && mode.is_some()).map(|tally| f1(&tally.without_intervals())),
        agent_f1: agent_sets(&rows).filter(|_| agent).map(|tally| f1(&tally.without_intervals())),
        mode_f1: mode_sets(&rows).filter(|_| mode.is_some()).map(|tally| f1(&tally.without_intervals())),
        mode,
    }
}

fn f1(score: &SetScore) -> RuleF1 {
    RuleF1 { micro: score.micro.f1, macro_: score.macro_.f1 }
}

fn constant(name: &'static str, golds: &[Gold], answer: impl Fn(&Gold) -> Guess) -> Baseline {
    Baseline { hindsight: true, ..rule(name, golds, answer) }
}

/// The expected score of drawing a speaker, a step and a mode evenly: no dice are thrown.
fn random(rule: &'static str, golds: &[Gold], cast: impl Fn(&Gold) -> Vec<Speaker>) -> Baseline {
    let traced: Vec<&Gold> =
        golds.iter().filter(|gold| !gold.speakers.is_empty() && !gold.culprits.is_empty()).collect();
    let agent = traced.iter().map(|gold| {
        let cast = cast(gold);
        ratio(cast.iter().filter(|speaker| gold.blames(&speaker.key)).count(), cast.len())
    });
    let stepped: Vec<&&Gold> =
        traced.iter().filter(|gold| gold.culprits.iter().any(|culprit| culprit.step.is_some())).collect();
    let step = stepped.iter().map(|gold| {
        let steps = gold.speakers.len();
        ratio((0..steps).filter(|step| gold.blames_step(*step)).count(), steps)
    });
    let moded: Vec<Vec<String>> = golds.iter().map(modes).filter(|modes| !modes.is_empty()).collect();
    let mode = moded.iter().map(|modes| {
        let distinct: BTreeSet<&String> = modes.iter().collect();
        ratio(distinct.len(), MODES)
    });
    let mean = |sum: f64, of: usize| (of > 0).then(|| sum / real(of));
    let all_modes = || FailureMode::ALL.iter().map(|mode| mode_key(mode.code()));
    let even = |count: usize| 1.0 / real(count.max(1));
    let keys = |gold: &Gold| cast(gold).into_iter().map(|speaker| speaker.key).collect::<BTreeSet<_>>();
    let drawn_agents = golds.iter().map(|gold| {
        let keys = keys(gold);
        let chance = even(keys.len());
        (agents_of(gold), keys.into_iter().map(|key| (key, chance)).collect())
    });
    let drawn_modes = golds.iter().map(|gold| (modes_of(gold), all_modes().map(|mode| (mode, even(MODES))).collect()));
    let drawn_pairs = golds.iter().map(|gold| {
        let keys = keys(gold);
        let chance = even(keys.len() * MODES);
        let pairs = keys.iter().flat_map(|key| all_modes().map(|mode| ((key.clone(), mode), chance)));
        (pairs_of(gold), pairs.collect())
    });
    Baseline {
        rule,
        hindsight: false,
        agent: mean(agent.sum(), traced.len()),
        step: mean(step.sum(), stepped.len()),
        joint: None,
        mode: mean(mode.sum(), moded.len()),
        pair_f1: expected_f1(&drawn_pairs.collect::<Vec<_>>()),
        agent_f1: expected_f1(&drawn_agents.collect::<Vec<_>>()),
        mode_f1: expected_f1(&drawn_modes.collect::<Vec<_>>()),
    }
}

/// The value that most labels hold; of equals the smallest.
fn most_frequent<K: Ord>(golds: &[Gold], values: impl Fn(&Gold) -> Vec<K>) -> Option<K> {
    let mut counts: BTreeMap<K, usize> = BTreeMap::new();
    for value in golds.iter().flat_map(values) {
        *counts.entry(value).or_default() += 1;
    }
    let most = counts.values().max().copied()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::Culprit;

    fn gold(speakers: &[&str], agent: &str, step: u32, mode: &str) -> Gold {
        Gold {
            culprits: vec![Culprit { agent: Some(agent.into()), step: Some(step), mode: Some(mode.into()) }],
            speakers: speakers.iter().map(|name| (*name).to_owned()).collect(),
            ..Gold::default()
        }
    }

    #[test]
    fn each_rule_by_hand() {
        let golds = [
            gold(&["human", "Planner (thought)", "Solver", "Planner (-> Solver)"], "Planner", 1, "FM-1.3"),
            gold(&["human", "Solver", "Solver"], "Solver", 1, "FM-1.3"),
            gold(&["human", "Critic", "Solver", "Critic", "Critic"], "Solver", 2, "FM-2.6"),
        ];
        let third = |a: f64, b: f64, c: f64| Some((a + b + c) / 3.0);
        let expected: Vec<(&str, Option<f64>, Option<f64>)> = vec![
            ("random speaker, random step, random mode", third(1.0 / 3.0, 0.5, 1.0 / 3.0), third(0.25, 1.0 / 3.0, 0.2)),
            ("random speaker that is an agent, random step", third(0.5, 1.0, 0.5), third(0.25, 1.0 / 3.0, 0.2)),
            ("first speaker, step 0", Some(0.0), Some(0.0)),
            ("last speaker, last step", third(1.0, 1.0, 0.0), Some(0.0)),
            ("busiest agent, at its first step", third(1.0, 1.0, 0.0), third(1.0, 1.0, 0.0)),
            ("most frequent true agent, at its first step", third(0.0, 1.0, 1.0), third(0.0, 1.0, 1.0)),
            ("most frequent true step, its speaker", third(1.0, 1.0, 0.0), third(1.0, 1.0, 0.0)),
            ("most frequent true mode", None, None),
        ];
        let found = baselines(&golds);
        for (found, (rule, agent, step)) in found.iter().zip(&expected) {
            assert_eq!(found.rule, *rule);
            let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-12,
                (a, b) => a == b,
            };
            assert!(near(found.agent, *agent) && near(found.step, *step), "{found:?}");
        }
        assert_eq!(found.len(), expected.len());
        assert_eq!(found[0].mode, Some(1.0 / 14.0));
        assert_eq!(found[7].mode, Some(2.0 / 3.0));
        let hindsight: Vec<bool> = found.iter().map(|rule| rule.hindsight).collect();
        assert_eq!(hindsight, [false, false, false, false, false, true, true, true]);
    }

    #[test]
    fn a_rule_that_names_no_agent_or_no_step_has_no_joint_figure() {
        let golds = [gold(&[], "Solver", 1, "FM-1.3")];
        let found = baselines(&golds);
        let of = |name: &str| {
            let rule = found.iter().find(|found| found.rule == name).expect(name);
            (rule.agent, rule.step, rule.joint)
        };
        assert_eq!(of("most frequent true agent, at its first step"), (Some(1.0), None, None));
        assert_eq!(of("most frequent true step, its speaker"), (None, Some(1.0), None));
        let golds = [gold(&["human", "Solver"], "Solver", 1, "FM-1.3")];
        let found = baselines(&golds);
        assert_eq!(found[4].joint, Some(1.0), "{:?}", found[4]);
    }

    #[test]
    fn without_traces_the_rules_that_need_them_say_nothing() {
        let golds =
            [Gold { culprits: vec![Culprit { mode: Some("FM-1.1".into()), ..Culprit::default() }], ..Gold::default() }];
        let found = baselines(&golds);
        assert!(found.iter().all(|rule| rule.agent.is_none() && rule.step.is_none()), "{found:?}");
    }
}
