//! No orphans, even where we are killed: a child of such a parent would call a proxy that is gone for ever.
//!
//! A shell waits at the end of a pipe. If the pipe closes without a word it ends the child's group. (A signal at the
//! parent's death, `PR_SET_PDEATHSIG`, must be asked for between `fork` and `exec`, which takes `unsafe`, and would reach
//! the child alone.)

use std::process::Stdio;

use nix::unistd::Pid;
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
};

const SCRIPT: &str = "trap '' HUP INT TERM; read -r _ && exit; kill -TERM \"-$1\"; sleep 5; kill -KILL \"-$1\"";

/// Ends a group once we are gone.
pub(super) struct Guard(Option<Child>);

impl Guard {
    /// Guards a group. Without a shell there is no guard, and the child runs all the same.
    pub(super) fn over(group: Pid) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "aegis-guard"]).arg(group.to_string());
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self(shell.spawn().ok())
    }

    /// The group has ended: its number may soon be another's.
    pub(super) async fn dismiss(self) {
        let Some(mut shell) = self.0 else { return };
        if let Some(mut pipe) = shell.stdin.take() {
            let _ = pipe.write_all(b"\n").await;
        }
        let _ = shell.wait().await;
    }
}
