//! How far a campaign is: a bar on a terminal, plain lines elsewhere.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{Global, screen};
use crate::campaign::Progress;

/// The time between two lines that say how far a stage is, where there is no bar.
const SAY_EVERY: Duration = Duration::from_secs(30);
/// How many characters the bar has.
const BAR: usize = 30;
/// Takes away the line that the cursor is in.
const ERASED: &str = "\r\x1b[K";

/// Shows progress on standard error.
pub(super) struct ShownProgress {
    /// Nothing between two stages.
    far: Mutex<Option<StageProgress>>,
    terminal: bool,
    quiet: bool,
    colour: clap::ColorChoice,
}

/// How far a stage is.
struct StageProgress {
    name: String,
    parts: usize,
    done: usize,
    shown: usize,
    began: Instant,
    printed_at: Instant,
}

impl StageProgress {
    /// A part is done: a line, if the last one is long ago.
    fn advance(&mut self, shown: usize) -> Option<String> {
        self.done += 1;
        self.shown += shown;
        if self.printed_at.elapsed() < SAY_EVERY {
            return None;
        }
        self.printed_at = Instant::now();
        let Self { name, parts, done, shown, .. } = self;
        let shown = if *shown > 0 { format!("   {shown} shown so far") } else { String::new() };
        Some(format!("{name:<10}{done} of {parts}{shown}"))
    }

    fn bar(&self, elapsed: Duration) -> String {
        let Self { name, parts, done, .. } = self;
        let full = (done * BAR / (*parts).max(1)).min(BAR);
        let bar = "█".repeat(full) + &"░".repeat(BAR - full);
        let left = elapsed.as_secs() * parts.saturating_sub(*done) as u64 / (*done).max(1) as u64;
        let left = if *done > 0 { format!(", about {} to go", time(left)) } else { String::new() };
        format!("{name:9} {bar} {done} of {parts}  {} so far{left}", time(elapsed.as_secs()))
    }
}

/// A time in words.
pub(super) fn time(seconds: u64) -> String {
    format!("{:#}", jiff::SignedDuration::from_secs(seconds.cast_signed()))
}

impl ShownProgress {
    pub(super) fn new(global: &Global) -> Self {
        let terminal = screen::draws() && !global.quiet;
        Self { far: Mutex::new(None), terminal, quiet: global.quiet, colour: global.color }
    }

    /// Says a line while work goes on.
    pub(super) fn say(&self, line: &str) {
        if !self.quiet {
            let far = self.far();
            self.erase(far.as_ref());
            screen::say(self.colour, line);
            self.draw(far.as_ref());
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        let mut far = self.far();
        self.erase(far.as_ref());
        *far = None;
    }

    /// A panic while the lock was held leaves at worst a bar that is not right.
    fn far(&self) -> MutexGuard<'_, Option<StageProgress>> {
        self.far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn erase(&self, far: Option<&StageProgress>) {
        if self.terminal && far.is_some() {
            screen::draw(ERASED);
        }
    }

    fn draw(&self, far: Option<&StageProgress>) {
        if let (true, Some(far)) = (self.terminal, far) {
            screen::draw(&format!("{ERASED}{}", far.bar(far.began.elapsed())));
        }
    }
}

impl Progress for ShownProgress {
    fn stage(&self, name: &str, parts: usize) {
        let mut far = self.far();
        self.erase(far.as_ref());
        let now = Instant::now();
        *far = Some(StageProgress { name: name.to_owned(), parts, done: 0, shown: 0, began: now, printed_at: now });
        self.draw(far.as_ref());
    }

    fn advance(&self, shown: usize) {
        let mut far = self.far();
        if let Some(line) = far.as_mut().and_then(|far| far.advance(shown))
            && !self.terminal
            && !self.quiet
        {
            screen::say_at_once(&line);
        }
        self.draw(far.as_ref());
    }

    fn done(&self, line: &str) {
        self.end();
        if !self.quiet {
            screen::say(self.colour, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_how_far_a_stage_is_and_how_long_it_may_take() {
        let now = Instant::now();
        let bar = |done, parts, seconds| {
            let far = StageProgress { name: "clean".to_owned(), parts, done, shown: 0, began: now, printed_at: now };
            far.bar(Duration::from_secs(seconds))
        };
        let (full, none) = ("█".repeat(BAR), "░".repeat(BAR));
        assert_eq!(bar(0, 4, 2), format!("clean     {none} 0 of 4  2s so far"));
        assert_eq!(bar(2, 4, 90).replace(['█', '░'], ""), "clean      2 of 4  1m 30s so far, about 1m 30s to go");
        assert_eq!(bar(4, 4, 3700), format!("clean     {full} 4 of 4  1h 1m 40s so far, about 0s to go"));
        assert_eq!(bar(0, 0, 0), format!("clean     {none} 0 of 0  0s so far"));
    }
}
