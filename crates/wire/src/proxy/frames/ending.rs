//! How a socket ends, and who is told so in which way.

use tokio_tungstenite::tungstenite::{
    Error,
    error::ProtocolError,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{proxy::error::DeliveryError, trajectory::CloseCause};

/// How a session ends.
#[derive(Debug)]
pub(super) enum SocketEnding {
    /// The client has said goodbye.
    ClientClosed(Option<CloseFrame>),
    /// The client is gone.
    ClientGone,
    /// What the client sends cannot be read as a WebSocket.
    ClientWrong(CloseCode),
    /// The upstream has said goodbye.
    UpstreamClosed(Option<CloseFrame>),
    /// The upstream has broken off.
    UpstreamBroke,
    /// The upstream was silent within a response.
    UpstreamSilent,
    /// A response has ended without its last message, in order.
    Unfinished,
    /// A planned fault breaks it.
    Injected,
    /// What was said cannot be recorded.
    Unrecorded,
    /// Neither side says anything.
    Idle,
    /// Its token is gone.
    Refused,
    /// The server stops, and nothing is under way.
    Stopping,
}

/// What a client hears as the last.
#[derive(Debug)]
pub(super) enum Goodbye {
    /// This frame.
    Say(Option<CloseFrame>),
    /// The answer to its own, which the library gives.
    Echoed,
    /// Nothing: its connection breaks.
    None,
}

impl SocketEnding {
    /// What a client has done that cannot be read on.
    pub(super) fn of_client(error: &Error) -> Self {
        match error {
            Error::Capacity(_) => Self::ClientWrong(CloseCode::Size),
            Error::Utf8(_) => Self::ClientWrong(CloseCode::Invalid),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) | Error::Io(_) => Self::ClientGone,
            _ => Self::ClientWrong(CloseCode::Protocol),
        }
    }

    /// Why requests that are under way end with it; `None` where the connection tells.
    pub(super) fn cause(&self) -> Option<CloseCause> {
        match self {
            Self::ClientClosed(_) | Self::ClientGone | Self::ClientWrong(_) | Self::Stopping => None,
            Self::UpstreamClosed(_) | Self::UpstreamBroke => Some(CloseCause::UpstreamReset),
            Self::UpstreamSilent => Some(CloseCause::UpstreamTimeout),
            Self::Unfinished | Self::Injected => Some(CloseCause::Injected),
            Self::Unrecorded => Some(CloseCause::Internal),
            Self::Idle => Some(CloseCause::Idle),
            Self::Refused => Some(CloseCause::Refused),
        }
    }

    /// What the client hears as the last.
    pub(super) fn goodbye(&self) -> Goodbye {
        let code = match self {
            Self::UpstreamClosed(frame) => return Goodbye::Say(frame.clone()),
            Self::ClientClosed(_) => return Goodbye::Echoed,
            Self::ClientGone | Self::UpstreamBroke | Self::UpstreamSilent | Self::Injected | Self::Unrecorded => {
                return Goodbye::None;
            }
            Self::ClientWrong(code) => *code,
            Self::Unfinished => CloseCode::Normal,
            Self::Idle | Self::Stopping => CloseCode::Away,
            Self::Refused => CloseCode::Policy,
        };
        Goodbye::Say(Some(CloseFrame { code, reason: "".into() }))
    }
}

impl From<&DeliveryError> for SocketEnding {
    fn from(error: &DeliveryError) -> Self {
        match error {
            DeliveryError::Upstream(_) => SocketEnding::UpstreamBroke,
            DeliveryError::Silent(_) => SocketEnding::UpstreamSilent,
            DeliveryError::Breached => SocketEnding::Injected,
            DeliveryError::Recording(_) | DeliveryError::Interrupted => SocketEnding::Unrecorded,
        }
    }
}
