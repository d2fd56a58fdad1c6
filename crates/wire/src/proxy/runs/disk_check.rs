//! Whether the disk takes recordings, looked at seldom.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use tokio::sync::Mutex;

use crate::recording;

/// How long it holds what was seen of the disk.
const SEEN_FOR: Duration = Duration::from_secs(1);

/// What was last seen of the disk.
#[derive(Debug, Default)]
pub(in crate::proxy) struct DiskCheck(Mutex<Option<(Instant, bool)>>);

impl DiskCheck {
    /// Whether recordings can be made below this directory. Looked at once a second at most, however many ask.
    pub(in crate::proxy) async fn has_room(&self, log_dir: PathBuf) -> bool {
        // Only those wait that ask the same.
        let mut seen = self.0.lock().await;
        if let Some((at, has_room)) = *seen
            && at.elapsed() < SEEN_FOR
        {
            return has_room;
        }
        let checked = tokio::task::spawn_blocking(move || recording::check_room(&log_dir)).await;
        let has_room = matches!(checked, Ok(Ok(())));
        *seen = Some((Instant::now(), has_room));
        has_room
    }
}
