//! Somebody's guess at who failed, where and how.

use serde::Serialize;

use super::names::agent_key;

/// One line or block of a prediction file.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Prediction {
    /// Which run it is about.
    pub id: String,
    /// Where it stands in the file, 1-based.
    pub line: usize,
    /// What was answered.
    pub answer: PredictedAnswer,
}

/// What a prediction says, or why it could not be read. An unread answer is counted apart from a wrong one.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PredictedAnswer {
    /// Culprits that are all meant. An empty set says that nobody failed.
    Set(Vec<Guess>),
    /// Alternatives, the most likely first; only the first counts where one answer is asked for.
    Ranked(Vec<Guess>),
    /// No answer could be found in the text, and why.
    Unparsed(String),
}

/// One guessed culprit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Guess {
    /// The agent as written.
    pub agent: Option<String>,
    /// The step as written, in the file's own base; negative ones never match.
    pub step: Option<i64>,
    /// The failure mode as written.
    pub mode: Option<String>,
}

impl Guess {
    /// Whether it says anything at all.
    pub fn is_empty(&self) -> bool {
        self.agent.is_none() && self.step.is_none() && self.mode.is_none()
    }
}

impl PredictedAnswer {
    /// The answer as one about agents: what it says of these tools and peers is left out.
    #[must_use]
    pub fn of_agents(self, servers: &[String]) -> Self {
        let keys: Vec<String> = servers.iter().map(|name| agent_key(name)).collect();
        let kept = |guesses: Vec<Guess>| {
            let is_agent =
                |guess: &Guess| !guess.agent.as_deref().is_some_and(|agent| keys.contains(&agent_key(agent)));
            guesses.into_iter().filter(is_agent).collect()
        };
        match self {
            Self::Set(guesses) => Self::Set(kept(guesses)),
            Self::Ranked(guesses) => Self::Ranked(kept(guesses)),
            unparsed @ Self::Unparsed(_) => unparsed,
        }
    }

    /// The guesses, the first one first; none if the answer was not read.
    pub fn guesses(&self) -> &[Guess] {
        match self {
            PredictedAnswer::Set(guesses) | PredictedAnswer::Ranked(guesses) => guesses,
            PredictedAnswer::Unparsed(_) => &[],
        }
    }

    /// What is claimed as true: the whole set, or the first of the ranked.
    pub fn claimed(&self) -> &[Guess] {
        match self {
            PredictedAnswer::Set(guesses) => guesses,
            PredictedAnswer::Ranked(guesses) => guesses.get(..1).unwrap_or_default(),
            PredictedAnswer::Unparsed(_) => &[],
        }
    }
}
