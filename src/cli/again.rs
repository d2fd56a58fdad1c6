//! The recorded command of a run: the line to type, and the command itself for whoever says `--again`.

use std::{
    ffi::OsString,
    fmt::Write,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{Exit, Failure, escape, typed::TypedLine};
use crate::{
    execution::{Judge, Program},
    launch::{shell_line, shell_word},
    recording::{self, Launched, MachineKey},
};

/// The option of verbs that execute a recorded run's command.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct AgainArgs {
    /// Execute the recorded command in its recorded directory.
    #[arg(long, conflicts_with = "command")]
    pub(super) again: bool,
}

/// How a run was started, as far as its record says it.
#[derive(Debug)]
pub(super) struct HowStarted {
    run_dir: PathBuf,
    launched: Option<Launched>,
    /// Whether this user recorded it on this machine: what another one recorded is not believed unasked.
    made_here: bool,
}

impl HowStarted {
    /// Reads it of a recorded run.
    ///
    /// # Errors
    /// The directory holds no recorded run.
    pub(super) fn read(run_dir: &Path) -> Result<Self, Failure> {
        let manifest = recording::read_manifest(run_dir)?;
        let made_here = manifest.is_made_here();
        Ok(Self { run_dir: run_dir.to_owned(), launched: manifest.launched, made_here })
    }

    /// Says what `--again` executes, before anything of it is.
    pub(super) fn say(&self, again: AgainArgs, quiet: bool) {
        let Some(launched) = self.launched.as_ref().filter(|_| again.again && !quiet) else { return };
        let command = shell_line(&launched.command);
        let place = launched.directory.as_ref().map(|directory| format!("  in {directory}")).unwrap_or_default();
        talkln!("{}", escape(&format!("executes {command}{place}")));
    }

    /// The run's directory.
    pub(super) fn dir(&self) -> &Path {
        &self.run_dir
    }

    /// Whether the live calls of an execution may go where the recorded ones went.
    pub(super) fn is_made_here(&self) -> bool {
        self.made_here
    }

    /// Refuses what somebody else recorded.
    fn require_made_here(&self, verb: &str) -> Result<(), Failure> {
        let Some(launched) = self.launched.as_ref().filter(|_| !self.made_here) else { return Ok(()) };
        if MachineKey::of_user().is_none() {
            let error = "nothing tells which recordings are yours: `aegis/machine.key` can be neither read nor made";
            let hint = "set XDG_CONFIG_HOME to a directory of yours, and record the run anew";
            return Err(Failure::new(Exit::Usage, error).hint(hint));
        }
        let run = self.run_dir.display();
        let command = shell_line(&launched.command);
        let error = format!("`{run}` was not recorded by you on this machine: `--again` would execute `{command}`");
        let line = self.line(verb, &self.options_text(verb)).unwrap_or_default();
        Err(Failure::new(Exit::Usage, error).hint(format!("if that is what you want, name the command: {line}")))
    }

    /// The `aegis.toml` that was read for the run, if it is still there, and the run was recorded here.
    pub(super) fn config(&self) -> Option<PathBuf> {
        let config = PathBuf::from(self.launched.as_ref()?.config.as_ref()?);
        (self.made_here && config.is_file()).then_some(config)
    }

    /// What judged the run; `None` where nothing but its program's end did.
    ///
    /// # Errors
    /// Nobody can judge so again.
    pub(super) fn judge(&self) -> Result<Option<Judge>, Failure> {
        let judged = self.launched.as_ref().and_then(|launched| launched.check.as_ref());
        if judged.is_some() && !self.made_here {
            let error = format!(
                "`{}` was not recorded by you on this machine: what judged it is not run unasked",
                self.run_dir.display()
            );
            return Err(
                Failure::new(Exit::Usage, error).hint("--check CMD judges it: exit code 0 is success, 1 failure")
            );
        }
        let Some(check) = self.launched.as_ref().and_then(|launched| launched.check.as_ref()) else { return Ok(None) };
        let judge = Judge::of_record(check).map_err(|why| {
            let error = format!("`{}` cannot be judged again as it was: {why}", self.run_dir.display());
            Failure::new(Exit::Usage, error)
                .hint("--check CMD judges it another way: exit code 0 is success, 1 failure")
        });
        judge.map(Some)
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
        if !launched.environment.is_empty() {
            line.push_str(" env");
        }
        for (name, value) in &launched.environment {
            let _ = write!(line, " {}", shell_word(&format!("{name}={value}")));
        }
        launched.command.iter().for_each(|argument| {
            let _ = write!(line, " {}", shell_word(argument));
        });
        Some(line)
    }

    /// The line to type for a run whose record holds no command.
    fn unknown(&self, verb: &str) -> String {
        let (run, said) = (shell_word(&self.run_dir.to_string_lossy()), self.options_text(verb));
        format!("aegis {verb} {run}{}{said} -- CMD", if said.is_empty() { "" } else { " " })
    }

    /// What the line that was typed says beside the verb, the run and `--again`: a line to type in its place says it again.
    fn options_text(&self, verb: &str) -> String {
        let run = self.run_dir.to_string_lossy();
        TypedLine::of_process()
            .options_of(verb, &run)
            .map(|line| line.without("--again", false).words())
            .unwrap_or_default()
    }

    /// The program to execute: the one given, or the recorded one where `--again` says so; `None` where nothing is said.
    ///
    /// # Errors
    /// `--again`, and the record holds no command, or one of which a secret is masked.
    pub(super) fn program(&self, given: &[OsString], again: AgainArgs, verb: &str) -> Result<Option<Program>, Failure> {
        if !again.again {
            let given = (!given.is_empty()).then(|| Program { command: given.to_vec(), ..Program::default() });
            return Ok(given);
        }
        let run = self.run_dir.display();
        let Some(launched) = &self.launched else {
            let error = format!("`{run}` holds no command: Aegis did not start its program, or an older version did");
            return Err(Failure::new(Exit::Usage, error).hint(self.unknown(verb)));
        };
        self.require_made_here(verb)?;
        if launched.masked {
            let error = format!("the command of `{run}` held a secret, which is masked: it cannot be run as recorded");
            let line = self.line(verb, &self.options_text(verb)).unwrap_or_default();
            return Err(Failure::new(Exit::Usage, error).hint(format!("put the secret in: {line}")));
        }
        let command = launched.command.iter().map(OsString::from).collect();
        let directory = launched.directory.as_ref().map(PathBuf::from);
        Ok(Some(Program { command, directory, environment: launched.environment.clone(), ..Program::default() }))
    }

    /// As [`HowStarted::program`], for a verb that can do nothing without one.
    ///
    /// # Errors
    /// As there; or nothing is said: the hint is the line to type.
    pub(super) fn required(&self, given: &[OsString], again: AgainArgs, verb: &str) -> Result<Program, Failure> {
        self.program(given, again, verb)?.ok_or_else(|| {
            let line = self.line(verb, &self.options_text(verb)).unwrap_or_else(|| self.unknown(verb));
            let error = "no command was given: expected `-- CMD [ARG]…`, or `--again` for the recorded one";
            Failure::new(Exit::Usage, error).hint(line)
        })
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
        let directory = directory.map(str::to_owned);
        let launched = Launched { command, directory, upstream, masked, ..Launched::default() };
        HowStarted { run_dir: PathBuf::from("logs/x"), launched: Some(launched), made_here: true }
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
        assert_eq!((given.command, given.directory), (vec!["cat".into()], None));
        let ran = recorded.required(&[], SAID, "fork").expect("recorded");
        assert_eq!((ran.command, ran.directory), (vec!["ls".into()], Some("/tmp".into())));
        let failure = recorded.required(&[], UNSAID, "fork").expect_err("nothing is said");
        assert!(failure.hint.expect("a hint").ends_with("-- ls"));
    }

    #[test]
    fn what_cannot_run_says_why() {
        let failure = again(&["ls", "***"], None, true).program(&[], SAID, "replay").expect_err("masked");
        assert!(failure.error.to_string().contains("which is masked"), "{}", failure.error);
        let unknown = HowStarted { run_dir: PathBuf::from("logs/x"), launched: None, made_here: true };
        let failure = unknown.program(&[], SAID, "replay").expect_err("unknown");
        assert_eq!(failure.hint.as_deref(), Some("aegis replay logs/x -- CMD"));
    }
}
