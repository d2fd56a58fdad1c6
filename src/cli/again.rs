//! The recorded command of a run: the line to type, and the command itself for whoever says `--again`.

use std::{
    ffi::OsString,
    fmt::Write,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{Exit, Failure};
use crate::{
    launch::{Launch, shell_word},
    recording::{self, Launched},
};

/// The option of verbs that execute a recorded run's command.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct AgainArgs {
    /// Run the recorded command, in the directory that it was recorded in.
    #[arg(long, conflicts_with = "command")]
    again: bool,
}

/// A command and where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// Program and arguments.
    pub(super) command: Vec<OsString>,
    /// The working directory; ours, if none.
    pub(super) directory: Option<PathBuf>,
}

/// How a run was started, as far as its record says it.
#[derive(Debug)]
pub(super) struct HowStarted {
    run_dir: PathBuf,
    launched: Option<Launched>,
}

#[allow(dead_code, reason = "verbs that need an upstream or a command ask for them here")]
impl HowStarted {
    /// Reads it of a recorded run.
    ///
    /// # Errors
    /// The directory holds no recorded run.
    pub(super) fn of(run_dir: &Path) -> Result<Self, Failure> {
        let launched = recording::read_manifest(run_dir)?.launched;
        Ok(Self { run_dir: run_dir.to_owned(), launched })
    }

    /// The base URL that the run's calls went to, or `simulator`; `None` where the record does not say it, or where a
    /// part of it is masked.
    pub(super) fn upstream(&self) -> Option<&str> {
        self.launched.as_ref()?.upstream.as_deref().filter(|upstream| !upstream.contains("***"))
    }

    /// The line that executes the recorded command with a verb, for a shell; `verb` stands before the run's directory,
    /// `options` behind it. `None` where the record holds no command.
    pub(super) fn line(&self, verb: &str, options: &str) -> Option<String> {
        let launched = self.launched.as_ref()?;
        let elsewhere = launched.directory.as_ref().filter(|directory| !is_here(directory));
        let mut line = String::new();
        let mut run_dir = self.run_dir.clone();
        if let Some(directory) = elsewhere {
            let _ = write!(line, "cd {} && ", shell_word(directory));
            run_dir = std::path::absolute(&run_dir).unwrap_or(run_dir);
        }
        let _ = write!(line, "aegis {verb} {}", shell_word(&run_dir.to_string_lossy()));
        for word in [options, "--"].into_iter().filter(|word| !word.is_empty()) {
            let _ = write!(line, " {word}");
        }
        launched.command.iter().for_each(|argument| {
            let _ = write!(line, " {}", shell_word(argument));
        });
        Some(line)
    }

    /// The program to execute: the one given, or the recorded one where `--again` says so; `None` where nothing is said.
    ///
    /// # Errors
    /// `--again`, and the record holds no command, or one of which a secret is masked.
    pub(super) fn program(&self, given: &[OsString], again: AgainArgs, verb: &str) -> Result<Option<Program>, Failure> {
        if !again.again {
            let given = (!given.is_empty()).then(|| Program { command: given.to_vec(), directory: None });
            return Ok(given);
        }
        let run = self.run_dir.display();
        let Some(launched) = &self.launched else {
            let error = format!("`{run}` holds no command: `aegis run` did not start it, or an older version did");
            return Err(Failure::new(Exit::Usage, error).hint(format!("aegis {verb} {run} -- CMD")));
        };
        if launched.masked {
            let error = format!("the command of `{run}` held a secret, which is masked: it cannot be run as recorded");
            let line = self.line(verb, "").unwrap_or_default();
            return Err(Failure::new(Exit::Usage, error).hint(format!("put the secret in: {line}")));
        }
        let command = launched.command.iter().map(OsString::from).collect();
        Ok(Some(Program { command, directory: launched.directory.as_ref().map(PathBuf::from) }))
    }

    /// As [`HowStarted::program`], for a verb that can do nothing without one.
    ///
    /// # Errors
    /// As there; or nothing is said: the hint is the line to type.
    pub(super) fn required(&self, given: &[OsString], again: AgainArgs, verb: &str) -> Result<Program, Failure> {
        self.program(given, again, verb)?.ok_or_else(|| {
            let line = self.line(verb, "").unwrap_or_else(|| format!("aegis {verb} {} -- CMD", self.run_dir.display()));
            let error = "no command was given: expected `-- CMD [ARG]…`, or `--again` for the recorded one";
            Failure::new(Exit::Usage, error).hint(line)
        })
    }
}

impl Program {
    /// As a child to be started.
    pub(super) fn launch(self) -> Launch {
        Launch { directory: self.directory, ..Launch::of(self.command) }
    }
}

/// What is kept of a command that is about to be started here.
pub(super) fn launched(command: &[OsString], upstream: &str) -> Launched {
    let text = |argument: &OsString| argument.to_string_lossy().into_owned();
    Launched {
        command: command.iter().map(text).collect(),
        directory: std::env::current_dir().ok().map(|directory| directory.to_string_lossy().into_owned()),
        upstream: Some(upstream.to_owned()),
        masked: command.iter().any(|argument| argument.to_str().is_none()),
    }
}

fn is_here(directory: &str) -> bool {
    std::env::current_dir().is_ok_and(|here| here == Path::new(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(command: &[&str], directory: Option<&str>, masked: bool) -> HowStarted {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        let upstream = Some("simulator".to_owned());
        let launched = Launched { command, directory: directory.map(str::to_owned), upstream, masked };
        HowStarted { run_dir: PathBuf::from("logs/x"), launched: Some(launched) }
    }

    const SAID: AgainArgs = AgainArgs { again: true };
    const UNSAID: AgainArgs = AgainArgs { again: false };

    #[test]
    fn the_line_is_one_that_a_shell_reads_back() {
        let here = std::env::current_dir().expect("a directory");
        let said = again(&["python", "mas.py", "--task", "Ada's 3 pears"], here.to_str(), false);
        let line = said.line("fork", "--at 3").expect("a line");
        assert_eq!(line, r"aegis fork logs/x --at 3 -- python mas.py --task 'Ada'\''s 3 pears'");
        let line = again(&["ls", ""], Some("/some where"), false).line("replay", "").expect("a line");
        let run = here.join("logs/x");
        assert_eq!(
            line,
            format!("cd '/some where' && aegis replay {} -- ls ''", shell_word(run.to_str().expect("text")))
        );
    }

    #[test]
    fn the_recorded_command_runs_only_where_it_is_asked_for() {
        let recorded = again(&["ls"], Some("/tmp"), false);
        assert_eq!(recorded.program(&[], UNSAID, "replay").expect("nothing wrong"), None);
        let given = recorded.required(&["cat".into()], UNSAID, "fork").expect("given");
        assert_eq!(given, Program { command: vec!["cat".into()], directory: None });
        let ran = recorded.required(&[], SAID, "fork").expect("recorded");
        assert_eq!(ran, Program { command: vec!["ls".into()], directory: Some("/tmp".into()) });
        let failure = recorded.required(&[], UNSAID, "fork").expect_err("nothing is said");
        assert!(failure.hint.expect("a hint").ends_with("-- ls"));
    }

    #[test]
    fn what_cannot_run_says_why() {
        let failure = again(&["ls", "***"], None, true).program(&[], SAID, "replay").expect_err("masked");
        assert!(failure.error.to_string().contains("which is masked"), "{}", failure.error);
        let unknown = HowStarted { run_dir: PathBuf::from("logs/x"), launched: None };
        let failure = unknown.program(&[], SAID, "replay").expect_err("unknown");
        assert_eq!(failure.hint.as_deref(), Some("aegis replay logs/x -- CMD"));
    }
}
