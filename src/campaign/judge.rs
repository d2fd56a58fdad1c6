//! Whether a program solved its task: the campaign's checkers, or the task's own.

use std::{path::Path, sync::Arc};

use super::definition::Campaign;
use crate::{
    dataset::Task,
    proxy::upstream::Upstream,
    trajectory::{Outcome, Trajectory},
    verify::{Sources, Surroundings, Transcript},
};

/// The verdict on what a program left behind, and what was read as its answer.
pub(super) async fn judge(
    campaign: &Campaign,
    task: &Task,
    left: Left<'_>,
    judge: Option<&Arc<Transcript>>,
) -> (Outcome, String) {
    let Left { stdout, directory, trajectory, run_dir } = left;
    let answer = campaign.verify.answer(&Sources { stdout, directory, trajectory });
    let judge = judge.map(|transcript| Arc::<Transcript>::clone(transcript) as Arc<dyn Upstream>);
    let surroundings = Surroundings { run_dir: Some(run_dir.to_owned()), judge };
    let own = task.check.as_ref();
    let verified = campaign.verify.check(&task.question, &task.answer, own, answer, &surroundings).await;
    (verified.outcome, verified.answer)
}

/// What a program left behind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left<'a> {
    /// Its standard output.
    pub(super) stdout: &'a [u8],
    /// Where it ran.
    pub(super) directory: &'a Path,
    /// What was recorded of it.
    pub(super) trajectory: &'a Trajectory,
    /// Where that is.
    pub(super) run_dir: &'a Path,
}
