//! How far a campaign is: a bar on a terminal, plain lines elsewhere.

use std::{io::IsTerminal, sync::Mutex};

use indicatif::{ProgressBar, ProgressStyle};

use super::Global;
use crate::campaign::Progress;

/// Shows progress on standard error.
pub(super) struct ShownProgress {
    bar: Mutex<Option<ProgressBar>>,
    terminal: bool,
    quiet: bool,
}

impl ShownProgress {
    pub(super) fn new(global: &Global) -> Self {
        let terminal = std::io::stderr().is_terminal() && !global.quiet;
        Self { bar: Mutex::new(None), terminal, quiet: global.quiet }
    }

    /// Says a line while work goes on.
    pub(super) fn say(&self, line: &str) {
        let say = || eprintln!("{line}");
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
    fn stage(&self, name: &str, cells: usize) {
        if !self.terminal {
            return;
        }
        let bar = ProgressBar::new(cells as u64).with_message(name.to_owned());
        if let Ok(style) =
            ProgressStyle::with_template("{msg:9} {wide_bar} {pos} of {len}  {elapsed} so far, about {eta} to go")
        {
            bar.set_style(style);
        }
        self.replace(Some(bar));
    }

    fn advance(&self) {
        if let Ok(bar) = self.bar.lock()
            && let Some(bar) = bar.as_ref()
        {
            bar.inc(1);
        }
    }

    fn done(&self, line: &str) {
        self.replace(None);
        if !self.quiet {
            eprintln!("{line}");
        }
    }
}
