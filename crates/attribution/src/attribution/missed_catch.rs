//! Missed catch: which agents that spoke after the error of a failed run could have saved it.
//!
//! Of each such agent the steps behind the first labelled error are given other replies, one step at a time, and the run goes on from
//! there: a search of its own ([`super::Trace`]), with the same control as one for the decisive step.

use super::{Corrections, TraceFinding, TraceSettings};
use crate::{
    proof::{Stands, Terms},
    trajectory::{AgentName, CatchState, Executed, Label, MissedCatch, Trajectory},
};

/// An agent that spoke after the first error of a run.
#[derive(Debug, Clone)]
pub struct LaterAgent {
    /// Its name.
    pub agent: AgentName,
    /// Its instance, 0-based.
    pub instance: u32,
    /// What its later steps are corrected with, and nobody else's.
    pub corrections: Corrections,
}

impl LaterAgent {
    /// Those that can be tried, in the order of their first step behind the error. Whom the label names is not among them.
    pub fn all(label: &Label, run: &Trajectory, corrections: &Corrections) -> Vec<Self> {
        let Some(error) = label.errors.iter().map(|entry| entry.error.step).min() else { return Vec::new() };
        let mut agents: Vec<Self> = Vec::new();
        for step in run.steps.iter().filter(|step| step.step > error) {
            let (agent, instance) = (&step.attribution.agent, step.attribution.instance);
            let mut named = label.errors.iter().map(|entry| &entry.error);
            let is_named = named.any(|error| (&error.agent, error.instance) == (agent, instance));
            let Some(correction) = corrections.by_step.get(&step.step).filter(|_| !is_named) else { continue };
            if !agent.is_agent() {
                continue;
            }
            let place = agents.iter().position(|later| (&later.agent, later.instance) == (agent, instance));
            let place = place.unwrap_or_else(|| {
                agents.push(Self { agent: agent.clone(), instance, corrections: Corrections::default() });
                agents.len() - 1
            });
            if let Some(later) = agents.get_mut(place) {
                later.corrections.by_step.insert(step.step, correction.clone());
            }
        }
        agents
    }

    /// Whether all its corrections come from this source, by its name.
    pub fn is_corrected_by(&self, source: &str) -> bool {
        self.corrections.by_step.values().all(|correction| correction.source.name() == source)
    }

    /// How many of its steps are tried.
    pub fn claims(&self) -> usize {
        self.corrections.by_step.len()
    }

    /// How its steps are searched: the first that is shown is enough. All steps of all later agents, `claims` of them, share the two
    /// kinds of error of the run, as those of one search do: an agent gets what falls to its steps.
    pub fn settings(&self, settings: &TraceSettings, claims: usize) -> TraceSettings {
        let salt = format!("{} {} {}", settings.salt, self.agent, self.instance);
        #[expect(clippy::cast_precision_loss, reason = "a share of the steps of a run")]
        let share = self.claims() as f64 / claims.max(1) as f64;
        let Terms { alpha, miss, .. } = settings.terms;
        let terms = Terms { alpha: alpha * share, miss: miss * share, ..settings.terms };
        TraceSettings { terms, earliest: false, last: false, coupled: false, agents: 0, salt, ..settings.clone() }
    }

    /// What a search of its steps shows.
    pub fn shown_by(&self, finding: &TraceFinding) -> Option<MissedCatch> {
        let tried: Vec<_> =
            finding.steps.iter().filter(|step| self.corrections.by_step.contains_key(&step.step)).collect();
        let saves = finding.flips.first().and_then(|flip| tried.iter().find(|step| step.step == flip.step));
        let is_cleared = finding.ending.is_none() && tried.iter().all(|step| step.stands.is_cleared());
        let (step, state) = match saves {
            Some(step) => (*step, CatchState::Missed),
            None if is_cleared => (*tried.first()?, CatchState::Impossible),
            None => {
                let open = tried.iter().find(|step| step.stands != Stands::Untouched);
                (*open.or(tried.first())?, CatchState::Unknown)
            }
        };
        Some(MissedCatch {
            agent: self.agent.clone(),
            instance: self.instance,
            step: step.step,
            call: step.call,
            state,
            source: self.corrections.by_step.get(&step.step)?.source.name().to_owned(),
            executed: step.executed.clone().unwrap_or_else(Executed::default),
        })
    }
}
