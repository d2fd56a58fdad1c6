//! When the runs of a dataset were executed, where their recordings lie beside it.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::{
    dataset::{Dataset, read::LOGS},
    recording,
};

/// When runs began, and which of them are controls: runs without a plan that begin like another.
#[derive(Debug, Default)]
pub(super) struct Controls {
    started: HashMap<String, Timestamp>,
    against: HashMap<String, Vec<Timestamp>>,
}

impl Controls {
    /// Reads the manifests of the recordings beside a dataset. One that cannot be read tells nothing here; its row is found
    /// by what it is compared with.
    pub(super) fn read(dataset: &Dataset) -> Self {
        let mut controls = Self::default();
        let dir = dataset.files().first().and_then(|file| file.parent()).map(|dir| dir.join(LOGS));
        let runs = dir.and_then(|dir| dir.read_dir().ok()).into_iter().flatten().flatten();
        for manifest in runs.filter_map(|run| recording::read_manifest(&run.path()).ok()) {
            let Ok(started) = manifest.started.parse::<Timestamp>() else { continue };
            controls.started.insert(manifest.run.to_string(), started);
            if let (Some(twin), None) = (manifest.repeat_of, manifest.plan) {
                controls.against.entry(twin.to_string()).or_default().push(started);
            }
        }
        controls
    }

    /// When a run began.
    pub(super) fn started(&self, run: &str) -> Option<Timestamp> {
        self.started.get(run).copied()
    }

    /// When the runs began that begin like this one, without a plan.
    pub(super) fn against(&self, twin: &str) -> &[Timestamp] {
        self.against.get(twin).map(Vec::as_slice).unwrap_or_default()
    }
}
