//! How an exchange ended, as the transport tells.

use serde::{Deserialize, Serialize};

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CloseCause {
    /// The whole reply was delivered.
    Complete,
    /// The client left before the end.
    ClientGone,
    /// The upstream could not be reached.
    UpstreamUnreachable,
    /// The upstream closed or reset the connection mid-reply.
    UpstreamReset,
    /// The upstream ended an event stream without its end marker.
    UpstreamTruncated,
    /// The upstream was silent for too long.
    UpstreamTimeout,
    /// A planned fault ended the exchange.
    Injected,
    /// The client did not read for too long.
    ClientStalled,
    /// The request was refused by the proxy.
    Refused,
    /// A defect of the proxy.
    Internal,
    /// The proxy was stopped.
    Stopped,
    /// Neither side of a tunnel said anything for too long.
    Idle,
    /// The trace that the run was imported from says that the call failed, and not how.
    Failed,
}

impl CloseCause {
    /// Whether the proxy ended the exchange itself: by a plan, by refusing it, by a defect.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Injected | Self::Refused | Self::Internal)
    }

    /// Its name, as records and counts write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientGone => "client_gone",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamReset => "upstream_reset",
            Self::UpstreamTruncated => "upstream_truncated",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::Injected => "injected",
            Self::ClientStalled => "client_stalled",
            Self::Refused => "refused",
            Self::Internal => "internal",
            Self::Stopped => "stopped",
            Self::Idle => "idle",
            Self::Failed => "failed",
        }
    }
}
