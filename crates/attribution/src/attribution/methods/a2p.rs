//! Abduct, act, predict (A2P, arXiv 2509.10401): the judge goes through cause, correction and consequence before it names
//! a step, all in one question.

use super::{
    Dialogue, LoggedRun, Method, Pause, PredictedStep, View, predicted,
    prompt::{LogPrompt, form},
};

const ASKED: &str = "Go through the following before you answer, in a few sentences each.\n\
    1. Abduct: which steps could the failure come from, and which hidden cause at each (a wrong assumption, a missing or \
    misread fact, a bad plan, a wrong calculation, an instruction not followed) would explain what the later steps say?\n\
    2. Act: for each of them, what is the smallest correction of that step alone?\n\
    3. Predict: with that correction, what would the next three to five steps say, and would the run have succeeded?\n\
    The decisive error is the earliest step whose correction, by your prediction, would have led to success.";

/// One question in three moves.
#[derive(Debug)]
pub(super) struct A2p;

impl Method for A2p {
    fn name(&self) -> &'static str {
        "a2p"
    }

    fn description(&self) -> &'static str {
        "one question: abduct the cause, act on it, predict what follows (A2P)"
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        // The moves are written out before the answer: a schema would leave no room for them.
        let asked =
            || LogPrompt { schema: None, ..LogPrompt::about_whole_log(run, format!("{ASKED}\n\nThen: {}", form())) };
        dialogue.ask(|| asked().question(view), |words| predicted::culprit(run, words)).map(|found| vec![found])
    }
}
