//! How much a campaign will have cost when it is made: a band that is to hold in nine of ten campaigns. What is left to be made is
//! played out many times, each time with other figures for what is not known: a measured figure varies as much as its parts did, and
//! the less of them there are the more; one that nothing was measured of lies anywhere in a range that is stated.

mod draws;
mod expected;
mod figure;
mod measured;

#[cfg(test)]
mod tests;

use rand::{SeedableRng, rngs::ChaCha8Rng};
use serde::Serialize;

use self::{
    draws::{DECOY_FLIPS, NOISE, PlayDraws},
    figure::{
        FigurePart, MeasuredFigure, USUAL_CALLS, USUAL_CHAIN, USUAL_PAIRED_CHAIN, USUAL_RUN, USUAL_SYSTEM, USUAL_TOKENS,
    },
    measured::{ChainRuns, RunSum, SystemRuns, real},
};
pub use self::{
    expected::{ExpectedCost, ForetoldSystem},
    measured::{MeasuredCampaign, MeasuredRuns, measured},
};
use super::{
    definition::{Campaign, CampaignBudget},
    label_cost::LabelCost,
};
use crate::{
    budget::{Cost, PICO},
    dataset::Task,
    verify::Check,
};

/// Campaigns that are played.
const PLAYED: usize = 2_000;
/// Of a hundred of them so many cost less than the band, and as many more.
const OUTSIDE: usize = 5;
/// Fewest injected runs that say how often they flip.
pub(super) const FEWEST: u64 = 3;
/// Fewest flips whose proofs say what the tasks of a system come to. One flip may cost as much as all injected runs, so that tasks
/// without any say little of the rest.
const FEWEST_FLIPS: u64 = 4;

/// Runs that an error takes which is left out of a run of a system that repeats itself.
const LEFT_OUT_AGAIN: f64 = 2.0;

/// What model calls cost in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ForetoldCost {
    /// Model calls.
    pub calls: f64,
    /// Tokens of requests.
    pub input_tokens: f64,
    /// Tokens of replies.
    pub output_tokens: f64,
    /// Money; `null` without prices.
    pub money: Option<f64>,
}

/// From where to where the cost of a whole campaign is expected to be, what was made of it before included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CostBand {
    /// What was made before, which both contain.
    pub made: ForetoldCost,
    /// Less than nine of ten campaigns of this kind cost in all.
    pub low: ForetoldCost,
    /// More than nine of ten cost.
    pub high: ForetoldCost,
}

/// A system in a play: what was measured of it, and what is planned.
struct SystemForecast<'a> {
    runs: &'a SystemRuns,
    /// Clean runs a task, injected runs a task, decoys an injected run, errors that are left out in turn an injected run.
    clean: u32,
    planned: f64,
    decoys: f64,
    errors: f64,
    repeats_itself: bool,
    /// Whether it is declared to repeat itself and taken not to: what its claims took so far says nothing of the rest then.
    takes_back: bool,
    label: &'a [LabelCost; 4],
    /// Questions to a judge about one run.
    judged: f64,
    /// Calls of a clean run where this system has none.
    elsewhere: f64,
    figures: SystemFigures,
}

/// What was measured of a system, as far as it was.
struct SystemFigures {
    clean: Option<MeasuredFigure>,
    /// Calls of the injected runs of a task and of all that is executed for them, in clean runs of the task.
    chain: Option<MeasuredFigure>,
    /// Calls of an injected run, in clean runs of the task.
    injected: Option<MeasuredFigure>,
    input: Option<MeasuredFigure>,
    output: Option<MeasuredFigure>,
    pico: Option<MeasuredFigure>,
}

impl SystemFigures {
    fn from_runs(runs: &SystemRuns, campaign: &Campaign, planned: f64, judged: f64) -> Self {
        let clean = campaign.clean;
        let usual = if campaign.repeats_itself { USUAL_CHAIN } else { USUAL_PAIRED_CHAIN };
        let part = |came: f64, of: f64| FigurePart { came, of };
        let each = |chain: &ChainRuns| chain.clean_calls(judged).unwrap_or_default();
        let chains = || runs.chains.iter();
        let gone_on = chains().filter(|chain| chain.whole && chain.goes_on(clean) == Some(true));
        let of_chain = gone_on.map(|chain| {
            let came = [chain.injected, chain.decoys, chain.proof].map(|sum| sum.calls(judged)).iter().sum();
            part(came, planned * each(chain))
        });
        let of_run = chains().map(|chain| part(chain.injected.calls(judged), real(chain.injected.runs) * each(chain)));
        let token = |tokens: fn(&Cost) -> u64| {
            let spent = chains().map(ChainRuns::spent);
            MeasuredFigure::from_parts(
                spent.map(|sum| part(real(tokens(&sum.cost)), real(sum.cost.calls))),
                USUAL_TOKENS,
            )
        };
        let clean_runs = chains().filter_map(|chain| Some(part(chain.clean_calls(judged)?, 1.0)));
        Self {
            clean: MeasuredFigure::from_parts(clean_runs, USUAL_CALLS),
            chain: MeasuredFigure::from_parts(of_chain, usual),
            injected: MeasuredFigure::from_parts(of_run, USUAL_RUN),
            input: token(|cost| cost.input),
            output: token(|cost| cost.output),
            pico: token(|cost| cost.pico),
        }
    }
}

/// What a play of a system comes to, beside what was made.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PlayedCost {
    calls: f64,
    input: f64,
    output: f64,
    pico: f64,
}

impl SystemForecast<'_> {
    fn play(&self, draws: &mut PlayDraws<'_>) -> PlayedCost {
        let left = self.runs.chains.iter().filter(|chain| !chain.whole);
        let made: f64 = left.clone().map(|chain| chain.spent().calls(self.judged)).sum();
        let begun: Vec<f64> = left.filter_map(|chain| chain.clean_calls(self.judged)).collect();
        let tasks = self.runs.left();
        let unknown = tasks - real(begun.len() as u64);
        let fresh = match self.figures.clean {
            Some(clean) => clean.drawn(unknown, draws),
            None => draws.around(self.elsewhere, USUAL_SYSTEM),
        };
        let clean_calls = begun.iter().sum::<f64>() + unknown * fresh;
        let known = self.runs.chains.iter().filter_map(|chain| chain.goes_on(self.clean));
        let (gone_on, seen) = known.fold((0.0, 0.0), |(on, all), one| (on + f64::from(u8::from(one)), all + 1.0));
        let goes_on = draws.share(gone_on, seen, tasks);
        let flips: u64 = self.runs.chains.iter().map(|chain| chain.flipped).sum();
        let chain = match self.figures.chain {
            Some(chain) if flips >= FEWEST_FLIPS && !self.takes_back => chain.drawn(tasks * goes_on, draws),
            _ => self.unseen(tasks, draws),
        };
        let calls = clean_calls * (f64::from(self.clean) + goes_on * self.planned * chain) - made;
        let calls = if tasks > 0.0 { calls.max(0.0) } else { 0.0 };
        let longer = if self.figures.injected.is_some() { 1.0 } else { draws.longer };
        let mut tokens = |figure: Option<MeasuredFigure>| figure.map_or(0.0, |one| calls * one.drawn(tasks, draws));
        let (input, output, pico) =
            (tokens(self.figures.input), tokens(self.figures.output), tokens(self.figures.pico));
        PlayedCost { calls, input: input * longer, output, pico: pico * longer }
    }

    /// What a planned run comes to, its proof included, in clean runs, where too few flips have been proven to say it.
    fn unseen(&self, tasks: f64, draws: &mut PlayDraws<'_>) -> f64 {
        let further = tasks * self.planned;
        let live = match self.figures.injected {
            Some(injected) => injected.drawn(further, draws),
            None => draws.live,
        };
        let made = self.runs.chains.iter().map(|chain| chain.injected.runs).sum::<u64>();
        let flipped = self.runs.chains.iter().map(|chain| chain.flipped).sum::<u64>();
        let flips = if made >= FEWEST { draws.share(real(flipped), real(made), further) } else { draws.flips };
        let proof = self.proof(draws) * draws.live_in_proof;
        let possible = self.runs.chains.iter().filter_map(|chain| chain.possible);
        let (possible, seen) = possible.fold((0.0, 0.0), |(sum, seen), one| (sum + real(one), seen + self.planned));
        let made = if seen > 0.0 { draws.share(possible, seen, further) } else { draws.made };
        made * (live + flips * proof) + self.decoys * (live + DECOY_FLIPS * proof)
    }

    /// Runs that are executed for one flip.
    fn proof(&self, draws: &PlayDraws<'_>) -> f64 {
        let [repeating, none, some, much] = self.label;
        let own = |label: &LabelCost| label.runs - label.shared * (1.0 - draws.own);
        if self.repeats_itself {
            return own(repeating) + self.errors * LEFT_OUT_AGAIN * draws.narrowed;
        }
        let noise = draws.noise / NOISE.1 * 2.0;
        let between = |from: &LabelCost, to: &LabelCost, share: f64| own(from) * (1.0 - share) + own(to) * share;
        let runs = if noise < 1.0 { between(none, some, noise) } else { between(some, much, noise - 1.0) };
        runs * draws.pursued + self.errors * draws.left_out * draws.narrowed
    }
}

impl PlayedCost {
    fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            input: self.input + other.input,
            output: self.output + other.output,
            pico: self.pico + other.pico,
        }
    }

    /// As it is foretold: whole, and no more than the budget lets through.
    fn foretold(self, budget: &CampaignBudget, priced: bool) -> ForetoldCost {
        let bounded = |value: f64, bound: Option<u64>| bound.map_or(value, |bound| value.min(real(bound))).round();
        let money = self.pico / PICO;
        ForetoldCost {
            calls: bounded(self.calls, budget.calls),
            input_tokens: bounded(self.input, budget.tokens),
            output_tokens: bounded(self.output, budget.tokens),
            money: priced.then(|| money.min(budget.money.unwrap_or(f64::MAX))),
        }
    }
}

impl MeasuredCampaign {
    /// What was made, questions to a judge included.
    fn made(&self, judged: f64) -> PlayedCost {
        let mut made = RunSum::default();
        for sum in self.systems.iter().flat_map(|system| &system.chains).map(ChainRuns::spent) {
            made.runs += sum.runs;
            made.cost.add(&sum.cost);
        }
        let Cost { input, output, pico, .. } = made.cost;
        PlayedCost { calls: made.calls(judged), input: real(input), output: real(output), pico: real(pico) }
    }
}

impl Campaign {
    /// Runs with an error that a task of a system gets, and how many errors are left out in turn for one of them.
    fn planned(&self, system: usize) -> (f64, f64) {
        let fixed = self.plans.iter().filter(|fixed| fixed.systems.contains(&system));
        let fixed = fixed.map(|fixed| {
            // One injection that names two agents plants two errors.
            let errors = fixed.plan.injections.iter().map(|injection| injection.agents.0.len()).sum::<usize>();
            (f64::from(fixed.repeats), real(several(u64::try_from(errors).unwrap_or(u64::MAX))))
        });
        let drawn = self.sample.iter().filter(|sample| sample.systems.contains(&system)).map(|sample| {
            let errors: u64 = sample.targets.iter().map(|targets| several(u64::from(*targets))).sum();
            (f64::from(sample.per_task), real(errors) / real(sample.targets.len().max(1) as u64))
        });
        let (runs, errors) =
            fixed.chain(drawn).fold((0.0, 0.0), |(runs, errors), (of, each)| (runs + of, errors + of * each));
        (runs, if runs > 0.0 { errors / runs } else { 0.0 })
    }

    /// How often a judge is asked about one run where it answers at once, in the mean over tasks.
    fn judgements_of_run(&self) -> f64 {
        let judges = |task: &Task| {
            let checks = task.check.as_ref().map_or(self.verify.checks.as_slice(), std::slice::from_ref);
            checks.iter().filter(|check| matches!(check, Check::ModelJudge(_))).count()
        };
        #[expect(clippy::cast_precision_loss, reason = "a mean, for an estimate")]
        let mean = |sum: usize| sum as f64 / self.tasks.len().max(1) as f64;
        mean(self.tasks.iter().map(judges).sum())
    }

    /// The band of the whole campaign, if what is declared of its systems holds, or if they turn out not to repeat themselves.
    fn band(&self, measured: &MeasuredCampaign, label: &[LabelCost; 4], repeats_itself: bool) -> CostBand {
        let judged = self.judgements_of_run();
        let systems = measured.systems.iter().enumerate().map(|(number, runs)| {
            let (planned, errors) = self.planned(number);
            let repeats_itself = repeats_itself && !runs.is_revoked;
            SystemForecast {
                runs,
                clean: self.clean,
                planned,
                decoys: self.decoys,
                errors,
                repeats_itself,
                takes_back: self.repeats_itself && !repeats_itself,
                label,
                judged,
                elsewhere: measured.clean.calls + judged,
                figures: SystemFigures::from_runs(runs, self, planned, judged),
            }
        });
        let systems: Vec<SystemForecast<'_>> = systems.collect();
        let made = measured.made(judged);
        let mut random = ChaCha8Rng::from_seed(blake3::derive_key("aegis forecast 1", &[]));
        let played = (0..PLAYED).map(|_| {
            let mut draws = PlayDraws::new(&mut random);
            systems.iter().fold(made, |sum, system| sum.plus(system.play(&mut draws)))
        });
        let played: Vec<PlayedCost> = played.collect();
        let priced = !self.prices.is_empty();
        let at = |percent: usize| PlayedCost::at(&played, percent).foretold(&self.budget, priced);
        CostBand { made: made.foretold(&self.budget, priced), low: at(OUTSIDE), high: at(100 - OUTSIDE) }
    }
}

impl PlayedCost {
    /// Each amount that so many in a hundred plays stay below.
    fn at(played: &[Self], percent: usize) -> Self {
        let amount = |of: fn(&Self) -> f64| {
            let mut amounts: Vec<f64> = played.iter().map(of).collect();
            amounts.sort_by(f64::total_cmp);
            amounts.get(amounts.len() * percent / 100).copied().unwrap_or_default()
        };
        let (calls, input) = (amount(|play| play.calls), amount(|play| play.input));
        Self { calls, input, output: amount(|play| play.output), pico: amount(|play| play.pico) }
    }
}

impl SystemRuns {
    /// Tasks of which something is left to be made.
    fn left(&self) -> f64 {
        real(self.tasks.saturating_sub(self.whole()))
    }

    /// Tasks of which nothing is left to be made.
    fn whole(&self) -> u64 {
        self.chains.iter().map(|chain| u64::from(chain.whole)).sum()
    }
}

/// A plan of one injection is not narrowed.
pub(super) fn several(injections: u64) -> u64 {
    if injections > 1 { injections } else { 0 }
}
