//! The whole log in one question (Who&When, arXiv 2505.00212): who, at which step, why.

use super::{
    Dialogue, JudgeQuestion, LoggedRun, Method, MethodAnswer, Pause, PredictedStep, View, predicted,
    prompt::{LogPrompt, form},
    whowhen,
};

/// One question about the whole log. Ours numbers the steps, which the public prompt does not.
#[derive(Debug)]
pub(super) struct AllAtOnce;

impl Method for AllAtOnce {
    fn name(&self) -> &'static str {
        "all-at-once"
    }

    fn description(&self) -> &'static str {
        "one question about the whole log (Who&When)"
    }

    fn is_public(&self) -> bool {
        true
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        single_answer(run, view, dialogue).map(|found| vec![found])
    }

    fn answer(&self, run: &LoggedRun, view: View<'_>, dialogue: &mut Dialogue<'_>) -> Result<MethodAnswer, Pause> {
        if view.compat {
            return self.attribute(run, view, dialogue).map(MethodAnswer::Ranked);
        }
        dialogue.ask(|| question(run, view), |words| predicted::culprits(run, words))
    }
}

/// The one answer.
pub(super) fn single_answer(
    run: &LoggedRun,
    view: View<'_>,
    dialogue: &mut Dialogue<'_>,
) -> Result<PredictedStep, Pause> {
    if view.compat {
        return whowhen::all_at_once(run, dialogue);
    }
    dialogue.ask(|| question(run, view), |words| predicted::culprit(run, words))
}

fn question(run: &LoggedRun, view: View<'_>) -> JudgeQuestion {
    let asked = format!(
        "Which agent made the decisive error, and at which step? If no error is obvious, name the likeliest.\n{}",
        form()
    );
    LogPrompt::about_whole_log(run, asked).question(view)
}
