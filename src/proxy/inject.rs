//! The plan at work on one step: decide, disturb, edit the request, edit the reply. What is done is recorded before
//! the first altered byte leaves; what cannot be done is recorded too, and the step passes untouched.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    header::{self, HeaderName, HeaderValue},
};

use super::{
    Limits, decode, error::ProxyError, exchange::Interrupted, headers, open_step::OpenStep, runs::Run,
    upstream::ReceivedBody,
};
use crate::{
    fault::{Disturbance, Moment},
    manipulator::Context,
    plan::{self, Decision, Facts, Hit, Injection, Operator},
    recording::{Inject, ManipulatorFailed},
    surface::{Conversation, ErrorBody, OpenaiChat, Reply, Surface, SurfaceError, sse},
    trajectory::{Attribution, Side},
};

/// What the plan wants of a step, with the fault of this attempt worked out.
#[derive(Debug, Default)]
pub(super) struct Decided {
    edits: Arc<Decision>,
    pub(super) fault: Option<Planned>,
}

/// A fault that this attempt meets.
#[derive(Debug)]
pub(super) struct Planned {
    injection: u32,
    draw: u64,
    pub(super) disturbance: Disturbance,
}

/// The request as manipulators see it; `None` where no plan could need it.
///
/// # Errors
/// A plan aims at this agent, and the body cannot be read: it must not reach the upstream half-checked.
pub(super) fn conversation(
    run: &Run,
    surface: Option<&'static dyn Surface>,
    attribution: &Attribution,
    body: &[u8],
) -> Result<Option<Conversation>, ProxyError> {
    let (Some(plan), Some(surface)) = (&run.plan, surface) else { return Ok(None) };
    let aimed = |injection: &Injection| injection.agents.matches(attribution.agent.as_str());
    if !plan.injections.iter().any(aimed) {
        return Ok(None);
    }
    surface.read_request(body).map(Some).map_err(|error| ProxyError::Unreadable(error.to_string()))
}

/// What the plan wants of a step. A retry meets the decision of its first attempt.
pub(super) fn decide(step: &OpenStep, conversation: Option<&Conversation>, earlier: Option<Arc<Decision>>) -> Decided {
    let Some(plan) = &step.run.plan else { return Decided::default() };
    let edits = earlier.unwrap_or_else(|| {
        let delivered = |injection| step.run.delivered(&step.attribution, injection);
        let facts = Facts {
            run: step.run.id.as_str(),
            agent: step.attribution.agent.as_str(),
            instance: step.attribution.instance,
            call: step.numbers.call,
            step: step.numbers.step,
            conversation,
            delivered: &delivered,
        };
        let mut decision = plan::decide(plan, &facts);
        let edits = decision.request.len() + decision.response.len() > 0;
        if edits && !step.attribution.is_certain() {
            // An edit is ground truth about an agent: one that is only believed to be the target is not hit.
            decision = Decision { faults: decision.faults, ..Decision::default() };
            step.run.refuse(&step.attribution);
        }
        let decision = Arc::new(decision);
        step.run.decided(&step.attribution, step.body_hash, &decision);
        decision
    });
    let fault = edits.faults.iter().find_map(|hit| {
        let Operator::Fault(fault) = &injection(step, hit)?.operator else { return None };
        let disturbance = fault.disturb(hit.draw, step.numbers.attempt)?;
        Some(Planned { injection: hit.injection, draw: hit.draw, disturbance })
    });
    Decided { edits, fault }
}

/// Does to an exchange what a fault wants before the upstream is asked. `Some` is the reply instead of the upstream's.
pub(super) async fn disturb_request(
    step: &mut OpenStep,
    decided: &Decided,
) -> Result<Option<Response<ReceivedBody>>, Interrupted> {
    let Some(fault) = &decided.fault else { return Ok(None) };
    record(step, fault.injection, fault.draw, Side::Response, None)?;
    match &fault.disturbance {
        Disturbance::Delay(wait) => tokio::time::sleep(*wait).await,
        Disturbance::Reset(Moment::BeforeRequest) => {
            step.reset_connection();
            return Err(Interrupted::Hushed);
        }
        Disturbance::Cut { at: Moment::BeforeRequest, .. } => return Err(Interrupted::Hushed),
        Disturbance::Hang { at: Moment::BeforeRequest, at_most } => {
            tokio::time::sleep(*at_most).await;
            step.reset_connection();
            return Err(Interrupted::Hushed);
        }
        Disturbance::Answer { .. } => {
            let made = answer(step.surface.unwrap_or(&OpenaiChat), &fault.disturbance);
            step.answered(made.status(), made.headers());
            return Ok(Some(made));
        }
        Disturbance::Reset(_) | Disturbance::Cut { .. } | Disturbance::Hang { .. } => {}
    }
    Ok(None)
}

/// The body that goes upstream: the client's own, or the edited one.
pub(super) fn edit_request(
    step: &mut OpenStep,
    decided: &Decided,
    conversation: Option<&Conversation>,
    body: &Bytes,
) -> Result<Bytes, Interrupted> {
    let mut current = (body.clone(), None::<Conversation>);
    for hit in &decided.edits.request {
        let (Some(surface), Some(original)) = (step.surface, conversation) else { break };
        let Some(injection) = injection(step, hit).cloned() else { continue };
        let before = current.1.as_ref().unwrap_or(original);
        let answers = step.run.answers();
        let context = context(step, before, &answers, hit);
        let edited = injection.edit_request(before, &context).map_err(|error| error.to_string()).and_then(|after| {
            let written = surface.write_request(&current.0, before, &after).map_err(|error| error.to_string())?;
            let read = surface.read_request(&written).map_err(|error| error.to_string())?;
            Ok((written, read))
        });
        match edited {
            Ok((written, read)) => {
                record(step, hit.injection, hit.draw, Side::Request, Some((&current.0, &written)))?;
                current = (written, Some(read));
            }
            Err(why) => failed(step, hit, &injection, &why)?,
        }
    }
    Ok(current.0)
}

/// The reply that goes to the client: the upstream's as it streams, or, where an edit is due, collected and edited.
pub(super) async fn edit_response(
    step: &mut OpenStep,
    decided: &Decided,
    conversation: Option<&Conversation>,
    received: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, Interrupted> {
    let (Some(surface), Some(conversation), false) = (step.surface, conversation, decided.edits.response.is_empty())
    else {
        return Ok(received);
    };
    let (mut head, body) = received.into_parts();
    // An error of the upstream is never edited: it passes verbatim and ends the label.
    if !head.status.is_success() {
        return Ok(Response::from_parts(head, body));
    }
    let streamed = headers::is_event_stream(&head.headers);
    let raw = match collect(step, body, limits).await? {
        Collected::Whole(raw) => raw,
        Collected::TooLarge(rest) => {
            let why = format!("the reply is larger than {} bytes", limits.max_body_bytes);
            all_failed(step, decided, &why)?;
            return Ok(Response::from_parts(head, rest));
        }
    };
    let encoding = headers::text(&head.headers, "content-encoding").map(str::to_owned);
    let plain =
        decode::body(&raw, encoding.as_deref()).ok_or_else(|| "the reply's content-encoding cannot be read".to_owned());
    let read = plain.and_then(|plain| {
        let reply = if streamed { surface.read_stream(&plain) } else { surface.read_reply(&plain) };
        Ok((plain, reply.map_err(|error| error.to_string())?))
    });
    let mut current = match read {
        Ok(read) => read,
        Err(why) => {
            all_failed(step, decided, &why)?;
            return Ok(Response::from_parts(head, made(raw, streamed)));
        }
    };
    let untouched = current.0.clone();
    for hit in &decided.edits.response {
        let Some(injection) = injection(step, hit).cloned() else { continue };
        let answers = step.run.answers();
        let context = context(step, conversation, &answers, hit);
        let edited = injection.edit_reply(&current.1, &context).map_err(|error| error.to_string());
        let written =
            edited.and_then(|after| write(surface, streamed, &current, &after).map_err(|error| error.to_string()));
        match written {
            Ok(written) => {
                record(step, hit.injection, hit.draw, Side::Response, Some((&current.0, &written.0)))?;
                current = written;
            }
            Err(why) => failed(step, hit, &injection, &why)?,
        }
    }
    if current.0 == untouched {
        return Ok(Response::from_parts(head, made(raw, streamed)));
    }
    step.delivered = Some(current.0.clone());
    headers::body_changed(&mut head.headers);
    head.headers.remove(header::CONTENT_ENCODING);
    Ok(Response::from_parts(head, made(current.0, streamed)))
}

/// A reply that was to be read whole.
enum Collected {
    Whole(Bytes),
    /// It is more than is held for an edit: what was read, and what follows.
    TooLarge(ReceivedBody),
}

/// Reads the upstream's whole reply onto the step's tape.
async fn collect(step: &mut OpenStep, mut body: ReceivedBody, limits: &Limits) -> Result<Collected, Interrupted> {
    use http_body_util::BodyExt;
    let mut length = 0;
    loop {
        let frame = tokio::time::timeout(limits.silence_timeout, body.frame()).await;
        let frame = frame.map_err(|_| super::upstream::UpstreamError::Timeout(limits.silence_timeout))?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| super::upstream::UpstreamError::Closed(Box::new(error)))?;
        if let Ok(data) = frame.into_data() {
            length += data.len();
            if length > limits.max_body_bytes {
                let mut read = step.untape();
                read.push_back(data);
                return Ok(Collected::TooLarge(ReceivedBody::Resumed(read, Box::new(body))));
            }
            step.tape(&data);
        }
    }
    step.stop_taping();
    Ok(Collected::Whole(step.taped()))
}

fn write(
    surface: &dyn Surface,
    streamed: bool,
    current: &(Bytes, Reply),
    after: &Reply,
) -> Result<(Bytes, Reply), SurfaceError> {
    let (body, before) = current;
    if streamed {
        let written = surface.write_stream(body, before, after)?;
        let read = surface.read_stream(&written)?;
        return Ok((written, read));
    }
    let written = surface.write_reply(body, before, after)?;
    let read = surface.read_reply(&written)?;
    Ok((written, read))
}

/// A body of ours: event streams go out frame by frame, as they came.
fn made(body: Bytes, streamed: bool) -> ReceivedBody {
    if !streamed {
        return ReceivedBody::Made(VecDeque::from([body]));
    }
    ReceivedBody::Made(sse::events(&body).into_iter().map(|event| body.slice(event.span)).collect())
}

/// The reply that a fault gives instead of the upstream's: nothing in it tells it from a provider's own.
fn answer(surface: &dyn Surface, disturbance: &Disturbance) -> Response<ReceivedBody> {
    let Disturbance::Answer { status, headers, retry_after_date, message, kind, code } = disturbance else {
        return Response::new(made(Bytes::new(), false));
    };
    let body = surface.error_body(&ErrorBody { message, kind, code: code.as_deref(), param: None });
    let mut response = Response::new(made(body, false));
    *response.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
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

fn injection<'a>(step: &'a OpenStep, hit: &Hit) -> Option<&'a Injection> {
    step.run.plan.as_ref()?.injections.get(hit.injection as usize)
}

fn context<'a>(
    step: &'a OpenStep,
    conversation: &'a Conversation,
    earlier: &'a [(String, String)],
    hit: &Hit,
) -> Context<'a> {
    Context { agent: step.attribution.agent.as_str(), conversation, earlier, draw: hit.draw }
}

/// Writes down what is about to be done, and counts it.
fn record(
    step: &OpenStep,
    injection: u32,
    draw: u64,
    side: Side,
    edit: Option<(&Bytes, &Bytes)>,
) -> Result<(), Interrupted> {
    let Some(plan) = &step.run.plan else { return Ok(()) };
    let Some(planned) = plan.injections.get(injection as usize) else { return Ok(()) };
    step.run.recorder.inject(Inject {
        step: step.numbers.step,
        attempt: step.numbers.attempt,
        injection,
        side,
        operator: &planned.name,
        failure_mode: planned.failure_mode,
        seed: plan.seed,
        draw: Some(draw),
        planned: true,
        matched: true,
        applied: true,
        before: edit.map(|(before, _)| before),
        after: edit.map(|(_, after)| after),
    })?;
    step.run.count_delivered(&step.attribution, injection);
    Ok(())
}

/// Writes down what could not be done.
fn failed(step: &OpenStep, hit: &Hit, injection: &Injection, why: &str) -> Result<(), Interrupted> {
    tracing::warn!(
        step = step.numbers.step,
        operator = injection.name,
        why,
        "an edit could not be made; the step passes untouched"
    );
    step.run.recorder.manipulator_failed(ManipulatorFailed {
        step: step.numbers.step,
        attempt: step.numbers.attempt,
        injection: hit.injection,
        operator: &injection.name,
        why,
    })?;
    Ok(())
}

/// Writes down that no edit of the reply could be made.
fn all_failed(step: &OpenStep, decided: &Decided, why: &str) -> Result<(), Interrupted> {
    for hit in &decided.edits.response {
        if let Some(injection) = injection(step, hit) {
            failed(step, hit, injection, why)?;
        }
    }
    Ok(())
}
