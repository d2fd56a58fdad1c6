//! A server that keeps room for new runs: ended runs that nobody needs go, every hour.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use jiff::Timestamp;

use crate::{
    cli::runs::keep_limit,
    proxy::{Proxy, Server},
    recording::{self, KeepLimit, RunFate},
};

/// How often it is looked for runs that may go.
const EVERY: Duration = Duration::from_hours(1);

/// What is kept.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct KeepArgs {
    /// Remove, every hour, ended runs beyond this age or size of all runs that nobody needs, as `aegis runs prune --yes` does.
    #[arg(long, value_name = "AGE,SIZE", value_parser = keep_limit)]
    keep: Option<KeepLimit>,
    /// With --keep: further data sets and reports whose runs are kept.
    #[arg(long, value_name = "PATH", requires = "keep")]
    needed_by: Vec<PathBuf>,
}

/// Removes what may go, now and every hour; for ever, where nothing is to be removed.
pub(super) async fn prune_hourly(server: Server, arguments: KeepArgs) {
    let Some(limit) = arguments.keep else { return std::future::pending().await };
    let mut tick = tokio::time::interval(EVERY);
    loop {
        tick.tick().await;
        let (server, needed_by) = (server.clone(), arguments.needed_by.clone());
        // A panic in it was reported where it happened.
        let _ = tokio::task::spawn_blocking(move || prune(&server.line, limit, &needed_by)).await;
    }
}

/// Prunes the runs of the server and of its users.
fn prune(proxy: &Proxy, limit: KeepLimit, needed_by: &[PathBuf]) {
    let log_dir = &proxy.runs.template().log_dir;
    if !log_dir.is_dir() {
        return;
    }
    let runs = match recording::survey(log_dir, limit, needed_by, Timestamp::now()) {
        Ok(runs) => runs,
        Err(error) => return tracing::error!(%error, "cannot tell which runs may go"),
    };
    for surveyed in runs.iter().filter(|surveyed| !matches!(surveyed.fate, RunFate::Stays(_))) {
        match recording::prune(surveyed) {
            Ok(()) => {
                tracing::info!(run = %surveyed.run, bytes = surveyed.bytes, "removed, as --keep says");
                if let Some(monitor) = proxy.runs.monitor() {
                    monitor.run_pruned();
                }
            }
            Err(error) => tracing::error!(run = %surveyed.run, %error, "cannot remove"),
        }
    }
}
