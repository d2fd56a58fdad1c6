//! The line: one request's way through the proxy, in order.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{HeaderMap, Method, Request, Response, header, http::request::Parts};

use super::{
    arrival::{Arrived, Hinted, Kind, ModelCall},
    attached,
    broken_streams::PostedMessage,
    decided,
    delivery::Delivery,
    error::{Interrupted, ProxyError},
    faults,
    frames::{self, FramedCall},
    headers, heavy, inject,
    listen::socket::Link,
    logprobs,
    open_step::OpenStep,
    pending_reply::PendingReply,
    servers,
    shared::Proxy,
    stored::{access::StoredAccess, retell},
    upstream::{AlteredReply, ReceivedBody, Route, SentBody, Upload, UpstreamError},
    waiting::{EarlyPieces, WaitingReply},
};
use crate::surface::{self, door};

impl Proxy {
    /// One request's way through the proxy: each kind has its own.
    pub(super) async fn exchange(
        &self,
        arrived: Arrived,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        if self.check_stored_path(&arrived).await? == StoredAccess::OwnList {
            return Box::pin(self.own_list(arrived)).await;
        }
        match arrived.kind {
            Kind::Read(_) => self.call(arrived.with_body(&self.limits).await?, link).await,
            Kind::Unread(row) => Box::pin(self.unread(arrived, row, link)).await,
            Kind::Tunnel => Box::pin(self.tunnel(arrived, link)).await,
            Kind::Frames(api) => Box::pin(self.frames(arrived, api, link)).await,
            Kind::Fetch => Box::pin(self.fetch(arrived, link)).await,
            Kind::Session => Box::pin(self.beside_messages(arrived, link)).await,
            Kind::Attached => Box::pin(self.attached(arrived)).await,
            Kind::Other => self.pass(arrived).await,
        }
    }

    /// A model call's.
    pub(super) async fn call(&self, call: ModelCall, link: &Arc<Link>) -> Result<Response<Box<Delivery>>, Interrupted> {
        let (mut step, conversation, earlier) = self.open(&call, link).await?;
        let bytes = call.unpacked.plain.len();
        let decision = heavy::in_turn(bytes, || decided::decide(&mut step, conversation.as_ref(), earlier)).await;
        step.posted = PostedMessage::from_call(&call);
        let mut due = PendingReply { step, decision, conversation };
        match self.answer(&mut due, call).await {
            Ok(received) => self.hand_back(due, received).await,
            Err(interrupted) => Err(due.closed(interrupted)?),
        }
    }

    /// From the open step to the upstream's reply.
    pub(super) async fn answer(
        &self,
        due: &mut PendingReply,
        call: ModelCall,
    ) -> Result<Response<ReceivedBody>, Interrupted> {
        let PendingReply { step, decision, conversation } = due;
        self.check_goes_on(&call).await?;
        let framed = FramedCall::carried(&call);
        if let Some(framed) = &framed {
            framed.decided(step, decision)?;
        }
        if call.hinted.attachment.is_some() {
            faults::without_content_type(step, decision)?;
        }
        if !decision.faults.is_empty()
            && let Some(made) = Box::pin(faults::disturb_request(step, decision, &call.unpacked.plain)).await?
        {
            return Ok(frames::worded(framed.as_ref(), made));
        }
        let bytes = call.unpacked.plain.len();
        // The server has gone on already from what it keeps.
        let told = conversation.as_ref().filter(|_| framed.as_ref().is_none_or(|framed| framed.is_asked));
        let retold = heavy::in_turn(bytes, || retell::request(step, told, &call.unpacked.plain)).await?;
        let (own, conversation) = match &retold {
            Some((body, conversation)) => (body, Some(conversation)),
            None => (&call.unpacked.plain, conversation.as_ref()),
        };
        let body = inject::edit_request(step, decision, conversation, own, &self.limits).await?;
        step.written().await?;
        step.storage.takes_neutral_changes = decision.is_request_neutral(step);
        let (more, body) = heavy::in_turn(bytes, || {
            step.note_sent_request(own, &body, decision.alters_reply());
            let more = self.runs.logprobs().and_then(|asking| asking.ask(step.surface, &body));
            Ok::<_, ProxyError>((more, call.packed(&body)?))
        })
        .await?;
        let mut received = if let Some(more) = more {
            let more = call.packed(&more)?;
            // Boxed, so that a request of which nothing more is asked does not carry it.
            Box::pin(self.send_with_logprobs(step, call, body, more)).await?
        } else {
            self.send(step, call, body).await?
        };
        headers::strip_hop_by_hop(received.headers_mut());
        received = frames::worded(framed.as_ref(), received);
        step.origin = received.extensions().get().copied().unwrap_or_default();
        if let Some(reply) = received.extensions_mut().remove::<AlteredReply>() {
            heavy::in_turn(reply.given.len(), || retell::given_otherwise(step, &reply)).await;
        }
        step.answered(received.status(), received.headers());
        Ok(received)
    }

    /// Sends a request to the step's upstream.
    async fn send(
        &self,
        step: &OpenStep,
        call: ModelCall,
        body: Bytes,
    ) -> Result<Response<ReceivedBody>, UpstreamError> {
        let upstream = step.run.upstream.clone();
        let asker = upstream.is_some().then(|| step.asker(&call.body));
        let attachment = call.hinted.attachment.clone().filter(|_| surface::is_of_server(call.kind.name()));
        let mut sent = heavy::in_turn(body.len(), || self.to_upstream(call, body.clone())).await;
        if let Some(asker) = asker {
            sent.extensions_mut().insert(asker);
        }
        let own = upstream.as_ref();
        match attachment.map(|id| self.runs.attachments.server(&id, sent.uri().path())) {
            Some(server) => Box::pin(attached::send(sent, server, own)).await,
            None => own.unwrap_or(&self.upstream).send(sent).await,
        }
    }

    /// Asks for more than the client does, and takes that out of the reply again. An upstream that refuses to be asked that is
    /// asked once more without.
    async fn send_with_logprobs(
        &self,
        step: &mut OpenStep,
        call: ModelCall,
        body: Bytes,
        more: Bytes,
    ) -> Result<Response<ReceivedBody>, UpstreamError> {
        let mut received = self.send(step, call.clone(), more).await?;
        if !logprobs::may_refuse(&mut received).await? {
            return logprobs::strip_logprobs(step, received, &self.limits).await;
        }
        let (status, asked) = (received.status(), body.clone());
        let received = self.send(step, call, body).await?;
        if received.status().is_success()
            && let (Some(surface), Some(asking)) = (step.surface, self.runs.logprobs())
            && let Some(words) = asking.refused(surface, &asked, status)
        {
            tracing::warn!("{words}");
            step.run.recorder.note(&words);
        }
        Ok(received)
    }

    /// The reply on its way back: at once, or held until a model has answered what an edit of it asks. Where it is yet to be
    /// made, its step waits until it is fetched.
    pub(super) async fn hand_back(
        &self,
        due: PendingReply,
        received: Response<ReceivedBody>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        if inject::is_held(&due.step, &due.decision, &received) {
            Ok(self.hold(due, received))
        } else if due.step.storage.in_background {
            Box::pin(self.postpone(due, received)).await
        } else {
            due.deliver(received, &self.limits).await
        }
    }

    /// A streamed reply whose edit takes a while: its head goes out now, its frames when the edit is made.
    fn hold(&self, mut due: PendingReply, received: Response<ReceivedBody>) -> Response<Box<Delivery>> {
        let (mut head, body) = received.into_parts();
        let received = Response::from_parts(head.clone(), body);
        headers::body_changed(&mut head.headers);
        let limits = self.limits.clone();
        let every = due.step.run.asking.as_ref().map(|asking| asking.settings().keep_alive);
        let every = every.unwrap_or(limits.silence_timeout);
        let (sender, ahead) = tokio::sync::mpsc::unbounded_channel();
        due.step.ahead = due.step.is_of_server().then(|| EarlyPieces::new(sender));
        let edit = async move { due.deliver(received, &limits).await };
        Response::from_parts(head, Delivery::held(WaitingReply::new(Box::pin(edit), every, ahead)))
    }

    /// The request as the upstream gets it.
    fn to_upstream(&self, call: ModelCall, body: Bytes) -> Request<SentBody> {
        let mut parts = call.parts;
        self.head_to_upstream(&mut parts.headers, !call.kind.is_unread());
        // The body that is sent says how long it is.
        parts.headers.remove(header::CONTENT_LENGTH);
        // The same bytes at the same place: nothing was edited, and nothing needs comparing.
        if body.as_ptr() != call.body.as_ptr() {
            if call.kind.surface().is_some_and(|surface| surface::is_of_server(surface.name())) {
                servers::mirror_arguments(&mut parts.headers, &call.unpacked.plain, &body);
            }
            headers::body_changed(&mut parts.headers);
        }
        if matches!(call.kind, Kind::Tunnel) {
            headers::switch_to_websocket(&mut parts.headers);
        }
        if let Some(route) = self.route(call.kind, parts.uri.path(), &body) {
            parts.extensions.insert(route);
        }
        Request::from_parts(parts, Either::Left(Full::new(body)))
    }

    /// The head of a request as the upstream gets it, whatever it asks: without hints, and without a key that is one. `readable`:
    /// its reply is to be read.
    pub(super) fn head_to_upstream(&self, headers: &mut HeaderMap, readable: bool) {
        let hints = &self.identity.hints;
        headers::to_upstream(headers, [&hints.run_header, &hints.agent_header], readable);
        if hints.uses_keys() {
            headers.remove(header::AUTHORIZATION);
            headers.remove(&headers::API_KEY);
        }
    }

    /// The model route that a request selects.
    fn route(&self, kind: Kind, path: &str, body: &[u8]) -> Option<Route> {
        if self.routes.is_empty() {
            return None;
        }
        let outline = door::outline_at(kind.surface()?, path, body).ok()?;
        self.routes.iter().position(|pattern| pattern.is_match(&outline.model)).map(Route)
    }

    /// What is no model call is passed on as it streams, both ways, and not recorded.
    pub(super) async fn pass(&self, arrived: Arrived) -> Result<Response<Box<Delivery>>, Interrupted> {
        let Arrived { parts, body, hinted, .. } = arrived;
        let (upload, end) = Upload::new(body, &self.limits);
        let passed = self.pass_on(parts, Either::Right(upload), &hinted).await;
        passed.map_err(|error| end.error(&self.limits).map_or(error, Interrupted::from))
    }

    /// The same of a body that is there already, or streams.
    pub(super) async fn pass_on(
        &self,
        mut parts: Parts,
        body: SentBody,
        hinted: &Hinted,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        self.count_fetch_of(&parts, hinted)?;
        self.head_to_upstream(&mut parts.headers, false);
        let deleted = (parts.method == Method::DELETE).then(|| parts.uri.path().to_owned());
        let mut received = self.upstream.send(Request::from_parts(parts, body)).await?;
        headers::strip_hop_by_hop(received.headers_mut());
        if let Some(path) = deleted.filter(|_| received.status().is_success()) {
            self.deleted(&path, hinted)?;
        }
        Ok(received.map(|body| Delivery::pass(body, self.limits.silence_timeout)))
    }

    /// Counts a request that only looks at what a provider keeps.
    ///
    /// # Errors
    /// It names a run or an agent that cannot be: a typing error shows at the first request, wherever it is.
    pub(super) fn count_fetch_of(&self, parts: &Parts, hinted: &Hinted) -> Result<(), ProxyError> {
        let named = self.identity.run(&hinted.envelope(), || None)?.map(|(run, _)| run);
        self.identity.declared(&hinted.envelope())?;
        if surface::is_fetch(parts.method.as_str(), parts.uri.path())
            && let Some(run) = named.as_ref().or(self.default_run.as_ref()).and_then(|run| self.runs.find(run))
        {
            run.count_fetch();
        }
        Ok(())
    }
}
