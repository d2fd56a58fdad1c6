//! `[limits]`: what may be held, and how long anything may take.

use serde::Deserialize;

/// `[limits]`. Times are in seconds.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Maximum request body in bytes.
    pub max_body_bytes: Option<usize>,
    /// Maximum memory of request bodies in bytes. Default: a quarter of the machine's, at most 2 GiB.
    pub memory: Option<usize>,
    /// Maximum parallel connections.
    pub max_connections: Option<usize>,
    /// Maximum parallel exchanges.
    pub max_streams: Option<usize>,
    /// Timeout of a request head.
    pub head_timeout_s: Option<f64>,
    /// Timeout of a request body.
    pub body_timeout_s: Option<f64>,
    /// Timeout of a reply's head, and of silence within it.
    pub upstream_timeout_s: Option<f64>,
    /// Longest wait of a call for room on a full disk; then 503, to be tried again.
    pub room_wait_s: Option<f64>,
    /// Timeout of a client that does not read.
    pub write_timeout_s: Option<f64>,
    /// Maximum parallel `WebSocket`s; 0 refuses them, as `--no-websocket` does.
    pub max_tunnels: Option<usize>,
    /// Timeout of silence on both sides of a `WebSocket`.
    pub tunnel_idle_s: Option<f64>,
    /// Timeout of open exchanges at shutdown.
    pub drain_s: Option<f64>,
}
