//! The arm of an execution: who answers the program's model calls, and what is planted.

use std::sync::Arc;

use hyper::Request;

use super::{ExecutionMeter, Halt};
use crate::{
    identity::{AttributedCall, ReferenceCalls},
    plan::Plan,
    proof::NeutralSentences,
    proxy::upstream::{BackendAnswering, SentBody, Upstream, UpstreamError},
    recording::RunOrigin,
    replay::{AtFork, Cassette, ForkPoint, NoSuchStep, Prefixed, ReplayReport, Replayed},
    trajectory::{AgentName, Attribution, StepIndex},
};

/// What one execution has of its own.
#[derive(Debug, Clone, Default)]
pub struct ExecutionArm {
    /// What is planted.
    pub plan: Option<Arc<Plan>>,
    /// What the run is made for, where it is nobody's run.
    pub origin: Option<RunOrigin>,
    /// Who answers its calls.
    pub replies: ReplySource,
    /// What a run of the same program without faults asked.
    pub reference_calls: Option<Arc<ReferenceCalls>>,
    /// The sentences of its neutral changes.
    pub sentences: NeutralSentences,
}

/// Who answers the model calls of an execution.
#[derive(Debug, Clone, Default)]
pub enum ReplySource {
    /// The live upstream.
    #[default]
    Live,
    /// A record up to a fork point, then the live upstream.
    Forked(ForkedReplies),
    /// A record alone.
    Replayed(Arc<Replayed>),
}

/// Where an execution leaves the record that it begins like.
#[derive(Debug, Clone)]
pub struct ForkedReplies {
    /// The record.
    pub cassette: Arc<Cassette>,
    /// Where the execution leaves it, and with what.
    pub at: ForkPoint,
    /// An agent whose calls are set from there on, by step of the record.
    pub says: Option<(AgentName, Vec<(StepIndex, AtFork)>)>,
}

/// The upstream of one execution, with what is to be asked of it afterwards.
pub(super) enum ArmUpstream {
    /// The live upstream: the proxy's if none is named.
    Live(Option<Arc<dyn Upstream>>),
    Forked(Arc<Forked>),
    Replayed(Arc<Replayed>),
}

/// A record, then live. A program that leaves the record before the fork point is ended.
#[derive(Debug)]
pub(super) struct Forked {
    prefixed: Prefixed,
    meter: Arc<ExecutionMeter>,
}

impl ExecutionArm {
    /// A record up to a fork point, then the live upstream.
    pub fn forked(cassette: &Arc<Cassette>, at: ForkPoint, plan: Option<Arc<Plan>>) -> Self {
        let fork = ForkedReplies { cassette: Arc::clone(cassette), at, says: None };
        Self { plan, replies: ReplySource::Forked(fork), ..Self::default() }
    }

    /// The recorded run that answers, or whose beginning does.
    pub(super) fn reference(&self) -> Option<&Arc<Cassette>> {
        match &self.replies {
            ReplySource::Live => None,
            ReplySource::Forked(fork) => Some(&fork.cassette),
            ReplySource::Replayed(replayed) => Some(replayed.cassette()),
        }
    }
}

impl ReplySource {
    pub(super) fn answering(
        self,
        live: Option<Arc<dyn Upstream>>,
        proxied: &Arc<dyn Upstream>,
        meter: &Arc<ExecutionMeter>,
    ) -> Result<ArmUpstream, NoSuchStep> {
        Ok(match self {
            ReplySource::Live => ArmUpstream::Live(live),
            ReplySource::Replayed(replayed) => ArmUpstream::Replayed(replayed),
            ReplySource::Forked(fork) => {
                let mut prefixed = Prefixed::new(fork.cassette, fork.at, live.unwrap_or_else(|| Arc::clone(proxied)))?;
                if let Some((agent, says)) = fork.says {
                    prefixed = prefixed.with_agent(agent, says);
                }
                ArmUpstream::Forked(Arc::new(Forked { prefixed, meter: Arc::clone(meter) }))
            }
        })
    }
}

impl ArmUpstream {
    pub(super) fn upstream(&self) -> Option<Arc<dyn Upstream>> {
        match self {
            ArmUpstream::Live(live) => live.clone(),
            ArmUpstream::Forked(forked) => Some(Arc::<Forked>::clone(forked)),
            ArmUpstream::Replayed(replayed) => Some(Arc::<Replayed>::clone(replayed)),
        }
    }

    /// What came from the record, and what did not.
    pub(super) fn report(&self) -> Option<ReplayReport> {
        match self {
            ArmUpstream::Live(_) => None,
            ArmUpstream::Forked(forked) => Some(forked.prefixed.report()),
            ArmUpstream::Replayed(replayed) => Some(replayed.report()),
        }
    }
}

impl Upstream for Forked {
    fn name(&self) -> &str {
        self.prefixed.name()
    }

    fn recall(&self, surface: &str, asked: &[u8], told: &AttributedCall) -> Option<Attribution> {
        self.prefixed.recall(surface, asked, told)
    }

    fn reference_calls(&self) -> Option<Arc<ReferenceCalls>> {
        self.prefixed.reference_calls()
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let answer = self.prefixed.send(request).await;
            if matches!(answer, Err(UpstreamError::Diverged(_))) {
                self.meter.stop(Halt::Diverged);
            }
            answer
        })
    }
}
