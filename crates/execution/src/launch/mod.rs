//! Child processes: their own process group, the terminal if they read it, the environment that points them at the proxy,
//! a time limit, no orphans.

mod environment;
mod guard;
mod terminal;
mod word;

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub use environment::{RUN_ADDRESS, environment, server_addresses};
use futures_util::FutureExt as _;
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};
pub use word::{shell_line, shell_word};

use self::{guard::Guard, terminal::Terminal};

use crate::trajectory::ProgramEnd;

/// How long a child may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How long output is waited for once the child and its group have ended: a process that left the group may hold it
/// open for ever.
const OUTPUT_WAIT: Duration = Duration::from_secs(2);
/// The end of a child's output that is kept for checks, in bytes.
const OUTPUT_MAX: usize = 4 << 20;
/// What to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Variables set beside the inherited ones.
    pub environment: Vec<(String, String)>,
    /// Working directory; the inherited one if none.
    pub directory: Option<PathBuf>,
    /// Longest run time.
    pub limit: Option<Duration>,
    /// What the child reads on its standard input; inherited if none.
    pub input: Option<Vec<u8>>,
    /// Where the child's standard output goes beside what is kept of it.
    pub echo: Echo,
    /// Whether the child's standard error is thrown away.
    pub hush: bool,
    /// The file that takes the child's standard error, whatever `hush` says.
    pub errors: Option<PathBuf>,
}

/// Whether a child's standard output is also shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    /// On our standard output.
    Stdout,
    /// On our standard error, where standard output is kept for data.
    Stderr,
    /// Not.
    Silent,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// It ran out of time and was ended.
    TimedOut,
    /// We were asked to stop, and ended it.
    Interrupted,
}

impl From<Ending> for ProgramEnd {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Exited(code) => ProgramEnd::Exited(code),
            Ending::Signalled(signal) => ProgramEnd::Signalled(signal),
            Ending::TimedOut => ProgramEnd::TimedOut,
            Ending::Interrupted => ProgramEnd::Interrupted,
        }
    }
}

/// A child that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub ending: Ending,
    /// Its standard output, or the end of it.
    pub output: Vec<u8>,
    /// The signal that interrupted it.
    pub interrupted: Option<Signal>,
}

/// Why there was no child.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is nothing to start.
    #[error("no command was given: expected `-- CMD [ARG]…`")]
    NoCommand,
    /// The program cannot be started.
    #[error("cannot start `{program}`")]
    Start {
        /// The program.
        program: String,
        /// What is wrong.
        source: io::Error,
    },
    /// The file for the program's standard error cannot be made.
    #[error("cannot write `{}`", path.display())]
    Errors {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// Waiting or reading failed.
    #[error("lost track of the child process")]
    Wait(#[source] io::Error),
}

impl Launch {
    /// A command with nothing special about it.
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            environment: Vec::new(),
            directory: None,
            limit: None,
            input: None,
            echo: Echo::Silent,
            hush: false,
            errors: None,
        }
    }

    /// A shell command line.
    pub fn shell(line: &str) -> Self {
        Self::new(vec!["sh".into(), "-c".into(), line.into()])
    }

    /// Starts the child and waits for its end. `stop` resolving ends it early, by the signal that it says. A child that
    /// reads our standard input has the terminal meanwhile, if that is one.
    ///
    /// # Errors
    /// [`LaunchError`] when it cannot be started or followed.
    pub async fn run(self, stop: impl Future<Output = Signal>) -> Result<Ended, LaunchError> {
        guard::ready();
        let mut child = self.start()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let guard = group.map(Guard::over);
        let terminal = group.filter(|_| self.input.is_none()).and_then(Terminal::lend);
        let kept = Arc::new(Mutex::new(Vec::new()));
        let mut output = tokio::spawn(follow(child.stdout.take(), self.echo, Arc::clone(&kept)));
        let input = tokio::spawn(feed(child.stdin.take(), self.input));
        let limit = self.limit.unwrap_or(Duration::MAX);
        let mut interrupted = None;
        let mut stop = std::pin::pin!(stop);
        let mut ending = tokio::select! {
            waited = timeout(limit, child.wait()) => match waited {
                Ok(status) => ending_of(status.map_err(LaunchError::Wait)?),
                Err(_) => Ending::TimedOut,
            },
            signal = &mut stop => {
                interrupted = Some(signal);
                Ending::Interrupted
            },
            () = stops(terminal.as_ref()) => Ending::Interrupted,
        };
        // A child that ended at the moment of the stop may have ended because of it.
        if interrupted.is_none()
            && let Some(signal) = stop.as_mut().now_or_never()
        {
            interrupted = Some(signal);
            ending = Ending::Interrupted;
        }
        if matches!(ending, Ending::TimedOut | Ending::Interrupted) {
            end(&mut child, group, interrupted.unwrap_or(Signal::SIGTERM)).await;
        }
        let ending = if terminal.is_some() && ending == Ending::Signalled(Signal::SIGINT as i32) {
            // Ctrl-C went to the child alone, and was meant for both.
            interrupted = Some(Signal::SIGINT);
            Ending::Interrupted
        } else {
            ending
        };
        // What the child left behind in its group would go on calling a proxy that is gone.
        signal(group, Signal::SIGKILL);
        drop(terminal);
        input.abort();
        match timeout(OUTPUT_WAIT, &mut output).await {
            Ok(read) => read.map_err(|error| LaunchError::Wait(error.into()))?.map_err(LaunchError::Wait)?,
            Err(_) => output.abort(),
        }
        drop(guard);
        let output = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Ended { ending, output, interrupted })
    }

    fn start(&self) -> Result<Child, LaunchError> {
        let (program, arguments) = self.command.split_first().ok_or(LaunchError::NoCommand)?;
        let mut command = Command::new(program);
        command.args(arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.process_group(0).kill_on_drop(true).stdout(Stdio::piped());
        command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::inherit() });
        if self.hush {
            command.stderr(Stdio::null());
        }
        if let Some(path) = &self.errors {
            let file =
                std::fs::File::create(path).map_err(|source| LaunchError::Errors { path: path.clone(), source })?;
            command.stderr(file);
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.spawn().map_err(|source| LaunchError::Start { program: program.to_string_lossy().into_owned(), source })
    }
}

/// An ending in words.
pub fn describe(ending: Ending) -> String {
    match ending {
        Ending::Exited(code) => format!("exited with {code}"),
        Ending::Signalled(signal) => format!("was ended by signal {signal}"),
        Ending::TimedOut => "ran out of time".to_owned(),
        Ending::Interrupted => "was interrupted".to_owned(),
    }
}

fn ending_of(status: ExitStatus) -> Ending {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signalled(signal),
        (None, None) => Ending::Signalled(0),
    }
}

/// Asks a child to end, and sees to it: at once where the user asks a second time.
async fn end(child: &mut Child, group: Option<Pid>, asked: Signal) {
    for sent in [asked, Signal::SIGTERM] {
        signal(group, sent);
        // One that was stopped must go on to end.
        signal(group, Signal::SIGCONT);
        let ended = tokio::select! {
            ended = timeout(GRACE, child.wait()) => ended.is_ok(),
            _ = tokio::signal::ctrl_c() => break,
        };
        if ended {
            return;
        }
        if asked == Signal::SIGTERM {
            break;
        }
    }
    signal(group, Signal::SIGKILL);
    let _ = child.wait().await;
}

async fn stops(terminal: Option<&Terminal>) {
    match terminal {
        Some(terminal) => terminal.follow_stops().await,
        None => std::future::pending().await,
    }
}

/// A group that is already gone needs no signal.
fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        let _ = killpg(group, signal);
    }
}

async fn feed(pipe: Option<tokio::process::ChildStdin>, input: Option<Vec<u8>>) {
    if let (Some(mut pipe), Some(input)) = (pipe, input) {
        // A child that does not read its input has not failed.
        let _ = pipe.write_all(&input).await;
    }
}

/// Shows a child's output as it comes and keeps its end.
async fn follow(pipe: Option<tokio::process::ChildStdout>, echo: Echo, kept: Arc<Mutex<Vec<u8>>>) -> io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut buffer = vec![0; 16 << 10];
    loop {
        let count = pipe.read(&mut buffer).await?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
        match echo {
            Echo::Stdout => show(&mut tokio::io::stdout(), bytes).await,
            Echo::Stderr => show(&mut tokio::io::stderr(), bytes).await,
            Echo::Silent => {}
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        if kept.len() > 2 * OUTPUT_MAX {
            let over = kept.len() - OUTPUT_MAX;
            kept.drain(..over);
        }
    }
}

/// A reader of our output that has gone does not end the child.
async fn show(to: &mut (impl AsyncWriteExt + Unpin), bytes: &[u8]) {
    let _ = to.write_all(bytes).await;
    let _ = to.flush().await;
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    use super::*;

    async fn run(line: &str, limit: Option<Duration>) -> Ended {
        Launch { limit, ..Launch::shell(line) }.run(std::future::pending()).await.expect("runs")
    }

    #[tokio::test]
    async fn endings() {
        let ended = run("echo hello; exit 3", None).await;
        assert_eq!((ended.ending, ended.output.as_slice()), (Ending::Exited(3), &b"hello\n"[..]));
        assert_eq!(run("kill -9 $$", None).await.ending, Ending::Signalled(9));
        let hung = run("sleep 60", Some(Duration::from_millis(200))).await;
        assert_eq!(hung.ending, Ending::TimedOut);
        let stopped = Launch::shell("sleep 60").run(std::future::ready(Signal::SIGTERM)).await.expect("runs");
        assert_eq!(stopped.ending, Ending::Interrupted);
    }

    #[tokio::test]
    async fn a_child_that_ends_at_the_moment_of_a_stop_was_interrupted() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pid");
        let launch = Launch::shell(&format!("echo $$ > {0}.new; mv {0}.new {0}; exit 1", file.display()));
        // Polled for the first time while the child lives, which has ended when that poll returns; ready at the next.
        let mut is_ended = false;
        let stop = std::future::poll_fn(move |context| {
            if is_ended {
                return std::task::Poll::Ready(Signal::SIGTERM);
            }
            let pid = std::iter::from_fn(|| Some(std::fs::read_to_string(&file).ok())).flatten().next();
            let pid = Pid::from_raw(pid.expect("a pid").trim().parse().expect("a number"));
            let as_it_lies = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
            waitid(Id::Pid(pid), as_it_lies).expect("the child ends");
            is_ended = true;
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        });
        let ended = launch.run(stop).await.expect("runs");
        assert_eq!((ended.ending, ended.interrupted), (Ending::Interrupted, Some(Signal::SIGTERM)));
    }

    #[tokio::test]
    async fn a_process_that_left_the_group_holds_nobody_up() {
        let begun = std::time::Instant::now();
        let ended = run("setsid sleep 40 & sleep 0.3; echo done", None).await;
        assert_eq!((ended.ending, ended.output.as_slice()), (Ending::Exited(0), &b"done\n"[..]));
        assert!(begun.elapsed() < Duration::from_secs(35));
    }

    #[tokio::test]
    async fn input_reaches_the_child() {
        let launch = Launch { input: Some(b"abc".to_vec()), ..Launch::shell("tr a-z A-Z") };
        assert_eq!(launch.run(std::future::pending()).await.expect("runs").output, b"ABC");
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let error =
            Launch::new(vec!["/no/such/program".into()]).run(std::future::pending()).await.expect_err("missing");
        assert_eq!(error.to_string(), "cannot start `/no/such/program`");
    }
}
