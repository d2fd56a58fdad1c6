//! Evaluation logs of Inspect AI (`EvalLog` version 2, the `.json` form): a run a sample and epoch, a step a model event.
//! Events name messages by their places in a pool, long texts by their hashes in the sample's attachments. A log without
//! events (ours, or a stripped one) still has the sample's messages: each that the model made is a step then.

use std::{cell::Cell, collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{
    ForeignAgent, ForeignCall, ForeignFailure, ForeignReader, ForeignRequest, ForeignRun, ForeignTrace, Grouping,
    TraceAccount, TracePlace,
    account::CallAccount,
    field_names::FieldNames,
    fields::{arguments, as_text, call, list, role, silent, text, time, tool, usage, whole_number},
    held,
    parts::content,
    rebuilt::{RebuiltConversation, RequestRoom, TOO_LONG},
    scored,
};
use crate::{
    surface::{Answer, Message, Part, Role, Tool},
    trajectory::Verdict,
};

/// What stands before the hash of an attachment.
const ATTACHED: &str = "attachment://";
/// Members of a message that are read, or hold nothing that was said.
const MESSAGE: &[&str] = &[
    "id",
    "role",
    "content",
    "source",
    "metadata",
    "model",
    "tool_calls",
    "tool_call_id",
    "function",
    "error",
    "internal",
];
/// Bytes that attachments may add to a sample where they are named, beside [`ATTACHED_TIMES`] what all of them have.
const ATTACHED_ALWAYS: u64 = 16 << 20;
const ATTACHED_TIMES: u64 = 4;
/// Bytes of attachments that the requests of a sample may hold together.
const ATTACHED_ASKED: u64 = 256 << 20;
/// What is left out of a sample that names its attachments more often.
const NAMED_TOO_OFTEN: &str = "texts of attachments that are named so often that they would not fit in memory";
/// How far up the spans of an event are looked for.
const HIGHEST: usize = 256;

/// Reads logs.
#[derive(Debug)]
pub(super) struct InspectLog;

impl ForeignTrace for InspectLog {
    fn name(&self) -> &'static str {
        "inspect"
    }
    fn description(&self) -> &'static str {
        "Inspect AI logs (.json): a run a sample and epoch, a step a model call; scores become outcomes"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["json", "eval"]
    }
    fn advice(&self, beginning: &[u8]) -> Option<&'static str> {
        beginning.starts_with(b"PK").then_some(
            "this is a `.eval` archive, which is not read: `inspect log convert FILE --to json --output-dir DIR` makes a \
             `.json` log of it",
        )
    }
    fn records(&self) -> Option<&'static str> {
        Some("samples")
    }
    fn reader(&self, _: &FieldNames) -> Box<dyn ForeignReader> {
        Box::new(LogReader::default())
    }
}

#[derive(Debug, Default)]
struct LogReader {
    runs: Vec<ForeignRun>,
    /// Samples without a model call.
    empty: u64,
}

impl ForeignReader for LogReader {
    fn take(&mut self, document: &Value, place: &TracePlace<'_>) -> Result<(), String> {
        let eval = document.get("eval").filter(|eval| eval.is_object());
        let eval = eval.ok_or("no Inspect log: expected an object with `eval` and `samples`")?;
        let samples = document.get("samples").and_then(Value::as_array);
        let samples = samples.ok_or("the log has no `samples`: it was written without them, or only its header was")?;
        for sample in samples {
            if !sample.is_object() {
                self.empty += 1;
                continue;
            }
            let mut run = SampleLog::new(sample).run(text(eval, "model").unwrap_or_default());
            if run.calls.is_empty() {
                self.empty += 1;
                continue;
            }
            let id = sample.get("id").map(as_text).unwrap_or_default();
            let epoch = sample.get("epoch").and_then(whole_number).unwrap_or(1);
            run.label = if epoch == 1 { id.clone() } else { format!("{id}-epoch-{epoch}") };
            let eval_id = text(eval, "eval_id").or_else(|| text(eval, "run_id")).unwrap_or_default();
            run.key = format!("{eval_id}\n{id}\n{epoch}");
            run.file = place.number;
            self.runs.push(run);
        }
        Ok(())
    }

    fn empty(&self) -> u64 {
        self.empty
    }

    fn finish(self: Box<Self>, _: Grouping) -> Vec<ForeignRun> {
        self.runs
    }
}

/// A sample with what its events refer to.
struct SampleLog<'a> {
    sample: &'a Value,
    attachments: Option<&'a Value>,
    /// Spans by id: type, name, the span above.
    spans: HashMap<&'a str, &'a Value>,
    pool: Vec<PooledMessage>,
    /// Messages that events hold themselves, by a hash of what is written: many events hold the same ones.
    held: HashMap<[u8; 32], PooledMessage>,
    /// How many bytes attachments may still add where they are named.
    room: Cell<u64>,
    /// How often one was named and found no room.
    unattached: Cell<u64>,
    /// How many bytes of attachments the requests may still hold together.
    request_room: u64,
}

/// A message of the pool.
struct PooledMessage {
    message: Arc<Message>,
    /// What of it has no place, for the first request that names it.
    account: TraceAccount,
    /// Bytes of it that stand in attachments.
    attached: u64,
}

impl<'a> SampleLog<'a> {
    fn new(sample: &'a Value) -> Self {
        let begun = list(sample, "events").iter().filter(|event| text(event, "event") == Some("span_begin"));
        let spans = begun.filter_map(|span| Some((text(span, "id")?, span))).collect();
        let attachments = sample.get("attachments");
        let attached = attachments.and_then(Value::as_object).into_iter().flat_map(|all| all.values());
        let attached: u64 = attached.filter_map(Value::as_str).map(|said| said.len() as u64).sum();
        let room = Cell::new(ATTACHED_ALWAYS + attached.saturating_mul(ATTACHED_TIMES));
        let (pool, held, unattached) = (Vec::new(), HashMap::new(), Cell::new(0));
        let mut log = Self { sample, attachments, spans, pool, held, room, unattached, request_room: ATTACHED_ASKED };
        let pool = sample.get("events_data").map(|data| list(data, "messages")).unwrap_or_default();
        let pooled = |said: &Value| {
            let mut account = TraceAccount::default();
            let before = log.room.get();
            let message = Arc::new(log.message(said, &mut account));
            PooledMessage { message, account, attached: before - log.room.get() }
        };
        log.pool = pool.iter().map(pooled).collect();
        log
    }

    fn run(mut self, model: &str) -> ForeignRun {
        let mut run = ForeignRun { task: self.task(), outcome: self.outcome(), ..ForeignRun::default() };
        run.upstream = model.split_once('/').map(|(provider, _)| provider.to_owned());
        let events = list(self.sample, "events").iter().filter(|event| text(event, "event") == Some("model"));
        let mut room = RequestRoom::default();
        for event in events {
            if event.get("pending").and_then(Value::as_bool) == Some(true) {
                run.account.leave_out("calls that were under way when the log was written", 1);
            } else if self.upwards(event).any(|span| matches!(text(span, "type"), Some("scorer" | "scorers"))) {
                run.account.leave_out("calls of scorers", 1);
            } else {
                let call = self.call(event, &mut room, &mut run);
                run.calls.push(call);
            }
        }
        run.requests = "the messages that the model events hold";
        if run.calls.is_empty() {
            run.requests = "rebuilt: the sample's messages before each reply, for the log holds no model events";
            self.calls_in_messages(&mut run, &mut room);
        }
        run.account.leave_out(NAMED_TOO_OFTEN, self.unattached.get());
        run
    }

    /// What the sample asks: its input, or the last words of the user in it.
    fn task(&self) -> Option<String> {
        match self.sample.get("input")? {
            Value::String(input) => Some(self.attached(input).to_owned()),
            Value::Array(messages) => {
                let asked = messages.iter().rev().find(|message| text(message, "role") == Some("user"))?;
                text(asked, "content").map(|asked| self.attached(asked).to_owned())
            }
            _ => None,
        }
    }

    fn outcome(&self) -> Option<(Verdict, String)> {
        let scores = self.sample.get("scores").and_then(Value::as_object);
        let scores =
            scores.into_iter().flatten().filter_map(|(name, score)| Some((name.clone(), score.get("value")?.clone())));
        let scored = scored::together(&scores.collect::<Vec<_>>(), "score");
        let error = self.sample.get("error").filter(|error| !error.is_null());
        let error = error.map(|error| text(error, "message").map_or_else(|| as_text(error), str::to_owned));
        let failed = error.map(|error| (Verdict::Failure, format!("the sample ended with an error: {error}")));
        let limit = self.sample.get("limit").and_then(|limit| text(limit, "type"));
        let limited = limit.map(|limit| (Verdict::Unknown, format!("the sample ran into its {limit} limit")));
        scored.or(failed).or(limited)
    }

    /// The spans that an event is in, innermost first, up to a height: a log may go round.
    fn upwards(&self, event: &'a Value) -> impl Iterator<Item = &'a Value> {
        let innermost = text(event, "span_id").and_then(|id| self.spans.get(id).copied());
        let above = |span: &&'a Value| self.spans.get(text(span, "parent_id")?).copied();
        std::iter::successors(innermost, above).take(HIGHEST)
    }

    fn call(&mut self, event: &'a Value, room: &mut RequestRoom, run: &mut ForeignRun) -> ForeignCall {
        let agent = self.upwards(event).find(|span| text(span, "type") == Some("agent"));
        let agent = agent
            .and_then(|span| text(span, "name"))
            .map(|name| ForeignAgent { name: name.to_owned(), evidence: format!("the agent span `{name}`") });
        let output = event.get("output").unwrap_or(&Value::Null);
        let counted = output.get("usage").unwrap_or(&Value::Null);
        let count = |name: &str| counted.get(name).and_then(whole_number);
        let mut account = CallAccount::default();
        let request = self.request(event, room, &mut account.request);
        if request.is_none() {
            run.account.leave_out(TOO_LONG, 1);
        }
        let answer = list(output, "choices").first().map(|choice| {
            let message = self.message(choice.get("message").unwrap_or(&Value::Null), &mut account.reply);
            let reason = text(choice, "stop_reason").map(str::to_owned);
            Answer { index: 0, message: Message { role: Role::Assistant, ..message }, finish_reason: reason }
        });
        let error = text(event, "error").or_else(|| text(output, "error"));
        ForeignCall {
            unplaced: account.close(&mut run.account),
            began: time(event, "timestamp"),
            ended: time(event, "completed"),
            agent,
            model: text(event, "model").unwrap_or_default().to_owned(),
            request,
            finish_reason: answer.as_ref().and_then(|answer| answer.finish_reason.clone()),
            answer: answer.filter(|_| error.is_none()),
            reply_id: text(output, "response_id").unwrap_or_default().to_owned(),
            reply_model: text(output, "model").map(str::to_owned),
            usage: usage(count("input_tokens"), count("output_tokens")),
            failure: error.map(|error| ForeignFailure { status: None, why: self.attached(error).to_owned() }),
        }
    }

    /// The messages of an event: those that it holds, or those of the pool that it names by ranges.
    fn request(
        &mut self,
        event: &'a Value,
        room: &mut RequestRoom,
        account: &mut TraceAccount,
    ) -> Option<ForeignRequest> {
        let own = list(event, "input");
        let mut messages = Vec::new();
        for range in list(event, "input_refs") {
            let bound = |at: usize| range.get(at).and_then(whole_number).and_then(|bound| usize::try_from(bound).ok());
            let (from, to) = (bound(0)?, bound(1)?.min(self.pool.len()));
            let named = self.pool.get_mut(from..to).unwrap_or_default();
            if !room.take(named.len()) {
                return None;
            }
            for pooled in named {
                self.request_room = self.request_room.checked_sub(pooled.attached)?;
                account.take_in(&std::mem::take(&mut pooled.account));
                messages.push(Arc::clone(&pooled.message));
            }
        }
        if !room.take(own.len()) {
            return None;
        }
        for said in own {
            messages.push(self.shared(said, account)?);
        }
        let tools: Vec<Tool> = list(event, "tools").iter().filter_map(tool).collect();
        Some(ForeignRequest { messages, tools: Arc::new(tools) })
    }

    /// A message that an event holds itself: the same one, if another event holds it too. `None` where the requests would hold
    /// too much of attachments together.
    fn shared(&mut self, said: &Value, account: &mut TraceAccount) -> Option<Arc<Message>> {
        let hash = *blake3::hash(said.to_string().as_bytes()).as_bytes();
        if !self.held.contains_key(&hash) {
            let (before, mut own) = (self.room.get(), TraceAccount::default());
            let message = Arc::new(self.message(said, &mut own));
            let attached = before - self.room.get();
            self.held.insert(hash, PooledMessage { message, account: own, attached });
        }
        let held = self.held.get(&hash)?;
        self.request_room = self.request_room.checked_sub(held.attached)?;
        account.take_in(&held.account);
        Some(Arc::clone(&held.message))
    }

    /// A chat message of Inspect's.
    fn message(&self, said: &Value, account: &mut TraceAccount) -> Message {
        let mut message = silent(role(text(said, "role").unwrap_or("user")));
        let whole = said.get("content").unwrap_or(&Value::Null);
        content(whole, &mut message, account);
        held::members(said, MESSAGE, account);
        for part in &mut message.parts {
            if let Part::Text(text) = part
                && text.starts_with(ATTACHED)
            {
                *text = self.attached(text).to_owned();
            }
        }
        message.answers_call = text(said, "tool_call_id").map(str::to_owned);
        message.tool_calls = list(said, "tool_calls")
            .iter()
            .map(|made| call(text(made, "id"), text(made, "function"), arguments(made.get("arguments"))))
            .collect();
        message
    }

    /// A text, or the attachment that stands for it.
    fn attached<'b>(&'b self, said: &'b str) -> &'b str {
        let hash = said.strip_prefix(ATTACHED);
        let Some(attached) = hash.and_then(|hash| text(self.attachments?, hash)) else { return said };
        let Some(left) = self.room.get().checked_sub(attached.len() as u64) else {
            self.unattached.set(self.unattached.get() + 1);
            return said;
        };
        self.room.set(left);
        attached
    }

    /// The calls of a sample without events: what the model said among its messages.
    fn calls_in_messages(&mut self, run: &mut ForeignRun, room: &mut RequestRoom) {
        let mut conversation = RebuiltConversation::default();
        let tools = Arc::default();
        for said in list(self.sample, "messages") {
            let mut account = TraceAccount::default();
            let message = self.message(said, &mut account);
            let named = said.get("metadata").and_then(|metadata| text(metadata, "agent"));
            let was_made = message.role == Role::Assistant && text(said, "source") == Some("generate");
            if !was_made {
                conversation.unplaced.take_in(&account);
                conversation.add_input(message, named);
                continue;
            }
            let request = conversation.request(named.unwrap_or_default(), &tools, room);
            run.account.leave_out(TOO_LONG, u64::from(request.is_none()));
            let evidence = "metadata.agent of the message".to_owned();
            let account = CallAccount { reply: account, ..conversation.account() };
            run.calls.push(ForeignCall {
                unplaced: account.close(&mut run.account),
                agent: named.map(|name| ForeignAgent { name: name.to_owned(), evidence }),
                model: text(said, "model").unwrap_or_default().to_owned(),
                request,
                answer: Some(Answer { index: 0, message: message.clone(), finish_reason: None }),
                ..ForeignCall::default()
            });
            conversation.say(message, named.unwrap_or_default());
        }
        run.account.add(&conversation.unplaced);
    }
}
