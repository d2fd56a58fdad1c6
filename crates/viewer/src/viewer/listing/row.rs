//! A run in one line: what its files say in short.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    recording::{self, Manifest, RecordedCheck, RunOrigin},
    ruling,
    surface::account::RunAccount,
    trajectory::{Label, Side, Verdict},
    viewer::{suspected::Suspected, traced::Traced},
};

/// A run in one line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunRow {
    /// What names it in addresses: its id, with a number behind it where another run of the list has the same id.
    #[serde(default)]
    pub key: String,
    /// Its id.
    pub run: String,
    /// Its directory.
    pub dir: PathBuf,
    /// When it began, RFC 3339 UTC.
    pub started: String,
    /// From its first call to the end of its last, in seconds; `None` where it is not sealed, or an earlier version sealed it.
    pub seconds: Option<f64>,
    /// What was run.
    pub program: Option<Arc<str>>,
    /// The task, by words or by its id.
    pub task: Option<Arc<str>>,
    /// What it is in an experiment.
    pub kind: RunKind,
    /// What it was made for, if not for itself.
    pub origin: Option<RunOrigin>,
    /// What was planted, and where: of its label, or of its place in a campaign.
    pub planted: Option<Arc<str>>,
    /// Its agents; of a run that is not sealed, nobody knows yet.
    #[serde(default)]
    pub agents: Arc<[String]>,
    /// Its steps, as far as the seal tells.
    pub calls: Option<u64>,
    /// What it achieved.
    pub outcome: Verdict,
    /// What was seen.
    #[serde(default)]
    pub evidence: Arc<str>,
    /// Whether it is sealed; others may still be written.
    pub sealed: bool,
    /// Whether it is kept, whatever is pruned.
    pub kept: bool,
    /// How many of its steps were read. `None` where it is not sealed, or where the list had looked at enough.
    pub account: Option<RunAccount>,
    /// Its label: how sure, and who failed where.
    pub label: Option<Box<LabelRow>>,
    /// The format of the trace that it was imported from.
    pub imported: Option<Arc<str>>,
    /// What a trace found.
    pub trace: Option<String>,
    /// Whom methods of attribution name, from the log alone.
    pub suspected: Option<String>,
    /// The campaign that it belongs to.
    pub campaign: Option<Arc<str>>,
    /// Its plan's name there.
    pub plan: Option<Arc<str>>,
    /// What it was counted as there.
    pub class: Option<Arc<str>>,
    /// The run whose trace made it.
    pub trial_of: Option<Arc<str>>,
    /// Why it cannot be read.
    pub unreadable: Option<String>,
}

/// What a run is in an experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Nothing was planted, and it repeats no other run.
    #[default]
    Clean,
    /// Nothing was planted; it repeats the run that another one stands against.
    Control,
    /// A plan changed it.
    Treated,
    /// A plan changed it where no change should matter.
    Decoy,
}

impl RunKind {
    /// The word for it, as it is written.
    pub fn word(self) -> &'static str {
        match self {
            RunKind::Clean => "clean",
            RunKind::Control => "control",
            RunKind::Treated => "treated",
            RunKind::Decoy => "decoy",
        }
    }
}

/// A label in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LabelRow {
    /// How far it is established.
    pub status: String,
    /// Who, where, how.
    pub errors: Vec<LabelledStep>,
    /// What stands in their place where it names nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nobody: Option<String>,
    /// The first gate that refuses it now, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl LabelRow {
    /// The label in a line.
    pub fn words(&self) -> String {
        let errors = self.errors.iter().map(|error| {
            let mode = error
                .found
                .as_ref()
                .map(|found| format!("{found} of "))
                .or_else(|| Some(format!("{} ", error.mode.as_ref()?)));
            let number = if error.instance > 0 { format!("#{}", error.instance) } else { String::new() };
            format!("{}{}{number} at {}", mode.unwrap_or_default(), error.agent, error.step)
        });
        let errors: Vec<String> = errors.chain(self.nobody.clone()).collect();
        let named = format!("{} {}", self.status, errors.join(", "));
        self.refused.as_ref().map(|why| format!("refused ({named}): {why}")).unwrap_or(named)
    }
}

/// An error of a label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LabelledStep {
    /// The agent.
    pub agent: String,
    /// Its number among equal agents, from 0.
    #[serde(default)]
    pub instance: u32,
    /// The step.
    pub step: u32,
    /// The failure mode's code; `None` where it is unknown.
    pub mode: Option<Arc<str>>,
    /// What it is where executions found it: `natural error` or `inherited error`; `None` where it was planted in the run.
    pub found: Option<Arc<str>>,
}

/// The line of a run.
pub(super) fn row_of(dir: &Path) -> RunRow {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let manifest = match recording::read_manifest(dir) {
        Ok(manifest) => manifest,
        Err(error) => {
            let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
            let run = name.chars().map(plain).collect();
            return RunRow { run, dir: dir.to_owned(), unreadable: Some(error.to_string()), ..RunRow::default() };
        }
    };
    let sealed = dir.join("seal.json").is_file();
    let label = recording::read_label(dir);
    let unreadable = label.as_ref().err().map(ToString::to_string);
    let agents = &manifest.agents;
    RunRow {
        run: manifest.run.to_string(),
        dir: dir.to_owned(),
        seconds: seconds(&manifest),
        program: manifest.launched.as_ref().map(|launched| launched.command.join(" ").into()),
        task: manifest.task.as_deref().or_else(|| question(&manifest)).map(Arc::from),
        kind: kind(&manifest),
        origin: manifest.origin,
        planted: label.as_ref().ok().and_then(Option::as_ref).and_then(planted_by),
        agents: agents.keys().cloned().collect(),
        calls: (sealed || !agents.is_empty()).then(|| agents.values().sum()),
        outcome: manifest.outcome.verdict,
        evidence: manifest.outcome.evidence.as_str().into(),
        started: manifest.started,
        sealed,
        kept: !matches!(recording::read_kept(dir), Ok(None)),
        label: label.ok().flatten().map(|label| Box::new(label_of(dir, &label))),
        imported: manifest.imported.map(|imported| imported.format.into()),
        trace: Traced::read(dir).as_ref().map(Traced::line),
        suspected: Suspected::read(dir, manifest.run.as_str(), &[]).as_ref().map(Suspected::line),
        unreadable,
        ..RunRow::default()
    }
}

fn label_of(dir: &Path, label: &Label) -> LabelRow {
    let errors = label.errors.iter().map(|entry| LabelledStep {
        agent: entry.error.agent.to_string(),
        instance: entry.error.instance,
        step: entry.error.step,
        mode: entry.error.failure_mode.map(|mode| mode.code().into()),
        found: entry.finding().map(Arc::from),
    });
    let refused = ruling::refused(dir, label).ok().flatten().map(|why| why.to_string());
    LabelRow {
        status: crate::viewer::data::word(&label.status),
        errors: errors.collect(),
        nobody: label.nobody(),
        refused,
    }
}

/// From the first call to the last, in seconds: how long somebody waited to end the run is not its time.
#[expect(clippy::cast_precision_loss, reason = "a time that is shown")]
fn seconds(manifest: &Manifest) -> Option<f64> {
    Some((manifest.calls_us? / 1000) as f64 / 1000.0)
}

/// The question that its checker knows.
fn question(manifest: &Manifest) -> Option<&str> {
    match manifest.launched.as_ref()?.check.as_ref()? {
        RecordedCheck::Checkers(check) => check.get("question")?.as_str(),
        RecordedCheck::Command(_) => None,
    }
}

fn kind(manifest: &Manifest) -> RunKind {
    match (&manifest.plan_digest, &manifest.repeat_of) {
        (Some(_), _) => RunKind::Treated,
        (None, Some(_)) => RunKind::Control,
        (None, None) => RunKind::Clean,
    }
}

/// What a label says was planted.
fn planted_by(label: &Label) -> Option<Arc<str>> {
    let planted = label.errors.iter().filter(|entry| entry.finding().is_none()).map(|entry| {
        let error = &entry.error;
        let side = match error.side {
            Side::Request => "request to",
            Side::Response => "reply of",
        };
        let agent = error.agent.numbered(error.instance);
        format!("{} in the {side} {agent} at step {}", error.operator, error.step)
    });
    let words = planted.collect::<Vec<_>>().join(", ");
    (!words.is_empty()).then(|| words.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_equal_agents_has_its_number_in_the_line_of_its_run() {
        for (instance, words) in [(0, "verified FM-1.1 debater at 4"), (2, "verified FM-1.1 debater#2 at 4")] {
            let error = LabelledStep {
                agent: "debater".to_owned(),
                instance,
                step: 4,
                mode: Some("FM-1.1".into()),
                found: None,
            };
            let label = LabelRow { status: "verified".to_owned(), errors: vec![error], nobody: None, refused: None };
            assert_eq!(label.words(), words);
        }
    }
}
