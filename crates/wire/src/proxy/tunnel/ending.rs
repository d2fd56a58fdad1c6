//! How a socket ends, and who is told so in which way.

use tokio_tungstenite::tungstenite::{
    Error,
    error::ProtocolError,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{
    proxy::error::{DeliveryError, ProxyError},
    trajectory::CloseCause,
};

/// How a session ends.
#[derive(Debug)]
pub(in crate::proxy) struct SocketEnding {
    /// Why requests that are under way end with it; `None` where the client's connection tells.
    pub(in crate::proxy) cause: Option<CloseCause>,
    pub(in crate::proxy) goodbye: Goodbye,
}

/// What a client hears as the last.
#[derive(Debug)]
pub(in crate::proxy) enum Goodbye {
    /// What the upstream has said.
    Passed(Option<CloseFrame>),
    /// This code.
    Code(CloseCode),
    /// The answer to its own, which the library gives.
    Echoed(Option<CloseFrame>),
    /// Why nothing more of what it says is taken in.
    Refused(ProxyError),
    /// Nothing: its connection breaks.
    None,
}

impl SocketEnding {
    /// The client is gone.
    pub(in crate::proxy) const CLIENT_GONE: Self = Self { cause: None, goodbye: Goodbye::None };
    /// The server stops, and nothing is under way.
    pub(in crate::proxy) const STOPPING: Self = Self { cause: None, goodbye: Goodbye::Code(CloseCode::Away) };

    /// Its connection breaks.
    pub(in crate::proxy) const fn broken(cause: CloseCause) -> Self {
        Self { cause: Some(cause), goodbye: Goodbye::None }
    }

    /// It ends in order.
    pub(in crate::proxy) const fn closed(cause: CloseCause, code: CloseCode) -> Self {
        Self { cause: Some(cause), goodbye: Goodbye::Code(code) }
    }

    /// What the client says is not taken in.
    pub(in crate::proxy) const fn refused(error: ProxyError) -> Self {
        Self { cause: Some(CloseCause::Refused), goodbye: Goodbye::Refused(error) }
    }

    /// What a client has done that cannot be read on.
    pub(in crate::proxy) fn of_client(error: &Error) -> Self {
        let code = match error {
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) | Error::Io(_) => return Self::CLIENT_GONE,
            Error::Capacity(_) => CloseCode::Size,
            Error::Utf8(_) => CloseCode::Invalid,
            _ => CloseCode::Protocol,
        };
        Self { cause: None, goodbye: Goodbye::Code(code) }
    }

    /// Whether the upstream has ended it; and whether it broke off.
    pub(in crate::proxy) fn of_upstream(&self) -> Option<bool> {
        (self.cause == Some(CloseCause::UpstreamReset)).then_some(matches!(self.goodbye, Goodbye::None))
    }
}

impl From<&DeliveryError> for SocketEnding {
    fn from(error: &DeliveryError) -> Self {
        Self::broken(match error {
            DeliveryError::Upstream(_) => CloseCause::UpstreamReset,
            DeliveryError::Silent(_) => CloseCause::UpstreamTimeout,
            DeliveryError::Breached => CloseCause::Injected,
            DeliveryError::Recording(_) | DeliveryError::Interrupted => CloseCause::Internal,
        })
    }
}
