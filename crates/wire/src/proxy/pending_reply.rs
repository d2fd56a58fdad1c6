//! A step under way with what is due to its reply: edited, disturbed, sent on its way to the client.

use hyper::{Response, header};

use super::{
    decided::Decided,
    delivery::Delivery,
    disturb::Breach,
    error::{Interrupted, ProxyError},
    headers, inject,
    limits::Limits,
    open_step::OpenStep,
    reshape,
    upstream::ReceivedBody,
};
use crate::{surface::Conversation, trajectory::CloseCause};

/// A step under way, and what the plan wants of it.
#[derive(Debug)]
pub(super) struct PendingReply {
    pub(super) step: Box<OpenStep>,
    pub(super) decision: Decided,
    /// The request as manipulators see it.
    pub(super) conversation: Option<Conversation>,
}

impl PendingReply {
    /// Edits the reply where an edit is due, and sends it on its way to the client, with what a fault does to it.
    pub(super) async fn deliver(
        mut self,
        received: Response<ReceivedBody>,
        limits: &Limits,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let changed =
            if self.decision.alters_reply() { Box::pin(self.change(received, limits)).await } else { Ok(received) };
        let (mut head, body) = match changed {
            Ok(response) => response.into_parts(),
            Err(interrupted) => return Err(self.closed(interrupted)?),
        };
        let length = hyper::body::Body::size_hint(&body).exact().filter(|_| !headers::is_event_stream(&head.headers));
        let breach = self.decision.faults.iter().find_map(|fault| Breach::from_disturbance(&fault.disturbance, length));
        if breach.as_ref().is_some_and(Breach::is_clean) {
            // The shorter reply is framed as a whole one.
            head.headers.remove(header::CONTENT_LENGTH);
        }
        let mut delivery = Delivery::of_step(body, &head.headers, self.step, breach, limits.silence_timeout)?;
        delivery.take_in().await?;
        Ok(Response::from_parts(head, delivery))
    }

    /// The reply with the edits and the faults that are due.
    pub(super) async fn change(
        &mut self,
        received: Response<ReceivedBody>,
        limits: &Limits,
    ) -> Result<Response<ReceivedBody>, Interrupted> {
        let Self { step, decision, conversation } = self;
        let edited = inject::edit_response(step, decision, conversation.as_ref(), received, limits).await?;
        reshape::reshape(step, decision, conversation.as_ref(), edited, limits).await
    }

    /// Closes the step of an exchange that has no reply.
    pub(super) fn closed(&mut self, interrupted: Interrupted) -> Result<Interrupted, ProxyError> {
        let cause = match &interrupted {
            Interrupted::Error(error) => {
                self.step.proxy_error = Some(Box::new(error.text()));
                error.cause()
            }
            Interrupted::Hushed => CloseCause::Injected,
        };
        self.step.close(cause)?;
        Ok(interrupted)
    }
}
