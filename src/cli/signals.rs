//! The signals that end a verb: Ctrl-C, TERM, and HUP of a terminal that is closed.

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

/// Hears the signals that ask us to stop.
pub(super) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    /// Not where somebody (`nohup`) wants us to outlive the terminal.
    hangup: Option<unix::Signal>,
    ignored_hangup: bool,
}

impl Signals {
    /// Begins to listen; from now on they end nothing by themselves. `None` where the system refuses that.
    pub(super) fn listen() -> Option<Self> {
        Self::listen_to(!ignores_hangup())
    }

    /// The same for whoever does something else at a hang-up than to stop, and hears of it in any case.
    pub(super) fn listen_with_hangup() -> Option<Self> {
        Self::listen_to(true)
    }

    fn listen_to(hears_hangup: bool) -> Option<Self> {
        let ignored_hangup = ignores_hangup();
        let hear = |kind| unix::signal(kind).ok();
        let hangup = if hears_hangup { hear(SignalKind::hangup()) } else { None };
        let (interrupt, terminate) = (hear(SignalKind::interrupt())?, hear(SignalKind::terminate())?);
        Some(Self { interrupt, terminate, hangup, ignored_hangup })
    }

    /// Whether whoever started us wanted us to outlive the terminal.
    pub(super) fn ignored_hangup(&self) -> bool {
        self.ignored_hangup
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::SIGINT,
            _ = self.terminate.recv() => Signal::SIGTERM,
            _ = hangup => Signal::SIGHUP,
        }
    }
}

/// Resolves when we are asked to stop, from the call on.
pub(super) fn interrupted() -> impl Future<Output = Signal> {
    let signals = Signals::listen();
    async {
        match signals {
            Some(mut signals) => signals.next().await,
            None => std::future::pending().await,
        }
    }
}

/// The number of a signal.
pub(super) fn number(signal: Signal) -> u8 {
    u8::try_from(signal as i32).unwrap_or(0)
}

/// Whether whoever started us has a hang-up ignored: the system says so in a mask, a bit a signal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
