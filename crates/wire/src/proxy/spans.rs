//! Spans on their way to a collector: OTLP over HTTP, in protobuf, beside the traffic and never in its way.

use std::sync::Arc;

use super::{
    model::{Unanswered, post},
    upstream::Upstream,
};
use crate::monitor::{Monitor, SpanSource};

/// Where collectors take spans, below their base URL (OTLP specification, OTLP/HTTP request).
const PATH: &str = "/v1/traces";

/// Sends what comes until nothing more can: the server has gone, and what it left is sent. A collector that is busy or away is asked
/// again a few times; what it does not take then is left out and counted, and said once in a row.
pub async fn send_spans(monitor: Arc<Monitor>, mut source: SpanSource, collector: Arc<dyn Upstream>) {
    let mut failing = false;
    while let Some(batch) = source.next().await {
        let sent = post(collector.as_ref(), PATH, "application/x-protobuf", &batch.body).await;
        match sent {
            Ok(_) => {
                monitor.counts().spans(batch.spans, 0);
                failing = false;
            }
            Err(error) => {
                monitor.counts().spans(0, batch.spans);
                if !std::mem::replace(&mut failing, true) {
                    say(collector.name(), &error);
                }
            }
        }
    }
}

fn say(collector: &str, error: &Unanswered) {
    tracing::warn!("the collector {collector} takes no spans: it {error}; calls and recordings go on without it");
}
