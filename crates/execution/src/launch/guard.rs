//! No orphans, even where we are killed: a child of such a parent would call a proxy that is gone for ever.
//!
//! One shell for all children waits at the end of a pipe and is told which groups are at work. When the pipe closes, it ends
//! those that are left. (A signal at the parent's death, `PR_SET_PDEATHSIG`, must be asked for between `fork` and `exec`,
//! which takes `unsafe`, and would reach the child alone.)

use std::{
    io::Write,
    os::unix::process::CommandExt,
    process::{ChildStdin, Command, Stdio},
    sync::{LazyLock, Mutex, PoisonError},
};

use nix::unistd::Pid;

const SCRIPT: &str = r#"trap '' HUP INT TERM
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) groups="${groups%% "$group" *} ${groups#* "$group" }" ;;
  esac
done
set -- $groups
[ $# -gt 0 ] || exit 0
for group; do kill -TERM "-$group"; done
sleep 5
for group; do kill -KILL "-$group"; done"#;

/// The pipe to the shell. Without a shell there is no guard, and children run all the same.
static SHELL: LazyLock<Mutex<Option<ChildStdin>>> = LazyLock::new(|| {
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT, "aegis-guard"]);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    Mutex::new(shell.spawn().ok().and_then(|mut shell| shell.stdin.take()))
});

fn tell(sign: char, group: Pid) {
    let mut shell = SHELL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pipe) = shell.as_mut() {
        // A shell that somebody killed guards nothing; the children run all the same.
        let _ = writeln!(pipe, "{sign} {group}");
    }
}

/// Starts the shell, so that a child that has started is only one short write away from being guarded. (What is killed
/// between the two leaves its child behind: a child's number is not known before it runs.)
pub(super) fn ready() {
    LazyLock::force(&SHELL);
}

/// Ends a group once we are gone, until it is dropped: the group has ended then, and its number may soon be another's.
pub(super) struct Guard(Pid);

impl Guard {
    /// Guards a group.
    pub(super) fn over(group: Pid) -> Self {
        tell('+', group);
        Self(group)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        tell('-', self.0);
    }
}
