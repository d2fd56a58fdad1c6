//! How a verb ends: the exit code, the last line, what went wrong.

use crate::cli::printed::{NoData, PrintedError, PrintedFailure, printed};
use std::{
    error::Error,
    fmt,
    io::{self, Write},
    path::Path,
};

use super::{
    Global, OutputFormat, escape,
    screen::{Colour, Screen},
    terminal,
};
use crate::{proxy::ProxyError, recording::RecordingError};

/// How a command ended (design: this table is final).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Ok,
    /// Something was found: a failed verdict, a difference, an injection that was never delivered.
    Finding,
    /// Wrong usage, plan or version.
    Usage,
    /// The upstream cannot be reached, or the child made no call.
    Infrastructure,
    /// The budget did not hold.
    Budget,
    /// The recording failed or is corrupt.
    Recording,
    /// Ended by this signal.
    Signal(u8),
    /// As the command that stands behind the verb: `mcp` is that command for its client.
    Command(u8),
}

impl Exit {
    /// Every end, as reference pages list them; of signals the two that people send.
    pub(super) const ALL: [Exit; 8] = [
        Exit::Ok,
        Exit::Finding,
        Exit::Usage,
        Exit::Infrastructure,
        Exit::Budget,
        Exit::Recording,
        Exit::Signal(2),
        Exit::Signal(15),
    ];

    /// How a verb ends that cannot open its run.
    pub(super) fn unopened(error: &ProxyError) -> Self {
        match error {
            ProxyError::Recording(error) if error.exit_code() == Self::Recording.code() => Self::Recording,
            _ => Self::Usage,
        }
    }

    /// When a verb ends so.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Exit::Ok => "success",
            Exit::Finding => {
                "a finding: a check that failed or cannot tell, a failed client verdict, a difference, an injection that \
                 was never delivered, a lint finding, a timeout"
            }
            Exit::Usage => "invalid usage, file or version, or a check that cannot be run",
            Exit::Infrastructure => "the upstream cannot be reached, or the command made no model call",
            Exit::Budget => "the budget did not hold",
            Exit::Recording => "the recording failed or is corrupt",
            Exit::Command(_) => "as the command of `mcp`",
            Exit::Signal(2) => "ended by Ctrl-C",
            Exit::Signal(_) => "ended by SIGTERM; a server ends with 0",
        }
    }

    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Finding => 1,
            Exit::Usage => 2,
            Exit::Infrastructure => 3,
            Exit::Budget => 4,
            Exit::Recording => 5,
            Exit::Signal(signal) => 128 + signal,
            Exit::Command(code) => code,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Exit::Ok => "ok",
            Exit::Finding => "finding",
            Exit::Usage => "usage",
            Exit::Infrastructure => "infrastructure",
            Exit::Budget => "budget",
            Exit::Recording => "recording",
            Exit::Signal(_) => "stopped",
            Exit::Command(_) => "command",
        }
    }
}

/// What a verb that does work has to say at its end.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// One line: what came of it.
    pub summary: String,
    /// The same as data, for `--format json`: an object, or null where the verb has written its own.
    pub data: serde_json::Value,
}

impl Finished {
    /// Of a verb that was ended before its end.
    pub(super) fn stopped(failure: &Failure) -> Self {
        Self { exit: failure.exit, summary: failure.error.to_string(), data: printed(&NoData {}) }
    }
}

/// Why a verb could not do its work.
#[derive(Debug)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// What went wrong.
    pub error: Box<dyn Error + Send + Sync>,
    /// What to type next.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with a message.
    pub fn new(exit: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit, error: error.into(), hint: None }
    }

    /// Says what to type next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Failure {
    /// Whether a reader of our output went away, which is no failure.
    pub(super) fn is_broken_pipe(&self) -> bool {
        let io = self.error.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// The same as data on standard output, where a program reads.
    pub(super) fn say_as_json(&self) {
        let (word, message) = (self.exit.word(), self.error.to_string());
        let data = PrintedFailure {
            error: PrintedError { code: word, message: &message, hint: self.hint.as_deref() },
            result: format!("{word} {}", message.lines().next().unwrap_or_default()),
            exit: self.exit.code(),
        };
        let _ = writeln!(terminal::stdout(), "{}", printed(&data));
    }

    /// What is said of it.
    pub(super) fn say(&self, colour: clap::ColorChoice) {
        super::logging::failed(&self.to_string(), colour);
    }
}

impl From<RecordingError> for Failure {
    fn from(error: RecordingError) -> Self {
        let exit = if error.exit_code() == Exit::Usage.code() { Exit::Usage } else { Exit::Recording };
        let hint = match &error {
            RecordingError::NotARun { path } => Some(where_runs_are(path)),
            _ => None,
        };
        Self { hint, ..Self::new(exit, error) }
    }
}

/// What to type where a path holds no run: the run of that name, if there is one in `logs`.
fn where_runs_are(path: &Path) -> String {
    let near = Path::new("logs").join(path);
    if near.join("run.json").is_file() {
        let word = crate::launch::shell_word(&near.to_string_lossy());
        return format!("did you mean `{}`? for example: aegis show {word}", near.display());
    }
    "`aegis runs [DIR]` lists the runs of a directory".to_owned()
}

/// What to type where a configuration is not there; `usual` is what one is called.
pub(super) fn absent_config(path: &Path, usual: &str) -> String {
    let here = std::env::current_dir().map(|here| format!(" (`{}`)", here.display())).unwrap_or_default();
    let shipped = ["examples", "plans", "tests"].iter().any(|name| path.starts_with(name));
    let local = (Path::new(usual) != path && Path::new(usual).is_file()).then(|| format!("did you mean `{usual}`? "));
    match local {
        _ if shipped => format!(
            "paths begin in the working directory{here}, and `{}` lies in a clone of Aegis' repository: `cd` into it and type \
             this there; or `aegis init DIR` writes first files, and `--config DIR/aegis.toml` names them",
            path.display()
        ),
        local => format!(
            "{}paths begin in the working directory{here}; `aegis init DIR` writes a first one, DIR/aegis.toml",
            local.unwrap_or_default()
        ),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", escape(&self.error.to_string()))?;
        let mut source = self.error.source();
        while let Some(error) = source {
            write!(formatter, "\n  caused by: {}", escape(&error.to_string()))?;
            source = error.source();
        }
        match &self.hint {
            Some(hint) => write!(formatter, "\nhint: {}", escape(hint)),
            None => Ok(()),
        }
    }
}

impl Finished {
    /// Says the result; the exit code comes from the same value.
    pub(super) fn say(self, global: &Global) -> Exit {
        let result = format!("{} {}", self.exit.word(), self.summary);
        if global.format == OutputFormat::Json && !self.data.is_null() {
            let mut data = self.data;
            if let Some(object) = data.as_object_mut() {
                object.insert("result".to_owned(), result.clone().into());
                object.insert("exit".to_owned(), self.exit.code().into());
            }
            let _ = writeln!(terminal::stdout(), "{data}");
        }
        let colour = if self.exit == Exit::Ok { Colour::Good } else { Colour::Bad };
        let word = Screen::of_talk(global.color).paint(colour, self.exit.word());
        super::logging::line(format_args!("RESULT  {word} {}", escape(&self.summary)));
        self.exit
    }
}

/// Writes text on standard output by `write`, its verdicts in their colours.
///
/// # Errors
/// As [`Write`]; a reader that went away is none ([`Failure::is_broken_pipe`]).
pub(super) fn write_painted(
    global: &Global,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed = |error| Failure::new(Exit::Infrastructure, error);
    let screen = Screen::stdout(global);
    let mut out = terminal::stdout();
    if !screen.has_colours() {
        return write(&mut out).map_err(failed);
    }
    let mut text = Vec::new();
    write(&mut text).map_err(failed)?;
    out.write_all(screen.painted(&String::from_utf8_lossy(&text)).as_bytes()).map_err(failed)
}
