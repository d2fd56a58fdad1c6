//! The plan at work on one step: edit the request, edit the reply. What is done is recorded before
//! the first altered byte leaves; what cannot be done is recorded too, and the step passes untouched.

use bytes::Bytes;
use hyper::{Response, header, http::response};

use super::{
    ask,
    chunks::composed,
    decided::Decided,
    error::{Interrupted, ProxyError},
    headers, heavy,
    limits::Limits,
    open_step::OpenStep,
    read_whole::collect,
    run::Run,
    skipped::{SkipReason, all_failed, failed},
    speakers::{self, ReplyEdit},
    stored::retell,
    upstream::ReceivedBody,
};
use crate::{
    fault::Disturbance,
    manipulator::{Adaptive, Context},
    plan::{Hit, Injection},
    recording::Inject,
    surface::{
        Conversation, Reading, Reply, Surface, SurfaceError,
        door::{self, UnpackedBody},
        ending, recounted, written,
    },
    trajectory::{Attribution, CloseCause, Side},
};

/// Why an edit that changes what is read of a body, and not the body, is none.
const NO_PLACE: &str = "the body has no place for the edit";

/// The request as manipulators see it; `None` where no plan could need it.
///
/// # Errors
/// A plan aims at this agent, and the body cannot be read: it must not reach the upstream half-checked.
pub(super) fn conversation(
    run: &Run,
    surface: Option<&'static dyn Surface>,
    attribution: &Attribution,
    names_speakers: bool,
    body: &UnpackedBody,
) -> Result<Option<Conversation>, ProxyError> {
    let Some(surface) = surface else { return Ok(None) };
    let Some(plan) = &run.plan else {
        return Ok(run.has_stored_edits().then(|| door::request(surface, &body.plain).ok()).flatten());
    };
    if plan.asks_model() {
        run.learn_task(|| Some(door::outline(surface, &body.plain).ok()?.first_user()?.into_owned()));
    }
    let aimed = |injection: &Injection| injection.agents.matches(attribution.agent.as_str());
    if names_speakers || plan.injections.iter().any(aimed) {
        let refused = body.refused.as_ref().map_or(Ok(()), |error| Err(ProxyError::Unreadable(error.to_string())));
        return refused.and_then(|()| read(run, surface, &body.plain)).map(Some);
    }
    // Another agent may go on from a reply that was edited, and a neutral change is made where it can be.
    Ok(if run.has_stored_edits() || plan.has_neutral_changes() {
        door::request(surface, &body.plain).ok()
    } else {
        None
    })
}

/// A request as manipulators see it: the run knows what tool a result is of whose call stands in no request.
fn read(run: &Run, surface: &dyn Surface, body: &[u8]) -> Result<Conversation, ProxyError> {
    let read = door::request(surface, body);
    let mut read = read.map_err(|error| ProxyError::Unreadable(error.to_string()))?;
    run.name_results(&mut read);
    Ok(read)
}

/// The body that goes upstream: the client's own, or the edited one.
pub(super) async fn edit_request(
    step: &mut OpenStep,
    decided: &Decided,
    conversation: Option<&Conversation>,
    body: &Bytes,
    limits: &Limits,
) -> Result<Bytes, Interrupted> {
    match (step.surface, conversation) {
        (Some(surface), Some(original)) if !decided.edits.request.is_empty() => {
            // Boxed, so that a request that nobody edits does not carry it.
            Box::pin(edit_each(step, decided, surface, original, body, limits)).await
        }
        _ => Ok(body.clone()),
    }
}

async fn edit_each(
    step: &mut OpenStep,
    decided: &Decided,
    surface: &'static dyn Surface,
    original: &Conversation,
    body: &Bytes,
    limits: &Limits,
) -> Result<Bytes, Interrupted> {
    // What an edit made is read again only where another one goes on from it.
    let mut current = (body.clone(), None::<Conversation>);
    let until = step.deadline();
    for hit in &decided.edits.request {
        let Some(injection) = step.injection(hit.injection).cloned() else { continue };
        if injection.asks_model() {
            // What is asked comes of this request: it is written before.
            step.written().await?;
        }
        if current.1.is_none() && current.0.as_ptr() != body.as_ptr() {
            current.1 = Some(heavy::in_turn(current.0.len(), || read(&step.run, surface, &current.0)).await?);
        }
        let before = current.1.as_ref().unwrap_or(original);
        let bytes = current.0.len();
        let answers = step.run.answers();
        let edit =
            |adaptive: Adaptive<'_>| injection.edit_request(before, &context(step, before, &answers, hit, adaptive));
        let told = ask::edit_with_answers(step, hit, &injection, until, bytes, edit).await?;
        let write = |after: Conversation| {
            let written = door::write_request(surface, &current.0, before, &after);
            let written = bounded(written.map_err(|error| error.to_string())?, limits)?;
            written::request(surface, &current.0, &written, &after)?;
            Ok(written)
        };
        match heavy::in_turn(bytes, || told.and_then(write)).await {
            Ok(written) if written == current.0 => failed(step, hit, &injection, &NO_PLACE.to_owned().into())?,
            Ok(written) => {
                heavy::in_turn(bytes, || queue(step, hit, BodyEdit { before: &current.0, after: &written })).await?;
                current = (written, None);
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
    let (Some(surface), Some(conversation), true) = (step.surface, conversation, decided.may_edit_reply()) else {
        return Ok(received);
    };
    let (mut head, body) = received.into_parts();
    // An error of the upstream is never edited: it passes verbatim and ends the label.
    if !head.status.is_success() {
        return Ok(Response::from_parts(head, body));
    }
    let raw = match collect(step, body, limits).await? {
        Ok(raw) => raw,
        Err(rest) => {
            let why = format!("the reply is larger than {} bytes", limits.max_body_bytes);
            all_failed(step, &decided.edits.response, &why.into())?;
            return Ok(Response::from_parts(head, rest));
        }
    };
    let (streamed, read) = heavy::in_turn(raw.len(), || read_reply(surface, &head, &raw)).await;
    let (untouched, Reading { view, unplaced }) = match read {
        Ok(read) => read,
        Err(why) => {
            // What a client reads on elsewhere is edited there.
            if !(streamed && step.is_read_on(&raw)) {
                all_failed(step, &decided.edits.response, &why)?;
            }
            return Ok(Response::from_parts(head, composed(raw, streamed)));
        }
    };
    let edits = speakers::reply_edits(step, decided, conversation, &view)?;
    if let Some(piece) = unplaced.first() {
        speakers::all_failed(step, &edits, &written::not_placed(piece).into())?;
        return Ok(Response::from_parts(head, composed(raw, streamed)));
    }
    let read = ReplyBody { bytes: untouched.clone(), view };
    let edited = edit_reply(step, &edits, conversation, surface, streamed, read, limits).await?.bytes;
    if !edited.starts_with(step.gone_ahead(&raw)) {
        return Err(ProxyError::Unreadable("an edit changes what has gone ahead of the reply".to_owned()).into());
    }
    if edited == untouched {
        return Ok(Response::from_parts(head, composed(raw, streamed)));
    }
    let change = retell::Retelling { kept: &untouched, told: &edited, streamed };
    let injections: Vec<u32> = edits.iter().map(|edit| edit.hit.injection).collect();
    heavy::in_turn(untouched.len(), || retell::edited(step, &change, &injections, Some(conversation))).await;
    step.delivered = Some(edited.clone());
    headers::body_changed(&mut head.headers);
    head.headers.remove(header::CONTENT_ENCODING);
    Ok(Response::from_parts(head, composed(edited, streamed)))
}

/// A collected reply without its content codings and as manipulators see it, and whether it is a stream. An error inside a status
/// of success is edited no more than one with a status of its own.
fn read_reply(
    surface: &dyn Surface,
    head: &response::Parts,
    raw: &Bytes,
) -> (bool, Result<(Bytes, Reading<Reply>), SkipReason>) {
    let encoding = headers::text(&head.headers, &header::CONTENT_ENCODING);
    let UnpackedBody { plain, refused, .. } = UnpackedBody::unpack(raw, encoding);
    let streamed = door::is_stream(&plain, headers::is_event_stream(&head.headers));
    if ending(Some(surface), CloseCause::Complete, Some(head.status.as_u16()), &plain, streamed).is_error() {
        let why = "the reply is an error, or none of this API".to_owned();
        return (streamed, Err(SkipReason { why, nothing: true }));
    }
    let read = refused.map_or_else(|| door::reading(surface, &plain, streamed), Err);
    (streamed, read.map(|read| (plain, read)).map_err(|error| error.to_string().into()))
}

/// A reply's bytes, and what is read in them.
struct ReplyBody {
    bytes: Bytes,
    view: Reply,
}

/// What an edit makes of a body.
#[derive(Clone, Copy)]
pub(super) struct BodyEdit<'a> {
    pub(super) before: &'a Bytes,
    pub(super) after: &'a Bytes,
}

/// A reply after each edit that is due to it, in turn.
async fn edit_reply(
    step: &OpenStep,
    edits: &[ReplyEdit],
    conversation: &Conversation,
    surface: &dyn Surface,
    streamed: bool,
    read: ReplyBody,
    limits: &Limits,
) -> Result<ReplyBody, Interrupted> {
    let mut current = read;
    let until = step.deadline();
    for reply_edit in edits {
        let Some(injection) = step.injection(reply_edit.hit.injection).cloned() else { continue };
        let answers = step.run.answers();
        let seen = reply_edit.view(&current.view);
        let edit = |adaptive: Adaptive<'_>| {
            let context = context(step, conversation, &answers, &reply_edit.hit, adaptive);
            injection.edit_reply(&seen, &Context { agent: reply_edit.agent(step), ..context })
        };
        let bytes = current.bytes.len();
        let told = ask::edit_with_answers(step, &reply_edit.hit, &injection, until, bytes, edit).await?;
        let write = |after: Reply| Ok(write(surface, streamed, &current, &seen, &after, limits)?);
        match heavy::in_turn(bytes, || told.and_then(write)).await {
            Ok(written) => {
                let edit = BodyEdit { before: &current.bytes, after: &written.bytes };
                heavy::in_turn(bytes, || record_edit(step, reply_edit, edit)).await?;
                current = written;
            }
            Err(why) => failed(step, &reply_edit.hit, &injection, &why)?,
        }
    }
    Ok(current)
}

/// An edit is none that makes more of a body than would be read.
fn bounded(written: Bytes, limits: &Limits) -> Result<Bytes, String> {
    let limit = limits.max_body_bytes;
    if written.len() <= limit {
        return Ok(written);
    }
    Err(format!("the edited body is larger than {limit} bytes (`limits.max_body_bytes`)"))
}

/// Whether the reply is held until a model has answered, or a server of tools, which may ask its client something first, while its
/// client waits for a stream. Such a client is shown that the stream is alive; one that waits for a whole reply, or for packed bytes, just waits.
pub(super) fn is_held(step: &OpenStep, decided: &Decided, received: &Response<ReceivedBody>) -> bool {
    let asks = |hit: &Hit| step.injection(hit.injection).is_some_and(Injection::asks_model);
    let has = |disturbs: fn(&Disturbance) -> bool| decided.faults.iter().any(|fault| disturbs(&fault.disturbance));
    let is_collected = || decided.may_edit_reply() || has(|fault| matches!(fault, Disturbance::Reshape));
    // Another type would have to stand in the head, which goes out now.
    let may_ask_client =
        || step.is_of_server() && is_collected() && !has(|fault| matches!(fault, Disturbance::ContentType(_)));
    received.status().is_success()
        && headers::is_event_stream(received.headers())
        && !received.headers().contains_key(header::CONTENT_ENCODING)
        // What says how long it is has been made already, and may be JSON that is typed as a stream.
        && !received.headers().contains_key(header::CONTENT_LENGTH)
        && step.surface.is_some()
        && (decided.edits.response.iter().any(asks) || may_ask_client())
}

fn write(
    surface: &dyn Surface,
    streamed: bool,
    current: &ReplyBody,
    before: &Reply,
    after: &Reply,
    limits: &Limits,
) -> Result<ReplyBody, String> {
    let said = |error: SurfaceError| error.to_string();
    let written = door::write_reply(surface, &current.bytes, streamed, before, after);
    let written = bounded(written.map_err(said)?, limits)?;
    let read = |body: &[u8]| door::reply(surface, body, streamed).map_err(said);
    // Tokens are counted of the whole reply, whosever words were edited.
    let written = if before.speaker.is_none() {
        recounted(written, streamed, before, after)
    } else {
        let after = read(&written)?;
        recounted(written, streamed, &current.view, &after)
    };
    if written == current.bytes {
        return Err(said(SurfaceError::NoPlace("it is the same as before".to_owned())));
    }
    let view = written::reply(surface, &written, streamed, before, after)?;
    Ok(ReplyBody { bytes: written, view })
}

fn context<'a>(
    step: &'a OpenStep,
    conversation: &'a Conversation,
    earlier: &'a [(String, String)],
    hit: &Hit,
    adaptive: Adaptive<'a>,
) -> Context<'a> {
    Context { agent: step.attribution.agent.as_str(), conversation, earlier, draw: hit.draw, adaptive }
}

/// Writes down what is about to be done, and counts it.
pub(super) fn record(
    step: &OpenStep,
    injection: u32,
    draw: u64,
    side: Side,
    edit: Option<BodyEdit<'_>>,
) -> Result<(), Interrupted> {
    let Some(inject) = applied(step, injection, draw, side, edit) else { return Ok(()) };
    step.run.recorder.inject(inject)?;
    step.run.count_delivered(&step.attribution, injection);
    Ok(())
}

/// As [`record`], of an edited reply, or of what one agent says in it.
fn record_edit(step: &OpenStep, reply_edit: &ReplyEdit, edit: BodyEdit<'_>) -> Result<(), Interrupted> {
    let Hit { injection, draw } = reply_edit.hit;
    let Some(inject) = applied(step, injection, draw, Side::Response, Some(edit)) else { return Ok(()) };
    step.run.recorder.inject(Inject { speaker: reply_edit.speaker.as_ref(), ..inject })?;
    step.run.count_delivered(&reply_edit.attribution(step), injection);
    Ok(())
}

/// As [`record`], of an edited request; nothing leaves before it is [written](OpenStep::written).
fn queue(step: &mut OpenStep, hit: &Hit, edit: BodyEdit<'_>) -> Result<(), Interrupted> {
    let Some(inject) = applied(step, hit.injection, hit.draw, Side::Request, Some(edit)) else { return Ok(()) };
    let queued = step.run.recorder.queue_inject(inject)?;
    step.queued(queued);
    step.run.count_delivered(&step.attribution, hit.injection);
    Ok(())
}

fn applied<'a>(
    step: &'a OpenStep,
    injection: u32,
    draw: u64,
    side: Side,
    edit: Option<BodyEdit<'a>>,
) -> Option<Inject<'a>> {
    let plan = step.run.plan.as_ref()?;
    let planned = step.injection(injection)?;
    Some(Inject {
        step: step.numbers.step,
        attempt: step.numbers.attempt,
        injection,
        side,
        operator: &planned.name,
        failure_mode: planned.failure_mode,
        speaker: None,
        seed: plan.seed,
        draw: Some(draw),
        planned: true,
        matched: true,
        applied: true,
        before: edit.map(|edit| edit.before),
        after: edit.map(|edit| edit.after),
    })
}
