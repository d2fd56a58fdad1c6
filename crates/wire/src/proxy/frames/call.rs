//! A message that asks for a response, on its way down the line and back.

use std::{sync::Arc, time::Instant};

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, stream::SplitSink};
use http_body_util::BodyExt;
use hyper::http::request::Parts;
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};

use super::{
    continuing::{Continuable, RecentCall},
    upstream_end::UpstreamEnd,
    words::{self, CallOwner, FramedCall, StreamId},
};
use crate::{
    proxy::{
        arrival::{Hinted, Kind, ModelCall},
        error::{Interrupted, ProxyError},
        headers, heavy,
        listen::socket::Link,
        memory::HeldMemory,
        shared::Proxy,
        tunnel::{
            ending::SocketEnding,
            framed::{ClientSocket, text_message},
        },
        users::{User, Users},
    },
    surface::{Surface, door::UnpackedBody, socket, sse::EventReader},
    trajectory::CloseCause,
};

/// A message that asks for a response, or what stands for one.
#[derive(Debug)]
pub(super) struct AskingMessage {
    pub(super) stream: StreamId,
    pub(super) message: Bytes,
    pub(super) memory: HeldMemory,
    pub(super) received: Instant,
    /// What it goes out by.
    pub(super) end: UpstreamEnd,
    /// The call that it goes on from, where the server goes on by itself.
    pub(super) last: Option<CallOwner>,
}

/// What the calls of a socket share.
pub(super) struct SocketCalls {
    pub(super) line: Arc<Proxy>,
    pub(super) user: Option<(Arc<Users>, Arc<User>)>,
    pub(super) api: &'static dyn Surface,
    /// The head of each request.
    pub(super) head: Parts,
    pub(super) hinted: Hinted,
    pub(super) link: Arc<Link>,
    pub(super) client: tokio::sync::Mutex<SplitSink<ClientSocket, Message>>,
    pub(super) continuable: Continuable,
}

impl SocketCalls {
    /// Says something to the client.
    pub(super) async fn say(&self, message: Message) -> Result<(), SocketEnding> {
        self.client.lock().await.send(message).await.map_err(|_| SocketEnding::CLIENT_GONE)
    }

    /// Answers a message: by the line, or by an error of our own.
    pub(super) async fn answer(&self, asked: AskingMessage) -> Result<(), SocketEnding> {
        let (stream, begun) = (asked.stream.clone(), self.continuable.begin());
        let call = match self.call(asked, &begun).await {
            Ok(call) => call,
            Err(error) => return self.refuse(error, stream).await,
        };
        let response = match Box::pin(self.line.call(call, &self.link)).await {
            Ok(response) => response,
            Err(Interrupted::Error(error)) => return self.refuse(error, stream).await,
            Err(Interrupted::Hushed) => return Err(SocketEnding::broken(CloseCause::Injected)),
        };
        let streamed = headers::is_event_stream(response.headers());
        let mut body = response.into_body();
        let (mut events, mut whole, mut ended) = (EventReader::default(), BytesMut::new(), false);
        let broken = loop {
            match body.frame().await.transpose() {
                Ok(None) => break None,
                Err(error) => break Some(error),
                Ok(Some(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if !streamed {
                        whole.extend_from_slice(&data);
                        continue;
                    }
                    for message in events.push(&data) {
                        let head = socket::server_message(&message);
                        ended |= head.is_last;
                        if let Some(id) = head.is_first.then(|| socket::response_id(&message)).flatten() {
                            let _ = begun.response.set(id);
                        }
                        self.say(text_message(message, true)).await?;
                    }
                }
            }
        };
        match broken {
            None if !streamed => self.say(text_message(whole.freeze(), true)).await,
            None if ended => Ok(()),
            broken => {
                if let Some(begun) = events.begun() {
                    self.say(text_message(begun, false)).await?;
                }
                let unfinished = SocketEnding::closed(CloseCause::Injected, CloseCode::Normal);
                Err(broken.map_or(unfinished, |error| SocketEnding::from(&error)))
            }
        }
    }

    /// The message as a request.
    async fn call(&self, asked: AskingMessage, begun: &RecentCall) -> Result<ModelCall, ProxyError> {
        let AskingMessage { stream, message: body, memory, received, end, last } = asked;
        let (mut hinted, is_asked) = (self.hinted.clone(), end.is_asked());
        if let Some(last) = &last {
            hinted.only_run = Some(last.run.id.clone());
        }
        if is_asked && let Some((_, user)) = &self.user {
            user.take_request(body.len() as u64)?;
        }
        let unpacked = heavy::in_turn(0, || UnpackedBody::unpack(&body, None)).await;
        let mut parts = self.head.clone();
        parts.extensions.insert(FramedCall { stream, is_asked, last, placed: Arc::clone(&begun.placed) });
        parts.extensions.insert(end);
        let (kind, memory) = (Kind::Read(self.api), Arc::new(memory));
        Ok(ModelCall { kind, parts, body, memory, unpacked, streams: false, hinted, received })
    }

    /// An error of our own, as a message.
    pub(super) async fn refuse(&self, error: ProxyError, stream: StreamId) -> Result<(), SocketEnding> {
        let error = match &self.user {
            Some((_, user)) => user.limited(error),
            None => error,
        };
        tracing::warn!(%error, "answered by the proxy");
        let (head, body) = error.response(self.api).into_parts();
        let said = words::message(head.status.as_u16(), &head.headers, &body, stream.as_deref());
        self.say(text_message(said, true)).await
    }
}
