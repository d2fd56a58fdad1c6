//! A failed run tried again from the blamed step with a note to the blamed agent, beside what else could have helped.
//!
//! A second try succeeds now and then whatever is said, and any note makes an agent look twice. So a round always executes four
//! arms, in an order that is drawn for each sample: the step drawn anew, the same note at another step, a note that says nothing in particular at the
//! step, and the critique at the step. What the critique adds is what it does more than the best of the others. Nothing here
//! is a label: who erred is not shown by what repairs it.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;
use serde::Serialize;

use super::{
    EndedExecution, Watch,
    critique::{Critique, generic},
    retried::{RetryArm, RetryExecution, RetryRound},
};
use crate::{
    budget::Price,
    execution::{
        ExecutedRun, ExecutionArm, ExecutionError, ForkedReplies, Meter, ReplySource, SystemUnderTest, unrunnable,
    },
    plan::{self, Plan},
    proof::ProofSample,
    recording::RunOrigin,
    replay::{AtFork, Cassette, ForkPoint},
    trajectory::{RunId, Step, StepIndex, Void},
};

/// What a retry has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RetrySpent {
    /// Executions of the program.
    pub runs: u64,
    /// Live model calls, a judge's included.
    pub calls: u64,
    /// Tokens of live calls, as the upstream counted them.
    pub tokens: u64,
    /// Money at the prices given.
    pub money: f64,
    /// Tokens that came from the record instead.
    pub recorded_tokens: u64,
}

/// How a retry is made.
#[derive(Debug, Clone)]
pub struct RetrySettings {
    /// Executions of each arm in a round.
    pub samples: u32,
    /// Executions at once.
    pub jobs: u32,
    /// What other steps are drawn from.
    pub seed: u64,
    /// What the ids of its runs are made from: another for each retry of the same run.
    pub salt: String,
    /// Most executions of the program.
    pub runs: Option<u64>,
    /// What tokens cost.
    pub price: Price,
}

/// A failed run that is tried again.
pub struct RetrySubject {
    /// Where its program is executed again.
    pub system: Arc<SystemUnderTest>,
    /// The run.
    pub cassette: Arc<Cassette>,
    /// How.
    pub settings: RetrySettings,
    /// What its calls are paid from.
    pub meter: Arc<Meter>,
}

/// One execution to be made.
struct PlannedRetry {
    arm: RetryArm,
    step: StepIndex,
    plan: Option<Arc<Plan>>,
    run: RunId,
}

impl RetrySubject {
    /// Executes a round.
    ///
    /// # Errors
    /// [`ExecutionError`] when the program cannot be executed; what it comes to is no error.
    pub async fn round(
        &self,
        number: u32,
        critique: Critique,
        spent: &mut RetrySpent,
        watch: &dyn Watch,
    ) -> Result<RetryRound, ExecutionError> {
        let planned = self.planned(number, &critique);
        let mut round = RetryRound {
            round: number,
            run: self.cassette.run().clone(),
            critique,
            arms: Vec::new(),
            gain: None,
            executions: Vec::new(),
            out_of_budget: false,
            unrunnable_check: None,
        };
        for batch in planned.chunks(self.settings.jobs.max(1) as usize) {
            if self.is_spent(batch.len() as u64, spent) {
                round.out_of_budget = true;
                break;
            }
            let executed = join_all(batch.iter().map(|one| self.execute(one))).await;
            for (one, executed) in batch.iter().zip(executed) {
                let executed = executed?;
                let (execution, usage) = (one.came_to(&executed), executed.live_usage());
                spent.runs += 1;
                spent.tokens += usage.input + usage.output;
                spent.money += self.settings.price.cost(usage);
                spent.recorded_tokens += executed.recorded_tokens();
                round.out_of_budget |= execution.sample == ProofSample::Void(Void::Budget);
                round.unrunnable_check = unrunnable(&executed.outcome).or(round.unrunnable_check.take());
                let (step, run, sample) = (execution.step, &execution.run, execution.sample);
                watch.executed(&EndedExecution { number: spent.runs, step, arm: one.arm.name(), run, sample });
                round.executions.push(execution);
            }
            if round.out_of_budget || round.unrunnable_check.is_some() {
                break;
            }
        }
        spent.calls = self.meter.spent().calls;
        round.conclude(planned.len() / self.settings.samples.max(1) as usize);
        Ok(round)
    }

    /// Whether so many more executions may not be made.
    fn is_spent(&self, more: u64, spent: &RetrySpent) -> bool {
        self.settings.runs.is_some_and(|runs| spent.runs + more > runs) || self.meter.is_spent()
    }

    /// All executions of a round: each sample executes every arm once, so that a bad hour of the upstream falls on none, and in
    /// an order of its own, so that what repeats itself every few executions lines up with none.
    fn planned(&self, round: u32, critique: &Critique) -> Vec<PlannedRetry> {
        let steps = &self.cassette.recording().trajectory.steps;
        let Some(blamed) = steps.iter().find(|step| step.step == critique.step) else { return Vec::new() };
        let elsewhere = elsewhere(steps, critique);
        let plan = |step: &Step, text: &str| plan::note(step, text).ok().map(Arc::new);
        let mut planned = Vec::new();
        for sample in 0..self.settings.samples {
            let first = planned.len();
            for arm in RetryArm::ALL {
                let (step, plan) = match arm {
                    RetryArm::Resample => (Some(blamed), None),
                    RetryArm::CheckWork => (Some(blamed), plan(blamed, &generic())),
                    RetryArm::Critique => (Some(blamed), plan(blamed, &critique.note)),
                    RetryArm::Elsewhere => {
                        let step = self.drawn(&elsewhere, round, sample);
                        (step, step.and_then(|step| plan(step, &critique.note)))
                    }
                };
                // A note that cannot be given makes no arm.
                if let Some(step) = step.filter(|_| plan.is_some() || arm == RetryArm::Resample) {
                    let of = format!("{} {} {round} {} {sample}", self.settings.salt, self.cassette.run(), arm.name());
                    planned.push(PlannedRetry { arm, step: step.step, plan, run: RunId::hashed("f", of.as_bytes()) });
                }
            }
            // The ids are hashes: no order that anybody chose.
            planned.get_mut(first..).unwrap_or_default().sort_by(|one, other| one.run.as_str().cmp(other.run.as_str()));
        }
        planned
    }

    /// One of several steps, by seed: another for each sample, as long as there are others.
    fn drawn<'a>(&self, steps: &[&'a Step], round: u32, sample: u32) -> Option<&'a Step> {
        let of = format!("{} {} {round}", self.settings.seed, self.cassette.run());
        let hash = blake3::hash(of.as_bytes());
        let first = hash.as_bytes().iter().take(7).fold(0_usize, |number, byte| (number << 8) | usize::from(*byte));
        steps.get((first + sample as usize) % steps.len().max(1)).copied()
    }

    async fn execute(&self, planned: &PlannedRetry) -> Result<ExecutedRun, ExecutionError> {
        let fork = ForkedReplies {
            cassette: Arc::clone(&self.cassette),
            at: ForkPoint { step: planned.step, at: AtFork::Live },
            says: None,
        };
        // It answers feedback, and earns no label.
        let origin = Some(RunOrigin::Feedback);
        let arm = ExecutionArm {
            plan: planned.plan.clone(),
            origin,
            replies: ReplySource::Forked(fork),
            ..ExecutionArm::default()
        };
        self.system.execute(&planned.run, arm, &self.meter).await?.uninterrupted()
    }
}

impl PlannedRetry {
    fn came_to(&self, executed: &ExecutedRun) -> RetryExecution {
        let mut sample = executed.sample();
        // A note that never came says nothing of what it does.
        let came = |step: &Step| step.injected.iter().any(|note| note.delivered);
        if self.plan.is_some() && sample.verdict().is_some() && !executed.recording.trajectory.steps.iter().any(came) {
            sample = ProofSample::Void(Void::Diverged);
        }
        let (run, dir) = (executed.run.clone(), executed.dir.clone());
        RetryExecution { arm: self.arm, step: self.step, run, dir, sample }
    }
}

/// The other steps that could be given the note.
fn elsewhere<'a>(steps: &'a [Step], critique: &Critique) -> Vec<&'a Step> {
    steps.iter().filter(|step| step.step != critique.step && plan::note(step, &critique.note).is_ok()).collect()
}

/// What a round costs at most: executions, and live calls where each execution makes as many as the record.
pub fn foretell_round(cassette: &Cassette, critique: &Critique, samples: u32) -> BTreeMap<RetryArm, (u64, u64)> {
    let steps = &cassette.recording().trajectory.steps;
    let live = |at: &Step| super::arms::live_calls(cassette, at, true).count() as u64;
    let samples = u64::from(samples);
    let mut foretold = BTreeMap::new();
    if let Some(blamed) = steps.iter().find(|step| step.step == critique.step) {
        for arm in [RetryArm::Resample, RetryArm::CheckWork, RetryArm::Critique] {
            foretold.insert(arm, (samples, samples * live(blamed)));
        }
    }
    if let Some(most) = elsewhere(steps, critique).into_iter().map(live).max() {
        foretold.insert(RetryArm::Elsewhere, (samples, samples * most));
    }
    foretold
}
