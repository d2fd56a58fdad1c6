//! Where a run of a server is: under way, or taken out.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::proxy::run::Run;

/// Where a run is.
#[derive(Debug)]
pub(super) enum RunPlace {
    /// Under way, or being opened by whoever asked first: only those that ask for the same run wait for that.
    Open(Arc<RunCell>),
    /// Taken out, and not sealed yet.
    Retired,
}

/// A run, once it is open. An opening that failed leaves it empty for the next one.
pub(super) type RunCell = OnceCell<Arc<Run>>;

impl RunPlace {
    pub(super) fn is(&self, cell: &Arc<RunCell>) -> bool {
        matches!(self, RunPlace::Open(own) if Arc::ptr_eq(own, cell))
    }

    pub(super) fn cell(&self) -> Option<Arc<RunCell>> {
        match self {
            RunPlace::Open(cell) => Some(Arc::clone(cell)),
            RunPlace::Retired => None,
        }
    }

    pub(super) fn run(&self) -> Option<&Arc<Run>> {
        match self {
            RunPlace::Open(cell) => cell.get(),
            RunPlace::Retired => None,
        }
    }
}
