//! The terminal, lent to a child that reads it: a process group of its own may read only in the foreground, and Ctrl-C
//! and Ctrl-Z reach who stands there.

use std::{
    io::{IsTerminal, stdin},
    time::Duration,
};

use nix::{
    sys::{
        signal::{SigSet, SigmaskHow, Signal, kill, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp},
};
use tokio::{
    signal::unix::{self, SignalKind},
    time::timeout,
};

/// Longest wait for a stop of our own to take hold. A process group without a shell to resume it is never stopped.
const STOP: Duration = Duration::from_millis(200);

/// A terminal that is lent; it is taken back at the end.
pub(super) struct Terminal {
    ours: Pid,
    child: Pid,
}

impl Terminal {
    /// Lends it to a child's group, where our standard input is one and we stand in its foreground.
    pub(super) fn lend(child: Pid) -> Option<Self> {
        let terminal = Self { ours: getpgrp(), child };
        if !stdin().is_terminal() || tcgetpgrp(stdin()) != Ok(terminal.ours) {
            return None;
        }
        terminal.resume();
        Some(terminal)
    }

    fn resume(&self) {
        give(self.child);
        // It may have tried to read before the terminal was its own.
        let _ = killpg(self.child, Signal::SIGCONT);
    }

    /// Follows the child's stops for ever: who stops it (Ctrl-Z) stops us too, and it goes on when we do.
    pub(super) async fn follow_stops(&self) {
        let (Ok(mut changed), Ok(mut resumed)) = (unix::signal(SignalKind::child()), unix::signal(SIGCONT)) else {
            return std::future::pending().await;
        };
        loop {
            let stops = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
            if let Ok(WaitStatus::Stopped(..)) = waitid(Id::Pid(self.child), stops) {
                if tcgetpgrp(stdin()) != Ok(self.ours) {
                    give(self.ours);
                    // All of our group, as the terminal would have done.
                    let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
                    let _ = timeout(STOP, resumed.recv()).await;
                }
                if tcgetpgrp(stdin()) == Ok(self.ours) {
                    self.resume();
                } else {
                    let _ = killpg(self.child, Signal::SIGCONT);
                }
            }
            changed.recv().await;
        }
    }
}

const SIGCONT: SignalKind = SignalKind::from_raw(Signal::SIGCONT as i32);

impl Drop for Terminal {
    fn drop(&mut self) {
        if tcgetpgrp(stdin()) == Ok(self.child) {
            give(self.ours);
        }
    }
}

/// Who stands in the background is stopped for this, unless it blocks the signal.
fn give(group: Pid) {
    let former = SigSet::from(Signal::SIGTTOU).thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let _ = tcsetpgrp(stdin(), group);
    if let Ok(former) = former {
        let _ = former.thread_set_mask();
    }
}
