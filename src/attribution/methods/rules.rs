//! Rules over the log, without a model: what they see is quoted, and the weightiest sign is blamed. Nobody has measured how
//! often they are right on a system of yours; a method that does not beat them has found nothing.

use super::{Abstention, Dialogue, LoggedRun, Method, Needs, Pause, PredictedStep, View, signs::signs};

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
            let at = PredictedStep::at(run, sign.step, format!("{}: {}", sign.rule, sign.why)).scored(sign.weight);
            PredictedStep { failure_mode: sign.mode.map(str::to_owned), ..at.quoting(run, sign.step, &sign.quote) }
        };
        Ok(found.into_iter().take(NAMED).map(predicted).collect())
    }
}
