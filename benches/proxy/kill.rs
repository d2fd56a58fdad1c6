//! Kills Aegis with SIGKILL at random moments under load, starts it again over the same recordings,
//! and looks for what clients had been told: an exchange whose reply a client got to its last byte
//! must stand in the recording, whole, byte for byte, both ways.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aegis::recording::{self, RecordingError};
use aegis::trajectory::CloseCause;
use serde::Serialize;

use crate::chat::{Ask, Reply};
use crate::conversation::{Conversation, Shape};
use crate::load;
use crate::scenario::fresh_seed;
use crate::target::{Site, Target, Way};
use crate::text::Draw;
use crate::upstream::sleep_until;
use crate::wire::Wire;

const CLIENTS: u64 = 8;
/// A run lives through this many kills.
const KILLS_A_RUN: usize = 4;
/// How long a first answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the kills did.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Killed {
    pub(crate) kills: usize,
    /// Exchanges whose reply a client got whole.
    pub(crate) acknowledged: usize,
    /// Of these, the ones that are not in the recording byte for byte.
    pub(crate) lost: usize,
    /// Exchanges that a kill interrupted and the recording still shows as open.
    pub(crate) interrupted: u64,
    /// Recordings that could not be read, or starts that failed, and why.
    pub(crate) broken: Vec<String>,
}

/// Kills `kills` times.
pub(crate) fn measure(site: &Site, kills: usize) -> io::Result<Killed> {
    let directory = site.scratch.join("kill");
    fs::create_dir_all(&directory)?;
    let mut result = Killed { kills, ..Killed::default() };
    let mut draw = Draw::new(fresh_seed());
    let mut acknowledged: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for cycle in 0..kills {
        let run = format!("kill-{}", cycle / KILLS_A_RUN);
        match Target::start_in(site, Way::Aegis, directory.clone()) {
            Ok(target) => {
                let moment = Moment {
                    // Most kills hit a run that has begun; the others its beginning.
                    after_first: draw.between(0, 5) > 0,
                    wait: Duration::from_micros(draw.between(0, 100_000)),
                };
                let told = until_killed(target, &run, &moment, &mut result.broken);
                acknowledged.entry(run).or_default().extend(told);
            }
            Err(error) => result.broken.push(error.to_string()),
        }
    }
    for (run, told) in acknowledged {
        result.acknowledged += told.len();
        match recorded(&directory.join("logs").join(&run)) {
            Ok((kept, interrupted)) => {
                result.lost += told.difference(&kept).count();
                result.interrupted += interrupted;
            }
            Err(error) => {
                result.lost += told.len();
                result.broken.push(format!("{run}: {error}"));
            }
        }
    }
    if result.acknowledged < kills {
        let told = result.acknowledged;
        result.broken.push(format!("expected exchanges to be acknowledged before most kills, got {told} before all"));
    }
    drop(fs::remove_dir_all(&directory));
    Ok(result)
}

/// When a kill comes.
struct Moment {
    /// After the first answer of this start.
    after_first: bool,
    wait: Duration,
}

/// What the clients of one start share.
#[derive(Default)]
struct Shared {
    answered: AtomicBool,
    over: AtomicBool,
}

/// Loads the target, kills it at `moment`, and returns the fingerprints of the requests whose
/// replies came to the last byte. Whole replies that were not the upstream's go to `wrong`.
fn until_killed(mut target: Target, run: &str, moment: &Moment, wrong: &mut Vec<String>) -> BTreeSet<u64> {
    let shared = Shared::default();
    let port = target.port;
    thread::scope(|scope| {
        let shared = &shared;
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || client(port, run, number, shared))).collect();
        let start = Instant::now();
        while moment.after_first && !shared.answered.load(Ordering::Relaxed) && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_micros(200));
        }
        thread::sleep(moment.wait);
        target.kill();
        shared.over.store(true, Ordering::Relaxed);
        let mut told = BTreeSet::new();
        for client in clients {
            let (fingerprints, other) = client.join().expect("a client does not panic");
            told.extend(fingerprints);
            wrong.extend(other);
        }
        told
    })
}

/// Holds short conversations, every second client with streams, until its connection breaks.
fn client(port: u16, run: &str, number: u64, shared: &Shared) -> (Vec<u64>, Option<String>) {
    let mut told = Vec::new();
    let Ok(mut wire) = Wire::connect(port, PATIENCE) else { return (told, None) };
    // A short wait keeps the recordings small and the moments of the kill in every part of an exchange.
    let reply = Reply { wait: Duration::from_micros(300 * (number / 2)), ..Reply::of(8, 40) };
    let shape = Shape { stream: number % 2 == 1, reply, ..Shape::SMALL };
    let (mut body, mut got) = (Vec::new(), Vec::new());
    while !shared.over.load(Ordering::Relaxed) {
        let mut conversation = Conversation::new(shape, fresh_seed());
        while !conversation.is_over() {
            let path = load::path(Some(run), conversation.agent(), false);
            conversation.next_request(&mut body);
            let ask = Ask::of(&body).expect("the client asks what the upstream can read");
            got.clear();
            let answer = wire.send(load::head(&path, body.len()).as_bytes(), &body).and_then(|()| {
                let head = wire.head()?.ok_or(io::ErrorKind::UnexpectedEof)?;
                wire.body(&head, |bytes, _| got.extend_from_slice(bytes))
            });
            if answer.is_err() {
                return (told, None);
            }
            if got != ask.expected() {
                return (told, Some(String::from_utf8_lossy(&got[..got.len().min(160)]).into_owned()));
            }
            told.push(ask.fingerprint);
            shared.answered.store(true, Ordering::Relaxed);
            conversation.answered(&ask.text());
        }
        sleep_until(Instant::now() + Duration::from_millis(number % 3));
    }
    (told, None)
}

/// The fingerprints of the requests that a run holds with their whole reply, and how many exchanges
/// it holds without one. The only function here that knows how a recording is read.
fn recorded(run: &Path) -> Result<(BTreeSet<u64>, u64), RecordingError> {
    let recording = recording::read(run)?;
    let kept = recording.trajectory.steps.iter().filter_map(|step| {
        let ask = Ask::of(&step.request)?;
        let attempt = step.attempts.iter().find(|attempt| attempt.cause == Some(CloseCause::Complete))?;
        (attempt.reply.as_ref() == ask.expected()).then_some(ask.fingerprint)
    });
    Ok((kept.collect(), recording.open_exchanges))
}
