//! Alignment with a run that passed: the first reply that differs though its agent was given the same words. Where every
//! differing reply was given other words too, the first of them.

use std::collections::BTreeMap;

use super::{
    Abstention, Dialogue, LoggedRun, LoggedTurn, Method, Needs, Pause, PredictedStep, View,
    aligned::{Seat, alike, folded_words, seats},
};

/// Compares with the passed run of the same task that is most like this one.
#[derive(Debug)]
pub(super) struct Alignment;

impl Method for Alignment {
    fn name(&self) -> &'static str {
        "alignment"
    }

    fn description(&self) -> &'static str {
        "the first reply that a passed run of the same task gave otherwise"
    }

    fn needs(&self) -> Needs {
        Needs::OtherRuns
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        _dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        let passed = view.others.iter().filter(|other| other.passed == Some(true) && !other.is_same_run(run));
        let Some(passed) = passed.max_by_key(|other| (alike(run, other), std::cmp::Reverse(other.id.clone()))) else {
            let why = "no other run of the same task passed".to_owned();
            return Err(Pause::Abstain(Abstention::Inapplicable(why)));
        };
        let theirs: BTreeMap<Seat<'_>, &LoggedTurn> = seats(passed).into_iter().collect();
        let mut differing: Vec<(bool, PredictedStep)> = Vec::new();
        for ((agent, call), turn) in seats(run) {
            let Some(other) = theirs.get(&(agent, call)) else {
                let why = format!("the passed run has no call {call} of {agent}");
                differing.push((false, PredictedStep::at(run, turn.step, why)));
                continue;
            };
            if folded_words(&turn.words_and_calls()) != folded_words(&other.words_and_calls()) {
                let (said, expected) = difference(&turn.words_and_calls(), &other.words_and_calls());
                let why = format!("said `{said}`, where a passed run said `{expected}`");
                let found = PredictedStep::at(run, turn.step, why).quoting(run, turn.step, &said);
                differing.push((
                    folded_words(&turn.given) == folded_words(&other.given),
                    PredictedStep { fix: expected, ..found },
                ));
            }
        }
        let own = differing.iter().position(|(same_given, _)| *same_given).unwrap_or(0);
        if differing.is_empty() {
            let why = "it says the same as a run that passed".to_owned();
            return Err(Pause::Abstain(Abstention::NothingFound(why)));
        }
        let first = differing.remove(own.min(differing.len() - 1));
        let ranked = std::iter::once(first).chain(differing).map(|(_, found)| found);
        Ok(ranked.take(5).zip([1.0, 0.5, 0.33, 0.25, 0.2]).map(|(found, score)| found.scored(score)).collect())
    }
}

/// The words in which two texts differ first, with some around them.
fn difference(ours: &str, theirs: &str) -> (String, String) {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (ours, theirs) = (words(ours), words(theirs));
    let same = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(3);
    let shown =
        |words: &[String]| words.get(from..).unwrap_or_default().iter().take(12).cloned().collect::<Vec<_>>().join(" ");
    (shown(&ours), shown(&theirs))
}
