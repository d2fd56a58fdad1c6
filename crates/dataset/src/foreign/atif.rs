//! ATIF, the Agent Trajectory Interchange Format of Harbor (RFC 0001, v1.0 to v1.7): a run a document, a step a step of
//! source `agent`. It holds one conversation and not what a model was shown, so requests are rebuilt from it. In a trial's
//! directory the reward stands in `result.json`, one above the trajectory.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ForeignAgent, ForeignCall, ForeignReader, ForeignRun, ForeignTrace, Grouping, TraceAccount, TracePlace,
    account::CallAccount,
    field_names::FieldNames,
    fields::{REASONING, arguments, as_text, call, list, silent, text, time, tool, usage, whole_number},
    held,
    parts::content,
    rebuilt::{RebuiltConversation, RequestRoom, TOO_LONG},
    scored,
};
use crate::{
    surface::{Answer, Message, Role, Tool, ToolCall},
    trajectory::Verdict,
};

/// Members of a step that are read, or hold nothing that was said.
const STEP: &[&str] = &[
    "step_id",
    "timestamp",
    "source",
    "model_name",
    "reasoning_effort",
    "message",
    "reasoning_content",
    "tool_calls",
    "observation",
    "metrics",
    "extra",
    "llm_call_count",
    "is_copied_context",
];
/// How deep trajectories of helpers may lie in each other.
const DEEPEST: usize = 16;

/// Reads trajectories.
#[derive(Debug)]
pub(super) struct AtifTrajectory;

impl ForeignTrace for AtifTrajectory {
    fn name(&self) -> &'static str {
        "atif"
    }
    fn description(&self) -> &'static str {
        "ATIF trajectories of Harbor: a run a document, a step a step of an agent; rewards become outcomes"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["json"]
    }
    fn in_names(&self) -> &'static str {
        "trajectory"
    }
    fn companion_file(&self) -> Option<&'static str> {
        Some("../result.json")
    }
    fn reader(&self, _: &FieldNames) -> Box<dyn ForeignReader> {
        Box::new(TrajectoryReader::default())
    }
}

#[derive(Debug, Default)]
struct TrajectoryReader {
    runs: Vec<ForeignRun>,
}

impl ForeignReader for TrajectoryReader {
    fn take(&mut self, document: &Value, place: &TracePlace<'_>) -> Result<(), String> {
        let version = text(document, "schema_version").unwrap_or_default();
        if !version.starts_with("ATIF-v1") {
            return Err("no ATIF trajectory: expected an object with `schema_version` of `ATIF-v1…`".to_owned());
        }
        if !document.get("steps").is_some_and(Value::is_array) {
            return Err("the trajectory has no `steps`".to_owned());
        }
        let named = text(document, "session_id").or_else(|| text(document, "trajectory_id")).unwrap_or(place.file);
        let own = text(document, "trajectory_id").unwrap_or_default();
        let mut run = ForeignRun {
            key: format!("{named}\n{own}\n{}", place.line.map(|line| line.to_string()).unwrap_or_default()),
            label: named.to_owned(),
            file: place.number,
            requests: "rebuilt: what stands before each step, for a trajectory does not hold what a model was shown",
            outcome: place.beside.and_then(trial).or_else(|| stated_verdict(document)),
            ..ForeignRun::default()
        };
        trajectory(document, &mut run, &mut RequestRoom::default(), 0);
        if text(document, "continued_trajectory_ref").is_some() {
            run.account.leave_out("continuations in another file", 1);
        }
        self.runs.push(run);
        Ok(())
    }

    fn finish(self: Box<Self>, _: Grouping) -> Vec<ForeignRun> {
        self.runs
    }
}

/// What a trial's `result.json` says: the verifier's rewards, else how the trial ended.
fn trial(result: &Value) -> Option<(Verdict, String)> {
    let rewards = result.get("verifier_result").and_then(|verified| verified.get("rewards")?.as_object());
    let rewards: Vec<(String, Value)> =
        rewards.into_iter().flatten().map(|(name, reward)| (name.clone(), reward.clone())).collect();
    // The one that is called `reward` is the trial's; others are its parts.
    let whole: Vec<_> = rewards.iter().filter(|(name, _)| name == "reward").cloned().collect();
    let rewarded = scored::together(if whole.is_empty() { &rewards } else { &whole }, "reward");
    let raised = result.get("exception_info").filter(|raised| !raised.is_null());
    let kind = raised.map(|raised| text(raised, "exception_type").unwrap_or("an exception"));
    rewarded.or_else(|| Some((Verdict::Failure, format!("the trial ended with {}", kind?))))
}

/// What the document says in its `extra`.
fn stated_verdict(document: &Value) -> Option<(Verdict, String)> {
    let extra = document.get("extra")?;
    let named =
        ["reward", "outcome"].iter().filter_map(|name| Some((format!("extra.{name}"), extra.get(*name)?.clone())));
    let scores: Vec<_> = named.filter(|(_, value)| value.is_number() || value.is_string()).collect();
    scored::together(scores.get(..1).unwrap_or_default(), "field")
}

/// The calls of a trajectory, and of those of its helpers where they are told.
fn trajectory(document: &Value, run: &mut ForeignRun, room: &mut RequestRoom, depth: usize) {
    let agent = document.get("agent").unwrap_or(&Value::Null);
    let tools: Arc<Vec<Tool>> = Arc::new(list(agent, "tool_definitions").iter().filter_map(tool).collect());
    let helpers = list(document, "subagent_trajectories");
    let mut told = vec![false; helpers.len()];
    let mut conversation = RebuiltConversation::default();
    for step in list(document, "steps") {
        let mut message = silent(Role::User);
        let mut account = TraceAccount::default();
        content(step.get("message").unwrap_or(&Value::Null), &mut message, &mut account);
        held::members(step, STEP, &mut account);
        if text(step, "source") != Some("agent") {
            conversation.unplaced.take_in(&account);
            message.role = if text(step, "source") == Some("system") { Role::System } else { Role::User };
            if run.task.is_none() && message.role == Role::User {
                run.task = Some(message.text());
            }
            conversation.add_input(message, None);
            continue;
        }
        message.role = Role::Assistant;
        account.leave_out(REASONING, u64::from(text(step, "reasoning_content").is_some()));
        message.tool_calls = list(step, "tool_calls").iter().map(called).collect();
        let speaker = speaker(step, text(agent, "name").unwrap_or_default());
        let counts = step.get("llm_call_count").and_then(whole_number);
        let is_copied = step.get("is_copied_context").and_then(Value::as_bool) == Some(true);
        if is_copied || counts == Some(0) {
            let what =
                if is_copied { "steps that were copied from another trajectory" } else { "steps without a model call" };
            run.account.leave_out(what, 1);
            conversation.unplaced.take_in(&account);
        } else {
            run.account.leave_out("further calls of steps of several", counts.unwrap_or(1).saturating_sub(1));
            let request = conversation.request(&speaker.name, &tools, room);
            run.account.leave_out(TOO_LONG, u64::from(request.is_none()));
            let model = text(step, "model_name").or_else(|| text(agent, "model_name")).unwrap_or_default().to_owned();
            let account = CallAccount { reply: account, ..conversation.account() };
            let unplaced = account.close(&mut run.account);
            run.calls.push(ForeignCall { unplaced, ..foreign_call(step, &speaker, model, request, &message) });
        }
        let has_called = !message.tool_calls.is_empty();
        conversation.say(message, &speaker.name);
        observed(step, has_called, &mut conversation);
        run.account.leave_out("trajectories of helpers in another file", elsewhere(step, helpers));
        if depth < DEEPEST {
            for (helper, told) in helpers.iter().zip(&mut told).filter(|(_, told)| !**told) {
                if names(step, helper) {
                    *told = true;
                    trajectory(helper, run, room, depth + 1);
                }
            }
        }
    }
    run.account.add(&conversation.unplaced);
    for (helper, _) in helpers.iter().zip(told).filter(|(_, told)| !told) {
        if depth < DEEPEST {
            trajectory(helper, run, room, depth + 1);
        }
    }
}

/// Who made a step's call, in the trajectory of an agent of this name.
fn speaker(step: &Value, name: &str) -> ForeignAgent {
    let own = step.get("extra").and_then(|extra| text(extra, "agent"));
    let evidence = if own.is_some() { "extra.agent of the step" } else { "agent.name of the trajectory" };
    ForeignAgent { name: own.unwrap_or(name).to_owned(), evidence: evidence.to_owned() }
}

fn called(made: &Value) -> ToolCall {
    call(text(made, "tool_call_id"), text(made, "function_name"), arguments(made.get("arguments")))
}

fn foreign_call(
    step: &Value,
    speaker: &ForeignAgent,
    model: String,
    request: Option<super::ForeignRequest>,
    message: &Message,
) -> ForeignCall {
    let metrics = step.get("metrics").unwrap_or(&Value::Null);
    let count = |name: &str| metrics.get(name).and_then(whole_number);
    ForeignCall {
        began: time(step, "timestamp"),
        agent: (!speaker.name.is_empty()).then(|| speaker.clone()),
        model,
        request,
        answer: Some(Answer { index: 0, message: message.clone(), finish_reason: None }),
        usage: usage(count("prompt_tokens"), count("completion_tokens")),
        ..ForeignCall::default()
    }
}

/// What the environment answered to a step.
fn observed(step: &Value, called: bool, conversation: &mut RebuiltConversation) {
    let results = step.get("observation").map(|observation| list(observation, "results")).unwrap_or_default();
    for result in results {
        let mut message = silent(if called { Role::Tool } else { Role::User });
        message.answers_call = text(result, "source_call_id").map(str::to_owned);
        match result.get("content") {
            Some(Value::Object(object)) => {
                message = Message::text_of(message.role, as_text(&Value::Object(object.clone())));
            }
            Some(whole) => {
                content(whole, &mut message, &mut conversation.unplaced);
            }
            None => {}
        }
        conversation.add_input(message, None);
    }
}

/// Whether a step's observation names a helper's trajectory: by its own id, and where it has none, as before v1.7, by its
/// session's, which helpers may share.
fn names(step: &Value, helper: &Value) -> bool {
    let same = |named: &Value, field: &str| text(named, field).is_some_and(|id| text(helper, field) == Some(id));
    let own = text(helper, "trajectory_id").is_some();
    references(step).any(|named| same(named, "trajectory_id") || (!own && same(named, "session_id")))
}

/// How many helpers of a step have their trajectory in another file.
fn elsewhere(step: &Value, helpers: &[Value]) -> u64 {
    let is_here = |named: &Value| {
        helpers
            .iter()
            .any(|helper| text(named, "trajectory_id").is_some_and(|id| text(helper, "trajectory_id") == Some(id)))
    };
    references(step).filter(|named| text(named, "trajectory_path").is_some() && !is_here(named)).count() as u64
}

/// What a step's observation says of helpers.
fn references(step: &Value) -> impl Iterator<Item = &Value> {
    let results = step.get("observation").map(|observation| list(observation, "results")).unwrap_or_default();
    results.iter().flat_map(|result| list(result, "subagent_trajectory_ref"))
}
