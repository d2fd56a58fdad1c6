//! What a connection turns into that has switched to a WebSocket.

use super::{SocketOpener, Tunnel};
use crate::proxy::frames::Bridge;

/// What a connection turns into.
#[derive(Debug)]
pub(in crate::proxy) enum SwitchedConnection {
    /// What passes in it is counted.
    Counted(Box<Tunnel>),
    /// Its messages are read.
    Read(Box<Bridge>),
}

impl SwitchedConnection {
    /// Passes what both sides say to the end.
    pub(in crate::proxy) async fn run(self, opener: SocketOpener) {
        match self {
            SwitchedConnection::Counted(tunnel) => tunnel.run(opener.until_gone()).await,
            SwitchedConnection::Read(bridge) => bridge.run(opener).await,
        }
    }
}
