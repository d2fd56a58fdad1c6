//! Writes a foreign run as a recording: its calls in the order of their times, bodies remade as chat completions.

use std::{collections::BTreeMap, path::Path};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use twox_hash::XxHash3_128;

use super::{ForeignCall, ForeignFailure, ForeignRun, TraceAccount, agents::ImportedSpeakers, rebuilt::TOO_LONG};
use crate::{
    identity::{AttributedCall, EndedCall, LedgerNumber},
    recording::{Captured, Clock, Close, ImportedFrom, Manifest, Open, Recorder, RecordingError, Settings},
    surface::{
        Conversation, MemberEdit, OpenaiChat, Outline, Reply, Surface,
        account::{self, RunAccount},
        edit_member,
    },
    trajectory::{
        AgentName, Attribution, Call, CloseCause, Outcome, Reason, RecordedRelation, ReplyOrigin, RunId, StepIndex,
        Verdict,
    },
};

/// The shape that bodies are remade in.
const SURFACE: OpenaiChat = OpenaiChat;
/// Most that the requests of one run may be together, in bytes: a short trace can name long messages often.
const BYTES: usize = 2 << 30;
/// Most failures that are told one by one.
const TOLD: usize = 20;

/// A foreign run that was recorded.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct RecordedForeign {
    /// The run.
    pub run: RunId,
    /// The file of the trace.
    pub file: String,
    /// Its steps.
    pub calls: u64,
    /// Its steps by agent.
    pub agents: BTreeMap<String, u64>,
    /// What it achieved, as the trace says it.
    pub outcome: Verdict,
    /// What says so.
    pub evidence: String,
    /// How many of its steps were read, partly read and unread.
    pub account: RunAccount,
    /// What its bodies are.
    pub remade: Remade,
    /// What was left out, and how often.
    pub left_out: BTreeMap<&'static str, u64>,
    /// What holds text and is known to no reader, by name, and how often it was there.
    pub unplaced: BTreeMap<String, u64>,
}

/// How much of a run its trace holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Remade {
    /// Calls whose request the trace does not hold.
    pub without_request: u64,
    /// Calls that did not fail and whose reply the trace does not hold.
    pub without_reply: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that the trace names no agent of.
    pub unnamed: u64,
    /// Calls without a time.
    pub untimed: u64,
}

/// Records a run.
///
/// # Errors
/// As the recorder's: the run is there already, or cannot be written.
pub(super) fn record(
    mut run: ForeignRun,
    id: &RunId,
    origin: ImportedFrom,
    log_dir: &Path,
    settings: &Settings,
) -> Result<RecordedForeign, RecordingError> {
    let (calls, untimed) = timed(std::mem::take(&mut run.calls));
    let first = calls.first().map_or(0, |timed| timed.began);
    let last = calls.iter().map(|timed| timed.ended).max().unwrap_or(first);
    let upstream = run.upstream.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut manifest = Manifest::new(id.clone(), upstream, instant(first));
    manifest.task.clone_from(&run.task);
    let (requests, file) = (origin.requests.clone(), origin.file.clone());
    manifest.imported = Some(origin);
    let settings = Settings { clock: Clock::fixed(instant(last)), ..settings.clone() };
    let recorder = Recorder::create(log_dir, manifest, &settings)?;
    recorder.note(&format!(
        "imported: bodies are remade as chat completions, not the bytes of the wire; requests are {requests}"
    ));
    let mut writer = CallWriter::new(&recorder, first, settings.max_kept_body);
    writer.remade.untimed = untimed;
    for call in &calls {
        writer.close_until(call.began)?;
        writer.open(call)?;
    }
    writer.close_until(i64::MAX)?;
    run.account.leave_out(TOO_LONG, writer.too_long);
    let (remade, agents, account) = (writer.remade, writer.agents, writer.account);
    for text in notes(&remade, &run.account) {
        recorder.note(&text);
    }
    let (outcome, evidence) = run.outcome.clone().unwrap_or_default();
    if run.outcome.is_some() {
        let reason = Some(Reason::Trace);
        recorder.set_outcome(Outcome { verdict: outcome, reason, evidence: evidence.clone() })?;
    }
    recorder.seal()?;
    Ok(RecordedForeign {
        run: id.clone(),
        file,
        calls: calls.len() as u64,
        agents,
        outcome,
        evidence,
        account,
        remade,
        left_out: run.account.left_out,
        unplaced: run.account.unplaced,
    })
}

/// What a reader of the run must know of it.
fn notes(remade: &Remade, account: &TraceAccount) -> Vec<String> {
    let said = [
        (remade.without_request, "the trace does not hold the request of"),
        (remade.without_reply, "the trace does not hold the reply of"),
        (remade.unnamed, "the trace names no agent of"),
        (remade.untimed, "the trace has no time of"),
    ];
    let calls = |count: u64| if count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
    let said = said.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what} {}", calls(count)));
    let left_out = account.left_out.iter().map(|(what, count)| format!("left out: {what} ({count})"));
    let unplaced = account.unplaced.iter().map(|(name, count)| format!("partly read: `{name}` has no place ({count})"));
    said.chain(left_out).chain(unplaced).collect()
}

/// A call with its times: those of the trace, or those of the call before.
struct TimedCall {
    began: i64,
    ended: i64,
    call: ForeignCall,
}

/// Gives each call a time, in the order of the trace; says how many have none of their own.
fn timed(calls: Vec<ForeignCall>) -> (Vec<TimedCall>, u64) {
    let first = calls.iter().find_map(|call| call.began).unwrap_or_default();
    let (mut before, mut untimed) = (first, 0);
    let timed = calls.into_iter().map(|call| {
        untimed += u64::from(call.began.is_none());
        let began = call.began.unwrap_or(before);
        let ended = call.ended.unwrap_or(began).max(began);
        before = ended;
        TimedCall { began, ended, call }
    });
    let mut timed: Vec<TimedCall> = timed.collect();
    timed.sort_by_key(|timed| timed.began);
    (timed, untimed)
}

fn instant(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn micros(nanos: i64) -> u64 {
    u64::try_from(nanos / 1000).unwrap_or_default()
}

/// A call that is open.
struct OpenCall<'a> {
    step: StepIndex,
    asked: LedgerNumber,
    attribution: Attribution,
    request: Option<Bytes>,
    timed: &'a TimedCall,
}

/// Writes calls in the order in which they began and ended.
struct CallWriter<'a> {
    recorder: &'a Recorder,
    first: i64,
    speakers: ImportedSpeakers,
    open: Vec<OpenCall<'a>>,
    steps: StepIndex,
    next: BTreeMap<(AgentName, u32), Call>,
    agents: BTreeMap<String, u64>,
    remade: Remade,
    account: RunAccount,
    /// The longest request, and how much all may still be, in bytes.
    longest: usize,
    room: usize,
    too_long: u64,
}

impl<'a> CallWriter<'a> {
    fn new(recorder: &'a Recorder, first: i64, longest: usize) -> Self {
        Self {
            recorder,
            first,
            speakers: ImportedSpeakers::default(),
            open: Vec::new(),
            steps: 0,
            next: BTreeMap::new(),
            agents: BTreeMap::new(),
            remade: Remade::default(),
            account: RunAccount::default(),
            longest,
            room: BYTES,
            too_long: 0,
        }
    }

    fn open(&mut self, timed: &'a TimedCall) -> Result<(), RecordingError> {
        let call = &timed.call;
        let body = self.request(call);
        self.remade.without_request += u64::from(body.is_none());
        self.remade.unnamed += u64::from(call.agent.is_none());
        let hash = XxHash3_128::oneshot(body.as_deref().unwrap_or_default());
        let outline = body.as_ref().and_then(|body| SURFACE.outline(body).ok());
        let outline: Option<Outline<'_>> = outline;
        let AttributedCall { attribution, number: asked, .. } =
            self.speakers.attribute(call.agent.as_ref(), outline.as_ref(), hash);
        let who = (attribution.agent.clone(), attribution.instance);
        let is_same = |open: &OpenCall<'_>| (&open.attribution.agent, open.attribution.instance) == (&who.0, who.1);
        let overlapping = self.open.iter().any(is_same);
        let number = self.next.entry(who).or_default();
        let (step, of_agent) = (self.steps, *number);
        *number += 1;
        self.steps += 1;
        *self.agents.entry(attribution.agent.to_string()).or_default() += 1;
        self.recorder.open(Open {
            step,
            call: of_agent,
            attempt: 0,
            attribution: &attribution,
            overlapping,
            relates: RecordedRelation::first(),
            run_source: "trace",
            surface: SURFACE.name(),
            method: "POST",
            path: SURFACE.path(),
            headers: &[],
            body: body.as_ref(),
            body_hash: None,
            at_us: micros(timed.began.saturating_sub(self.first)),
            wall: instant(timed.began),
        })?;
        self.recorder.unplaced(step, &call.unplaced)?;
        self.open.push(OpenCall { step, asked, attribution, request: body, timed });
        Ok(())
    }

    /// The request's body; `None` where the trace does not hold it, or there is no room for it.
    fn request(&mut self, call: &ForeignCall) -> Option<Bytes> {
        let asked = call.request.as_ref()?;
        let of_call = |call: &crate::surface::ToolCall| call.name.len() + call.arguments.len() + call.id.len();
        let length: usize = asked
            .messages
            .iter()
            .map(|message| {
                let calls: usize = message.tool_calls.iter().map(of_call).sum();
                let parts = message.parts.iter().filter_map(|part| part.as_text()).map(str::len).sum::<usize>();
                parts.saturating_add(calls).saturating_add(32)
            })
            .fold(0, usize::saturating_add);
        let Some(room) = self.room.checked_sub(length).filter(|_| length <= self.longest) else {
            self.too_long += 1;
            return None;
        };
        self.room = room;
        let blank = SURFACE.read_request(SURFACE.blank_request()).ok()?;
        let wanted = Conversation {
            model: call.model.clone(),
            messages: asked.messages.iter().map(|message| message.as_ref().clone()).collect(),
            tools: asked.tools.as_ref().clone(),
            ..blank.clone()
        };
        SURFACE.write_request(SURFACE.blank_request(), &blank, &wanted).ok()
    }

    /// Closes what ended up to a moment, in the order of the ends.
    fn close_until(&mut self, moment: i64) -> Result<(), RecordingError> {
        let (mut ended, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.open).into_iter().partition(|open| open.timed.ended <= moment);
        self.open = open;
        ended.sort_by_key(|open| open.timed.ended);
        ended.into_iter().try_for_each(|open| self.close(&open))
    }

    fn close(&mut self, open: &OpenCall<'_>) -> Result<(), RecordingError> {
        let call = &open.timed.call;
        let reply = reply(call);
        let body = reply.as_ref().map(|reply| composed(reply, open.timed.began));
        let (asked, answered) = (open.request.as_deref().unwrap_or_default(), body.as_deref().unwrap_or_default());
        self.account.add(&account::of_bodies(&SURFACE, asked, answered, false).without(&call.unplaced));
        let failed = call.failure.is_some();
        self.remade.without_reply += u64::from(body.is_none() && !failed);
        self.remade.failed += u64::from(failed);
        let ended = EndedCall { number: open.asked, reply: reply.as_ref(), failed, at_us: micros(open.timed.ended) };
        self.speakers.ended(&open.attribution, &ended);
        let took = open.timed.ended.saturating_sub(open.timed.began);
        let last = (open.timed.call.ended.is_some()).then(|| micros(took));
        if let Some(ForeignFailure { why, .. }) = &call.failure
            && self.remade.failed <= TOLD as u64
        {
            self.recorder.note(&format!("step {} failed, says the trace: {why}", open.step));
        }
        let status = call.failure.as_ref().and_then(|failure| failure.status);
        self.recorder.close(Close {
            step: open.step,
            attempt: 0,
            cause: if failed && status.is_none() { CloseCause::Failed } else { CloseCause::Complete },
            origin: ReplyOrigin::Remade,
            status,
            headers: &[],
            streamed_request: None,
            reply: body.as_ref().map_or(Captured::Nothing, |body| Captured::Whole(std::slice::from_ref(body))),
            truncated: false,
            delivered: None,
            reply_with_logprobs: None,
            proxy_error: None,
            usage: call.usage,
            finish_reason: call.finish_reason.as_deref(),
            first_byte_us: None,
            last_byte_us: last,
        })
    }
}

/// The reply that the trace holds.
fn reply(call: &ForeignCall) -> Option<Reply> {
    let answer = call.answer.clone()?;
    Some(Reply {
        id: call.reply_id.clone(),
        model: call.reply_model.clone().unwrap_or_else(|| call.model.clone()),
        answers: vec![answer],
        usage: call.usage,
        ..Reply::default()
    })
}

/// Its body; token counts stand in it only where the trace has them.
fn composed(reply: &Reply, began: i64) -> Bytes {
    let body = SURFACE.compose(reply, u64::try_from(began / 1_000_000_000).unwrap_or_default());
    match reply.usage {
        Some(_) => body,
        None => edit_member(&body, false, "/usage", &MemberEdit::Drop).unwrap_or(body),
    }
}
