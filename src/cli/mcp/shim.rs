//! The shim itself: three streams of messages (the client's, the attachment's, the server's), and how it ends.

use std::{
    collections::HashMap,
    ffi::OsString,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    io::{AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{mpsc, oneshot},
    task::{AbortHandle, JoinHandle},
};

use super::{
    answer,
    console::{self, ClientOutput},
    message::{MessageKind, RpcId, event, one_line},
    pending::{PendingRequest, PendingRequests, ReplyPlace, ServerRoute},
    tasks::Tasks,
    unattached, unstarted,
};
use crate::{
    cli::{Exit, Failure, signals::Signals},
    proxy::{AttachClient, AttachError, AttachedMessage, AttachedMessages, ReturnedReply},
};

/// How long a message waits until the server has the one before it. A message that a plan delays holds no other back longer.
const ORDER_WAIT: Duration = Duration::from_millis(100);
/// How long answers that are under way are waited for when the client says nothing more.
const ANSWERS_WAIT: Duration = Duration::from_millis(1500);
/// How long a server whose input has ended may take to end, as long as it owes no answer; and how often it may take that long.
const EXIT_WAIT: Duration = Duration::from_secs(5);
const EXIT_WAITS: usize = 12;
/// How long a server that is asked to end may take.
const TERM_WAIT: Duration = Duration::from_secs(2);
/// How long what a server has said last may take to reach the client.
const LAST_WAIT: Duration = Duration::from_secs(2);
/// Events of one reply that wait at most.
const EVENTS_MAX: usize = 64;

/// What all streams share.
#[derive(Debug)]
struct Shim {
    name: String,
    proxy: AttachClient,
    client: ClientOutput,
    /// The server's input, until it is closed.
    input: tokio::sync::Mutex<Option<ChildStdin>>,
    /// The attachment, while there is one.
    attachment: tokio::sync::Mutex<Option<Attached>>,
    /// Requests that the server has.
    pending: Mutex<PendingRequests>,
    /// Requests of the client that are under way.
    calls: Mutex<HashMap<RpcId, ClientCall>>,
    posts: Tasks,
    replies: Tasks,
}

/// An attachment, and who reads from it.
#[derive(Debug)]
struct Attached {
    id: String,
    reader: AbortHandle,
}

/// A request of the client.
#[derive(Debug)]
struct ClientCall {
    post: AbortHandle,
    /// Whoever waits until the server has it.
    handed: Option<oneshot::Sender<()>>,
}

/// Stands for a server until that ends.
pub(super) async fn run(name: &str, command: &[OsString], proxy: AttachClient) -> Result<Exit, Failure> {
    let messages = proxy.attach(name).await.map_err(unattached)?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::new(Exit::Usage, "no command is named"));
    };
    let mut server = Command::new(program);
    server.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut server = server.spawn().map_err(|error| unstarted(program, &error))?;
    let output = server.stdout.take();
    let shim = Arc::new(Shim {
        name: name.to_owned(),
        proxy,
        client: ClientOutput::start(),
        input: tokio::sync::Mutex::new(server.stdin.take()),
        attachment: tokio::sync::Mutex::default(),
        pending: Mutex::default(),
        calls: Mutex::default(),
        posts: Tasks::default(),
        replies: Tasks::default(),
    });
    *shim.attachment.lock().await = Some(shim.read_from(messages));
    let forwarding = tokio::spawn(Arc::clone(&shim).forward(console::client_lines()));
    let replying = tokio::spawn(Arc::clone(&shim).take_replies(output));
    let ended = shim.end_of(&mut server, forwarding).await;
    shim.finish(replying).await;
    ended.map(exit).map_err(|error| Failure::new(Exit::Infrastructure, error))
}

/// How the shim ends: as the server.
fn exit(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().and_then(|signal| u8::try_from(signal).ok());
    match (status.code().and_then(|code| u8::try_from(code).ok()), signal) {
        (Some(0), _) => Exit::Ok,
        (Some(code), _) => Exit::Command(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shim {
    /// Leads the client's messages to the proxy, each after the server has the one before it.
    async fn forward(self: Arc<Self>, mut lines: mpsc::Receiver<Bytes>) {
        while let Some(line) = lines.recv().await {
            let kind = MessageKind::read(&line);
            let (handed, is_handed) = oneshot::channel();
            if let MessageKind::Request(id, _) = kind.clone() {
                let post = self.posts.spawn(Arc::clone(&self).post(line, kind, None));
                // The post begins when this waits, and not before.
                locked(&self.calls).insert(id, ClientCall { post, handed: Some(handed) });
            } else {
                self.posts.spawn(Arc::clone(&self).post(line, kind, Some(handed)));
            }
            let _ = tokio::time::timeout(ORDER_WAIT, is_handed).await;
        }
        self.posts.finish(ANSWERS_WAIT).await;
        *self.input.lock().await = None;
    }

    /// Posts a message, and writes what the proxy answers. `done` is dropped at the end.
    async fn post(self: Arc<Self>, line: Bytes, kind: MessageKind, done: Option<oneshot::Sender<()>>) {
        let id = match &kind {
            MessageKind::Request(id, _) => Some(id),
            _ => None,
        };
        let response = match self.attachment().await {
            Ok(attachment) => self.proxy.post(&self.name, &attachment, line).await,
            Err(error) => Err(error),
        };
        match response {
            Ok(response) => answer::write(response, id, &self.client).await,
            Err(error) => answer::fail(&error.to_string(), id, &self.client).await,
        }
        match &kind {
            MessageKind::Request(id, _) => drop(locked(&self.calls).remove(id)),
            MessageKind::Cancel(id) => self.give_up(id),
            _ => {}
        }
        drop(done);
    }

    /// Leaves the reply to a request that the client has given up.
    fn give_up(&self, id: &RpcId) {
        if let Some(call) = locked(&self.calls).remove(id) {
            call.post.abort();
        }
        locked(&self.pending).forget(id);
    }

    /// The id of the attachment; of a new one where the proxy has ended the one before.
    async fn attachment(self: &Arc<Self>) -> Result<String, AttachError> {
        let mut attached = self.attachment.lock().await;
        if attached.is_none() {
            *attached = Some(self.read_from(self.proxy.attach(&self.name).await?));
        }
        Ok(attached.as_ref().map(|attached| attached.id.clone()).unwrap_or_default())
    }

    /// Hands over what comes from an attachment.
    fn read_from(self: &Arc<Self>, messages: AttachedMessages) -> Attached {
        let id = messages.id.clone();
        let reader = tokio::spawn(Arc::clone(self).hand_over(messages)).abort_handle();
        Attached { id, reader }
    }

    /// Gives the server the messages of an attachment, to its end.
    async fn hand_over(self: Arc<Self>, mut messages: AttachedMessages) {
        loop {
            match messages.next().await {
                Ok(Some(AttachedMessage { number, message })) => {
                    self.hand(ReplyPlace { attachment: messages.id.clone(), number }, message.as_bytes()).await;
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!("the attachment has ended: {error}");
                    break;
                }
            }
        }
        let mut attached = self.attachment.lock().await;
        if attached.as_ref().is_some_and(|attached| attached.id == messages.id) {
            *attached = None;
        }
    }

    /// Gives the server a message.
    async fn hand(self: &Arc<Self>, place: ReplyPlace, message: &[u8]) {
        let kind = MessageKind::read(message);
        if let MessageKind::Cancel(id) = &kind {
            // Before the server can answer what the client no longer waits for: a replay would give that answer to a client
            // which has not given up yet.
            self.give_up(id);
        }
        let MessageKind::Request(id, token) = kind else {
            self.write(message).await;
            return self.reply(place, ReturnedReply::Nothing);
        };
        locked(&self.pending).insert(id.clone(), token, place);
        self.write(message).await;
        let handed = locked(&self.calls).get_mut(&id).and_then(|call| call.handed.take());
        let _ = handed.map(|handed| handed.send(()));
    }

    async fn write(&self, message: &[u8]) {
        if let Some(input) = self.input.lock().await.as_mut() {
            // A server that has closed its input has ended, or is about to.
            let _ = input.write_all(&one_line(message)).await;
            let _ = input.flush().await;
        }
    }

    /// Hands a reply back to the proxy.
    fn reply(self: &Arc<Self>, place: ReplyPlace, reply: ReturnedReply) {
        let shim = Arc::clone(self);
        self.replies.spawn(async move {
            let ReplyPlace { attachment, number } = place;
            if let Err(error) = shim.proxy.reply(&shim.name, &attachment, number, reply).await {
                tracing::debug!("a reply of the server did not pass: {error}");
            }
        });
    }

    /// Leads what the server says to where it belongs, until it says nothing more.
    async fn take_replies(self: Arc<Self>, output: Option<ChildStdout>) {
        let Some(output) = output else { return };
        let mut output = BufReader::new(output);
        while let Some(line) = console::server_line(&mut output).await {
            if !line.trim_ascii().is_empty() {
                self.take_reply(line).await;
            }
        }
    }

    async fn take_reply(self: &Arc<Self>, line: Bytes) {
        let events = match locked(&self.pending).route(&MessageKind::read(&line)) {
            ServerRoute::Ends(PendingRequest { place, events: None, .. }) => {
                return self.reply(place, ReturnedReply::Message(line));
            }
            ServerRoute::Ends(PendingRequest { events, .. }) => events,
            ServerRoute::Within(request) => Some(self.events(request)),
            ServerRoute::Direct => None,
        };
        match events {
            // Where nobody reads on, the client has its error already.
            Some(events) => drop(events.send(Bytes::from(event(&line))).await),
            None => self.client.line(one_line(&line)).await,
        }
    }

    /// The events of a request's reply, which begins with the first of them.
    fn events(self: &Arc<Self>, request: &mut PendingRequest) -> mpsc::Sender<Bytes> {
        let PendingRequest { place, events, .. } = request;
        let begin = || {
            let (sender, events) = mpsc::channel(EVENTS_MAX);
            self.reply(place.clone(), ReturnedReply::Events(events));
            sender
        };
        events.get_or_insert_with(begin).clone()
    }

    /// Waits for the server's end, and brings it about where the client has left or a signal says so.
    async fn end_of(&self, server: &mut Child, forwarding: JoinHandle<()>) -> std::io::Result<ExitStatus> {
        let signals = Signals::listen();
        let signalled = async {
            match signals {
                Some(mut signals) => signals.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = server.wait() => return ended,
            () = self.left_alone(forwarding) => {}
            _ = signalled => {}
        }
        if let Some(id) = server.id().and_then(|id| i32::try_from(id).ok()) {
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
        if let Ok(ended) = tokio::time::timeout(TERM_WAIT, server.wait()).await {
            return ended;
        }
        server.start_kill()?;
        server.wait().await
    }

    /// Resolves when the client has said its last, and the server has had its time to end.
    async fn left_alone(&self, forwarding: JoinHandle<()>) {
        let _ = forwarding.await;
        for _ in 0..EXIT_WAITS {
            tokio::time::sleep(EXIT_WAIT).await;
            if locked(&self.pending).is_empty() {
                break;
            }
        }
    }

    /// The server has ended: what it has said reaches the client, and what it owes is answered with an error.
    async fn finish(&self, mut replying: JoinHandle<()>) {
        // A process that it has left behind may keep its output open.
        if tokio::time::timeout(LAST_WAIT, &mut replying).await.is_err() {
            replying.abort();
        }
        self.replies.finish(LAST_WAIT).await;
        if let Some(attached) = self.attachment.lock().await.take() {
            attached.reader.abort();
        }
        self.posts.finish(LAST_WAIT).await;
        self.client.flushed(LAST_WAIT).await;
    }
}
