//! Rules over the log, without a model: what they see is quoted, and the weightiest sign is blamed. Nobody has measured how
//! often they are right on a system of yours; a method that does not beat them has found nothing.

use super::{Abstention, Dialogue, LoggedRun, Method, Needs, Pause, PredictedStep, View, signs::signs};
use crate::score::{agent_key, is_agent};

/// Most predictions.
const NAMED: usize = 5;

/// Signs of trouble, the weightiest first.
#[derive(Debug)]
pub(super) struct LogRules;

impl Method for LogRules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn about(&self) -> &'static str {
        "signs in the log: no answer, cut, refused, repeated, a wrong calculation, a number from nowhere"
    }

    fn needs(&self) -> Needs {
        Needs::Log
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        _view: View<'_>,
        _dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        let mut found = signs(run);
        // Stable: of equal weights the earlier step first.
        found.sort_by_key(|sign| sign.step);
        found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        if found.is_empty() {
            return Err(Pause::Abstain(Abstention::NothingFound("no rule sees anything".to_owned())));
        }
        let predicted = |sign: super::signs::Sign| {
            let at = blamed(run, sign.step)?;
            let at = PredictedStep::at(run, at, format!("{}: {}", sign.rule, sign.why)).scored(sign.weight);
            Some(PredictedStep {
                failure_mode: sign.mode.map(str::to_owned),
                ..at.quoting(run, sign.step, &sign.quote)
            })
        };
        let mut predictions: Vec<PredictedStep> = Vec::new();
        for found in found.into_iter().filter_map(predicted) {
            if predictions.len() < NAMED && predictions.iter().all(|known| known.step != found.step) {
                predictions.push(found);
            }
        }
        if predictions.is_empty() {
            let why = "what the rules see was said by nobody who can be blamed".to_owned();
            return Err(Pause::Abstain(Abstention::NothingFound(why)));
        }
        Ok(predictions)
    }
}

/// Where a sign points: people and executors of code are nobody to blame, so what shows at their turn was made at the last turn
/// of an agent before it.
fn blamed(run: &LoggedRun, step: u32) -> Option<u32> {
    let earlier = run.turns.iter().rev().filter(|turn| turn.step <= step);
    earlier.map(|turn| (turn, agent_key(&turn.agent))).find(|(_, key)| is_agent(key)).map(|(turn, _)| turn.step)
}
