//! A socket under way: messages pass between both sides until one of them ends.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream::FuturesUnordered};
use hyper::{http::request::Parts, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{CloseFrame, Role, frame::coding::CloseCode},
    },
};

use super::{
    call::AskingMessage,
    ending::{Goodbye, SocketEnding},
    settings, text_message,
    upstream_end::{SocketReading, SocketWriting, StreamId, UpstreamEnd},
};
use crate::{
    proxy::{
        arrival::Hinted,
        exchange::Proxy,
        listen::socket::Link,
        lock::locked,
        run::Run,
        tunnel::{SocketOpener, counts::PassedBytes},
        users::{User, Users},
    },
    surface::{
        Surface,
        socket::{self, ClientMessage, ServerMessage},
    },
};

/// Most requests of a socket that are under way or wait for the one before; then nothing more is read of it.
const CALLS_MAX: usize = 64;
/// Most messages that wait for a response to be delivered before them.
const BEHIND_MAX: usize = 64;
/// Kinds of unread messages that are told apart.
const KINDS_MAX: usize = 16;
/// Longest wait for what is under way once the upstream has ended.
const LINGER: Duration = Duration::from_secs(10);
/// Longest wait for the other side's goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// A connection that is to become a session.
#[derive(Debug)]
pub(in crate::proxy) struct Bridge {
    pub(super) api: &'static dyn Surface,
    pub(super) head: Parts,
    pub(super) hinted: Hinted,
    pub(super) client: OnUpgrade,
    /// The upstream has agreed already.
    pub(super) agreed: Option<OnUpgrade>,
    pub(super) end: UpstreamEnd,
    pub(super) opening: mpsc::Receiver<SocketReading>,
    pub(super) link: Arc<Link>,
}

/// What the parts of a session share.
pub(super) struct Session {
    pub(super) line: Arc<Proxy>,
    pub(super) user: Option<(Arc<Users>, Arc<User>)>,
    pub(super) api: &'static dyn Surface,
    /// The head of each request.
    pub(super) head: Parts,
    pub(super) hinted: Hinted,
    pub(super) end: UpstreamEnd,
    pub(super) link: Arc<Link>,
    client: tokio::sync::Mutex<SocketWriting>,
    counts: PassedBytes,
    /// What the upstream has said behind responses that are not delivered yet, by their streams.
    behind: Mutex<HashMap<StreamId, Vec<Bytes>>>,
    /// How many requests are under way or wait.
    under_way: watch::Sender<usize>,
    /// Messages that belong to no response, by kind.
    unread: Mutex<BTreeMap<String, u64>>,
    /// The run of the last request.
    pub(super) run: Arc<Mutex<Option<Arc<Run>>>>,
}

impl Bridge {
    /// Passes messages both ways to the end.
    pub(in crate::proxy) async fn run(self, opener: SocketOpener) {
        let Self { api, head, hinted, client, agreed, end, opening, link } = self;
        let Ok(client) = client.await else { return };
        if let Some(agreed) = agreed
            && end.begin(agreed).await.is_err()
        {
            return;
        }
        let settings = settings(opener.line.limits.max_body_bytes);
        let framed = WebSocketStream::from_raw_socket(TokioIo::new(client), Role::Server, Some(settings)).await;
        let (writing, mut reading) = framed.split();
        let session = Session {
            line: Arc::clone(&opener.line),
            user: opener.user.clone(),
            api,
            head,
            hinted,
            end,
            link,
            client: tokio::sync::Mutex::new(writing),
            counts: PassedBytes::new(),
            behind: Mutex::default(),
            under_way: watch::Sender::default(),
            unread: Mutex::default(),
            run: Arc::default(),
        };
        let ending = session.pass(&mut reading, opening, &opener).await;
        session.tell();
        session.close(ending, &mut reading).await;
    }
}

impl Session {
    /// Passes messages until the session ends, and ends what is under way then.
    async fn pass(
        &self,
        reading: &mut SocketReading,
        opening: mpsc::Receiver<SocketReading>,
        opener: &SocketOpener,
    ) -> SocketEnding {
        let (asking, asked) = mpsc::channel(1);
        let mut calls = Box::pin(self.calls(asked));
        let mut up = Box::pin(self.take_from_client(reading, asking));
        let ending = tokio::select! {
            ending = &mut up => ending,
            ending = self.take_from_upstream(opening) => ending,
            ending = &mut calls => ending,
            () = self.counts.idle(self.line.limits.tunnel_idle) => SocketEnding::Idle,
            () = opener.until_gone() => SocketEnding::Refused,
            () = self.until_over(opener.stopping.clone()) => SocketEnding::Stopping,
        };
        drop(up);
        if matches!(ending, SocketEnding::UpstreamClosed(_) | SocketEnding::UpstreamBroke) {
            self.end.end(matches!(ending, SocketEnding::UpstreamBroke));
            // What it has said before is delivered.
            let _ = tokio::time::timeout(LINGER, &mut calls).await;
        }
        // What is under way ends with `calls`.
        self.link.end_as(ending.cause());
        ending
    }

    /// Waits until the server stops and nothing is under way.
    async fn until_over(&self, mut stopping: watch::Receiver<()>) {
        // Its sender has gone when the server stops.
        let _ = stopping.changed().await;
        // Its sender is ours.
        let _ = self.under_way.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Takes what the client says.
    async fn take_from_client(&self, reading: &mut SocketReading, asking: mpsc::Sender<AskingMessage>) -> SocketEnding {
        while let Some(message) = reading.next().await {
            let message = match message {
                Ok(message) => message,
                Err(error) => return SocketEnding::of_client(&error),
            };
            self.counts.passed(&self.counts.from_client, message.len());
            match message {
                Message::Text(text) => {
                    let (message, received) = (Bytes::from(text), Instant::now());
                    match socket::client_message(&message) {
                        ClientMessage::Create { stream } => {
                            let stream = stream.map(std::borrow::Cow::into_owned);
                            if asking.send(AskingMessage { stream, message, received }).await.is_err() {
                                return SocketEnding::ClientGone;
                            }
                        }
                        ClientMessage::Other(kind) => {
                            self.pass_unread(&format!("{kind} of the client"), text_message(message.clone())).await;
                        }
                    }
                }
                Message::Close(frame) => return SocketEnding::ClientClosed(frame),
                Message::Ping(_) | Message::Pong(_) => drop(self.end.pass(message).await),
                other => self.pass_unread("binary of the client", other).await,
            }
        }
        SocketEnding::ClientGone
    }

    /// Passes on what asks for no response. Where the upstream's ids are checked, what names some unseen does not pass.
    async fn pass_unread(&self, kind: &str, message: Message) {
        let passes = self.line.runs.stored_ids().is_none() && self.end.pass(message).await.unwrap_or(true);
        self.count_unread(if passes { kind.to_owned() } else { format!("{kind}, not passed on") });
    }

    /// Takes what the upstream says, once it is open.
    async fn take_from_upstream(&self, mut opening: mpsc::Receiver<SocketReading>) -> SocketEnding {
        let Some(mut reading) = opening.recv().await else { return std::future::pending().await };
        while let Some(message) = reading.next().await {
            let Ok(message) = message else { return SocketEnding::UpstreamBroke };
            self.counts.passed(&self.counts.from_upstream, message.len());
            let said = match message {
                Message::Text(text) => self.hand_over(Bytes::from(text)).await,
                Message::Close(frame) => return SocketEnding::UpstreamClosed(frame),
                Message::Ping(_) | Message::Pong(_) => self.say(message).await,
                other => {
                    self.count_unread("binary of the upstream".to_owned());
                    self.say(other).await
                }
            };
            if let Err(ending) = said {
                return ending;
            }
        }
        SocketEnding::UpstreamBroke
    }

    /// Hands a message of the upstream to the response that it belongs to. One that belongs to none passes, behind those that are
    /// being delivered on its stream.
    async fn hand_over(&self, message: Bytes) -> Result<(), SocketEnding> {
        let bytes = message.clone();
        let head: ServerMessage<'_> = socket::server_message(&bytes);
        match self.end.awaiting(&head) {
            Some(reader) if !head.is_beside => {
                // Where its reader has left, the rest of a response is nobody's.
                let _ = reader.send(message).await;
                return Ok(());
            }
            awaited => {
                self.count_unread(format!("{} of the upstream", head.kind));
                let mut behind = locked(&self.behind);
                let stream: StreamId = head.stream.as_deref().map(str::to_owned);
                let waiting = behind.get_mut(&stream).filter(|waiting| awaited.is_none() && waiting.len() < BEHIND_MAX);
                if let Some(waiting) = waiting {
                    waiting.push(message);
                    return Ok(());
                }
            }
        }
        self.say(text_message(message)).await
    }

    /// Answers requests: those of one stream one after the other.
    async fn calls(&self, mut asked: mpsc::Receiver<AskingMessage>) -> SocketEnding {
        let mut under_way = FuturesUnordered::new();
        let mut waiting: HashMap<StreamId, VecDeque<AskingMessage>> = HashMap::new();
        let (mut count, mut is_open) = (0, true);
        while is_open || count > 0 {
            self.under_way.send_replace(count);
            tokio::select! {
                Some((stream, ended)) = under_way.next(), if !under_way.is_empty() => {
                    if let Err(ending) = ended {
                        return ending;
                    }
                    count -= 1;
                    match waiting.get_mut(&stream).and_then(VecDeque::pop_front) {
                        Some(next) => under_way.push(self.in_turn(next)),
                        None => drop(waiting.remove(&stream)),
                    }
                }
                call = asked.recv(), if is_open && count < CALLS_MAX => match call {
                    None => is_open = false,
                    Some(call) => {
                        count += 1;
                        if let Some(others) = waiting.get_mut(&call.stream) {
                            others.push_back(call);
                        } else {
                            waiting.insert(call.stream.clone(), VecDeque::new());
                            under_way.push(self.in_turn(call));
                        }
                    }
                },
            }
        }
        SocketEnding::ClientGone
    }

    /// Answers a request, and says what came behind its response.
    async fn in_turn(&self, asked: AskingMessage) -> (StreamId, Result<(), SocketEnding>) {
        let stream = asked.stream.clone();
        locked(&self.behind).insert(stream.clone(), Vec::new());
        let mut ended = self.answer(asked).await;
        let behind = locked(&self.behind).remove(&stream).unwrap_or_default();
        for message in behind {
            if ended.is_ok() {
                ended = self.say(text_message(message)).await;
            }
        }
        (stream, ended)
    }

    /// Says something to the client.
    pub(super) async fn say(&self, message: Message) -> Result<(), SocketEnding> {
        self.client.lock().await.send(message).await.map_err(|_| SocketEnding::ClientGone)
    }

    fn count_unread(&self, kind: String) {
        let mut unread = locked(&self.unread);
        let kind = if unread.len() < KINDS_MAX || unread.contains_key(&kind) { kind } else { "others".to_owned() };
        *unread.entry(kind).or_default() += 1;
    }

    /// Writes down what passed unread.
    fn tell(&self) {
        let unread = std::mem::take(&mut *locked(&self.unread));
        if unread.is_empty() {
            return;
        }
        let counted = |(kind, count): (String, u64)| format!("{count} × {}", kind.chars().take(80).collect::<String>());
        let counted = unread.into_iter().map(counted).collect::<Vec<_>>().join("; ");
        let note = format!("messages of a WebSocket that belong to no response: {counted}");
        if let Some(run) = &*locked(&self.run) {
            run.recorder.note(&note);
        } else {
            tracing::warn!("{note}");
        }
    }

    /// Says goodbye to both sides, as far as they are to hear it.
    async fn close(&self, ending: SocketEnding, reading: &mut SocketReading) {
        let away = Some(CloseFrame { code: CloseCode::Away, reason: "".into() });
        let to_upstream = if let SocketEnding::ClientClosed(frame) = &ending { frame.clone() } else { away };
        let _ = tokio::time::timeout(GOODBYE, self.end.pass(Message::Close(to_upstream))).await;
        let goodbye = match ending.goodbye() {
            Goodbye::None => return,
            Goodbye::Echoed => None,
            Goodbye::Say(frame) => Some(frame),
        };
        let parting = async {
            let is_said = match goodbye {
                Some(frame) => self.say(Message::Close(frame)).await.is_ok(),
                None => true,
            };
            if is_said {
                while let Some(Ok(_)) = reading.next().await {}
            }
        };
        let _ = tokio::time::timeout(GOODBYE, parting).await;
    }
}
