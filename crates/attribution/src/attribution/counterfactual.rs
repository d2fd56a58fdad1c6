//! Counterfactual replay (`AgenTracer`, arXiv 2509.03312, section 3.2), with the control that it needs: a step is blamed
//! only if its correction does more than a fresh draw of everything after it does.
//!
//! For a step, both arms take the run up to it from the record. The *null* arm then delivers its recorded reply, the
//! *treated* arm the correction; what follows is live in both. What is executed next and what it amounts to, the room
//! [`crate::proof`] says; nothing here decides.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use super::{
    Corrections, CoupleFinding, Decisive, Doubt, LabelRule, StepFinding, TraceFinding, TraceJournal, TraceSettings,
    Watch, agents, doubt, order_name,
    search::{SearchExecutions, SearchSubject, SearchedArms},
};
use crate::{
    execution::{ExecutionError, Meter, SystemUnderTest},
    proof::{Found, Offer, RuleAnswer, Stands},
    replay::{AtFork, Cassette, answer_text},
    trajectory::{Executed, Step, StepIndex},
};

/// Version of the format of `trace.json`.
const FORMAT: u32 = 3;
/// Why a step is not cleared whose correction heals the run only as it is.
const MINDS_CHANGES: &str =
    "the correction passes as it is: the check, or the program, minds neutral changes such as blanks";

/// A trace of one failed run.
pub struct Trace {
    subject: SearchSubject,
}

impl Trace {
    /// A trace of the recorded run. `meter` counts what it asks of models, and what was asked for its corrections; `journal` holds
    /// what earlier starts of it executed.
    pub fn new(
        system: Arc<SystemUnderTest>,
        cassette: Arc<Cassette>,
        corrections: Corrections,
        settings: TraceSettings,
        meter: Arc<Meter>,
        journal: TraceJournal,
    ) -> Self {
        Self { subject: SearchSubject { system, cassette, corrections, settings, meter, journal } }
    }

    /// Searches, and tells what it found.
    ///
    /// # Errors
    /// [`ExecutionError`] when the program cannot be executed; what it comes to is no error.
    pub async fn run(&self, watch: &dyn Watch) -> Result<TraceFinding, ExecutionError> {
        let settings = &self.subject.settings;
        let mut executions = SearchExecutions::new(&self.subject, watch);
        let mut searched = executions.search().await?;
        let doubted = executions.try_as_they_are(&mut searched).await?;
        let ended = searched.search.ended();
        let test_agents = settings.agents > 0 && ended.is_none();
        let agents = if test_agents { agents::search(&mut executions).await? } else { Vec::new() };
        executions.spent.calls = self.subject.meter.spent().calls;
        let mut finding = TraceFinding {
            format: FORMAT,
            run: self.subject.cassette.recording().manifest.run.clone(),
            order: order_name(settings.order),
            prior: None,
            alpha: settings.terms.alpha,
            claims: searched.search.claims(),
            target: 1.0 / settings.terms.alpha,
            effect: settings.terms.effect,
            miss: settings.terms.miss,
            sanity: searched.search.counted(searched.arms.question.sanity),
            steps: self.steps(&searched, &doubted),
            couples: couples(&searched, self),
            agents,
            earliest_flip: None,
            commitment: None,
            flips: Vec::new(),
            coupled: Vec::new(),
            doubts: Vec::new(),
            not_found: None,
            ending: ended,
            unrunnable_check: executions.unrunnable,
            counts_as_equal: self.subject.system.reference.words(),
            other_tool_results: executions.other_tool_results,
            spent: executions.spent,
            out_of_budget: executions.out_of_budget,
        };
        conclude(&mut finding, &searched, &searched.search.found(), self.subject.cassette.dir());
        // A bound that ended it may be raised; then it goes on.
        if !finding.out_of_budget {
            self.subject.journal.finish().map_err(ExecutionError::Journal)?;
        }
        Ok(finding)
    }

    /// `doubted`: places of steps whose corrections pass without neutral changes alone.
    fn steps(&self, searched: &SearchedArms, doubted: &[usize]) -> Vec<StepFinding> {
        let mut findings = self.untested();
        for (place, finding) in findings.iter_mut().enumerate() {
            finding.conclude(searched.search.stands(place), searched.search.executed(place));
            if doubted.contains(&place) {
                finding.note = Some(MINDS_CHANGES.to_owned());
            }
            if let Some(Offer::Other { control, treated, .. }) = searched.arms.question.steps.get(place) {
                let runs = |arm: usize| searched.runs.get(arm).cloned().unwrap_or_default();
                (finding.control_runs, finding.treated_runs) = (runs(*control), runs(*treated));
            }
        }
        findings
    }

    fn untested(&self) -> Vec<StepFinding> {
        let steps = self.subject.cassette.recording().trajectory.steps.iter();
        let corrections = &self.subject.corrections;
        let untested = steps.map(|step| {
            let correction = corrections.by_step.get(&step.step);
            let hash = |body: &bytes::Bytes| blake3::hash(body).to_hex().to_string();
            let instead = correction.and_then(|correction| match &correction.at {
                AtFork::Instead(body) => Some(body),
                _ => None,
            });
            StepFinding {
                step: step.step,
                agent: step.attribution.agent.clone(),
                call: step.call,
                instance: step.attribution.instance,
                recorded: step.last_attempt().map(|attempt| hash(attempt.delivered())).unwrap_or_default(),
                corrected: instead.map(hash).unwrap_or_default(),
                said: answer_text(step),
                instead: instead.map(|body| text_of(step, body)),
                source: correction.map(|correction| correction.source),
                reason: correction.map(|correction| correction.reason.clone()).unwrap_or_default(),
                proposed_mode: correction.and_then(|correction| correction.mode),
                stands: Stands::Untouched,
                executed: None,
                effect: None,
                interval: None,
                control_runs: Vec::new(),
                treated_runs: Vec::new(),
                note: corrections.left_out.get(&step.step).cloned(),
            }
        });
        untested.collect()
    }
}

/// The text of a reply in a step's framing.
fn text_of(step: &Step, body: &bytes::Bytes) -> String {
    let mut corrected = step.clone();
    if let Some(last) = corrected.attempts.last_mut() {
        last.reply_delivered = Some(body.clone());
    }
    answer_text(&corrected)
}

fn couples(searched: &SearchedArms, trace: &Trace) -> Vec<CoupleFinding> {
    let steps = &trace.subject.cassette.recording().trajectory.steps;
    let number = |place: usize| steps.get(place).map(|step| step.step).unwrap_or_default();
    let couples = searched.arms.question.couples.iter().enumerate();
    let tried = couples.filter_map(|(index, couple)| {
        let executed = searched.search.executed_of_couple(index)?;
        let steps = [number(couple.steps.0), number(couple.steps.1)];
        (executed.treated.all() > 0).then_some(CoupleFinding { steps, executed })
    });
    tried.collect()
}

/// Writes down which steps are decisive, and what is not known.
fn conclude(finding: &mut TraceFinding, searched: &SearchedArms, found: &Found, run_dir: &Path) {
    let number: BTreeMap<usize, StepIndex> = finding.steps.iter().map(|step| step.step).enumerate().collect();
    let of = |place: usize, executed: Option<Executed>| -> Option<Decisive> {
        Some(finding.steps.get(place)?.decisive(executed?))
    };
    let decisive = |place: usize| of(place, searched.search.executed(place));
    let named = |answer: &RuleAnswer| if let RuleAnswer::Step(place) = answer { decisive(*place) } else { None };
    let (earliest, last) = (named(&found.earliest_flip), named(&found.commitment));
    let flips: Vec<Decisive> = found.flips.iter().filter_map(|place| decisive(*place)).collect();
    let coupled = found.coupled.map(|(first, second)| {
        let couples = &searched.arms.question.couples;
        let index = couples.iter().position(|couple| couple.steps == (first, second)).unwrap_or_default();
        let executed = searched.search.executed_of_couple(index);
        [first, second].into_iter().filter_map(|place| of(place, executed.clone())).collect()
    });
    let mut doubts = Vec::new();
    for (rule, answer) in [(LabelRule::EarliestFlip, &found.earliest_flip), (LabelRule::Commitment, &found.commitment)]
    {
        let step = |place: &usize| number.get(place).copied();
        match answer {
            RuleAnswer::Unsure { shown, open } => doubts.push(Doubt {
                rule,
                shown: shown.as_ref().and_then(step),
                steps: open.iter().filter_map(step).collect(),
                why: doubt::why(finding, open),
            }),
            RuleAnswer::Proposed(place) => doubts.push(Doubt {
                rule,
                shown: step(place),
                steps: step(place).into_iter().collect(),
                why: doubt::PROPOSED.to_owned(),
            }),
            RuleAnswer::Step(_) | RuleAnswer::NotSought | RuleAnswer::None => {}
        }
    }
    (finding.earliest_flip, finding.commitment, finding.flips) = (earliest, last, flips);
    (finding.coupled, finding.doubts) = (coupled.unwrap_or_default(), doubts);
    if finding.ending.is_some() || (finding.flips.is_empty() && finding.coupled.is_empty()) {
        finding.not_found = Some(doubt::nothing(finding, run_dir));
    }
}
