//! An upstream of our own questions that learns which parameters it takes: one that is refused is left out or exchanged once, and
//! that is remembered for its model.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::{
    HeaderMap, Request, Response,
    header::{self, HeaderValue},
    http::request,
};
use serde_json::{Map, Value};

use super::{
    lock::locked,
    upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream, UpstreamError},
};
use crate::{
    budget::{Cost, Ledger},
    identity::AttributedCall,
    surface::ParameterChange,
    trajectory::Attribution,
};

/// Longest answer that is read, in bytes.
pub(super) const ANSWER_MAX: usize = 4 << 20;
/// Says in a reply what was changed in its question: the record of the reply keeps it.
const CHANGED: &str = "x-aegis-parameters";

/// Whoever asks, and whoever records what was asked, sees the question as it was put, so that a record answers it again; what goes
/// out differs where the upstream refuses a parameter.
#[derive(Debug)]
pub struct NegotiatingUpstream {
    upstream: Arc<dyn Upstream>,
    ledger: Option<Arc<Ledger>>,
    /// By model.
    changes: Mutex<BTreeMap<String, Vec<ParameterChange>>>,
}

impl NegotiatingUpstream {
    /// Nothing is known of it yet. A ledger counts the calls that refusals cost beyond the one that was asked for.
    pub fn over(upstream: Arc<dyn Upstream>, ledger: Option<Arc<Ledger>>) -> Arc<Self> {
        Arc::new(Self { upstream, ledger, changes: Mutex::default() })
    }

    /// What a reply that came through one says of its question: what was changed because the upstream refuses it.
    pub fn changed(reply: &HeaderMap) -> Option<String> {
        reply.get(CHANGED)?.to_str().ok().map(str::to_owned)
    }

    async fn answer(&self, request: Request<SentBody>) -> Result<Response<ReceivedBody>, UpstreamError> {
        let (head, body) = request.into_parts();
        let question = body.collect().await.map_err(UpstreamError::Closed)?.to_bytes();
        let Ok(asked) = serde_json::from_slice::<Map<String, Value>>(&question) else {
            return self.upstream.send(Request::from_parts(head, Either::Left(Full::new(question)))).await;
        };
        let model = asked.get("model").and_then(Value::as_str).unwrap_or_default();
        let mut changes = locked(&self.changes).get(model).cloned().unwrap_or_default();
        loop {
            let mut sent = asked.clone();
            for change in &changes {
                change.apply(&mut sent);
            }
            let body =
                if sent == asked { question.clone() } else { Bytes::from(Value::Object(sent.clone()).to_string()) };
            let response = self.upstream.send(with_body(&head, body)).await?;
            let (mut head, reply) = response.into_parts();
            let reply = Limited::new(reply, ANSWER_MAX).collect().await.map_err(UpstreamError::Closed)?.to_bytes();
            let change = ParameterChange::of_refusal(head.status.as_u16(), &reply, &sent, &changes);
            if let Some(change) = change.filter(|_| self.may_ask_again()) {
                changes.push(change);
                continue;
            }
            if head.status.is_success() {
                self.remember(model, &changes);
                state_changes(&changes, &mut head.headers);
            }
            return Ok(Response::from_parts(head, ReceivedBody::Made(VecDeque::from([reply]))));
        }
    }

    /// A call more is within the budget. What was refused has cost no tokens, and those of the answer were put aside before.
    fn may_ask_again(&self) -> bool {
        let Some(ledger) = &self.ledger else { return true };
        ledger.reserve_now(Cost::UNANSWERED).map(|mut reserved| reserved.settle(&Cost::UNANSWERED)).is_ok()
    }

    /// What was changed was of use: the question was answered so.
    fn remember(&self, model: &str, changes: &[ParameterChange]) {
        let mut known = locked(&self.changes);
        let known = known.entry(model.to_owned()).or_default();
        for change in changes {
            if known.iter().all(|known| !known.is_like(change)) {
                let (upstream, said) = (self.upstream.name(), &change.refusal);
                tracing::warn!(
                    model,
                    upstream,
                    said,
                    "the model is asked {change} from now on: its upstream refuses that parameter"
                );
                known.push(change.clone());
            }
        }
    }
}

fn state_changes(changes: &[ParameterChange], head: &mut HeaderMap) {
    let words = changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Some(words) = HeaderValue::from_str(&words).ok().filter(|_| !changes.is_empty()) {
        head.insert(CHANGED, words);
    }
}

fn with_body(head: &request::Parts, body: Bytes) -> Request<SentBody> {
    let mut head = head.clone();
    if head.headers.contains_key(header::CONTENT_LENGTH) {
        head.headers.insert(header::CONTENT_LENGTH, body.len().into());
    }
    Request::from_parts(head, Either::Left(Full::new(body)))
}

impl Upstream for NegotiatingUpstream {
    fn name(&self) -> &str {
        self.upstream.name()
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(self.answer(request))
    }

    fn recall(&self, surface: &str, asked: &[u8], told: &AttributedCall) -> Option<Attribution> {
        self.upstream.recall(surface, asked, told)
    }
}
