//! What executions may spend together: every live call is counted, put aside in the account before it is made, and charged
//! after. So a bound is never exceeded, however many calls are under way.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Request, Response, StatusCode, header};

use super::meter::{ExecutionMeter, Halt};
use crate::{
    budget::{Budget, Cost, Ledger, Price, Reservation},
    proxy::upstream::{BackendAnswering, BeyondBudget, Listener, ReceivedBody, SentBody, Upstream, UpstreamError},
    surface::{self, ErrorBody, OpenaiChat, Surface, door},
    trajectory::Usage,
};

/// Tokens that a request which names no limit is taken to answer at most.
pub const LONGEST_ANSWER: u64 = 4096;

/// What a model of that name costs; `None` where that is not known.
type PriceOf = dyn Fn(&str) -> Option<Price> + Send + Sync;

/// What executions may spend together.
pub struct Meter {
    ledger: Arc<Ledger>,
    price: Arc<PriceOf>,
    /// Tokens that a request which names no limit is taken to answer at most.
    longest_answer: u64,
    /// What a part of the work has spent of the account; `None` where the whole of it is meant.
    part: Option<Mutex<Cost>>,
}

/// What else is done with the calls of an execution.
pub trait CallHook: fmt::Debug + Send + Sync {
    /// The reply to a request that was paid for before, if it was: the call is not made again.
    fn recall(&self, path: &str, body: &[u8]) -> Option<Response<ReceivedBody>>;

    /// The upstream said 429, and how long to wait, where it says so.
    fn limited(&self, wait: Option<Duration>);
}

/// An upstream whose calls are counted and paid for.
#[derive(Debug)]
pub struct MeteredUpstream {
    inner: Arc<dyn Upstream>,
    meter: Arc<Meter>,
    execution: Arc<ExecutionMeter>,
    /// Most calls of the program, if this is what it calls: others are not counted as its own.
    max_calls: Option<u64>,
    hook: Option<Arc<dyn CallHook>>,
}

impl Meter {
    /// A meter over an account.
    pub fn new(
        ledger: Ledger,
        longest_answer: u64,
        price: impl Fn(&str) -> Option<Price> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { ledger: Arc::new(ledger), price: Arc::new(price), longest_answer, part: None })
    }

    /// A meter of a part of the work: it spends from the same account, and [`Meter::spent`] is what the part has spent.
    pub fn part(&self) -> Arc<Self> {
        Arc::new(Self {
            ledger: Arc::clone(&self.ledger),
            price: Arc::clone(&self.price),
            longest_answer: self.longest_answer,
            part: Some(Mutex::default()),
        })
    }

    /// A meter of a budget, with one price for all models.
    pub fn within(budget: Budget, price: Option<Price>) -> Arc<Self> {
        Self::new(Ledger::new(budget), LONGEST_ANSWER, move |_| price)
    }

    /// An upstream whose calls are counted here. Where a call is beyond what may be spent, it is refused, and the execution
    /// ended.
    pub fn metered(self: &Arc<Self>, inner: Arc<dyn Upstream>, execution: &Arc<ExecutionMeter>) -> MeteredUpstream {
        let (meter, execution) = (Arc::clone(self), Arc::clone(execution));
        MeteredUpstream { inner, meter, execution, max_calls: None, hook: None }
    }

    /// What was spent so far.
    pub fn spent(&self) -> Cost {
        match &self.part {
            Some(part) => *part.lock().unwrap_or_else(PoisonError::into_inner),
            None => self.ledger.spent(),
        }
    }

    /// Counts calls that were made elsewhere for the same.
    pub fn charge(&self, calls: u64, usage: Usage) {
        let price = (self.price)("").unwrap_or_default();
        let cost = Cost { calls, ..Cost::of_call(usage, price) };
        self.ledger.charge(&cost);
        self.count(&cost);
    }

    /// Counts what was charged to the account for a part of the work.
    fn count(&self, cost: &Cost) {
        if let Some(part) = &self.part {
            part.lock().unwrap_or_else(PoisonError::into_inner).add(cost);
        }
    }

    /// What is left to spend.
    pub fn remaining(&self) -> Budget {
        self.ledger.remaining()
    }

    /// Whether no further call would be let through.
    pub fn is_spent(&self) -> bool {
        self.ledger.is_spent()
    }

    /// Whether a call was refused.
    pub fn is_exhausted(&self) -> bool {
        self.ledger.is_exhausted()
    }

    /// What a call may cost at most: a token is a byte or more, and an answer is as long as it is allowed to be.
    fn most(&self, surface: Option<&'static dyn Surface>, path: &str, body: &[u8]) -> Result<PricedCall, Halt> {
        let asked = surface.and_then(|surface| door::request_at(surface, path, body).ok());
        let (model, longest, choices) = asked
            .map_or((String::new(), None, 1), |asked| (asked.model, asked.max_tokens, u64::from(asked.choices.max(1))));
        let input = body.len() as u64;
        let output = longest.unwrap_or(self.longest_answer).saturating_mul(choices);
        let price = (self.price)(&model);
        if price.is_none() && self.ledger.bounds_money() {
            tracing::warn!(%model, "the price of this model is not known, and the budget bounds what it may cost");
            return Err(Halt::Price);
        }
        let price = price.unwrap_or_default();
        Ok(PricedCall { most: Cost::of_call(Usage { input, output }, price), price })
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Meter").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl MeteredUpstream {
    /// The same for what a program calls: it makes so many calls at most.
    #[must_use]
    pub fn at_most(self, max_calls: u64) -> Self {
        Self { max_calls: Some(max_calls), ..self }
    }

    /// The same with something else that is done with the calls.
    #[must_use]
    pub fn hooked(self, hook: Arc<dyn CallHook>) -> Self {
        Self { hook: Some(hook), ..self }
    }
}

impl Upstream for MeteredUpstream {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(self.answer(request))
    }

    fn opens_sockets(&self) -> bool {
        self.inner.opens_sockets()
    }

    fn open_socket(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        self.inner.open_socket(request)
    }
}

impl MeteredUpstream {
    async fn answer(&self, request: Request<SentBody>) -> Result<Response<ReceivedBody>, UpstreamError> {
        // Tools and peers are no model calls: they cost nothing that a budget knows.
        if surface::ServerPath::of_path(request.uri().path()).is_some() {
            return self.inner.send(request).await;
        }
        let (parts, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Err(UpstreamError::Closed(error)),
        };
        let surface = surface::for_path(parts.method.as_str(), parts.uri.path());
        if self.max_calls.is_some_and(|most| self.execution.calls.fetch_add(1, Ordering::Relaxed) >= most) {
            return Ok(self.refuse(Halt::Calls, surface));
        }
        if let Some(reply) = self.hook.as_ref().and_then(|hook| hook.recall(parts.uri.path(), &body)) {
            self.execution.recalled.fetch_add(1, Ordering::Relaxed);
            return Ok(reply);
        }
        let priced = match self.meter.most(surface, parts.uri.path(), &body) {
            Ok(priced) => priced,
            Err(halt) => return Ok(self.refuse(halt, surface)),
        };
        let Ok(reservation) = self.meter.ledger.reserve(priced.most).await else {
            return Ok(self.refuse(Halt::Budget, surface));
        };
        let mut tab =
            MeteredReply::open(Arc::clone(&self.meter), Arc::clone(&self.execution), reservation, surface, priced);
        let request = Request::from_parts(parts, SentBody::Left(body.into()));
        let response = match self.inner.send(request).await {
            Ok(response) => response,
            Err(error) => {
                tab.close(&Cost::UNANSWERED);
                return Err(error);
            }
        };
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            self.execution.limited.fetch_add(1, Ordering::Relaxed);
            if let Some(hook) = &self.hook {
                hook.limited(retry_after(&response));
            }
        }
        tab.answered(&response);
        Ok(response.map(|body| ReceivedBody::Observed(Box::new(body), Box::new(tab))))
    }

    /// An answer of our own that no client retries; the program is ended, too.
    fn refuse(&self, why: Halt, surface: Option<&'static dyn Surface>) -> Response<ReceivedBody> {
        self.execution.stop(why);
        let message = "The request is beyond what this run may spend.";
        let error = ErrorBody { message, kind: "insufficient_quota", code: None, param: None };
        let body = surface.unwrap_or(&OpenaiChat).error_body(&error);
        let mut response = Response::new(ReceivedBody::Made(VecDeque::from([body])));
        *response.status_mut() = StatusCode::PAYMENT_REQUIRED;
        response.extensions_mut().insert(BeyondBudget);
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        response
    }
}

/// What an upstream that says 429 wants us to wait; only seconds are read, as providers send them.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let text = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

#[derive(Debug, Clone, Copy)]
struct PricedCall {
    most: Cost,
    price: Price,
}

/// A call under way: hears its reply, reads the usage off its end, settles.
#[derive(Debug)]
struct MeteredReply {
    meter: Arc<Meter>,
    execution: Arc<ExecutionMeter>,
    reservation: Reservation,
    surface: Option<&'static dyn Surface>,
    priced: PricedCall,
    streamed: bool,
    success: bool,
    frames: Vec<Bytes>,
    open: bool,
}

impl MeteredReply {
    fn open(
        meter: Arc<Meter>,
        execution: Arc<ExecutionMeter>,
        reservation: Reservation,
        surface: Option<&'static dyn Surface>,
        priced: PricedCall,
    ) -> Self {
        Self {
            meter,
            execution,
            reservation,
            surface,
            priced,
            streamed: false,
            success: false,
            frames: Vec::new(),
            open: true,
        }
    }

    fn answered<B>(&mut self, response: &Response<B>) {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        self.streamed = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        self.success = response.status().is_success();
    }

    fn close(&mut self, cost: &Cost) {
        if std::mem::replace(&mut self.open, false) {
            self.reservation.settle(cost);
            self.meter.count(cost);
            self.execution.charge(cost);
        }
    }
}

impl Listener for MeteredReply {
    fn frame(&mut self, frame: &Bytes) {
        if self.open {
            self.frames.push(frame.clone());
        }
    }

    fn end(&mut self) {
        if !self.open {
            return;
        }
        let whole = std::mem::take(&mut self.frames).concat();
        let usage = self.surface.and_then(|surface| surface.usage(&whole, self.streamed));
        let cost = match usage {
            Some(usage) => Cost::of_call(usage, self.priced.price),
            None if self.success => Cost { unreported: 1, ..self.reservation.held() },
            None => Cost::UNANSWERED,
        };
        self.close(&cost);
    }
}

impl Drop for MeteredReply {
    fn drop(&mut self) {
        // A client may leave with the last frame, before the upstream ends the reply: then all is said. A reply that was cut
        // before cost what is known to nobody.
        let said = |marker: &&[u8]| self.frames.iter().any(|frame| memchr::memmem::find(frame, marker).is_some());
        if self.open && self.surface.is_some_and(|surface| surface.ends_of_stream().iter().any(said)) {
            self.end();
        }
        let most = self.priced.most;
        self.close(&most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program may leave with the last frame, before the upstream ends the reply: what that frame counted is known.
    #[tokio::test]
    async fn a_reply_whose_end_was_heard_costs_what_it_said_and_a_cut_one_its_bound() {
        let counted = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":36,\"completion_tokens\":8}}\n\n";
        for (frames, output) in [
            (vec![counted, "data: [DONE]\n\n"], 8),
            (vec![counted], 4096),
            (vec!["data: [DONE]\n\n"], 4096),
            (vec![], 4096),
        ] {
            let whole = Meter::within(Budget::default(), None);
            let (meter, ledger) = (whole.part(), &whole.ledger);
            let most = Cost { calls: 1, input: 100, output: 4096, ..Cost::default() };
            let reservation = ledger.reserve(most).await.expect("no bound");
            let execution = Arc::new(ExecutionMeter::default());
            let priced = PricedCall { most, price: Price::default() };
            let mut tab =
                MeteredReply::open(Arc::clone(&meter), Arc::clone(&execution), reservation, Some(&OpenaiChat), priced);
            (tab.streamed, tab.success) = (true, true);
            frames.iter().for_each(|frame| tab.frame(&Bytes::from_static(frame.as_bytes())));
            drop(tab);
            assert_eq!((execution.spent().calls, execution.spent().output), (1, output), "{frames:?}");
            assert_eq!((meter.spent(), whole.spent()), (execution.spent(), execution.spent()), "{frames:?}");
            assert_eq!(whole.part().spent(), Cost::default(), "another part spent nothing");
        }
    }
}
