//! Recorded lines to models: a proxy of our own on a free port, and questions that pass through it as steps of a run.

use std::sync::Arc;

use bytes::Bytes;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use super::TrialError;
use crate::{
    proxy::{
        HttpUpstream, Proxy, Run, RunSetup, UpstreamOrigin,
        model::{self, Unanswered},
        serve,
        upstream::Upstream,
    },
    trajectory::RunId,
};

/// A proxy that listens on a free port.
pub(super) struct ListeningProxy {
    pub(super) proxy: Arc<Proxy>,
    /// Where it listens: `http://host:port`.
    pub(super) origin: String,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<usize>>,
}

/// A recorded line to a model.
pub(super) struct ModelLine {
    run: Arc<Run>,
    client: HttpUpstream,
}

impl ModelLine {
    /// Asks, and gives the body of a good answer; else what went wrong, in words.
    pub(super) async fn ask(&self, body: Bytes) -> Result<Bytes, String> {
        model::ask(&self.client, &body).await.map_err(|error| error.to_string())
    }

    /// Asks once.
    pub(super) async fn ask_once(&self, body: &Bytes) -> Result<Bytes, Unanswered> {
        model::ask_once(&self.client, body).await
    }
}

impl ListeningProxy {
    /// Starts it.
    ///
    /// # Errors
    /// [`TrialError::Listen`].
    pub(super) async fn start(proxy: Arc<Proxy>) -> Result<Self, TrialError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(TrialError::Listen)?;
        let origin = format!("http://{}", listener.local_addr().map_err(TrialError::Listen)?);
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(Arc::clone(&proxy), listener, async move {
            let _ = stopped.await;
        }));
        Ok(Self { proxy, origin, stop: Some(stop), server: Some(server) })
    }

    /// A line to a model: each question and answer is recorded as a step of `run`, by `agent`.
    ///
    /// # Errors
    /// [`TrialError`] when the run cannot be recorded.
    pub(super) async fn line(
        &self,
        run: &RunId,
        upstream: Arc<dyn Upstream>,
        agent: &str,
    ) -> Result<ModelLine, TrialError> {
        let open = self.proxy.runs.open(run, RunSetup { upstream: Some(upstream), ..RunSetup::default() }).await?;
        let origin = UpstreamOrigin::parse(&format!("{}/r/{run}/a/{agent}/v1", self.origin), None)?;
        let client = HttpUpstream::new(origin, Vec::new(), None, self.proxy.limits.silence_timeout)?;
        Ok(ModelLine { run: open, client })
    }

    /// Ends a line and seals what it recorded.
    ///
    /// # Errors
    /// [`TrialError`] when it cannot be sealed.
    pub(super) fn hang_up(&self, line: &ModelLine) -> Result<(), TrialError> {
        self.proxy.runs.retire_run(&line.run.id);
        line.run.recorder.seal()?;
        Ok(())
    }

    /// Stops it.
    pub(super) async fn stop(mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            let _ = server.await;
        }
    }
}
