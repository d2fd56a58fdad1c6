//! A recorded run as identity hears it: who spoke, by the record or by the late pass, what was asked and answered.

use crate::{
    identity::{LateStep, ObservedRun, ObservedStep},
    recording::Recording,
    surface::{self, door},
    trajectory::{AgentName, Attribution, Step},
};

/// A run, with what the late pass says of each step.
#[derive(Debug)]
pub(in crate::cli) struct LateRun<'a> {
    pub(super) recording: &'a Recording,
    pub(in crate::cli) steps: ObservedRun<'a>,
}

impl<'a> LateRun<'a> {
    pub(in crate::cli) fn from_recording(recording: &'a Recording) -> Self {
        let mut heard = ObservedRun::default();
        for step in &recording.trajectory.steps {
            heard.steps.push(observe(recording, step));
            heard.recorded.push(&step.attribution);
        }
        Self { recording, steps: heard }
    }

    /// Steps with what the late pass says of them, where it differs.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&'a Step, Option<&'a LateStep>)> {
        self.recording.trajectory.steps.iter().map(|step| (step, late_step(self.recording, step)))
    }

    /// What named the run of a step.
    pub(super) fn run_source(&self, step: &Step) -> &'a str {
        let detail = self.recording.exchanges.iter().find(|detail| detail.step == step.step);
        detail.map(|detail| detail.run_source.as_str()).unwrap_or_default()
    }
}

fn late_step<'a>(recording: &'a Recording, step: &Step) -> Option<&'a LateStep> {
    recording.late.iter().find(|late| late.step == step.step)
}

/// The agent of a step, by the late pass where it has a word.
pub(super) fn agent<'a>(step: &'a Step, late: Option<&'a LateStep>) -> &'a AgentName {
    late.and_then(|late| late.agent.as_ref()).unwrap_or(&step.attribution.agent)
}

/// Whether the wire cannot tell the agent, by the late pass where it has a word.
pub(super) fn ambiguous(told: &Attribution, late: Option<&LateStep>) -> bool {
    late.and_then(|late| late.ambiguous).unwrap_or(told.ambiguous)
}

fn observe<'a>(recording: &'a Recording, step: &'a Step) -> ObservedStep<'a> {
    let path = step.path.split('?').next().unwrap_or_default();
    let surface = surface::for_path(&step.method, path);
    let reply = step.last_attempt().zip(surface).and_then(|(attempt, surface)| {
        let body = attempt.delivered();
        door::reply(surface, body, attempt.streamed).ok()
    });
    ObservedStep {
        agent: agent(step, late_step(recording, step)),
        outline: surface
            .and_then(|surface| door::outline_at(surface, &step.path, &step.request).ok())
            .unwrap_or_default(),
        reply,
    }
}
