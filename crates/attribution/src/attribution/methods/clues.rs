//! A step of a run in numbers: where it stands, what it says, who uses it, and how it differs from runs that passed. From the log
//! and the recording alone: no name, no label, no outcome of the run itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    LoggedRun, LoggedTurn,
    aligned::{Seat, folded_words, seats},
    rules::weighed_signs,
    spectrum,
};
use crate::{surface::stopped_short, watch::numbers_in_text};

/// What each number of a step is, in order: its name in files, and what it says.
pub const CLUES: &[(&str, &str)] = &[
    ("position", "place in the run, 0 to 1"),
    ("to_the_end", "steps that follow, ln(1 + n)"),
    ("first", "it is the first step"),
    ("last", "it is the last step"),
    ("turn", "calls of its agent before it, ln(1 + n)"),
    ("agent_share", "share of the run's steps that are its agent's"),
    ("words", "words of its reply, ln(1 + n)"),
    ("words_beside_mean", "the same beside the run's mean"),
    ("given", "characters that are new in its request, ln(1 + n)"),
    ("new_numbers", "numbers that stand in nothing before it, ln(1 + n)"),
    ("tools_called", "tools that it calls, ln(1 + n)"),
    ("heard_by", "share of later steps in whose requests its words stand"),
    ("hops", "requests between its words and the last step, ln(1 + n)"),
    ("reaches", "its words reach the last step"),
    ("passed_differ", "share of passed runs that said something else at the same call of the agent"),
    ("passed_differ_same_given", "the same, of those that were given the same"),
    ("passed_entropy", "how much passed runs differ among each other at the same call, 0 to 1"),
    ("passed_absent", "share of passed runs without such a call"),
    ("error_given", "an error stands in what it was given"),
    ("error_ignored", "it was given an error and calls the same again"),
    ("cut", "the reply was cut short"),
    ("unanswered", "there was no good answer"),
    ("retries", "tries beside the first, ln(1 + n)"),
    ("doubt_known", "the upstream said how likely its tokens are"),
    ("doubt_mean", "doubt of its tokens in nats, mean, beside the run's"),
    ("doubt_highest", "doubt of its least likely token in nats, beside the run's"),
    ("spectrum", "FAMAS score beside the highest of the run"),
    ("rule_no_answer", "the rule `no-answer` fires, with its weight"),
    ("rule_cut", "the rule `cut`"),
    ("rule_refusal", "the rule `refusal`"),
    ("rule_error_shown", "the rule `error-shown`"),
    ("rule_repetition", "the rule `repetition`"),
    ("rule_same_call", "the rule `same-call`"),
    ("rule_calculation", "the rule `calculation`"),
    ("rule_other_result", "the rule `other-result`"),
    ("rule_new_number", "the rule `new-number`"),
];

/// The first clue of a rule.
const RULES_FROM: usize = 27;
/// What an error looks like in what a step was given.
const ERRORS: [&str; 5] = ["error", "exception", "traceback", "failed", "not found"];

/// What is computed once for a run.
struct RunClues<'a> {
    run: &'a LoggedRun,
    passed: Vec<BTreeMap<Seat<'a>, &'a LoggedTurn>>,
    hops: BTreeMap<u32, usize>,
    spectrum: BTreeMap<u32, f64>,
    rules: BTreeMap<(u32, String), f64>,
    words: f64,
    doubt: (f64, f64),
}

/// Each step of a run in numbers, in the order of [`CLUES`]. `others`: other runs of its task.
pub fn clues(run: &LoggedRun, others: &[LoggedRun]) -> Vec<Vec<f64>> {
    let of = RunClues::from_run(run, others);
    let mut known = numbers(&run.problem);
    let seats = seats(run);
    seats
        .iter()
        .enumerate()
        .map(|(place, (seat, turn))| {
            known.extend(numbers(&turn.given));
            let new = numbers(&turn.reply).difference(&known).count();
            known.extend(numbers(&turn.reply));
            let mut clues = of.place(place, *seat, turn, new);
            clues.extend(of.use_of(place, turn));
            clues.extend(of.beside_passed(*seat, turn));
            clues.extend(of.trouble(place, turn));
            clues.extend(of.scores(turn));
            clues
        })
        .collect()
}

impl<'a> RunClues<'a> {
    fn from_run(run: &'a LoggedRun, others: &'a [LoggedRun]) -> Self {
        let passed = others.iter().filter(|other| other.passed == Some(true) && !other.is_same_run(run));
        let mut rules = BTreeMap::new();
        for (sign, weighs) in weighed_signs(run) {
            let weight: &mut f64 = rules.entry((sign.step, sign.rule)).or_default();
            *weight = weight.max(weighs);
        }
        let scored = spectrum::scored(run, others).unwrap_or_default();
        let highest = scored.iter().map(|(score, ..)| *score).fold(f64::MIN_POSITIVE, f64::max);
        let count = real(run.turns.len().max(1));
        let doubts = run.turns.iter().filter_map(|turn| turn.doubt);
        let known = real(doubts.clone().count().max(1));
        let doubt = doubts.fold((0.0, 0.0), |sum, doubt| (sum.0 + doubt.mean / known, sum.1 + doubt.highest / known));
        Self {
            run,
            passed: passed.map(|other| seats(other).into_iter().collect()).collect(),
            hops: hops(run),
            spectrum: scored.iter().filter_map(|(score, _, at)| Some((at.step?, score / highest))).collect(),
            rules,
            words: run.turns.iter().map(|turn| words(&turn.words_and_calls())).sum::<f64>() / count,
            doubt,
        }
    }

    /// Where it stands and what it says.
    fn place(&self, place: usize, (agent, call): Seat<'_>, turn: &LoggedTurn, new: usize) -> Vec<f64> {
        let all = self.run.turns.len();
        let left = all.saturating_sub(place + 1);
        let own = self.run.turns.iter().filter(|other| other.agent == agent).count();
        let said = words(&turn.words_and_calls());
        vec![
            real(place) / real(all.saturating_sub(1).max(1)),
            real(left).ln_1p(),
            flag(place == 0),
            flag(left == 0),
            f64::from(call).ln_1p(),
            real(own) / real(all.max(1)),
            said.ln_1p(),
            said.ln_1p() - self.words.ln_1p(),
            real(turn.given.chars().count()).ln_1p(),
            real(new).ln_1p(),
            real(turn.calls.len()).ln_1p(),
        ]
    }

    /// Who uses its words.
    fn use_of(&self, place: usize, turn: &LoggedTurn) -> [f64; 3] {
        let later = self.run.turns.get(place + 1..).unwrap_or_default();
        let hear = later.iter().filter(|later| later.quoted.contains(&turn.step)).count();
        let hops = self.hops.get(&turn.step);
        [
            real(hear) / real(later.len().max(1)),
            real(hops.copied().unwrap_or(self.run.turns.len())).ln_1p(),
            flag(hops.is_some()),
        ]
    }

    /// What passed runs said at the same call.
    fn beside_passed(&self, seat: Seat<'_>, turn: &LoggedTurn) -> [f64; 4] {
        let theirs: Vec<&LoggedTurn> = self.passed.iter().filter_map(|run| run.get(&seat).copied()).collect();
        let (said, given) = (folded_words(&turn.words_and_calls()), folded_words(&turn.given));
        let share = |of: &[&LoggedTurn]| {
            real(of.iter().filter(|other| folded_words(&other.words_and_calls()) != said).count())
                / real(of.len().max(1))
        };
        let alike: Vec<&LoggedTurn> =
            theirs.iter().filter(|other| folded_words(&other.given) == given).copied().collect();
        let absent = self.passed.len() - theirs.len();
        [share(&theirs), share(&alike), entropy(&theirs), real(absent) / real(self.passed.len().max(1))]
    }

    /// What went wrong in it and before it.
    fn trouble(&self, place: usize, turn: &LoggedTurn) -> [f64; 5] {
        let given = turn.given.to_lowercase();
        let error = ERRORS.iter().any(|word| given.contains(word));
        let earlier = self.run.turns.get(..place).unwrap_or_default();
        let before = earlier.iter().rev().find(|earlier| earlier.agent == turn.agent);
        let again = !turn.calls.is_empty() && before.is_some_and(|before| before.calls == turn.calls);
        let cut = turn.finish.as_deref().is_some_and(stopped_short);
        [
            flag(error),
            flag(error && again),
            flag(cut),
            flag(turn.status.is_some() || turn.words_and_calls().trim().is_empty()),
            f64::from(turn.attempts.saturating_sub(1)).ln_1p(),
        ]
    }

    /// What others make of it.
    fn scores(&self, turn: &LoggedTurn) -> Vec<f64> {
        let mut scores = vec![
            flag(turn.doubt.is_some()),
            turn.doubt.map_or(0.0, |doubt| doubt.mean - self.doubt.0),
            turn.doubt.map_or(0.0, |doubt| doubt.highest - self.doubt.1),
            self.spectrum.get(&turn.step).copied().unwrap_or_default(),
        ];
        for (name, _) in CLUES.get(RULES_FROM..).unwrap_or_default() {
            let fires =
                |(step, rule): &(u32, String)| *step == turn.step && name.get(5..) == Some(&rule.replace('-', "_"));
            scores.push(self.rules.iter().find(|(key, _)| fires(key)).map_or(0.0, |(_, weight)| *weight));
        }
        scores
    }
}

/// Requests between a step's words and the last step; those that do not reach it have none.
fn hops(run: &LoggedRun) -> BTreeMap<u32, usize> {
    let mut hops: BTreeMap<u32, usize> = BTreeMap::new();
    let mut next: VecDeque<(u32, usize)> = run.turns.last().map(|turn| (turn.step, 0)).into_iter().collect();
    while let Some((step, far)) = next.pop_front() {
        if hops.contains_key(&step) {
            continue;
        }
        hops.insert(step, far);
        next.extend(run.turn(step).into_iter().flat_map(|turn| turn.quoted.iter().map(|heard| (*heard, far + 1))));
    }
    hops
}

/// How much replies differ among each other: the entropy of what they say, beside the most that so many could have.
fn entropy(turns: &[&LoggedTurn]) -> f64 {
    if turns.len() < 2 {
        return 0.0;
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for turn in turns {
        *counts.entry(folded_words(&turn.words_and_calls())).or_default() += 1;
    }
    let all = real(turns.len());
    let entropy: f64 = counts.values().map(|count| real(*count) / all).map(|share| -share * share.ln()).sum();
    entropy / all.ln()
}

fn numbers(text: &str) -> BTreeSet<String> {
    numbers_in_text(text).collect()
}

fn words(text: &str) -> f64 {
    real(text.split_whitespace().count())
}

fn flag(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "counts in one run")]
fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attribution::methods::testing::run, trajectory::TokenDoubt};

    fn at(clues: &[Vec<f64>], name: &str) -> Vec<f64> {
        let place = CLUES.iter().position(|(known, _)| *known == name).expect(name);
        clues.iter().map(|step| step[place]).collect()
    }

    #[test]
    fn every_step_has_every_clue_and_each_rule_is_one() {
        let names: BTreeSet<&str> = CLUES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), CLUES.len());
        assert!(CLUES[RULES_FROM..].iter().all(|(name, _)| name.starts_with("rule_")));
        assert!(CLUES[..RULES_FROM].iter().all(|(name, _)| !name.starts_with("rule_")));
        for run in [run(&[]), run(&[""]), run(&["so 2 + 2 = 5", "a", "so 2 + 2 = 5"])] {
            let found = clues(&run, &[]);
            assert_eq!(found.len(), run.turns.len());
            assert!(found.iter().all(|step| step.len() == CLUES.len() && step.iter().all(|clue| clue.is_finite())));
        }
    }

    #[test]
    fn a_run_beside_one_that_passed() {
        let mut failed = run(&["start with 12", "so 12 * 8 = 97", "ANSWER: 97"]);
        let passed =
            LoggedRun { id: "p".into(), passed: Some(true), ..run(&["start with 12", "so 12 * 8 = 96", "ANSWER: 96"]) };
        failed.turns[1].doubt = TokenDoubt::from_logprobs(&[-2.0]);
        failed.turns[2].attempts = 3;
        let found = clues(&failed, &[passed]);
        assert_eq!(at(&found, "position"), [0.0, 0.5, 1.0]);
        assert_eq!(at(&found, "passed_differ"), [0.0, 1.0, 1.0]);
        assert_eq!(at(&found, "rule_calculation"), [0.0, 0.85, 0.0]);
        assert_eq!(at(&found, "hops"), [2.0_f64.ln_1p(), 1.0_f64.ln_1p(), 0.0]);
        assert_eq!(at(&found, "doubt_known"), [0.0, 1.0, 0.0]);
        assert_eq!(at(&found, "retries"), [0.0, 0.0, 2.0_f64.ln_1p()]);
        assert_eq!(at(&found, "heard_by"), [0.5, 1.0, 0.0]);
        assert!(at(&found, "spectrum")[1] > at(&found, "spectrum")[0]);
    }
}
