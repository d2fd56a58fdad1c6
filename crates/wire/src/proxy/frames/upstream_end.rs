//! The upstream's end of a bridge: requests go out by it as messages, and the messages that answer one come back as its reply.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    SinkExt, StreamExt,
    stream::{self, SplitSink, SplitStream},
};
use http_body_util::{BodyExt, Collected, Either, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::Frame,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
    upgrade::OnUpgrade,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{self, Message};

use super::words::{self, StreamId};
use crate::{
    proxy::{
        headers,
        lock::locked,
        tunnel::framed::{self, UpstreamSocket, text_message},
        upstream::{BodyError, ReceivedBody, Route, SentBody, Upstream, UpstreamError},
    },
    surface::{
        door::UnpackedBody,
        socket::{self, ClientMessage, ServerMessage},
        sse,
    },
};

/// Messages of a response that wait for who reads them; then the upstream waits.
const QUEUE: usize = 64;
/// Most responses under way that the server has started by itself.
const STARTED_MAX: usize = 64;
/// Longest body of a refusal that is passed on, in bytes.
const REFUSAL_MAX: usize = 64 << 10;
/// Why a message does not go to the route of its model.
const OTHER_ROUTE: &str =
    "the model has another upstream than the one that this WebSocket was opened to: open a WebSocket for each route";

/// The half that is read of a framed connection.
pub(super) type SocketReading = SplitStream<UpstreamSocket>;

/// The upstream's end. It travels in the extensions of each request that goes out by it, past whoever answers instead of it.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct UpstreamEnd {
    state: Arc<UpstreamState>,
    /// The messages of a response that the server has started by itself, until they are read.
    started: Option<Arc<Mutex<Option<mpsc::Receiver<Bytes>>>>>,
}

#[derive(Debug)]
struct UpstreamState {
    /// What opens it.
    handshake: Parts,
    silence: Duration,
    message_max: usize,
    writing: tokio::sync::Mutex<Option<OpenEnd>>,
    /// Where the half that is read goes, once.
    opened: mpsc::Sender<SocketReading>,
    /// Who waits for messages, by stream.
    awaited: Mutex<HashMap<StreamId, mpsc::Sender<Bytes>>>,
    /// Whether it broke off, once it has ended.
    broken: OnceLock<bool>,
}

/// What came of asking the upstream for a WebSocket.
enum UpstreamSocketReply {
    Open(OpenEnd),
    /// It refuses one, with this.
    Refused(Response<ReceivedBody>),
}

/// The half that is written.
#[derive(Debug)]
struct OpenEnd {
    /// The model route that it leads to; none where that is the default.
    route: Option<Route>,
    writing: SplitSink<UpstreamSocket, Message>,
}

impl UpstreamEnd {
    /// One that is opened by this handshake, when a request is to go out by it. Gives where its other half will come from.
    pub(super) fn new(
        handshake: Parts,
        silence: Duration,
        message_max: usize,
    ) -> (Self, mpsc::Receiver<SocketReading>) {
        let (opened, opening) = mpsc::channel(1);
        let (writing, awaited, broken) = Default::default();
        let state = UpstreamState { handshake, silence, message_max, writing, opened, awaited, broken };
        (Self { state: Arc::new(state), started: None }, opening)
    }

    /// The request that opens it.
    pub(super) fn handshake(&self) -> Request<SentBody> {
        Request::from_parts(self.state.handshake.clone(), Either::Left(Full::default()))
    }

    /// The upstream has agreed: it is open as soon as the connection is free of HTTP.
    pub(super) async fn begin(&self, agreed: OnUpgrade) -> Result<(), UpstreamError> {
        let mut writing = self.state.writing.lock().await;
        *writing = Some(self.open(agreed, None).await?);
        Ok(())
    }

    async fn open(&self, agreed: OnUpgrade, route: Option<Route>) -> Result<OpenEnd, UpstreamError> {
        let upgraded = agreed.await.map_err(|error| UpstreamError::Closed(Box::new(error)))?;
        let (writing, reading) = framed::upstream_end(upgraded, self.state.message_max).await.split();
        self.state.opened.try_send(reading).map_err(|_| closed("it was opened before"))?;
        Ok(OpenEnd { route, writing })
    }

    /// The reply to a request, as soon as its first message is there.
    pub(in crate::proxy) async fn answer(
        self,
        request: Request<SentBody>,
        opener: &dyn Upstream,
    ) -> Result<Response<ReceivedBody>, UpstreamError> {
        let silence = self.state.silence;
        let first = async {
            let mut messages = match &self.started {
                Some(started) => locked(started).take().ok_or_else(|| closed("its response was read before"))?,
                None => self.ask(request, opener).await?,
            };
            let first = messages.recv().await.ok_or_else(|| closed("its WebSocket ended"))?;
            Ok::<_, UpstreamError>((first, messages))
        };
        let first = tokio::time::timeout(silence, first).await;
        let (first, messages) = first.map_err(|_| UpstreamError::Timeout(silence))??;
        Ok(self.reply(first, messages))
    }

    /// Asks the upstream, which is opened for it where it is not: the messages of the response.
    async fn ask(
        &self,
        request: Request<SentBody>,
        opener: &dyn Upstream,
    ) -> Result<mpsc::Receiver<Bytes>, UpstreamError> {
        let route = request.extensions().get::<Route>().copied();
        let asked = request.into_body().collect().await.map_err(UpstreamError::Closed)?.to_bytes();
        let stream = match socket::client_message(&asked) {
            ClientMessage::Create { stream } => stream.map(Cow::into_owned),
            _ => None,
        };
        let mut writing = self.state.writing.lock().await;
        if self.state.broken.get().is_some() {
            return Err(closed("its WebSocket has ended"));
        }
        let open = match &mut *writing {
            Some(open) if open.route == route => open,
            Some(_) => return Err(UpstreamError::unreachable(OTHER_ROUTE)),
            none => match self.dial(route, opener).await? {
                UpstreamSocketReply::Open(open) => none.insert(open),
                UpstreamSocketReply::Refused(answered) => return Ok(refusal(answered, stream.as_deref()).await),
            },
        };
        // Awaited from now on: what comes before belongs to no response.
        let messages = self.await_messages(stream);
        if self.state.broken.get().is_some() {
            locked(&self.state.awaited).clear();
        }
        let sent = open.writing.send(text_message(asked, true)).await;
        sent.map(|()| messages).map_err(|error| UpstreamError::Closed(Box::new(error)))
    }

    fn await_messages(&self, stream: StreamId) -> mpsc::Receiver<Bytes> {
        let (sender, messages) = mpsc::channel(QUEUE);
        locked(&self.state.awaited).insert(stream, sender);
        messages
    }

    async fn dial(&self, route: Option<Route>, opener: &dyn Upstream) -> Result<UpstreamSocketReply, UpstreamError> {
        let mut handshake = self.handshake();
        route.map(|route| handshake.extensions_mut().insert(route));
        let mut answered = opener.send(handshake).await?;
        let status = answered.status();
        let agreed = answered.extensions_mut().remove::<OnUpgrade>();
        match agreed.filter(|_| status == StatusCode::SWITCHING_PROTOCOLS) {
            Some(agreed) => Ok(UpstreamSocketReply::Open(self.open(agreed, route).await?)),
            None if status.is_client_error() || status.is_server_error() => Ok(UpstreamSocketReply::Refused(answered)),
            None => Err(UpstreamError::unreachable(format!("it answered {status} when it was asked for a WebSocket"))),
        }
    }

    /// The reply that begins with this message.
    fn reply(self, first: Bytes, messages: mpsc::Receiver<Bytes>) -> Response<ReceivedBody> {
        let status = socket::server_message(&first).status.and_then(|status| StatusCode::from_u16(status).ok());
        if let Some(status) = status.filter(|status| status.is_client_error() || status.is_server_error()) {
            let mut refused = Response::new(ReceivedBody::Made([first.clone()].into()));
            *refused.status_mut() = status;
            for (name, value) in socket::error_headers(&first) {
                if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                    refused.headers_mut().append(name, value);
                }
            }
            refused.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            refused.headers_mut().remove(header::CONTENT_LENGTH);
            refused.headers_mut().remove(header::CONTENT_ENCODING);
            return refused;
        }
        let body =
            StreamBody::new(stream::unfold((Some(first), messages, false), move |(first, mut messages, over)| {
                let state = Arc::clone(&self.state);
                async move {
                    let message = match first {
                        _ if over => return None,
                        Some(first) => Some(first),
                        None => messages.recv().await,
                    };
                    let Some(message) = message else {
                        let broken = state.broken.get() == Some(&true);
                        return broken.then_some((Err(BodyError::Socket), (None, messages, true)));
                    };
                    let head = socket::server_message(&message);
                    Some((Ok(Frame::data(sse::event(&head.kind, &message))), (None, messages, head.is_last)))
                }
            }));
        let mut reply = Response::new(ReceivedBody::Streamed(UnsyncBoxBody::new(body)));
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        reply
    }

    /// The server has started a response by itself: the end by which that is answered. `None` where too many are under way.
    pub(super) fn start(&self, stream: StreamId) -> Option<Self> {
        let has_room = locked(&self.state.awaited).len() < STARTED_MAX;
        let messages = has_room.then(|| self.await_messages(stream))?;
        Some(Self { state: Arc::clone(&self.state), started: Some(Arc::new(Mutex::new(Some(messages)))) })
    }

    /// Whether it answers a request of the client's.
    pub(super) fn is_asked(&self) -> bool {
        self.started.is_none()
    }

    /// Who waits for a message of the upstream. After the last of a response nobody does.
    pub(super) fn awaiting(&self, head: &ServerMessage<'_>) -> Option<mpsc::Sender<Bytes>> {
        let mut awaited = locked(&self.state.awaited);
        let named: StreamId = head.stream.as_deref().map(str::to_owned);
        // A server that knows nothing of streams names none.
        let only = awaited.keys().next().filter(|_| named.is_none() && awaited.len() == 1).cloned();
        let stream = if awaited.contains_key(&named) { named } else { only? };
        if head.is_last { awaited.remove(&stream) } else { awaited.get(&stream).cloned() }
    }

    /// Passes a message on that asks for no response; says whether there is anybody to pass it to.
    pub(super) async fn pass(&self, message: Message) -> Result<bool, tungstenite::Error> {
        match self.state.writing.lock().await.as_mut() {
            Some(open) => open.writing.send(message).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// It says no more: what is awaited ends, broken off or not.
    pub(super) fn end(&self, broken: bool) {
        let _ = self.state.broken.set(broken);
        locked(&self.state.awaited).clear();
    }
}

/// What an upstream says that refuses a WebSocket which its client has already, as the one message of a response.
async fn refusal(answered: Response<ReceivedBody>, stream: Option<&str>) -> mpsc::Receiver<Bytes> {
    let (mut head, body) = answered.into_parts();
    let status = head.status.as_u16();
    let said = Limited::new(body, REFUSAL_MAX).collect().await.map(Collected::to_bytes).unwrap_or_default();
    headers::strip_hop_by_hop(&mut head.headers);
    let packed = head.headers.remove(header::CONTENT_ENCODING);
    let said = UnpackedBody::unpack(&said, packed.as_ref().and_then(|name| name.to_str().ok())).plain;
    let mut message = words::message(status, &head.headers, &said, stream);
    if socket::server_message(&message).status != Some(status) {
        let said = json!({"error": {"message": format!("the upstream answers {} to a WebSocket", head.status)}});
        message = words::message(status, &head.headers, &said.to_string().into(), stream);
    }
    let (sender, messages) = mpsc::channel(1);
    // Its receiver is here.
    let _ = sender.try_send(message);
    messages
}

fn closed(why: &'static str) -> UpstreamError {
    UpstreamError::Closed(why.into())
}

/// The upstream's end that a request carries, where it carries one.
pub(in crate::proxy) fn carried(request: &mut Request<SentBody>) -> Option<UpstreamEnd> {
    request.extensions_mut().remove()
}
