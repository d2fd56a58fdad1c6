//! The upstream as one cell sees it: every call is counted, put aside in the budget before it is made, charged after.
//! What an earlier, interrupted run of the cell has paid for is answered from its recording.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    budget::{Ledger, Reservation},
    cost::{Cost, pico_for},
    definition::Campaign,
    gate::CellGate,
    salvage::Salvage,
};
use crate::{
    execution::{ExecutionMeter, Halt},
    proxy::upstream::{BackendAnswering, Listener, ReceivedBody, SentBody, Upstream, UpstreamError},
    surface::{self, ErrorBody, OpenaiChat, Surface, door},
};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Request, Response, StatusCode, header};

/// What all cells of a campaign share.
#[derive(Debug)]
pub(super) struct House {
    pub(super) campaign: Arc<Campaign>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) gate: Arc<CellGate>,
}

/// What one cell did at the upstream.
#[derive(Debug, Default)]
pub(super) struct CellMeter {
    spent: Mutex<Cost>,
    calls: AtomicU64,
    salvaged: AtomicU64,
    limited: AtomicU64,
    /// What ends the cell early.
    pub(super) execution: Arc<ExecutionMeter>,
}

/// The upstream of one cell.
#[derive(Debug)]
pub(super) struct Metered {
    pub(super) inner: Arc<dyn Upstream>,
    pub(super) house: Arc<House>,
    pub(super) meter: Arc<CellMeter>,
    pub(super) salvage: Arc<Salvage>,
    /// Most calls of the program, if this is what it calls: others are not counted as its own.
    pub(super) max_calls: Option<u64>,
}

impl CellMeter {
    /// What was charged.
    pub(super) fn spent(&self) -> Cost {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that were answered from an interrupted run of the same cell.
    pub(super) fn salvaged(&self) -> u64 {
        self.salvaged.load(Ordering::Relaxed)
    }

    /// Replies that said 429.
    pub(super) fn limited(&self) -> u64 {
        self.limited.load(Ordering::Relaxed)
    }

    /// Why the cell is to end, if it is.
    pub(super) fn halt(&self) -> Option<Halt> {
        self.execution.halt()
    }

    fn charge(&self, cost: &Cost) {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).add(cost);
    }
}

impl Upstream for Metered {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(self.answer(request))
    }
}

impl Metered {
    async fn answer(&self, request: Request<SentBody>) -> Result<Response<ReceivedBody>, UpstreamError> {
        let (parts, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Err(UpstreamError::Closed(error)),
        };
        let surface = surface::for_path(parts.method.as_str(), parts.uri.path());
        if self.max_calls.is_some_and(|most| self.meter.calls.fetch_add(1, Ordering::Relaxed) >= most) {
            return Ok(self.refuse(Halt::Calls, surface));
        }
        if let Some(reply) = self.salvage.take(parts.uri.path(), &body) {
            self.meter.salvaged.fetch_add(1, Ordering::Relaxed);
            return Ok(reply);
        }
        let priced = match self.most(surface, &body) {
            Ok(priced) => priced,
            Err(halt) => return Ok(self.refuse(halt, surface)),
        };
        let Ok(reservation) = self.house.ledger.reserve(priced.most).await else {
            return Ok(self.refuse(Halt::Budget, surface));
        };
        let mut tab = Tab::open(Arc::clone(&self.meter), reservation, surface, priced);
        let request = Request::from_parts(parts, SentBody::Left(body.into()));
        let response = match self.inner.send(request).await {
            Ok(response) => response,
            Err(error) => {
                // A call that nobody answered has cost no tokens.
                tab.close(&Cost { calls: 1, ..Cost::default() });
                return Err(error);
            }
        };
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            self.meter.limited.fetch_add(1, Ordering::Relaxed);
            self.house.gate.lower(retry_after(&response));
        }
        tab.answered(&response);
        Ok(response.map(|body| ReceivedBody::Heard(Box::new(body), Box::new(tab))))
    }

    /// What the call may cost at most: a token is a byte or more, and an answer is as long as it is allowed to be.
    fn most(&self, surface: Option<&'static dyn Surface>, body: &[u8]) -> Result<Priced, Halt> {
        let campaign = &self.house.campaign;
        let asked = surface.and_then(|surface| door::request(surface, body).ok());
        let (model, longest, choices) = asked
            .map_or((String::new(), None, 1), |asked| (asked.model, asked.max_tokens, u64::from(asked.choices.max(1))));
        let input = body.len() as u64;
        let output = longest.unwrap_or(campaign.budget.max_output_tokens).saturating_mul(choices);
        let price = campaign.price(&model);
        if price.is_none() && campaign.budget.money.is_some() {
            tracing::warn!(%model, "no `[[price]]` of the campaign is for this model, and `budget.money` bounds what it may cost");
            return Err(Halt::Price);
        }
        let price = price.map_or((0.0, 0.0), |price| (price.input, price.output));
        let most = Cost { calls: 1, input, output, pico: price_of(price, input, output), unreported: 0 };
        Ok(Priced { most, price })
    }

    /// An answer of our own that no client retries; the program is ended, too.
    fn refuse(&self, why: Halt, surface: Option<&'static dyn Surface>) -> Response<ReceivedBody> {
        self.meter.execution.stop(why);
        let message = "The request is beyond what this run may spend.";
        let error = ErrorBody { message, kind: "insufficient_quota", code: None, param: None };
        let body = surface.unwrap_or(&OpenaiChat).error_body(&error);
        let mut response = Response::new(ReceivedBody::Made(VecDeque::from([body])));
        *response.status_mut() = StatusCode::PAYMENT_REQUIRED;
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        response
    }
}

fn price_of((input_price, output_price): (f64, f64), input: u64, output: u64) -> u64 {
    pico_for(input, input_price).saturating_add(pico_for(output, output_price))
}

/// What an upstream that says 429 wants us to wait; only seconds are read, as providers send them.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let text = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

#[derive(Debug, Clone, Copy)]
struct Priced {
    most: Cost,
    price: (f64, f64),
}

/// A call under way: hears its reply, reads the usage off its end, settles.
#[derive(Debug)]
struct Tab {
    meter: Arc<CellMeter>,
    reservation: Reservation,
    surface: Option<&'static dyn Surface>,
    priced: Priced,
    streamed: bool,
    success: bool,
    heard: Vec<Bytes>,
    open: bool,
}

impl Tab {
    fn open(
        meter: Arc<CellMeter>,
        reservation: Reservation,
        surface: Option<&'static dyn Surface>,
        priced: Priced,
    ) -> Self {
        Self { meter, reservation, surface, priced, streamed: false, success: false, heard: Vec::new(), open: true }
    }

    fn answered<B>(&mut self, response: &Response<B>) {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        self.streamed = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        self.success = response.status().is_success();
    }

    fn close(&mut self, cost: &Cost) {
        if std::mem::replace(&mut self.open, false) {
            self.reservation.settle(cost);
            self.meter.charge(cost);
        }
    }
}

impl Listener for Tab {
    fn frame(&mut self, frame: &Bytes) {
        if self.open {
            self.heard.push(frame.clone());
        }
    }

    fn end(&mut self) {
        if !self.open {
            return;
        }
        let whole = std::mem::take(&mut self.heard).concat();
        let usage = self.surface.and_then(|surface| surface.usage(&whole, self.streamed));
        let cost = match usage {
            Some(usage) => {
                let pico = price_of(self.priced.price, usage.input, usage.output);
                Cost { calls: 1, input: usage.input, output: usage.output, pico, unreported: 0 }
            }
            None if self.success => Cost { unreported: 1, ..self.reservation.held() },
            None => Cost { calls: 1, ..Cost::default() },
        };
        self.close(&cost);
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        // A client may leave with the last frame, before the upstream ends the reply: then all is said. A reply that was cut
        // before cost what is known to nobody.
        let said = |marker: &&[u8]| self.heard.iter().any(|frame| memchr::memmem::find(frame, marker).is_some());
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
    use crate::campaign::{definition::CampaignBudget, shard::ShardPart};

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
            let budget = CampaignBudget { max_output_tokens: 4096, ..CampaignBudget::default() };
            let ledger = Arc::new(Ledger::new(&budget, ShardPart::WHOLE, None));
            let most = Cost { calls: 1, input: 100, output: 4096, ..Cost::default() };
            let reservation = ledger.reserve(most).await.expect("no bound");
            let meter = Arc::new(CellMeter::default());
            let priced = Priced { most, price: (0.0, 0.0) };
            let mut tab = Tab::open(Arc::clone(&meter), reservation, Some(&OpenaiChat), priced);
            (tab.streamed, tab.success) = (true, true);
            frames.iter().for_each(|frame| tab.frame(&Bytes::from_static(frame.as_bytes())));
            drop(tab);
            assert_eq!((meter.spent().calls, meter.spent().output), (1, output), "{frames:?}");
        }
    }
}
