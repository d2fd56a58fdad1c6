//! A step is opened: which run, which agent, which numbers; and the record of it, before anything follows.

use std::{
    cell::OnceCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    arrival::{Hinted, Kind, ModelCall},
    error::{Interrupted, ProxyError},
    frames::FramedCall,
    headers, heavy, inject,
    listen::socket::Link,
    open_step::{OpenStep, ReplyWait},
    run::{ArrivedCall, Run},
    servers,
    shared::Proxy,
    speakers,
};
use crate::{
    identity::{AttributedCall, LedgerRequest, Placed, RunSource, Track, request_hash},
    plan::Decision,
    recording::Open,
    surface::{self, Conversation, Outline, Surface, UnreadCall, door},
    trajectory::{AgentName, Attribution, RecordedRelation, RunId, Source},
};

/// A step with its numbers fixed, the request as manipulators see it, and what was decided for an earlier attempt.
pub(super) type Opened = (Box<OpenStep>, Option<Conversation>, Option<Arc<Decision>>);

/// What identity reads of a request: not at all where nobody asks, and once at most.
struct Outlined<'a> {
    surface: Option<&'static dyn Surface>,
    /// Path and query.
    target: &'a str,
    body: &'a [u8],
    read: OnceCell<Option<Outline<'a>>>,
}

/// The run that a request belongs to.
struct RequestRun {
    run: RunId,
    source: RunSource,
    /// How lineage hears of the request, where that told the run.
    track: Option<Track>,
    /// The run that lineage has forgotten for this one.
    displaced: Option<RunId>,
}

impl<'a> Outlined<'a> {
    fn from_call(call: &'a ModelCall) -> Self {
        let target = call.parts.uri.path_and_query().map_or("/", |target| target.as_str());
        Self { surface: call.kind.surface(), target, body: &call.unpacked.plain, read: OnceCell::new() }
    }

    fn is_of_server(&self) -> bool {
        self.surface.is_some_and(|surface| surface::is_of_server(surface.name()))
    }

    fn read(&self) -> Option<&Outline<'a>> {
        self.read.get_or_init(|| door::outline_at(self.surface?, self.target, self.body).ok()).as_ref()
    }
}

impl Proxy {
    /// Fixes run, agent and numbers, and queues the opening record: before anything follows, it must be
    /// [written](OpenStep::written).
    pub(super) async fn open(&self, call: &ModelCall, link: &Arc<Link>) -> Result<Opened, Interrupted> {
        let stated = self.identity.declared(&call.hinted.envelope())?;
        // Who calls a tool is one thing, and who answers another: the step is the answerer's.
        let of_server = call.kind.surface().is_some_and(|surface| surface::is_of_server(surface.name()));
        let answerer = of_server.then(|| servers::answerer(call.parts.uri.path(), &call.unpacked.plain)).flatten();
        let called_by = stated.as_ref().filter(|_| of_server).map(|stated| stated.agent.clone());
        let declared = answerer.or(stated).or_else(|| FramedCall::continued(call));
        let bytes = call.unpacked.plain.len();
        let turn = heavy::turn(bytes).await;
        let outline = Outlined::from_call(call);
        let (outline, body_hash, asked, belongs) = heavy::run_heavy(bytes, move || {
            let body_hash = twox_hash::XxHash3_128::oneshot(&call.body);
            let asked = asked_hash(call, body_hash);
            let belongs = self.run_of(&call.hinted, &outline, asked);
            (outline, body_hash, asked, belongs)
        });
        let RequestRun { run, source, track, displaced } = belongs?;
        tracing::Span::current().record("run", run.as_str());
        drop(turn);
        if let Some(displaced) = displaced {
            Box::pin(self.runs.displace(displaced)).await;
        }
        let run = self.runs.get_with_room(&run, self.limits.room_wait).await?;
        if track.is_none() && source != RunSource::Only {
            run.named();
        }
        if let Some(sign) = run.stopped() {
            return Err(ProxyError::Watched { run: run.id.clone(), rule: sign.rule.clone(), step: sign.step }.into());
        }
        let _turn = heavy::turn(bytes).await;
        heavy::run_heavy(bytes, move || {
            let outline = if declared.is_none() { outline.read() } else { None };
            let asker = IdentifiedCall { run, source, track, declared, called_by, request_hash: asked, body_hash };
            self.identified(call, asker, outline, link)
        })
    }

    /// Who makes a call of a run, and the step that it is.
    fn identified(
        &self,
        call: &ModelCall,
        identified: IdentifiedCall,
        outline: Option<&Outline<'_>>,
        link: &Arc<Link>,
    ) -> Result<Opened, Interrupted> {
        let IdentifiedCall { run, source, track, declared, called_by, request_hash, body_hash } = identified;
        let request = LedgerRequest {
            body: request_hash,
            bytes: Some(&call.unpacked.plain).filter(|_| !call.streams),
            surface: call.kind.surface(),
            count: call.hinted.tries,
            at_us: run.elapsed_us(),
        };
        let AttributedCall { attribution, relation, number } =
            run.attribute(run.rules(&self.identity), outline, declared, &request);
        let attribution = match call.kind {
            Kind::Unread(row) => unread_attribution(attribution, row),
            _ if FramedCall::is_warm_up(call) => named_beside(attribution, "warm_up"),
            _ => attribution,
        };
        let attributed = AttributedCall { attribution, relation, number };
        let recalled = run.upstream.as_ref().and_then(|own| {
            let parts = &call.parts;
            let surface = surface::request_key(call.kind.name(), parts.method.as_str(), parts.uri.path());
            own.recall(&surface, &call.body, &attributed)
        });
        let asked = AttributedCall { attribution: recalled.unwrap_or(attributed.attribution), ..attributed };
        let names_speakers = speakers::may_be_named(&run, call.kind.surface(), &call.unpacked.plain);
        let conversation =
            inject::conversation(&run, call.kind.surface(), &asked.attribution, names_speakers, &call.unpacked)?;
        let (mut step, earlier) =
            PlacedCall { run, source, track, called_by, asked, body_hash }.numbered(call, link)?;
        step.names_speakers = names_speakers;
        Ok((step, conversation, earlier))
    }

    /// The run that a request names, else that of the server, else the one that lineage tells.
    fn run_of(&self, hinted: &Hinted, outline: &Outlined<'_>, body_hash: u128) -> Result<RequestRun, ProxyError> {
        let named = self.identity.run(&hinted.envelope(), || {
            let key = self.identity.hints.metadata_run.as_ref()?;
            outline.read()?.metadata.iter().find(|(name, _)| name == key).map(|(_, run)| run.to_string())
        })?;
        Ok(match (named, &self.default_run) {
            (Some((run, source)), _) => RequestRun { run, source, track: None, displaced: None },
            (None, Some(run)) => {
                RequestRun { run: run.clone(), source: RunSource::Server, track: None, displaced: None }
            }
            (None, None) if let Some(run) = &hinted.only_run => {
                RequestRun { run: run.clone(), source: RunSource::Only, track: None, displaced: None }
            }
            (None, None) if self.gate.instances > 1 => {
                return Err(ProxyError::NoRunOfSeveral { instances: self.gate.instances });
            }
            (None, None) if outline.is_of_server() => {
                let under_way = self.runs.under_way();
                let only = under_way.first().filter(|_| under_way.len() == 1).ok_or(ProxyError::NoRunOfMessage)?;
                RequestRun { run: only.id.clone(), source: RunSource::Only, track: None, displaced: None }
            }
            (None, None) => {
                let placed = self.identity.place(outline.read(), body_hash, || self.runs.fresh_id(body_hash));
                let (Placed { run, source, forgotten, .. }, track) = placed.ok_or(ProxyError::NoRun)?;
                RequestRun { run, source, track: Some(track), displaced: forgotten }
            }
        })
    }
}

/// Of which run a request is, and what is declared of who makes it.
struct IdentifiedCall {
    run: Arc<Run>,
    source: RunSource,
    track: Option<Track>,
    declared: Option<Attribution>,
    /// The agent that a tool is called for, where the request names it.
    called_by: Option<AgentName>,
    /// What tells that a request asks the same.
    request_hash: u128,
    body_hash: u128,
}

/// Of which run a request is, and who makes it.
struct PlacedCall {
    run: Arc<Run>,
    source: RunSource,
    track: Option<Track>,
    called_by: Option<AgentName>,
    asked: AttributedCall,
    /// Hash of the body.
    body_hash: u128,
}

/// Who makes a call that no surface reads: a helper of whom is known to ask, as the maker of embeddings is, so that such a call
/// takes no number from the agent's own and does not overlap with them.
fn unread_attribution(attribution: Attribution, row: &UnreadCall) -> Attribution {
    let declared = attribution.source != Source::Fallback;
    let evidence = if declared { attribution.evidence } else { "no surface reads the call".to_owned() };
    let attribution = Attribution { evidence, ..attribution };
    if row.counts_as_agents { attribution } else { named_beside(attribution, &row.name) }
}

/// A helper of the agent who makes a call that is none of its own.
fn named_beside(attribution: Attribution, name: &str) -> Attribution {
    let helper = AgentName::parse(&format!("{}/{name}", attribution.agent)).ok();
    Attribution { agent: helper.unwrap_or(attribution.agent), ..attribution }
}

/// What tells that a request asks the same as another. What streams through equals nothing.
fn asked_hash(call: &ModelCall, body_hash: u128) -> u128 {
    static STREAMED: AtomicU64 = AtomicU64::new(0);
    if call.streams {
        return u128::from(STREAMED.fetch_add(1, Ordering::Relaxed)) ^ (u128::MAX >> 1);
    }
    request_hash(call.kind.name(), call.parts.method.as_str(), call.parts.uri.path(), body_hash)
}

impl PlacedCall {
    /// Fixes the numbers of the step, and queues its record.
    fn numbered(
        self,
        call: &ModelCall,
        link: &Arc<Link>,
    ) -> Result<(Box<OpenStep>, Option<Arc<Decision>>), Interrupted> {
        let Self { run, source, track, called_by, asked, body_hash } = self;
        let opening_run = Arc::clone(&run);
        let opening = opening_run.opening();
        let at_us = run.touch();
        let credential = headers::credential(&call.parts.headers);
        let ArrivedCall { numbers, relates, decision: earlier } = run.arrive(&asked, credential);
        let relates = RecordedRelation { called_by, ..relates };
        let awaited = ReplyWait { received: call.received, patience: headers::patience(&call.parts.headers) };
        let mut step = OpenStep::new(run, numbers, asked, call.kind.surface(), awaited, Arc::clone(link));
        step.follow(track);
        let target = call.parts.uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
        let open = Open {
            step: numbers.step,
            call: numbers.call,
            attempt: numbers.attempt,
            attribution: &step.attribution,
            overlapping: numbers.overlapping,
            relates: &relates,
            run_source: source.name(),
            surface: call.kind.name(),
            method: call.parts.method.as_str(),
            path: target,
            headers: &headers::pairs(&call.parts.headers),
            body: Some(&call.body).filter(|_| !call.streams),
            body_hash: Some(body_hash).filter(|_| !call.streams),
            at_us,
            wall: step.run.recorder.clock().wall(),
        };
        let opened = heavy::run_heavy(call.body.len(), || step.run.recorder.queue_open(open));
        drop(opening);
        // Where nothing was recorded, nothing was sent: there is no step to close.
        let queued = opened.inspect_err(|_| step.abandon())?;
        step.queued(queued);
        step.tell_opened(target, &call.unpacked.plain);
        Ok((step, earlier))
    }
}
