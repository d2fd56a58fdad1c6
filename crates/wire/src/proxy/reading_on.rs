//! A client reads the broken stream of a tool server on: another attempt of the step whose answer was to come.

use std::sync::Arc;

use http_body_util::{Either, Full};
use hyper::{Method, Request, Response};

use super::{
    arrival::{Arrived, Kind, ModelCall},
    broken_streams::{LAST_EVENT_ID, PostedMessage},
    decided,
    delivery::Delivery,
    error::Interrupted,
    headers,
    listen::socket::Link,
    lock::locked,
    memory::HeldMemory,
    pending_reply::PendingReply,
    run::Run,
    shared::Proxy,
    upstream::ReceivedBody,
};
use crate::surface::{self, door::UnpackedBody};

impl Proxy {
    /// The message whose answer a request reads on for, where it does that.
    pub(super) fn read_on(arrived: &Arrived, run: &Run) -> Option<PostedMessage> {
        let parts = &arrived.parts;
        let reads = parts.method == Method::GET && parts.headers.contains_key(&LAST_EVENT_ID);
        reads.then(|| locked(&run.broken_streams).take(parts.uri.path(), &parts.headers)).flatten()
    }

    /// Reads a stream on: another attempt of the step whose answer it is to bring.
    pub(super) async fn resume(
        &self,
        arrived: Arrived,
        message: PostedMessage,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let Arrived { parts, hinted, received, .. } = arrived;
        let kind = surface::server_api(Method::POST.as_str(), parts.uri.path()).map_or(Kind::Session, Kind::Read);
        let unpacked = UnpackedBody::unread(&message.body);
        let memory = Arc::new(HeldMemory::default());
        let call = ModelCall { kind, parts, body: message.body, memory, unpacked, streams: false, hinted, received };
        let (mut step, conversation, earlier) = self.open(&call, link).await?;
        let decision = decided::decide(&mut step, conversation.as_ref(), earlier);
        step.posted = PostedMessage::from_call(&call);
        let mut pending = PendingReply { step, decision, conversation };
        match self.answer_on(&mut pending, call).await {
            Ok(received) => self.hand_back(pending, received).await,
            Err(interrupted) => Err(pending.closed(interrupted)?),
        }
    }

    /// What the server says further.
    async fn answer_on(
        &self,
        pending: &mut PendingReply,
        call: ModelCall,
    ) -> Result<Response<ReceivedBody>, Interrupted> {
        let step = &mut pending.step;
        step.written().await?;
        let mut parts = call.parts;
        self.head_to_upstream(&mut parts.headers, false);
        let upstream = step.run.upstream.clone();
        if upstream.is_some() {
            parts.extensions.insert(step.asker(&call.body));
        }
        let sent = Request::from_parts(parts, Either::Left(Full::default()));
        let mut received = upstream.as_ref().unwrap_or(&self.upstream).send(sent).await?;
        headers::strip_hop_by_hop(received.headers_mut());
        step.answered(received.status(), received.headers());
        Ok(received)
    }
}
