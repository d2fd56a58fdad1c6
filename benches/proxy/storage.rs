//! What a recording takes on disk, over the bytes of text that its run said for the first time:
//! while the run is live, and after `aegis runs end` has sealed it.

use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::conversation::Shape;
use crate::load::{self, Load, Until};
use crate::process::bytes_below;
use crate::scenario::fresh_seed;
use crate::target::{Site, Target, Way};

/// Runs recorded for a figure.
const CONNECTIONS: u64 = 4;
const RUNS_A_CONNECTION: u64 = 2;

/// One kind of run and what it takes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stored {
    pub(crate) name: &'static str,
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    /// Bytes of text said for the first time.
    pub(crate) first_said: u64,
    /// Bytes of request bodies.
    pub(crate) sent: u64,
    pub(crate) live: u64,
    pub(crate) sealed: u64,
    /// From SIGTERM to the end of the process; `None` if it failed.
    pub(crate) sealed_in_milliseconds: Option<f64>,
}

impl Stored {
    pub(crate) fn live_ratio(&self) -> f64 {
        self.live as f64 / self.first_said as f64
    }

    pub(crate) fn sealed_ratio(&self) -> f64 {
        self.sealed as f64 / self.first_said as f64
    }
}

/// The kinds of runs, the first two the same but for their length.
pub(crate) fn measure(site: &Site) -> io::Result<Vec<Stored>> {
    let kinds = [
        (THIRTY, Shape::TEAM),
        (HUNDRED, Shape { steps: 100, ..Shape::TEAM }),
        (STREAMED, Shape { stream: true, ..Shape::TEAM }),
    ];
    kinds.into_iter().map(|(name, shape)| record(site, name, shape)).collect()
}

/// 30 steps, whole replies: the figure that is compared with its target.
pub(crate) const THIRTY: &str = "4 agents, 30 steps, whole replies";
/// 100 steps: a ratio that grows with length shows here.
pub(crate) const HUNDRED: &str = "4 agents, 100 steps, whole replies";
/// Streams keep the lengths and times of their frames too.
pub(crate) const STREAMED: &str = "4 agents, 30 steps, streams of 32 tokens";

fn record(site: &Site, name: &'static str, shape: Shape) -> io::Result<Stored> {
    let mut target = Target::start(site, Way::Aegis, "storage")?;
    let outcome = load::run(&Load {
        port: target.port,
        shape,
        connections: CONNECTIONS,
        rate: None,
        until: Until::Conversations(RUNS_A_CONNECTION),
        stagger: Duration::ZERO,
        explicit: true,
        edited: false,
        seed: fresh_seed(),
    });
    let live = bytes_below(&target.logs());
    let sealed_in = target.stop().and_then(|_| target.end_runs(&site.aegis));
    Ok(Stored {
        name,
        runs: CONNECTIONS * RUNS_A_CONNECTION,
        failures: outcome.failures.values().sum(),
        first_said: outcome.first_said,
        sent: outcome.request_bytes,
        live,
        sealed: bytes_below(&target.logs()),
        sealed_in_milliseconds: sealed_in.map(|time| time.as_secs_f64() * 1e3),
    })
}
