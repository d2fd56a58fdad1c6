//! The manipulator's model: one client for all runs, with a deadline and a budget.
//!
//! Manipulators are pure and only say what they want to know; this is where it is asked. The model has an upstream of
//! its own, so that no manipulator's call is a step of any run.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use super::{
    model::{self, ModelAnswer, Unanswered},
    negotiating::NegotiatingUpstream,
    upstream::Upstream,
};
use crate::{
    budget::{Budget, Cost, Exhausted, Ledger, Price},
    manipulator::{Question, Templates},
    surface::{OpenaiChat, ParameterSettings, RequiredFormat, Surface, door},
    trajectory::Usage,
};

/// How the manipulator's model is asked.
#[derive(Debug, Clone)]
pub struct AskingSettings {
    /// The model's name.
    pub model: String,
    /// Its temperature; `None` leaves it to the backend.
    pub temperature: Option<f64>,
    /// Parameters that the user sets by hand.
    pub parameters: ParameterSettings,
    /// How answers are asked to be JSON.
    pub answers: AnswerFormat,
    /// Longest wait for all answers of one edit. A client that announces its patience shortens it.
    pub deadline: Duration,
    /// What may be spent in all.
    pub budget: Budget,
    /// What tokens cost.
    pub price: Price,
    /// Templates that take the place of shipped ones.
    pub templates: Option<Templates>,
    /// How often a held stream shows its client that it is alive.
    pub keep_alive: Duration,
}

impl Default for AskingSettings {
    fn default() -> Self {
        Self {
            model: "gpt-4o-mini".to_owned(),
            temperature: Some(0.7),
            parameters: ParameterSettings::default(),
            answers: AnswerFormat::default(),
            deadline: Duration::from_secs(20),
            budget: Budget::default(),
            price: Price::default(),
            templates: None,
            keep_alive: Duration::from_secs(5),
        }
    }
}

/// How a backend can be told to answer in JSON. What comes is checked in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerFormat {
    /// By a schema.
    #[default]
    JsonSchema,
    /// As some JSON object.
    JsonObject,
    /// By words alone.
    Text,
}

/// The manipulator's model.
#[derive(Debug)]
pub struct ManipulatorModel {
    upstream: Arc<dyn Upstream>,
    settings: AskingSettings,
    ledger: Arc<Ledger>,
}

/// Why there is no answer. The edit is then not made, and the step passes untouched.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("{}", timeout_words(*.waited, *.before))]
    Late { waited: Duration, before: Duration },
    #[error("the budget of the manipulator's model is spent: {}", .0.0)]
    Budget(#[from] Exhausted),
    #[error("the manipulator's model {0}")]
    Unanswered(#[from] Unanswered),
    #[error("the manipulator's model did not answer in its API: {0}")]
    Unreadable(String),
}

/// What came of a question.
pub(super) struct ModelExchange {
    pub(super) question: Bytes,
    pub(super) answer: Option<Bytes>,
    /// What was changed in the question, because the upstream refuses it.
    pub(super) changed: Option<String>,
    pub(super) reply: Result<String, AskError>,
    pub(super) usage: Option<Usage>,
}

impl ManipulatorModel {
    /// A model behind this upstream, which speaks chat completions.
    pub fn new(upstream: Arc<dyn Upstream>, settings: AskingSettings) -> Self {
        let ledger = Arc::new(Ledger::new(settings.budget));
        let upstream = NegotiatingUpstream::over(upstream, Some(Arc::clone(&ledger)));
        Self { upstream, settings, ledger }
    }

    /// The same model by another way, as one run sees it; both spend from one budget.
    #[must_use]
    pub fn by_way_of(&self, way: impl FnOnce(&Arc<dyn Upstream>) -> Arc<dyn Upstream>) -> Self {
        let (settings, ledger) = (self.settings.clone(), Arc::clone(&self.ledger));
        Self { upstream: way(&self.upstream), settings, ledger }
    }

    /// What records call its upstream.
    pub(super) fn upstream(&self) -> &str {
        self.upstream.name()
    }

    /// How it is asked.
    pub fn settings(&self) -> &AskingSettings {
        &self.settings
    }

    /// What was spent so far.
    pub fn spent(&self) -> Cost {
        self.ledger.spent()
    }

    /// When an edit that begins now must be done: half of what is left of the client's patience, at most our own.
    pub(super) fn deadline(&self, patience: Option<Duration>, waited: Duration) -> Instant {
        let left = patience.map(|patience| patience.saturating_sub(waited) / 2);
        Instant::now() + left.unwrap_or(self.settings.deadline).min(self.settings.deadline)
    }

    /// Puts a question of an edit that `began` some questions ago, and waits for its answer until then.
    pub(super) async fn ask(&self, question: &Question, began: Instant, until: Instant) -> ModelExchange {
        let mut conversation = question.conversation();
        conversation.model.clone_from(&self.settings.model);
        match self.settings.answers {
            AnswerFormat::JsonSchema => {}
            AnswerFormat::JsonObject => conversation.format = RequiredFormat::JsonObject,
            AnswerFormat::Text => conversation.format = RequiredFormat::Text,
        }
        let body = OpenaiChat::compose_request(&conversation, self.settings.temperature);
        let body = self.settings.parameters.apply(body);
        // A token has a byte at least.
        let most = self.cost(Usage { input: body.len() as u64, output: question.max_tokens });
        let started = Instant::now();
        let answered = match timeout_at(until, self.paid(&body, most)).await {
            Ok(answered) => answered,
            Err(_) => Err(AskError::Late {
                waited: until.saturating_duration_since(started),
                before: started.saturating_duration_since(began),
            }),
        };
        let (answer, usage, changed) = match &answered {
            Ok(answer) => (Some(answer.body.clone()), OpenaiChat.usage(&answer.body, false), answer.changed.clone()),
            Err(_) => (None, None, None),
        };
        let said = answered.and_then(|answer| {
            let reply = door::reply(&OpenaiChat, &answer.body, false)
                .map_err(|error| AskError::Unreadable(error.to_string()))?;
            Ok(reply.answers.first().map(|answer| answer.message.text()).unwrap_or_default())
        });
        ModelExchange { question: body, answer, changed, reply: said, usage }
    }

    /// Sends a question, again where the backend was busy; what each may cost is reserved before.
    async fn paid(&self, body: &Bytes, most: Cost) -> Result<ModelAnswer, AskError> {
        let mut resends = 0;
        loop {
            let mut reserved = self.ledger.reserve_now(most)?;
            let sent = model::answer_once(&*self.upstream, body).await;
            match &sent {
                // Without a count the reservation stands.
                Ok(answer) => {
                    let usage = OpenaiChat.usage(&answer.body, false);
                    reserved.settle(&usage.map_or(most, |usage| self.cost(usage)));
                }
                Err(Unanswered::BeyondBudget) => reserved.settle(&Cost::default()),
                Err(_) => reserved.settle(&Cost::UNANSWERED),
            }
            match sent {
                Ok(answer) => return Ok(answer),
                Err(unanswered) => match unanswered.again_in(resends) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return Err(unanswered.into()),
                },
            }
            resends += 1;
        }
    }

    fn cost(&self, usage: Usage) -> Cost {
        Cost::of_call(usage, self.settings.price)
    }

    pub(super) fn price(&self, usage: Usage) -> f64 {
        self.settings.price.cost(usage)
    }
}

/// The words of a time-out: how long was waited in all, and for the last answer.
fn timeout_words(waited: Duration, before: Duration) -> String {
    let limit = "`deadline_s`, or half of the client's patience";
    let whole = waited + before;
    // Questions that came before took some of the time; below a tenth of a second nobody counts it.
    if before < Duration::from_millis(100) {
        return format!("the manipulator's model did not answer within {whole:.1?} ({limit})");
    }
    format!(
        "the manipulator's model did not answer within {whole:.1?} in all ({limit}): earlier questions took {before:.1?}, \
         the last one was given {waited:.1?}"
    )
}

#[cfg(test)]
mod tests {
    use hyper::{Request, Response, StatusCode};

    use super::*;
    use crate::proxy::upstream::{BackendAnswering, BeyondBudget, ReceivedBody, SentBody};

    /// An upstream that says that a call cannot be paid for: itself, or as somebody who was asked.
    #[derive(Debug)]
    struct Refusing {
        is_asked: bool,
    }

    impl Upstream for Refusing {
        fn name(&self) -> &'static str {
            "refusing"
        }

        fn send(&self, _: Request<SentBody>) -> BackendAnswering<'_> {
            let mut response = Response::new(ReceivedBody::Made([Bytes::new()].into()));
            *response.status_mut() = StatusCode::PAYMENT_REQUIRED;
            if !self.is_asked {
                response.extensions_mut().insert(BeyondBudget);
            }
            Box::pin(async { Ok(response) })
        }
    }

    #[tokio::test]
    async fn a_question_that_a_budget_refuses_is_no_call() {
        for (is_asked, calls) in [(true, 1), (false, 0)] {
            let asking = ManipulatorModel::new(Arc::new(Refusing { is_asked }), AskingSettings::default());
            let asked =
                asking.paid(&Bytes::from_static(b"{}"), Cost::of_call(Usage::default(), Price::default())).await;
            let beyond = matches!(asked, Err(AskError::Unanswered(Unanswered::BeyondBudget)));
            assert_eq!((beyond, asking.spent().calls), (!is_asked, calls));
        }
    }
}
