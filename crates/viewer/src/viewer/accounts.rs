//! How many steps of a run were read, for lists.

use std::path::Path;

use super::opened::{OpenedRun, ReadSteps};
use crate::{recording, surface::account::RunAccount};

/// How many steps of a sealed run were read, where there is room to look at it. `room`: how much of logs and requests may still be
/// looked at, in bytes.
pub(super) fn account_of(dir: &Path, room: &mut u64) -> Option<RunAccount> {
    let length = recording::read_seal(dir).ok().flatten()?.log_bytes;
    *room = room.checked_sub(length)?;
    let read = ReadSteps::read(&OpenedRun::read(dir).ok()?, *room);
    *room = room.saturating_sub(read.bytes);
    Some(read.account)
}
