//! The line: one request's way through the proxy, in order.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{Method, Request, Response, body::Incoming, http::request::Parts};

use super::{
    Limits, Proxy, arrival,
    arrival::{Hinted, Kind},
    delivery::Delivery,
    disturb::Breach,
    error::{Interrupted, ProxyError},
    faults, headers, inject,
    open_step::OpenStep,
    reshape, retell,
    socket::Link,
    upload::Upload,
    upstream::{ReceivedBody, Route, SentBody},
};
use crate::{surface::Conversation, trajectory::CloseCause};

/// A model call, its body complete.
pub(super) struct ModelCall {
    pub(super) kind: Kind,
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    pub(super) received: Instant,
}

impl Proxy {
    /// One request's way through the proxy.
    pub(super) async fn exchange(
        &self,
        request: Request<Incoming>,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let received = Instant::now();
        let (mut parts, body) = request.into_parts();
        self.gate.admit(&mut parts)?;
        let hinted = arrival::unwrap(&mut parts, &self.identity.hints)?;
        let kind = Kind::of(&parts);
        match kind {
            Kind::Other => return self.pass(parts, body, &hinted).await,
            Kind::Fetch(surface) => return Box::pin(self.fetch(parts, body, &hinted, surface, link)).await,
            Kind::Tunnel => return Box::pin(self.tunnel(parts, received, &hinted, link)).await,
            Kind::Read(_) | Kind::Unread(_) => {}
        }
        let call = ModelCall { kind, parts, body: arrival::collect(body, &self.limits).await?, received };

        let (mut step, conversation, earlier) = self.open(&call, &hinted, link).await?;
        step.written().await?;
        let decision = inject::decide(&mut step, conversation.as_ref(), earlier);
        match self.answer(&mut step, call, conversation.as_ref(), &decision).await {
            Ok(received) if inject::is_held(&step, &decision, &received) => {
                Ok(self.hold(step, decision, conversation, received))
            }
            Ok(received) if step.background => Box::pin(self.postpone(step, decision, conversation, received)).await,
            Ok(received) => deliver(step, decision, conversation, received, &self.limits).await,
            Err(interrupted) => Err(closed(&mut step, interrupted)?),
        }
    }

    /// A streamed reply whose edit takes a while: its head goes out now, its frames when the edit is made.
    fn hold(
        &self,
        step: Box<OpenStep>,
        decision: inject::Decided,
        conversation: Option<Conversation>,
        received: Response<ReceivedBody>,
    ) -> Response<Box<Delivery>> {
        let (mut head, body) = received.into_parts();
        let received = Response::from_parts(head.clone(), body);
        headers::body_changed(&mut head.headers);
        let limits = self.limits.clone();
        let every = step.run.asking.as_ref().map(|asking| asking.settings().keep_alive).unwrap_or_default();
        let edit = async move { deliver(step, decision, conversation, received, &limits).await };
        Response::from_parts(head, Delivery::held(Box::pin(edit), every))
    }

    /// From the open step to the upstream's reply.
    pub(super) async fn answer(
        &self,
        step: &mut OpenStep,
        call: ModelCall,
        conversation: Option<&Conversation>,
        decision: &inject::Decided,
    ) -> Result<Response<ReceivedBody>, Interrupted> {
        if !decision.faults.is_empty()
            && let Some(made) = Box::pin(faults::disturb_request(step, decision)).await?
        {
            return Ok(made);
        }
        let asked = conversation;
        let retold = retell::request(step, conversation, &call.body)?;
        let (body, conversation) = match &retold {
            Some((body, conversation)) => (body, Some(conversation)),
            None => (&call.body, conversation),
        };
        let own = body;
        let body = inject::edit_request(step, decision, conversation, own, &self.limits).await?;
        step.kept_request = retell::asked(step, asked, own, &body);
        step.background = step.surface.is_some_and(|surface| surface.in_background(&body));
        step.asked = step.run.plan.as_ref().is_some_and(|plan| plan.retells()).then(|| body.clone());
        step.stored = decision.alters_reply() && step.surface.is_some_and(|surface| surface.stores(&body));
        let own = step.run.upstream.clone();
        let asker = own.is_some().then(|| step.asker(&call.body));
        let mut sent = self.to_upstream(call, body);
        if let Some(asker) = asker {
            sent.extensions_mut().insert(asker);
        }
        let mut received = own.as_ref().unwrap_or(&self.upstream).send(sent).await?;
        headers::strip_hop_by_hop(received.headers_mut());
        step.answered(received.status(), received.headers());
        Ok(received)
    }

    /// The request as the upstream gets it.
    fn to_upstream(&self, call: ModelCall, body: Bytes) -> Request<SentBody> {
        let mut parts = call.parts;
        headers::to_upstream(&mut parts.headers, self.hint_headers(), true);
        if self.identity.hints.uses_keys() {
            parts.headers.remove(hyper::header::AUTHORIZATION);
            parts.headers.remove(&headers::API_KEY);
        }
        // The same bytes at the same place: nothing was edited, and nothing needs comparing.
        if body.as_ptr() != call.body.as_ptr() {
            headers::body_changed(&mut parts.headers);
        }
        parts.headers.remove(hyper::header::CONTENT_LENGTH);
        if matches!(call.kind, Kind::Tunnel) {
            headers::switch_to_websocket(&mut parts.headers);
        }
        if let Some(route) = self.route(&call.kind, &body) {
            parts.extensions.insert(route);
        }
        Request::from_parts(parts, Either::Left(Full::new(body)))
    }

    /// The model route that a body selects.
    fn route(&self, kind: &Kind, body: &[u8]) -> Option<Route> {
        if self.routes.is_empty() {
            return None;
        }
        let outline = kind.surface()?.outline(body).ok()?;
        self.routes.iter().position(|pattern| pattern.is_match(&outline.model)).map(Route)
    }

    /// What is no model call is passed on as it streams, both ways, and not recorded.
    pub(super) async fn pass(
        &self,
        mut parts: Parts,
        body: Incoming,
        hinted: &Hinted,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        // A bad hint is refused wherever it is given, so that a typing error shows at the first request.
        self.identity.run(&hinted.envelope(), || None)?;
        self.identity.declared(&hinted.envelope())?;
        headers::to_upstream(&mut parts.headers, self.hint_headers(), false);
        let deleted = (parts.method == Method::DELETE).then(|| parts.uri.path().to_owned());
        let (upload, stall) = Upload::new(body, self.limits.body_timeout);
        let sent = self.upstream.send(Request::from_parts(parts, Either::Right(upload))).await;
        let mut received = match sent {
            Err(_) if stall.has_come() => return Err(ProxyError::BodyTimeout(self.limits.body_timeout).into()),
            sent => sent?,
        };
        headers::strip_hop_by_hop(received.headers_mut());
        if let Some(path) = deleted.filter(|_| received.status().is_success()) {
            self.deleted(&path, hinted)?;
        }
        Ok(received.map(|body| Delivery::pass(body, self.limits.silence_timeout)))
    }

    pub(super) fn hint_headers(&self) -> [&str; 2] {
        [&self.identity.hints.run_header, &self.identity.hints.agent_header]
    }
}

/// Edits the reply where an edit is due, and sends it on its way to the client, with what a fault does to it.
pub(super) async fn deliver(
    mut step: Box<OpenStep>,
    decision: inject::Decided,
    conversation: Option<Conversation>,
    received: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<Box<Delivery>>, Interrupted> {
    let changed = if decision.alters_reply() {
        Box::pin(change(&mut step, &decision, conversation.as_ref(), received, limits)).await
    } else {
        Ok(received)
    };
    let (mut head, body) = match changed {
        Ok(response) => response.into_parts(),
        Err(interrupted) => return Err(closed(&mut step, interrupted)?),
    };
    let length = hyper::body::Body::size_hint(&body).exact().filter(|_| !headers::is_event_stream(&head.headers));
    let breach = decision.faults.iter().find_map(|fault| Breach::of(&fault.disturbance, length));
    if breach.as_ref().is_some_and(Breach::is_clean) {
        // The shorter reply is framed as a whole one.
        head.headers.remove(hyper::header::CONTENT_LENGTH);
    }
    let mut delivery = Delivery::of_step(body, &head.headers, step, breach, limits.silence_timeout)?;
    delivery.take_in().await?;
    Ok(Response::from_parts(head, delivery))
}

/// The reply with the edits and the faults that are due.
pub(super) async fn change(
    step: &mut OpenStep,
    decision: &inject::Decided,
    conversation: Option<&Conversation>,
    received: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, Interrupted> {
    let edited = inject::edit_response(step, decision, conversation, received, limits).await?;
    reshape::reshape(step, decision, conversation, edited, limits).await
}

/// Closes the step of an exchange that has no reply.
pub(super) fn closed(step: &mut OpenStep, interrupted: Interrupted) -> Result<Interrupted, ProxyError> {
    step.close(match &interrupted {
        Interrupted::Error(error) => error.cause(),
        Interrupted::Hushed => CloseCause::Injected,
    })?;
    Ok(interrupted)
}
