//! A proxy of our own on a free port.

use std::sync::Arc;

use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use super::ExecutionError;
use crate::proxy::{Proxy, serve};

/// A proxy that listens on a loopback port, until it is stopped or dropped.
pub struct ListeningProxy {
    /// The proxy.
    pub proxy: Arc<Proxy>,
    /// Where it listens: `http://host:port`.
    pub origin: String,
    stop: oneshot::Sender<()>,
    server: JoinHandle<usize>,
}

impl ListeningProxy {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// [`ExecutionError::Listen`].
    pub async fn start(proxy: Arc<Proxy>) -> Result<Self, ExecutionError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(ExecutionError::Listen)?;
        Self::at(proxy, listener)
    }

    /// Starts it on a listener.
    ///
    /// # Errors
    /// [`ExecutionError::Listen`].
    pub fn at(proxy: Arc<Proxy>, listener: TcpListener) -> Result<Self, ExecutionError> {
        let origin = format!("http://{}", listener.local_addr().map_err(ExecutionError::Listen)?);
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(Arc::clone(&proxy), listener, async move {
            let _ = stopped.await;
        }));
        Ok(Self { proxy, origin, stop, server })
    }

    /// Stops it, and waits for the exchanges under way.
    pub async fn stop(self) {
        drop(self.stop);
        let _ = self.server.await;
    }
}
