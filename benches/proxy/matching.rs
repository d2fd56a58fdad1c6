//! That the measured work is the whole work: every plain request of a load is in the recording, and
//! the roster knows its agent. Figures of a proxy that records less would flatter it.

use std::fs;
use std::io;
use std::time::Duration;

use aegis::recording;
use aegis::trajectory::Source;
use serde::Serialize;

use crate::conversation::Shape;
use crate::load::{self, Load, Until};
use crate::scenario::fresh_seed;
use crate::target::{Site, Target, Way};

/// What a small load left in the recording.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Matched {
    pub(crate) requests: u64,
    /// Steps whose agent a rule of the roster named.
    pub(crate) by_roster: u64,
}

/// Sends a few conversations on the plain path and reads the recording.
pub(crate) fn measure(site: &Site) -> io::Result<Matched> {
    let mut target = Target::start(site, Way::Aegis, "matching")?;
    let outcome = load::run(&Load {
        port: target.port,
        shape: Shape::SMALL,
        connections: 4,
        rate: None,
        until: Until::Conversations(4),
        stagger: Duration::ZERO,
        explicit: false,
        edited: false,
        seed: fresh_seed(),
    });
    target.stop();
    let mut by_roster = 0;
    for run in fs::read_dir(target.logs())? {
        let recording = recording::read(&run?.path()).map_err(io::Error::other)?;
        let steps = recording.trajectory.steps.iter();
        by_roster += steps.filter(|step| step.attribution.source == Source::Roster).count() as u64;
    }
    Ok(Matched { requests: outcome.answered(), by_roster })
}
