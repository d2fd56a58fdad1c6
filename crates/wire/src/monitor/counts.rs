//! Counts of a server's traffic, as Prometheus reads them (`OpenMetrics` text). No label is a name that a client chose: the number
//! of series is bounded.

use std::sync::atomic::Ordering;

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

use super::{ClosedBodies, ClosedCall, accounts::WaitingAccounts};

/// Where a time falls: from 1 ms to about 17 minutes.
fn times() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 21))
}

/// What calls are told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    /// API shape.
    surface: &'static str,
    /// Why the exchange closed.
    cause: &'static str,
    /// How the call ended: `answered`, `refused_rate`, `failed`, …
    ending: &'static str,
    /// Class of the HTTP status: `2xx`, …; `none` where there was no reply.
    status: &'static str,
}

/// What tokens are told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    /// `input` or `output`.
    kind: &'static str,
}

/// What calls are told apart by that were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccountLabels {
    /// How much of the call was read: `read`, `partly read`, `unread`; `not looked at`.
    account: &'static str,
}

/// What signs of trouble are told apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SignLabels {
    /// The rule that saw it.
    rule: &'static str,
}

/// Counts since the server started.
#[derive(Debug)]
pub struct TrafficCounts {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    retries: Counter,
    under_way: Gauge,
    tokens: Family<TokenLabels, Counter>,
    first_byte: Histogram,
    duration: Histogram,
    runs_ended: Counter,
    runs_pruned: Counter,
    runs_open: Gauge,
    spans_left_out: Counter,
    spans_sent: Counter,
    watch_signs: Family<SignLabels, Counter>,
    accounts: Family<AccountLabels, Counter>,
    waiting: WaitingAccounts,
}

impl Default for TrafficCounts {
    fn default() -> Self {
        let mut counts = Self {
            registry: Registry::with_prefix("aegis"),
            calls: Family::default(),
            retries: Counter::default(),
            under_way: Gauge::default(),
            tokens: Family::default(),
            first_byte: times(),
            duration: times(),
            runs_ended: Counter::default(),
            runs_pruned: Counter::default(),
            runs_open: Gauge::default(),
            spans_left_out: Counter::default(),
            spans_sent: Counter::default(),
            watch_signs: Family::default(),
            accounts: Family::default(),
            waiting: WaitingAccounts::default(),
        };
        let registry = &mut counts.registry;
        registry.register("calls", "Model calls that are over, tries apart", counts.calls.clone());
        registry.register("calls_by_account", "Model calls, by how much of them was read", counts.accounts.clone());
        registry.register("retries", "Of these, tries after the first of a step", counts.retries.clone());
        registry.register("calls_under_way", "Model calls under way", counts.under_way.clone());
        registry.register("tokens", "Tokens, as upstreams count them", counts.tokens.clone());
        registry.register_with_unit(
            "first_byte",
            "From a call's arrival to the first byte of its reply",
            Unit::Seconds,
            counts.first_byte.clone(),
        );
        registry.register_with_unit(
            "call_duration",
            "From a call's arrival to the end of its reply",
            Unit::Seconds,
            counts.duration.clone(),
        );
        registry.register("runs_ended", "Runs that were sealed", counts.runs_ended.clone());
        registry.register("runs_pruned", "Ended runs that were removed", counts.runs_pruned.clone());
        registry.register("runs_open", "Runs under way", counts.runs_open.clone());
        registry.register("watch_signs", "Signs of trouble, by the rule that saw them", counts.watch_signs.clone());
        registry.register("spans_sent", "Spans that the collector took", counts.spans_sent.clone());
        registry.register(
            "spans_left_out",
            "Spans that had no room or that the collector refused",
            counts.spans_left_out.clone(),
        );
        counts
    }
}

impl TrafficCounts {
    /// A call was opened.
    pub(super) fn opened(&self) {
        self.under_way.inc();
    }

    /// A call was closed.
    pub(super) fn closed(&self, call: &ClosedCall<'_>) {
        self.under_way.dec();
        let status = match call.status.map(|status| status / 100) {
            None => "none",
            Some(1) => "1xx",
            Some(2) => "2xx",
            Some(3) => "3xx",
            Some(4) => "4xx",
            Some(_) => "5xx",
        };
        let labels =
            CallLabels { surface: call.surface_name(), cause: call.cause.name(), ending: call.ending.name(), status };
        self.calls.get_or_create(&labels).inc();
        if call.attempt > 0 {
            self.retries.inc();
        }
        if let Some(usage) = call.usage {
            self.tokens.get_or_create(&TokenLabels { kind: "input" }).inc_by(usage.input);
            self.tokens.get_or_create(&TokenLabels { kind: "output" }).inc_by(usage.output);
        }
        if let Some(first) = call.first_byte_us {
            self.first_byte.observe(seconds(first));
        }
        self.duration.observe(seconds(call.last_byte_us));
    }

    /// Whether closed calls are to bring their bodies.
    pub(super) fn wants_bodies(&self) -> bool {
        self.waiting.has_room()
    }

    /// A call was closed: how much of it was read is counted, at once or when the counts are asked for.
    pub(super) fn read(&self, call: &ClosedCall<'_>, bodies: impl FnOnce() -> Option<ClosedBodies>) {
        if let Some(account) = self.waiting.push(call, bodies) {
            self.accounts.get_or_create(&AccountLabels { account }).inc();
        }
    }

    /// A run was sealed.
    pub(super) fn run_ended(&self) {
        self.runs_ended.inc();
    }

    /// An ended run was removed.
    pub(super) fn run_pruned(&self) {
        self.runs_pruned.inc();
    }

    /// A span had no room.
    pub(super) fn span_left_out(&self) {
        self.spans_left_out.inc();
    }

    /// The collector took so many spans, and so many it did not.
    pub fn spans(&self, sent: u64, left_out: u64) {
        self.spans_sent.inc_by(sent);
        self.spans_left_out.inc_by(left_out);
    }

    /// All of it as `OpenMetrics` text; `runs_open` is how many runs are under way now, `signs` how often each rule that watches them
    /// has seen something.
    ///
    /// # Errors
    /// None that a text can meet.
    pub fn text(&self, runs_open: usize, signs: &[(&'static str, u64)]) -> Result<String, std::fmt::Error> {
        self.runs_open.set(i64::try_from(runs_open).unwrap_or(i64::MAX));
        for (rule, count) in signs {
            self.watch_signs.get_or_create(&SignLabels { rule }).inner().store(*count, Ordering::Relaxed);
        }
        for account in self.waiting.take() {
            self.accounts.get_or_create(&AccountLabels { account: account.words() }).inc();
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn seconds(micros: u64) -> f64 {
    std::time::Duration::from_micros(micros).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        surface::OpenaiChat,
        trajectory::{AgentName, Attribution, CallEnding, CloseCause, RunId, Source, Usage},
    };

    #[test]
    fn what_passed_is_counted() {
        let counts = TrafficCounts::default();
        let run = RunId::parse("r").expect("an id");
        let attribution = Attribution {
            agent: AgentName::unnamed(0),
            instance: 0,
            source: Source::Path,
            evidence: String::new(),
            confidence: 1.0,
            ambiguous: false,
        };
        for (attempt, status, cause) in [
            (0, Some(429), CloseCause::Complete),
            (1, Some(200), CloseCause::Complete),
            (0, None, CloseCause::UpstreamUnreachable),
        ] {
            counts.opened();
            counts.closed(&ClosedCall {
                run: &run,
                step: 0,
                call: 0,
                attempt,
                attribution: &attribution,
                surface: Some(&OpenaiChat),
                cause,
                ending: CallEnding::of_transport(cause, status),
                status,
                usage: status.map(|_| Usage { input: 3, output: 2 }),
                streamed: false,
                first_byte_us: status.map(|_| 1500),
                last_byte_us: 3000,
            });
        }
        counts.opened();
        let text = counts.text(2, &[("cut", 3)]).expect("a text");
        for line in [
            r#"aegis_calls_total{surface="openai_chat",cause="complete",ending="refused_rate",status="4xx"} 1"#,
            r#"aegis_calls_total{surface="openai_chat",cause="complete",ending="answered",status="2xx"} 1"#,
            r#"aegis_calls_total{surface="openai_chat",cause="upstream_unreachable",ending="failed",status="none"} 1"#,
            "aegis_retries_total 1",
            "aegis_calls_under_way 1",
            r#"aegis_tokens_total{kind="input"} 6"#,
            "aegis_first_byte_seconds_count 2",
            r#"aegis_call_duration_seconds_bucket{le="0.004"} 3"#,
            "aegis_runs_open 2",
            r#"aegis_watch_signs_total{rule="cut"} 3"#,
            "# EOF",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
