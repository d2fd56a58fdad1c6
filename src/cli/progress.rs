//! How far a campaign is: a bar on a terminal, plain lines elsewhere.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use super::{Global, screen};
use crate::campaign::Progress;

/// The time between two lines that say how far a stage is, where there is no bar.
const SAY_EVERY: Duration = Duration::from_secs(30);

/// Shows progress on standard error.
pub(super) struct ShownProgress {
    bar: Mutex<Option<ProgressBar>>,
    far: Mutex<Far>,
    terminal: bool,
    quiet: bool,
    colour: clap::ColorChoice,
}

/// How far a stage is.
struct Far {
    name: String,
    parts: usize,
    done: usize,
    shown: usize,
    said: Instant,
}

impl Far {
    /// A part is done: a line, if the last one is long ago.
    fn advance(&mut self, shown: usize) -> Option<String> {
        self.done += 1;
        self.shown += shown;
        if self.said.elapsed() < SAY_EVERY {
            return None;
        }
        self.said = Instant::now();
        let Self { name, parts, done, shown, .. } = self;
        let shown = if *shown > 0 { format!("   {shown} shown so far") } else { String::new() };
        Some(format!("{name:<10}{done} of {parts}{shown}"))
    }
}

impl ShownProgress {
    pub(super) fn new(global: &Global) -> Self {
        let terminal = screen::draws() && !global.quiet;
        let far = Far { name: String::new(), parts: 0, done: 0, shown: 0, said: Instant::now() };
        Self { bar: Mutex::new(None), far: Mutex::new(far), terminal, quiet: global.quiet, colour: global.color }
    }

    /// Says a line while work goes on.
    pub(super) fn say(&self, line: &str) {
        let say = || screen::say(self.colour, line);
        match self.bar.lock().ok().and_then(|bar| bar.clone()) {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        self.replace(None);
    }

    fn replace(&self, next: Option<ProgressBar>) {
        if let Ok(mut bar) = self.bar.lock()
            && let Some(old) = std::mem::replace(&mut *bar, next)
        {
            old.finish_and_clear();
        }
    }
}

impl Progress for ShownProgress {
    fn stage(&self, name: &str, parts: usize) {
        if let Ok(mut far) = self.far.lock() {
            *far = Far { name: name.to_owned(), parts, done: 0, shown: 0, said: Instant::now() };
        }
        if !self.terminal {
            return;
        }
        let bar = ProgressBar::new(parts as u64).with_message(name.to_owned());
        if let Ok(style) =
            ProgressStyle::with_template("{msg:9} {wide_bar} {pos} of {len}  {elapsed} so far, about {eta} to go")
        {
            bar.set_style(style);
        }
        self.replace(Some(bar));
    }

    fn advance(&self, shown: usize) {
        if let Ok(mut far) = self.far.lock()
            && let Some(line) = far.advance(shown)
            && !self.terminal
            && !self.quiet
        {
            screen::say_at_once(&line);
        }
        if let Ok(bar) = self.bar.lock()
            && let Some(bar) = bar.as_ref()
        {
            bar.inc(1);
        }
    }

    fn done(&self, line: &str) {
        self.replace(None);
        if !self.quiet {
            screen::say(self.colour, line);
        }
    }
}
