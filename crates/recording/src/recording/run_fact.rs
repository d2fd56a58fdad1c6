//! A fact of a run: what was learned of it after it was recorded, when, how and by whom.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    identity::RosterRule,
    trajectory::{AgentName, FailureMode, MissedCatch, ModeVerdict, Outcome, StepIndex},
};

/// One fact: a line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunFact {
    /// Format of this line.
    pub format: u64,
    /// When it was given, RFC 3339 UTC.
    pub at: String,
    /// How it was given.
    pub source: FactSource,
    /// Who gave it, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What it says.
    #[serde(flatten)]
    pub content: FactContent,
    /// What held before it, where anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<FactContent>,
}

impl RunFact {
    /// Who gave it: a name, or the way in which it was given where no name was.
    pub fn giver(&self) -> &str {
        self.by.as_deref().unwrap_or(match self.source {
            FactSource::Amend => "`aegis amend`",
            FactSource::Http => "the control listener",
            FactSource::Import => "`aegis import`",
            FactSource::Page => "`aegis view`",
            FactSource::Judge => "`aegis modes`",
            FactSource::Trace => "`aegis trace`",
            FactSource::Other => "a later version",
        })
    }

    /// What was given and by whom, in a few words: `names given by ada, from aegis.toml`.
    pub fn words(&self) -> String {
        let by = self.giver();
        match &self.content {
            FactContent::Outcome { .. } => format!("outcome given by {by}"),
            FactContent::Task { .. } => format!("task given by {by}"),
            FactContent::Roster { roster } => format!("names given by {by}, from {}", roster.file),
            FactContent::Mode { verdict } => {
                let shown = verdict.shown.map_or("none of those offered", FailureMode::code);
                format!("mode of the change at step {} given by {by}: {shown}", verdict.step)
            }
            FactContent::MissedCatch { found } => {
                let MissedCatch { agent, state, source, step, .. } = found;
                format!("by {by}: {agent} {}, at step {step}, with the reply of {source}", state.words())
            }
        }
    }

    /// Whether both say the same kind of thing, so that the later one holds. What several people and judges say of the modes of one
    /// change holds side by side, and so does what is shown of several agents.
    pub(super) fn is_of_kind(&self, content: &FactContent, by: Option<&str>) -> bool {
        let same_kind = std::mem::discriminant(&self.content) == std::mem::discriminant(content);
        match (&self.content, content) {
            (FactContent::Mode { verdict }, FactContent::Mode { verdict: other }) => {
                (verdict.step, verdict.injection, self.by.as_deref()) == (other.step, other.injection, by)
            }
            (FactContent::MissedCatch { found }, FactContent::MissedCatch { found: other }) => {
                let key = |one: &MissedCatch| (one.agent.clone(), one.instance, one.source.clone());
                key(found) == key(other)
            }
            _ => same_kind,
        }
    }
}

/// How a fact was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactSource {
    /// By `aegis amend`.
    Amend,
    /// Over the control listener of a server.
    Http,
    /// By `aegis import`, whose configuration had a roster.
    Import,
    /// By somebody on the page of `aegis view --annotate`.
    Page,
    /// By a model that `aegis modes` asked.
    Judge,
    /// By executions that `aegis trace` made.
    Trace,
    /// In a way that a later version knows.
    #[serde(other)]
    Other,
}

impl FactSource {
    /// Its name, as the file has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amend => "amend",
            Self::Http => "http",
            Self::Import => "import",
            Self::Page => "page",
            Self::Judge => "judge",
            Self::Trace => "trace",
            Self::Other => "other",
        }
    }
}

/// What a fact says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum FactContent {
    /// What the run achieved.
    Outcome {
        /// The outcome.
        outcome: Outcome,
    },
    /// What the run was asked to do.
    Task {
        /// The task's text.
        task: String,
    },
    /// Who its agents are.
    Roster {
        /// The roster, and which steps it names.
        roster: LaterRoster,
    },
    /// Which failure mode a planted change shows.
    Mode {
        /// What was said of it.
        verdict: ModeVerdict,
    },
    /// Whether a later agent could have saved the run from the error that its label names.
    MissedCatch {
        /// What was executed for it, and what that shows.
        found: MissedCatch,
    },
}

/// A roster that was given after the run was recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaterRoster {
    /// The file that it was read from.
    pub file: String,
    /// Its rules: what executes the run's program again names agents by them, too.
    pub agent: Vec<RosterRule>,
    /// The steps that it names; the others keep the names that they were recorded under.
    pub named: Vec<NamedSteps>,
    /// Steps per agent, under the names that hold from now on.
    pub agents: BTreeMap<String, u64>,
}

/// Steps that one rule gives to one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NamedSteps {
    /// The agent.
    pub agent: AgentName,
    /// Which of several equal agents, 0-based.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instance: u32,
    /// Whether rules of different agents match, or only order tells which of several equal agents it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ambiguous: bool,
    /// What names them.
    pub evidence: String,
    /// Their numbers, 0-based, ascending.
    pub steps: Vec<StepIndex>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
