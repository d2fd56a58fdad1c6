//! Who has spoken in one run: what names an agent without hints, and which of several equal agents it is.
//!
//! Fed with each request and each answer; what it decides follows from the rules, the request and the run's earlier
//! exchanges. Bounded: what it forgets makes it less sure, never wrong.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use twox_hash::XxHash3_64;

use super::{
    Identity,
    attributed::{AttributedCall, EndedCall},
    dialect::DialectMatch,
    fingerprint::{Mark, RequestLooks, fold, is_fresh, join, mark_sentences, request_mark},
    history::{History, NamedInstance, id_mark, text_mark},
    instances::{InstanceEvidence, Instances},
    is_helper,
    ledger::{AttemptEnd, CallLedger, CallRelation, LedgerNumber, LedgerPlace},
    recent::Recent,
    reference::{LedgerRequest, ReferenceCalls},
    roster::DeclaredOrder,
    voices::{KIN_MAX, Voices},
};
use crate::{
    equality::Rules,
    surface::{Outline, Reply, Role},
    trajectory::{AgentName, Attribution, Source},
};

/// Prompts whose looks a run remembers.
const PROMPTS_MAX: usize = 1024;
/// Agents that a run remembers.
const AGENTS_MAX: usize = 16_384;
/// Requests under way that a run remembers.
const UNDER_WAY_MAX: usize = 4096;

/// What one run has shown of its agents.
#[derive(Debug)]
pub struct Speakers {
    opening: Option<HashSet<Mark>>,
    /// What a request with this prompt, these names and tools looks like.
    seen: Recent<Mark, Arc<(RequestLooks, Option<DialectMatch>)>>,
    /// What the user's own words say of a request with this prompt, these names, tools and model.
    declared: Recent<Mark, Option<Attribution>>,
    history: History,
    instances: Instances,
    voices: Voices,
    ledger: CallLedger,
    /// What the requests under way ask.
    under_way: Recent<LedgerNumber, CallUnderWay>,
    names: Vec<AgentName>,
    agents: HashMap<AgentName, u32>,
    facts: Vec<AgentProfile>,
}

/// What tells equal speakers apart.
#[derive(Debug, Clone, Copy)]
struct EqualSpeakers<'a> {
    outline: &'a Outline<'a>,
    /// The instance whose own words the request goes on from.
    own: Option<u32>,
    /// The order that the user declares.
    order: Option<DeclaredOrder>,
}

/// A request under way.
#[derive(Debug, Clone, Copy)]
struct CallUnderWay {
    agent: u32,
    body: u128,
    /// Its words, where its agent may be several.
    question: Option<Mark>,
}

/// What is known of an agent beside its name.
#[derive(Debug, Clone, Default)]
struct AgentProfile {
    /// Tools and format, where it has no prompt.
    bare_family: Option<Mark>,
    /// Its prompt, where it has one.
    prompt: Option<Mark>,
    /// The key of the looks that it was first seen with.
    key: u32,
}

impl Default for Speakers {
    fn default() -> Self {
        Self {
            opening: None,
            seen: Recent::new(PROMPTS_MAX),
            declared: Recent::new(PROMPTS_MAX),
            history: History::default(),
            instances: Instances::default(),
            voices: Voices::default(),
            ledger: CallLedger::default(),
            under_way: Recent::new(UNDER_WAY_MAX),
            names: Vec::new(),
            agents: HashMap::default(),
            facts: Vec::new(),
        }
    }
}

impl Speakers {
    /// Counts its calls by these rules, and beside those of a run without faults, which has rules of its own.
    pub fn count_by(&mut self, rules: Rules, reference: Option<Arc<ReferenceCalls>>) {
        self.ledger.count_by(rules, reference);
    }

    /// Who makes a request, and whether it is a call of its own. `declared`: what its envelope names.
    pub fn attribute(
        &mut self,
        rules: &Identity,
        outline: Option<&Outline<'_>>,
        declared: Option<Attribution>,
        request: &LedgerRequest<'_>,
    ) -> AttributedCall {
        if let Some(declared) = declared {
            // Its texts say nothing that is not known.
            let agent = self.agent(&declared.agent, None);
            return self.enter(agent, declared, request, None);
        }
        let Some(outline) = outline else {
            let nobody = super::fallback(0, "the body could not be read");
            let agent = self.agent(&nobody.agent, None);
            return self.enter(agent, nobody, request, None);
        };
        self.open(outline);
        // Looks cost more than all the rest together: nobody looks where the user's own words decide, nor twice.
        let mut seen = rules.roster.asks_for_looks().then(|| self.looks(rules, outline));
        let key = seen.as_ref().map_or(0, |seen| seen.0.key);
        let mut attribution = if let Some(attribution) = self.declared(rules, outline, key) {
            attribution
        } else {
            let seen = &**seen.get_or_insert_with(|| self.looks(rules, outline));
            self.name(outline, &seen.0, seen.1.as_ref())
        };
        let splits = match attribution.source {
            Source::Metadata | Source::Model => false,
            Source::Roster => rules.roster.has_instances(&attribution.agent),
            _ => true,
        };
        let known = self.agents.get(&attribution.agent).copied();
        let agent = known.or_else(|| {
            let seen = &**seen.get_or_insert_with(|| self.looks(rules, outline));
            self.agent(&attribution.agent, Some(&seen.0))
        });
        let Some(number) = agent.filter(|_| splits) else { return self.enter(agent, attribution, request, None) };
        let own = self.history.own_words(outline, |who| who.agent == number).map(|(who, _)| who.instance);
        if let (Some(seen), true) = (&seen, attribution.source != Source::Roster) {
            self.note_undeclared(number, &seen.0, own.is_some(), &mut attribution);
        }
        let order = rules.roster.order(&attribution.agent).filter(|_| attribution.source == Source::Roster);
        self.enter(agent, attribution, request, Some(EqualSpeakers { outline, own, order }))
    }

    /// Enters a request into the ledger. `several`: what tells them apart, where its agent may be several.
    fn enter(
        &mut self,
        agent: Option<u32>,
        told: Attribution,
        request: &LedgerRequest<'_>,
        several: Option<EqualSpeakers<'_>>,
    ) -> AttributedCall {
        let mut attribution = told;
        let Some(agent) = agent else {
            return AttributedCall { attribution, relation: CallRelation::First, number: LedgerNumber::MAX };
        };
        let own = several.and_then(|several| several.own);
        let LedgerPlace { number, relation, instance } = self.ledger.ask(agent, request, own);
        let question = several.map(|several| request_mark(several.outline));
        if let (Some(question), Some(EqualSpeakers { order, .. })) = (question, several) {
            let known = InstanceEvidence { own, retried: instance, order };
            let instance = self.instances.ask(agent, question, known);
            self.ledger.made_by(agent, request.body, number, instance.number);
            attribution.instance = instance.number;
            if instance.ambiguous {
                doubt(&mut attribution, "several equal agents, which one is told by order alone");
            }
        }
        if matches!(relation, CallRelation::Undecided { .. }) {
            doubt(&mut attribution, "another try of a failed call or a call of its own, which cannot be told");
        }
        self.under_way.entry(number, || CallUnderWay { agent, body: request.body, question });
        AttributedCall { attribution, relation, number }
    }

    /// Notes what stands under a name that nobody declared.
    fn note_undeclared(&mut self, agent: u32, looks: &RequestLooks, goes_on: bool, told: &mut Attribution) {
        let written = told.source == Source::Dialect;
        if (written && is_helper(&told.agent)) || matches!(told.source, Source::Fallback | Source::Continuation) {
            return;
        }
        if let Some(why) = self.voices.observe(agent, looks, written, goes_on) {
            doubt(told, why);
        }
    }

    /// The agents whose names turned out to stand for several.
    pub fn contested(&self) -> impl Iterator<Item = &AgentName> {
        self.voices.contested().filter_map(|agent| self.names.get(agent as usize))
    }

    /// A request of `attribution` has ended.
    pub fn ended(&mut self, attribution: &Attribution, ended: &EndedCall<'_>) {
        let EndedCall { number, reply, failed, at_us } = *ended;
        if let Some(CallUnderWay { agent, body, question }) = self.under_way.get(&number).copied() {
            if let Some(question) = question {
                self.instances.end(agent, question, attribution.instance, failed);
            }
            let end = match reply {
                _ if failed => AttemptEnd::Failed,
                Some(reply) if reply.is_empty() => AttemptEnd::Empty,
                _ => AttemptEnd::Answered,
            };
            self.ledger.end(agent, body, number, end, at_us);
        }
        self.spoke(attribution, reply);
    }

    fn spoke(&mut self, told: &Attribution, reply: Option<&Reply>) {
        if let Some((agent, reply)) = self.agents.get(&told.agent).copied().zip(reply) {
            self.history.serve(reply, NamedInstance { agent, instance: told.instance });
        }
    }

    /// Takes in a recorded step, so that a run that goes on after a restart knows its agents.
    pub fn recall(&mut self, outline: &Outline<'_>, attribution: &Attribution, reply: Option<&Reply>) {
        if matches!(attribution.source, Source::Path | Source::Header | Source::Key) {
            self.agent(&attribution.agent, None);
        } else {
            self.open(outline);
            let looks = RequestLooks::read(outline, self.opening.get_or_insert_default());
            if let Some(agent) = self.agent(&attribution.agent, Some(&looks)) {
                let goes_on = self.history.own_words(outline, |who| who.agent == agent).is_some();
                self.note_undeclared(agent, &looks, goes_on, &mut attribution.clone());
                self.instances.recall(agent, request_mark(outline), attribution.instance);
            }
        }
        self.spoke(attribution, reply);
    }

    /// Notes what the run's first request asks.
    fn open(&mut self, outline: &Outline<'_>) {
        self.opening.get_or_insert_with(|| {
            let mut marks = Vec::new();
            mark_sentences(&outline.first_user().unwrap_or_default(), &mut marks);
            marks.into_iter().collect()
        });
    }

    /// Entries held beside one an agent, and the most that there can be.
    pub fn size(&self) -> (usize, usize) {
        let (history, of_history) = self.history.size();
        let most = 2 * PROMPTS_MAX + of_history + UNDER_WAY_MAX + 2 * super::instances::QUESTIONS_MAX + KIN_MAX;
        let asked = self.instances.len() + self.ledger.len() + self.under_way.len() + self.voices.len();
        (self.seen.len() + self.declared.len() + history + asked, most)
    }

    /// What the user's own words say of a request: looked for once where it is the same for each call.
    fn declared(&mut self, rules: &Identity, outline: &Outline<'_>, key: u32) -> Option<Attribution> {
        if rules.says_nothing() {
            return None;
        }
        if !rules.asks_only_for_what_stands() {
            return rules.declared_agent(outline, key);
        }
        let mut marks: Vec<Mark> = vec![u64::from(key), XxHash3_64::oneshot(outline.model.as_bytes())];
        for texts in [&outline.prompts, &outline.names, &outline.tools] {
            marks.push(texts.len() as u64);
            marks.extend(texts.iter().map(|text| XxHash3_64::oneshot(text.as_bytes())));
        }
        self.declared.entry(join(&marks), || rules.declared_agent(outline, key)).clone()
    }

    /// The looks of a request, and what a dialect tells of it: worked out once for what both follow from.
    fn looks(&mut self, rules: &Identity, outline: &Outline<'_>) -> Arc<(RequestLooks, Option<DialectMatch>)> {
        let opening = self.opening.get_or_insert_default();
        let mut marks = vec![RequestLooks::key(outline)];
        marks.extend(outline.names.iter().map(|text| XxHash3_64::oneshot(text.as_bytes())));
        let user = outline.messages.iter().rev().find(|said| said.role == Role::User);
        marks.push(Mark::from(user.is_some()));
        if outline.prompts.is_empty() {
            // Only then a dialect looks at who asks, and whether anybody has answered yet.
            marks.push(Mark::from(is_fresh(outline)));
            marks.extend(user.and_then(|user| user.name.as_ref()).map(|name| XxHash3_64::oneshot(name.as_bytes())));
        }
        let work_out = || Arc::new((RequestLooks::read(outline, opening), rules.dialects.tell(outline)));
        Arc::clone(self.seen.entry(join(&marks), work_out))
    }

    /// The name, by the first rule of ours that knows one.
    fn name(&mut self, outline: &Outline<'_>, looks: &RequestLooks, told: Option<&DialectMatch>) -> Attribution {
        if outline.vectors {
            return self.embedding(outline);
        }
        if let Some(told) = told {
            // A helper whose owner is not named: its texts hold what it helps with, so that they tell nothing.
            let unnamed = || AgentName::unnamed(fold(XxHash3_64::oneshot(told.dialect.as_bytes())));
            let base = told.agent.clone().unwrap_or_else(unnamed);
            let helper = |role: &String| AgentName::parse(&format!("{base}/{role}")).ok();
            let agent = told.helper.as_ref().and_then(helper).unwrap_or(base);
            let confidence = if told.agent.is_some() { 0.95 } else { 0.9 };
            return attribution(agent, Source::Dialect, told.dialect.clone(), confidence);
        }
        if looks.prompted {
            return self.by_looks(outline, looks);
        }
        let known = &self.facts;
        let alike = |who: NamedInstance| {
            known.get(who.agent as usize).and_then(|agent| agent.bare_family) == Some(looks.family)
        };
        if let Some((who, evidence)) = self.history.own_words(outline, alike)
            && let Some(name) = self.names.get(who.agent as usize)
        {
            return attribution(name.clone(), Source::Continuation, evidence.to_owned(), 0.9);
        }
        if outline.first_user().is_some() || outline.tool_text.len() > 2 {
            let evidence = "no system prompt: what the first user text says beside the task, tools, format";
            return attribution(AgentName::unnamed(looks.key), Source::Frame, evidence.to_owned(), 0.5);
        }
        super::fallback(looks.key, "no system prompt and no user text")
    }

    /// Vectors are asked for on somebody's behalf: of who just called a tool with these words, if anybody did.
    fn embedding(&self, outline: &Outline<'_>) -> Attribution {
        let mut asked = outline.messages.iter().filter_map(|said| self.history.sole_speaker(text_mark(&said.text())?));
        let helper = |base: &AgentName| AgentName::parse(&format!("{base}/embedding")).unwrap_or_else(|_| base.clone());
        if let Some(owner) = asked.find_map(|who| self.names.get(who.agent as usize)) {
            let evidence = "embeds what its tool call asks for".to_owned();
            return attribution(helper(owner), Source::Continuation, evidence, 0.8);
        }
        let nobody = AgentName::unnamed(fold(XxHash3_64::oneshot(outline.model.as_bytes())));
        attribution(helper(&nobody), Source::Fallback, "embeds what nobody asked for".to_owned(), 0.0)
    }

    /// By the sentences of the prompt and the tools. Some frameworks take the tools away for the last word of a tool
    /// loop: who answers an agent's tool calls under its very prompt is that agent.
    fn by_looks(&mut self, outline: &Outline<'_>, looks: &RequestLooks) -> Attribution {
        if outline.tools.is_empty() {
            let waiting = outline.messages.iter().rev().take_while(|said| said.role == Role::Tool);
            let owners = waiting.filter_map(|said| self.history.sole_speaker(id_mark(said.answers_call.as_deref()?)?));
            for who in owners {
                let same = self.facts.get(who.agent as usize).is_some_and(|agent| agent.prompt == Some(looks.prompt));
                if let (true, Some(name)) = (same, self.names.get(who.agent as usize)) {
                    let evidence = "answers this agent's tool calls under its prompt".to_owned();
                    return attribution(name.clone(), Source::Fingerprint, evidence, 0.9);
                }
            }
        }
        let Self { voices, history, facts: known, .. } = self;
        let of_prompt =
            |who: NamedInstance| known.get(who.agent as usize).filter(|agent| agent.prompt == Some(looks.prompt));
        let key = voices.key(looks, || {
            let (who, _) = history.own_words(outline, |who| of_prompt(who).is_some())?;
            of_prompt(who).map(|agent| agent.key)
        });
        let (sentences, tools) = (looks.sentences.len(), outline.tools.len());
        let mut evidence = format!(
            "{sentences} sentence{} of the system prompt, {tools} tool{}",
            if sentences == 1 { "" } else { "s" },
            if tools == 1 { "" } else { "s" }
        );
        if key != looks.key {
            evidence.push_str(", which have changed in one history");
        }
        attribution(AgentName::unnamed(key), Source::Fingerprint, evidence, 0.9)
    }

    /// The number of a name, within the bound; new ones get the looks that they were first seen with, if any were read.
    fn agent(&mut self, name: &AgentName, looks: Option<&RequestLooks>) -> Option<u32> {
        if let Some(known) = self.agents.get(name) {
            return Some(*known);
        }
        let number = u32::try_from(self.names.len()).ok().filter(|_| self.names.len() < AGENTS_MAX)?;
        self.names.push(name.clone());
        self.agents.insert(name.clone(), number);
        self.facts.push(AgentProfile {
            bare_family: looks.filter(|looks| !looks.prompted).map(|looks| looks.family),
            prompt: looks.filter(|looks| looks.prompted).map(|looks| looks.prompt),
            key: looks.map(|looks| looks.key).unwrap_or_default(),
        });
        Some(number)
    }
}

/// Marks that the wire cannot tell, and why.
fn doubt(told: &mut Attribution, why: &str) {
    told.ambiguous = true;
    told.confidence = told.confidence.min(0.5);
    told.evidence.push_str("; ");
    told.evidence.push_str(why);
}

fn attribution(agent: AgentName, source: Source, evidence: String, confidence: f32) -> Attribution {
    Attribution { agent, instance: 0, source, evidence, confidence, ambiguous: false }
}
