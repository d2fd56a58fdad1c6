//! Counterfactual replay (`AgenTracer`, arXiv 2509.03312, section 3.2), with the control that it needs: a step is blamed
//! only if its correction does more than a fresh draw of everything after it does.
//!
//! For a step, both arms take the run up to it from the record. The *null* arm then delivers its recorded reply, the
//! *treated* arm the correction; what follows is live in both. The effect is the difference of the shares that
//! succeed, with Newcombe's interval; a step is blamed when the interval lies above zero. An arm ends early when no
//! outcome of the rest could still blame the step, which can only make blame rarer.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Arm, Bench, Budget, Correction, Corrections, Finding, Share, Spent, StepFinding, TrialError, agents,
    budget::Metered,
    difference, false_blame,
    order::{self, Order},
    trial::Sample,
};
use crate::{
    launch::Ending,
    proxy::upstream::Upstream,
    recording,
    replay::{AtFork, Cassette, ForkPoint, Prefixed},
    trajectory::{CloseCause, RunId, StepIndex, Verdict},
};

/// How a trace is made.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// Samples of each arm, at most; 2 are the fewest that can blame a step.
    pub samples: u32,
    /// Which step is tested next.
    pub order: Order,
    /// Whether the search ends when the earliest step with an effect is known.
    pub first: bool,
    /// What it may spend.
    pub budget: Budget,
    /// Executions at once.
    pub jobs: u32,
    /// Whether results of tools may differ from the record.
    pub any_tool_results: bool,
    /// Whether each agent as a whole is tested too: its replies all replaced, or emptied.
    pub agents: bool,
    /// What the ids of its runs are made from.
    pub salt: String,
}

/// Hears what a trace finds.
pub trait Watch: Sync {
    /// A step was tested.
    fn tested(&self, finding: &StepFinding);
}

/// A trace of one failed run.
pub struct Trace {
    bench: Arc<Bench>,
    pub(super) cassette: Arc<Cassette>,
    pub(super) corrections: Corrections,
    pub(super) settings: TraceSettings,
    metered: Arc<Metered>,
}

/// One of the two arms of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Null,
    Treated,
}

/// A search under way.
pub(super) struct Search<'a> {
    trace: &'a Trace,
    watch: &'a dyn Watch,
    findings: BTreeMap<StepIndex, StepFinding>,
    pub(super) spent: Spent,
    pub(super) out_of_budget: bool,
}

impl Trace {
    /// A trace of the recorded run.
    pub fn new(bench: Arc<Bench>, cassette: Arc<Cassette>, corrections: Corrections, settings: TraceSettings) -> Self {
        let metered = Arc::new(Metered::new(bench.live(), settings.budget));
        Self { bench, cassette, corrections, settings, metered }
    }

    /// Searches, and tells what it found.
    ///
    /// # Errors
    /// [`TrialError`] when the program cannot be executed; what it comes to is no error.
    pub async fn run(&self, watch: &dyn Watch) -> Result<Finding, TrialError> {
        let mut search =
            Search { trace: self, watch, findings: self.untested(), spent: Spent::default(), out_of_budget: false };
        order::search(&mut search, self.settings.order, self.settings.first).await?;
        let agents = if self.settings.agents { agents::search(&mut search).await? } else { Vec::new() };
        search.spent.calls = self.metered.calls();
        let mut finding = Finding {
            run: self.cassette.recording().manifest.run.clone(),
            order: self.settings.order.name(),
            samples: self.settings.samples,
            false_blame: false_blame(self.settings.samples),
            steps: search.findings.into_values().collect(),
            agents,
            earliest_flip: None,
            commitment: None,
            spent: search.spent,
            out_of_budget: search.out_of_budget,
        };
        finding.conclude();
        Ok(finding)
    }

    fn untested(&self) -> BTreeMap<StepIndex, StepFinding> {
        let steps = self.cassette.recording().trajectory.steps.iter();
        let untested = steps.map(|step| {
            let correction = self.corrections.by_step.get(&step.step);
            let note = self.corrections.left_out.get(&step.step).cloned();
            let hash = |body: &bytes::Bytes| blake3::hash(body).to_hex().to_string();
            let corrected = correction.map(|correction| match &correction.at {
                AtFork::Instead(body) => hash(body),
                _ => String::new(),
            });
            let finding = StepFinding {
                instance: step.attribution.instance,
                recorded: step.last_attempt().map(|attempt| hash(attempt.delivered())).unwrap_or_default(),
                corrected: corrected.unwrap_or_default(),
                step: step.step,
                agent: step.attribution.agent.clone(),
                call: step.call,
                source: correction.map(|correction| correction.source),
                reason: correction.map(|correction| correction.reason.clone()).unwrap_or_default(),
                null: Arm::default(),
                treated: Arm::default(),
                effect: None,
                interval: None,
                blamed: false,
                note: note.or_else(|| Some("not tested".to_owned())),
            };
            (step.step, finding)
        });
        untested.collect()
    }

    /// The record up to a fork point, and the live upstream under the budget.
    pub(super) fn prefix(&self, fork: ForkPoint) -> Result<Prefixed, TrialError> {
        let live: Arc<dyn Upstream> = Arc::clone(&self.metered) as Arc<dyn Upstream>;
        let prefixed = Prefixed::new(Arc::clone(&self.cassette), fork, live)?;
        Ok(if self.settings.any_tool_results { prefixed.with_any_tool_results() } else { prefixed })
    }

    /// One execution with the record up to a fork point.
    async fn sample(&self, run: RunId, prefixed: Prefixed) -> Result<(Sample, u64, bool), TrialError> {
        let sample = self.bench.sample(&run, prefixed, None).await?;
        if sample.tried.ending == Ending::Interrupted {
            return Err(TrialError::Interrupted);
        }
        let steps = recording::read(&sample.tried.dir)?.trajectory.steps;
        let live = steps.iter().filter(|step| sample.report.live.contains(&step.step));
        let usage = live.flat_map(|step| &step.attempts).filter_map(|attempt| attempt.usage);
        let tokens = usage.map(|usage| usage.input + usage.output).sum();
        let refused = steps.iter().flat_map(|step| &step.attempts).any(|a| a.cause == Some(CloseCause::Refused));
        Ok((sample, tokens, refused))
    }
}

impl Search<'_> {
    /// The steps that have a correction, in order.
    pub(super) fn candidates(&self) -> Vec<StepIndex> {
        self.trace.corrections.by_step.keys().copied().collect()
    }

    /// The correction of a step.
    pub(super) fn correction(&self, step: StepIndex) -> Option<&Correction> {
        self.trace.corrections.by_step.get(&step)
    }

    /// Samples the null arm of a step; says whether a correction could still be shown to do more.
    pub(super) async fn null_fails(&mut self, step: StepIndex) -> Result<bool, TrialError> {
        self.fill(step, Side::Null).await?;
        let samples = self.trace.settings.samples;
        Ok(self.findings.get(&step).is_some_and(|finding| is_open(finding, samples)))
    }

    /// Tests a step; says whether it is to blame. The null arm comes first: where chance alone heals the run, the
    /// correction need not be tried.
    pub(super) async fn test(&mut self, step: StepIndex) -> Result<bool, TrialError> {
        if self.null_fails(step).await? {
            self.fill(step, Side::Treated).await?;
        }
        let Some(finding) = self.findings.get_mut(&step) else { return Ok(false) };
        finding.conclude();
        finding.note = match (finding.null.share, finding.treated.share) {
            _ if self.out_of_budget && !finding.blamed => Some("the budget ended here".to_owned()),
            (null, treated) if null.samples + treated.samples == 0 => Some("no execution proves anything".to_owned()),
            (null, treated) if treated.samples == 0 && null.successes > 0 => Some("chance alone heals it".to_owned()),
            _ => None,
        };
        self.watch.tested(finding);
        Ok(finding.blamed)
    }

    /// What is known of a step.
    pub(super) fn known(&self, step: StepIndex) -> Option<&StepFinding> {
        self.findings.get(&step)
    }

    /// Samples an arm to its end, to the point where it cannot matter any more, or to the end of the budget.
    async fn fill(&mut self, step: StepIndex, side: Side) -> Result<(), TrialError> {
        loop {
            let samples = self.trace.settings.samples;
            let Some(finding) = self.findings.get(&step) else { return Ok(()) };
            let tried = side.of(finding).tried();
            if tried >= samples || !is_open(finding, samples) {
                return Ok(());
            }
            let Some(batch) = self.may_execute(samples - tried) else { return Ok(()) };
            self.batch(step, side, tried..tried + batch).await?;
        }
    }

    /// Executes some samples at once.
    async fn batch(&mut self, step: StepIndex, side: Side, numbers: std::ops::Range<u32>) -> Result<(), TrialError> {
        let at = match side {
            Side::Null => AtFork::Delivered,
            Side::Treated => self.correction(step).map_or(AtFork::Delivered, |correction| correction.at.clone()),
        };
        let trace = self.trace;
        let executions = numbers.map(|number| {
            let identity = format!("{} {step} {side:?} {number}", trace.settings.salt);
            let prefixed = trace.prefix(ForkPoint { step, at: at.clone() })?;
            Ok((RunId::hashed("t", identity.as_bytes()), prefixed))
        });
        let executions = executions.collect::<Result<Vec<_>, TrialError>>()?;
        for (sample, refused) in self.execute(executions).await? {
            let Some(finding) = self.findings.get_mut(&step) else { continue };
            side.of_mut(finding).take(&sample, refused);
        }
        Ok(())
    }

    /// Executes the program at once for each of these, and counts what it cost. Says of each whether the budget cut
    /// it short.
    pub(super) async fn execute(&mut self, runs: Vec<(RunId, Prefixed)>) -> Result<Vec<(Sample, bool)>, TrialError> {
        let trace = self.trace;
        let executions = runs.into_iter().map(|(run, prefixed)| trace.sample(run, prefixed));
        let mut samples = Vec::new();
        for executed in join_all(executions.collect()).await {
            let (sample, tokens, refused) = executed?;
            self.spent.runs += 1;
            self.spent.live_tokens += tokens;
            self.spent.recorded_tokens += sample.report.saved.input + sample.report.saved.output;
            if refused && self.trace.metered.has_refused() {
                self.out_of_budget = true;
            }
            samples.push((sample, refused));
        }
        Ok(samples)
    }

    /// Whether another batch of executions may be made; how many at most, of these.
    pub(super) fn may_execute(&mut self, wanted: u32) -> Option<u32> {
        let settings = &self.trace.settings;
        let left = settings.budget.runs.map_or(u64::MAX, |runs| runs.saturating_sub(self.spent.runs));
        if left == 0 || self.trace.metered.is_spent() || self.out_of_budget {
            self.out_of_budget = true;
            return None;
        }
        Some(settings.jobs.min(wanted).min(u32::try_from(left).unwrap_or(u32::MAX)).max(1))
    }

    /// The trace that this is the search of.
    pub(super) fn trace(&self) -> &Trace {
        self.trace
    }
}

/// Runs futures side by side on this task, and gives what they come to in their order.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// Whether the step could still be blamed if all that is left went its way: no success without the correction, none
/// but successes with it.
fn is_open(finding: &StepFinding, samples: u32) -> bool {
    let best = |arm: &Arm, success: bool| {
        let left = samples.saturating_sub(arm.tried());
        let Share { successes, samples } = arm.share;
        Share { successes: successes + if success { left } else { 0 }, samples: samples + left }
    };
    let (treated, null) = (best(&finding.treated, true), best(&finding.null, false));
    treated.samples > 0 && null.samples > 0 && difference(treated, null).1.low > 0.0
}

impl Side {
    fn of(self, finding: &StepFinding) -> &Arm {
        match self {
            Side::Null => &finding.null,
            Side::Treated => &finding.treated,
        }
    }

    fn of_mut(self, finding: &mut StepFinding) -> &mut Arm {
        match self {
            Side::Null => &mut finding.null,
            Side::Treated => &mut finding.treated,
        }
    }
}

impl Arm {
    /// Executions so far.
    pub(super) fn tried(&self) -> u32 {
        self.share.samples + self.void
    }

    /// Counts an execution. One that left its prefix, or that the budget ended, proves nothing.
    pub(super) fn take(&mut self, sample: &Sample, refused: bool) {
        self.runs.push(sample.tried.run.clone());
        match sample.tried.outcome.verdict {
            _ if refused || sample.report.diverged.is_some() => self.void += 1,
            Verdict::Unknown => self.void += 1,
            verdict => {
                self.share.samples += 1;
                self.share.successes += u32::from(verdict == Verdict::Success);
            }
        }
    }
}
