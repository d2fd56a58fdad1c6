//! Why executions are no draws of their own: then what they came to is no evidence, however often it is the same.

use serde::{Deserialize, Serialize};

use super::AgentName;

/// What was seen of the executions of a claim that makes them depend on each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dependence {
    /// Two executions that asked otherwise got one reply, by its id, of an upstream that names each reply otherwise.
    SameReply(String),
    /// The run that all begin like asked this agent's model, and none of the executions did.
    #[serde(rename = "never_asked")]
    AgentNotCalled(AgentName),
    /// The outcomes of the arm without the treatment follow the order in which it was executed.
    #[serde(rename = "null_trend")]
    ControlTrend,
    /// The same of the arm with it.
    TreatedTrend,
    /// The outcomes of the arm without the treatment alternate.
    #[serde(rename = "null_rhythm")]
    ControlRhythm,
    /// The same of the arm with it.
    TreatedRhythm,
}

impl Dependence {
    /// In words: what was seen, what it means, what to do.
    pub fn words(&self) -> String {
        let state = "what one run leaves decides a later one (a memory, a file, a table), or the model changes with time: give each \
                     run a place of its own (`{scratch}`), and turn off what is remembered";
        let seen = match self {
            Self::SameReply(id) => {
                return format!(
                    "two executions asked otherwise and got the very same reply (`{id}`): a cache stands before the model, and what it kept once \
                     decides all of them; turn it off"
                );
            }
            Self::AgentNotCalled(agent) => {
                return format!(
                    "the clean run asked for `{agent}`, and no execution of either arm did: the program keeps replies (a cache on \
                     disk?); turn that off, or give each run a place of its own (`{{scratch}}`)"
                );
            }
            Self::ControlTrend => "outcomes without the injection follow the order of the runs",
            Self::TreatedTrend => "outcomes with the injection follow the order of the runs",
            Self::ControlRhythm => "outcomes without the injection alternate from run to run",
            Self::TreatedRhythm => "outcomes with the injection alternate from run to run",
        };
        format!("{seen}: {state}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_with_what_to_do_and_read_back() {
        let agent = AgentName::parse("solver").expect("a name");
        for (dependence, words) in [
            (Dependence::SameReply("chatcmpl-1".to_owned()), "`chatcmpl-1`"),
            (Dependence::AgentNotCalled(agent), "`solver`"),
            (Dependence::ControlTrend, "without the injection follow"),
            (Dependence::TreatedTrend, "with the injection follow"),
            (Dependence::ControlRhythm, "without the injection alternate"),
            (Dependence::TreatedRhythm, "with the injection alternate"),
        ] {
            let told = dependence.words();
            assert!(told.contains(words) && (told.contains("turn ") || told.contains("say ")), "{told}");
            let text = serde_json::to_string(&dependence).expect("serialises");
            assert_eq!(serde_json::from_str::<Dependence>(&text).expect("reads back"), dependence, "{text}");
        }
    }
}
