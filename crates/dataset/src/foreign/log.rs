//! A plain log of who said what: JSON lines, a list, or an object with such a list inside. Its fields have the usual names, or
//! the names that the user gives them. All entries of a file are one run, or those that name the same one.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    ForeignAgent, ForeignCall, ForeignFailure, ForeignReader, ForeignRequest, ForeignRun, ForeignTrace, Grouping,
    TraceAccount, TracePlace,
    account::CallAccount,
    field_names::{FieldNames, NAMES},
    fields::{as_text, moment, role, text, usage, whole_number},
    held::TraceValue,
    messages,
    rebuilt::{RebuiltConversation, RequestRoom, TOO_LONG},
    scored,
};
use crate::{
    surface::{Answer, Role},
    trajectory::{UnplacedKind, Verdict},
};

/// Fields of an object around a list of entries.
const LISTS: &[&str] = &[
    "history",
    "messages",
    "log",
    "logs",
    "steps",
    "events",
    "trajectory",
    "entries",
    "conversation",
    "turns",
    "records",
    "transcript",
    "chat",
    "data",
];
/// Fields that say what a run was to do, and what it achieved.
const TASKS: &[&str] = &["question", "task", "query", "problem", "goal", "instruction", "prompt", "input"];
const OUTCOMES: &[&str] = &["outcome", "success", "succeeded", "is_correct", "correct", "passed", "resolved"];
/// Further fields of an entry that hold nothing that was said.
const ASIDE: &[&str] = &[
    "id",
    "index",
    "step",
    "turn",
    "type",
    "level",
    "kind",
    "event",
    "to",
    "recipient",
    "receiver",
    "tool_calls",
    "tool_call_id",
    "usage",
    "role",
    "finish_reason",
];
/// Speakers that are no agents.
const NOBODY: &[&str] =
    &["user", "human", "system", "developer", "tool", "function", "environment", "observation", "computer_terminal"];

/// Reads logs.
#[derive(Debug)]
pub(super) struct PlainLog;

impl ForeignTrace for PlainLog {
    fn name(&self) -> &'static str {
        "log"
    }
    fn description(&self) -> &'static str {
        "a plain log (JSON lines, a list, an object with a list): `agent`, `content`, `timestamp` under their usual names, or by `--map`; a run a file"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["json", "jsonl", "ndjson", "log"]
    }
    fn reader(&self, names: &FieldNames) -> Box<dyn ForeignReader> {
        Box::new(PlainLogReader { names: names.clone(), ..PlainLogReader::default() })
    }
}

/// What tells a run of a file from others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RunKey {
    file: usize,
    name: String,
}

#[derive(Debug, Default)]
struct PlainLogReader {
    names: FieldNames,
    /// Runs by file and name.
    runs: BTreeMap<RunKey, LogRun>,
    order: Vec<RunKey>,
}

/// A run as its entries come in.
#[derive(Debug, Default)]
struct LogRun {
    run: ForeignRun,
    conversation: RebuiltConversation,
    room: RequestRoom,
}

impl ForeignReader for PlainLogReader {
    fn take(&mut self, document: &Value, place: &TracePlace<'_>) -> Result<(), String> {
        let fields = document.as_object().ok_or("no log: expected objects with a speaker and what was said")?;
        // An object around a list of entries: a run of its own.
        if let Some((entries, within)) = self.entries(fields) {
            let number = self.order.len();
            let named = text(document, "id").or_else(|| text(document, "run_id")).unwrap_or_default();
            let name = if named.is_empty() { format!("{}-{number}", place.file) } else { named.to_owned() };
            let key = self.open(place, &name);
            let mut read = 0;
            for entry in entries {
                read += u64::from(self.entry(entry, &key).is_ok());
            }
            let Some(log) = self.runs.get_mut(&key) else { return Ok(()) };
            if read < entries.len() as u64 {
                log.run.account.leave_out("entries without a speaker or words", entries.len() as u64 - read);
            }
            around(fields, within, &mut log.run);
            return Ok(());
        }
        let name = self.field("run", fields).map(|(_, value)| as_text(value)).unwrap_or_default();
        let key = self.open(place, &name);
        self.entry(document, &key)
    }

    fn finish(mut self: Box<Self>, _: Grouping) -> Vec<ForeignRun> {
        let order = std::mem::take(&mut self.order);
        order.iter().filter_map(|key| Some(self.runs.remove(key)?.close())).collect()
    }
}

impl PlainLogReader {
    fn open(&mut self, place: &TracePlace<'_>, name: &str) -> RunKey {
        let key = RunKey { file: place.number, name: name.to_owned() };
        if !self.runs.contains_key(&key) {
            let stem = place.file.rsplit_once('.').map_or(place.file, |(stem, _)| stem);
            let label = if name.is_empty() { stem } else { name };
            let run = ForeignRun {
                key: format!("{}\n{}\n{name}", place.file, place.number),
                label: label.to_owned(),
                file: place.number,
                requests: "rebuilt: what stands before each entry, for a log does not hold what a model was shown",
                ..ForeignRun::default()
            };
            self.runs.insert(key.clone(), LogRun { run, ..LogRun::default() });
            self.order.push(key.clone());
        }
        key
    }

    /// A field of an entry, by what it holds: its name and its value.
    fn field<'a>(&self, what: &str, fields: &'a Map<String, Value>) -> Option<(String, &'a Value)> {
        let usual = NAMES.iter().find(|(known, _)| *known == what).map(|(_, names)| *names).unwrap_or_default();
        let own = self.names.get(what);
        let names = own.into_iter().chain(usual.iter().copied().filter(|_| own.is_none()));
        names
            .filter_map(|name| Some((name.to_owned(), fields.get(name)?)))
            .find(|(_, value)| !value.is_null() && value.as_str() != Some(""))
    }

    /// The list of entries inside an object that is none itself, and its name.
    fn entries<'a>(&self, fields: &'a Map<String, Value>) -> Option<(&'a [Value], &'a str)> {
        let of = |name: &str, value: &Value| {
            let all = value.as_array()?;
            let first = all.first()?.as_object()?;
            let speaks = self.field("agent", first).is_some() && self.field("content", first).is_some();
            (speaks && name != "tool_calls").then_some(())
        };
        let is_entry = self.field("agent", fields).is_some() && self.field("content", fields).is_some();
        let usual = LISTS.iter().find_map(|name| fields.get_key_value(*name));
        let any = fields.iter().find(|(name, value)| of(name, value).is_some());
        let (name, value) = usual.filter(|(name, value)| of(name, value).is_some()).or(any).filter(|_| !is_entry)?;
        Some((value.as_array()?, name))
    }

    fn entry(&mut self, entry: &Value, key: &RunKey) -> Result<(), String> {
        let fields = entry.as_object().ok_or("an entry is no object")?;
        let names: Vec<&str> =
            NAMES.iter().find(|(what, _)| *what == "agent").map(|(_, names)| names.to_vec()).unwrap_or_default();
        let who = self.field("agent", fields).ok_or_else(|| {
            format!("the entry names nobody: expected one of `{}`, or `--map agent=NAME`", names.join("`, `"))
        })?;
        let content = self.field("content", fields);
        let error = self.field("error", fields);
        if content.is_none() && error.is_none() && !fields.contains_key("tool_calls") {
            return Err(
                "the entry says nothing: expected `content`, `text`, `message` or `output`, or `--map content=NAME`"
                    .to_owned(),
            );
        }
        let (inputs, model) = (self.field("inputs", fields), self.field("model", fields));
        let time = self.field("time", fields);
        let taken = [Some(&who), content.as_ref(), error.as_ref(), inputs.as_ref(), model.as_ref(), time.as_ref()];
        let taken: Vec<String> = taken.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let run_field = self.field("run", fields).map(|(name, _)| name);
        let Some(log) = self.runs.get_mut(key) else { return Ok(()) };
        let mut unknown = TraceAccount::default();
        let aside =
            |name: &String| taken.contains(name) || Some(name) == run_field.as_ref() || ASIDE.contains(&name.as_str());
        for (name, value) in fields.iter().filter(|(name, value)| !aside(name) && holds_words(value)) {
            unknown.cannot_place(name, UnplacedKind::Member, value);
        }
        let said = json!({"content": content.map(|(_, value)| value), "tool_calls": fields.get("tool_calls"),
            "tool_call_id": fields.get("tool_call_id")});
        let speaker = as_text(who.1);
        let spoken = text(entry, "role").unwrap_or_default();
        let nobody = |name: &str| NOBODY.contains(&name.to_ascii_lowercase().as_str());
        // What a tool answers has the tool's name beside its role.
        if nobody(&speaker) || matches!(spoken, "tool" | "function" | "system" | "developer") {
            let named = if nobody(&speaker) { speaker.to_ascii_lowercase() } else { spoken.to_owned() };
            log.conversation.unplaced.take_in(&unknown);
            log.add_input(&named, &said);
            return Ok(());
        }
        let agent = ForeignAgent { name: speaker, evidence: format!("`{}` of the entry", who.0) };
        let mut call = ForeignCall {
            began: time.and_then(|(_, value)| moment(value)),
            agent: Some(agent),
            model: model.map(|(_, value)| as_text(value)).unwrap_or_default(),
            failure: error.map(|(_, value)| ForeignFailure { status: None, why: as_text(value) }),
            ..ForeignCall::default()
        };
        let counts = entry.get("usage").unwrap_or(&Value::Null);
        let count = |names: [&str; 2]| names.iter().find_map(|name| counts.get(*name)).and_then(whole_number);
        call.usage = usage(count(["input_tokens", "prompt_tokens"]), count(["output_tokens", "completion_tokens"]));
        let inputs = inputs.as_ref().map(|(name, value)| TraceValue::at(name, value));
        log.spoke(call, inputs, &said, unknown);
        Ok(())
    }
}

impl LogRun {
    /// Somebody who is no agent.
    fn add_input(&mut self, speaker: &str, said: &Value) {
        let speaker = if matches!(speaker, "environment" | "observation" | "computer_terminal") {
            Role::Tool
        } else {
            role(speaker)
        };
        let said = with_role(said, speaker);
        let told = messages::messages(TraceValue::at("entry", &said), speaker, &mut self.conversation.unplaced);
        for message in told {
            if self.run.task.is_none() && message.role == Role::User {
                self.run.task = Some(message.text());
            }
            self.conversation.add_input(message, None);
        }
    }

    /// An agent. `unknown`: what its entry holds beside what is read.
    fn spoke(&mut self, mut call: ForeignCall, inputs: Option<TraceValue<'_>>, said: &Value, unknown: TraceAccount) {
        let name = call.agent.as_ref().map(|agent| agent.name.clone()).unwrap_or_default();
        let mut account = CallAccount { reply: unknown, ..self.conversation.account() };
        let own = inputs
            .map(|inputs| messages::messages(inputs, Role::User, &mut account.request))
            .filter(|own| !own.is_empty());
        call.request = match own {
            Some(own) => {
                self.run.requests = "what the entries hold as their input; of entries without, what stands before them";
                Some(ForeignRequest { messages: own.into_iter().map(Arc::new).collect(), tools: Arc::new(Vec::new()) })
            }
            None => self.conversation.request(&name, &Arc::new(Vec::new()), &mut self.room),
        };
        self.run.account.leave_out(TOO_LONG, u64::from(call.request.is_none()));
        let said = with_role(said, Role::Assistant);
        let told = messages::messages(TraceValue::at("entry", &said), Role::Assistant, &mut account.reply);
        if let Some(message) = messages::together(told, false, &mut account.reply) {
            self.conversation.say(message.clone(), &name);
            call.answer = Some(Answer { index: 0, message, finish_reason: None }).filter(|_| call.failure.is_none());
        }
        call.unplaced = account.close(&mut self.run.account);
        self.run.calls.push(call);
    }

    /// The run, once all entries are read.
    fn close(mut self) -> ForeignRun {
        self.run.account.add(&self.conversation.unplaced);
        self.run
    }
}

/// Whether a value is or holds a text: what a field of a log says may be one word.
fn holds_words(value: &Value) -> bool {
    match value {
        Value::String(said) => !said.is_empty(),
        Value::Array(all) => all.iter().any(holds_words),
        Value::Object(fields) => fields.values().any(holds_words),
        _ => false,
    }
}

fn with_role(said: &Value, speaker: Role) -> Value {
    let name = match speaker {
        Role::System | Role::Developer => "system",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::User | Role::Other => "user",
    };
    let mut said = said.clone();
    if let Some(fields) = said.as_object_mut() {
        fields.insert("role".to_owned(), name.into());
    }
    said
}

/// What the object around a list says of the run.
fn around(fields: &Map<String, Value>, within: &str, run: &mut ForeignRun) {
    let said = |name: &&str| fields.get(*name).and_then(Value::as_str).filter(|said| !said.is_empty());
    run.task = TASKS.iter().find_map(said).map(str::to_owned).or(run.task.take());
    let told = OUTCOMES.iter().find_map(|name| Some(((*name).to_owned(), fields.get(*name)?.clone())));
    let told = told.filter(|(_, value)| value.is_boolean() || value.is_string());
    run.outcome = scored::together(told.as_slice(), "field").filter(|(verdict, _)| *verdict != Verdict::Unknown);
    let known = |name: &&String| {
        name.as_str() == within
            || TASKS.contains(&name.as_str())
            || OUTCOMES.contains(&name.as_str())
            || name.as_str() == "id"
    };
    let holds =
        |value: &Value| value.is_array() || value.is_object() || value.as_str().is_some_and(|said| said.contains(' '));
    for (name, value) in fields.iter().filter(|(name, value)| !known(name) && holds(value)) {
        run.account.cannot_place(name, UnplacedKind::Member, value);
    }
}
