//! Whose words an edit of a reply is about: those of the agent that asks, or of one that the upstream names in the reply.

use std::borrow::Cow;

use super::{
    decided::Decided,
    error::Interrupted,
    open_step::OpenStep,
    run::Run,
    skipped::{SkipReason, failed},
};
use crate::{
    plan::{self, Facts, Hit, Plan, Settled},
    surface::{self, Conversation, Reply, Surface},
    trajectory::{AgentName, Attribution, ReplySpeaker},
};

/// An edit of a reply.
#[derive(Debug)]
pub(super) struct ReplyEdit {
    pub(super) hit: Hit,
    /// The agent whose words alone it edits, where the upstream names agents in the reply.
    pub(super) speaker: Option<ReplySpeaker>,
}

impl ReplyEdit {
    /// What the edit sees of a reply.
    pub(super) fn view<'r>(&self, reply: &'r Reply) -> Cow<'r, Reply> {
        match &self.speaker {
            Some(speaker) => Cow::Owned(reply.of_speaker(speaker.name.as_str())),
            None => Cow::Borrowed(reply),
        }
    }

    /// The agent that it is aimed at.
    pub(super) fn agent<'a>(&'a self, step: &'a OpenStep) -> &'a str {
        self.named().unwrap_or(&step.attribution.agent).as_str()
    }

    /// The same, as whose its delivery counts.
    pub(super) fn attribution<'a>(&self, step: &'a OpenStep) -> Cow<'a, Attribution> {
        match self.named() {
            Some(name) => Cow::Owned(spoken_by(&step.attribution, name)),
            None => Cow::Borrowed(&step.attribution),
        }
    }

    /// The name that the upstream gives the agent, where the plan aims at that.
    fn named(&self) -> Option<&AgentName> {
        self.speaker.as_ref().filter(|speaker| speaker.call.is_some()).map(|speaker| &speaker.name)
    }
}

/// Whether agents that the upstream names may speak in the reply to a request, and the plan edits replies. A request says that it
/// asks for a team; a plan that aims at such an agent is taken at its word.
pub(super) fn may_be_named(run: &Run, surface: Option<&'static dyn Surface>, body: &[u8]) -> bool {
    let (Some(plan), Some(surface)) = (&run.plan, surface) else { return false };
    let edits = || plan.injections.iter().filter(|injection| injection.edits_reply());
    surface::may_name_agents(surface)
        && edits().next().is_some()
        && (surface::asks_for_team(surface, body) || edits().any(|injection| injection.agents.names_upstream()))
}

/// The edits that are due to a reply, in the order of the plan. One that is aimed at the agent that asks is about the words of the
/// root of a team; where the root says nothing, there is nothing to edit, and that is written down.
pub(super) fn reply_edits(
    step: &OpenStep,
    decided: &Decided,
    conversation: &Conversation,
    reply: &Reply,
) -> Result<Vec<ReplyEdit>, Interrupted> {
    let asked = &decided.edits.response;
    let Some(plan) = step.run.plan.as_ref().filter(|_| !reply.utterances.is_empty()) else {
        return Ok(asked.iter().map(|hit| ReplyEdit { hit: *hit, speaker: None }).collect());
    };
    let mut edits: Vec<ReplyEdit> = Vec::new();
    let mut root_speaks = false;
    for name in reply.named_agents() {
        let Ok(agent) = AgentName::parse(name) else { continue };
        let call = step.run.spoken(&step.attribution, &agent, step.numbers.step);
        if surface::is_root(name) {
            root_speaks = true;
            let of_root = || Some(ReplySpeaker { name: agent.clone(), call: None });
            edits.extend(asked.iter().map(|hit| ReplyEdit { hit: *hit, speaker: of_root() }));
        }
        let speaker = ReplySpeaker { name: agent, call: Some(call) };
        for hit in meets(step, plan, conversation, &speaker) {
            if !edits.iter().any(|edit| edit.hit.injection == hit.injection && edit.agent(step) == name) {
                edits.push(ReplyEdit { hit, speaker: Some(speaker.clone()) });
            }
        }
    }
    if !root_speaks {
        let agents = reply.named_agents().into_iter().collect::<Vec<_>>().join(", ");
        let why = format!("the agent that asks says nothing in the reply: the upstream names {agents}");
        for hit in asked {
            if let Some(injection) = step.injection(hit.injection) {
                failed(step, hit, injection, &SkipReason { why: why.clone(), nothing: true })?;
            }
        }
    }
    edits.sort_by_key(|edit| edit.hit.injection);
    Ok(edits)
}

/// Writes down that none of the edits that are due to a reply could be made.
pub(super) fn all_failed(step: &OpenStep, edits: &[ReplyEdit], unmade: &SkipReason) -> Result<(), Interrupted> {
    for ReplyEdit { hit, .. } in edits {
        if let Some(injection) = step.injection(hit.injection) {
            failed(step, hit, injection, unmade)?;
        }
    }
    Ok(())
}

/// The edits of a reply that the plan wants of an agent that the upstream names.
fn meets(step: &OpenStep, plan: &Plan, conversation: &Conversation, speaker: &ReplySpeaker) -> Vec<Hit> {
    let who = spoken_by(&step.attribution, &speaker.name);
    let given = |injection: u32, of: &dyn Fn(&Settled) -> bool| {
        plan.settled.as_ref().is_some_and(|settled| {
            let asks = settled.agent == step.attribution.agent.as_str() && settled.instance == who.instance;
            asks && settled.injections.contains(&injection) && of(settled)
        })
    };
    let call = step.numbers.call;
    // What is given again at an earlier call counts as delivered.
    let delivered = |injection: u32| {
        step.run.delivered(&who, injection) + u32::from(given(injection, &|settled| settled.call < call))
    };
    let facts = Facts {
        run: step.run.id.as_str(),
        agent: speaker.name.as_str(),
        instance: who.instance,
        call: speaker.call.unwrap_or_default(),
        step: step.numbers.step,
        conversation: Some(conversation),
        delivered: &delivered,
        ambiguous: who.ambiguous,
    };
    let mut met = plan::decide(plan, &facts).response;
    met.retain(|hit| !given(hit.injection, &|settled| settled.call == call));
    met
}

/// An agent that the upstream names in a reply to the agent that asks.
fn spoken_by(asker: &Attribution, name: &AgentName) -> Attribution {
    Attribution { agent: name.clone(), ..asker.clone() }
}
