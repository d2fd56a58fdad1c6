//! Servers of tools: which there are, who is said to answer, and the requests to them that are no messages.
//!
//! A server is named by the configuration alone: a request selects one by its path, `/mcp/<name>`, and never says where it is.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use http_body_util::Either;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    header::{HeaderName, HeaderValue},
};

use super::{
    arrival::Arrived,
    delivery::Delivery,
    error::{Interrupted, ProxyError},
    exchange::Proxy,
    headers,
    upstream::{BackendAnswering, SentBody, Upload, Upstream},
};
use crate::{
    surface::{self, MCP_MOUNT},
    trajectory::{AgentName, Attribution, Source, Step},
};

/// Before the name of an argument in that of the header that repeats it (MCP 2026-07-28).
const MIRROR: &str = "mcp-param-";

/// The names of the servers of tools that requests may select.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolServers(BTreeSet<String>);

impl ToolServers {
    /// Those of these names.
    pub fn named(names: BTreeSet<String>) -> Self {
        Self(names)
    }

    /// Those that the steps of a run are messages to.
    pub fn of_steps<'s>(steps: impl IntoIterator<Item = &'s Step>) -> Self {
        let of_tools = steps.into_iter().filter(|step| surface::is_of_tools(&step.surface));
        Self(of_tools.filter_map(|step| server_name(path_only(&step.path))).map(str::to_owned).collect())
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether a path selects one.
    ///
    /// # Errors
    /// [`ProxyError::NoToolServer`]: it names one that there is not.
    pub(super) fn selects(&self, path: &str) -> Result<bool, ProxyError> {
        let Some(name) = server_name(path).filter(|_| !self.0.is_empty()) else { return Ok(false) };
        if self.0.contains(name) {
            return Ok(true);
        }
        let known = self.names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(ProxyError::NoToolServer { name: name.to_owned(), known })
    }
}

/// An upstream of models, and the servers of tools beside it.
#[derive(Debug)]
pub struct WithTools {
    models: Arc<dyn Upstream>,
    servers: BTreeMap<String, Arc<dyn Upstream>>,
}

impl WithTools {
    /// This upstream for all but the servers of tools.
    pub fn new(models: Arc<dyn Upstream>, servers: BTreeMap<String, Arc<dyn Upstream>>) -> Self {
        Self { models, servers }
    }
}

impl Upstream for WithTools {
    fn name(&self) -> &str {
        self.models.name()
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        let server = server_name(request.uri().path()).and_then(|name| self.servers.get(name));
        server.unwrap_or(&self.models).send(request)
    }

    fn recall(&self, surface: &str, asked: &[u8], told: &Attribution) -> Option<Attribution> {
        self.models.recall(surface, asked, told)
    }
}

fn path_only(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// The name of a server in a path.
fn server_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix(MCP_MOUNT)?.split('/').next()?;
    (!name.is_empty()).then_some(name)
}

/// Who answers a message to a server of tools: the tool that it calls, or the server itself.
pub(super) fn answerer(path: &str, body: &[u8]) -> Option<Attribution> {
    let server = server_name(path)?;
    let tool = surface::rpc_call(body).and_then(|call| call.tool);
    let evidence = match &tool {
        Some(_) => format!("the path names the server `{server}`, the message names the tool"),
        None => format!("the path names the server `{server}`"),
    };
    let name = |tool: &str| AgentName::parse(&format!("mcp/{server}{tool}")).ok();
    let agent = tool.and_then(|tool| name(&format!("/{tool}"))).or_else(|| name(""))?;
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

impl Proxy {
    /// A request to a server of tools that is no message: the stream of what the server says by itself, or the end of a session. It
    /// passes, and is no step. A recording has neither.
    pub(super) async fn tool_session(&self, arrived: Arrived) -> Result<Response<Box<Delivery>>, Interrupted> {
        let Arrived { mut parts, body, hinted, .. } = arrived;
        let named = self.identity.run(&hinted.envelope(), || None)?.map(|(run, _)| run);
        let run = named.or_else(|| self.default_run.clone()).and_then(|run| self.runs.find(&run));
        if run.is_some_and(|run| run.upstream.is_some()) {
            let ended = parts.method == Method::DELETE;
            let mut response = Response::new(Delivery::made(Bytes::new()));
            *response.status_mut() = if ended { StatusCode::OK } else { StatusCode::METHOD_NOT_ALLOWED };
            return Ok(response);
        }
        headers::to_upstream(&mut parts.headers, self.hint_headers(), false);
        let (upload, stall) = Upload::new(body, self.limits.body_timeout);
        let sent = self.upstream.send(Request::from_parts(parts, Either::Right(upload))).await;
        let mut received = match sent {
            Err(_) if stall.has_come() => return Err(ProxyError::BodyTimeout(self.limits.body_timeout).into()),
            sent => sent?,
        };
        headers::strip_hop_by_hop(received.headers_mut());
        Ok(received.map(|body| Delivery::pass(body, self.limits.silence_timeout)))
    }
}
