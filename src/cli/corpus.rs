//! A data set that a verb is named: files of rows, or a directory of recorded runs whose rows are made now.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Failure, counted, escape, screen};
use crate::dataset::{self, Corpus, CorpusFacts, Dataset, DatasetError, Harvest, SampleKind, read_tasks};
use crate::launch::shell_word;

/// Runs that are named of those that are left out for one reason.
const NAMED: usize = 3;

/// What a directory of runs does not say of them itself.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct CorpusArgs {
    /// For a directory of runs: their task set, JSON lines with `id`, `question`, `answer`. A run is of the task whose
    /// question its first request or its command holds.
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,
    /// For a directory of runs: name of the multi-agent system.
    #[arg(long, value_name = "NAME", default_value = "")]
    system: String,
}

impl CorpusArgs {
    /// The data set at a path. What a directory of runs comes to is said on standard error, unless `quiet`.
    pub(super) fn open(&self, path: &Path, quiet: bool) -> Result<Dataset, Failure> {
        self.read(path, false, quiet)
    }

    /// The same with failures that have no label, for who looks for one.
    pub(super) fn open_unlabelled(&self, path: &Path, quiet: bool) -> Result<Dataset, Failure> {
        self.read(path, true, quiet)
    }

    fn read(&self, path: &Path, unlabelled: bool, quiet: bool) -> Result<Dataset, Failure> {
        match Dataset::open(path) {
            Err(DatasetError::NotADataset { .. }) if path.is_dir() => {}
            opened => return Ok(opened?),
        }
        let corpus = Corpus::open(path)?;
        let tasks = self.tasks.as_deref().map(read_tasks).transpose()?.unwrap_or_default();
        let dataset = corpus.harvest(&CorpusFacts { tasks, system: self.system.clone(), unlabelled })?;
        if let Some(harvest) = dataset.harvest().filter(|_| !quiet) {
            for line in lines(harvest, corpus.runs().len()) {
                screen::say_at_once(&line);
            }
        }
        Ok(dataset)
    }
}

/// What the runs came to, and why some are no rows.
fn lines(harvest: &Harvest, runs: usize) -> Vec<String> {
    let count = |kind| harvest.manifest.kinds.get(&kind).copied().unwrap_or_default();
    let mut lines = vec![format!(
        "corpus   {}  {}: {}, {} benign, {} clean",
        escape(&harvest.root.display().to_string()),
        counted(runs, "run"),
        dataset::failures(count(SampleKind::Failure)),
        count(SampleKind::Benign),
        count(SampleKind::Clean),
    )];
    for (why, runs) in &harvest.left_out {
        let more = if runs.len() > NAMED { ", …" } else { "" };
        let named = runs.iter().take(NAMED).map(|run| escape(run)).collect::<Vec<_>>().join(", ");
        lines.push(format!("left out {} × {}  ({named}{more})", runs.len(), escape(why)));
    }
    if harvest.unproven > 0 {
        let root = shell_word(&harvest.root.to_string_lossy());
        lines.push(format!(
            "next     aegis prove {root} --again   {} may be proven",
            counted(harvest.unproven, "failure")
        ));
    }
    lines
}
