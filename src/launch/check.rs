//! What a command achieved: by a check if there is one, else by the command's own end.

use std::path::Path;

use nix::sys::signal::Signal;

use super::{Ended, Ending, Launch, LaunchError};
use crate::trajectory::{Outcome, Reason, Verdict};

/// Longest excerpt of a check's output that is kept as evidence, in characters.
const EVIDENCE_MAX: usize = 400;

/// Judges a command that has ended. A check is run by `sh -c`, the command's output on its standard input,
/// `AEGIS_RUN_DIR` set to `run_dir`: exit code 0 is success, 1 failure, anything else unknown. `stop` resolving ends
/// the check early.
///
/// # Errors
/// [`LaunchError`] when the check cannot be run.
pub async fn judge(
    ended: &Ended,
    check: Option<&str>,
    run_dir: &Path,
    stop: impl Future<Output = Signal>,
) -> Result<Outcome, LaunchError> {
    let by_itself = |verdict, reason, evidence: String| Outcome { verdict, reason: Some(reason), evidence };
    match (ended.ending, check) {
        (Ending::TimedOut, _) => {
            Ok(by_itself(Verdict::Failure, Reason::Timeout, "the command ran out of time".to_owned()))
        }
        (Ending::Interrupted, _) => Ok(by_itself(Verdict::Unknown, Reason::Exit, "interrupted".to_owned())),
        (_, Some(check)) => {
            let dir = std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned());
            let launch = Launch {
                environment: vec![("AEGIS_RUN_DIR".to_owned(), dir.display().to_string())],
                input: Some(ended.output.clone()),
                ..Launch::shell(check)
            };
            let checked = launch.run(stop).await?;
            let said: String = String::from_utf8_lossy(&checked.output).trim().chars().take(EVIDENCE_MAX).collect();
            let verdict = match checked.ending {
                Ending::Exited(0) => Verdict::Success,
                Ending::Exited(1) => Verdict::Failure,
                _ => Verdict::Unknown,
            };
            let ending = describe(checked.ending);
            let evidence = if said.is_empty() { format!("check {ending}") } else { format!("check {ending}: {said}") };
            Ok(by_itself(verdict, Reason::Check, evidence))
        }
        (Ending::Exited(0), None) => Ok(Outcome::default()),
        (ending, None) => Ok(by_itself(Verdict::Failure, Reason::Exit, format!("command {}", describe(ending)))),
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
