//! Who has spoken in one run: what names an agent without hints, and which of several equal agents it is.
//!
//! Fed with each request on arrival and each answer on completion; everything it decides follows from the rules, the
//! request and the run's earlier exchanges. Bounded: what it forgets makes it less sure, never wrong.

use std::{collections::HashSet, sync::Arc};

use foldhash::HashMap;
use twox_hash::XxHash3_64;

use super::{
    Identity,
    dialect::Told,
    fingerprint::{Looks, Mark, asked, fold, is_fresh, join, mark_sentences},
    instances::Instances,
    recent::Recent,
};
use crate::{
    surface::{Outline, Reply, Role, Said},
    trajectory::{AgentName, Attribution, Source},
};

/// Answers and tool calls whose speaker a run remembers.
const SERVED_MAX: usize = 16_384;
/// Prompts whose looks a run remembers.
const PROMPTS_MAX: usize = 1024;
/// Agents that a run remembers; one more is known by its name alone.
const AGENTS_MAX: usize = 16_384;
/// Requests under way that a run remembers.
const UNDER_WAY_MAX: usize = 4096;
/// Shortest argument of a tool call that is remembered as somebody's words, in bytes.
const ARGUMENT_MIN: usize = 8;
/// Messages of a request that are looked at for an own earlier answer, latest first.
const HISTORY_MAX: usize = 64;
/// Messages of role assistant whose marks a run remembers.
const OWN_MAX: usize = 4096;
/// Tool calls of one message that are looked at.
const CALLS_MAX: usize = 64;

/// What one run has shown of its agents.
#[derive(Debug)]
pub struct Speakers {
    opening: Option<HashSet<Mark>>,
    /// What a request with this prompt, these names and tools looks like.
    seen: Recent<Mark, Arc<(Looks, Option<Told>)>>,
    /// What the user's own words say of a request with this prompt, these names, tools and model.
    told: Recent<Mark, Option<Attribution>>,
    served: Recent<Mark, Served>,
    /// What messages of role assistant say, by the marks of their texts and calls.
    own: Recent<Mark, Box<[Mark]>>,
    instances: Instances,
    /// What the requests under way ask, by the hash of their bodies.
    under_way: Recent<u128, (u32, Mark)>,
    names: Vec<AgentName>,
    agents: HashMap<AgentName, u32>,
    known: Vec<Agent>,
}

/// An agent, or an instance of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Who {
    agent: u32,
    instance: u32,
}

/// Whose words these are.
#[derive(Debug, Clone, Copy)]
enum Served {
    One(Who),
    /// Several have said the same.
    Several,
}

/// What is known of an agent beside its name.
#[derive(Debug, Clone, Default)]
struct Agent {
    /// Tools and format, where it has no prompt.
    bare_family: Option<Mark>,
    /// Its prompt, where it has one.
    prompt: Option<Mark>,
}

impl Default for Speakers {
    fn default() -> Self {
        Self {
            opening: None,
            seen: Recent::new(PROMPTS_MAX),
            told: Recent::new(PROMPTS_MAX),
            served: Recent::new(SERVED_MAX),
            own: Recent::new(OWN_MAX),
            instances: Instances::default(),
            under_way: Recent::new(UNDER_WAY_MAX),
            names: Vec::new(),
            agents: HashMap::default(),
            known: Vec::new(),
        }
    }
}

impl Speakers {
    /// Who makes a request. `declared`: what the request's envelope names; the outline is then not looked at. `body`:
    /// hash of its body; `retry`: the client says that it tries again. Never fails: what no rule knows gets a stable
    /// name of its own.
    pub fn attribute(
        &mut self,
        rules: &Identity,
        outline: Option<&Outline<'_>>,
        declared: Option<Attribution>,
        body: u128,
        retry: bool,
    ) -> Attribution {
        if let Some(declared) = declared {
            // Its texts say nothing that is not known.
            self.agent(&declared.agent, None);
            return declared;
        }
        let Some(outline) = outline else { return super::fallback(0, "the body could not be read") };
        self.open(outline);
        // Looks cost more than all the rest together: nobody looks where the user's own words decide.
        let key = if rules.roster.asks_for_looks() { self.looks(rules, outline).0.key } else { 0 };
        let mut attribution = if let Some(attribution) = self.told(rules, outline, key) {
            attribution
        } else {
            let seen = self.looks(rules, outline);
            self.name(outline, &seen.0, seen.1.as_ref())
        };
        let splits = match attribution.source {
            Source::Metadata | Source::Model => false,
            Source::Roster => rules.roster.has_instances(&attribution.agent),
            _ => true,
        };
        let known = self.agents.get(&attribution.agent).copied();
        let agent = known.or_else(|| {
            let seen = self.looks(rules, outline);
            self.agent(&attribution.agent, Some(&seen.0))
        });
        if let (Some(agent), true) = (agent, splits) {
            self.instance(agent, outline, body, retry, &mut attribution);
        }
        attribution
    }

    /// A request of `attribution` has ended. `reply`: what was delivered, if it is an answer that an agent may quote.
    pub fn ended(&mut self, attribution: &Attribution, body: u128, reply: Option<&Reply>, failed: bool) {
        let Some(agent) = self.agents.get(&attribution.agent).copied() else { return };
        if let Some((agent, question)) = self.under_way.get(&body).copied() {
            self.instances.end(agent, question, failed);
        }
        let who = Who { agent, instance: attribution.instance };
        for answer in reply.into_iter().flat_map(|reply| &reply.answers) {
            let text = answer.message.text_to_read();
            self.serve(text_mark(&text), who);
            for call in &answer.message.tool_calls {
                self.serve(id_mark(&call.id), who);
                for text in strings(&call.arguments) {
                    self.serve(text_mark(&text), who);
                }
            }
        }
    }

    /// Takes in a recorded step, so that a run that goes on after a restart knows its agents.
    pub fn recall(&mut self, outline: &Outline<'_>, attribution: &Attribution, reply: Option<&Reply>) {
        if matches!(attribution.source, Source::Path | Source::Header | Source::Key) {
            self.agent(&attribution.agent, None);
        } else {
            self.open(outline);
            let looks = Looks::of(outline, self.opening.get_or_insert_default());
            if let Some(agent) = self.agent(&attribution.agent, Some(&looks)) {
                self.instances.recall(agent, asked(outline), attribution.instance);
            }
        }
        self.ended(attribution, 0, reply, false);
    }

    /// Notes what the run's first request asks.
    fn open(&mut self, outline: &Outline<'_>) {
        self.opening.get_or_insert_with(|| {
            let mut marks = Vec::new();
            mark_sentences(&outline.first_user().unwrap_or_default(), &mut marks);
            marks.into_iter().collect()
        });
    }

    /// Entries held beside one an agent, and the most that there can be, for tests of the bounds.
    pub fn size(&self) -> (usize, usize) {
        let most = 2 * PROMPTS_MAX + SERVED_MAX + OWN_MAX + UNDER_WAY_MAX + super::instances::ASKED_MAX;
        let asked = self.instances.len() + self.under_way.len();
        (self.seen.len() + self.told.len() + self.served.len() + self.own.len() + asked, most)
    }

    fn serve(&mut self, mark: Option<Mark>, who: Who) {
        let Some(mark) = mark else { return };
        let served = self.served.entry(mark, || Served::One(who));
        if !matches!(served, Served::One(known) if *known == who) {
            *served = Served::Several;
        }
    }

    /// What the user's own words say of a request: looked for once where it is the same for each call.
    fn told(&mut self, rules: &Identity, outline: &Outline<'_>, key: u32) -> Option<Attribution> {
        if rules.says_nothing() {
            return None;
        }
        if !rules.asks_only_for_what_stands() {
            return rules.told(outline, key);
        }
        let mut marks: Vec<Mark> = vec![u64::from(key), XxHash3_64::oneshot(outline.model.as_bytes())];
        for texts in [&outline.prompts, &outline.names, &outline.tools] {
            marks.push(texts.len() as u64);
            marks.extend(texts.iter().map(|text| XxHash3_64::oneshot(text.as_bytes())));
        }
        self.told.entry(join(&marks), || rules.told(outline, key)).clone()
    }

    /// The looks of a request, and what a dialect tells of it: worked out once for what both follow from.
    fn looks(&mut self, rules: &Identity, outline: &Outline<'_>) -> Arc<(Looks, Option<Told>)> {
        let opening = self.opening.get_or_insert_default();
        let mut marks = vec![Looks::known_by(outline)];
        marks.extend(outline.names.iter().map(|text| XxHash3_64::oneshot(text.as_bytes())));
        let user = outline.said.iter().rev().find(|said| said.role == Role::User);
        marks.push(Mark::from(user.is_some()));
        if outline.prompts.is_empty() {
            // Only then a dialect looks at who asks, and whether anybody has answered yet.
            marks.push(Mark::from(is_fresh(outline)));
            marks.extend(user.and_then(|user| user.name.as_ref()).map(|name| XxHash3_64::oneshot(name.as_bytes())));
        }
        let work_out = || Arc::new((Looks::of(outline, opening), rules.dialects.tell(outline)));
        Arc::clone(self.seen.entry(join(&marks), work_out))
    }

    /// The name, by the first rule of ours that knows one.
    fn name(&mut self, outline: &Outline<'_>, looks: &Looks, told: Option<&Told>) -> Attribution {
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
        let alike = |known: &Self, who: Who| {
            known.known.get(who.agent as usize).and_then(|agent| agent.bare_family) == Some(looks.family)
        };
        if let Some((who, evidence)) = self.own_words(outline, alike)
            && let Some(name) = self.names.get(who.agent as usize)
        {
            return attribution(name.clone(), Source::Continuation, evidence.to_owned(), 0.9);
        }
        let frame = outline.first_user().is_some() || outline.tool_text.len() > 2;
        if frame {
            let evidence = "no system prompt: what the first user text says beside the task, tools, format";
            return attribution(AgentName::unnamed(looks.key), Source::Frame, evidence.to_owned(), 0.5);
        }
        super::fallback(looks.key, "no system prompt and no user text")
    }

    /// Vectors are asked for on somebody's behalf: of who just called a tool with these words, if anybody did.
    fn embedding(&self, outline: &Outline<'_>) -> Attribution {
        let mut asked = outline.said.iter().filter_map(|said| self.served.get(&text_mark(&said.text())?));
        let owner = asked.find_map(|served| match served {
            Served::One(who) => self.names.get(who.agent as usize),
            Served::Several => None,
        });
        let helper = |base: &AgentName| AgentName::parse(&format!("{base}/embedding")).unwrap_or_else(|_| base.clone());
        if let Some(owner) = owner {
            return attribution(
                helper(owner),
                Source::Continuation,
                "embeds what its tool call asks for".to_owned(),
                0.8,
            );
        }
        let nobody = AgentName::unnamed(fold(XxHash3_64::oneshot(outline.model.as_bytes())));
        attribution(helper(&nobody), Source::Fallback, "embeds what nobody asked for".to_owned(), 0.0)
    }

    /// By the sentences of the prompt and the tools. Some frameworks take the tools away for the last word of a tool
    /// loop: who answers an agent's tool calls under its very prompt is that agent.
    fn by_looks(&self, outline: &Outline<'_>, looks: &Looks) -> Attribution {
        if outline.tools.is_empty() {
            let waiting = outline.said.iter().rev().take_while(|said| said.role == Role::Tool);
            let owners = waiting.filter_map(|said| self.served.get(&id_mark(said.answers_call.as_deref()?)?));
            for owner in owners {
                let Served::One(who) = owner else { continue };
                let same = self.known.get(who.agent as usize).is_some_and(|agent| agent.prompt == Some(looks.prompt));
                if let (true, Some(name)) = (same, self.names.get(who.agent as usize)) {
                    let evidence = "answers this agent's tool calls under its prompt".to_owned();
                    return attribution(name.clone(), Source::Fingerprint, evidence, 0.9);
                }
            }
        }
        let evidence =
            format!("{} sentences of the system prompt, {} tools", looks.sentences.len(), outline.tools.len());
        attribution(AgentName::unnamed(looks.key), Source::Fingerprint, evidence, 0.9)
    }

    /// The number of a name, within the bound; new ones get the looks that they were first seen with, if any were read.
    fn agent(&mut self, name: &AgentName, looks: Option<&Looks>) -> Option<u32> {
        if let Some(known) = self.agents.get(name) {
            return Some(*known);
        }
        let number = u32::try_from(self.names.len()).ok().filter(|_| self.names.len() < AGENTS_MAX)?;
        self.names.push(name.clone());
        self.agents.insert(name.clone(), number);
        self.known.push(Agent {
            bare_family: looks.filter(|looks| !looks.prompted).map(|looks| looks.family),
            prompt: looks.filter(|looks| looks.prompted).map(|looks| looks.prompt),
        });
        Some(number)
    }

    /// Who said the latest of the request's own earlier words, among those who could have made this request.
    fn own_words(&mut self, outline: &Outline<'_>, could: impl Fn(&Self, Who) -> bool) -> Option<(Who, &'static str)> {
        for said in outline.said.iter().rev().take(HISTORY_MAX) {
            if said.role == Role::Assistant {
                self.own.entry(said.mark(), || own_marks(said));
            }
            let found = |marks: &[Mark]| {
                let owners = marks.iter().filter_map(|mark| match self.served.get(mark)? {
                    Served::One(who) => Some(*who),
                    Served::Several => None,
                });
                owners.into_iter().find(|who| could(self, *who))
            };
            let (who, evidence) = match said.role {
                Role::Assistant => {
                    (self.own.get(&said.mark()).and_then(|marks| found(marks)), "goes on from its own answer")
                }
                Role::Tool => {
                    let call = said.answers_call.as_deref().and_then(id_mark);
                    (found(call.as_slice()), "answers its own tool call")
                }
                _ => continue,
            };
            if let Some(who) = who {
                return Some((who, evidence));
            }
        }
        None
    }

    /// Which of several equal agents it is.
    fn instance(&mut self, agent: u32, outline: &Outline<'_>, body: u128, retry: bool, told: &mut Attribution) {
        let question = asked(outline);
        let own = self.own_words(outline, |_, who| who.agent == agent).map(|(who, _)| who.instance);
        let instance = self.instances.ask(agent, question, own, retry);
        self.under_way.entry(body, || (agent, question));
        told.instance = instance.number;
        if instance.ambiguous {
            told.ambiguous = true;
            told.confidence = told.confidence.min(0.5);
            told.evidence.push_str("; several equal agents, which one is told by order alone");
        }
    }
}

/// The marks of what a message of role assistant says: its text, its tool calls' ids.
fn own_marks(said: &Said<'_>) -> Box<[Mark]> {
    let mut marks: Vec<Mark> = text_mark(&said.text()).into_iter().collect();
    if said.has_calls() {
        marks.extend(said.calls().iter().take(CALLS_MAX).filter_map(|call| id_mark(&call.id)));
    }
    marks.into()
}

/// The texts among a tool call's arguments: what a tool may be asked next, for example to be found by.
fn strings(arguments: &str) -> Vec<String> {
    let arguments = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).unwrap_or_default();
    let texts = arguments.into_iter().filter_map(|(_, value)| match value {
        serde_json::Value::String(text) if text.len() >= ARGUMENT_MIN => Some(text),
        _ => None,
    });
    texts.collect()
}

/// The mark of a text; none of an empty one.
pub(super) fn text_mark(text: &str) -> Option<Mark> {
    let text = text.trim();
    (!text.is_empty()).then(|| XxHash3_64::oneshot(text.as_bytes()))
}

/// The mark of an id; none of an empty one.
pub(super) fn id_mark(id: &str) -> Option<Mark> {
    (!id.is_empty()).then(|| XxHash3_64::oneshot(id.as_bytes()) ^ 1)
}

fn attribution(agent: AgentName, source: Source, evidence: String, confidence: f32) -> Attribution {
    Attribution { agent, instance: 0, source, evidence, confidence, ambiguous: false }
}
