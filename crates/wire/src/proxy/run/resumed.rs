//! What is known of a run whose recording goes on, after it was put down or the program was killed: numbers and agents go on
//! too.

use std::{borrow::Cow, path::Path};

use super::RunState;
use crate::{
    identity::Speakers,
    proxy::stored::{RetoldRun, ids::StoredIds},
    recording::{self, RecordingError},
    surface::{self, door},
    trajectory::{Attribution, InjectedError, Step, WatchSign},
};

/// What was read of it.
#[derive(Debug, Default)]
pub(super) struct ResumedRun {
    pub(super) state: RunState,
    pub(super) told: RetoldRun,
    pub(super) speakers: Speakers,
    /// What its first call was about.
    pub(super) task: Option<String>,
    /// The sign that stopped it, if one did.
    pub(super) stopped: Option<WatchSign>,
}

impl ResumedRun {
    /// Reads it from the run's directory.
    pub(super) fn read(dir: &Path, ids: Option<&StoredIds>) -> Result<Self, RecordingError> {
        let recording = recording::read_recorded(dir)?;
        let stopped = recording.watched.iter().find(|sign| sign.stops).cloned();
        let mut resumed = Self { stopped, ..Self::default() };
        resumed.recall(recording.trajectory.steps, ids);
        Ok(resumed)
    }

    fn recall(&mut self, steps: Vec<Step>, ids: Option<&StoredIds>) {
        let Self { state, told, speakers, task, .. } = self;
        for step in steps {
            let Attribution { agent, instance, .. } = &step.attribution;
            let known = state.agents.entry((agent.clone(), *instance)).or_default();
            known.next_call = known.next_call.max(step.call + 1);
            // What only told again what another injection had changed was no delivery of it.
            let counts = |error: &&InjectedError| {
                error.delivered && (error.failure_mode.is_some() || error.is_fault() || !error.is_of_agent())
            };
            for error in step.injected.iter().filter(counts) {
                state.has_planted = true;
                let known = state.agents.entry((error.agent.clone(), error.instance)).or_default();
                *known.delivered.entry(error.injection).or_default() += 1;
            }
            state.next_step = state.next_step.max(step.step + 1);
            let path = step.path.split('?').next().unwrap_or_default();
            let Some(surface) = surface::for_path(&step.method, path) else {
                if let Some((ids, attempt)) = ids.zip(step.last_attempt()) {
                    ids.learn_unread(attempt.delivered());
                }
                continue;
            };
            let body = step.last_attempt().map(|attempt| attempt.delivered().as_ref()).unwrap_or_default();
            let reply = step.last_attempt().and_then(|attempt| door::reply(surface, body, attempt.streamed).ok());
            if let Some(reply) = &reply {
                if let Some(ids) = ids {
                    ids.learn(reply, body);
                }
                state.served.learn(reply);
                for answer in &reply.answers {
                    state.remember_answer(agent, answer.message.text());
                }
                state.spoken.recall(&step, reply);
                told.recall(surface, &step, reply);
            }
            if let Ok(outline) = door::outline_at(surface, &step.path, &step.request) {
                *task = task.take().or_else(|| outline.first_user().map(Cow::into_owned));
                // What a tool gives comes back in the words of the agent that called it: it names nobody.
                let heard = reply.as_ref().filter(|_| !surface::is_of_server(surface.name()));
                speakers.recall(&outline, &step.attribution, heard);
            }
        }
    }
}
