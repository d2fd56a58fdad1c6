//! What verbs print that look at recorded runs, or add to them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::RunAttribution;
use crate::{
    identity::LateStep,
    recording::{Annotation, Repaired, RunFact},
    replay::ReplayReport,
    ruling::NoLabel,
    score::{Agreement, Share},
    surface::account::RunAccount,
    trajectory::{AgentName, Label, ModeClaim, Outcome, RunId, Side, Source, WatchSign},
    verdict::{ClientVerdict, Survival},
    viewer::{FoundTexts, RunRow},
    watch::Rates,
};

/// `runs`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ListedRuns<'a> {
    /// The newest first.
    pub(in crate::cli) runs: &'a [std::sync::Arc<RunRow>],
    /// With `--text`: the steps of these runs that hold the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) texts: Option<FoundTexts>,
}

/// `runs end`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct EndedRuns {
    pub(in crate::cli) ended: Vec<RunEnd>,
}

/// A run that was ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RunEnd {
    pub(in crate::cli) run_dir: String,
    pub(in crate::cli) steps: usize,
}

/// `runs keep`, `runs release`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct KeepChange<'a> {
    /// Whether the runs are kept from now on.
    pub(in crate::cli) kept: bool,
    pub(in crate::cli) run_dirs: &'a [PathBuf],
}

/// `runs prune`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrunedRuns {
    /// Whether runs were removed, as against only named.
    pub(in crate::cli) pruned: bool,
    pub(in crate::cli) runs: Vec<PrunedRun>,
    /// Bytes of those that go.
    pub(in crate::cli) bytes: u64,
}

/// A run, and whether it goes.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrunedRun {
    pub(in crate::cli) run: RunId,
    pub(in crate::cli) dir: PathBuf,
    pub(in crate::cli) bytes: u64,
    pub(in crate::cli) ended: Option<String>,
    /// `pruned`, `would go` or `kept`.
    pub(in crate::cli) state: &'static str,
    pub(in crate::cli) why: String,
}

/// `runs --since`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RatesSince<'a> {
    /// The moment that was meant.
    pub(in crate::cli) since: String,
    pub(in crate::cli) rates: &'a Rates,
    /// How many of the runs had a plan.
    pub(in crate::cli) planned: u32,
    /// Runs that cannot be read.
    pub(in crate::cli) unread: &'a [String],
}

/// `show --verdict`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ShownVerdict<'a> {
    pub(in crate::cli) run: &'a RunId,
    /// How the program met its faults.
    pub(in crate::cli) client: &'a ClientVerdict,
    /// Whether it survived them.
    pub(in crate::cli) survival: &'a Survival,
}

/// `show --watch-rules`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ShownSigns<'a> {
    pub(in crate::cli) run: &'a RunId,
    /// What the rules see.
    pub(in crate::cli) watched: &'a [WatchSign],
    pub(in crate::cli) rules: Vec<ShownRule>,
}

/// A rule that was asked.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ShownRule {
    pub(in crate::cli) name: &'static str,
    /// The failure mode that it is a sign of.
    pub(in crate::cli) mode: Option<&'static str>,
    /// Whether it is asked unless it is turned off.
    pub(in crate::cli) on: bool,
    pub(in crate::cli) says: &'static str,
}

/// `agents`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ShownAgents<'a> {
    /// One entry an agent and rule; then the agents that upstreams name.
    pub(in crate::cli) agents: Vec<ShownAgent<'a>>,
    pub(in crate::cli) steps: Vec<IdentifiedStep<'a>>,
}

/// An agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::cli) enum ShownAgent<'a> {
    /// One that makes calls.
    Caller {
        agent: &'a AgentName,
        calls: usize,
        /// The rule that names it.
        source: &'static str,
        evidence: &'a str,
        confidence: f64,
        /// Calls that could be another's.
        ambiguous: usize,
        /// The name to show.
        display: &'a str,
    },
    /// One that an upstream names in its replies.
    Answerer {
        agent: &'a str,
        replies: usize,
        source: &'static str,
        /// Who asked the upstream.
        asked_by: &'a AgentName,
        confidence: f64,
        ambiguous: usize,
        display: &'a str,
    },
}

/// A step, and who made its call.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct IdentifiedStep<'a> {
    pub(in crate::cli) run: &'a RunId,
    pub(in crate::cli) step: u32,
    pub(in crate::cli) call: u32,
    pub(in crate::cli) turn: u32,
    pub(in crate::cli) agent: &'a AgentName,
    pub(in crate::cli) instance: u32,
    /// `agent`, or the helper of a framework that it is: `selector`, `summary`, `planner`, `ranker`, `embedding`.
    pub(in crate::cli) kind: &'a str,
    pub(in crate::cli) source: Source,
    pub(in crate::cli) confidence: f64,
    pub(in crate::cli) ambiguous: bool,
    pub(in crate::cli) evidence: &'a str,
    pub(in crate::cli) attempts: usize,
    /// What named the run.
    pub(in crate::cli) run_source: &'a str,
    /// Whether a label may name it.
    pub(in crate::cli) labels: bool,
    /// Why none may.
    pub(in crate::cli) no_label: Option<NoLabel>,
    /// Agents that the upstream names in the reply.
    pub(in crate::cli) upstream_agents: Vec<String>,
    /// The name to show.
    pub(in crate::cli) display: &'a str,
    /// The name of the rule that `--suggest` proposes for it.
    pub(in crate::cli) suggested: String,
    /// The name that stands for what the request looks like.
    pub(in crate::cli) looks: AgentName,
    /// What the late pass sees otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) late: Option<&'a LateStep>,
}

/// `agents --roster`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RosterTrial<'a> {
    pub(in crate::cli) changes: Vec<RosterChange<'a>>,
    /// Numbers of rules that fit nothing.
    pub(in crate::cli) unmatched_rules: &'a [usize],
}

/// What a roster would make of an agent's calls.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RosterChange<'a> {
    pub(in crate::cli) before: &'a str,
    pub(in crate::cli) after: &'a str,
    pub(in crate::cli) calls: usize,
    /// Whether rules contradict each other.
    pub(in crate::cli) clash: bool,
}

/// `amend`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct AmendedRuns<'a> {
    pub(in crate::cli) runs: Vec<RunAmendment<'a>>,
}

/// A run that was added to.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RunAmendment<'a> {
    pub(in crate::cli) dir: &'a Path,
    pub(in crate::cli) added: &'a [RunFact],
    pub(in crate::cli) label: Option<&'a Label>,
    pub(in crate::cli) no_label: Option<&'a NoLabel>,
}

/// `annotations`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ListedAnnotations<'a> {
    pub(in crate::cli) runs: Vec<AnnotatedRow<'a>>,
    pub(in crate::cli) agreement: AnnotatorAgreement<'a>,
    /// Annotated runs that are not compared: their files cannot be read or were edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::cli) unread: Vec<UnreadRun>,
}

/// An annotated run whose label cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct UnreadRun {
    pub(in crate::cli) run: String,
    pub(in crate::cli) why: String,
}

/// A run and what was said of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct AnnotatedRow<'a> {
    pub(in crate::cli) run: &'a str,
    pub(in crate::cli) said: &'a [Annotation],
}

/// How far annotators agree.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct AnnotatorAgreement<'a> {
    /// With each other, by question.
    pub(in crate::cli) questions: BTreeMap<&'static str, &'a Agreement>,
    /// With proven labels, by annotator.
    pub(in crate::cli) against_proven_labels: BTreeMap<&'a str, LabelAgreement<'a>>,
}

/// How often an annotator says what a proven label says.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct LabelAgreement<'a> {
    pub(in crate::cli) who: &'a Share,
    pub(in crate::cli) when: &'a Share,
}

/// `annotations --export`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ExportedAnnotations<'a> {
    pub(in crate::cli) out: &'a Path,
    pub(in crate::cli) files: usize,
    /// Those that saw no error.
    pub(in crate::cli) left_out: usize,
}

/// `annotations --import`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ImportedAnnotations<'a> {
    pub(in crate::cli) annotator: &'a str,
    pub(in crate::cli) annotations: usize,
}

/// `modes`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ShownModes<'a> {
    pub(in crate::cli) changes: Vec<ModeOfChange<'a>>,
    pub(in crate::cli) agreement: ModeAgreement<'a>,
    /// What came of asking a judge, where one was asked.
    pub(in crate::cli) asked: Option<JudgedModes<'a>>,
}

/// A planted change and its mode.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ModeOfChange<'a> {
    pub(in crate::cli) run: &'a str,
    pub(in crate::cli) step: u32,
    pub(in crate::cli) injection: u32,
    pub(in crate::cli) agent: &'a str,
    pub(in crate::cli) side: Side,
    /// The code that the plan names.
    pub(in crate::cli) mode: &'static str,
    pub(in crate::cli) mode_claim: &'a ModeClaim,
    /// What each judge and person says it shows.
    pub(in crate::cli) said: BTreeMap<&'a str, &'static str>,
}

/// How far those who looked at the same changes agree.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ModeAgreement<'a> {
    pub(in crate::cli) all: &'a Agreement,
    pub(in crate::cli) pairs: Vec<PairAgreement<'a>>,
}

/// The same of two.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PairAgreement<'a> {
    pub(in crate::cli) between: [&'a str; 2],
    pub(in crate::cli) same: &'a Share,
}

/// What came of asking a judge for modes.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct JudgedModes<'a> {
    pub(in crate::cli) changes: usize,
    pub(in crate::cli) confirmed: usize,
    pub(in crate::cli) refuted: usize,
    pub(in crate::cli) undecided: usize,
    /// Changes of which nothing could be asked, by the reason.
    pub(in crate::cli) nothing: &'a BTreeMap<&'static str, usize>,
    pub(in crate::cli) live_calls: u64,
    pub(in crate::cli) replayed_calls: u64,
}

/// `repair`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RepairedRun<'a> {
    pub(in crate::cli) run_dir: &'a str,
    pub(in crate::cli) repaired: &'a Repaired,
    /// What lies beside the log and is not as it was written, or not as the log says.
    pub(in crate::cli) differs: &'a [String],
}

/// `run`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedRun<'a> {
    pub(in crate::cli) run: &'a RunId,
    pub(in crate::cli) run_dir: &'a Path,
    pub(in crate::cli) steps: u32,
    /// Steps that passed uninspected.
    pub(in crate::cli) uninspected: u32,
    /// Steps by the API that they speak, where that is recorded and not read.
    pub(in crate::cli) unread: &'a BTreeMap<String, usize>,
    pub(in crate::cli) account: &'a RunAccount,
    /// Requests that looked at what the provider keeps: no steps.
    pub(in crate::cli) fetches: u32,
    /// Calls that the upstream left without an answer.
    pub(in crate::cli) unanswered: usize,
    pub(in crate::cli) outcome: &'a Outcome,
    pub(in crate::cli) label: Option<&'a Label>,
    pub(in crate::cli) no_label: Option<&'a NoLabel>,
    /// How the program met the plan's faults.
    pub(in crate::cli) client: &'a Option<ClientVerdict>,
    pub(in crate::cli) watched: &'a [WatchSign],
    /// With `--attribute`: what methods say of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RunAttribution<'static>>")]
    pub(in crate::cli) attribution: Option<Value>,
}

/// `replay`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PrintedReplay<'a> {
    /// The run that the replay was recorded as.
    pub(in crate::cli) run: &'a RunId,
    /// The run that answered.
    pub(in crate::cli) record: &'a RunId,
    pub(in crate::cli) report: &'a ReplayReport,
}
