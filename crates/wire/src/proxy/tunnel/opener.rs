//! Who opened a WebSocket.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::proxy::{
    shared::Proxy,
    users::{User, Users},
};

/// Who opened a WebSocket.
#[derive(Debug)]
pub(in crate::proxy) struct SocketOpener {
    /// Where its requests go.
    pub(in crate::proxy) line: Arc<Proxy>,
    /// Its user, where each has a token.
    pub(in crate::proxy) user: Option<(Arc<Users>, Arc<User>)>,
    /// Changes when the server stops.
    pub(in crate::proxy) stopping: watch::Receiver<()>,
    /// Its places among the exchanges under way and among the tunnels.
    #[expect(dead_code, reason = "held as long as the socket is open")]
    pub(in crate::proxy) permits: (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>),
}

impl SocketOpener {
    /// Waits until the token that opened it lets nobody in any more.
    pub(in crate::proxy) async fn until_gone(&self) {
        match &self.user {
            Some((users, user)) => users.until_gone(user).await,
            None => std::future::pending().await,
        }
    }
}
