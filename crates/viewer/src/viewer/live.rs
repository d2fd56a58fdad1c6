//! A run while it is written, by whatever process: its files are looked at, and rows that changed are told.
//!
//! The id of an event is the number of records that were read, so that a page that lost its connection goes on where it
//! was. Nothing is asked of whoever writes the run: it may be another program, on another machine's disk, or killed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    library::ViewerLibrary,
    no_answer::NoAnswer,
    opened::OpenedRun,
    skeleton::{self, SkeletonAgents},
    stamp::stamp,
};
use crate::{recording::Masked, viewer::data};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// A sign of life for whatever stands between.
const SIGN: Duration = Duration::from_secs(15);
/// Reading again may take this part of the time.
const SHARE: u32 = 4;

/// What was told last.
struct LiveSnapshot {
    position: u64,
    head: Value,
}

/// Follows a run from a position of its log: a first event with the rows from there on, then one a change.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub(super) async fn follow(
    library: Arc<ViewerLibrary>,
    run: String,
    from: u64,
) -> Result<mpsc::Receiver<Masked>, NoAnswer> {
    let (sender, receiver) = mpsc::channel(16);
    let (opened, took) = open(&library, &run).await?;
    let mut told = LiveSnapshot { position: from, head: Value::Null };
    tokio::spawn(async move {
        let mut seen = stamp(&opened.dir);
        let (mut opened, mut took) = (opened, took);
        let mut quiet = Instant::now();
        loop {
            if let Some(event) = told.next(&opened) {
                quiet = Instant::now();
                if sender.send(event).await.is_err() {
                    return;
                }
            } else if quiet.elapsed() > SIGN {
                quiet = Instant::now();
                if sender.send(Masked::fixed(b": here\n\n")).await.is_err() {
                    return;
                }
            }
            loop {
                tokio::select! {
                    () = sender.closed() => return,
                    () = tokio::time::sleep(LOOK.max(took * SHARE)) => {}
                }
                let now = stamp(&opened.dir);
                if now != seen {
                    seen = now;
                    break;
                }
                if quiet.elapsed() > SIGN {
                    break;
                }
            }
            // A run that cannot be read at this moment, because it is being sealed, can be at the next.
            if let Ok(again) = open(&library, &run).await {
                (opened, took) = again;
            }
        }
    });
    Ok(receiver)
}

async fn open(library: &Arc<ViewerLibrary>, run: &str) -> Result<(Arc<OpenedRun>, Duration), NoAnswer> {
    let (library, run) = (Arc::clone(library), run.to_owned());
    let began = Instant::now();
    // What was read of it is looked at here, too: that takes as long as reading it.
    let looked = move || library.open(&run).inspect(|opened| _ = opened.accounts());
    let opened = tokio::task::spawn_blocking(looked).await;
    let lost = || NoAnswer::Unreadable("the recording was not read: a defect of this program".to_owned());
    opened.map_err(|_| lost())?.map(|opened| (opened, began.elapsed()))
}

impl LiveSnapshot {
    /// What is new, as an event; `None` where nothing is.
    fn next(&mut self, opened: &OpenedRun) -> Option<Masked> {
        let position = skeleton::position(opened);
        let head = data::run_head(&opened.recording, &opened.accounts().account, opened.no_label());
        let head = data::as_value(&head);
        if position == self.position && head == self.head {
            return None;
        }
        let agents = SkeletonAgents::from_steps(opened.steps());
        let rows = skeleton::rows(opened, &agents, skeleton::touched(opened, self.position));
        let data = json!({"head": head, "agents": agents.names(), "rows": rows, "position": position});
        (self.position, self.head) = (position, head);
        Some(Masked::new(format!("id: {position}\ndata: {data}\n\n")))
    }
}
