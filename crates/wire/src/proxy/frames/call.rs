//! A message that asks for a response, on its way down the line and back.

use std::{sync::Arc, time::Instant};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use super::{
    begun_message,
    ending::SocketEnding,
    event::EventReader,
    session::Session,
    upstream_end::StreamId,
    words::{self, FramedCall},
};
use crate::{
    proxy::{
        arrival::{Kind, ModelCall},
        error::{Interrupted, ProxyError},
        headers, heavy,
        memory::HeldMemory,
    },
    surface::{door::UnpackedBody, socket},
};

/// A message that asks for a response.
#[derive(Debug)]
pub(super) struct AskingMessage {
    pub(super) stream: StreamId,
    pub(super) message: Bytes,
    pub(super) received: Instant,
}

impl Session {
    /// Answers a message: by the line, or by an error of our own.
    pub(super) async fn answer(&self, asked: AskingMessage) -> Result<(), SocketEnding> {
        let stream = asked.stream.clone();
        let call = match self.call(asked).await {
            Ok(call) => call,
            Err(error) => return self.refuse(error, stream).await,
        };
        let response = match Box::pin(self.line.call(call, &self.link)).await {
            Ok(response) => response,
            Err(Interrupted::Error(error)) => return self.refuse(error, stream).await,
            Err(Interrupted::Hushed) => return Err(SocketEnding::Injected),
        };
        let streamed = headers::is_event_stream(response.headers());
        let mut body = response.into_body();
        let (mut events, mut whole, mut ended) = (EventReader::default(), BytesMut::new(), false);
        let broken = loop {
            match body.frame().await {
                None => break None,
                Some(Err(error)) => break Some(error),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if !streamed {
                        whole.extend_from_slice(&data);
                        continue;
                    }
                    for message in events.push(&data) {
                        ended |= socket::server_message(&message).is_last;
                        self.say(super::text_message(message)).await?;
                    }
                }
            }
        };
        match broken {
            None if !streamed => self.say(super::text_message(whole.freeze())).await,
            None if ended => Ok(()),
            broken => {
                if let Some(begun) = events.begun() {
                    self.say(begun_message(begun)).await?;
                }
                Err(broken.map_or(SocketEnding::Unfinished, |error| SocketEnding::from(&error)))
            }
        }
    }

    /// The message as a request.
    async fn call(&self, asked: AskingMessage) -> Result<ModelCall, ProxyError> {
        let AskingMessage { stream, message: body, received } = asked;
        if let Some((_, user)) = &self.user {
            user.take_request(body.len() as u64)?;
        }
        let mut memory = HeldMemory::default();
        memory.grow(&self.line.limits.memory, body.len()).await?;
        let unpacked = heavy::in_turn(0, || UnpackedBody::unpack(&body, None)).await;
        let mut parts = self.head.clone();
        parts.extensions.insert(FramedCall { stream, run: Arc::clone(&self.run) });
        parts.extensions.insert(self.end.clone());
        let (kind, memory, hinted) = (Kind::Read(self.api), Arc::new(memory), self.hinted.clone());
        Ok(ModelCall { kind, parts, body, memory, unpacked, streams: false, hinted, received })
    }

    /// An error of our own, as a message.
    async fn refuse(&self, error: ProxyError, stream: StreamId) -> Result<(), SocketEnding> {
        let error = match &self.user {
            Some((_, user)) => user.limited(error),
            None => error,
        };
        tracing::warn!(%error, "answered by the proxy");
        let (head, body) = error.response(self.api).into_parts();
        let said = words::message(head.status.as_u16(), &head.headers, &body, stream.as_deref());
        self.say(super::text_message(said)).await
    }
}
