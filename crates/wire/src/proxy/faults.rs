//! Faults before the upstream is asked: waits, refusals, broken connections. What is done is recorded first.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    header::{self, HeaderName, HeaderValue},
};

use super::{
    chunks::composed,
    decided::{Decided, Planned},
    error::Interrupted,
    inject::record,
    open_step::OpenStep,
    upstream::ReceivedBody,
};
use crate::{
    fault::{AnswerBody, Disturbance, Fault, Moment, Window},
    plan::Operator,
    recording::Inject,
    surface::{self, ErrorBody, OpenaiChat, Surface},
    trajectory::Side,
};

/// Does to an exchange what a fault wants before the upstream is asked. `Some` is the reply instead of the upstream's.
pub(super) async fn disturb_request(
    step: &mut OpenStep,
    decided: &Decided,
    asked: &Bytes,
) -> Result<Option<Response<ReceivedBody>>, Interrupted> {
    for fault in &decided.faults {
        match &fault.disturbance {
            Disturbance::Delay(wait) => {
                record_fault(step, fault)?;
                tokio::time::sleep(*wait).await;
            }
            Disturbance::Reset(Moment::BeforeRequest) => {
                record_fault(step, fault)?;
                step.reset_connection();
                return Err(Interrupted::Hushed);
            }
            Disturbance::Cut { at: Moment::BeforeRequest, .. } => {
                record_fault(step, fault)?;
                return Err(Interrupted::Hushed);
            }
            Disturbance::Hang { at: Moment::BeforeRequest, at_most } => {
                record_fault(step, fault)?;
                tokio::time::sleep(*at_most).await;
                step.reset_connection();
                return Err(Interrupted::Hushed);
            }
            Disturbance::Answer { .. } => {
                record_fault(step, fault)?;
                let made = answer(step.surface.unwrap_or(&OpenaiChat), &fault.disturbance, asked);
                step.answered(made.status(), made.headers());
                return Ok(Some(made));
            }
            Disturbance::Limit(window) => {
                if let Some(made) = limit(step, fault, window, asked)? {
                    return Ok(Some(made));
                }
            }
            // These act on the reply. Whether it can be changed shows when it is there.
            Disturbance::Reset(_) | Disturbance::Cut { .. } | Disturbance::Hang { .. } => record_fault(step, fault)?,
            Disturbance::Pace(_) | Disturbance::ContentType(_) | Disturbance::Reshape => {}
        }
    }
    Ok(None)
}

/// Answers 429 where a window of requests is used up.
fn limit(
    step: &mut OpenStep,
    fault: &Planned,
    window: &Window,
    asked: &Bytes,
) -> Result<Option<Response<ReceivedBody>>, Interrupted> {
    let Err(wait) = step.run.admit(fault.injection, window, &step.attribution.agent) else { return Ok(None) };
    record_fault(step, fault)?;
    let surface = step.surface.unwrap_or(&OpenaiChat);
    let told = surface.limit_headers(window.requests, 0, wait);
    let mut headers: Vec<_> = told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if window.retry_after {
        headers.push(("retry-after".to_owned(), format!("{:.0}", wait.as_secs_f64().ceil())));
        headers.push(("retry-after-ms".to_owned(), wait.as_millis().to_string()));
    }
    let body = AnswerBody::Error { message: None, kind: None, code: None };
    let made = answer(surface, &Disturbance::Answer { status: 429, headers, retry_after_date: None, body }, asked);
    step.answered(made.status(), made.headers());
    Ok(Some(made))
}

/// Writes down that a fault acts.
pub(super) fn record_fault(step: &OpenStep, fault: &Planned) -> Result<(), Interrupted> {
    record(step, fault.injection, fault.draw, Side::Response, None)
}

/// Says of faults that change a content type that they cannot act on a message of a server over standard output.
pub(super) fn without_content_type(step: &OpenStep, decided: &mut Decided) -> Result<(), Interrupted> {
    let is_of_head = |fault: &mut Planned| matches!(fault.disturbance, Disturbance::ContentType(_));
    for fault in decided.faults.extract_if(.., is_of_head) {
        fault_failed(step, &fault, "standard output has no content type")?;
    }
    Ok(())
}

/// Writes down that a fault could not act: it was planned and matched, no more.
pub(super) fn fault_failed(step: &OpenStep, fault: &Planned, why: &str) -> Result<(), Interrupted> {
    let Some(plan) = &step.run.plan else { return Ok(()) };
    let Some(planned) = step.injection(fault.injection) else { return Ok(()) };
    let number = step.numbers.step;
    tracing::warn!(step = number, operator = planned.name, why, "a fault could not act; the reply passes as it came");
    step.run.recorder.inject(Inject {
        step: number,
        attempt: step.numbers.attempt,
        injection: fault.injection,
        side: Side::Response,
        operator: &planned.name,
        failure_mode: None,
        speaker: None,
        seed: plan.seed,
        draw: Some(fault.draw),
        planned: true,
        matched: true,
        applied: false,
        before: None,
        after: None,
    })?;
    step.run.recorder.note(&format!("step {number}: `{}` could not act: {why}", planned.name));
    Ok(())
}

/// The fault itself.
pub(super) fn operator(step: &OpenStep, fault: &Planned) -> Option<Arc<dyn Fault>> {
    match &step.injection(fault.injection)?.operator {
        Operator::Fault(fault) => Some(Arc::clone(fault)),
        Operator::Manipulator { .. } => None,
    }
}

/// The reply to `asked` that a fault gives instead of the upstream's: nothing in it tells it from a provider's own.
fn answer(surface: &dyn Surface, disturbance: &Disturbance, asked: &Bytes) -> Response<ReceivedBody> {
    let Disturbance::Answer { status, headers, retry_after_date, body } = disturbance else {
        return Response::new(composed(Bytes::new(), false));
    };
    let (content_type, body) = match body {
        AnswerBody::Error { message, kind, code } => {
            let own = surface.refusal(*status, code.as_deref());
            let error = ErrorBody {
                message: message.as_deref().unwrap_or(own.message),
                kind: kind.as_deref().unwrap_or(own.kind),
                code: code.as_deref().or(own.code),
                param: own.param,
            };
            let body = surface.error_body(&error);
            let is_of_tools = surface::is_of_server(surface.name());
            ("application/json", if is_of_tools { surface::answering(asked, &body, false) } else { body })
        }
        AnswerBody::Raw { content_type, bytes } => (content_type.as_str(), bytes.clone()),
    };
    let mut response = Response::new(composed(body, false));
    let content_type = HeaderValue::from_str(content_type).unwrap_or(HeaderValue::from_static("text/plain"));
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    *response.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    if let Some(wait) = retry_after_date {
        let date = jiff::Timestamp::now() + *wait;
        let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&date);
        if let Ok(value) = date.map_err(drop).and_then(|date| HeaderValue::from_str(&date).map_err(drop)) {
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
    }
    response
}
