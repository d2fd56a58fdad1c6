//! Recorded lines to models: questions that pass through a proxy of our own as steps of a run.

use std::sync::Arc;

use crate::{
    execution::{ExecutionError, ListeningProxy},
    proxy::{
        HttpUpstream, Run, RunSetup, UpstreamOrigin,
        model::{self, Unanswered},
        upstream::Upstream,
    },
    trajectory::RunId,
};
use bytes::Bytes;

/// A recorded line to a model.
pub(super) struct ModelLine {
    run: Arc<Run>,
    client: HttpUpstream,
}

impl ModelLine {
    /// A line to a model: each question and answer is recorded as a step of `run`, by `agent`.
    ///
    /// # Errors
    /// [`ExecutionError`] when the run cannot be recorded.
    pub(super) async fn open(
        through: &ListeningProxy,
        run: &RunId,
        upstream: Arc<dyn Upstream>,
        agent: &str,
    ) -> Result<Self, ExecutionError> {
        let proxy = &through.proxy;
        let open = proxy.runs.open(run, RunSetup { upstream: Some(upstream), ..RunSetup::default() }).await?;
        let origin = UpstreamOrigin::parse(&format!("{}/r/{run}/a/{agent}/v1", through.origin), None)?;
        let client = HttpUpstream::new(origin, Vec::new(), None, proxy.limits.silence_timeout)?;
        Ok(Self { run: open, client })
    }

    /// Ends it and seals what it recorded.
    ///
    /// # Errors
    /// [`ExecutionError`] when it cannot be sealed.
    pub(super) fn hang_up(&self, through: &ListeningProxy) -> Result<(), ExecutionError> {
        through.proxy.runs.retire_run(&self.run.id);
        self.run.recorder.seal()?;
        Ok(())
    }

    /// Asks, and gives the body of a good answer; else what went wrong, in words.
    pub(super) async fn ask(&self, body: Bytes) -> Result<Bytes, String> {
        model::ask(&self.client, &body).await.map_err(|error| error.to_string())
    }

    /// Asks once.
    pub(super) async fn ask_once(&self, body: &Bytes) -> Result<Bytes, Unanswered> {
        model::ask_once(&self.client, body).await
    }
}
