//! The upstream's end of a bridge: requests go out by it as messages, and the messages that answer one come back as its reply.

use std::{
    borrow::Cow,
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use http_body_util::{BodyExt, Either, Full, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Body, Frame},
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{self, Message, protocol::Role},
};

use super::{event::event, settings};
use crate::{
    proxy::{
        lock::locked,
        upstream::{BodyError, ReceivedBody, SentBody, Upstream, UpstreamError},
    },
    surface::socket::{self, ClientMessage, ServerMessage},
};

/// Messages of a response that wait for who reads them; then the upstream waits.
const QUEUE: usize = 64;

/// A framed connection, the half that is written and the half that is read.
pub(super) type SocketWriting = SplitSink<WebSocketStream<TokioIo<Upgraded>>, Message>;
pub(super) type SocketReading = SplitStream<WebSocketStream<TokioIo<Upgraded>>>;

/// The stream of a socket that a response comes by; none where its request names none.
pub(super) type StreamId = Option<String>;

/// The upstream's end. It travels in the extensions of each request that goes out by it, past whoever answers instead of it.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct UpstreamEnd(Arc<UpstreamState>);

#[derive(Debug)]
struct UpstreamState {
    /// What opens it.
    handshake: Parts,
    silence: Duration,
    message_max: usize,
    writing: tokio::sync::Mutex<Option<SocketWriting>>,
    /// Where the half that is read goes, once.
    opened: mpsc::Sender<SocketReading>,
    /// Who waits for messages, by stream.
    awaited: Mutex<HashMap<StreamId, mpsc::Sender<Bytes>>>,
    broken: AtomicBool,
    ended: AtomicBool,
}

impl UpstreamEnd {
    /// One that is opened by this handshake, when a request is to go out by it. Gives where its other half will come from.
    pub(super) fn new(
        handshake: Parts,
        silence: Duration,
        message_max: usize,
    ) -> (Self, mpsc::Receiver<SocketReading>) {
        let (opened, opening) = mpsc::channel(1);
        let state = UpstreamState {
            handshake,
            silence,
            message_max,
            writing: tokio::sync::Mutex::default(),
            opened,
            awaited: Mutex::default(),
            broken: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        };
        (Self(Arc::new(state)), opening)
    }

    /// The request that opens it.
    pub(super) fn handshake(&self) -> Request<SentBody> {
        Request::from_parts(self.0.handshake.clone(), Either::Left(Full::default()))
    }

    /// The upstream has agreed: it is open as soon as the connection is free of HTTP.
    pub(super) async fn begin(&self, agreed: OnUpgrade) -> Result<(), UpstreamError> {
        let mut writing = self.0.writing.lock().await;
        *writing = Some(self.open(agreed).await?);
        Ok(())
    }

    async fn open(&self, agreed: OnUpgrade) -> Result<SocketWriting, UpstreamError> {
        let upgraded = agreed.await.map_err(|error| UpstreamError::Closed(Box::new(error)))?;
        let settings = settings(self.0.message_max);
        let framed = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(settings)).await;
        let (writing, reading) = framed.split();
        self.0.opened.try_send(reading).map_err(|_| closed("it was opened before"))?;
        Ok(writing)
    }

    /// Asks the upstream, which is opened for it where it is not: the reply, as soon as its first message is there.
    pub(in crate::proxy) async fn answer(
        self,
        request: Request<SentBody>,
        opener: &dyn Upstream,
    ) -> Result<Response<ReceivedBody>, UpstreamError> {
        let asked = request.into_body().collect().await.map_err(UpstreamError::Closed)?.to_bytes();
        let stream = match socket::client_message(&asked) {
            ClientMessage::Create { stream } => stream.map(Cow::into_owned),
            ClientMessage::Other(_) => None,
        };
        let (sender, mut messages) = mpsc::channel(QUEUE);
        let text = super::text_message(asked);
        let said = async {
            let mut writing = self.0.writing.lock().await;
            if self.0.ended.load(Ordering::Acquire) {
                return Err(closed("its WebSocket has ended"));
            }
            if writing.is_none() {
                *writing = Some(self.dial(opener).await?);
            }
            // Awaited from now on: what comes before belongs to no response.
            locked(&self.0.awaited).insert(stream, sender);
            if self.0.ended.load(Ordering::Acquire) {
                locked(&self.0.awaited).clear();
            }
            let Some(open) = writing.as_mut() else { return Err(closed("its WebSocket is not open")) };
            open.send(text).await.map_err(|error| UpstreamError::Closed(Box::new(error)))
        };
        let silence = self.0.silence;
        let first = async {
            said.await?;
            messages.recv().await.ok_or_else(|| closed("its WebSocket ended"))
        };
        let first = tokio::time::timeout(silence, first).await.map_err(|_| UpstreamError::Timeout(silence))??;
        Ok(self.reply(first, messages))
    }

    async fn dial(&self, opener: &dyn Upstream) -> Result<SocketWriting, UpstreamError> {
        let mut answered = opener.send(self.handshake()).await?;
        let status = answered.status();
        let agreed = answered.extensions_mut().remove::<OnUpgrade>();
        match agreed.filter(|_| status == StatusCode::SWITCHING_PROTOCOLS) {
            Some(agreed) => self.open(agreed).await,
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
        let body = MessageBody { first: Some(first), messages, end: self, over: false };
        let mut reply = Response::new(ReceivedBody::Streamed(UnsyncBoxBody::new(body)));
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        reply
    }

    /// Who waits for a message of the upstream. After the last of a response nobody does.
    pub(super) fn awaiting(&self, head: &ServerMessage<'_>) -> Option<mpsc::Sender<Bytes>> {
        let mut awaited = locked(&self.0.awaited);
        let named: StreamId = head.stream.as_deref().map(str::to_owned);
        // A server that knows nothing of streams names none.
        let only = awaited.keys().next().filter(|_| named.is_none() && awaited.len() == 1).cloned();
        let stream = if awaited.contains_key(&named) { named } else { only? };
        if head.is_last { awaited.remove(&stream) } else { awaited.get(&stream).cloned() }
    }

    /// Passes a message on that asks for no response; says whether there is anybody to pass it to.
    pub(super) async fn pass(&self, message: Message) -> Result<bool, tungstenite::Error> {
        match self.0.writing.lock().await.as_mut() {
            Some(writing) => writing.send(message).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// It says no more: what is awaited ends, broken off or not.
    pub(super) fn end(&self, broken: bool) {
        self.0.broken.store(broken, Ordering::Release);
        self.0.ended.store(true, Ordering::Release);
        locked(&self.0.awaited).clear();
    }
}

fn closed(why: &'static str) -> UpstreamError {
    UpstreamError::Closed(why.into())
}

/// The messages of a response as a stream of events.
#[derive(Debug)]
struct MessageBody {
    first: Option<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    end: UpstreamEnd,
    over: bool,
}

impl Body for MessageBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let message = match self.first.take() {
            Some(first) => Some(first),
            None => std::task::ready!(self.messages.poll_recv(context)),
        };
        let Some(message) = message else {
            self.over = true;
            let broken = self.end.0.broken.load(Ordering::Acquire);
            return Poll::Ready(broken.then_some(Err(BodyError::Socket)));
        };
        let head = socket::server_message(&message);
        self.over = head.is_last;
        Poll::Ready(Some(Ok(Frame::data(event(&head.kind, &message)))))
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }
}

/// The upstream's end that a request carries, where it carries one.
pub(in crate::proxy) fn carried(request: &mut Request<SentBody>) -> Option<UpstreamEnd> {
    request.extensions_mut().remove()
}
