//! Asks a judge what methods want to know: from the cassette where it was asked before, else live, recorded, within a budget.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{Mutex, OnceCell};

use super::{
    AnswerCache,
    line::ModelLine,
    methods::{Abstention, JudgeQuestion, JudgeReply},
};
use crate::{
    budget::{Cost, Ledger, Price},
    execution::{ExecutionError, ListeningProxy},
    proxy::Proxy,
    surface::{
        Answer, Conversation, Message, OpenaiChat, ParameterSettings, Part, RequiredFormat, Role, Sampling, Surface,
        Tool, door,
    },
    trajectory::{RunId, Usage},
};

/// How a judge is asked.
#[derive(Debug, Clone)]
pub struct JudgeSettings {
    /// The model's name.
    pub model: String,
    /// Longest wait for one answer.
    pub patience: Duration,
    /// Whether answers are asked for by JSON schema.
    pub by_schema: bool,
    /// Parameters that the user sets by hand.
    pub parameters: ParameterSettings,
}

/// Which of several equal questions this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// As the public script asks: temperature and seed are left to the backend.
    Open,
    /// At temperature 0.
    Only,
    /// One vote of several, at temperature 0.7, seeded by its number.
    Vote(u32),
}

/// What came of a question, and what it took.
#[derive(Debug, Clone)]
pub struct JudgeCall {
    /// What was said.
    pub reply: JudgeReply,
    /// Tokens, as the backend counted them; none where it did not answer.
    pub usage: Usage,
    /// The model by the backend's own name for it.
    pub served: Option<String>,
    /// The question.
    pub body: Bytes,
}

/// A model that judges logs.
pub struct LogJudge {
    proxy: Arc<Proxy>,
    run: RunId,
    settings: JudgeSettings,
    cache: AnswerCache,
    ledger: Arc<Ledger>,
    price: Price,
    line: OnceCell<(Mutex<Option<ListeningProxy>>, ModelLine)>,
    replayed: AtomicU64,
}

impl LogJudge {
    /// A judge behind the upstream of this proxy; its questions will be recorded as the run `run`.
    pub fn new(
        proxy: Arc<Proxy>,
        run: RunId,
        settings: JudgeSettings,
        kept: AnswerCache,
        ledger: Arc<Ledger>,
        price: Price,
    ) -> Self {
        Self { proxy, run, settings, cache: kept, ledger, price, line: OnceCell::new(), replayed: AtomicU64::new(0) }
    }

    /// Calls of the model, and questions that were answered from the cassette.
    pub fn counts(&self) -> (u64, u64) {
        (self.ledger.spent().calls, self.replayed.load(Ordering::Relaxed))
    }

    /// What its answers cost.
    pub fn price(&self, usage: Usage) -> f64 {
        self.price.cost(usage)
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.settings.model
    }

    /// Asks. A judge that does not answer, or not in time, is no error.
    ///
    /// # Errors
    /// [`ExecutionError`] when the question cannot be recorded.
    pub async fn ask(&self, question: &JudgeQuestion, draw: Draw) -> Result<JudgeCall, ExecutionError> {
        let body = self.body(question, draw, self.settings.by_schema);
        // Cassettes of earlier versions hold what was asked in words where a schema was refused.
        for known in [&body, &self.body(question, draw, false)] {
            if let Some(answer) = self.cache.get(known) {
                self.replayed.fetch_add(1, Ordering::Relaxed);
                return Ok(read_answer(&answer, known.clone()));
            }
        }
        Ok(match self.live(&body, question.longest_answer).await? {
            Ok(answer) => read_answer(&self.cache.masked(&answer), body),
            Err(why) => JudgeCall { reply: JudgeReply::Nothing(why), usage: Usage::default(), served: None, body },
        })
    }

    /// Ends the recorded run; `None` where nothing was asked live.
    ///
    /// # Errors
    /// [`ExecutionError`] when it cannot be sealed.
    pub async fn finish(self) -> Result<Option<RunId>, ExecutionError> {
        let Some((listening, line)) = self.line.into_inner() else { return Ok(None) };
        if let Some(listening) = listening.into_inner() {
            line.hang_up(&listening)?;
            listening.stop().await;
        }
        Ok(Some(self.run))
    }

    fn body(&self, question: &JudgeQuestion, draw: Draw, by_schema: bool) -> Bytes {
        let (temperature, seed) = match draw {
            Draw::Open => (None, None),
            Draw::Only => (Some(0.0), Some(0)),
            Draw::Vote(number) => (Some(0.7), Some(i64::from(number))),
        };
        let format = match question.schema.clone().filter(|_| by_schema) {
            Some(schema) => RequiredFormat::JsonSchema { name: "attribution".to_owned(), schema },
            None => RequiredFormat::Text,
        };
        let system = Some(&question.system).filter(|system| !system.is_empty());
        let system = system.map(|system| Message::text_of(Role::System, system.clone()));
        let user = Message::text_of(Role::User, question.user.clone());
        let conversation = Conversation {
            model: self.settings.model.clone(),
            messages: system.into_iter().chain([user]).collect(),
            tools: question.tool.iter().map(tool).collect(),
            format,
            max_tokens: Some(question.longest_answer),
            sampling: Sampling { seed, ..Sampling::default() },
            ..Conversation::default()
        };
        self.settings.parameters.apply(OpenaiChat::compose_request(&conversation, temperature))
    }

    /// Asks the model, again where it was busy; each try is put aside in the budget before it is made.
    async fn live(&self, body: &Bytes, longest_answer: u64) -> Result<Result<Bytes, Abstention>, ExecutionError> {
        let (_, line) = self.line.get_or_try_init(|| self.open()).await?;
        // A token has a byte at least.
        let most = Cost::of_call(Usage { input: body.len() as u64, output: longest_answer }, self.price);
        let mut resends = 0;
        loop {
            let mut reserved = match self.ledger.reserve_now(most) {
                Ok(reserved) => reserved,
                Err(exhausted) => return Ok(Err(Abstention::Budget(exhausted.to_string()))),
            };
            let Ok(answered) = tokio::time::timeout(self.settings.patience, line.ask_once(body)).await else {
                let waited = format!("no answer within {:?}", self.settings.patience);
                return Ok(Err(Abstention::TimedOut(waited)));
            };
            match &answered {
                // Without a count the reservation stands.
                Ok(answer) => {
                    let usage = OpenaiChat.usage(answer, false);
                    reserved.settle(&usage.map_or(most, |usage| Cost::of_call(usage, self.price)));
                }
                Err(_) => reserved.settle(&Cost::UNANSWERED),
            }
            match answered {
                Ok(answer) => return Ok(Ok(answer)),
                Err(unanswered) => match unanswered.again_in(resends) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return Ok(Err(Abstention::Unanswered(unanswered.to_string()))),
                },
            }
            resends += 1;
        }
    }

    async fn open(&self) -> Result<(Mutex<Option<ListeningProxy>>, ModelLine), ExecutionError> {
        let listening = ListeningProxy::start(Arc::clone(&self.proxy)).await?;
        let line = ModelLine::open(&listening, &self.run, Arc::clone(&self.proxy.upstream), "judge").await?;
        Ok((Mutex::new(Some(listening)), line))
    }
}

/// A good reply as what was said.
fn read_answer(answer: &Bytes, body: Bytes) -> JudgeCall {
    let usage = OpenaiChat.usage(answer, false).unwrap_or_default();
    let reply = match door::reply(&OpenaiChat, answer, false) {
        Ok(reply) => reply,
        Err(error) => {
            let said = JudgeReply::Nothing(Abstention::Unreadable(error.to_string()));
            return JudgeCall { reply: said, usage, served: None, body };
        }
    };
    let served = Some(reply.model.clone()).filter(|model| !model.is_empty());
    let said = reply.answers.first().map_or_else(
        || JudgeReply::Nothing(Abstention::Unreadable("the reply holds no answer".to_owned())),
        judge_reply,
    );
    JudgeCall { reply: said, usage, served, body }
}

/// A function as chat templates write it.
fn tool(function: &Value) -> Tool {
    let text = |pointer: &str| function.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    Tool {
        name: text("/function/name"),
        description: text("/function/description"),
        parameters: function.pointer("/function/parameters").cloned().unwrap_or_default(),
        ..Tool::default()
    }
}

/// What was said: its words, or what its last call hands over.
fn judge_reply(answer: &Answer) -> JudgeReply {
    let words = answer.message.tool_calls.last().map_or_else(|| answer.message.text(), |call| call.arguments.clone());
    let filtered = answer.finish_reason.as_deref() == Some(Answer::FILTERED);
    let refusal = answer.message.parts.iter().any(|part| matches!(part, Part::Opaque(_)));
    if words.trim().is_empty() && (filtered || refusal) {
        return JudgeReply::Nothing(Abstention::Refused("the model would not answer".to_owned()));
    }
    JudgeReply::Words(words)
}
