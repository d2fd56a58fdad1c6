//! What a judge of failures is worth on runs of which each label was executed: how often it sees a failure, how often it blames
//! somebody in a run without one, whom, when and how it names, and what its confidence says. A judge is certified where the
//! bounds say so, not the shares.

use serde::{Deserialize, Serialize};

use super::{
    gold::Culprit,
    interval::Share,
    names::{agent_key, mode_key},
    prediction::{Guess, PredictedAnswer},
    real,
};
use crate::trajectory::Interval;

/// Bins of a calibration, of equal width.
const BINS: usize = 5;
/// Most rows that are foretold: what more would take is no advice.
const ROWS_MAX: usize = 10_000;

/// What a run is that a judge is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CertifiedKind {
    /// It failed, and its label is proven.
    Failure,
    /// It succeeded, and nothing was planted.
    Clean,
    /// It succeeded although an error was planted.
    Benign,
    /// A neutral change was planted, whatever came of it.
    Decoy,
}

/// A run, and what a judge said of it.
#[derive(Debug, Clone)]
pub struct CertifiedRun {
    /// What it is.
    pub kind: CertifiedKind,
    /// Whom its label names; of a benign run or a decoy, where something harmless was planted.
    pub culprits: Vec<Culprit>,
    /// What the judge said; `None` where it said nothing of this run.
    pub answer: Option<PredictedAnswer>,
    /// How sure it is that somebody erred, 0 to 1, where it says so.
    pub confidence: Option<f64>,
}

/// What a judge is worth.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CertifiedFigures {
    /// Proven failures in which it blames somebody.
    pub detection: Share,
    /// Clean runs in which it blames nobody. An answer that cannot be read says neither.
    pub silence: Share,
    /// Benign runs in which it blames nobody.
    pub silence_benign: Share,
    /// Decoys in which it does not blame the agent that got the neutral change.
    pub silence_decoy: Share,
    /// Of the failures that it sees: an agent that the label names is named, first or in the set.
    pub agent: Share,
    /// A step that the label names is named.
    pub step: Share,
    /// An agent is named with its step.
    pub place: Share,
    /// A mode that the label names is named.
    pub mode: Share,
    /// Agents that it names in failures, and that the label names, too.
    pub precision: Share,
    /// Agents that labels of failures name, and that it names, too.
    pub recall: Share,
    /// Runs whose answer cannot be read, or that have none.
    pub abstained: Share,
    /// What its confidence says; `None` where it states none.
    pub calibration: Option<ConfidenceCalibration>,
}

/// How far stated confidence is from what comes.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ConfidenceCalibration {
    /// Answers that state a confidence and name an agent.
    pub rows: usize,
    /// Expected calibration error: the mean distance of confidence and share of right agents over bins, weighed by their rows.
    pub error: f64,
    /// The bins that hold any.
    pub bins: Vec<CalibrationBin>,
}

/// Answers of about one confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CalibrationBin {
    /// Their mean confidence.
    pub stated: f64,
    /// Those that name a right agent.
    pub right: Share,
}

/// Whether a judge may be called certified.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Certification {
    /// Whether both bounds reach what is asked.
    pub certified: bool,
    /// What bounds must reach, 0 to 1.
    pub least: f64,
    /// The lower 95 % bound of detection.
    pub detection_bound: f64,
    /// The lower 95 % bound of silence in clean runs.
    pub silence_bound: f64,
    /// What is missing, in words.
    pub lacking: Vec<String>,
}

impl CertifiedRun {
    fn claimed(&self) -> &[Guess] {
        self.answer.as_ref().map(PredictedAnswer::claimed).unwrap_or_default()
    }

    fn is_read(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| !matches!(answer, PredictedAnswer::Unparsed(_)))
    }

    /// Whether its answer blames somebody; one that cannot be read does not.
    fn is_blamed(&self) -> bool {
        self.claimed().iter().any(|guess| !guess.is_empty())
    }

    /// Whether a culprit and a guess that go together exist.
    fn has_pair(&self, alike: impl Fn(&Culprit, &Guess) -> bool) -> bool {
        self.culprits.iter().any(|culprit| self.claimed().iter().any(|guess| alike(culprit, guess)))
    }
}

fn same_agent(culprit: &Culprit, guess: &Guess) -> bool {
    let (Some(gold), Some(said)) = (&culprit.agent, &guess.agent) else { return false };
    agent_key(gold) == agent_key(said)
}

fn same_step(culprit: &Culprit, guess: &Guess) -> bool {
    culprit.step.map(i64::from).is_some_and(|gold| guess.step == Some(gold))
}

fn same_mode(culprit: &Culprit, guess: &Guess) -> bool {
    let (Some(gold), Some(said)) = (&culprit.mode, &guess.mode) else { return false };
    mode_key(gold) == mode_key(said)
}

impl CertifiedFigures {
    /// The figures of some runs.
    pub fn of_runs(runs: &[CertifiedRun]) -> Self {
        let of = |kind: CertifiedKind| runs.iter().filter(move |run| run.kind == kind);
        let share = |kind, holds: &dyn Fn(&&CertifiedRun) -> bool| {
            Share::exact(of(kind).filter(|run| holds(run)).count(), of(kind).count())
        };
        let silent = |run: &&CertifiedRun| run.is_read() && !run.is_blamed();
        let seen: Vec<&CertifiedRun> = of(CertifiedKind::Failure).filter(|run| run.is_blamed()).collect();
        // A label that does not know its steps or modes is no evidence about them.
        let named = |known: &dyn Fn(&Culprit) -> bool, alike: &dyn Fn(&Culprit, &Guess) -> bool| {
            let known = seen.iter().filter(|run| run.culprits.iter().any(known));
            let (mut hits, mut all) = (0, 0);
            for run in known {
                all += 1;
                hits += usize::from(run.has_pair(alike));
            }
            Share::exact(hits, all)
        };
        let both = |culprit: &Culprit, guess: &Guess| same_agent(culprit, guess) && same_step(culprit, guess);
        let (has_agent, has_step) = (|one: &Culprit| one.agent.is_some(), |one: &Culprit| one.step.is_some());
        let (precision, recall) = agents(of(CertifiedKind::Failure));
        Self {
            detection: share(CertifiedKind::Failure, &|run| run.is_blamed()),
            silence: share(CertifiedKind::Clean, &silent),
            silence_benign: share(CertifiedKind::Benign, &silent),
            // Where nobody knows which agent got the change, nobody may be blamed.
            silence_decoy: share(CertifiedKind::Decoy, &|run| {
                if run.culprits.is_empty() { silent(run) } else { run.is_read() && !run.has_pair(same_agent) }
            }),
            agent: named(&has_agent, &same_agent),
            step: named(&has_step, &same_step),
            place: named(&|one| has_agent(one) && has_step(one), &both),
            mode: named(&|one| one.mode.is_some(), &same_mode),
            precision,
            recall,
            abstained: Share::exact(runs.iter().filter(|run| !run.is_read()).count(), runs.len()),
            calibration: ConfidenceCalibration::of_runs(runs),
        }
    }

    /// Whether a judge with these figures is certified at bounds of `least`, and what is missing.
    pub fn certify(&self, least: f64) -> Certification {
        let bounds = [
            ("detection", "verified failures", &self.detection),
            ("silence in clean runs", "clean runs", &self.silence),
        ];
        let lacking = bounds.iter().filter(|(.., share)| share.of == 0 || share.interval.low < least);
        let lacking: Vec<String> = lacking.map(|(what, rows, share)| missing(what, rows, share, least)).collect();
        Certification {
            certified: lacking.is_empty(),
            least,
            detection_bound: self.detection.interval.low,
            silence_bound: self.silence.interval.low,
            lacking,
        }
    }
}

/// What a bound lacks, and how many rows would do at the same share.
fn missing(what: &str, rows: &str, share: &Share, least: f64) -> String {
    let (percent, bound) = (100.0 * share.share, 100.0 * share.interval.low);
    let told = format!(
        "{what}: {} of {} ({percent:.0} %), at least {bound:.1} % at 95 %, and {:.0} % is asked",
        share.hits,
        share.of,
        100.0 * least
    );
    match rows_needed(share, least) {
        Some(needed) => format!("{told}; {needed} {rows} at this share would do"),
        None => format!("{told}; no number of {rows} at this share would do"),
    }
}

/// How many rows at the observed share have a lower bound of `least`.
fn rows_needed(share: &Share, least: f64) -> Option<usize> {
    let (hits, of) = if share.of == 0 { (1, 1) } else { (share.hits, share.of) };
    let hits_of = |rows: usize| rows * hits / of;
    let enough = |rows: usize| Interval::exact(hits_of(rows) as u64, rows as u64).low >= least;
    if real(hits) / real(of) <= least {
        return None;
    }
    let mut high = 1;
    while !enough(high) {
        high *= 2;
        if high > ROWS_MAX {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low.midpoint(high);
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Agents that are named in failures and right, of those that are named, and of those that labels name.
fn agents<'a>(failures: impl Iterator<Item = &'a CertifiedRun>) -> (Share, Share) {
    use std::collections::BTreeSet;
    let (mut right, mut named, mut gold) = (0, 0, 0);
    for run in failures {
        let said: BTreeSet<String> =
            run.claimed().iter().filter_map(|guess| guess.agent.as_deref().map(agent_key)).collect();
        let held: BTreeSet<String> =
            run.culprits.iter().filter_map(|culprit| culprit.agent.as_deref().map(agent_key)).collect();
        right += said.intersection(&held).count();
        named += said.len();
        gold += held.len();
    }
    (Share::exact(right, named), Share::exact(right, gold))
}

impl ConfidenceCalibration {
    /// Of every answer that states how sure it is and blames somebody; in a run without a failure no agent is right.
    fn of_runs(runs: &[CertifiedRun]) -> Option<Self> {
        let stated: Vec<(f64, bool)> = runs
            .iter()
            .filter(|run| run.is_blamed())
            .filter_map(|run| {
                let confidence = run.confidence.filter(|stated| (0.0..=1.0).contains(stated))?;
                Some((confidence, run.kind == CertifiedKind::Failure && run.has_pair(same_agent)))
            })
            .collect();
        let bin = |confidence: f64| (0..BINS).rev().find(|bin| confidence >= real(*bin) / real(BINS)).unwrap_or(0);
        let mut bins = Vec::new();
        let mut error = 0.0;
        for number in 0..BINS {
            let within: Vec<&(f64, bool)> =
                stated.iter().filter(|(confidence, _)| bin(*confidence) == number).collect();
            if within.is_empty() {
                continue;
            }
            let mean = within.iter().map(|(confidence, _)| confidence).sum::<f64>() / real(within.len());
            let right = Share::exact(within.iter().filter(|(_, right)| *right).count(), within.len());
            error += (mean - right.share).abs() * real(within.len()) / real(stated.len());
            bins.push(CalibrationBin { stated: mean, right });
        }
        (!stated.is_empty()).then_some(Self { rows: stated.len(), error, bins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn culprit(agent: &str, step: u32, mode: &str) -> Culprit {
        Culprit { agent: Some(agent.to_owned()), step: Some(step), mode: Some(mode.to_owned()) }
    }

    fn guess(agent: &str, step: i64, mode: &str) -> Guess {
        Guess { agent: Some(agent.to_owned()), step: Some(step), mode: Some(mode.to_owned()) }
    }

    fn run(kind: CertifiedKind, culprits: &[Culprit], said: Option<&[Guess]>, confidence: Option<f64>) -> CertifiedRun {
        let answer = said.map(|said| PredictedAnswer::Set(said.to_vec()));
        CertifiedRun { kind, culprits: culprits.to_vec(), answer, confidence }
    }

    fn counts(share: Share) -> (usize, usize) {
        (share.hits, share.of)
    }

    #[test]
    fn figures_by_hand() {
        use CertifiedKind::{Benign, Clean, Decoy, Failure};
        let (solver, critic) = (culprit("solver", 1, "FM-2.6"), culprit("critic", 2, "FM-3.3"));
        let runs = [
            // Right in all; right agent at another step; another agent at the right step; nobody; unread.
            run(Failure, std::slice::from_ref(&solver), Some(&[guess("Solver", 1, "2.6")]), Some(0.9)),
            run(Failure, &[solver.clone(), critic.clone()], Some(&[guess("critic", 7, "FM-1.1")]), Some(0.5)),
            run(Failure, std::slice::from_ref(&solver), Some(&[guess("planner", 1, "FM-2.6")]), Some(0.9)),
            run(Failure, std::slice::from_ref(&solver), Some(&[]), None),
            CertifiedRun {
                answer: Some(PredictedAnswer::Unparsed("?".to_owned())),
                ..run(Failure, std::slice::from_ref(&solver), None, None)
            },
            run(Clean, &[], Some(&[]), None),
            run(Clean, &[], Some(&[guess("solver", 1, "FM-2.6")]), Some(0.5)),
            run(Clean, &[], None, None),
            run(Benign, std::slice::from_ref(&solver), Some(&[guess("critic", 1, "FM-2.6")]), None),
            run(Decoy, std::slice::from_ref(&solver), Some(&[guess("critic", 1, "FM-2.6")]), None),
            run(Decoy, std::slice::from_ref(&solver), Some(&[guess("solver", 1, "FM-2.6")]), None),
        ];
        let figures = CertifiedFigures::of_runs(&runs);
        assert_eq!(counts(figures.detection), (3, 5));
        assert_eq!(counts(figures.silence), (1, 3), "an answer that is missing is no silence");
        assert_eq!((counts(figures.silence_benign), counts(figures.silence_decoy)), ((0, 1), (1, 2)));
        assert_eq!((counts(figures.agent), counts(figures.step), counts(figures.place)), ((2, 3), (2, 3), (1, 3)));
        assert_eq!(counts(figures.mode), (2, 3));
        assert_eq!((counts(figures.precision), counts(figures.recall)), ((2, 3), (2, 6)));
        assert_eq!(counts(figures.abstained), (2, 11));
        // 0.9: one of two right, 0.4 away; 0.5: one of two right, 0 away.
        let calibration = figures.calibration.expect("four answers state how sure they are");
        assert_eq!((calibration.rows, calibration.bins.len()), (4, 2));
        assert!((calibration.error - 0.2).abs() < 1e-9, "{calibration:?}");
    }

    #[test]
    fn bounds_certify_and_not_shares() {
        let of =
            |kind, count: usize, said: &[Guess]| vec![run(kind, &[culprit("a", 0, "FM-1.1")], Some(said), None); count];
        let blamed = [guess("a", 0, "FM-1.1")];
        for (failures, clean, certified) in [(10, 10, false), (17, 17, true), (17, 16, false), (17, 0, false)] {
            let runs = [of(CertifiedKind::Failure, failures, &blamed), of(CertifiedKind::Clean, clean, &[])].concat();
            let certification = CertifiedFigures::of_runs(&runs).certify(0.8);
            assert_eq!(certification.certified, certified, "{failures} {clean}: {certification:?}");
            assert_eq!(certification.lacking.is_empty(), certified);
        }
        let few = [of(CertifiedKind::Failure, 10, &blamed), of(CertifiedKind::Clean, 3, &blamed)].concat();
        let lacking = CertifiedFigures::of_runs(&few).certify(0.8).lacking;
        assert!(lacking[0].ends_with("; 17 verified failures at this share would do"), "{lacking:?}");
        assert!(lacking[1].ends_with("; no number of clean runs at this share would do"), "{lacking:?}");
    }
}
