//! Who is told of a server's calls: its own counts, and a collector where `[otlp]` names one.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;

use crate::{
    cli::{Exit, Failure, config::Config, upstream_origin},
    monitor::{Monitor, SpanSettings, SpanSource},
    proxy::{HttpUpstream, Runs, send_spans, upstream::Upstream},
};

/// How long the last spans may take once nothing more comes.
const LAST: Duration = Duration::from_secs(5);
/// Longest wait for a collector's answer.
const ANSWER: Duration = Duration::from_secs(10);

/// What is told, and where spans go.
#[derive(Debug)]
pub(in crate::cli) struct Monitoring {
    pub(in crate::cli) monitor: Option<Arc<Monitor>>,
    collector: Option<(SpanSource, Arc<dyn Upstream>)>,
}

impl Monitoring {
    /// As the configuration says; `counts`: whether anybody can ask for counts.
    ///
    /// # Errors
    /// The collector's URL, or its key, cannot be used.
    pub(in crate::cli) fn from_config(config: &Config, upstream: &str, counts: bool) -> Result<Self, Failure> {
        let Some(otlp) = &config.otlp else {
            let monitor = counts.then(|| Arc::new(Monitor::counting()));
            return Ok(Self { monitor, collector: None });
        };
        let wrong = |error: crate::proxy::OriginError| {
            Failure::new(Exit::Usage, format!("[otlp] endpoint: {error}"))
                .hint("a collector's base URL, for example http://127.0.0.1:4318")
        };
        // Collectors may have a path of their own; the client's leading `/v1` would give way to it.
        let url = otlp.endpoint.trim_end_matches('/');
        let url = url.strip_suffix("/v1/traces").unwrap_or(url);
        let below = url.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        let url = if below { format!("{url}/v1") } else { url.to_owned() };
        let origin = upstream_origin::origin(&url, otlp.key_env.as_deref()).map_err(wrong)?;
        let collector = HttpUpstream::new(origin, Vec::new(), config.upstream.ca_file.as_deref(), ANSWER);
        let upstream = upstream.split_once("://").map_or(upstream, |(_, authority)| authority).to_owned();
        let redactor = config.recording()?.redactor;
        let (monitor, source) = Monitor::spanning(SpanSettings { content: otlp.content, redactor, upstream });
        let collector = Some((source, collector.map_err(wrong)?.shared()));
        Ok(Self { monitor: Some(Arc::new(monitor)), collector })
    }

    /// Begins to tell of the calls of these runs, in the runtime that calls this.
    pub(in crate::cli) fn start(self, runs: &Runs) -> Monitored {
        let Some(monitor) = self.monitor else { return Monitored::default() };
        runs.tell(Arc::clone(&monitor));
        let sending = self.collector.map(|(source, collector)| {
            let monitor = Arc::clone(&monitor);
            tokio::spawn(send_spans(monitor, source, collector))
        });
        Monitored { monitor: Some(monitor), sending }
    }
}

/// Traffic that is told of.
#[derive(Debug, Default)]
pub(in crate::cli) struct Monitored {
    monitor: Option<Arc<Monitor>>,
    sending: Option<JoinHandle<()>>,
}

impl Monitored {
    /// Nothing more comes: waits a little until the last spans are sent.
    pub(in crate::cli) async fn end(self) {
        let (Some(monitor), Some(sending)) = (self.monitor, self.sending) else { return };
        let last = async {
            monitor.end().await;
            let _ = sending.await;
        };
        if tokio::time::timeout(LAST, last).await.is_err() {
            tracing::warn!("the collector did not take the last spans within {} s", LAST.as_secs());
        }
    }
}
