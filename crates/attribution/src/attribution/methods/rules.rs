//! Rules over the log, without a model: what they see is quoted, and the weightiest sign is blamed. Nobody has measured how
//! often they are right on a system of yours; a method that does not beat them has found nothing.

use std::sync::Arc;

use super::{Abstention, Dialogue, LoggedCall, LoggedRun, LoggedTurn, Method, Needs, Pause, PredictedStep, View};
use crate::{
    score::{agent_key, is_agent},
    trajectory::WatchSign,
    watch::{self, WatchSettings, WatchedCall, WatchedStep, Watching},
};

/// Most predictions.
const NAMED: usize = 5;

/// Signs of trouble, the weightiest first.
#[derive(Debug)]
pub(super) struct LogRules;

impl Method for LogRules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn description(&self) -> &'static str {
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
        let mut found = weighed_signs(run);
        // Stable: of equal weights the earlier step first.
        found.sort_by_key(|(sign, _)| sign.step);
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        if found.is_empty() {
            return Err(Pause::Abstain(Abstention::NothingFound("no rule sees anything".to_owned())));
        }
        let predicted = |(sign, weight): (WatchSign, f64)| {
            let at = blamed(run, sign.step)?;
            let at = PredictedStep::at(run, at, format!("{}: {}", sign.rule, sign.seen)).scored(weight);
            Some(PredictedStep {
                failure_mode: sign.failure_mode.map(|mode| mode.code().to_owned()),
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

/// What the rules of [`watch`] see in a log, as far as a log says what they need to know.
fn signs(run: &LoggedRun) -> Vec<WatchSign> {
    let mut watching = Watching::new(Arc::new(WatchSettings::every()));
    watching.knows(&run.problem);
    run.turns.iter().flat_map(|turn| watching.see(watched(turn))).collect()
}

/// The same, each with the weight of its rule.
pub(super) fn weighed_signs(run: &LoggedRun) -> Vec<(WatchSign, f64)> {
    signs(run).into_iter().map(weighed).collect()
}

fn watched(turn: &LoggedTurn) -> WatchedStep {
    let call = |call: &LoggedCall| WatchedCall {
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        ..WatchedCall::default()
    };
    WatchedStep {
        step: turn.step,
        agent: turn.agent.clone(),
        given: turn.given.clone(),
        reply: turn.reply.clone(),
        calls: turn.calls.iter().map(call).collect(),
        finish: turn.finish.clone(),
        status: turn.status,
        ..WatchedStep::default()
    }
}

/// A sign with the weight of its rule.
fn weighed(sign: WatchSign) -> (WatchSign, f64) {
    let weight = watch::rule(&sign.rule).map_or(0.0, |rule| rule.weight);
    (sign, weight)
}

/// Where a sign points: people and executors of code are nobody to blame, so what shows at their turn was made at the last turn
/// of an agent before it.
fn blamed(run: &LoggedRun, step: u32) -> Option<u32> {
    let earlier = run.turns.iter().rev().filter(|turn| turn.step <= step);
    earlier.map(|turn| (turn, agent_key(&turn.agent))).find(|(_, key)| is_agent(key)).map(|(turn, _)| turn.step)
}
