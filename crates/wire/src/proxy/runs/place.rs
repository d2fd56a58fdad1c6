//! Where a run of a server is: under way, being put down, or taken out to be sealed.

use std::sync::Arc;

use tokio::sync::{OnceCell, watch};

use crate::proxy::run::Run;

/// Where a run is.
#[derive(Debug)]
pub(super) enum RunPlace {
    /// Under way, or being opened by whoever asked first: only those that ask for the same run wait for that.
    Open(Arc<RunCell>),
    /// Being [put down](super::Runs::put_down): whoever asks for it waits until its files are free, and opens it again.
    Closing(watch::Receiver<()>),
    /// Taken out, and not sealed yet.
    Retired,
}

/// A run, once it is open. An opening that failed leaves it empty for the next one.
pub(super) type RunCell = OnceCell<Arc<Run>>;

/// What whoever asks for a run finds in its place.
#[derive(Debug)]
pub(super) enum FoundRun {
    /// The run, or where it is to be opened.
    Cell(Arc<RunCell>),
    /// Somebody puts it down; this ends with that.
    Closing(watch::Receiver<()>),
}

/// A run that was taken out to be put down. Whoever asks for it waits until this is dropped.
#[derive(Debug)]
pub struct ClosingRun {
    pub(super) run: Arc<Run>,
    pub(super) closed: watch::Sender<()>,
}

impl RunPlace {
    pub(super) fn is(&self, cell: &Arc<RunCell>) -> bool {
        matches!(self, RunPlace::Open(own) if Arc::ptr_eq(own, cell))
    }

    /// What is found here; `None` where the run takes nothing more.
    pub(super) fn found_run(&self) -> Option<FoundRun> {
        match self {
            RunPlace::Open(cell) => Some(FoundRun::Cell(Arc::clone(cell))),
            RunPlace::Closing(closed) => Some(FoundRun::Closing(closed.clone())),
            RunPlace::Retired => None,
        }
    }

    /// Whether whoever put the run down is done with it.
    pub(super) fn is_vacant(&self) -> bool {
        matches!(self, RunPlace::Closing(closed) if closed.has_changed().is_err())
    }

    pub(super) fn run(&self) -> Option<&Arc<Run>> {
        match self {
            RunPlace::Open(cell) => cell.get(),
            RunPlace::Closing(_) | RunPlace::Retired => None,
        }
    }
}
