//! The ground truth of a run, and how one is derived: only from what was delivered, never from what was planned.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::{
    AgentName, Attempt, CallEnding, CloseCause, ErrorLists, Evidence, GivenModeVerdict, InjectedError, LabelEntry,
    MissedCatch, ModeClaim, Side, Standing, Step, StepIndex, Verdict,
};

/// How far the truth of a label is established.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabelStatus {
    /// Altered bytes were delivered; nothing is claimed of what they caused.
    Delivered,
    /// It is shown that the injection, and nothing else, turned success into failure.
    Verified,
    /// The same injection passed and failed, and it cannot be shown any more that it turned the outcome.
    Contradicted,
    /// The outcome flipped; it is not shown, or not yet, that the injection did it.
    Unproven,
    /// The outcome flipped; too many of the runs that should show why say nothing.
    Void,
    /// Later evidence contradicts it.
    Withdrawn,
}

impl From<Standing> for LabelStatus {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Verified => LabelStatus::Verified,
            Standing::Contradicted => LabelStatus::Contradicted,
            Standing::Unproven => LabelStatus::Unproven,
            Standing::Void => LabelStatus::Void,
        }
    }
}

/// The ground truth of a run, as it was ruled. It reads as [`LabelContent`], and cannot be changed. It is not
/// [`Deserialize`]: what a file says becomes a label by [`Label::read_back`] alone.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Label(LabelContent);

impl Label {
    /// A label that says this. Only `ruling` makes labels; a test of the architecture holds that nobody else does.
    pub fn ruled(facts: LabelContent) -> Self {
        Self(facts)
    }

    /// A label as `ruling` wrote it to a file. The same test lists the files for which it is called.
    pub fn read_back(facts: LabelContent) -> Self {
        Self(facts)
    }

    /// The same label, which says of each error that executions found whether its agent said those words.
    #[must_use]
    pub fn with_origins_of(mut self, steps: &[Step]) -> Self {
        for entry in &mut self.0.errors {
            let step = steps.iter().find(|step| step.step == entry.error.step);
            if let Some(attempt) = step.and_then(Step::last_attempt) {
                *entry = entry.clone().replied_from(attempt.origin);
            }
        }
        self
    }

    /// The same label with the names that its steps were given after the run was recorded. `name`: agent and instance of a
    /// step; `None` where it keeps those that it was recorded under.
    #[must_use]
    pub fn named_later(mut self, names: &LaterNames, name: impl Fn(StepIndex) -> Option<(AgentName, u32)>) -> Self {
        let mut renamed = false;
        for entry in self.0.planted_mut() {
            if let Some((agent, instance)) = name(entry.error.step) {
                entry.error.agent = agent;
                entry.error.instance = instance;
                renamed = true;
            }
        }
        if renamed {
            self.0.names_later = Some(names.clone());
        }
        self
    }

    /// The same label, with what people and judges said of its errors' modes.
    #[must_use]
    pub fn with_mode_verdicts(mut self, given: &[GivenModeVerdict<'_>]) -> Self {
        for entry in self.0.planted_mut() {
            let about: Vec<_> = given.iter().filter(|one| one.verdict.is_about(&entry.error)).copied().collect();
            if !about.is_empty() {
                let claim = entry.mode_claim.take().unwrap_or(ModeClaim::DECLARED);
                entry.mode_claim = Some(claim.after(&about));
            }
        }
        self
    }

    /// The same label, with what executions say of agents that spoke after its errors.
    #[must_use]
    pub fn with_missed_catch(mut self, found: Vec<MissedCatch>) -> Self {
        self.0.missed_catch = found;
        self
    }

    /// The same label, each error under the name and the number of the call that its step has by now.
    #[must_use]
    pub fn under_names_of(mut self, steps: &[Step]) -> Self {
        for entry in self.0.planted_mut() {
            if let Some(step) = steps.iter().find(|step| step.step == entry.error.step) {
                entry.error.agent.clone_from(&step.attribution.agent);
                entry.error.instance = step.attribution.instance;
                entry.error.call = step.call;
            }
        }
        self
    }

    /// The same label of a run of which is known by now what it achieved.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Verdict) -> Self {
        self.0.outcome = outcome;
        self
    }

    /// What it says.
    pub fn into_content(self) -> LabelContent {
        self.0
    }
}

impl Deref for Label {
    type Target = LabelContent;

    fn deref(&self) -> &LabelContent {
        &self.0
    }
}

/// Tests seed defects in labels.
#[cfg(any(test, feature = "testing"))]
impl std::ops::DerefMut for Label {
    fn deref_mut(&mut self) -> &mut LabelContent {
        &mut self.0
    }
}

/// What a label says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LabelContent {
    /// Format of this file.
    pub format: u32,
    /// How far it is established.
    pub status: LabelStatus,
    /// What the label means: `injected`, or the rule that found it by re-execution (`earliest_flip`, `commitment`, `flip`,
    /// `coupled`).
    pub definition: String,
    /// The plan's seed.
    pub seed: u64,
    /// What the run achieved.
    pub outcome: Verdict,
    /// One entry per error. Of a plan with several, a verified label holds those that the failure needs; all of them where
    /// any would have done ([`Evidence::overdetermined`]), and those that did it together ([`Evidence::joint`]).
    pub errors: Vec<LabelEntry>,
    /// What was planted besides, and is shown to be not needed: no error of the run's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<LabelEntry>,
    /// What was planted besides, and of which nothing is shown: neither blamed nor cleared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_shown: Vec<LabelEntry>,
    /// The runs that it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// When, how and by whom the names of its agents were given, where that was after the run was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names_later: Option<LaterNames>,
    /// The later agents of which executions say whether another reply of theirs would have saved the run. They are facts of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed_catch: Vec<MissedCatch>,
}

impl LabelContent {
    /// All that was planted.
    pub fn planted(&self) -> impl Iterator<Item = &LabelEntry> {
        self.errors.iter().chain(&self.others).chain(&self.not_shown)
    }

    /// What stands in the place of errors where several were planted and of none of them it is shown that the failure needs it.
    pub fn nobody(&self) -> Option<String> {
        let nobody = self.errors.is_empty() && !self.not_shown.is_empty();
        nobody.then(|| format!("of {} planted errors none is shown to be needed", self.planted().count()))
    }

    /// The same, to be amended.
    pub fn planted_mut(&mut self) -> impl Iterator<Item = &mut LabelEntry> {
        self.errors.iter_mut().chain(&mut self.others).chain(&mut self.not_shown)
    }

    /// The same label on other evidence, each planted error in the list that the evidence gives it.
    #[must_use]
    pub fn resting_on(self, evidence: Evidence) -> Self {
        let evidence = evidence.with_joint_cause();
        let planted = self.errors.into_iter().chain(self.others).chain(self.not_shown);
        let ErrorLists { errors, others, not_shown } =
            evidence.sorted(planted, |one, entry| one.is_about(&entry.error));
        Self { errors, others, not_shown, evidence: Some(evidence), ..self }
    }
}

/// Names of agents that were given after the run was recorded: they count as declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaterNames {
    /// When, RFC 3339 UTC.
    pub at: String,
    /// How: `amend`, `http`, `import`.
    pub source: String,
    /// By whom, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The file of the roster.
    pub file: String,
}

/// Whether the upstream left the step without an answer, for no reason of the program's; what a retry healed does not count, nor does
/// a planted failure. A status of the 400s is the program's own doing; the same words behind a status of success, or of a server's
/// error, come from an upstream that had taken the request.
pub fn ended_by_upstream(step: &Step) -> bool {
    let planted = |last: &Attempt| last.cause == Some(CloseCause::Injected) || met_fault(step, last);
    let Some((last, ending)) = last_ending(step).filter(|(last, _)| !planted(last)) else { return false };
    // A server of tools or a peer refuses within a status of success.
    let is_of_server = !step.attribution.agent.is_agent();
    let by_status = is_of_server || last.status.is_some_and(|status| (400..500).contains(&status));
    let refused = matches!(ending, CallEnding::Refused(_)) && !by_status && last.cause != Some(CloseCause::Refused);
    ending.is_infrastructure() || (refused && !refused_as_edited(step))
}

/// Whether a planted fault ended the step: it broke the last attempt off, or answered it with an error.
pub fn ended_by_fault(step: &Step) -> bool {
    last_ending(step).is_some_and(|(last, ending)| {
        let ended = !matches!(ending, CallEnding::Answered | CallEnding::Abandoned);
        last.cause == Some(CloseCause::Injected) || (ended && met_fault(step, last))
    })
}

/// Whether a planted fault made the answer another than the upstream's: what its program did with it is no doing of the agent's.
pub fn altered_by_fault(step: &Step) -> bool {
    let Some(last) = step.last_attempt() else { return false };
    let alters = |error: &InjectedError| error.is_fault() && error.delivered && error.before != error.after;
    step.injected.iter().any(|error| alters(error) && error.attempt == last.attempt)
}

/// Whether the upstream would not answer an edited request, one that is too long for its model for example: the edit does that
/// each time, and the agent then said nothing that could be its error.
pub fn refused_as_edited(step: &Step) -> bool {
    let edited = |error: &InjectedError| error.delivered && error.side == Side::Request && !error.is_fault();
    last_ending(step).is_some_and(|(_, ending)| ending.is_error()) && step.injected.iter().any(edited)
}

/// The last attempt and how it ended; `None` where the recording ends before it.
fn last_ending(step: &Step) -> Option<(&Attempt, CallEnding)> {
    let last = step.last_attempt()?;
    Some((last, last.ending?))
}

fn met_fault(step: &Step, attempt: &Attempt) -> bool {
    step.injected.iter().any(|error| error.is_fault() && error.attempt == attempt.attempt)
}

#[cfg(test)]
#[path = "label_tests.rs"]
mod tests;
