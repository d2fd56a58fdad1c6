//! Namespaces of its own for a check: no network, no other processes, and nothing that outlives it.

use std::{
    ffi::OsString,
    process::{Command, Stdio},
    sync::LazyLock,
};

/// util-linux's way into new namespaces, as the user that calls it.
const UNSHARE: [&str; 9] =
    ["unshare", "--user", "--map-current-user", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// The first process of the namespaces. It ends what it started when it is told to end, and the system ends the rest with
/// it; a process that leaves its group too.
const FIRST: &str = "exec 3<&0; trap 'kill -9 -1; exit 143' TERM; sh -c \"$1\" <&3 3<&- & wait $!; exit $?";
/// Most processes, so that one that multiplies does not take the machine with it.
const PROCESSES: u32 = 2048;

/// Whether this system has it; tried once.
static IS_THERE: LazyLock<bool> = LazyLock::new(|| {
    let mut command = Command::new("unshare");
    command.args(UNSHARE.iter().skip(1)).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
});

/// Whether checks run in namespaces of their own here.
pub(super) fn is_there() -> bool {
    *IS_THERE
}

/// What is known of the sandbox here, in words.
pub fn words() -> &'static str {
    if is_there() {
        "a check runs without network, sees no other process and leaves none behind; it reads and writes files as you do"
    } else {
        "no sandbox here (`unshare` of util-linux with user namespaces is wanted): a check has all rights that you have"
    }
}

/// A line of the shell, in its sandbox where there is one, after these words that set its environment.
pub(super) fn command(environment: Vec<OsString>, line: &str) -> Vec<OsString> {
    if !is_there() {
        return [environment, vec!["sh".into(), "-c".into(), line.into()]].concat();
    }
    let line = format!("ulimit -p {PROCESSES} 2>/dev/null || ulimit -u {PROCESSES} 2>/dev/null; {line}");
    let first = ["sh", "-c", FIRST, "sh", &line].map(OsString::from);
    [UNSHARE.map(OsString::from).to_vec(), environment, first.to_vec()].concat()
}
