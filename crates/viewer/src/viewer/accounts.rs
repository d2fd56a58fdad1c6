//! How much of a run was read, for its page and for lists. What is looked at is bounded: the requests of a growing conversation are
//! as long together as the square of its length.

use std::path::Path;

use super::opened::OpenedRun;
use crate::{
    recording,
    surface::account::{self, RunAccount},
};

/// Requests of one run that its page looks at, in bytes: once where it is sealed, after each change where it is being written.
const SEALED_MAX: u64 = 32 << 20;
const OPEN_MAX: u64 = 2 << 20;

/// How much of each step of a run was read, and of the run.
#[derive(Debug)]
pub(super) struct ReadSteps {
    /// By the steps' positions: `read`, `partly read`, `unread`.
    pub(super) words: Vec<&'static str>,
    /// All of them, counted.
    pub(super) account: RunAccount,
    /// Bytes of the requests that were looked at.
    pub(super) bytes: u64,
}

impl ReadSteps {
    /// Looks at a run for its page.
    pub(super) fn for_page(opened: &OpenedRun) -> Self {
        Self::of(opened, if opened.recording.sealed { SEALED_MAX } else { OPEN_MAX })
    }

    /// Looks at the steps of a run: at every reply, which is held anyway, and at requests up to so many bytes.
    pub(super) fn of(opened: &OpenedRun, room: u64) -> Self {
        let mut read = Self { words: Vec::new(), account: RunAccount::default(), bytes: 0 };
        for (at, bare) in opened.steps().iter().enumerate() {
            let whole = (read.bytes < room).then(|| opened.at(at)).flatten();
            let account = account::of_step(whole.as_ref().unwrap_or(bare));
            match whole {
                Some(step) => read.bytes = read.bytes.saturating_add(step.request.len() as u64),
                None => read.account.requests_left_out += 1,
            }
            read.account.add(&account);
            read.words.push(account.words());
        }
        read
    }
}

/// How many steps of a sealed run were read, where there is room to look at it. `room`: how much of logs and requests may still be
/// looked at, in bytes.
pub(super) fn account_of(dir: &Path, room: &mut u64) -> Option<RunAccount> {
    let length = recording::read_seal(dir).ok().flatten()?.log_bytes;
    *room = room.checked_sub(length)?;
    let read = ReadSteps::of(&OpenedRun::read(dir).ok()?, *room);
    *room = room.saturating_sub(read.bytes);
    Some(read.account)
}
