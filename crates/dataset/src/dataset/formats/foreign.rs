//! What all readers of foreign files share: defects by rule, agents by canonical name, fields kept as they were.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    dataset::{SampleMessage, SampleStep},
    trajectory::AgentName,
};

/// Something wrong in a foreign file, or worth knowing about it. Reading goes on: trust nothing, report everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct Defect {
    /// The file.
    pub file: String,
    /// The line of a file of rows, or the number of the row in an array, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// The rule's name, one of [`RULES`].
    pub rule: &'static str,
    /// What was found, and where in the row.
    pub found: String,
}

/// Every rule of the importers: its name, what it means.
pub const RULES: &[(&str, &str)] = &[
    ("not-json", "the file or row is no JSON; it is left out"),
    ("wrong-shape", "a field that the format cannot do without is missing or has another type; the row is left out"),
    ("missing-field", "a field of the format is missing"),
    ("unknown-field", "a field that the format does not have; kept"),
    ("no-step", "the label's step is no whole number from 0 on; the label keeps no step"),
    ("step-beyond-end", "the label's step lies beyond the last entry; the label keeps no step"),
    ("other-speaker", "the entry at the labelled step is another agent's"),
    ("agent-absent", "the label names an agent that never speaks"),
    ("agent-case", "the label spells the agent in other letters than the trace"),
    ("agent-name", "an agent's name is empty, too long or holds control characters; it gets a stable one"),
    ("cut-name", "the public Who&When scorer cuts this name, so that it can never be hit"),
    ("empty-content", "an entry says nothing"),
    ("not-a-failure", "the row says that the run succeeded; it is a clean run, without a label"),
    ("no-label", "the row names nobody who erred; it is a failure without a label, which nothing is measured against"),
    ("shared-task", "the task is in both layouts: never split them into train and test by layout"),
    ("doubled-id", "another row has this id; a number is added to it"),
    ("unknown-mode", "a failure mode that MAST does not have; kept"),
    ("no-modes", "a failure without any failure mode"),
    ("step-number", "an entry's own step number is not its place"),
    ("wrong-count", "a count in the metadata is not the count of the trace"),
    ("origin-leak", "the trace shows that it was tampered with"),
    ("path-leak", "the trace shows an absolute path of its author's machine"),
    ("doubled-entry", "an entry says again word for word what its agent said before"),
    ("not-binary", "a flag is neither 0 nor 1"),
    ("missing-file", "a file that belongs to the row is not there"),
];

/// Where a defect is, and those found so far.
#[derive(Debug, Default)]
pub(super) struct Defects {
    file: String,
    row: Option<u64>,
    found: Vec<Defect>,
}

impl Defects {
    /// Goes to a file, and in it to a row.
    pub(super) fn at(&mut self, file: &str, row: Option<u64>) {
        file.clone_into(&mut self.file);
        self.row = row;
    }

    /// Notes a defect here.
    pub(super) fn add(&mut self, rule: &'static str, found: impl Into<String>) {
        debug_assert!(RULES.iter().any(|(name, _)| *name == rule), "{rule} is no rule");
        self.found.push(Defect { file: self.file.clone(), row: self.row, rule, found: found.into() });
    }

    /// All of them, by file, row and rule.
    pub(super) fn finish(mut self) -> Vec<Defect> {
        self.found.sort();
        self.found
    }

    /// The file that is being read.
    pub(super) fn file(&self) -> &str {
        &self.file
    }
}

/// An agent's name from a foreign file, with the raw one where it differs.
pub(super) fn named(raw: &str, canonical: &str, defects: &mut Defects) -> (AgentName, Option<String>) {
    let agent = AgentName::parse(canonical).unwrap_or_else(|_| {
        defects.add("agent-name", format!("`{}`", raw.escape_debug().take(80).collect::<String>()));
        let hash = blake3::hash(raw.as_bytes());
        AgentName::unnamed(hash.as_bytes().first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    });
    let differs = agent.as_str() != raw;
    (agent, differs.then(|| raw.to_owned()))
}

/// A step of a foreign trace: who said what.
pub(super) fn spoken_step(agent: AgentName, raw_agent: Option<String>, role: &str, text: String) -> SampleStep {
    SampleStep {
        step: 0,
        call: 0,
        turn: 0,
        agent,
        raw_agent,
        instance: 0,
        source: None,
        ambiguous: false,
        overlaps: false,
        model: None,
        input: None,
        tools: Vec::new(),
        output: Some(text_message(role, text)),
        account: None,
        finish_reason: None,
        status: None,
        attempts: None,
        doubt: None,
        extra: Map::new(),
    }
}

/// A message of nothing but text.
pub(super) fn text_message(role: &str, text: String) -> SampleMessage {
    SampleMessage { role: role.to_owned(), name: None, text, calls: Vec::new(), answers: None, opaque: 0 }
}

/// Numbers steps by place, calls by agent, turns by change of agent.
pub(super) fn number(steps: &mut [SampleStep]) {
    let mut calls: Vec<(AgentName, u32)> = Vec::new();
    let (mut turn, mut before) = (0, None::<AgentName>);
    for (place, step) in steps.iter_mut().enumerate() {
        step.step = u32::try_from(place).unwrap_or(u32::MAX);
        if before.as_ref().is_some_and(|before| *before != step.agent) {
            turn += 1;
        }
        step.turn = turn;
        before = Some(step.agent.clone());
        match calls.iter_mut().find(|(agent, _)| *agent == step.agent) {
            Some((_, calls)) => {
                *calls += 1;
                step.call = *calls;
            }
            None => calls.push((step.agent.clone(), 0)),
        }
    }
}

/// A text field, or a defect.
pub(super) fn text_field(fields: &Map<String, Value>, name: &'static str, defects: &mut Defects) -> String {
    if let Some(Value::String(text)) = fields.get(name) {
        return text.clone();
    }
    defects.add("missing-field", format!("`{name}` is no text"));
    String::new()
}

/// Takes the fields that are not among the known ones.
pub(super) fn unknown_fields(fields: &Map<String, Value>, known: &[&str], defects: &mut Defects) -> Map<String, Value> {
    let unknown: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| !known.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for name in unknown.keys() {
        defects.add("unknown-field", format!("`{name}`"));
    }
    unknown
}

/// Puts fields back that a reader kept; a `null` stands for one that was not there.
pub(super) fn put_back(fields: &mut Map<String, Value>, kept: &Map<String, Value>) {
    for (name, value) in kept {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
}
