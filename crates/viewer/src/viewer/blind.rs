//! A run as somebody sees it who is to say what went wrong: what happened, and nothing of what is known about it.
//!
//! The steps hold what their agents really sent and got, as if no other bytes had ever been: nothing tells an injected
//! word from a model's own. Label, trace, plan, notes and the words of other annotators are gone.

use crate::{
    recording::Recording,
    trajectory::{ReplyOrigin, Step},
};

/// Takes from a recording what is known about it. Requests that are kept apart from it are dealt with by [`step`].
pub(super) fn recording(recording: &mut Recording) {
    recording.label = None;
    recording.notes.clear();
    recording.watched.clear();
    recording.manipulator_failures.clear();
    recording.manipulator_questions.clear();
    let manifest = &mut recording.manifest;
    (manifest.plan, manifest.plan_digest, manifest.seed) = (None, None, None);
    for exchange in &mut recording.exchanges {
        exchange.injected.clear();
    }
    for each in &mut recording.trajectory.steps {
        replies(each);
    }
}

fn replies(step: &mut Step) {
    step.injected.clear();
    for attempt in &mut step.attempts {
        attempt.origin = ReplyOrigin::Live;
        if let Some(delivered) = attempt.reply_delivered.take() {
            attempt.reply = delivered;
        }
    }
}

/// A step with the request that the model got, as the one that was asked.
pub(super) fn step(mut step: Step) -> Step {
    replies(&mut step);
    if let Some(sent) = step.request_sent.take() {
        step.request = sent;
    }
    step
}
