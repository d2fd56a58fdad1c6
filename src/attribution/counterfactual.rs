//! Counterfactual replay (`AgenTracer`, arXiv 2509.03312, section 3.2), with the control that it needs: a step is blamed
//! only if its correction does more than a fresh draw of everything after it does.
//!
//! For a step, both arms take the run up to it from the record. The *null* arm then delivers its recorded reply, the
//! *treated* arm the correction; what follows is live in both. The effect is the difference of the shares that
//! succeed, with Newcombe's interval; a step is blamed when the interval lies above zero. An arm ends early when no
//! outcome of the rest could still blame the step, which can only make blame rarer.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Arm, Bench, Corrections, Finding, StepFinding, TraceSettings, TrialError, Watch, agents,
    budget::Metered,
    false_blame, order,
    search::{Search, Subject},
};
use crate::{
    replay::{AtFork, Cassette},
    trajectory::StepIndex,
};

/// A trace of one failed run.
pub struct Trace {
    subject: Subject,
}

impl Trace {
    /// A trace of the recorded run.
    pub fn new(bench: Arc<Bench>, cassette: Arc<Cassette>, corrections: Corrections, settings: TraceSettings) -> Self {
        let metered = Arc::new(Metered::new(bench.live(), settings.budget));
        Self { subject: Subject { bench, cassette, corrections, settings, metered } }
    }

    /// Searches, and tells what it found.
    ///
    /// # Errors
    /// [`TrialError`] when the program cannot be executed; what it comes to is no error.
    pub async fn run(&self, watch: &dyn Watch) -> Result<Finding, TrialError> {
        let settings = &self.subject.settings;
        let mut search = Search::new(&self.subject, watch, self.untested());
        order::search(&mut search, settings.order, settings.first).await?;
        let agents = if settings.agents { agents::search(&mut search).await? } else { Vec::new() };
        search.spent.calls = self.subject.metered.calls();
        let mut finding = Finding {
            run: self.subject.cassette.recording().manifest.run.clone(),
            order: settings.order.name(),
            samples: settings.samples,
            false_blame: false_blame(settings.samples),
            steps: search.findings.into_values().collect(),
            agents,
            earliest_flip: None,
            commitment: None,
            doubts: search.doubts,
            other_tool_results: search.other_tool_results,
            spent: search.spent,
            out_of_budget: search.out_of_budget,
        };
        finding.conclude();
        Ok(finding)
    }

    fn untested(&self) -> BTreeMap<StepIndex, StepFinding> {
        let steps = self.subject.cassette.recording().trajectory.steps.iter();
        let untested = steps.map(|step| {
            let correction = self.subject.corrections.by_step.get(&step.step);
            let note = self.subject.corrections.left_out.get(&step.step).cloned();
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
                proposed_mode: correction.and_then(|correction| correction.mode),
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
}
