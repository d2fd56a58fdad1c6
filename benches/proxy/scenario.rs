//! The scenarios, and one measured round of each: a fresh target, a warm-up, the load, and what the
//! target's process tree used meanwhile. Rounds are interleaved, in rotated order, so that a
//! machine that is slow for a while is slow for all ways alike.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::chat::{Reply, Verdict};
use crate::conversation::Shape;
use crate::load::{self, Load, Outcome, Until};
use crate::process::{Tree, ended_cpu, machine_cpu, own_cpu};
use crate::target::{Site, Target, Way};

/// A load and the ways that it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) ways: &'static [Way],
    shape: Shape,
    connections: u64,
    rate: Option<f64>,
    explicit: bool,
    /// Whole conversations a connection, instead of a time.
    conversations: Option<u64>,
    /// Rounds, if not as many as were asked for.
    rounds: Option<usize>,
}

/// What one round of one way gave. Times are microseconds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sample {
    pub(crate) answered: u64,
    pub(crate) exact: u64,
    pub(crate) inexact: BTreeMap<String, u64>,
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) cpu_per_request: f64,
    /// The same until the target has ended: a recorder that does its work late does not get it for nothing.
    pub(crate) cpu_until_stopped: f64,
    pub(crate) cpu_per_token: f64,
    pub(crate) requests_per_second: f64,
    pub(crate) mean_request_bytes: f64,
    pub(crate) latency: Option<Spread>,
    pub(crate) first_token: Option<Spread>,
    pub(crate) gap_error: Option<Spread>,
    /// How late the load generator was itself.
    pub(crate) late: Option<Spread>,
    pub(crate) peak_megabytes: f64,
    pub(crate) most_in_flight: u64,
    /// Processors that everything else on the machine used.
    pub(crate) others_used: f64,
    pub(crate) started_in_milliseconds: f64,
    /// The target ended by itself after SIGTERM, with exit code 0.
    pub(crate) ended_well: bool,
}

/// Percentiles, in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

const SIDE_BY_SIDE: &[Way] = &[Way::Direct, Way::Nginx, Way::Aegis, Way::Last];

/// Every scenario, in the order of the report.
pub(crate) fn all() -> Vec<Scenario> {
    [beside_nginx(), beside_itself(), both_wires(), about_memory()].concat()
}

/// Calls of tools, alone and beside those of models.
fn both_wires() -> Vec<Scenario> {
    const WAYS: &[Way] = &[Way::Direct, Way::Aegis, Way::Last];
    let turns = "one run: 30 agents, each asks its model and then 5 tools, 2 kB each, open loop, 400 a second";
    vec![
        Scenario {
            ways: WAYS,
            ..closed(TOOLS, "calls of tools of 2 kB, closed loop, 16 connections", Shape::TOOLS, 16)
        },
        Scenario { ways: WAYS, rate: Some(400.0), ..closed(BOTH, turns, Shape::TURN, 30) },
    ]
}

fn beside_nginx() -> Vec<Scenario> {
    let open = |name, title, shape, rate| Scenario { rate: Some(rate), ..closed(name, title, shape, 32) };
    vec![
        closed("2k", "requests of 2 kB, closed loop, 16 connections", Shape::SMALL, 16),
        closed("32k", "requests of 32 kB, a fifth of it new text, closed loop, 16 connections", Shape::MIDDLE, 16),
        closed("256k", "requests of 256 kB, closed loop, 8 connections", Shape::LARGE, 8),
        Scenario {
            explicit: true,
            conversations: Some(20),
            ..closed("team", "4 agents, 30 steps over a growing history, 80 runs, 4 at a time", Shape::TEAM, 4)
        },
        closed("stream", "streams of 64 tokens, 4 ms apart, closed loop, 16 connections", streaming(64, 4), 16),
        open("open2k", "requests of 2 kB, open loop, 400 a second", Shape::SMALL, 400.0),
        open("open32k", "requests of 32 kB, open loop, 400 a second", Shape::MIDDLE, 400.0),
        open("openstream", "streams of 20 tokens, 4 ms apart, open loop, 50 a second", streaming(20, 4), 50.0),
    ]
}

fn beside_itself() -> Vec<Scenario> {
    let to_edit = Shape { reply: Reply { look_for_edit: true, ..Shape::MIDDLE.reply }, ..Shape::MIDDLE };
    let unnamed = "4 agents, 30 steps over a growing history, 80 runs that no request names";
    vec![
        Scenario {
            ways: &[Way::Aegis, Way::AegisEditing, Way::Last, Way::LastEditing],
            ..closed("edit32k", "requests of 32 kB, each edited by a plan, closed loop, 16 connections", to_edit, 16)
        },
        Scenario {
            ways: &[Way::Aegis, Way::AegisInferring, Way::Last, Way::LastInferring],
            conversations: Some(20),
            ..closed("lineage", unnamed, Shape::TEAM, 4)
        },
        Scenario {
            ways: &[Way::Aegis, Way::AegisInferring, Way::Last, Way::LastInferring],
            ..closed("strangers", "requests of 2 kB that name no run and have nothing in common", Shape::SMALL, 16)
        },
    ]
}

fn about_memory() -> Vec<Scenario> {
    let streams = Shape { steps: 1, ..streaming(40, 100) };
    vec![
        Scenario {
            ways: &[Way::Nginx, Way::Aegis, Way::Last],
            explicit: true,
            conversations: Some(100),
            rounds: Some(1),
            ..closed(RUNS, "1,000 runs of 2 steps of 2 kB, all left open, 10 at a time", Shape::SMALL, 10)
        },
        Scenario {
            ways: &[Way::Nginx, Way::Aegis, Way::Last],
            conversations: Some(1),
            rounds: Some(1),
            ..closed(STREAMS, "1,000 streams at once, 40 tokens, 100 ms apart", streams, 1_000)
        },
    ]
}

/// So many connections, each of which asks as soon as it is answered.
fn closed(name: &'static str, title: &'static str, shape: Shape, connections: u64) -> Scenario {
    Scenario {
        name,
        title,
        ways: SIDE_BY_SIDE,
        shape,
        connections,
        rate: None,
        explicit: false,
        conversations: None,
        rounds: None,
    }
}

/// Streams of so many tokens, `pace` milliseconds apart.
fn streaming(tokens: usize, pace: u64) -> Shape {
    Shape { stream: true, reply: Reply::of(tokens, 20).paced(Duration::from_millis(pace)), ..Shape::SMALL }
}

/// The scenarios with tools.
pub(crate) const TOOLS: &str = "tools2k";
pub(crate) const BOTH: &str = "bothwires";

/// The scenarios that are about memory.
pub(crate) const STREAMS: &str = "streams";
pub(crate) const RUNS: &str = "runs";

/// Runs the rounds of a scenario over those of its ways that are in `chosen`.
pub(crate) fn measure(
    scenario: &Scenario,
    site: &Site,
    chosen: &[Way],
    rounds: usize,
    time: Duration,
) -> io::Result<BTreeMap<Way, Vec<Sample>>> {
    let of_aegis = |way: Way| way.is_aegis() || (way.is_last() && site.last.is_some());
    let asked = |way: Way| chosen.contains(&way) || (of_aegis(way) && chosen.contains(&Way::Aegis));
    let ways: Vec<Way> = scenario.ways.iter().copied().filter(|way| asked(*way)).collect();
    let mut samples: BTreeMap<Way, Vec<Sample>> = BTreeMap::new();
    for round in 0..scenario.rounds.unwrap_or(rounds) {
        for place in 0..ways.len() {
            let way = ways[(place + round) % ways.len()];
            let target = Target::start(site, way, &format!("{}-{round}-{way:?}", scenario.name))?;
            samples.entry(way).or_default().push(scenario.round(way, target, time));
        }
    }
    Ok(samples)
}

impl Scenario {
    fn round(&self, way: Way, mut target: Target, time: Duration) -> Sample {
        let ended_before = ended_cpu();
        let mut load = Load {
            port: target.port,
            shape: self.shape,
            connections: self.connections,
            rate: self.rate,
            until: Until::Elapsed(time / 5),
            stagger: Duration::ZERO,
            explicit: self.explicit,
            edited: way.edits(),
            seed: fresh_seed(),
        };
        let warmed = match self.conversations {
            None => load::run(&load),
            Some(conversations) => {
                load.until = Until::Conversations(conversations);
                // A thousand connections in one millisecond is a test of the backlog, not of memory.
                load.stagger = Duration::from_millis(1);
                let warm_up = Load { connections: 4, until: Until::Conversations(1), ..load.clone() };
                load::run(&warm_up)
            }
        };
        if self.conversations.is_none() {
            load.until = Until::Elapsed(time);
        }
        load.seed = fresh_seed();
        let tree = target.tree();
        if let Some(tree) = tree {
            tree.forget_peak();
        }
        let used = || (tree.map_or(Duration::ZERO, Tree::cpu), own_cpu(), machine_cpu());
        let (before, start) = (used(), Instant::now());
        let outcome = load::run(&load);
        // What a writer still holds belongs to the requests it was given.
        thread::sleep(Duration::from_millis(20));
        let (after, elapsed) = (used(), start.elapsed());
        let theirs = after.0.saturating_sub(before.0);
        let ours = after.1.saturating_sub(before.1);
        let machine = after.2.saturating_sub(before.2);
        let peak = tree.map_or(0, Tree::peak);
        let started_in = target.started_in;
        let mut sample = Sample::of(&outcome, theirs);
        sample.others_used = machine.saturating_sub(theirs + ours).as_secs_f64() / elapsed.as_secs_f64();
        sample.peak_megabytes = peak as f64 / 1e6;
        sample.started_in_milliseconds = started_in.as_secs_f64() * 1e3;
        sample.ended_well = target.stop().is_some();
        // All of its life: what it was started for, and what it writes at its end.
        let all = ended_cpu().saturating_sub(ended_before);
        let answered = warmed.answered() + outcome.answered();
        sample.cpu_until_stopped = all.as_secs_f64() * 1e6 / answered.max(1) as f64;
        sample
    }
}

impl Sample {
    fn of(outcome: &Outcome, cpu: Duration) -> Self {
        let answered = outcome.answered();
        let per = |count: u64| cpu.as_secs_f64() * 1e6 / count.max(1) as f64;
        let inexact = outcome.verdicts.iter().filter(|(verdict, _)| **verdict != Verdict::Exact);
        Self {
            answered,
            exact: outcome.verdicts.get(&Verdict::Exact).copied().unwrap_or(0),
            inexact: inexact.map(|(verdict, count)| (format!("{verdict:?}"), *count)).collect(),
            failures: outcome.failures.clone(),
            cpu_per_request: per(answered),
            cpu_until_stopped: 0.0,
            cpu_per_token: per(outcome.tokens),
            requests_per_second: answered as f64 / outcome.elapsed.as_secs_f64(),
            mean_request_bytes: outcome.request_bytes as f64 / answered.max(1) as f64,
            latency: Spread::of(&outcome.latency),
            first_token: Spread::of(&outcome.first_token),
            gap_error: Spread::of(&outcome.gap_error),
            late: Spread::of(&outcome.late),
            peak_megabytes: 0.0,
            most_in_flight: outcome.most_in_flight,
            others_used: 0.0,
            started_in_milliseconds: 0.0,
            ended_well: false,
        }
    }
}

impl Spread {
    fn of(nanoseconds: &[u64]) -> Option<Self> {
        let mut sorted = nanoseconds.to_vec();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| sorted[(last as f64 * share).round() as usize] as f64 / 1e3;
        Some(Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0) })
    }
}

/// Another one at each call and in each run of this program.
pub(crate) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0_u8)
}
