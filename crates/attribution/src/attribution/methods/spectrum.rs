//! Spectrum-based attribution (FAMAS, arXiv 2509.13782): which agent's act stands in failed runs of a task and not in passed
//! ones. An act is what an agent said at one of its calls, word for word (blanks and case aside); no model groups the words.
//!
//! With λ = 0.9: an act that a run holds f times covers it by Σ λ^0 … λ^(f−1); α = 1 + log_{1/λ} f in the failed run; β = f / turns of
//! its agent there; γ = runs with the act / runs with its agent; `S = α · Kulczynski2_λ · (1 + β) · (1 + γ)`. What is correlated
//! with failure need not cause it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Abstention, Dialogue, LoggedRun, Method, Needs, Pause, PredictedStep, View,
    aligned::{folded_words, seats},
    formula::{FORMULAS, Spectra, kulczynski2, ochiai},
};

/// The decay of repeated acts.
const LAMBDA: f64 = 0.9;
/// Most predictions.
const NAMED: usize = 5;

/// Counts over runs of the same task.
#[derive(Debug)]
pub(super) struct Spectrum;

/// An agent, and what it said.
type Act = (String, String);

/// How often each act stands in a run, and how many turns each agent has.
struct ActCoverage {
    passed: bool,
    acts: BTreeMap<Act, u32>,
    turns: BTreeMap<String, u32>,
}

impl Method for Spectrum {
    fn name(&self) -> &'static str {
        "spectrum"
    }

    fn description(&self) -> &'static str {
        "what stands in failed runs of the task and not in passed ones (FAMAS, Ochiai and four more formulas)"
    }

    fn needs(&self) -> Needs {
        Needs::OtherRuns
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        _dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        let Some(mut ranked) = scored(run, view.others) else {
            let why = "no other run of the same task passed, so everything is equally suspect".to_owned();
            return Err(Pause::Abstain(Abstention::Inapplicable(why)));
        };
        // With one run of each kind the factors weigh up what passed runs say: Ochiai decides, then the earlier step.
        ranked.sort_by(|(a, plain_a, _), (b, plain_b, _)| b.total_cmp(a).then(plain_b.total_cmp(plain_a)));
        if ranked.is_empty() {
            return Err(Pause::Abstain(Abstention::Inapplicable("the run has no step".to_owned())));
        }
        Ok(ranked.into_iter().take(NAMED).map(|(score, _, found)| found.scored(score)).collect())
    }
}

/// Every act of a run where it first stands, with its score, its Ochiai score and words about both; `None` where no other run of
/// the task passed.
pub(super) fn scored(run: &LoggedRun, others: &[LoggedRun]) -> Option<Vec<(f64, f64, PredictedStep)>> {
    let own = ActCoverage::from_run(run, false);
    let beside = others.iter().filter(|other| !other.is_same_run(run));
    let all: Vec<ActCoverage> =
        beside.filter_map(|other| other.passed.map(|passed| ActCoverage::from_run(other, passed))).collect();
    if !all.iter().any(|coverage| coverage.passed) {
        return None;
    }
    let all: Vec<&ActCoverage> = std::iter::once(&own).chain(&all).collect();
    let mut ranked: Vec<(f64, f64, PredictedStep)> = Vec::new();
    let mut seen: BTreeSet<Act> = BTreeSet::new();
    for (_, turn) in seats(run) {
        let act = (turn.agent.clone(), folded_words(&turn.words_and_calls()));
        // An act that is repeated is blamed where it first stands.
        if !seen.insert(act.clone()) {
            continue;
        }
        let score = famas(&act, &own, &all);
        let plain = spectra(&act, &all, |_| 1.0);
        let figures = FORMULAS.iter().map(|(name, formula)| format!("{name} {:.2}", formula(plain)));
        let why = format!(
            "said in {} of {} failed and {} of {} passed runs of the task; famas {score:.2}, {}",
            plain.failed,
            plain.failed + plain.failed_without,
            plain.passed,
            plain.passed + plain.passed_without,
            figures.collect::<Vec<_>>().join(", ")
        );
        ranked.push((
            score,
            ochiai(plain),
            PredictedStep::at(run, turn.step, why).quoting(run, turn.step, &start(&turn.words_and_calls())),
        ));
    }
    Some(ranked)
}

impl ActCoverage {
    fn from_run(run: &LoggedRun, passed: bool) -> Self {
        let (mut acts, mut turns) = (BTreeMap::new(), BTreeMap::new());
        for turn in &run.turns {
            *acts.entry((turn.agent.clone(), folded_words(&turn.words_and_calls()))).or_default() += 1;
            *turns.entry(turn.agent.clone()).or_default() += 1;
        }
        Self { passed, acts, turns }
    }

    fn times(&self, act: &Act) -> u32 {
        self.acts.get(act).copied().unwrap_or_default()
    }
}

/// Counts of an act over runs; a run that holds it `f` times counts `weight(f)`.
fn spectra(act: &Act, all: &[&ActCoverage], weight: impl Fn(u32) -> f64) -> Spectra {
    let mut counts = Spectra::default();
    for coverage in all {
        let times = coverage.times(act);
        match (coverage.passed, times) {
            (false, 0) => counts.failed_without += 1.0,
            (true, 0) => counts.passed_without += 1.0,
            (false, times) => counts.failed += weight(times),
            (true, times) => counts.passed += weight(times),
        }
    }
    counts
}

fn famas(act: &Act, own: &ActCoverage, all: &[&ActCoverage]) -> f64 {
    let times = own.times(act).max(1);
    let decayed = spectra(act, all, |times| (0..times.min(1_000)).fold(0.0, |sum, _| sum * LAMBDA + 1.0));
    let alpha = 1.0 + f64::from(times).ln() / (1.0 / LAMBDA).ln();
    let beta = f64::from(times) / f64::from(own.turns.get(&act.0).copied().unwrap_or(1).max(1));
    let count = |holds: &dyn Fn(&ActCoverage) -> bool| {
        u32::try_from(all.iter().filter(|coverage| holds(coverage)).count()).map_or(0.0, f64::from)
    };
    let with_agent = count(&|coverage| coverage.turns.contains_key(&act.0)).max(1.0);
    let gamma = count(&|coverage| coverage.times(act) > 0) / with_agent;
    alpha * kulczynski2(decayed) * (1.0 + beta) * (1.0 + gamma)
}

/// The beginning of a text.
fn start(text: &str) -> String {
    text.split_whitespace().take(16).collect::<Vec<_>>().join(" ")
}
