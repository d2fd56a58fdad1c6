//! A traced run as a sample of a dataset.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{
    cli::{Exit, Failure},
    dataset::{Dataset, DatasetError, Sample, SampleKind, Splits, Task, UnrecordedFacts, Writer, read_tasks},
    recording::{self, Recording},
    replay::answer_text,
    ruling::Ruling,
    trajectory::{Evidence, LabelStatus, nearest},
};

/// Where a traced run is kept as data.
#[derive(Debug, Clone, Args)]
pub(super) struct DatasetArgs {
    /// Add the labelled run to this data set, made if missing. The --twin run becomes its clean twin.
    #[arg(long, value_name = "DIR", requires_all = ["tasks", "task"])]
    dataset: Option<PathBuf>,
    /// Task set with the run's task: JSON lines with `id`, `question`, `answer`.
    #[arg(long, value_name = "FILE", requires = "dataset")]
    tasks: Option<PathBuf>,
    /// Id of the run's task.
    #[arg(long, value_name = "ID", requires = "dataset")]
    task: Option<String>,
    /// Name of the multi-agent system.
    #[arg(long, value_name = "NAME", default_value = "")]
    system: String,
}

/// A dataset, and what it is to know of the run.
#[derive(Debug)]
pub(super) struct TracedDataset {
    dir: PathBuf,
    task: Task,
    system: String,
}

impl DatasetArgs {
    /// Whether the run is to be kept as data.
    pub(super) fn is_given(&self) -> bool {
        self.dataset.is_some()
    }

    /// The entry that is asked for, before anything is paid for.
    pub(super) fn entry(&self) -> Result<Option<TracedDataset>, Failure> {
        let (Some(dir), Some(tasks), Some(id)) = (&self.dataset, &self.tasks, &self.task) else { return Ok(None) };
        let known = read_tasks(tasks)?;
        let Some(task) = known.iter().find(|task| task.id == *id) else {
            let near = nearest(id, known.iter().map(|task| task.id.as_str()));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let error = format!("`{}` has no task `{id}`{hint}", tasks.display());
            return Err(Failure::new(Exit::Usage, error));
        };
        Ok(Some(TracedDataset { dir: dir.clone(), task: task.clone(), system: self.system.clone() }))
    }
}

impl TracedDataset {
    /// Keeps a run as its `label.json` says: added with its label, and its clean twin where there is one; taken out where it
    /// has no label that holds. Samples of the same runs are replaced.
    pub(super) fn keep(&self, run: &Path, twin: Option<&Path>) -> Result<(), Failure> {
        let failed = recording::read(run)?;
        let known = match Dataset::open(&self.dir) {
            Ok(known) => Some(known),
            Err(DatasetError::NotADataset { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let verified = failed.label.as_ref().filter(|label| label.status == LabelStatus::Verified);
        let holds = verified.is_some_and(|label| Ruling::new(&failed).objects_to(label).is_none());
        let mut samples = Vec::new();
        let mut gone = None;
        if holds {
            let twin = twin.map(recording::read).transpose()?;
            if let Some(twin) = &twin {
                samples.push(self.sample(twin, SampleKind::Clean, None)?);
            }
            let twin = twin.map(|twin| twin.manifest.run.to_string());
            samples.push(self.sample(&failed, SampleKind::Failure, twin)?);
        } else if known.is_some() {
            gone = Some(failed.manifest.run.to_string());
        } else {
            return Ok(());
        }
        let mut writer = Writer::create(&self.dir)?;
        if let Some(known) = known {
            for placed in known.samples() {
                let sample = placed?.sample;
                if gone.as_ref() != Some(&sample.id) && samples.iter().all(|new| new.id != sample.id) {
                    writer.push(&sample)?;
                }
            }
        }
        for sample in &samples {
            writer.push(sample)?;
        }
        // A trace claims once, whether it came to a row or not; of a system that repeats itself nothing is chance.
        let repeats =
            failed.label.as_ref().and_then(|label| label.evidence.as_ref()).is_some_and(Evidence::is_repeatable);
        writer.begun_further(usize::from(!(holds && repeats)));
        writer.finish()?;
        Ok(())
    }

    /// The system's answer is what its last call was answered: a check that is a command tells no other.
    fn sample(&self, recording: &Recording, kind: SampleKind, clean_twin: Option<String>) -> Result<Sample, Failure> {
        let about = UnrecordedFacts {
            kind,
            system: self.system.clone(),
            split: Some(Splits::default().assign(&self.task)),
            task: self.task.clone(),
            final_answer: recording.trajectory.steps.last().map(answer_text).unwrap_or_default(),
            clean_twin,
        };
        Ok(Sample::from_recording(recording, about)?)
    }
}
