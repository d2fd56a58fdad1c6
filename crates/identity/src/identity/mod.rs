//! Which run, which agent: rules in order of trust, each decision with the evidence it rests on.
//!
//! First what the user declared: path, header, API key, mapped metadata, roster, mapped model alias. Then names that
//! frameworks write on the wire ([`Dialects`]), then what a request looks like ([`RequestLooks`]): a stable `agent-<8 hex>`,
//! never a guessed name. [`Speakers`] holds what one run has shown. Nothing here does IO; the proxy hands in what it saw.

mod attributed;
mod dialect;
mod exchanges;
mod fingerprint;
mod observed;
mod hint;
mod history;
mod instances;
mod labels;
mod late;
mod late_names;
mod ledger;
mod lineage;
mod marked;
mod mask;
mod near;
mod origins;
mod owners;
mod placed;
mod quoted;
mod recent;
mod reference;
mod roster;
mod sieve;
mod speakers;
mod suggest;
mod templates;
mod trails;
mod voices;
mod votes;
mod words;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

pub use attributed::{AttributedCall, EndedCall};
pub use dialect::{DialectError, Dialects};
pub use fingerprint::{Mark, RequestLooks};
pub use hint::{Hints, HintsError, KeyEntry, Routed, route};
pub use late::LateStep;
pub use ledger::{CallRelation, LedgerNumber};
pub use lineage::Lineage;
pub use observed::{ObservedRun, contested, fitting_rules, looks, try_roster};
pub use placed::Placed;
pub use reference::{LedgerRequest, ReferenceCalls, RetryCount, request_hash, step_hash};
pub use roster::{Roster, RosterError, RosterRule, SpeakingOrder};
pub use speakers::Speakers;
pub use suggest::{Suggestions, calls, source_name};
pub use votes::{ObservedStep, Proposal, hands_over, helper_role, is_helper, propose};

use crate::{
    surface::{Outline, Reply},
    trajectory::{AgentName, Attribution, IdError, RunId, Source, StepIndex},
};

/// How a run was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunSource {
    /// The path prefix `/r/<run>`.
    Path,
    /// The run header.
    Header,
    /// The API key.
    Key,
    /// A `metadata` entry.
    Metadata,
    /// Nothing in the request: the server's own run.
    Server,
    /// Lineage: the request holds an id that was served in the run.
    Ids,
    /// Lineage: the same body failed in the run.
    Retry,
    /// Lineage: the request quotes an answer of the run.
    Quotes,
    /// Lineage: the request holds the question that the run opened with.
    Opening,
    /// Lineage: it is the one run that waits for a tool's result.
    Pending,
    /// Nothing in the request, which nobody reads: it is the one run under way.
    Only,
    /// Lineage: nothing links the request to a run under way.
    New,
}

impl RunSource {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            RunSource::Path => "path",
            RunSource::Header => "header",
            RunSource::Key => "key",
            RunSource::Metadata => "metadata",
            RunSource::Server => "server",
            RunSource::Ids => "ids",
            RunSource::Retry => "retry",
            RunSource::Quotes => "quotes",
            RunSource::Opening => "opening",
            RunSource::Pending => "pending",
            RunSource::Only => "only",
            RunSource::New => "new",
        }
    }

    /// The one of lineage's that has this name in records, if one has.
    pub fn of_lineage(name: &str) -> Option<Self> {
        use RunSource::{Ids, New, Opening, Pending, Quotes, Retry};
        [Ids, Retry, Quotes, Opening, Pending, New].into_iter().find(|source| source.name() == name)
    }
}

/// What a request says outside its body.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// The agent in the path, if any.
    pub path_agent: Option<&'a str>,
    /// The run in the path, if any.
    pub path_run: Option<&'a str>,
    /// The agent header's value.
    pub header_agent: Option<&'a str>,
    /// The run header's value.
    pub header_run: Option<&'a str>,
    /// The API key, without `Bearer`.
    pub key: Option<&'a str>,
}

/// The rules of a server.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// Names of headers and fields that carry hints.
    pub hints: Hints,
    /// What the user declared of agents without hints.
    pub roster: Roster,
    /// How frameworks write names into requests.
    pub dialects: Dialects,
    /// Tells the runs of requests that name none; without it they are the server's own run's, or refused.
    pub lineage: Option<Arc<Mutex<Lineage>>>,
}

/// A request whose run lineage told, until it ends.
#[derive(Debug, Clone)]
pub struct Track {
    lineage: Arc<Mutex<Lineage>>,
    exchange: u64,
}

impl Track {
    /// The request has its numbers, and is known to be somebody's.
    pub fn opened(&self, step: StepIndex, attempt: u32, attribution: &Attribution) {
        locked(&self.lineage).opened(self.exchange, step, attempt, attribution);
    }

    /// The request has ended; see [`Lineage::served`].
    pub fn ended(&self, reply: Option<&Reply>, failed: bool) {
        locked(&self.lineage).served(self.exchange, reply, failed);
    }
}

fn locked(lineage: &Mutex<Lineage>) -> std::sync::MutexGuard<'_, Lineage> {
    lineage.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Identity {
    /// The run that a request names. `outline` is asked only when nothing outside the body tells.
    ///
    /// # Errors
    /// [`IdError`] when a named run is no run id.
    pub fn run(
        &self,
        envelope: &Envelope<'_>,
        outline: impl FnOnce() -> Option<String>,
    ) -> Result<Option<(RunId, RunSource)>, IdError> {
        let outside = [
            (envelope.path_run.map(str::to_owned), RunSource::Path),
            (envelope.header_run.map(str::to_owned), RunSource::Header),
            (envelope.key.and_then(|key| self.hints.from_key(key).run), RunSource::Key),
        ];
        let named = outside.into_iter().find_map(|(run, source)| run.map(|run| (run, source)));
        let named = match (named, &self.hints.metadata_run) {
            (None, Some(_)) => outline().map(|run| (run, RunSource::Metadata)),
            (named, _) => named,
        };
        named.map(|(run, source)| Ok((RunId::parse(&run)?, source))).transpose()
    }

    /// The run of a request that names none, by lineage; `None` where lineage is off. `body`: hash of its body;
    /// `new_run`: makes the id of a new run.
    pub fn place(
        &self,
        outline: Option<&Outline<'_>>,
        body: u128,
        new_run: impl FnOnce() -> RunId,
    ) -> Option<(Placed, Track)> {
        let lineage = self.lineage.as_ref()?;
        let nothing = Outline::default();
        let outline = outline.unwrap_or(&nothing);
        let placed = locked(lineage).place(outline, body, new_run);
        let track = Track { lineage: Arc::clone(lineage), exchange: placed.exchange };
        Some((placed, track))
    }

    /// Takes in a request that lineage placed before, as it was recorded; `None` where lineage is off. To be called in the order of
    /// the record, and then told what became of it.
    pub fn recall(&self, outline: &Outline<'_>, body: u128, run: RunId, source: RunSource) -> Option<Track> {
        let lineage = self.lineage.as_ref()?;
        let exchange = locked(lineage).recall(outline, body, run, source).exchange;
        Some(Track { lineage: Arc::clone(lineage), exchange })
    }

    /// Places nothing more in runs that are about to end: a request that goes on from one opens a new one.
    pub fn leave(&self, ending: &[RunId]) {
        if let Some(lineage) = &self.lineage {
            locked(lineage).leave(&ending.iter().collect());
        }
    }

    /// Where all that is known by now says otherwise than was said on arrival, for runs that have ended; they are
    /// forgotten.
    pub fn late_names(&self, ended: &[RunId]) -> BTreeMap<RunId, Vec<LateStep>> {
        let Some(lineage) = self.lineage.as_ref().filter(|_| !ended.is_empty()) else { return BTreeMap::new() };
        let ended: HashSet<&RunId> = ended.iter().collect();
        // Requests that arrive meanwhile do not wait.
        let exchanges = locked(lineage).exchanges.clone();
        let mut late = late::look_again(&exchanges);
        late.retain(|run, _| ended.contains(run));
        locked(lineage).forget(&ended);
        late
    }

    /// The agent that a request names outside its body.
    ///
    /// # Errors
    /// [`IdError`] when a named agent is no agent name.
    pub fn declared(&self, envelope: &Envelope<'_>) -> Result<Option<Attribution>, IdError> {
        let declared = [
            (envelope.path_agent.map(str::to_owned), Source::Path, "path /a/"),
            (envelope.header_agent.map(str::to_owned), Source::Header, self.hints.agent_header.as_str()),
            (envelope.key.and_then(|key| self.hints.from_key(key).agent), Source::Key, "API key"),
        ];
        let found = declared.into_iter().find_map(|(agent, source, place)| Some((agent?, source, place)));
        found.map(|(agent, source, place)| declare(&agent, source, place)).transpose()
    }

    /// Whether the user declared nothing about bodies.
    fn says_nothing(&self) -> bool {
        let Hints { metadata_agent, user_is_agent, .. } = &self.hints;
        metadata_agent.is_none() && !user_is_agent && !self.hints.uses_models() && self.roster.is_empty()
    }

    /// Whether what the user declared is about what a request repeats from call to call, so that one look is enough.
    fn asks_only_for_what_stands(&self) -> bool {
        self.hints.metadata_agent.is_none() && !self.hints.user_is_agent && self.roster.asks_only_for_what_stands()
    }

    /// The agent that the user's own declarations find in the body: mapped fields, the roster, a mapped model alias.
    /// They outrank every pattern of ours. `key`: what the request looks like.
    fn declared_agent(&self, outline: &Outline<'_>, key: u32) -> Option<Attribution> {
        let mapped = self.hints.metadata_agent.iter().find_map(|key| {
            let (_, agent) = outline.metadata.iter().find(|(name, _)| name == key)?;
            declare(agent, Source::Metadata, &format!("metadata.{key}")).ok()
        });
        let user = || outline.user.as_ref().filter(|_| self.hints.user_is_agent);
        let mapped = mapped.or_else(|| declare(user()?, Source::Metadata, "user").ok());
        let by_model = || declare(&self.hints.from_model(&outline.model)?, Source::Model, "model").ok();
        mapped.or_else(|| self.roster.identify(outline, key)).or_else(by_model)
    }
}

fn declare(agent: &str, source: Source, place: &str) -> Result<Attribution, IdError> {
    let agent = AgentName::parse(agent)?;
    Ok(Attribution { agent, instance: 0, source, evidence: place.to_owned(), confidence: 1.0, ambiguous: false })
}

fn fallback(key: u32, evidence: &str) -> Attribution {
    Attribution {
        agent: AgentName::unnamed(key),
        instance: 0,
        source: Source::Fallback,
        evidence: evidence.to_owned(),
        confidence: 0.0,
        ambiguous: false,
    }
}

#[cfg(test)]
mod story_tests;

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Envelope<'static> =
        Envelope { path_agent: None, path_run: None, header_agent: None, header_run: None, key: None };

    fn identity(config: &str) -> Identity {
        #[derive(serde::Deserialize)]
        struct File {
            #[serde(default)]
            hints: Hints,
            #[serde(default)]
            agent: Vec<RosterRule>,
        }
        let file: File = toml::from_str(config).expect("a config");
        file.hints.check().expect("good hints");
        Identity { hints: file.hints, roster: Roster::new(file.agent).expect("a good roster"), ..Identity::default() }
    }

    #[test]
    fn the_first_rule_in_order_of_trust_decides() {
        let identity = identity(
            r#"
            [hints]
            key = "sk-(?<run>run-[a-z]+)\\.(?<agent>[a-z]+)"
            metadata_run = "run"
            metadata_agent = "agent"
            user_is_agent = true
            model = ".+:(?<agent>[a-z]+)"
            [[agent]]
            name = "roster"
            system_contains = "You plan"
            "#,
        );
        let outline = Outline {
            model: "gpt:alias".into(),
            prompts: vec!["You plan things".into()],
            metadata: vec![("agent".into(), "meta".into())],
            user: Some("user".into()),
            ..Outline::default()
        };
        let all = Envelope {
            path_agent: Some("p"),
            path_run: Some("rp"),
            header_agent: Some("h"),
            header_run: Some("rh"),
            key: Some("sk-run-x.k"),
        };
        let declared =
            |envelope: Envelope<'_>| identity.declared(&envelope).expect("good").map(|a| a.agent.to_string());
        assert_eq!(declared(all).as_deref(), Some("p"));
        assert_eq!(declared(Envelope { path_agent: None, ..all }).as_deref(), Some("h"));
        assert_eq!(declared(Envelope { path_agent: None, header_agent: None, ..all }).as_deref(), Some("k"));
        assert_eq!(declared(NOTHING), None);
        let run = |envelope: Envelope<'_>| {
            identity.run(&envelope, || Some("rm".to_owned())).expect("good").map(|(r, _)| r.to_string())
        };
        assert_eq!(run(all).as_deref(), Some("rp"));
        assert_eq!(run(Envelope { path_run: None, ..all }).as_deref(), Some("rh"));
        assert_eq!(run(Envelope { path_run: None, header_run: None, ..all }).as_deref(), Some("run-x"));
        assert_eq!(run(NOTHING).as_deref(), Some("rm"));
        assert!(identity.run(&Envelope { path_run: Some("../x"), ..NOTHING }, || None).is_err());

        let told = |outline: &Outline<'_>| {
            let told =
                Speakers::default().attribute(&identity, Some(outline), None, &LedgerRequest::from_hash(0)).attribution;
            (told.agent.to_string(), told.source)
        };
        assert_eq!(told(&outline), ("meta".to_owned(), Source::Metadata));
        let outline = Outline { metadata: Vec::new(), ..outline };
        assert_eq!(told(&outline), ("user".to_owned(), Source::Metadata));
        let outline = Outline { user: None, ..outline };
        assert_eq!(told(&outline), ("roster".to_owned(), Source::Roster));
        let outline = Outline { prompts: vec!["other".into()], ..outline };
        assert_eq!(told(&outline), ("alias".to_owned(), Source::Model));
        let outline = Outline { model: "gpt".into(), ..outline };
        let (name, source) = told(&outline);
        assert!(name.starts_with("agent-") && name.len() == 14 && source == Source::Fingerprint, "{name}");
        assert_eq!(told(&outline).0, name, "the same request, the same name");
    }
}
