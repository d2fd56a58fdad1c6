//! Multi-agent systems as functions, for the tests of a search: an execution costs nothing, so that hundreds of failed runs
//! can be searched. Replies are numbers; who slips is one off.

use super::{Couple, Found, Offer, Order, Search, SearchEnding, SearchQuestion, TriedWords};
use crate::{
    proof::{ProofSample, Terms, systems_tests::Draws},
    trajectory::Void,
};

/// What each adds.
const PARTS: [i64; 8] = [5, 7, 3, 9, 4, 6, 2, 8];
const APPROVE: i64 = 0;

/// How agents work together, and what goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topology {
    /// Five in a row; the third erred by chance.
    Chain5,
    /// The same; the third errs whenever it is asked.
    Stubborn,
    /// Eight in a row; the second and the fourth erred by chance.
    Late,
    /// Two branches of two at once and one who joins; the first of the left branch erred by chance.
    Branches,
    /// Three vote in turn, a fourth counts; the first two erred by chance.
    Vote,
    /// The same, the three at once.
    ParallelVote,
    /// One solves, one approves, one writes; the first errs always, the second approves of anything.
    Approval,
    /// Two err always, code adds up what they say: neither correction heals alone.
    Coupled,
}

impl Topology {
    pub(super) const ALL: [Topology; 8] = [
        Topology::Chain5,
        Topology::Stubborn,
        Topology::Late,
        Topology::Branches,
        Topology::Vote,
        Topology::ParallelVote,
        Topology::Approval,
        Topology::Coupled,
    ];

    pub(super) fn steps(self) -> usize {
        match self {
            Topology::Chain5 | Topology::Stubborn | Topology::Branches => 5,
            Topology::Late => 8,
            Topology::Vote | Topology::ParallelVote => 4,
            Topology::Approval => 3,
            Topology::Coupled => 2,
        }
    }

    /// What a step says, of what was said before; `errs` where the model makes its own errors.
    fn step_value(self, step: usize, said: &[i64], errs: bool) -> i64 {
        let at = |step: usize| said[step];
        let before = if step == 0 { 12 } else { at(step - 1) };
        match self {
            Topology::Chain5 | Topology::Late => before + PARTS[step],
            Topology::Stubborn => before + PARTS[step] + if errs && step == 2 { 10 } else { 0 },
            // The branches take turns: left, right, left, right.
            Topology::Branches if step == 4 => at(2) + at(3),
            Topology::Branches => PARTS[step] + if step < 2 { 12 } else { at(step - 2) },
            Topology::Vote | Topology::ParallelVote if step == 3 => {
                if at(0) == at(1) {
                    at(0)
                } else {
                    at(2)
                }
            }
            Topology::Vote | Topology::ParallelVote => 12 + PARTS[0],
            Topology::Approval => match step {
                0 => 17 + i64::from(errs),
                1 => APPROVE,
                _ if at(1) == APPROVE => at(0),
                _ => 17,
            },
            Topology::Coupled => PARTS[step] + if errs { 10 } else { 0 },
        }
    }

    fn result(self, said: &[i64]) -> i64 {
        if self == Topology::Coupled { said.iter().sum() } else { *said.last().expect("a reply") }
    }

    /// What a run without any error says.
    pub(super) fn clean(self) -> Vec<i64> {
        let mut said = Vec::new();
        (0..self.steps()).for_each(|step| said.push(self.step_value(step, &said, false)));
        said
    }

    /// What the failed run says.
    pub(super) fn failed(self) -> Vec<i64> {
        let slips: &[usize] = match self {
            Topology::Chain5 => &[2],
            Topology::Late => &[1, 3],
            Topology::Branches => &[0],
            Topology::Vote | Topology::ParallelVote => &[0, 1],
            Topology::Stubborn | Topology::Approval | Topology::Coupled => &[],
        };
        let mut said = Vec::new();
        for step in 0..self.steps() {
            let slip = if slips.contains(&step) { 10 } else { 0 };
            said.push(self.step_value(step, &said, true) + slip);
        }
        assert_ne!(self.result(&said), self.result(&self.clean()));
        said
    }

    /// The steps that the record holds when a run is forked at one: those before it, and those under way with it.
    fn prefix(self, fork: usize) -> usize {
        match self {
            Topology::ParallelVote if fork < 3 => 3,
            Topology::Branches if fork < 4 => [2, 2, 4, 4][fork],
            _ => fork + 1,
        }
    }

    /// What a step was asked, as far as it depends on what was said.
    fn inputs(self, step: usize, said: &[i64]) -> Vec<i64> {
        match self {
            Topology::Vote | Topology::ParallelVote if step < 3 => Vec::new(),
            Topology::Branches if step < 2 => Vec::new(),
            Topology::Branches if step < 4 => vec![said[step - 2]],
            Topology::Coupled => Vec::new(),
            _ => said[..step].to_vec(),
        }
    }
}

/// Where corrections come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Twin,
    Redraw,
    /// A person who corrects the last step, and every second one that is wrong.
    File,
    /// A model that proposes something for each step.
    Model,
}

impl Source {
    pub(super) const ALL: [Source; 4] = [Source::Twin, Source::Redraw, Source::File, Source::Model];
}

/// What an arm sets, by step; the rest is live.
pub(super) type Set = Vec<Option<i64>>;

/// A failed run and what there is to try.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) topology: Topology,
    pub(super) arms: Vec<Set>,
    pub(super) question: SearchQuestion,
}

impl Case {
    pub(super) fn new(topology: Topology, source: Source, order: Order, coupled: bool) -> Self {
        let (failed, clean) = (topology.failed(), topology.clean());
        let instead: Vec<Option<(TriedWords, Option<i64>)>> = (0..topology.steps())
            .map(|step| {
                let (was, is) = (failed[step], clean[step]);
                let last = step + 1 == topology.steps();
                match source {
                    Source::Twin if was != is => Some((TriedWords::Given, Some(is))),
                    Source::File if was != is && (last || step % 2 == 0) => Some((TriedWords::Given, Some(is))),
                    Source::Twin | Source::File => None,
                    Source::Redraw => Some((TriedWords::Drawn, None)),
                    // It corrects what is wrong, and spoils what is right.
                    Source::Model => Some((TriedWords::Proposed, Some(if was == is { is - 1 } else { is }))),
                }
            })
            .collect();
        let same = |step: usize| {
            let asked = topology.inputs(step, &failed) == topology.inputs(step, &clean);
            source == Source::Twin && asked && failed[step] == clean[step]
        };
        Self::with_words(topology, &instead, same, order, coupled)
    }

    /// A case with these words instead of a step's own.
    pub(super) fn with_words(
        topology: Topology,
        instead: &[Option<(TriedWords, Option<i64>)>],
        same: impl Fn(usize) -> bool,
        order: Order,
        coupled: bool,
    ) -> Self {
        let failed = topology.failed();
        let recorded = |fork: usize| -> Set {
            (0..topology.steps()).map(|step| (step < topology.prefix(fork)).then_some(failed[step])).collect()
        };
        let mut arms: Vec<Set> = vec![failed.iter().copied().map(Some).collect()];
        let mut arm = |set: Set| {
            let known = arms.iter().position(|arm| *arm == set);
            known.unwrap_or_else(|| {
                arms.push(set);
                arms.len() - 1
            })
        };
        let mut steps = Vec::new();
        for (step, instead) in instead.iter().enumerate() {
            steps.push(match instead {
                Some((by, words)) => {
                    let mut treated = recorded(step);
                    treated[step] = *words;
                    let suspicion = 1.0 / (step + 2) as f64;
                    Offer::Other { control: arm(recorded(step)), treated: arm(treated), by: *by, suspicion }
                }
                None if same(step) => Offer::Same,
                None => Offer::None,
            });
        }
        let mut couples = Vec::new();
        for (first, second) in (0..instead.len()).flat_map(|a| (a + 1..instead.len()).map(move |b| (a, b))) {
            if let (true, Some((_, Some(one))), Some((_, Some(other)))) = (coupled, instead[first], instead[second]) {
                let mut control = recorded(first);
                control[second] = Some(failed[second]);
                let mut treated = control.clone();
                (treated[first], treated[second]) = (Some(one), Some(other));
                couples.push(Couple { steps: (first, second), control: arm(control), treated: arm(treated) });
            }
        }
        let (terms, count) = (Terms::default(), arms.len());
        let question =
            SearchQuestion { steps, couples, arms: count, sanity: 0, order, earliest: true, last: true, terms };
        Self { topology, arms, question }
    }

    /// Executes an arm: its outcome and its live calls. Each live reply is one off with a chance of `noise`.
    pub(super) fn execute(&self, arm: usize, noise: f64, draws: &mut Draws) -> (bool, u32) {
        let (mut said, mut live) = (Vec::new(), 0);
        for (step, set) in self.arms[arm].iter().enumerate() {
            said.push(set.unwrap_or_else(|| {
                live += 1;
                let slip = draws.uniform() < noise;
                // An approver that slips disapproves; others are one off.
                self.topology.step_value(step, &said, true) + i64::from(slip)
            }));
        }
        (self.topology.result(&said) == self.topology.result(&self.topology.clean()), live)
    }

    /// How much more often a step's correction heals than chance does.
    pub(super) fn effect(&self, step: usize, noise: f64) -> Option<f64> {
        let Offer::Other { control, treated, .. } = self.question.steps[step] else { return None };
        let of = 2_000;
        let rate = |arm| {
            let mut draws = Draws::seeded(&format!("effect {:?} {arm} {noise}", self.topology));
            let passed = (0..of).filter(|_| self.execute(arm, noise, &mut draws).0).count();
            passed as f64 / f64::from(of)
        };
        Some(rate(treated) - rate(control))
    }
}

/// What a search came to.
pub(super) struct Searched {
    pub(super) found: Found,
    pub(super) executions: u32,
    pub(super) calls: u32,
    pub(super) search: Search,
}

/// The chances of a live execution.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LiveChances {
    /// That a reply is one off.
    pub(super) noise: f64,
    /// That a call is left unanswered.
    pub(super) unanswered: f64,
}

/// Searches to the end.
pub(super) fn search(case: &Case, weather: LiveChances, name: &str) -> Searched {
    let mut draws = Draws::seeded(name);
    let mut search = Search::new(case.question.clone());
    let (mut executions, mut calls) = (0, 0);
    loop {
        let arms = search.next(1);
        if arms.is_empty() {
            break;
        }
        for arm in arms {
            let (passed, live) = case.execute(arm, weather.noise, &mut draws);
            let answered = (0..live).all(|_| draws.uniform() >= weather.unanswered);
            let sample = match (answered, passed) {
                (false, _) => ProofSample::Void(Void::Unanswered),
                (_, true) => ProofSample::Passed,
                (_, false) => ProofSample::Failed,
            };
            search.take(arm, sample);
            executions += 1;
            calls += live;
        }
        assert!(executions < 4_000, "{name}: a search ends");
    }
    let found = search.found();
    assert!(found.ending != Some(SearchEnding::NotReproduced), "the record fails");
    Searched { found, executions, calls, search }
}
