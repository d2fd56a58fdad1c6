//! Servers of tools, and peers: which there are, and who is said to answer.
//!
//! A server is named by the configuration alone: a request selects one by its path, `/mcp/<name>` or `/a2a/<name>`, and never says
//! where it is.

use std::{collections::BTreeMap, sync::Arc};

use hyper::{
    HeaderMap, Request,
    header::{HeaderName, HeaderValue},
};

use super::{
    attached,
    error::ProxyError,
    headers,
    upstream::{BackendAnswering, SentBody, Upstream},
};
use crate::{
    identity::AttributedCall,
    surface::{self, ServerPath},
    trajectory::{AgentName, Attribution, Source, Step},
};

/// Before the name of an argument in that of the header that repeats it (MCP 2026-07-28).
const MIRROR: &str = "mcp-param-";

/// The servers of tools and the peers that requests may select: where the path of each begins, `/mcp/calc`, and its address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedServers(BTreeMap<String, String>);

impl NamedServers {
    /// These, by where their paths begin.
    pub fn new(servers: BTreeMap<String, String>) -> Self {
        Self(servers)
    }

    /// Those that the steps of a run are messages to; nobody asks where they were.
    pub fn of_steps<'s>(steps: impl IntoIterator<Item = &'s Step>) -> Self {
        let places = steps.into_iter().filter_map(|step| ServerPath::of_path(step.path.split('?').next()?));
        Self(places.map(|server| (server.place.to_owned(), String::new())).collect())
    }

    /// Where the path of each begins, in order.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The address of the server that a path selects.
    pub(super) fn address(&self, path: &str) -> Option<&str> {
        self.0.get(ServerPath::of_path(path)?.place).map(String::as_str).filter(|url| !url.is_empty())
    }

    /// Whether a path selects one.
    ///
    /// # Errors
    /// [`ProxyError::NoServer`]: it names one that there is not.
    pub(super) fn selects(&self, path: &str) -> Result<bool, ProxyError> {
        let Some(server) = ServerPath::of_path(path) else { return Ok(false) };
        let mount = server.surface.mount().unwrap_or_default();
        let mut known = self.places().filter_map(|place| place.strip_prefix(mount)).peekable();
        if known.peek().is_none() || self.0.contains_key(server.place) {
            return Ok(known.peek().is_some());
        }
        let known = known.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(ProxyError::NoServer { table: mount.trim_matches('/').to_owned(), name: server.name.to_owned(), known })
    }
}

/// An upstream of models, and the servers beside it.
#[derive(Debug)]
pub struct WithServers {
    models: Arc<dyn Upstream>,
    servers: BTreeMap<String, Arc<dyn Upstream>>,
}

impl WithServers {
    /// This upstream for all but the paths that begin so.
    pub fn new(models: Arc<dyn Upstream>, servers: BTreeMap<String, Arc<dyn Upstream>>) -> Self {
        Self { models, servers }
    }
}

impl Upstream for WithServers {
    fn name(&self) -> &str {
        self.models.name()
    }

    fn send(&self, mut request: Request<SentBody>) -> BackendAnswering<'_> {
        if let Some(server) = attached::carried(&mut request) {
            return server.send(request);
        }
        let server = ServerPath::of_path(request.uri().path()).and_then(|server| self.servers.get(server.place));
        server.unwrap_or(&self.models).send(request)
    }

    fn opens_sockets(&self) -> bool {
        self.models.opens_sockets()
    }

    fn recall(&self, surface: &str, asked: &[u8], told: &AttributedCall) -> Option<Attribution> {
        self.models.recall(surface, asked, told)
    }
}

/// Where the path of the server begins that a path names: `/a2a/weather`.
pub(super) fn place(path: &str) -> Option<&str> {
    ServerPath::of_path(path).map(|server| server.place)
}

/// Who answers a message: the tool that it calls, or the server itself.
pub(super) fn answerer(path: &str, body: &[u8]) -> Option<Attribution> {
    let ServerPath { surface, place, name } = ServerPath::of_path(path)?;
    let called = surface.called(body);
    let says = if called.is_some() { ", the message names the tool" } else { "" };
    let place = place.trim_start_matches('/');
    let tool = called.and_then(|tool| AgentName::parse(&format!("{place}/{tool}")).ok());
    let agent = tool.or_else(|| AgentName::parse(place).ok())?;
    let evidence = format!("the path names the server `{name}`{says}");
    Some(Attribution { agent, instance: 0, source: Source::Path, evidence, confidence: 1.0, ambiguous: false })
}

/// Says an edited argument in the header that repeats it, too.
pub(super) fn mirror_arguments(headers: &mut HeaderMap, before: &[u8], after: &[u8]) {
    let mirrors: Vec<HeaderName> = headers.keys().filter(|name| name.as_str().starts_with(MIRROR)).cloned().collect();
    if mirrors.is_empty() {
        return;
    }
    let edited = surface::edited_arguments(before, after);
    for header in mirrors {
        let name = header.as_str().strip_prefix(MIRROR).unwrap_or_default();
        let value = headers::text(headers, &header).and_then(|value| surface::mirrored(&edited, name, value));
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(header, value);
        }
    }
}
