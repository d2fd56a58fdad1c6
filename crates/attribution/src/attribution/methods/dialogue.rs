//! Questions and answers, replayed from the beginning each time: the same answers lead to the same next question.

use serde_json::Value;

use super::Cuts;

/// What is to be asked of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeQuestion {
    /// The system message; none where it is empty.
    pub system: String,
    /// The user message.
    pub user: String,
    /// Schema of the answer, where one is asked for.
    pub schema: Option<Value>,
    /// The function that is to be called with the answer, as chat templates take it, where one is.
    pub tool: Option<Value>,
    /// Longest answer, in tokens.
    pub longest_answer: u64,
    /// What was cut from the log to make it fit.
    pub cuts: Cuts,
    /// An answer that makes the dialogue as long as it can get: what a dry run answers.
    pub longest_way: String,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgeReply {
    /// These words.
    Words(String),
    /// None, and why.
    Nothing(Abstention),
}

/// Why there is no prediction.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(tag = "why", content = "said", rename_all = "snake_case")]
pub enum Abstention {
    /// The model said something in which no answer was found, twice; its last words.
    Unreadable(String),
    /// The model would not answer.
    Refused(String),
    /// The model took too long.
    TimedOut(String),
    /// Nobody answered.
    Unanswered(String),
    /// The budget was spent.
    Budget(String),
    /// The method saw no error.
    NothingFound(String),
    /// The method cannot say anything about this run.
    Inapplicable(String),
}

impl Abstention {
    /// Its kind, in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Refused(_) => "refused",
            Self::TimedOut(_) => "timed out",
            Self::Unanswered(_) => "unanswered",
            Self::Budget(_) => "budget",
            Self::NothingFound(_) => "nothing found",
            Self::Inapplicable(_) => "inapplicable",
        }
    }

    /// What was said.
    pub fn reason(&self) -> &str {
        match self {
            Self::Unreadable(said)
            | Self::Refused(said)
            | Self::TimedOut(said)
            | Self::Unanswered(said)
            | Self::Budget(said)
            | Self::NothingFound(said)
            | Self::Inapplicable(said) => said,
        }
    }
}

/// Why a method does not end with a prediction now.
#[derive(Debug, Clone, PartialEq)]
pub enum Pause {
    /// It wants to know this first.
    Ask(Box<JudgeQuestion>),
    /// It has none.
    Abstain(Abstention),
}

/// The answers so far, and how far a method has come in them.
#[derive(Debug)]
pub struct Dialogue<'a> {
    answers: &'a [JudgeReply],
    at: usize,
}

impl<'a> Dialogue<'a> {
    /// A dialogue that has these answers.
    pub fn new(answers: &'a [JudgeReply]) -> Self {
        Self { answers, at: 0 }
    }

    /// The next answer, whatever became of it.
    ///
    /// # Errors
    /// [`Pause::Ask`] where it is not there yet.
    pub fn next_reply(&mut self, question: impl FnOnce() -> JudgeQuestion) -> Result<&'a JudgeReply, Pause> {
        let Some(said) = self.answers.get(self.at) else { return Err(Pause::Ask(Box::new(question()))) };
        self.at += 1;
        Ok(said)
    }

    /// The next answer as it is read. One that cannot be read is asked for once more, with the reason.
    ///
    /// # Errors
    /// [`Pause`]: it is not there yet, or there is none that can be read.
    pub fn ask<T>(
        &mut self,
        question: impl Fn() -> JudgeQuestion,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Pause> {
        let words = |said: &'a JudgeReply| match said {
            JudgeReply::Words(words) => Ok(words.as_str()),
            JudgeReply::Nothing(why) => Err(Pause::Abstain(why.clone())),
        };
        let first = words(self.next_reply(&question)?)?;
        let why = match read(first) {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        let again = || {
            let question = question();
            let user = format!(
                "{}\n\nYour last answer could not be read: {why}. Answer again, in the form that was asked for and with \
                 nothing around it.",
                question.user
            );
            JudgeQuestion { user, ..question }
        };
        let second = words(self.next_reply(again)?)?;
        read(second).map_err(|why| {
            let said: String = second.chars().take(200).collect();
            Pause::Abstain(Abstention::Unreadable(format!("{why}: {said}")))
        })
    }
}
