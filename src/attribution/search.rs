//! A search under way: the failed run it is about, what is known of each step so far, and the one way to learn more,
//! which is to execute the program again.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Arm, Bench, Correction, Corrections, Doubt, Share, Spent, StepFinding, TraceSettings, TrialError, Watch,
    budget::Metered, difference, trial::Sample,
};
use crate::{
    launch::Ending,
    proxy::upstream::Upstream,
    recording,
    replay::{AtFork, Cassette, Fit, ForkPoint, Prefixed},
    trajectory::{CloseCause, RunId, StepIndex, Verdict},
};

/// A failed run that is searched.
pub(super) struct Subject {
    pub(super) bench: Arc<Bench>,
    pub(super) cassette: Arc<Cassette>,
    pub(super) corrections: Corrections,
    pub(super) settings: TraceSettings,
    pub(super) metered: Arc<Metered>,
}

/// One of the two arms of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Null,
    Treated,
}

/// A search under way.
pub(super) struct Search<'a> {
    subject: &'a Subject,
    watch: &'a dyn Watch,
    pub(super) findings: BTreeMap<StepIndex, StepFinding>,
    pub(super) doubts: Vec<Doubt>,
    pub(super) other_tool_results: u64,
    pub(super) spent: Spent,
    pub(super) out_of_budget: bool,
}

impl Subject {
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

impl<'a> Search<'a> {
    /// A search of which nothing but the steps is known.
    pub(super) fn new(subject: &'a Subject, watch: &'a dyn Watch, findings: BTreeMap<StepIndex, StepFinding>) -> Self {
        let (doubts, spent) = (Vec::new(), Spent::default());
        Self { subject, watch, findings, doubts, other_tool_results: 0, spent, out_of_budget: false }
    }

    /// The steps that have a correction, in order.
    pub(super) fn candidates(&self) -> Vec<StepIndex> {
        self.subject.corrections.by_step.keys().copied().collect()
    }

    /// The correction of a step.
    pub(super) fn correction(&self, step: StepIndex) -> Option<&Correction> {
        self.subject.corrections.by_step.get(&step)
    }

    /// Tests a step; says whether it is to blame. The null arm comes first: where chance alone heals the run, the
    /// correction need not be tried.
    pub(super) async fn test(&mut self, step: StepIndex) -> Result<bool, TrialError> {
        self.fill(step, Side::Null).await?;
        self.fill(step, Side::Treated).await?;
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

    /// What one arm of a step came to so far.
    pub(super) fn share(&self, step: StepIndex, side: Side) -> Share {
        self.findings.get(&step).map(|finding| side.of(finding).share).unwrap_or_default()
    }

    /// Whether an arm of a step may be sampled once more.
    pub(super) fn has_room(&self, step: StepIndex, side: Side) -> bool {
        self.findings.get(&step).is_some_and(|finding| side.of(finding).tried() < self.subject.settings.samples)
    }

    /// Samples an arm of a step once, or as often as executions may be made at once; says whether it could.
    pub(super) async fn look(&mut self, step: StepIndex, side: Side) -> Result<bool, TrialError> {
        let samples = self.subject.settings.samples;
        let tried = self.findings.get(&step).map_or(samples, |finding| side.of(finding).tried());
        let Some(batch) = self.may_execute(samples.saturating_sub(tried)).filter(|_| tried < samples) else {
            return Ok(false);
        };
        self.batch(step, side, tried..tried + batch).await?;
        if let Some(finding) = self.findings.get_mut(&step) {
            finding.note = Some("looked at on the way".to_owned());
        }
        Ok(true)
    }

    /// Samples an arm to its end, to the point where nothing that is left changes the verdict, or to the end of the
    /// budget.
    async fn fill(&mut self, step: StepIndex, side: Side) -> Result<(), TrialError> {
        let samples = self.subject.settings.samples;
        let open = |finding: &StepFinding| side.of(finding).tried() < samples && is_open(finding, samples);
        while self.findings.get(&step).is_some_and(open) {
            if !self.look(step, side).await? {
                break;
            }
        }
        Ok(())
    }

    /// Executes some samples at once.
    async fn batch(&mut self, step: StepIndex, side: Side, numbers: std::ops::Range<u32>) -> Result<(), TrialError> {
        let at = match side {
            Side::Null => AtFork::Delivered,
            Side::Treated => self.correction(step).map_or(AtFork::Delivered, |correction| correction.at.clone()),
        };
        let subject = self.subject;
        let executions = numbers.map(|number| {
            let identity = format!("{} {step} {side:?} {number}", subject.settings.salt);
            let prefixed = subject.prefix(ForkPoint { step, at: at.clone() })?;
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
        let subject = self.subject;
        let executions = runs.into_iter().map(|(run, prefixed)| subject.sample(run, prefixed));
        let mut samples = Vec::new();
        for executed in join_all(executions.collect()).await {
            let (sample, tokens, refused) = executed?;
            self.spent.runs += 1;
            let other = sample.report.served.iter().any(|served| served.fit == Fit::ToolResults);
            self.other_tool_results += u64::from(other);
            self.spent.live_tokens += tokens;
            self.spent.recorded_tokens += sample.report.saved.input + sample.report.saved.output;
            if refused && self.subject.metered.has_refused() {
                self.out_of_budget = true;
            }
            samples.push((sample, refused));
        }
        Ok(samples)
    }

    /// Whether another batch of executions may be made; how many at most, of these.
    pub(super) fn may_execute(&mut self, wanted: u32) -> Option<u32> {
        let settings = &self.subject.settings;
        let left = settings.budget.runs.map_or(u64::MAX, |runs| runs.saturating_sub(self.spent.runs));
        if left == 0 || self.subject.metered.is_spent() || self.out_of_budget {
            self.out_of_budget = true;
            return None;
        }
        Some(settings.jobs.min(wanted).min(u32::try_from(left).unwrap_or(u32::MAX)).max(1))
    }

    /// What is searched.
    pub(super) fn subject(&self) -> &'a Subject {
        self.subject
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

/// Whether what is left to be sampled could still change the verdict on a step: it could still be blamed if all went
/// its way, and not be blamed if all went against it.
fn is_open(finding: &StepFinding, samples: u32) -> bool {
    let ended = |arm: &Arm, succeed: bool| {
        let left = samples.saturating_sub(arm.tried());
        let Share { successes, samples } = arm.share;
        Share { successes: successes + if succeed { left } else { 0 }, samples: samples + left }
    };
    let blamed =
        |treated: Share, null: Share| treated.samples > 0 && null.samples > 0 && difference(treated, null).1.low > 0.0;
    let (treated, null) = (&finding.treated, &finding.null);
    let certain = blamed(ended(treated, false), ended(null, true)) && blamed(treated.share, null.share);
    !certain && blamed(ended(treated, true), ended(null, false))
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
