//! A WebSocket of an API whose requests are messages. Each message that asks for a response goes down the line as a request of its
//! own: it is a step, with all that a plan wants of it, and its record is that of the same request over HTTP.
//!
//! - `handshake` opens it: the upstream's own `101` does, or, where the upstream speaks no HTTP, we do.
//! - `session` passes messages between both sides until one of them ends (`ending`); `call` is one request on its way.
//! - `upstream_end` is what such a request is sent by, `event` makes events of messages and messages of events.
//! - `words` says refusals as a socket does, and which faults it has no words for.
//!
//! Framing is the library's. What asks for no response passes as it is, and the record counts it.

mod call;
mod ending;
mod event;
mod handshake;
mod session;
mod upstream_end;
mod words;

use bytes::Bytes;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{
        WebSocketConfig,
        frame::{
            Frame,
            coding::{Data, OpCode},
        },
    },
};

pub(super) use session::Bridge;
pub(super) use upstream_end::carried;
pub(super) use words::{FramedCall, worded};

/// What is held of each direction before it is read or written, in bytes.
const BUFFER: usize = 16 << 10;

/// How a side is framed: a message is as long as a body may be.
fn settings(message_max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(message_max))
        .max_frame_size(Some(message_max))
}

/// A text, as it is: also one that a fault has made none.
fn text_message(text: Bytes) -> Message {
    Message::Frame(Frame::message(text, OpCode::Data(Data::Text), true))
}

/// A text that breaks off.
fn begun_message(text: Bytes) -> Message {
    Message::Frame(Frame::message(text, OpCode::Data(Data::Text), false))
}
