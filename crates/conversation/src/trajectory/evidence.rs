//! What a verified label rests on, in numbers.

use serde::{Deserialize, Serialize};

use super::{Executed, Necessity, Need, RunId, StepIndex, Tally};

/// The runs that a label rests on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Evidence {
    /// What was executed for the claim; `None` in labels that were written under the former rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executed: Option<Executed>,
    /// Of a step found by re-execution: where the reply that heals the run came from (`twin`, `file`, `analyzer`, `redraw`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Of such a step: those that are cleared, because executions of their corrections exclude an effect, or because a run that
    /// succeeded, asked the same, said the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cleared: Vec<StepIndex>,
    /// Where several injections were delivered, or one to several agents: which of these the failure needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub necessity: Vec<Necessity>,
    /// Of such a plan: each of them is shown to be not needed, any of several suffices.
    #[serde(skip_serializing_if = "is_false")]
    pub overdetermined: bool,
    /// Of such a plan: several contribute, and none is shown to be necessary by itself.
    #[serde(skip_serializing_if = "is_false")]
    pub joint: bool,
    /// What counted as equal in its executions beyond what the run says (`equality` of `run.json`): they differed from the record in
    /// that alone. In words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts_as_equal: Vec<String>,
    /// Clean runs of the task.
    pub clean: Tally,
    /// The former rule: runs with the same prefix and no injection.
    #[serde(skip_serializing_if = "Tally::is_empty")]
    pub controls: Tally,
    /// The clean run that gave the prefix: the failure's twin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin: Option<RunId>,
    /// The step at which the run left the twin's record, 0-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_step: Option<StepIndex>,
    /// The former rule: of a plan with several injections, the indices without which one run succeeded again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needed: Vec<u32>,
    /// The former rule: of a step found by re-execution, runs that took it as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "null")]
    pub control: Option<Tally>,
    /// The former rule: the same with the step corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub treated: Option<Tally>,
}

impl Evidence {
    /// The e-value of the label as a whole: a label that says which injections are necessary is no surer than the least
    /// sure of those. `None` where the system repeats itself, and under the former rule.
    pub fn e(&self) -> Option<f64> {
        let whole = self.executed.as_ref()?.e?;
        let necessary =
            self.necessity.iter().filter(|one| one.state == Need::Necessary).filter_map(|one| one.executed.e);
        Some(necessary.fold(whole, f64::min))
    }

    /// Whether the label was written before claims were made from pairs of executions.
    pub fn is_of_former_rule(&self) -> bool {
        self.executed.is_none()
    }

    /// Whether each of its executions got neutral changes of its own.
    pub fn is_perturbed(&self) -> bool {
        self.executed.as_ref().is_some_and(|executed| executed.perturbed)
    }

    /// Whether it stands because the system repeats itself.
    pub fn is_repeatable(&self) -> bool {
        self.executed.as_ref().is_some_and(|executed| executed.repeatable)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn necessity(injection: u32, state: Need, e: Option<f64>) -> Necessity {
        let agent = crate::trajectory::AgentName::parse("a").expect("a name");
        let executed = Executed { e, ..Executed::default() };
        Necessity { injection, agent, instance: 0, state, executed, exclusion: None }
    }

    #[test]
    fn a_label_is_no_surer_than_the_least_sure_of_what_it_needs() {
        let of = |e| Some(Executed { e, repeatable: e.is_none(), ..Executed::default() });
        let (needs, needs_not) = (|e| necessity(0, Need::Necessary, e), |e| necessity(1, Need::NotNeeded, e));
        for (executed, necessity, e) in [
            (None, vec![needs(Some(3.0))], None),
            (of(None), vec![needs(Some(3.0))], None),
            (of(Some(1500.0)), vec![], Some(1500.0)),
            (of(Some(1500.0)), vec![needs(Some(1200.0)), needs(Some(4000.0)), needs(None)], Some(1200.0)),
            (of(Some(1500.0)), vec![needs_not(Some(0.1))], Some(1500.0)),
        ] {
            let (former, repeatable) = (executed.is_none(), executed == of(None));
            let evidence = Evidence { executed, necessity, ..Evidence::default() };
            let found = (evidence.e(), evidence.is_of_former_rule(), evidence.is_repeatable());
            assert_eq!(found, (e, former, repeatable), "{evidence:?}");
        }
    }

    #[test]
    fn what_is_usual_is_not_written() {
        let keys = |value: serde_json::Value| -> Vec<String> {
            value.as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect()
        };
        let usual = Executed::default();
        assert_eq!(keys(serde_json::to_value(&usual).expect("serialises")), ["null", "treated"]);
        let other = Executed { pairs: 1, repeatable: true, ..usual };
        assert_eq!(keys(serde_json::to_value(&other).expect("serialises")), ["null", "treated", "pairs", "repeatable"]);
        let evidence = Evidence::default();
        assert_eq!(keys(serde_json::to_value(&evidence).expect("serialises")), ["clean"]);
        let evidence = Evidence { overdetermined: true, controls: Tally::new(0, 1), ..evidence };
        assert_eq!(keys(serde_json::to_value(&evidence).expect("serialises")), ["overdetermined", "clean", "controls"]);
    }
}
