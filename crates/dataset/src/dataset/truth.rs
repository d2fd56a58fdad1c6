//! The ground truth of a sample: who erred, where, in which failure mode, and what proves it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SampleMessage;
use crate::{
    proof,
    trajectory::{
        AgentName, COUNTERFACTUAL, Call, ErrorLists, Evidence, FailureMode, Label, LabelEntry, LabelStatus,
        MissedCatch, ModeClaim, PrincipalKind, Side, StepIndex, TAXONOMY, UnknownFailureMode, Verdict,
    },
};

/// The ground truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Truth {
    /// How far it is established.
    pub status: LabelStatus,
    /// The kind of claim: `injected` says what was planted; `earliest_flip`, `commitment`, `coupled` and `flip` say what a trace
    /// found, by that rule; `human` is a person's word.
    pub definition: String,
    /// The plan's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What the run achieved.
    #[serde(default)]
    pub outcome: Verdict,
    /// Who erred, where: one entry an error; several are a set, all true.
    pub errors: Vec<LabelledError>,
    /// What was planted besides, and is shown to be not needed: attempts, no errors of anybody's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<LabelledError>,
    /// What was planted besides, and of which nothing is shown: neither blamed nor cleared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_shown: Vec<LabelledError>,
    /// What was changed in flight, by all that was planted: one entry a step and side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The runs that prove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Agents that spoke after the errors, and whether another reply of theirs is shown to save the run. Steps are the sample's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed_catch: Vec<MissedCatch>,
}

/// One error of one agent. Foreign formats lack some of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LabelledError {
    /// The agent, by the name that its steps have; of a tool, that of its steps: `mcp/<server>/<tool>`.
    pub agent: AgentName,
    /// What erred; an agent, where nothing else is said. Of a tool whose result was altered in an agent's request, `agent` is who got
    /// the result.
    #[serde(default, skip_serializing_if = "is_agent")]
    pub culprit: PrincipalKind,
    /// The agent as a foreign format wrote it, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_agent: Option<String>,
    /// Its instance, 0-based.
    #[serde(default)]
    pub instance: u32,
    /// The step, 0-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepIndex>,
    /// The call of the agent instance, 0-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// The failure mode; absent means unknown. An error that was found by re-execution has none: that proves who
    /// erred and where, not how. Of several it is the first by code, of those that can be at the call where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_mode: Option<Mode>,
    /// The other modes, by code, where plans declare one and the same edit under several: the bytes are equal, so all
    /// of them are said of this error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_modes: Vec<Mode>,
    /// How far it is established that the error is of `failure_mode`; absent where nobody says. Earlier versions wrote it as
    /// `mode_source`.
    #[serde(default, alias = "mode_source", skip_serializing_if = "Option::is_none")]
    pub mode_claim: Option<ModeClaim>,
    /// The failure mode that an analyzer took the error for: an opinion, never ground truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed_mode: Option<Mode>,
    /// Which side was edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// The manipulator, by name; absent where nobody planted the error. Earlier versions wrote `counterfactual` of such errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// What showed an error that nobody planted: `counterfactual`, executions with another reply at the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<String>,
    /// Index of the injection in its plan, 0-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injection: Option<u32>,
    /// blake3 of what the request or reply said before the edit. Ids, times and counts that a backend makes anew each
    /// time are not in it; the hashes of the bytes are in the run's `label.json`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// The same of what it said after the edit; where several edits met one side of a step, after all of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// A person's words for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Fields of a foreign format that have no place here, by that format's names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_agent(kind: &PrincipalKind) -> bool {
    *kind == PrincipalKind::Agent
}

/// A failure mode as it was written. It may come from another code book, so nothing is assumed of it;
/// [`Mode::failure_mode`] reads it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Mode {
    /// For example `FM-1.3`.
    pub code: String,
    /// For example `step repetition`.
    pub name: String,
    /// The version of the code book.
    pub taxonomy: String,
}

/// What was changed in one step on its way. It is part of the label: none of it may be shown to a tracer, but for
/// what the steps show themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// The step, 0-based.
    pub step: StepIndex,
    /// Which side was edited.
    pub side: Side,
    /// The messages that the edit replaced: of a request those that differ, of a reply the model's own answer.
    pub before: Vec<SampleMessage>,
    /// What stands in their place.
    pub after: Vec<SampleMessage>,
}

impl From<FailureMode> for Mode {
    fn from(mode: FailureMode) -> Self {
        Self { code: mode.code().to_owned(), name: mode.name().to_owned(), taxonomy: TAXONOMY.to_owned() }
    }
}

impl Mode {
    /// The mode of this crate's taxonomy that the code stands for.
    ///
    /// # Errors
    /// [`UnknownFailureMode`] when it stands for none.
    pub fn failure_mode(&self) -> Result<FailureMode, UnknownFailureMode> {
        FailureMode::parse(&self.code)
    }
}

impl LabelledError {
    /// Every failure mode of the error, by code.
    pub fn modes(&self) -> impl Iterator<Item = &Mode> {
        self.failure_mode.iter().chain(&self.other_modes)
    }

    /// What planted it, by name; `None` where nobody did, whichever version wrote it.
    pub fn planted_by(&self) -> Option<&str> {
        self.operator.as_deref().filter(|operator| *operator != COUNTERFACTUAL)
    }

    /// What planted it, by name: the manipulator and the mode it stands for; `None` where nobody planted it.
    pub fn template(&self) -> Option<String> {
        let mode = self.failure_mode.as_ref().map(|mode| format!(" ({})", mode.code)).unwrap_or_default();
        self.planted_by().map(|operator| operator.to_owned() + &mode)
    }

    /// Takes a further mode under which the edit is declared; one that is known is not taken again. The error's mode is the first by
    /// code among those that can be at its call, and the claim is of that one.
    fn declare(&mut self, mode: Mode, claim: ModeClaim) {
        let known = self.mode_claim.as_ref().map(|claim| claim.state);
        if self.failure_mode.as_ref() == Some(&mode) && known >= Some(claim.state) {
            return;
        }
        let can_be = self.mode_claim.as_ref().is_some_and(|claim| claim.state.is_usable());
        let is_before = |own: &Mode| (!claim.state.is_usable(), &mode) < (!can_be, own);
        let is_before = self.failure_mode.as_ref().is_none_or(is_before);
        let further = if is_before {
            self.mode_claim = Some(claim);
            self.failure_mode.replace(mode)
        } else {
            Some(mode)
        };
        self.other_modes.extend(further);
        self.other_modes.retain(|mode| Some(mode) != self.failure_mode.as_ref());
        self.other_modes.sort();
        self.other_modes.dedup();
    }
}

impl Truth {
    /// Whether all planted errors can be of the failure modes that their plans call them: what each mode needs is so, or somebody
    /// confirmed it.
    pub fn has_usable_modes(&self) -> bool {
        let planted = self.errors.iter().filter(|error| error.planted_by().is_some() && error.failure_mode.is_some());
        planted.into_iter().all(|error| error.mode_claim.as_ref().is_some_and(|claim| claim.state.is_usable()))
    }

    /// Takes the modes that the label of another run declares for the same edits. An edit is known by its agent,
    /// instance, call and side; several of one call stand in both in the order of their injections. Whichever of the two
    /// came first, the result is the same.
    pub fn declare(&mut self, other: &Label) {
        let mut entries: Vec<&LabelEntry> = other.planted().collect();
        entries.sort_by_key(|entry| entry.error.injection);
        let planted = self.errors.iter_mut().chain(&mut self.others).chain(&mut self.not_shown);
        let mut planted: Vec<&mut LabelledError> = planted.collect();
        planted.sort_by_key(|error| error.injection);
        for error in planted {
            let its = |entry: &&LabelEntry| {
                let candidate = &entry.error;
                (&candidate.agent, candidate.instance, Some(candidate.call), Some(candidate.side))
                    == (&error.agent, error.instance, error.call, error.side)
            };
            let Some(place) = entries.iter().position(its) else { continue };
            let entry = entries.remove(place);
            if let Some(mode) = entry.error.failure_mode {
                let claim = entry.mode_claim.clone().unwrap_or(ModeClaim::DECLARED);
                error.declare(Mode { taxonomy: entry.taxonomy.clone(), ..Mode::from(mode) }, claim);
            }
        }
    }

    /// All that was planted: the errors, what the failure does not need, and that of which nothing is shown.
    pub fn planted(&self) -> impl Iterator<Item = &LabelledError> {
        self.errors.iter().chain(&self.others).chain(&self.not_shown)
    }

    /// Whether the failure is shown to come of what was planted, and of no error that it needs it.
    pub fn names_nobody(&self) -> bool {
        self.errors.is_empty() && !self.not_shown.is_empty()
    }

    /// Reads off the runs what a label of an earlier version says of errors that it had not shown to be necessary.
    pub(super) fn read_former_states(&mut self) {
        let Some(evidence) = &mut self.evidence else { return };
        if !proof::read_former_states(evidence) {
            return;
        }
        let lists = [&mut self.errors, &mut self.others, &mut self.not_shown].map(std::mem::take);
        let sorted = evidence.sorted(lists.into_iter().flatten(), |one, error| {
            (Some(one.injection), &one.agent, one.instance) == (error.injection, &error.agent, error.instance)
        });
        ErrorLists { errors: self.errors, others: self.others, not_shown: self.not_shown } = sorted;
    }

    /// The labelled steps, each once, in order.
    pub fn steps(&self) -> Vec<StepIndex> {
        once(self.errors.iter())
    }

    /// The steps at which anything was planted, each once, in order.
    pub fn planted_steps(&self) -> Vec<StepIndex> {
        once(self.planted())
    }
}

fn once<'a>(errors: impl Iterator<Item = &'a LabelledError>) -> Vec<StepIndex> {
    let mut steps: Vec<_> = errors.filter_map(|error| error.step).collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}
