//! A socket under way: messages pass between both sides until one of them ends.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    stream::{FuturesUnordered, SplitStream},
};
use hyper::{http::request::Parts, upgrade::OnUpgrade};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use super::{
    call::{AskingMessage, SocketCalls},
    continuing::Continuable,
    upstream_end::{SocketReading, UpstreamEnd},
    words::StreamId,
};
use crate::{
    proxy::{
        arrival::Hinted,
        error::ProxyError,
        limits::Limits,
        listen::socket::Link,
        lock::locked,
        memory::{GatheredMessage, HeldMemory},
        tunnel::{
            SocketOpener,
            counts::{PassedBytes, UnreadMessages},
            ending::{Goodbye, SocketEnding},
            framed::{ClientEnd, ClientSocket, text_message},
        },
    },
    surface::{
        Surface,
        socket::{self, ClientMessage},
    },
    trajectory::CloseCause,
};

/// Most requests of a socket that are under way or wait for the one before; then nothing more is read of it.
const CALLS_MAX: usize = 64;
/// Most messages that wait for a response to be delivered before them.
const BEHIND_MAX: usize = 64;
/// Longest wait for what is under way once the upstream has ended.
const LINGER: Duration = Duration::from_secs(10);
/// Longest wait for the other side's goodbye.
const GOODBYE: Duration = Duration::from_secs(1);
/// What a client's frame of control has beside its payload, in bytes.
const CONTROL_HEAD: usize = 6;
/// What is counted as a message to a response under way.
const STEER: &str = "response.steer of the client";

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
struct Session {
    calls: SocketCalls,
    end: UpstreamEnd,
    /// What has come of the client's next message.
    gathered: GatheredMessage,
    counts: PassedBytes,
    /// Where messages go that ask for a response.
    asking: mpsc::UnboundedSender<AskingMessage>,
    /// How many requests are under way or wait.
    under_way: watch::Sender<usize>,
    /// What the upstream has said behind responses that are not delivered yet, by their streams.
    behind: Mutex<HashMap<StreamId, Vec<Bytes>>>,
    /// Messages that belong to no response, by kind.
    unread: Mutex<UnreadMessages>,
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
        let ClientEnd { writing, mut reading, gathered, refused } = ClientEnd::new(client, &opener.line.limits).await;
        let (line, user, client) = (Arc::clone(&opener.line), opener.user.clone(), tokio::sync::Mutex::new(writing));
        let (asking, asked) = mpsc::unbounded_channel();
        let session = Session {
            calls: SocketCalls { line, user, api, head, hinted, link, client, continuable: Continuable::default() },
            end,
            gathered,
            counts: PassedBytes::new(),
            asking,
            under_way: watch::Sender::default(),
            behind: Mutex::default(),
            unread: Mutex::default(),
        };
        let ending = session.pass(&mut reading, opening, asked, refused, &opener).await;
        session.tell();
        session.close(ending, &mut reading).await;
    }
}

impl Session {
    /// Passes messages until the session ends, and ends what is under way then.
    async fn pass(
        &self,
        reading: &mut SplitStream<ClientSocket>,
        opening: mpsc::Receiver<SocketReading>,
        asked: mpsc::UnboundedReceiver<AskingMessage>,
        refused: oneshot::Receiver<ProxyError>,
        opener: &SocketOpener,
    ) -> SocketEnding {
        let Limits { body_timeout, tunnel_idle, .. } = self.calls.line.limits;
        let mut calls = Box::pin(self.answer(asked));
        let ending = tokio::select! {
            ending = self.take_from_client(reading) => ending,
            ending = self.take_from_upstream(opening) => ending,
            ending = &mut calls => {
                self.calls.link.end_as(ending.cause);
                return ending;
            }
            Ok(full) = refused => SocketEnding::refused(full),
            () = self.gathered.overdue(body_timeout) => SocketEnding::refused(ProxyError::BodyTimeout(body_timeout)),
            () = self.counts.idle(tunnel_idle) => {
                SocketEnding::closed(CloseCause::Idle, CloseCode::Away)
            }
            () = opener.until_gone() => SocketEnding::closed(CloseCause::Refused, CloseCode::Policy),
            () = self.until_over(opener.stopping.clone()) => SocketEnding::STOPPING,
        };
        if let Some(broken) = ending.of_upstream() {
            self.end.end(broken);
            // What it has said before is delivered.
            let _ = tokio::time::timeout(LINGER, async {
                tokio::select! {
                    _ = &mut calls => {}
                    () = self.until_at_most(0) => {}
                }
            })
            .await;
        }
        // What is under way ends with `calls`.
        self.calls.link.end_as(ending.cause);
        ending
    }

    /// Waits until the server stops and nothing is under way.
    async fn until_over(&self, mut stopping: watch::Receiver<()>) {
        // Its sender has gone when the server stops.
        let _ = stopping.changed().await;
        self.until_at_most(0).await;
    }

    /// Waits until no more requests are under way or wait.
    async fn until_at_most(&self, most: usize) {
        // Its sender is ours.
        let _ = self.under_way.subscribe().wait_for(|count| *count <= most).await;
    }

    /// Takes what the client says.
    async fn take_from_client(&self, reading: &mut SplitStream<ClientSocket>) -> SocketEnding {
        while let Some(message) = reading.next().await {
            let message = match message {
                Ok(message) => message,
                Err(error) => return SocketEnding::of_client(&error),
            };
            self.counts.passed(&self.counts.from_client, message.len());
            match message {
                Message::Text(text) => self.take_text(Bytes::from(text)).await,
                Message::Close(frame) => return SocketEnding { cause: None, goodbye: Goodbye::Echoed(frame) },
                Message::Ping(_) | Message::Pong(_) => {
                    self.gathered.passed(message.len() + CONTROL_HEAD);
                    let _ = self.end.pass(message).await;
                }
                other => {
                    let _memory = self.gathered.take();
                    self.pass_unread("binary of the client", other).await;
                }
            }
        }
        SocketEnding::CLIENT_GONE
    }

    async fn take_text(&self, message: Bytes) {
        let (memory, received, end) = (self.gathered.take(), Instant::now(), self.end.clone());
        let text = message.clone();
        let asked = AskingMessage { stream: None, message, memory, received, end, last: None };
        match socket::client_message(&text) {
            ClientMessage::Create { stream } => {
                self.until_at_most(CALLS_MAX - 1).await;
                self.ask(AskingMessage { stream: stream.map(Cow::into_owned), ..asked });
            }
            ClientMessage::Steer { response } => {
                self.calls.continuable.steer(response.into_owned(), &text);
                self.pass_unread(STEER, text_message(text.clone(), true)).await;
            }
            ClientMessage::Other(kind) => {
                self.pass_unread(&format!("{kind} of the client"), text_message(text.clone(), true)).await;
            }
        }
    }

    fn ask(&self, asked: AskingMessage) {
        self.under_way.send_modify(|count| *count += 1);
        // Its receiver goes with this session.
        let _ = self.asking.send(asked);
    }

    /// Passes on what asks for no response. Where the upstream's ids are checked, what names some unseen does not pass.
    async fn pass_unread(&self, kind: &str, message: Message) {
        let passes = self.calls.line.runs.stored_ids().is_none() && self.end.pass(message).await.unwrap_or(true);
        self.count_unread(if passes { kind.to_owned() } else { format!("{kind}, not passed on") });
    }

    /// Takes what the upstream says, once it is open.
    async fn take_from_upstream(&self, mut opening: mpsc::Receiver<SocketReading>) -> SocketEnding {
        let Some(mut reading) = opening.recv().await else { return std::future::pending().await };
        while let Some(message) = reading.next().await {
            let Ok(message) = message else { break };
            self.counts.passed(&self.counts.from_upstream, message.len());
            let said = match message {
                Message::Text(text) => self.hand_over(Bytes::from(text)).await,
                Message::Close(frame) => {
                    return SocketEnding { cause: Some(CloseCause::UpstreamReset), goodbye: Goodbye::Passed(frame) };
                }
                Message::Ping(_) | Message::Pong(_) => self.calls.say(message).await,
                other => {
                    self.count_unread("binary of the upstream".to_owned());
                    self.calls.say(other).await
                }
            };
            if let Err(ending) = said {
                return ending;
            }
        }
        SocketEnding::broken(CloseCause::UpstreamReset)
    }

    /// Hands a message of the upstream to the response that it belongs to. One that belongs to none passes, behind those that are
    /// being delivered on its stream.
    async fn hand_over(&self, message: Bytes) -> Result<(), SocketEnding> {
        let bytes = message.clone();
        let head = socket::server_message(&bytes);
        let mut awaited = self.end.awaiting(&head);
        if awaited.is_none() && head.is_first {
            self.start(&bytes, head.stream.as_deref().map(str::to_owned));
            awaited = self.end.awaiting(&head);
        }
        match awaited {
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
        self.calls.say(text_message(message, true)).await
    }

    /// The server starts a response by itself: what the client has last said to the one before stands for its request.
    fn start(&self, first: &[u8], stream: StreamId) {
        let Some(end) = self.end.start(stream.clone()) else { return };
        let continued = socket::continued(first);
        let last = self.calls.continuable.last(continued.as_deref());
        let steer = continued.as_deref().and_then(|response| self.calls.continuable.take_steer(response));
        if steer.is_some() {
            locked(&self.unread).remove(STEER);
        }
        let message = steer.unwrap_or_else(|| socket::unasked(continued.as_deref()));
        let memory = HeldMemory::default();
        self.ask(AskingMessage { stream, message, memory, received: Instant::now(), end, last });
    }

    /// Answers requests: those of one stream one after the other.
    async fn answer(&self, mut asked: mpsc::UnboundedReceiver<AskingMessage>) -> SocketEnding {
        let mut under_way = FuturesUnordered::new();
        let mut waiting: HashMap<StreamId, VecDeque<AskingMessage>> = HashMap::new();
        loop {
            tokio::select! {
                Some((stream, ended)) = under_way.next() => {
                    if let Err(ending) = ended {
                        return ending;
                    }
                    self.under_way.send_modify(|count| *count -= 1);
                    match waiting.get_mut(&stream).and_then(VecDeque::pop_front) {
                        Some(next) => under_way.push(self.in_turn(next)),
                        None => drop(waiting.remove(&stream)),
                    }
                }
                Some(call) = asked.recv() => match waiting.entry(call.stream.clone()) {
                    Entry::Occupied(mut others) => others.get_mut().push_back(call),
                    Entry::Vacant(place) => {
                        place.insert(VecDeque::new());
                        under_way.push(self.in_turn(call));
                    }
                },
            }
        }
    }

    /// Answers a request, and says what came behind its response.
    async fn in_turn(&self, asked: AskingMessage) -> (StreamId, Result<(), SocketEnding>) {
        let stream = asked.stream.clone();
        locked(&self.behind).insert(stream.clone(), Vec::new());
        let mut ended = self.calls.answer(asked).await;
        let behind = locked(&self.behind).remove(&stream).unwrap_or_default();
        for message in behind {
            if ended.is_ok() {
                ended = self.calls.say(text_message(message, true)).await;
            }
        }
        (stream, ended)
    }

    fn count_unread(&self, kind: String) {
        locked(&self.unread).add(kind);
    }

    /// Writes down what passed unread.
    fn tell(&self) {
        let Some(note) = locked(&self.unread).note() else { return };
        if let Some(last) = self.calls.continuable.last(None) {
            last.run.recorder.note(&note);
        } else {
            tracing::warn!("{note}");
        }
    }

    /// Says goodbye to both sides, as far as they are to hear it.
    async fn close(&self, ending: SocketEnding, reading: &mut SplitStream<ClientSocket>) {
        let of_ours = |code| Some(CloseFrame { code, reason: "".into() });
        let (to_upstream, to_client) = match ending.goodbye {
            Goodbye::Echoed(frame) => (frame, None),
            Goodbye::Passed(frame) => (of_ours(CloseCode::Away), Some(Some(frame))),
            Goodbye::Code(code) => (of_ours(CloseCode::Away), Some(Some(of_ours(code)))),
            Goodbye::Refused(error) => {
                let _ = tokio::time::timeout(GOODBYE, self.calls.refuse(error, None)).await;
                (of_ours(CloseCode::Away), Some(Some(of_ours(CloseCode::Again))))
            }
            Goodbye::None => (of_ours(CloseCode::Away), Some(None)),
        };
        let _ = tokio::time::timeout(GOODBYE, self.end.pass(Message::Close(to_upstream))).await;
        let parting = async {
            let is_heard = match to_client {
                Some(Some(frame)) => self.calls.say(Message::Close(frame)).await.is_ok(),
                Some(None) => false,
                None => true,
            };
            if is_heard {
                while let Some(Ok(_)) = reading.next().await {}
            }
        };
        let _ = tokio::time::timeout(GOODBYE, parting).await;
    }
}
