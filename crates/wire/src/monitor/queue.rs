//! From the line to the collector: a bounded queue of what is to become spans, taken in batches.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::InstrumentationScope,
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message;
use tokio::{
    sync::mpsc::{Receiver, Sender, channel as bounded},
    time::Instant,
};

use super::{
    ClosedCall,
    closed::ClosedBodies,
    spans::{self, SpanSettings, SpannedCall, SpannedRun},
};
use crate::trajectory::{GENAI_SCHEMA_URL, Outcome, RunId};

/// What waits at most, in calls and runs.
const WAITING: usize = 2048;
/// Largest bodies that become messages in a span, in bytes; of longer ones a span says sizes and counts alone.
const BODY_MAX: usize = 1 << 20;
/// Bytes of bodies that wait at most, together.
const WAITING_BYTES: usize = 32 << 20;
/// Most spans of a batch.
const BATCH: usize = 256;
/// How long a batch waits for more.
const LINGER: Duration = Duration::from_millis(500);

/// Where the line puts what is to become spans.
#[derive(Debug)]
pub(super) struct SpanQueue {
    to: Sender<Spanned>,
    waiting: Arc<AtomicUsize>,
}

/// Where whoever sends spans takes them.
#[derive(Debug)]
pub struct SpanSource {
    from: Receiver<Spanned>,
    waiting: Arc<AtomicUsize>,
    settings: SpanSettings,
    ended: bool,
}

/// Spans, as a collector takes them.
#[derive(Debug, Clone)]
pub struct SpanBatch {
    /// How many.
    pub spans: u64,
    /// An `ExportTraceServiceRequest` of OTLP, in protobuf.
    pub body: Bytes,
}

/// What is to become a span.
#[derive(Debug)]
enum Spanned {
    Call(Box<SpannedCall>),
    Run(Box<SpannedRun>),
    /// Nothing more comes.
    End,
}

pub(super) fn channel(settings: SpanSettings) -> (SpanQueue, SpanSource) {
    let (to, from) = bounded(WAITING);
    let waiting = Arc::<AtomicUsize>::default();
    (SpanQueue { to, waiting: waiting.clone() }, SpanSource { from, waiting, settings, ended: false })
}

impl SpanQueue {
    /// Puts a call in; `false` where there is no room.
    pub(super) fn push_call(&self, call: &ClosedCall<'_>, bodies: impl FnOnce() -> ClosedBodies) -> bool {
        let Ok(place) = self.to.try_reserve() else { return false };
        let ClosedBodies { target, request: asked, answered } = bodies();
        let short = |body: Bytes| if body.len() > BODY_MAX { Bytes::new() } else { body };
        let bodies = ClosedBodies { target, request: short(asked), answered: short(answered) };
        let call = SpannedCall::from_closed(call, bodies);
        let length = call.length();
        if self.waiting.fetch_add(length, Relaxed) > WAITING_BYTES {
            self.waiting.fetch_sub(length, Relaxed);
            return false;
        }
        place.send(Spanned::Call(Box::new(call)));
        true
    }

    /// Puts the end of a run in; `false` where there is no room.
    pub(super) fn push_run(&self, run: &RunId, began: SystemTime, outcome: &Outcome) -> bool {
        let run = SpannedRun { run: run.clone(), began, ended: SystemTime::now(), outcome: outcome.clone() };
        self.to.try_send(Spanned::Run(Box::new(run))).is_ok()
    }

    /// Nothing more is put in.
    pub(super) async fn end(&self) {
        let _ = self.to.send(Spanned::End).await;
    }
}

impl SpanSource {
    /// The next batch, once something waits; `None` when nothing more comes and nothing is left.
    pub async fn next(&mut self) -> Option<SpanBatch> {
        let mut made = Vec::new();
        let mut until = None;
        while made.len() < BATCH && !self.ended {
            let next = match until {
                None => self.from.recv().await,
                Some(until) => match tokio::time::timeout_at(until, self.from.recv()).await {
                    Ok(next) => next,
                    Err(_) => break,
                },
            };
            match next {
                Some(Spanned::Call(call)) => {
                    self.waiting.fetch_sub(call.length(), Relaxed);
                    made.push(spans::call(&call, &self.settings));
                }
                Some(Spanned::Run(run)) => made.push(spans::run(&run)),
                Some(Spanned::End) | None => self.ended = true,
            }
            until = until.or_else(|| Some(Instant::now() + LINGER));
        }
        (!made.is_empty()).then(|| batch(made))
    }
}

fn batch(made: Vec<Span>) -> SpanBatch {
    let spans = made.len() as u64;
    let scope = InstrumentationScope {
        name: "aegis".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let resource =
        Resource { attributes: vec![spans::string_attribute("service.name", "aegis".into())], ..Resource::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans: made, schema_url: GENAI_SCHEMA_URL.to_owned() }];
    let resource_spans =
        vec![ResourceSpans { resource: Some(resource), scope_spans, schema_url: GENAI_SCHEMA_URL.to_owned() }];
    SpanBatch { spans, body: ExportTraceServiceRequest { resource_spans }.encode_to_vec().into() }
}
