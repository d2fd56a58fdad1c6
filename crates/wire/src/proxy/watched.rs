//! Runs that are watched while they are under way: rules look at each exchange once its record is written.

use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;

use super::lock::locked;
use crate::{
    recording::Recorder,
    surface::{Reply, Surface},
    trajectory::{Attribution, RunId, StepIndex, WatchSign},
    watch::{RULES, WatchSettings, Watching, WireAnswer, WireExchange},
};

/// Hears of a sign as it is seen.
pub type SignListener = Box<dyn Fn(&RunId, &WatchSign) + Send + Sync>;

/// What all runs of a server are watched for, and who hears of it.
pub struct LiveWatch {
    settings: Arc<WatchSettings>,
    /// The names of the agents that a run may have.
    roster: Vec<String>,
    tell: SignListener,
    /// Signs of each rule so far, in the order of the list.
    counts: Vec<AtomicU64>,
}

impl std::fmt::Debug for LiveWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LiveWatch").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl LiveWatch {
    /// Watches for what the settings name. `roster`: the names of the agents that a run may have.
    pub fn new(settings: WatchSettings, roster: Vec<String>, tell: SignListener) -> Arc<Self> {
        let counts = RULES.iter().map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { settings: Arc::new(settings), roster, tell, counts })
    }

    /// Signs that were seen so far, by rule.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let watched: Vec<&str> = self.settings.names().collect();
        RULES
            .iter()
            .zip(&self.counts)
            .filter(move |(rule, _)| watched.contains(&rule.name))
            .map(move |(rule, seen)| (rule.name, count(seen)))
    }

    fn report(&self, run: &RunId, sign: &WatchSign) {
        if let Some(at) = RULES.iter().position(|rule| rule.name == sign.rule)
            && let Some(count) = self.counts.get(at)
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
        (self.tell)(run, sign);
    }
}

/// A run that is watched: its own lock, which no other run ever needs.
#[derive(Debug)]
pub(super) struct WatchedRun {
    live: Arc<LiveWatch>,
    watching: Mutex<Watching>,
    stopped: OnceLock<WatchSign>,
}

/// What is kept of a step until its record is written; nothing where its run is not watched.
#[derive(Debug, Default)]
pub(super) struct StepWatch(Option<(&'static dyn Surface, Bytes, Option<WatchedAnswer>)>);

/// An exchange that is to be looked at.
#[derive(Debug)]
pub(super) struct WatchedExchange {
    surface: &'static dyn Surface,
    request: Bytes,
    answered: WatchedAnswer,
}

/// What came of it.
#[derive(Debug)]
enum WatchedAnswer {
    Reply(Box<Reply>),
    Refused(Bytes),
}

impl StepWatch {
    /// What the upstream is asked.
    pub(super) fn note_sent_request(&mut self, is_watched: bool, surface: &'static dyn Surface, asked: &Bytes) {
        self.0 = is_watched.then(|| (surface, asked.clone(), None));
    }

    /// Whether anybody looks.
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What the client got.
    pub(super) fn replied(&mut self, reply: &Reply) {
        if let Some((.., answered)) = &mut self.0 {
            *answered = Some(WatchedAnswer::Reply(Box::new(reply.clone())));
        }
    }

    /// What the upstream said instead of an answer.
    pub(super) fn refused(&mut self, body: Bytes) {
        if let Some((.., answered)) = &mut self.0 {
            *answered = Some(WatchedAnswer::Refused(body));
        }
    }

    /// The exchange, once it has ended, with the length of what was asked.
    pub(super) fn take_exchange(&mut self) -> Option<(usize, WatchedExchange)> {
        let (surface, asked, answered) = self.0.take_if(|(.., answered)| answered.is_some())?;
        Some((asked.len(), WatchedExchange { surface, request: asked, answered: answered? }))
    }
}

impl WatchedRun {
    /// `stopped`: the sign that stopped it before its recording went on.
    pub(super) fn new(live: Arc<LiveWatch>, stopped: Option<WatchSign>) -> Self {
        let watching = Mutex::new(Watching::new(Arc::clone(&live.settings)));
        Self { live, watching, stopped: stopped.map(OnceLock::from).unwrap_or_default() }
    }

    /// The sign that stopped the run, if one did.
    pub(super) fn stopped(&self) -> Option<&WatchSign> {
        self.stopped.get()
    }

    /// Looks at an exchange; to be called when its record is written.
    pub(super) fn observe(
        &self,
        run: &RunId,
        recorder: &Recorder,
        step: StepIndex,
        who: &Attribution,
        heard: &WatchedExchange,
    ) {
        let exchange = WireExchange {
            step,
            agent: who.agent.as_str(),
            instance: who.instance,
            surface: heard.surface,
            request: &heard.request,
            answered: match &heard.answered {
                WatchedAnswer::Reply(reply) => WireAnswer::Reply(reply),
                WatchedAnswer::Refused(body) => WireAnswer::Refused(body),
            },
        };
        let signs = locked(&self.watching).observe(&exchange);
        self.tell(run, recorder, signs);
    }

    /// The run is over; to be called before it is sealed. Of a run that a rule stopped, its end says nothing.
    pub(super) fn end(&self, run: &RunId, recorder: &Recorder) {
        if self.stopped.get().is_some() {
            return;
        }
        let signs = locked(&self.watching).end(&self.live.roster);
        self.tell(run, recorder, signs);
    }

    fn tell(&self, run: &RunId, recorder: &Recorder, signs: Vec<WatchSign>) {
        for sign in signs {
            let sign = recorder.watch(&sign);
            self.live.report(run, &sign);
            if sign.stops {
                let _ = self.stopped.set(sign);
            }
        }
    }
}
