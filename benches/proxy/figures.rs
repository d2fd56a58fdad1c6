//! From samples to figures: medians, ratios paired by round, and each figure against its target.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::kill::Killed;
use crate::matching::Matched;
use crate::scenario::{BOTH, RUNS, STREAMS, Sample, TOOLS};
use crate::storage::{HUNDRED, STREAMED, Stored, THIRTY};
use crate::target::Way;

/// Samples by scenario and way, in order of rounds.
pub(crate) type Samples = BTreeMap<&'static str, BTreeMap<Way, Vec<Sample>>>;

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Results {
    pub(crate) matched: Option<Matched>,
    pub(crate) samples: Samples,
    pub(crate) stored: Vec<Stored>,
    pub(crate) killed: Option<Killed>,
}

/// A figure of Aegis, and what it must be.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Figure {
    pub(crate) what: &'static str,
    /// `None`: not measured.
    pub(crate) value: Option<f64>,
    pub(crate) unit: &'static str,
    pub(crate) must: f64,
    /// What we would like it to be.
    pub(crate) stretch: f64,
    /// Greater is better, as for requests a second.
    pub(crate) at_least: bool,
    /// A gate decides about the exit code; its limit.
    pub(crate) gate: Option<f64>,
}

impl Figure {
    pub(crate) fn meets(&self, limit: f64) -> Option<bool> {
        self.value.map(|value| if self.at_least { value >= limit } else { value <= limit })
    }
}

fn at_most(what: &'static str, value: Option<f64>, unit: &'static str, must: f64, stretch: f64) -> Figure {
    Figure { what, value, unit, must, stretch, at_least: false, gate: None }
}

fn gate(limit: f64, figure: Figure) -> Figure {
    Figure { gate: Some(limit), ..figure }
}

impl Results {
    /// The figures, in the order of the report.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let mut figures = self.costs();
        figures.extend(
            self.delays()
                .into_iter()
                .map(|(what, value, unit, must, stretch)| at_most(what, value, unit, must, stretch)),
        );
        let sealed = |name| self.stored(name).map(Stored::sealed_ratio);
        let growth = sealed(HUNDRED).zip(sealed(THIRTY)).map(|(hundred, thirty)| hundred / thirty);
        let megabytes = |scenario| self.greatest(scenario, |sample| sample.peak_megabytes);
        figures.extend([
            at_most("stored ÷ text first said, sealed, 30 steps", sealed(THIRTY), "×", 0.5, 0.38),
            at_most("the same at 100 steps ÷ at 30", growth, "×", 1.05, 1.0),
            at_most("stored ÷ text first said, sealed, streamed", sealed(STREAMED), "×", 0.5, 0.38),
            gate(128.0, at_most("peak memory, 2 kB", megabytes("2k"), "MB", 24.0, 16.0)),
            gate(128.0, at_most("peak memory, 8 × 256 kB in flight", megabytes("256k"), "MB", 64.0, 40.0)),
            gate(128.0, at_most("peak memory, 80 runs of 30 steps", megabytes("team"), "MB", 128.0, 64.0)),
            at_most("peak memory, 1,000 runs left open", megabytes(RUNS), "MB", 128.0, 64.0),
            gate(128.0, at_most("peak memory, 1,000 streams", megabytes(STREAMS), "MB", 128.0, 64.0)),
            at_most(
                "start to accepted connection",
                self.median("2k", Way::Aegis, |sample| Some(sample.started_in_milliseconds)),
                "ms",
                100.0,
                30.0,
            ),
            gate(0.0, at_most("replies or requests not byte-exact, or failed", self.faults(), "", 0.0, 0.0)),
            gate(0.0, at_most("acknowledged exchanges lost at kill -9", self.lost(), "", 0.0, 0.0)),
        ]);
        figures
    }

    /// What an exchange costs.
    fn costs(&self) -> Vec<Figure> {
        // What a log costs after its last exchange is part of what that exchange costs.
        let share = |scenario, way, base| self.ratio(scenario, way, base, |sample| Some(sample.cpu_until_stopped));
        let cpu = |scenario| share(scenario, Way::Aegis, Way::Nginx);
        let inferring = |scenario| share(scenario, Way::AegisInferring, Way::Aegis);
        let editing = share("edit32k", Way::AegisEditing, Way::Aegis);
        let rate = self.ratio("2k", Way::Aegis, Way::Nginx, |sample| Some(sample.requests_per_second));
        let by_lineage = "CPU of a request whose run lineage finds ÷ one of a named run";
        vec![
            gate(2.0, at_most("CPU per request ÷ nginx, 2 kB", cpu("2k"), "×", 1.6, 1.4)),
            gate(2.0, at_most("CPU per request ÷ nginx, 32 kB", cpu("32k"), "×", 2.0, 1.8)),
            at_most("CPU per request ÷ nginx, 256 kB", cpu("256k"), "×", 1.4, 1.15),
            at_most("CPU per request ÷ nginx, 4 agents, 30 steps", cpu("team"), "×", 1.6, 1.5),
            at_most("CPU per streamed token ÷ nginx", cpu("stream"), "×", 1.25, 1.15),
            at_most("CPU of an edited 32 kB request ÷ unedited", editing, "×", 1.25, 1.1),
            // nginx tells no runs apart: the base is Aegis with a named run.
            at_most(by_lineage, inferring("lineage"), "×", 1.5, 1.25),
            at_most("the same for requests that have nothing in common", inferring("strangers"), "×", 4.0, 2.0),
            at_most("CPU of a tool's call ÷ of a model's, 2 kB", self.between(TOOLS, "2k"), "×", 1.5, 1.1),
            Figure { at_least: true, ..at_most("requests a second on one core ÷ nginx, 2 kB", rate, "×", 0.65, 0.8) },
        ]
    }

    /// What Aegis adds to the delay, against what nginx adds.
    fn delays(&self) -> Vec<(&'static str, Option<f64>, &'static str, f64, f64)> {
        let added = |scenario, way, field: fn(&Sample) -> Option<f64>| {
            Some(self.median(scenario, way, field)? - self.median(scenario, Way::Direct, field)?)
        };
        let p50 = |sample: &Sample| sample.latency.map(|spread| spread.p50);
        let p99 = |sample: &Sample| sample.latency.map(|spread| spread.p99);
        let first = |sample: &Sample| sample.first_token.map(|spread| spread.p50);
        let gap = |sample: &Sample| sample.gap_error.map(|spread| spread.p50);
        let ratio = |scenario| Some(added(scenario, Way::Aegis, p50)? / added(scenario, Way::Nginx, p50)?);
        let more = |scenario, field| Some(added(scenario, Way::Aegis, field)? - added(scenario, Way::Nginx, field)?);
        vec![
            ("added p50 ÷ nginx's, 2 kB, 400 a second", ratio("open2k"), "×", 1.3, 1.15),
            ("added p50 ÷ nginx's, 32 kB, 400 a second", ratio("open32k"), "×", 1.3, 1.15),
            ("added p99 − nginx's, 2 kB, 400 a second", more("open2k", p99), "µs", 300.0, 100.0),
            ("added p99 − nginx's, 32 kB, 400 a second", more("open32k", p99), "µs", 300.0, 100.0),
            (
                "added p99, 30 agents with 5 tools each, 400 a second",
                added(BOTH, Way::Aegis, p99),
                "µs",
                5_000.0,
                1_000.0,
            ),
            ("first token p50 − nginx's", more("openstream", first), "µs", 40.0, 15.0),
            ("gap between tokens, p50 error", self.median("openstream", Way::Aegis, gap), "µs", 30.0, 22.0),
        ]
    }

    /// What a request of one scenario costs Aegis, against one of another.
    fn between(&self, scenario: &str, base: &str) -> Option<f64> {
        let cpu = |scenario| self.median(scenario, Way::Aegis, |sample| Some(sample.cpu_until_stopped));
        Some(cpu(scenario)? / cpu(base)?)
    }

    /// The median over the rounds.
    pub(crate) fn median(&self, scenario: &str, way: Way, field: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        median(self.rounds(scenario, way)?.iter().filter_map(field).collect())
    }

    /// The median of the ratios round by round: what slows a whole round drops out.
    pub(crate) fn ratio(
        &self,
        scenario: &str,
        way: Way,
        base: Way,
        field: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<f64> {
        let (rounds, base) = (self.rounds(scenario, way)?, self.rounds(scenario, base)?);
        median(rounds.iter().zip(base).filter_map(|(sample, base)| Some(field(sample)? / field(base)?)).collect())
    }

    fn rounds(&self, scenario: &str, way: Way) -> Option<&Vec<Sample>> {
        self.samples.get(scenario)?.get(&way)
    }

    fn greatest(&self, scenario: &str, field: impl Fn(&Sample) -> f64) -> Option<f64> {
        self.rounds(scenario, Way::Aegis)?.iter().map(field).max_by(f64::total_cmp)
    }

    fn stored(&self, name: &str) -> Option<&Stored> {
        self.stored.iter().find(|stored| stored.name == name)
    }

    fn lost(&self) -> Option<f64> {
        self.killed.as_ref().map(|killed| (killed.lost + killed.broken.len()) as f64)
    }

    /// Answers through Aegis that were not the upstream's, requests that failed or were not matched, ends that
    /// were not orderly.
    fn faults(&self) -> Option<f64> {
        let mut samples =
            self.samples.values().flatten().filter(|(way, _)| way.is_aegis()).flat_map(|(_, rounds)| rounds).peekable();
        samples.peek()?;
        let faults = samples.map(|sample| {
            sample.inexact.values().sum::<u64>()
                + sample.failures.values().sum::<u64>()
                + u64::from(!sample.ended_well)
                + u64::from(sample.answered == 0)
        });
        let unsealed =
            self.stored.iter().map(|stored| stored.failures + u64::from(stored.sealed_in_milliseconds.is_none()));
        let unmatched = self.matched.iter().map(|matched| matched.requests.abs_diff(matched.by_roster));
        Some(faults.chain(unsealed).chain(unmatched).sum::<u64>() as f64)
    }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[last.div_ceil(2)]))
}
