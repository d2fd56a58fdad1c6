//! An upstream that speaks the WebSocket of the Responses API in messages of a test's choice, and a client of it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async, client_async,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        handshake::server::{Request, Response},
    },
};

use crate::lab::{Lab, within};

pub type Socket = WebSocketStream<TcpStream>;

/// What the upstream does when a message has come.
pub enum Does {
    /// Says this.
    Say(String),
    /// Says this, whatever it is.
    Frame(Message),
    /// Writes these bytes, framed or not.
    Raw(Vec<u8>),
    /// Breaks the connection off.
    Drop,
}

/// A running upstream.
pub struct Peer {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Message>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    /// `answer` is asked for each text, with the number of those before it on any socket.
    pub async fn start(answer: impl Fn(usize, &str) -> Vec<Does> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("an address");
        let peer = Self { address, received: Arc::default(), heads: Arc::default() };
        let (received, heads, answer) = (Arc::clone(&peer.received), Arc::clone(&peer.heads), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&received), Arc::clone(&heads), Arc::clone(&answer)));
            }
        });
        peer
    }

    /// The texts that it was told.
    pub fn texts(&self) -> Vec<String> {
        self.received()
            .iter()
            .filter_map(|message| Some(message.to_text().ok()?.to_owned()).filter(|_| message.is_text()))
            .collect()
    }

    /// The messages that it got.
    pub fn received(&self) -> Vec<Message> {
        self.received.lock().expect("received").clone()
    }

    /// The heads of the handshakes.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("heads").clone()
    }
}

#[expect(clippy::result_large_err, reason = "the library's callback")]
async fn converse(
    stream: TcpStream,
    received: Arc<Mutex<Vec<Message>>>,
    heads: Arc<Mutex<Vec<String>>>,
    answer: Arc<impl Fn(usize, &str) -> Vec<Does>>,
) {
    let head = |request: &Request, mut response: Response| {
        heads.lock().expect("heads").push(format!("{} {:?}", request.uri(), request.headers()));
        response.headers_mut().insert("x-served-by", "peer".parse().expect("a value"));
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async(stream, head).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        let number = {
            let mut received = received.lock().expect("received");
            received.push(message.clone());
            received.iter().filter(|message| message.is_text()).count()
        };
        let Message::Text(text) = message else { continue };
        for does in answer(number - 1, &text) {
            let done = match does {
                Does::Say(text) => socket.send(Message::text(text)).await.is_ok(),
                Does::Frame(message) => socket.send(message).await.is_ok(),
                Does::Raw(bytes) => socket.get_mut().write_all(&bytes).await.is_ok(),
                Does::Drop => {
                    socket.get_ref().set_zero_linger().expect("linger");
                    false
                }
            };
            if !done {
                return;
            }
        }
    }
}

/// The events of a response that says this, as the API sends them; with blanks that no writer of ours would make.
pub fn events(id: &str, text: &str, stream: Option<&str>) -> Vec<String> {
    let item = |status: &str, content: Value| json!({"id": "msg_1", "type": "message", "status": status, "role": "assistant", "content": content});
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let response = |status: &str, output: Value, usage: Value| json!({"id": id, "object": "response", "status": status, "model": "m", "output": output, "usage": usage});
    let (head, tail) = text.split_at(text.find(' ').map_or(0, |at| at + 1));
    let at = json!({"item_id": "msg_1", "output_index": 0, "content_index": 0});
    let with = |kind: &str, more: Value| {
        let mut event = json!({"type": kind});
        for value in [more, stream.map_or(json!({}), |stream| json!({"stream_id": stream}))] {
            event.as_object_mut().expect("an object").extend(value.as_object().expect("an object").clone());
        }
        event.to_string().replacen("\":", "\" : ", 1)
    };
    let of_part = |kind: &str, key: &str, value: Value| {
        let mut more = at.clone();
        more[key] = value;
        with(kind, more)
    };
    let whole = item("completed", json!([part(text)]));
    vec![
        with("response.created", json!({"response": response("in_progress", json!([]), Value::Null)})),
        with("response.output_item.added", json!({"output_index": 0, "item": item("in_progress", json!([]))})),
        of_part("response.content_part.added", "part", part("")),
        of_part("response.output_text.delta", "delta", head.into()),
        of_part("response.output_text.delta", "delta", tail.into()),
        of_part("response.output_text.done", "text", text.into()),
        of_part("response.content_part.done", "part", part(text)),
        with("response.output_item.done", json!({"output_index": 0, "item": whole})),
        with(
            "response.completed",
            json!({"response": response("completed", json!([whole]), json!({"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}))}),
        ),
    ]
}

/// The same as what an upstream does.
pub fn says(events: impl IntoIterator<Item = String>) -> Vec<Does> {
    events.into_iter().map(Does::Say).collect()
}

/// A message that asks.
pub fn create(text: &str, more: &str) -> String {
    format!(r#"{{ "type":"response.create", "model":"m", "input":[{{"role":"user","content":"{text}"}}]{more} }}"#)
}

/// Opens a socket through the proxy.
pub async fn open(lab: &Lab, path: &str) -> Result<Socket, Error> {
    open_at(lab.address, path).await
}

/// Opens a socket at an address.
pub async fn open_at(address: SocketAddr, path: &str) -> Result<Socket, Error> {
    let stream = TcpStream::connect(address).await.expect("connect");
    let mut request = format!("ws://{address}{path}").into_client_request().expect("a request");
    let headers = request.headers_mut();
    headers.insert("authorization", "Bearer sk-test-1234567890abcdef".parse().expect("a value"));
    headers.insert("sec-websocket-extensions", "permessage-deflate; client_max_window_bits".parse().expect("a value"));
    let (socket, response) = within(client_async(request, stream)).await?;
    assert!(!response.headers().contains_key("sec-websocket-extensions"));
    Ok(socket)
}

/// Asks, and reads until the last message of a response.
pub async fn ask(socket: &mut Socket, message: &str) -> Vec<String> {
    within(socket.send(Message::text(message))).await.expect("sent");
    response(socket).await
}

/// Reads until the last message of a response.
pub async fn response(socket: &mut Socket) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let text = text(socket).await.unwrap_or_else(|| panic!("the socket ended after {texts:?}"));
        let is_last = ["completed", "incomplete", "failed"].iter().any(|end| kind(&text) == format!("response.{end}"));
        let is_error = kind(&text) == "error";
        texts.push(text);
        if is_last || is_error {
            return texts;
        }
    }
}

/// The next text; `None` where the socket ends.
pub async fn text(socket: &mut Socket) -> Option<String> {
    loop {
        match within(socket.next()).await? {
            Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            _ => return None,
        }
    }
}

/// The type of a message.
pub fn kind(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    value["type"].as_str().unwrap_or_default().to_owned()
}

/// What the deltas of a response say.
pub fn deltas(texts: &[String]) -> String {
    let deltas = texts.iter().filter(|text| kind(text) == "response.output_text.delta");
    deltas
        .map(|text| serde_json::from_str::<Value>(text).expect("JSON")["delta"].as_str().expect("a text").to_owned())
        .collect()
}

/// Says goodbye, and waits for the other side's.
pub async fn leave(mut socket: Socket) {
    within(socket.close(None)).await.expect("closed");
    while let Some(Ok(_)) = within(socket.next()).await {}
}
