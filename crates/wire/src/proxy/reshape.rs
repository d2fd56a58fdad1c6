//! Faults that change a reply: its bytes, its content type, its pace.

use bytes::Bytes;
use hyper::{
    Response,
    header::{self, HeaderValue},
};

use super::{
    chunks::composed,
    decided::{Decided, Planned},
    error::Interrupted,
    faults, headers, heavy, inject,
    limits::Limits,
    open_step::OpenStep,
    read_whole::collect,
    stored::retell,
    upstream::{Paced, ReceivedBody},
};
use crate::{
    fault::{Answered, Disturbance, Fault},
    surface::{
        Conversation,
        door::{self, UnpackedBody},
    },
    trajectory::Side,
};

/// The reply after the faults that change it.
pub(super) async fn reshape(
    step: &mut OpenStep,
    decided: &Decided,
    conversation: Option<&Conversation>,
    received: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, Interrupted> {
    let mut response = received;
    for fault in &decided.faults {
        match &fault.disturbance {
            // An error of the upstream is never changed: it passes verbatim.
            _ if !response.status().is_success() => {}
            Disturbance::Reshape => response = change(step, fault, conversation, response, limits).await?,
            Disturbance::ContentType(kind) => {
                let value = HeaderValue::from_str(kind).unwrap_or(HeaderValue::from_static("text/plain"));
                response.headers_mut().insert(header::CONTENT_TYPE, value);
                faults::record_fault(step, fault)?;
            }
            Disturbance::Pace(pace) => {
                faults::record_fault(step, fault)?;
                let streamed = headers::is_event_stream(response.headers());
                response = response.map(|body| ReceivedBody::Paced(Box::new(Paced::new(body, *pace, streamed))));
            }
            _ => {}
        }
    }
    Ok(response)
}

/// Collects a reply and lets a fault change its bytes.
async fn change(
    step: &mut OpenStep,
    fault: &Planned,
    conversation: Option<&Conversation>,
    response: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, Interrupted> {
    let (mut head, body) = response.into_parts();
    let streamed = headers::is_event_stream(&head.headers);
    let raw = match collect(step, body, limits).await? {
        Ok(raw) => raw,
        Err(rest) => {
            let why = format!("the reply is larger than {} bytes", limits.max_body_bytes);
            faults::fault_failed(step, fault, &why)?;
            return Ok(Response::from_parts(head, rest));
        }
    };
    let encoding = headers::text(&head.headers, &header::CONTENT_ENCODING).map(str::to_owned);
    let (changed, streamed) = heavy::in_turn(raw.len(), || {
        let UnpackedBody { plain, refused, .. } = UnpackedBody::unpack(&raw, encoding.as_deref());
        let streamed = door::is_stream(&plain, streamed);
        let plain = refused.map_or(Ok(plain), |error| Err(error.to_string()));
        let changed = plain.and_then(|plain| {
            let operator = faults::operator(step, fault).ok_or("the fault is not in the plan")?;
            let changed = changed(step, operator.as_ref(), fault.draw, &plain, streamed)?;
            if !changed.starts_with(step.gone_ahead(&plain)) {
                return Err("it would change what has gone ahead of the reply".to_owned());
            }
            Ok((changed, plain))
        });
        (changed, streamed)
    })
    .await;
    let (changed, plain) = match changed {
        Ok(changed) => changed,
        Err(why) => {
            faults::fault_failed(step, fault, &why)?;
            return Ok(Response::from_parts(head, composed(raw, streamed)));
        }
    };
    heavy::in_turn(raw.len(), || {
        inject::record(
            step,
            fault.injection,
            fault.draw,
            Side::Response,
            Some(inject::BodyEdit { before: &plain, after: &changed }),
        )
    })
    .await?;
    if faults::operator(step, fault).is_some_and(|fault| fault.rewords()) {
        let change = retell::Retelling { kept: &plain, told: &changed, streamed };
        retell::edited(step, &change, &[fault.injection], conversation);
    }
    step.delivered = Some(changed.clone());
    headers::body_changed(&mut head.headers);
    head.headers.remove(header::CONTENT_ENCODING);
    Ok(Response::from_parts(head, composed(changed, streamed)))
}

fn changed(step: &OpenStep, fault: &dyn Fault, draw: u64, body: &Bytes, streamed: bool) -> Result<Bytes, String> {
    let surface = step.surface.ok_or("the reply is of no API that is read")?;
    let earlier = step.run.answers();
    let agent = step.attribution.agent.as_str();
    fault.reshape(&Answered { body, streamed, surface, agent, earlier: &earlier }, draw)
}
