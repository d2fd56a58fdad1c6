//! `run.json` and `seal.json`: what a run is, and what it holds once it is sealed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ImportedFrom, Launched, RecordingError, json_file::FORMAT, redact::Redactor};
use crate::{
    equality::{EqualitySetting, Rules},
    identity::RosterRule,
    trajectory::{Outcome, ProgramEnd, RunId, TAXONOMY},
};

/// This program's version, with the commit that it was built from where the build knew it.
pub const VERSION: &str = env!("BUILD_VERSION");

/// Of recordings in which each call to a provider is a step, whether or not a surface reads it.
pub(super) const CALLS: u32 = 1;

/// What a run is: written when it begins, completed when it is sealed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Manifest {
    /// Format of this file.
    pub format: u64,
    /// The run.
    pub run: RunId,
    /// The task, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// blake3 of the plan's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<String>,
    /// The plan's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The plan's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Where the model calls went: scheme, host and port, or `simulator`.
    pub upstream: String,
    /// When the run began, RFC 3339 UTC.
    pub started: String,
    /// When it was sealed, RFC 3339 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What wrote the recording.
    pub versions: Versions,
    /// What the run achieved.
    #[serde(default)]
    pub outcome: Outcome,
    /// How the run's program ended, where Aegis started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramEnd>,
    /// How the run's program was started and judged, where Aegis started it. Never exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<Launched>,
    /// A hash of run, upstream and program, under a key of whoever recorded it: [`Manifest::is_made_here`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The recorded run whose replies answered this one, all of them or its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_of: Option<RunId>,
    /// Whose trace the run was, where it was imported and not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedFrom>,
    /// What the run was made for, where it is nobody's own run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RunOrigin>,
    /// Who its agents are, where whoever opened it said so: rules of this run alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roster: Vec<RosterRule>,
    /// What may differ in its requests that are still the same: whoever executes it again goes by it.
    #[serde(default, skip_serializing_if = "EqualitySetting::is_default")]
    pub equality: EqualitySetting,
    /// Steps per agent; filled when the run is sealed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, u64>,
    /// From the arrival of the first call to the end of the last, in microseconds: the seal says it, and nothing does of an
    /// unsealed run or one that an earlier version sealed.
    #[serde(skip)]
    pub calls_us: Option<u64>,
    /// Keys of a later version, kept.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

/// What a run was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOrigin {
    /// To see whether an agent that is told what it did wrong does better: no evidence of who erred, so it earns no label.
    Feedback,
    /// To show what a treatment does: it has neutral changes of its own, so it earns no label and is no row.
    Proof,
    /// For something that a later version knows.
    #[serde(other)]
    Other,
}

/// Versions of what wrote a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Versions {
    /// This program's.
    pub aegis: String,
    /// The commit that this program was built from, its first 12 hexadecimal digits, where the build knew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The taxonomy of the failure modes.
    pub taxonomy: String,
    /// Which calls are steps: 0 before those that no surface reads were, but for a few.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Manifest {
    /// The manifest of a run that begins now, without task, plan or outcome.
    pub fn new(run: RunId, upstream: impl Into<String>, started: Timestamp) -> Self {
        Self {
            format: FORMAT,
            run,
            task: None,
            plan_digest: None,
            plan: None,
            seed: None,
            upstream: upstream.into(),
            started: started.to_string(),
            ended: None,
            versions: Versions {
                aegis: env!("CARGO_PKG_VERSION").to_owned(),
                commit: option_env!("BUILD_COMMIT").map(str::to_owned),
                taxonomy: TAXONOMY.to_owned(),
                calls: CALLS,
            },
            outcome: Outcome::default(),
            program: None,
            launched: None,
            mark: None,
            repeat_of: None,
            imported: None,
            origin: None,
            roster: Vec::new(),
            equality: EqualitySetting::default(),
            agents: BTreeMap::new(),
            calls_us: None,
            other: serde_json::Map::new(),
        }
    }

    /// What may differ in its requests that are still the same.
    ///
    /// # Errors
    /// Rules that this version does not read.
    pub fn rules(&self) -> Result<Rules, RecordingError> {
        Rules::from_setting(&self.equality, &format!("{}/run.json", self.run)).map_err(RecordingError::Rules)
    }

    /// The same with the text of a plan, its digest and its seed.
    #[must_use]
    pub fn with_plan(mut self, text: impl Into<String>, seed: u64) -> Self {
        let text = text.into();
        self.plan_digest = Some(blake3::hash(text.as_bytes()).to_hex().to_string());
        self.plan = Some(text);
        self.seed = Some(seed);
        self
    }

    /// With what the seal says of the run's end, where `run.json` was written before it.
    pub(super) fn with_seal(mut self, seal: Option<&Seal>) -> Self {
        self.calls_us = seal.and_then(|seal| seal.calls_us);
        if let (None, Some(seal)) = (&self.ended, seal) {
            self.ended.clone_from(&seal.ended);
            self.agents.clone_from(&seal.agents);
        }
        self
    }

    /// The same with secrets masked, as it may be stored.
    pub(super) fn redacted(mut self, redactor: &Redactor) -> Self {
        self.upstream = redactor.path(&self.upstream).into_owned();
        self.task = self.task.map(|task| redactor.text(&task).into_owned());
        self.plan = self.plan.map(|plan| redactor.text(&plan).into_owned());
        self.equality.rules = self.equality.rules.map(|rules| redactor.text(&rules).into_owned());
        for place in &mut self.equality.volatile {
            place.before = redactor.text(&place.before).into_owned();
            place.after = redactor.text(&place.after).into_owned();
        }
        self.launched = self.launched.map(|launched| launched.redacted(redactor));
        self.imported = self.imported.map(|imported| imported.redacted(redactor));
        self
    }
}

/// What a sealed run holds: `seal.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Seal {
    /// Format of this file.
    pub format: u64,
    /// Records of the log.
    pub records: u64,
    /// Steps of the run.
    pub steps: u64,
    /// Exchanges, retries included.
    pub exchanges: u64,
    /// Exchanges that never closed.
    pub open: u64,
    /// Steps per agent.
    pub agents: BTreeMap<String, u64>,
    /// When the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// From the arrival of the first call to the end of the last, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_us: Option<u64>,
    /// Bytes of the uncompressed log.
    pub log_bytes: u64,
    /// blake3 of the uncompressed log.
    pub log_blake3: String,
}
