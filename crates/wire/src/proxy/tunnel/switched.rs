//! What a connection turns into that has switched to a WebSocket, and who opened it.

use std::sync::Arc;

use hyper::{HeaderMap, Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::Tunnel;
use crate::proxy::{
    delivery::Delivery,
    exchange::Proxy,
    frames::Bridge,
    headers,
    listen::socket::Link,
    users::{User, Users},
};

/// What a connection turns into.
#[derive(Debug)]
pub(in crate::proxy) enum Switched {
    /// What passes in it is counted.
    Counted(Box<Tunnel>),
    /// Its messages are read.
    Read(Box<Bridge>),
}

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

impl Switched {
    /// The answer with which a connection turns into it.
    pub(in crate::proxy) fn agreed(self, mut headers: HeaderMap, link: &Link) -> Response<Box<Delivery>> {
        link.switch();
        headers::switch_to_websocket(&mut headers);
        let mut response = Response::new(Delivery::switched(self));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = headers;
        response
    }

    /// Passes what both sides say to the end.
    pub(in crate::proxy) async fn run(self, opener: SocketOpener) {
        match self {
            Switched::Counted(tunnel) => tunnel.run(&opener).await,
            Switched::Read(bridge) => bridge.run(opener).await,
        }
    }
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
