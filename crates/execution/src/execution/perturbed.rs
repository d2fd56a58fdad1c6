//! An arm with the neutral changes of one execution: at the place where it leaves the record, and in each live request after it.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;

use super::{ExecutionArm, ReplySource, arm::ForkedReplies};
use crate::{
    manipulator::{Context, Manipulator, ManipulatorError, neutral_place},
    plan::{Plan, Target},
    proof::{NeutralSentences, Perturbation},
    recording::RunOrigin,
    replay::AtFork,
    surface::{Conversation, Message, Reading, Surface, door, for_path, written},
    trajectory::Step,
};

/// The changes of requests.
#[derive(Debug)]
struct NeutralChanges(Perturbation);

impl ExecutionArm {
    /// The neutral changes of an arm's execution of this number, 0-based: what stands at the place where it leaves the record
    /// is another text than in each execution before it, where it takes changes at all. `None` where no other text is left.
    pub fn draw(&self, arm: &str, number: u32) -> Option<Perturbation> {
        let text = match &self.replies {
            ReplySource::Forked(fork) => fork.text(),
            ReplySource::Replayed(_) | ReplySource::Live => None,
        };
        text.map_or_else(
            || Some(Perturbation::drawn(arm, number, &self.sentences)),
            |text| Perturbation::distinct(arm, number, &self.sentences, |draw| text.changed(draw)),
        )
    }

    /// As [`Self::draw`]; where no other text is left, a draw that an earlier execution had.
    pub fn any_draw(&self, arm: &str, number: u32) -> Perturbation {
        self.draw(arm, number).unwrap_or_else(|| Perturbation::drawn(arm, number, &self.sentences))
    }

    /// The same arm with the neutral change that an execution of it got where it leaves the record, as if that had been planted: what
    /// the program asks there is set, too. A place that takes none stays as it is.
    #[must_use]
    pub fn sham(mut self, of: &Perturbation) -> Self {
        if let ReplySource::Forked(fork) = &mut self.replies {
            fork.set_request();
            fork.perturb(of);
        }
        self
    }

    /// Whether the place where an arm leaves the record takes neutral changes.
    pub fn takes_changes(&self) -> bool {
        matches!(&self.replies, ReplySource::Forked(fork) if fork.text().is_some())
    }

    /// The same arm with the neutral changes of an execution. A place that takes none stays as it is.
    #[must_use]
    pub fn perturbed(mut self, perturbation: Perturbation) -> Self {
        let recorded = match &mut self.replies {
            ReplySource::Replayed(_) => return self,
            ReplySource::Live => HashSet::new(),
            ReplySource::Forked(fork) => {
                let recorded = fork.recorded_calls();
                fork.perturb(&perturbation);
                recorded
            }
        };
        let plan = Plan::with_neutral_changes(self.plan.as_deref(), Arc::new(NeutralChanges(perturbation)), recorded);
        Self { plan: Some(Arc::new(plan)), origin: Some(RunOrigin::Proof), ..self }
    }
}

impl ForkedReplies {
    /// The calls that the record answers, or that get a request which is set: at the fork point another one may.
    fn recorded_calls(&self) -> HashSet<Target> {
        let is_live = |step: &Step| step.step == self.at.step && self.at.at == AtFork::Live;
        let recorded = self.cassette.recorded_until(self.at.step).into_iter().flatten();
        let as_target = |step: &Step| Target {
            agent: step.attribution.agent.to_string(),
            instance: step.attribution.instance,
            call: step.call,
        };
        recorded.filter(|(_, step)| !is_live(step)).map(|(_, step)| as_target(step)).collect()
    }

    /// What an execution changes first: a reply that is given at the fork point, or the request there.
    fn text(&self) -> Option<TextAtFork> {
        let mut steps = self.cassette.recording().trajectory.steps.iter();
        let step = steps.find(|step| step.step == self.at.step)?;
        let attempt = step.last_attempt()?;
        let surface = for_path(&step.method, step.path.split('?').next().unwrap_or_default())?;
        let any = Perturbation::drawn("", 0, &NeutralSentences::default());
        let reply = |body: &Bytes| {
            let text = door::reply(surface, body, attempt.streamed).ok()?.answers.first()?.message.text();
            changed_reply(&any, surface, body, attempt.streamed).map(|_| TextAtFork::Reply(text))
        };
        let request = |body: &Bytes| {
            let asked = door::request(surface, &door::without_codings(body)).ok()?;
            change(&any, &mut asked.clone()).map(|_| TextAtFork::Request(Box::new(asked)))
        };
        match &self.at.at {
            AtFork::Live => request(&step.request),
            AtFork::LiveRequest(body) => changed_request(&any, surface, body).and_then(|_| request(body)),
            AtFork::Recorded => reply(&attempt.reply),
            AtFork::Delivered => reply(attempt.delivered()),
            AtFork::Instead(body) | AtFork::AlteredAgain(body) | AtFork::Perturbed(body) => reply(body),
        }
    }

    /// Sets the request at the fork point to the recorded one, where the program would make its own.
    fn set_request(&mut self) {
        let steps = &self.cassette.recording().trajectory.steps;
        if let Some(step) = steps.iter().find(|step| step.step == self.at.step)
            && self.at.at == AtFork::Live
        {
            self.at.at = AtFork::LiveRequest(step.request.clone());
        }
    }

    /// Changes what the call at the fork point gets, or is asked with.
    fn perturb(&mut self, perturbation: &Perturbation) {
        let mut steps = self.cassette.recording().trajectory.steps.iter();
        let Some(step) = steps.find(|step| step.step == self.at.step) else { return };
        let Some(attempt) = step.last_attempt() else { return };
        let Some(surface) = for_path(&step.method, step.path.split('?').next().unwrap_or_default()) else { return };
        let reply = |body: &Bytes| changed_reply(perturbation, surface, body, attempt.streamed);
        let is_edited = attempt.reply_delivered.is_some();
        let changed = match &self.at.at {
            AtFork::Live => None,
            AtFork::Recorded => reply(&attempt.reply).map(AtFork::Perturbed),
            AtFork::Delivered if is_edited => reply(attempt.delivered()).map(AtFork::AlteredAgain),
            AtFork::Delivered => reply(attempt.delivered()).map(AtFork::Perturbed),
            AtFork::Instead(body) => reply(body).map(AtFork::Instead),
            AtFork::AlteredAgain(body) => reply(body).map(AtFork::AlteredAgain),
            AtFork::Perturbed(body) => reply(body).map(AtFork::Perturbed),
            AtFork::LiveRequest(body) => changed_request(perturbation, surface, body).map(AtFork::LiveRequest),
        };
        if let Some(at) = changed {
            self.at.at = at;
        }
    }
}

/// What stands where an arm leaves the record.
enum TextAtFork {
    /// A reply.
    Reply(String),
    /// A request.
    Request(Box<Conversation>),
}

impl TextAtFork {
    /// The text as a draw changes it, and which message of a request that is.
    fn changed(&self, draw: &Perturbation) -> Option<(usize, String)> {
        match self {
            Self::Reply(text) => draw.of_reply(text).map(|text| (0, text)),
            Self::Request(asked) => change(draw, &mut asked.clone()),
        }
    }
}

impl Manipulator for NeutralChanges {
    fn edit_request(&self, conversation: &mut Conversation, _: &Context<'_>) -> Result<(), ManipulatorError> {
        change(&self.0, conversation)
            .map(|_| ())
            .ok_or_else(|| ManipulatorError::NotApplicable("it has no text of the system or the user".to_owned()))
    }

    fn is_neutral(&self) -> bool {
        true
    }

    fn explain(&self) -> String {
        "changes what means nothing: blanks, a polite word, or a sentence that says nothing of the task".to_owned()
    }
}

/// Changes the system text or the user text of a request: the index of its message, and its text. `None` where it has neither.
/// What is drawn depends on what is said: the same request made again is the same still.
fn change(perturbation: &Perturbation, conversation: &mut Conversation) -> Option<(usize, String)> {
    let call = digest(&conversation.messages);
    let place = neutral_place(conversation, perturbation.is_of_system_text(call))?;
    let text = conversation.messages.get_mut(place)?.texts_mut().last()?;
    *text = perturbation.of_request(call, text);
    Some((place, text.clone()))
}

/// A number for what messages say.
fn digest(messages: &[Message]) -> u64 {
    let mut hash = blake3::Hasher::new();
    for message in messages {
        let text = message.text();
        hash.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hash.finalize().as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// A request that is set, changed.
fn changed_request(perturbation: &Perturbation, surface: &dyn Surface, body: &Bytes) -> Option<Bytes> {
    let body = Bytes::from(door::without_codings(body).into_owned());
    let before = door::request(surface, &body).ok()?;
    let mut after = before.clone();
    change(perturbation, &mut after)?;
    let written = door::write_request(surface, &body, &before, &after).ok()?;
    written::request(surface, &body, &written, &after).ok()?;
    Some(written)
}

/// A reply that is given, changed: one answer in prose, which calls no tool.
fn changed_reply(perturbation: &Perturbation, surface: &dyn Surface, body: &Bytes, streamed: bool) -> Option<Bytes> {
    let body = Bytes::from(door::without_codings(body).into_owned());
    let Reading { view: before, unplaced } = door::reading(surface, &body, streamed).ok()?;
    let mut after = before.clone();
    let [answer] = after.answers.as_mut_slice() else { return None };
    if !(unplaced.is_empty() && answer.message.tool_calls.is_empty() && before.utterances.is_empty()) {
        return None;
    }
    let text = perturbation.of_reply(&answer.message.text())?;
    answer.message.set_text(&text);
    let written = door::write_reply(surface, &body, streamed, &before, &after).ok()?;
    written::reply(surface, &written, streamed, &before, &after).ok()?;
    Some(written)
}
