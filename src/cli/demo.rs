//! `aegis demo`: the whole job, on the embedded simulator.

use std::{io::IsTerminal, path::PathBuf, sync::Mutex};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::{Exit, Failure, Finished, Global, settings};
use crate::demo::{self, Progress};

/// Options of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Where logs/, dataset.jsonl and report.json go.
    #[arg(long, default_value = "demo-run", value_name = "DIR")]
    dir: PathBuf,
}

/// A bar on a terminal, plain lines elsewhere.
struct Shown {
    bar: Mutex<Option<ProgressBar>>,
    terminal: bool,
    quiet: bool,
}

impl Progress for Shown {
    fn stage(&self, name: &str, cells: usize) {
        if !self.terminal {
            return;
        }
        let bar = ProgressBar::new(cells as u64).with_message(name.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{msg:9} {wide_bar} {pos}/{len}  {elapsed} left {eta}") {
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

impl Shown {
    fn replace(&self, next: Option<ProgressBar>) {
        if let Ok(mut bar) = self.bar.lock()
            && let Some(old) = std::mem::replace(&mut *bar, next)
        {
            old.finish_and_clear();
        }
    }
}

pub(super) fn run(arguments: &DemoArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    let program = std::env::current_exe().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    let terminal = std::io::stderr().is_terminal() && !global.quiet;
    let shown = Shown { bar: Mutex::new(None), terminal, quiet: global.quiet };
    if !global.quiet {
        eprintln!("backend   embedded simulator (a scripted model, deterministic; no key, no network)");
    }
    let done = settings::block_on(demo::run(&arguments.dir, &program, &shown))?;
    let summary = done.map_err(|error| {
        let exit = match &error {
            demo::DemoError::Dir { .. } => Exit::Usage,
            demo::DemoError::Recording(_) => Exit::Recording,
            _ => Exit::Infrastructure,
        };
        Failure::new(exit, error)
    })?;
    if !global.quiet {
        let dir = arguments.dir.display();
        eprintln!("next      aegis show {dir}/logs/<run>          look at one");
        eprintln!("          aegis run -- python my_agents.py    record your own system");
    }
    let exit = if summary.verified() > 0 { Exit::Ok } else { Exit::Finding };
    Ok(Finished { exit, summary: summary.line(), data: summary.data() })
}
