//! A WebSocket of an API whose requests are messages. Each message that asks for a response goes down the line as a request of its
//! own: it is a step, with all that a plan wants of it, and its record is that of the same request over HTTP.
//!
//! - `handshake` opens it: the upstream's own `101` does, or, where the upstream speaks no HTTP, we do.
//! - `session` passes messages between both sides until one of them ends; `call` is one request on its way.
//! - `continuing` is what a server may go on from by itself.
//! - `upstream_end` is what such a request is sent by; it makes events of messages.
//! - `words` says refusals as a socket does, and which faults it has no words for.
//!
//! How sockets are framed and how they end is the same for all (`tunnel`). A response that the server starts by itself is a step, too: its messages wait where those of an
//! asked one do, and its call goes down the line without being sent. What belongs to no response passes, and the record counts it.

mod call;
mod continuing;
mod handshake;
mod session;
mod upstream_end;
mod words;

pub(super) use session::Bridge;
pub(super) use upstream_end::carried;
pub(super) use words::{FramedCall, worded};
