//! Recorded up to a fork point, live from there: the same prefix in every arm, by construction.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{Method, Request, header::CONTENT_LENGTH};

use super::{
    AtFork, Cassette, ForkPoint, NoSuchStep, ReplayReport, Timing, effects,
    play::{Play, PlayState, TakenRecord},
    question::CassetteQuestion,
    reply::ReplayedPart,
};
use crate::{
    identity::{AttributedCall, ReferenceCalls},
    proxy::upstream::{AlteredReply, BackendAnswering, ReplyChange, SentBody, SentForm, Upstream, UpstreamError},
    surface,
    trajectory::{AgentName, Attempt, Attribution, Call, RETELL, Side, Step, StepIndex},
};

/// Answers one run from a recording up to a fork point, and from a live upstream after it. A request before the fork
/// point that the record does not hold ends the run as diverged: every further call is refused.
#[derive(Debug)]
pub struct Prefixed {
    play: Play,
    fork: ForkPoint,
    /// An agent that says what it is given, call by call, whatever it is asked.
    puppet: Option<ScriptedAgent>,
    /// The injections whose edited replies the recorded run sent to an upstream that stores replies.
    retold_injections: HashSet<u32>,
    live: Arc<dyn Upstream>,
}

/// An agent whose replies are set.
#[derive(Debug)]
struct ScriptedAgent {
    agent: AgentName,
    /// By call: the position of the recorded step whose head it gets, and the body.
    says: HashMap<Call, (usize, AtFork)>,
}

/// What becomes of a request.
enum Course {
    Recorded(Box<TakenRecord>, ReplayedPart),
    Live,
    /// Live, with this request instead.
    LiveRequest(Bytes),
    Refused(UpstreamError),
}

impl Prefixed {
    /// An upstream for one run.
    ///
    /// # Errors
    /// [`NoSuchStep`] when the record has no such step.
    pub fn new(cassette: Arc<Cassette>, fork: ForkPoint, live: Arc<dyn Upstream>) -> Result<Self, NoSuchStep> {
        let prefix = cassette.recorded_until(fork.step)?.map(|(position, _)| position).collect();
        let injected = cassette.recording().trajectory.steps.iter().flat_map(|step| &step.injected);
        let retold_injections =
            injected.filter(|entry| entry.operator == RETELL).map(|entry| entry.injection).collect();
        Ok(Self { play: Play::new(cassette).of_steps(prefix), fork, puppet: None, retold_injections, live })
    }

    /// The record that it answers from.
    pub fn cassette(&self) -> &Cassette {
        &self.play.cassette
    }

    /// The same with this timing.
    #[must_use]
    pub fn with_timing(mut self, timing: Timing) -> Self {
        self.play.set_timing(timing);
        self
    }

    /// The same with an agent that, from the fork point on, gets what is set here for its calls, whatever it asks;
    /// calls that are not set are live. A step that the record does not have sets nothing.
    #[must_use]
    pub fn with_agent(mut self, agent: AgentName, says: impl IntoIterator<Item = (StepIndex, AtFork)>) -> Self {
        let steps = self.play.cassette.bare_steps();
        let set = |(step, at): (StepIndex, AtFork)| {
            let position = steps.iter().position(|recorded| recorded.step == step)?;
            Some((steps.get(position)?.call, (position, at)))
        };
        self.puppet = Some(ScriptedAgent { agent, says: says.into_iter().filter_map(set).collect() });
        self
    }

    /// What came of it so far.
    pub fn report(&self) -> ReplayReport {
        self.play.report()
    }

    /// Decides on a request, and writes it down.
    fn course(&self, question: &CassetteQuestion) -> Course {
        let mut state = self.play.state();
        let step = question.asker.step;
        if let Some(departure) = &state.report.diverged {
            return Course::Refused(UpstreamError::Diverged(departure.to_string()));
        }
        if state.live.contains(&step) {
            return self.live_at(state.forked == Some(step));
        }
        if let Some((position, at)) = self.set(&state, question)
            && let Some(taken) = self.play.take_at(&mut state, question, position)
            && let Some(course) = course_at_fork(taken, &at)
        {
            return course;
        }
        let taken = self.play.take(&mut state, question);
        let at_fork = taken.as_ref().is_some_and(|taken| {
            self.play.cassette.bare_steps().get(taken.position).is_some_and(|step| step.step == self.fork.step)
        });
        state.passed |= question.asker.planted;
        let passed = state.passed;
        let edited = match question.asker.sent {
            SentForm::Own | SentForm::Neutral => false,
            // Up to the fork point a program is told what the recorded one was told, and so is the upstream.
            SentForm::Retold => passed,
            SentForm::Edited => true,
        };
        state.passed |= at_fork || edited;
        match taken {
            // An edited request is another request, whatever the client asked: the record has no answer to it.
            Some(_) if edited => {}
            Some(taken) if !at_fork => return Course::Recorded(Box::new(taken), ReplayedPart::Delivered),
            Some(mut taken) => {
                // Attempts before the last one were the upstream's failures of that day.
                let recorded = self.play.cassette.bare_steps().get(taken.position);
                if let Some(last) = recorded.and_then(Step::last_attempt) {
                    taken.attempt = last.clone();
                }
                if let Some(course) = course_at_fork(taken, &self.fork.at) {
                    return course;
                }
            }
            // A branch that runs ahead of the fork point makes a call that the record has later: that call is live.
            // What such a branch asks next cannot be told from a divergence, and is taken for its own.
            // Only once the fork point is behind, or something was planted in another branch: an edit does not make another
            // question the recorded one.
            None if passed || !state.live.is_empty() || self.play.knows(question) => {}
            None => {
                let departure = self.play.departure(&state, question);
                let said = departure.to_string();
                state.report.diverged = Some(departure);
                return Course::Refused(UpstreamError::Diverged(said));
            }
        }
        if state.live.insert(step) {
            state.report.live.push(step);
        }
        if at_fork {
            state.forked = Some(step);
        }
        self.live_at(at_fork)
    }

    /// The reply as the upstream stores it and as it is given, where these differ.
    fn altered_reply(&self, taken: &TakenRecord, given: &ReplayedPart) -> Option<AlteredReply> {
        let Attempt { reply: kept, reply_delivered, streamed, .. } = &taken.attempt;
        let (body, by) = match given {
            ReplayedPart::Upstream => return None,
            ReplayedPart::Delivered => (reply_delivered.as_ref()?, self.edit(taken.position)),
            ReplayedPart::Instead(body) => match self.fork.at {
                AtFork::AlteredAgain(_) => (body, self.edit(taken.position)),
                AtFork::Perturbed(_) => (body, ReplyChange::NeutralChange),
                _ => (body, ReplyChange::Replacement),
            },
        };
        let reply = AlteredReply { kept: kept.clone(), given: body.clone(), streamed: *streamed, by };
        (reply.kept != reply.given).then_some(reply)
    }

    /// Who edited a recorded reply.
    fn edit(&self, position: usize) -> ReplyChange {
        let injected = self.play.cassette.bare_steps().get(position).map_or(&[][..], |step| &step.injected);
        let mut replies = injected.iter().filter(|entry| entry.side == Side::Response).map(|entry| entry.injection);
        replies
            .find(|number| self.retold_injections.contains(number))
            .map_or(ReplyChange::Injection, ReplyChange::RecordedInjection)
    }

    /// A live call; at the fork point with the request that is set there.
    fn live_at(&self, forked: bool) -> Course {
        match &self.fork.at {
            AtFork::LiveRequest(body) if forked => Course::LiveRequest(body.clone()),
            _ => Course::Live,
        }
    }
}

impl Prefixed {
    /// What is set for a call of the agent whose replies are set.
    fn set(&self, state: &PlayState, question: &CassetteQuestion) -> Option<(usize, AtFork)> {
        let puppet = self.puppet.as_ref().filter(|_| state.passed)?;
        let asker = &question.asker;
        puppet.says.get(&asker.call).filter(|_| asker.attribution.agent == puppet.agent).cloned()
    }
}

/// What a fork point gives of a record; `None` where it asks the live upstream.
fn course_at_fork(taken: TakenRecord, at: &AtFork) -> Option<Course> {
    let given = match at {
        AtFork::Recorded => ReplayedPart::Upstream,
        AtFork::Delivered => ReplayedPart::Delivered,
        AtFork::Instead(body) | AtFork::AlteredAgain(body) | AtFork::Perturbed(body) => {
            ReplayedPart::Instead(body.clone())
        }
        AtFork::Live | AtFork::LiveRequest(_) => return None,
    };
    Some(Course::Recorded(Box::new(taken), given))
}

impl Upstream for Prefixed {
    fn name(&self) -> &str {
        self.live.name()
    }

    fn recall(&self, surface: &str, asked: &[u8], told: &AttributedCall) -> Option<Attribution> {
        self.play.recall(surface, asked, told)
    }

    fn reference_calls(&self) -> Option<Arc<ReferenceCalls>> {
        Some(self.play.cassette.reference_calls())
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let Some(question) = CassetteQuestion::read(&request, &self.play.cassette) else {
                return self.live.send(request).await;
            };
            match self.course(&question) {
                // A live server never sent the broken stream that a recorded one's client reads on.
                Course::Recorded(taken, given)
                    if request.method() == Method::POST && surface::is_of_server(&question.surface) =>
                {
                    let session = effects::execute(self.live.as_ref(), request).await?;
                    self.play.give(&question, *taken, given).await.map(|recorded| session.named_in(recorded))
                }
                Course::Recorded(taken, given) => {
                    let altered = self.altered_reply(&taken, &given);
                    let mut reply = self.play.give(&question, *taken, given).await?;
                    if let Some(altered) = altered {
                        reply.extensions_mut().insert(altered);
                    }
                    Ok(reply)
                }
                Course::Live => self.live.send(request).await,
                Course::LiveRequest(body) => self.live.send(asking(request, body)).await,
                Course::Refused(error) => Err(error),
            }
        })
    }
}

/// The request with another body.
fn asking(request: Request<SentBody>, body: Bytes) -> Request<SentBody> {
    let (mut head, _) = request.into_parts();
    if head.headers.contains_key(CONTENT_LENGTH) {
        head.headers.insert(CONTENT_LENGTH, body.len().into());
    }
    Request::from_parts(head, Either::Left(Full::new(body)))
}
