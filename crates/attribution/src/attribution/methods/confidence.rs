//! Confidence: the step at whose reply the model was least sure of its words, by the mean of minus the logarithm of its tokens'
//! probabilities (the half of `MASPrism`, arXiv 2605.07509, that is on the wire; attention is not). An unsure model need not be
//! wrong, and one that errs is often sure.

use super::{Abstention, Dialogue, LoggedRun, Method, Needs, Pause, PredictedStep, View};

/// Most predictions.
const NAMED: usize = 5;

/// Ranks steps by the doubt of their tokens.
#[derive(Debug)]
pub(super) struct Confidence;

impl Method for Confidence {
    fn name(&self) -> &'static str {
        "confidence"
    }

    fn description(&self) -> &'static str {
        "the reply of whose tokens the model was least sure; the run must be recorded with --ask-logprobs"
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
        let known: Vec<_> = run.turns.iter().filter_map(|turn| Some((turn, turn.doubt?))).collect();
        if known.is_empty() {
            let why = "the recording holds no log-probabilities: `aegis run --ask-logprobs` asks the upstream for them, where it \
                       gives any"
                .to_owned();
            return Err(Pause::Abstain(Abstention::Inapplicable(why)));
        }
        let of = (known.len(), run.turns.len());
        let mut ranked = known;
        // Stable: of equals the earlier step stays first.
        ranked.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
        let said = ranked.into_iter().take(NAMED).map(|(turn, doubt)| {
            let why = format!(
                "its {} tokens have {:.3} nats of doubt in the mean, {:.2} at most; {} of {} steps say how sure they are",
                doubt.tokens, doubt.mean, doubt.highest, of.0, of.1
            );
            let start = turn.words_and_calls().split_whitespace().take(16).collect::<Vec<_>>().join(" ");
            PredictedStep::at(run, turn.step, why).scored(doubt.mean).quoting(run, turn.step, &start)
        });
        Ok(said.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::methods::testing::{VIEW, driven, run},
        trajectory::TokenDoubt,
    };

    #[test]
    fn the_step_of_most_doubt_is_first_and_a_recording_without_any_says_so() {
        let mut run = run(&["a", "b", "c"]);
        let (none, _) = driven(&Confidence, &run, VIEW, &[]);
        assert!(
            matches!(&none, Err(Pause::Abstain(Abstention::Inapplicable(why))) if why.contains("--ask-logprobs")),
            "{none:?}"
        );
        for (step, logprobs) in [(0, [-0.1, -0.3]), (2, [-0.5, -2.5])] {
            run.turns[step].doubt = TokenDoubt::from_logprobs(&logprobs);
        }
        let found = driven(&Confidence, &run, VIEW, &[]).0.expect("a ranking");
        assert_eq!(found.iter().map(|found| found.step).collect::<Vec<_>>(), [Some(2), Some(0)]);
        assert_eq!((found[0].score, found[0].agent.as_deref()), (Some(1.5), Some("A")));
        assert!(found[0].reason.contains("2 of 3 steps"), "{}", found[0].reason);
    }
}
