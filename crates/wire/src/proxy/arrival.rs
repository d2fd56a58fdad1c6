//! A request as it arrives: is it one that we answer for, what kind is it, and what does it say outside its body.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Method, Request, Uri,
    body::{Body, Incoming},
    header::{self, HeaderName},
    http::request::Parts,
};

use super::{
    attached::{self, ATTACHMENT},
    error::ProxyError,
    headers, heavy,
    limits::Limits,
    listen::gate::{self, Gate},
    memory::HeldMemory,
    servers::NamedServers,
};
use crate::{
    identity::{Envelope, Hints, RetryCount, Routed, route},
    surface::{self, OpenaiChat, Surface, UnreadCall, door::UnpackedBody},
    trajectory::RunId,
};

/// How often the client has tried before, as the SDKs say.
static RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// What kind of request it is. Each has a way of its own through the proxy.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A model call that can be read and edited.
    Read(&'static dyn Surface),
    /// A call to a provider that no surface reads: recorded as bytes.
    Unread(&'static UnreadCall),
    /// A WebSocket: recorded, but what passes in it is only counted.
    Tunnel,
    /// A WebSocket of an API whose requests are messages: each of those is read.
    Frames(&'static dyn Surface),
    /// Something of such calls that the upstream keeps: no call, but edits may be missing in it.
    Fetch,
    /// A stream of a server's own, the end of a session with it, or its card: no message of its client's.
    Session,
    /// Of a server that is attached here: no upstream is asked.
    Attached,
    /// Anything else: passed on, not recorded.
    Other,
}

/// A request that has come in.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) kind: Kind,
    pub(super) parts: Parts,
    pub(super) body: Incoming,
    pub(super) hinted: Hinted,
    pub(super) received: Instant,
    /// The path as it came, our prefix included.
    pub(super) own_path: String,
}

/// A model call, its body complete.
#[derive(Debug, Clone)]
pub(super) struct ModelCall {
    pub(super) kind: Kind,
    pub(super) parts: Parts,
    /// As it came. Empty where it streams through.
    pub(super) body: Bytes,
    /// The memory that the body takes: given back with the call.
    #[expect(dead_code, reason = "held as long as the call")]
    pub(super) memory: Arc<HeldMemory>,
    /// As it is read and edited.
    pub(super) unpacked: UnpackedBody,
    /// Whether its body streams through, so that nobody here has it whole.
    pub(super) streams: bool,
    pub(super) hinted: Hinted,
    pub(super) received: Instant,
}

/// What the envelope said, owned.
#[derive(Debug, Clone, Default)]
pub(super) struct Hinted {
    path_run: Option<String>,
    path_agent: Option<String>,
    header_run: Option<String>,
    header_agent: Option<String>,
    key: Option<String>,
    /// How often the client says that it has tried before.
    pub(super) tries: RetryCount,
    /// The one run under way, where the request names none and nothing in it tells.
    pub(super) only_run: Option<RunId>,
    /// The attachment that answers, where the request is a message to it.
    pub(super) attachment: Option<String>,
}

impl Arrived {
    /// The one look at a request's path, headers and hints.
    ///
    /// # Errors
    /// It may not come in; and the API in whose words its client is told so.
    pub(super) fn read(
        request: Request<Incoming>,
        gate: &Gate,
        hints: &Hints,
        servers: &NamedServers,
    ) -> Result<Self, (ProxyError, &'static dyn Surface)> {
        let received = Instant::now();
        let (mut parts, body) = request.into_parts();
        let own_path = parts.uri.path().to_owned();
        let read = gate.admit(&mut parts).and_then(|()| unwrap(&mut parts, hints));
        let classify = |hinted: &Hinted| Kind::classify(&parts, servers, hinted.attachment.is_some());
        match read.and_then(|hinted| Ok((classify(&hinted)?, hinted))) {
            Ok((kind, hinted)) => Ok(Self { kind, parts, body, hinted, received, own_path }),
            Err(error) => Err((error, spoken_at(&parts.method, &parts.uri))),
        }
    }

    /// The model call that it is, once its body is there.
    ///
    /// # Errors
    /// See [`collect`].
    pub(super) async fn with_body(self, limits: &Limits) -> Result<ModelCall, ProxyError> {
        let Self { kind, parts, body, hinted, received, .. } = self;
        let mut memory = HeldMemory::default();
        let body = collect(body, limits, &mut memory).await?;
        let memory = Arc::new(memory);
        let encoding = headers::text(&parts.headers, &header::CONTENT_ENCODING);
        let unpacking = if encoding.is_some() { body.len() } else { 0 };
        let unpacked = heavy::in_turn(unpacking, || UnpackedBody::unpack(&body, encoding)).await;
        Ok(ModelCall { kind, parts, body, memory, unpacked, streams: false, hinted, received })
    }
}

impl ModelCall {
    /// What is sent in place of the client's body: that itself where nothing was edited, else the edited text, packed as the client
    /// had packed it.
    ///
    /// # Errors
    /// It cannot be packed again.
    pub(super) fn packed(&self, text: &Bytes) -> Result<Bytes, ProxyError> {
        // The same bytes at the same place: nothing was edited, and nothing needs comparing.
        if text.as_ptr() == self.unpacked.plain.as_ptr() {
            return Ok(self.body.clone());
        }
        self.unpacked.packed(text).map_err(|error| ProxyError::Unreadable(error.to_string()))
    }
}

impl Kind {
    /// `is_attached`: the request names the attachment that answers.
    fn classify(parts: &Parts, servers: &NamedServers, is_attached: bool) -> Result<Self, ProxyError> {
        let (method, path) = (parts.method.as_str(), parts.uri.path());
        if attached::is_place(path) {
            return Ok(Kind::Attached);
        }
        if let Some(surface) = surface::server_api(method, path).filter(|_| is_attached) {
            return Ok(Kind::Read(surface));
        }
        if servers.selects(path)? {
            return Ok(surface::server_api(method, path).map_or(Kind::Session, Kind::Read));
        }
        if headers::asks_for_websocket(parts) {
            return Ok(surface::socket::socket_api(path).map_or(Kind::Tunnel, Kind::Frames));
        }
        if let Some(surface) = surface::model_api(method, path) {
            return Ok(Kind::Read(surface));
        }
        if surface::fetched_from(method, path).is_some() {
            return Ok(Kind::Fetch);
        }
        Ok(surface::unread_call(method, path).map_or(Kind::Other, Kind::Unread))
    }

    pub(super) fn surface(self) -> Option<&'static dyn Surface> {
        match self {
            Kind::Read(surface) => Some(surface),
            _ => None,
        }
    }

    pub(super) fn is_unread(self) -> bool {
        matches!(self, Kind::Unread(_))
    }

    /// The API in whose words its client is answered by us.
    pub(super) fn spoken(self) -> &'static dyn Surface {
        match self {
            Kind::Frames(surface) => surface,
            _ => self.surface().unwrap_or(&OpenaiChat),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Read(surface) => surface.name(),
            Kind::Unread(row) => &row.name,
            Kind::Tunnel | Kind::Frames(_) => "websocket",
            Kind::Fetch | Kind::Session | Kind::Attached | Kind::Other => "opaque",
        }
    }
}

/// The API in whose words a client is answered that has not come in.
pub(super) fn spoken_at(method: &Method, uri: &Uri) -> &'static dyn Surface {
    surface::for_path(method.as_str(), uri.path()).unwrap_or(&OpenaiChat)
}

/// Takes our prefix off the path and reads what the envelope says.
///
/// # Errors
/// The path has `/v1` twice, or leaves what it is put behind.
fn unwrap(parts: &mut Parts, hints: &Hints) -> Result<Hinted, ProxyError> {
    let target = parts.uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str).to_owned();
    let Routed { run, agent, rest } = route(&target);
    let single = single_slashes(&parts.method, rest);
    let rest = single.as_deref().unwrap_or(rest);
    if rest.starts_with("/v1/v1/") {
        let prefix = target.get(..target.len().saturating_sub(rest.len())).unwrap_or_default();
        let path = rest.split('?').next().unwrap_or_default().to_owned();
        return Err(ProxyError::DoubledVersion { path, fix: format!("http://HOST:PORT{prefix}/v1") });
    }
    gate::stays_below(rest)?;
    let hinted = Hinted {
        path_run: run.map(str::to_owned),
        path_agent: agent.map(|agent| String::from_utf8_lossy(&gate::decode_percent(agent.as_bytes())).into_owned()),
        header_run: hint(&parts.headers, &hints.run_header),
        header_agent: hint(&parts.headers, &hints.agent_header),
        key: headers::api_key(&parts.headers).filter(|_| hints.uses_keys()).map(str::to_owned),
        tries: headers::text(&parts.headers, &RETRY_COUNT).and_then(|count| count.trim().parse().ok()),
        only_run: None,
        // Ours alone: neither records nor upstreams get it.
        attachment: parts.headers.remove(&ATTACHMENT).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned()),
    };
    if rest.len() != target.len() {
        parts.uri = rest.parse::<Uri>().map_err(|_| ProxyError::BodyBroken)?;
    }
    Ok(hinted)
}

/// The target with one slash wherever a base URL that ends in one too many has left two; `None` where there is none too many,
/// and where the path would be no call of a provider even so.
fn single_slashes(method: &Method, target: &str) -> Option<String> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    if !path.contains("//") {
        return None;
    }
    let mut single = String::with_capacity(target.len());
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        single.push('/');
        single.push_str(segment);
    }
    let method = method.as_str();
    let is_call = surface::for_path(method, &single).is_some() || surface::unread_call(method, &single).is_some();
    if !is_call && !surface::is_fetch(method, &single) {
        return None;
    }
    if path.ends_with('/') {
        single.push('/');
    }
    if let Some(query) = query {
        single.push('?');
        single.push_str(query);
    }
    Some(single)
}

/// A hint header's value. Names may be UTF-8; what is not becomes U+FFFD, which no name may hold.
fn hint(headers: &HeaderMap, name: &str) -> Option<String> {
    headers::named(headers, name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

impl Hinted {
    /// The same of a further request of its connection.
    pub(super) fn anew(self) -> Self {
        Self { tries: RetryCount::default(), ..self }
    }

    pub(super) fn envelope(&self) -> Envelope<'_> {
        Envelope {
            path_agent: self.path_agent.as_deref(),
            path_run: self.path_run.as_deref(),
            header_agent: self.header_agent.as_deref(),
            header_run: self.header_run.as_deref(),
            key: self.key.as_deref(),
        }
    }
}

/// Reads a whole body, within the limits.
///
/// # Errors
/// It is too large, too slow, or breaks off.
pub(super) async fn collect<B>(mut body: B, limits: &Limits, memory: &mut HeldMemory) -> Result<Bytes, ProxyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let limit = limits.max_body_bytes;
    let too_large = || ProxyError::BodyTooLarge { limit };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let reading = async {
        // At once, where the length is known: of two that have half each, neither would end.
        memory.grow(&limits.memory, usize::try_from(body.size_hint().lower()).unwrap_or(limit)).await?;
        let mut first = Bytes::new();
        let mut whole: Option<BytesMut> = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| ProxyError::BodyBroken)?.into_data() else { continue };
            let so_far = whole.as_ref().map_or(first.len(), BytesMut::len);
            if so_far + data.len() > limit {
                return Err(too_large());
            }
            memory.grow(&limits.memory, so_far + data.len()).await?;
            match &mut whole {
                None if first.is_empty() => first = data,
                None => {
                    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(limit);
                    let mut joined = BytesMut::with_capacity(so_far + data.len() + expected);
                    joined.extend_from_slice(&first);
                    joined.extend_from_slice(&data);
                    whole = Some(joined);
                }
                Some(whole) => whole.extend_from_slice(&data),
            }
        }
        Ok(whole.map_or(first, BytesMut::freeze))
    };
    let mut reading = pin!(reading);
    // Most bodies are there with their head: nothing to wait for.
    if let Poll::Ready(read) = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        return read;
    }
    let timeout: Duration = limits.body_timeout;
    tokio::time::timeout(timeout, reading).await.map_err(|_| ProxyError::BodyTimeout(timeout))?
}
