//! Bounds of a server.

use std::time::Duration;

use super::memory::BodyMemory;

/// Bounds of a server. Times bound one wait each, never a whole exchange: a model may take minutes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest body that is read, in bytes.
    pub max_body_bytes: usize,
    /// Largest body that passes as it comes, in bytes.
    pub max_upload_bytes: usize,
    /// What the bodies of requests may take together.
    pub memory: BodyMemory,
    /// Connections at once.
    pub max_connections: usize,
    /// Exchanges at once; one more is answered 503.
    pub max_streams: usize,
    /// Longest wait for a request head, idle connections included.
    pub head_timeout: Duration,
    /// Longest wait for a whole request body.
    pub body_timeout: Duration,
    /// Longest silence of an upstream within a reply.
    pub silence_timeout: Duration,
    /// Longest wait for a client that does not read.
    pub write_timeout: Duration,
    /// Tunnels (`WebSocket`s) at once; one more is answered 503. They count among the exchanges too.
    pub max_tunnels: usize,
    /// Longest silence of both sides of a tunnel, pings included.
    pub tunnel_idle: Duration,
    /// How long a call waits for a full disk to have room again.
    pub room_wait: Duration,
    /// Longest wait for exchanges under way when the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_bytes: 32 << 20,
            max_upload_bytes: usize::MAX,
            memory: BodyMemory::default(),
            max_connections: 8192,
            max_streams: 4096,
            head_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_mins(1),
            silence_timeout: Duration::from_mins(10),
            write_timeout: Duration::from_mins(1),
            // Each holds two connections and two buffers, however little it says.
            max_tunnels: 1024,
            // An agent may think for long between two turns on one socket.
            tunnel_idle: Duration::from_mins(30),
            room_wait: Duration::from_secs(30),
            drain: Duration::from_secs(30),
        }
    }
}
