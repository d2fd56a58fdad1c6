//! Runs of a few words for tests, and judges that say what a test wants.

use super::{Dialogue, JudgeQuestion, JudgeReply, LoggedRun, LoggedTurn, Method, Pause, PredictedStep, View};

/// A run whose turns say these words: by A, B, A, B, … in which each hears the one before.
pub(in crate::attribution) fn run(said: &[&str]) -> LoggedRun {
    let turn = |(step, said): (u32, &&str)| LoggedTurn {
        step,
        agent: if step % 2 == 0 { "A" } else { "B" }.to_owned(),
        speaker: if step % 2 == 0 { "A (thought)" } else { "B" }.to_owned(),
        reply: (*said).to_owned(),
        quoted: step.checked_sub(1).into_iter().collect(),
        ..LoggedTurn::default()
    };
    LoggedRun {
        id: "run-1".into(),
        problem: "How many?".into(),
        passed: Some(false),
        turns: (0..).zip(said).map(turn).collect(),
        ..LoggedRun::default()
    }
}

/// A view of nothing but the run.
pub(super) const VIEW: View<'static> = View { compat: false, longest_log: 100_000, others: &[], ranker: None };

/// Drives a method with these answers, in order: what it came to, and what it asked.
pub(super) fn driven(
    method: &dyn Method,
    run: &LoggedRun,
    view: View<'_>,
    answers: &[&str],
) -> (Result<Vec<PredictedStep>, Pause>, Vec<JudgeQuestion>) {
    let mut said = Vec::new();
    let mut asked = Vec::new();
    let mut answers = answers.iter();
    loop {
        match method.attribute(run, view, &mut Dialogue::new(&said)) {
            Err(Pause::Ask(question)) => {
                asked.push((*question).clone());
                match answers.next() {
                    Some(answer) => said.push(JudgeReply::Words((*answer).to_owned())),
                    None => return (Err(Pause::Ask(question)), asked),
                }
            }
            done => return (done, asked),
        }
    }
}
