//! Who&When Pro (2026): rows of one planted error each. `data/{text,image,video}.jsonl` hold task, trajectory and ground truth
//! as JSON in texts; the earlier layout, a file a run, holds them as they are. Each of its frameworks counts steps in its own
//! way; a step here keeps that coordinate in `coordinate`. Pictures are counted, not kept.

use serde_json::{Map, Value};

use super::{
    foreign::{Defects, named, spoken_step, unknown_fields},
    published::{PublishedError, PublishedRun, as_text, decoded, own_mode},
};
use crate::{
    dataset::{Sample, SampleStep, Task},
    trajectory::Verdict,
};

/// The name in `extra.format`, and of the code book.
const NAME: &str = "whowhen-pro";
/// Fields of a row.
const FIELDS: &[&str] =
    &["id", "framework", "benchmark", "modality", "agents", "task", "ground_truth", "trajectory", "extras"];
/// The one agent of frameworks whose entries name none.
const ALONE: &str = "agent";
/// Texts of an entry, in the order in which they are told. A reasoning holds its code already.
const TOLD: &[&str] = &["plan", "reasoning", "action", "code", "output", "content", "observation"];
/// Lists of pictures of an entry.
const PICTURES: &[&str] = &["images", "observation_images", "frames"];
/// What an entry says of itself, and has its place.
const PLACED: &[&str] = &["kind", "agent", "agent_id", "role", "turns"];
/// Entries that frame the run, and are no step.
const FRAMING: &[&str] = &["user", "system", "final_answer"];

/// Reads a row.
pub(super) fn read(value: &Value, defects: &mut Defects) -> Option<Sample> {
    let field = |name: &str| value.get(name).map(decoded).unwrap_or_default();
    let (task, truth, trajectory) = (field("task"), field("ground_truth"), field("trajectory"));
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (Some(fields), Some(entries), Some(truth)) = (value.as_object(), trajectory.as_array(), truth.as_object())
    else {
        defects.add("wrong-shape", "`trajectory` is no list, or `ground_truth` no object");
        return None;
    };
    let (id, framework) = (text("id"), text("framework"));
    if id.is_empty() || framework.is_empty() {
        defects.add("wrong-shape", "no texts `id` and `framework`");
        return None;
    }
    let mut walk = EntryWalk { framework, cursor: None, placed: Vec::new() };
    for (place, entry) in entries.iter().enumerate() {
        if walk.entry(place, entry, defects).is_none() {
            defects.add("wrong-shape", format!("trajectory[{place}] is no object"));
            return None;
        }
    }
    let errors = errors(truth, &walk.placed, defects);
    let last = entries.iter().find(|entry| entry.get("kind").and_then(Value::as_str) == Some("final_answer"));
    let mut extra = unknown_fields(fields, FIELDS, defects);
    let kept = ["framework", "benchmark", "modality"].iter().map(|name| ((*name).to_owned(), text(name).into()));
    extra.extend(kept.filter(|(_, value): &(String, Value)| value != ""));
    // The roster and the topology; with `extras` they are one level deeper.
    extra
        .extend(["agents", "extras"].iter().filter_map(|name| Some(((*name).to_owned(), decoded(fields.get(*name)?)))));
    let own = |name: &str| task.get(name).map(as_text).unwrap_or_default();
    let question = own("query");
    if question.is_empty() {
        defects.add("missing-field", "`task.query` is no text");
    }
    let run = PublishedRun {
        id: format!("{NAME}-{id}"),
        format: NAME,
        system: framework.to_owned(),
        task: Task {
            id: task_id(&task, text("benchmark"), &question),
            question,
            answer: own("answer"),
            ..Task::default()
        },
        outcome: Verdict::Failure,
        final_answer: last.and_then(|entry| entry.get("content")).map(as_text).unwrap_or_default(),
        steps: walk.placed.into_iter().map(|(_, step)| step).collect(),
        extra,
    };
    Some(run.sample(errors, "injected", defects))
}

/// Rows of one question are of one task, so that no split parts them.
fn task_id(task: &Value, benchmark: &str, question: &str) -> String {
    let own = ["id", "task_id"].iter().find_map(|name| task.get(*name)).map(as_text);
    let own = own.unwrap_or_else(|| blake3::hash(question.as_bytes()).to_hex().chars().take(16).collect());
    format!("{NAME}-{benchmark}-{own}")
}

/// The steps so far, with their coordinates.
struct EntryWalk<'a> {
    framework: &'a str,
    /// The next number of frameworks that count entries.
    cursor: Option<u64>,
    placed: Vec<(String, SampleStep)>,
}

impl EntryWalk<'_> {
    /// Takes an entry; `None` where it is no object.
    fn entry(&mut self, place: usize, entry: &Value, defects: &mut Defects) -> Option<()> {
        let fields = entry.as_object()?;
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        if FRAMING.contains(&kind) {
            return Some(());
        }
        if let Some(turns) = fields.get("turns").and_then(Value::as_array) {
            let round = fields.get("round").map(as_text).unwrap_or_default();
            for (at, turn) in turns.iter().enumerate() {
                let fields = turn.as_object()?;
                let position = fields.get("position").map_or_else(|| at.to_string(), as_text);
                self.step(format!("{round}.{position}"), fields, defects);
            }
            return Some(());
        }
        // What the one agent of EVA got from a tool belongs to the step that asked for it.
        if self.framework == "eva" && kind == "tool" {
            if let Some(said) = self.placed.last_mut().and_then(|(_, step)| step.output.as_mut()) {
                said.text = [said.text.as_str(), &entry_text(fields)].join("\n\n");
                said.opaque += pictures(fields);
            }
            return Some(());
        }
        let coordinate = self.coordinate(place, kind, fields);
        self.step(coordinate, fields, defects);
        Some(())
    }

    /// How the ground truth of the framework names an entry.
    fn coordinate(&mut self, place: usize, kind: &str, fields: &Map<String, Value>) -> String {
        let own = |name: &str| fields.get(name).filter(|value| !value.is_null()).map(as_text);
        match self.framework {
            // By place in the trajectory.
            "dvd" | "eva" => return place.to_string(),
            // In order, from 0 where the run begins with a plan, else from 1.
            "smolagents" => {
                let number = self.cursor.unwrap_or(u64::from(kind != "planning"));
                self.cursor = Some(number + 1);
                return number.to_string();
            }
            // By layer of the chain: a node may speak twice.
            "macnet" => {
                let coordinate = match own("role").as_deref() {
                    Some("author") => "0.0",
                    Some("critic") => "1.0",
                    Some("rewriter") => "1.1",
                    Some("sink") => "2.0",
                    _ => "",
                };
                return coordinate.to_owned();
            }
            _ => {}
        }
        match (own("stage").or_else(|| own("step_number")), own("round"), own("position")) {
            (Some(number), ..) => number,
            (None, Some(round), Some(position)) => format!("{round}.{position}"),
            _ => place.to_string(),
        }
    }

    fn step(&mut self, coordinate: String, fields: &Map<String, Value>, defects: &mut Defects) {
        let own = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let tool = own("tool_name").map(|name| if name == "frame_inspect_tool" { "frame_inspect_agent" } else { name });
        let alone = if self.framework == "dvd" { "orchestrator" } else { ALONE };
        let raw = own("agent_id").or_else(|| own("agent")).or(tool).unwrap_or(alone);
        let (agent, raw_agent) = named(raw, raw, defects);
        let mut step = spoken_step(agent, raw_agent, "assistant", entry_text(fields));
        step.output.iter_mut().for_each(|said| said.opaque = pictures(fields));
        // Marks of what was planted are the label's to tell.
        let is_kept = |name: &str| {
            !TOLD.contains(&name) && !PICTURES.contains(&name) && !PLACED.contains(&name) && !name.starts_with("inject")
        };
        let rest = fields.iter().filter(|(name, _)| is_kept(name));
        step.extra = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
        step.extra.insert("coordinate".to_owned(), coordinate.clone().into());
        self.placed.push((coordinate, step));
    }
}

/// What an entry says.
fn entry_text(fields: &Map<String, Value>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for name in TOLD {
        let text = fields.get(*name).map(as_text).unwrap_or_default();
        if !text.trim().is_empty() && !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
    }
    let calls = ["tool_calls", "tool_actions"].iter().filter_map(|name| fields.get(*name));
    parts.extend(calls.filter(|calls| calls.as_array().is_some_and(|calls| !calls.is_empty())).map(Value::to_string));
    parts.join("\n\n")
}

fn pictures(fields: &Map<String, Value>) -> u32 {
    let lists = PICTURES.iter().filter_map(|name| fields.get(*name)?.as_array());
    u32::try_from(lists.map(Vec::len).sum::<usize>()).unwrap_or(u32::MAX)
}

/// The planted error: one step, or in a debate every named agent's turn of the round.
fn errors(truth: &Map<String, Value>, placed: &[(String, SampleStep)], defects: &mut Defects) -> Vec<PublishedError> {
    let own =
        |name: &str| truth.get(name).filter(|value| !value.is_null()).map(as_text).filter(|text| !text.is_empty());
    let mut agents: Vec<String> = Vec::new();
    for value in ["agent", "agents"].iter().filter_map(|name| truth.get(*name)) {
        match value {
            Value::Array(names) => agents.extend(names.iter().map(as_text)),
            other => agents.extend(Some(as_text(other)).filter(|name| !name.is_empty())),
        }
    }
    agents.dedup();
    let number = own("step_coord").or_else(|| own("step")).or_else(|| own("stage"));
    let coordinate = number.as_deref().map(|text| text.trim_start_matches("step ").to_owned());
    let coordinate = coordinate.or_else(|| Some(format!("{}.{}", own("round")?, own("position")?)));
    let at = |agent: Option<&String>| -> Option<usize> {
        let is_agents = |step: &SampleStep| agent.is_none_or(|agent| step.agent.as_str() == agent.as_str());
        if let Some(coordinate) = &coordinate {
            return placed.iter().position(|(own, _)| own == coordinate);
        }
        let round = own("round")? + ".";
        placed.iter().position(|(own, step)| own.starts_with(&round) && is_agents(step))
    };
    let mode = own("mode").and_then(|mode| own_mode(&mode, NAME));
    let reason = own("reason").or_else(|| own("rationale")).unwrap_or_default();
    let mut error = |agent: Option<&String>| {
        let step = at(agent);
        if step.is_none() {
            let told = Value::Object(truth.clone()).to_string().chars().take(200).collect::<String>();
            defects.add("no-step", format!("no step of the trajectory is at {told}"));
        }
        let (agent, mode, reason) = (agent.cloned(), mode.clone(), reason.clone());
        PublishedError {
            agent,
            step,
            mode,
            reason,
            extra: Map::from_iter([("ground_truth".to_owned(), truth.clone().into())]),
        }
    };
    if agents.is_empty() { vec![error(None)] } else { agents.iter().map(|agent| error(Some(agent))).collect() }
}
