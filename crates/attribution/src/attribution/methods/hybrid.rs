//! All at once for the agent, then step by step among its steps: the composition of the Who&When paper, section 5.

use super::{Abstention, Dialogue, LoggedRun, Method, Pause, PredictedStep, View, all_at_once, step_by_step};

/// The agent by one question, the step by some.
#[derive(Debug)]
pub(super) struct Hybrid;

impl Method for Hybrid {
    fn name(&self) -> &'static str {
        "hybrid"
    }

    fn description(&self) -> &'static str {
        "the agent all at once, then its steps one by one (Who&When)"
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
        let first = all_at_once::single_answer(run, view, dialogue)?;
        let Some(agent) = first.agent.as_deref().and_then(|agent| run.agent(agent)) else {
            let why = format!("nobody called `{}` speaks", first.agent.unwrap_or_default());
            return Err(Pause::Abstain(Abstention::NothingFound(why)));
        };
        match step_by_step::scan(run, view, dialogue, |turn| turn.agent == agent) {
            // The agent stands, though none of its steps was found to be wrong.
            Err(Pause::Abstain(Abstention::NothingFound(why))) => {
                let reason = format!("{} ({why} among its own)", first.reason);
                Ok(vec![PredictedStep { agent: Some(agent.to_owned()), reason, ..PredictedStep::default() }])
            }
            found => found.map(|found| vec![found]),
        }
    }
}
