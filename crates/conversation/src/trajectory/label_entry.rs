//! One error of a label, and how it is written: what was planted as what was planted, and a natural error as what it is.

use serde::{Deserialize, Serialize};

use super::{AgentName, Call, FailureMode, InjectedError, ModeClaim, ReplyOrigin, Side, StepIndex};

/// What showed a natural error: the run was executed again, with and without another reply at the step. Earlier versions
/// wrote it as the operator of an injection.
pub const COUNTERFACTUAL: &str = "counterfactual";

/// How an error came to be in a run, as its label says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorOrigin {
    /// An injection planted it.
    #[default]
    Planted,
    /// Nobody planted it: the agent made it, and executions showed it.
    Natural,
    /// Executions showed it, and its agent did not say those words: an edit of the run that this one begins like made them, or a
    /// fork set them.
    Inherited,
}

/// One error as ground truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "WrittenEntry", into = "WrittenEntry")]
pub struct LabelEntry {
    /// What was planted, where, by what. Of a natural error: where it is, with the reply that heals the run as `before` and the
    /// recorded one as `after`; nothing of it was injected.
    pub error: InjectedError,
    /// How it came to be there. An entry that an earlier version wrote of a natural error reads as planted by
    /// [`COUNTERFACTUAL`]: ask [`LabelEntry::is_found`].
    pub origin: ErrorOrigin,
    /// Taxonomy version of the failure mode.
    pub taxonomy: String,
    /// The failure mode that an analyzer proposes, where the label was found by re-execution: that proves who and
    /// when, never what kind, so [`InjectedError::failure_mode`] is unknown there.
    pub proposed_mode: Option<FailureMode>,
    /// How far it is established that what was planted is its failure mode; `None` where nothing was planted, and in labels of
    /// earlier versions, which say what the plan declares.
    pub mode_claim: Option<ModeClaim>,
}

impl LabelEntry {
    /// A natural error at a step. `corrected`: blake3 of the reply that heals the run; `recorded`: that of the one that stands there.
    pub fn natural(
        agent: AgentName,
        instance: u32,
        step: StepIndex,
        call: Call,
        corrected: String,
        recorded: String,
        taxonomy: &str,
    ) -> Self {
        let error = InjectedError {
            injection: 0,
            agent,
            instance,
            failure_mode: None,
            side: Side::Response,
            operator: COUNTERFACTUAL.to_owned(),
            speaker: None,
            step,
            call,
            attempt: 0,
            before: corrected,
            after: recorded,
            delivered: true,
        };
        Self {
            error,
            origin: ErrorOrigin::Natural,
            taxonomy: taxonomy.to_owned(),
            proposed_mode: None,
            mode_claim: None,
        }
    }

    /// The same where the reply that stands at the step came from there: what an edit or a fork made is not its agent's own.
    #[must_use]
    pub fn replied_from(self, reply: ReplyOrigin) -> Self {
        let altered = matches!(reply, ReplyOrigin::AlteredAgain | ReplyOrigin::Replaced);
        let inherited = self.origin == ErrorOrigin::Natural && altered;
        Self { origin: if inherited { ErrorOrigin::Inherited } else { self.origin }, ..self }
    }

    /// What an error is that executions found, in words; `None` for one that was planted in the run itself.
    pub fn finding(&self) -> Option<&'static str> {
        match self.origin {
            ErrorOrigin::Inherited => Some("inherited error"),
            ErrorOrigin::Natural | ErrorOrigin::Planted => self.is_found().then_some("natural error"),
        }
    }

    /// Whether executions found the error: nothing was planted in the run itself.
    pub fn is_found(&self) -> bool {
        self.origin != ErrorOrigin::Planted || self.error.operator == COUNTERFACTUAL
    }
}

/// An entry as `label.json` has it.
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum WrittenEntry {
    Found(WrittenFound),
    Planted(WrittenPlanted),
}

#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
struct WrittenFound {
    origin: FoundOrigin,
    shown_by: String,
    agent: AgentName,
    instance: u32,
    side: Side,
    step: StepIndex,
    call: Call,
    corrected_bytes: String,
    recorded_bytes: String,
    taxonomy: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposed_mode: Option<FailureMode>,
}

#[derive(Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FoundOrigin {
    Natural,
    Inherited,
}

#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
struct WrittenPlanted {
    #[serde(flatten)]
    error: InjectedError,
    taxonomy: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposed_mode: Option<FailureMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode_claim: Option<ModeClaim>,
}

impl From<WrittenEntry> for LabelEntry {
    fn from(written: WrittenEntry) -> Self {
        match written {
            WrittenEntry::Planted(WrittenPlanted { error, taxonomy, proposed_mode, mode_claim }) => {
                Self { error, origin: ErrorOrigin::Planted, taxonomy, proposed_mode, mode_claim }
            }
            WrittenEntry::Found(one) => {
                let WrittenFound { agent, instance, step, call, corrected_bytes, recorded_bytes, taxonomy, .. } = one;
                let mut entry = Self::natural(agent, instance, step, call, corrected_bytes, recorded_bytes, &taxonomy);
                (entry.error.side, entry.error.operator) = (one.side, one.shown_by);
                if let FoundOrigin::Inherited = one.origin {
                    entry.origin = ErrorOrigin::Inherited;
                }
                Self { proposed_mode: one.proposed_mode, ..entry }
            }
        }
    }
}

impl From<LabelEntry> for WrittenEntry {
    fn from(entry: LabelEntry) -> Self {
        let LabelEntry { error, origin, taxonomy, proposed_mode, mode_claim } = entry;
        let origin = match origin {
            ErrorOrigin::Planted => {
                return WrittenEntry::Planted(WrittenPlanted { error, taxonomy, proposed_mode, mode_claim });
            }
            ErrorOrigin::Natural => FoundOrigin::Natural,
            ErrorOrigin::Inherited => FoundOrigin::Inherited,
        };
        WrittenEntry::Found(WrittenFound {
            origin,
            shown_by: error.operator,
            agent: error.agent,
            instance: error.instance,
            side: error.side,
            step: error.step,
            call: error.call,
            corrected_bytes: error.before,
            recorded_bytes: error.after,
            taxonomy,
            proposed_mode,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(written: &Value) -> LabelEntry {
        serde_json::from_value(written.clone()).expect("an entry")
    }

    #[test]
    fn a_natural_error_is_written_as_one_and_nothing_of_it_as_injected() {
        let agent = AgentName::parse("pricer").expect("a name");
        let entry = LabelEntry::natural(agent, 0, 2, 1, "c".to_owned(), "r".to_owned(), "mast-1");
        let written = serde_json::to_value(&entry).expect("serialises");
        assert_eq!(
            written,
            json!({"origin": "natural", "shown_by": "counterfactual", "agent": "pricer", "instance": 0, "side": "response",
                "step": 2, "call": 1, "corrected_bytes": "c", "recorded_bytes": "r", "taxonomy": "mast-1"})
        );
        assert_eq!(read(&written), entry);
        assert!(entry.is_found());
    }

    #[test]
    fn what_an_edit_made_is_not_called_natural() {
        let agent = AgentName::parse("pricer").expect("a name");
        for (reply, origin) in [
            (ReplyOrigin::Live, "natural"),
            (ReplyOrigin::Recorded, "natural"),
            (ReplyOrigin::AlteredAgain, "inherited"),
            (ReplyOrigin::Replaced, "inherited"),
        ] {
            let (corrected, recorded) = ("c".to_owned(), "r".to_owned());
            let entry = LabelEntry::natural(agent.clone(), 0, 2, 1, corrected, recorded, "mast-1");
            let entry = entry.replied_from(reply);
            let written = serde_json::to_value(&entry).expect("serialises");
            assert_eq!((&written["origin"], entry.is_found()), (&json!(origin), true), "{reply:?}");
            assert_eq!(read(&written), entry, "{reply:?}");
        }
    }

    #[test]
    fn entries_of_earlier_versions_are_read_and_written_as_they_were() {
        for (operator, natural) in [("counterfactual", true), ("corrupt_number", false)] {
            let written = json!({"injection": 0, "agent": "pricer", "instance": 0, "failure_mode": null, "side": "response",
                "operator": operator, "step": 2, "call": 1, "before_bytes": "b", "after_bytes": "a", "delivered": true,
                "taxonomy": "mast-1"});
            let entry = read(&written);
            assert_eq!(entry.is_found(), natural, "{operator}");
            assert_eq!(serde_json::to_value(&entry).expect("serialises"), written);
        }
    }
}
