//! Both ends of a WebSocket as messages. Framing is the library's; a client's messages take their memory while they come.

use std::future::Future;

use bytes::Bytes;
use futures_util::{
    StreamExt,
    stream::{SplitSink, SplitStream},
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{Join, ReadHalf, WriteHalf},
    sync::oneshot,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{
            Role, WebSocketConfig,
            frame::{
                Frame,
                coding::{Data, OpCode},
            },
        },
    },
};

use crate::proxy::{
    error::ProxyError,
    limits::Limits,
    memory::{CountedReading, GatheredMessage},
};

/// What is held of each direction before it is read or written, in bytes.
const BUFFER: usize = 16 << 10;

/// A client's end.
pub(in crate::proxy) type ClientSocket =
    WebSocketStream<Join<CountedReading<ReadHalf<TokioIo<Upgraded>>>, WriteHalf<TokioIo<Upgraded>>>>;
/// An upstream's end.
pub(in crate::proxy) type UpstreamSocket = WebSocketStream<TokioIo<Upgraded>>;

/// A client's end, framed.
pub(in crate::proxy) struct ClientEnd {
    pub(in crate::proxy) writing: SplitSink<ClientSocket, Message>,
    pub(in crate::proxy) reading: SplitStream<ClientSocket>,
    /// What has come of its next message.
    pub(in crate::proxy) gathered: GatheredMessage,
    /// Where it is told that there is no memory for that.
    pub(in crate::proxy) refused: oneshot::Receiver<ProxyError>,
}

impl ClientEnd {
    /// Frames a connection.
    pub(in crate::proxy) async fn new(client: Upgraded, limits: &Limits) -> Self {
        let gathered = GatheredMessage::default();
        let (reading, writing) = tokio::io::split(TokioIo::new(client));
        let (counted, refused) = CountedReading::new(reading, limits.memory.clone(), gathered.clone());
        let (joined, settings) = (tokio::io::join(counted, writing), settings(limits.max_body_bytes));
        let framed = WebSocketStream::from_raw_socket(joined, Role::Server, Some(settings)).await;
        let (writing, reading) = framed.split();
        Self { writing, reading, gathered, refused }
    }
}

/// Frames a connection to an upstream.
pub(in crate::proxy) fn upstream_end(upgraded: Upgraded, message_max: usize) -> impl Future<Output = UpstreamSocket> {
    WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(settings(message_max)))
}

/// How a side is framed: a message is as long as a body may be.
fn settings(message_max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(message_max))
        .max_frame_size(Some(message_max))
}

/// A text, as it is: also one that a fault has made none. One that is not `whole` breaks off.
pub(in crate::proxy) fn text_message(text: Bytes, whole: bool) -> Message {
    Message::Frame(Frame::message(text, OpCode::Data(Data::Text), whole))
}
