//! Which of several planted errors a failure needs, as a label keeps it.

use serde::{Deserialize, Serialize};

use super::{AgentName, Executed, InjectedError, Need};

/// What speaks against an effect of one error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EffectExcluded {
    /// The size from which on an effect counts, as a difference of chances to pass.
    pub effect: f64,
    /// The e-value against an effect of that size or more.
    pub e: f64,
    /// The e-value that excludes one; what speaks for an effect with as much is not shown, but counts as a contribution.
    pub target: f64,
}

/// Of a plan that hit several agents or has several injections: whether the failure needs what one injection did to one
/// agent, by runs without it and runs with all, made in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "NecessityInFile")]
pub struct Necessity {
    /// The injection, by its index in the plan.
    pub injection: u32,
    /// The agent that it was delivered to: one injection may hit several.
    pub agent: AgentName,
    /// The agent's instance, 0-based.
    pub instance: u32,
    /// What the runs show.
    pub state: Need,
    /// The runs: *null* without this injection, *treated* with all.
    pub executed: Executed,
    /// What they say against an effect; `None` where the system repeats itself, and in labels of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclusion: Option<EffectExcluded>,
}

/// The same as files have it. Earlier versions wrote `necessary`, true or false; of what is false they had shown nothing, until
/// `proof` reads it off the runs.
#[derive(Deserialize, schemars::JsonSchema)]
struct NecessityInFile {
    injection: u32,
    agent: AgentName,
    instance: u32,
    state: Option<Need>,
    #[serde(default)]
    necessary: bool,
    executed: Executed,
    exclusion: Option<EffectExcluded>,
}

impl From<NecessityInFile> for Necessity {
    fn from(file: NecessityInFile) -> Self {
        let NecessityInFile { injection, agent, instance, state, necessary, executed, exclusion } = file;
        let state = state.unwrap_or(if necessary { Need::Necessary } else { Need::NotShown });
        Self { injection, agent, instance, state, executed, exclusion }
    }
}

impl Necessity {
    /// Whether it is about an error.
    pub fn is_about(&self, error: &InjectedError) -> bool {
        self.injection == error.injection && self.agent == error.agent && self.instance == error.instance
    }

    /// Whether the runs speak for an effect, though they do not show the error to be necessary: with as much as would have to
    /// speak against one.
    fn contributes(&self) -> bool {
        let spoken = self.executed.e.zip(self.exclusion);
        self.state == Need::NotShown && spoken.is_some_and(|(e, exclusion)| e >= exclusion.target)
    }
}

/// What several planted errors are to a failure, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JointCause {
    /// One of them at least is necessary.
    Necessary,
    /// Each is shown to be not needed: without any one of them the others still do it.
    Overdetermined,
    /// None is shown to be necessary; each that is not excluded contributes, and there are several of these.
    Joint,
    /// Which of them it takes is not shown.
    NotShown,
}

impl JointCause {
    /// What several errors are to a failure, by what is known of each; `None` where nothing is.
    pub fn from_necessities(necessity: &[Necessity]) -> Option<Self> {
        let is = |state| move |one: &&Necessity| one.state == state;
        let open = necessity.iter().filter(is(Need::NotShown));
        if necessity.is_empty() {
            None
        } else if necessity.iter().any(|one| one.state == Need::Necessary) {
            Some(JointCause::Necessary)
        } else if open.clone().count() == 0 {
            Some(JointCause::Overdetermined)
        } else if open.clone().count() > 1 && open.clone().all(Necessity::contributes) {
            Some(JointCause::Joint)
        } else {
            Some(JointCause::NotShown)
        }
    }

    /// A sentence of what that means; `None` where the errors' own states say it.
    pub fn sentence(self) -> Option<&'static str> {
        match self {
            JointCause::Necessary => None,
            JointCause::Overdetermined => {
                Some("overdetermined: without any one of them the run still fails, any of several is enough")
            }
            JointCause::Joint => {
                Some("joint: each of several contributes, and none is shown to be necessary by itself")
            }
            JointCause::NotShown => Some("together they made the run fail; which of them it takes is not shown"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One error by its state and what speaks for it and against it.
    pub(in crate::trajectory) fn one(injection: u32, state: Need, e: f64) -> Necessity {
        let agent = AgentName::parse("solver").expect("a name");
        let executed = Executed { e: Some(e), ..Executed::default() };
        let exclusion = Some(EffectExcluded { effect: 0.25, e: 1.0, target: 40.0 });
        Necessity { injection, agent, instance: 0, state, executed, exclusion }
    }

    #[test]
    fn what_earlier_versions_wrote_is_read() {
        let executed = serde_json::json!({"null": {"passed": 0, "failed": 3}, "treated": {"passed": 0, "failed": 3}});
        for (member, state) in [
            (serde_json::json!({"necessary": true}), Need::Necessary),
            (serde_json::json!({"necessary": false}), Need::NotShown),
            (serde_json::json!({"state": "necessary"}), Need::Necessary),
            (serde_json::json!({"state": "not_needed"}), Need::NotNeeded),
            (serde_json::json!({"state": "not_shown"}), Need::NotShown),
        ] {
            let mut file = serde_json::json!({"injection": 1, "agent": "a", "instance": 0, "executed": executed});
            for (name, value) in member.as_object().expect("an object") {
                file[name] = value.clone();
            }
            let read: Necessity = serde_json::from_value(file).expect("it reads");
            assert_eq!((read.state, read.exclusion), (state, None), "{member}");
            let again: Necessity = serde_json::from_value(serde_json::to_value(&read).expect("written")).expect("read");
            assert_eq!(again, read);
        }
    }

    #[test]
    fn it_is_about_the_error_of_one_injection_in_one_agent() {
        let error: InjectedError = serde_json::from_value(serde_json::json!({
            "injection": 1, "agent": "solver", "instance": 2, "failure_mode": "FM-1.1", "side": "response",
            "operator": "end_early", "step": 0, "call": 0, "before_bytes": "", "after_bytes": "", "delivered": true,
        }))
        .expect("an error");
        for (injection, agent, instance, about) in
            [(1, "solver", 2, true), (0, "solver", 2, false), (1, "critic", 2, false), (1, "solver", 0, false)]
        {
            let agent = AgentName::parse(agent).expect("a name");
            let other = Necessity { injection, agent, instance, ..one(0, Need::NotNeeded, 1.0) };
            assert_eq!(other.is_about(&error), about, "{other:?}");
        }
    }
}
