//! Servers of tools that no address leads to: a program that holds one by its standard input and output attaches it here, and
//! answers the messages that name its attachment.
//!
//! An attachment is found by an id that the proxy has made, in the line of the user who attached it, and by nothing else.

pub(super) mod client;
mod endpoint;
mod stream;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Request, Response, header::HeaderName};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};

use self::stream::AttachedLines;
use super::{
    error::ProxyError,
    lock::locked,
    upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream, UpstreamError},
};

/// Names the attachment that answers a message.
pub(super) static ATTACHMENT: HeaderName = HeaderName::from_static("x-aegis-attachment");
/// Where servers are attached, before their name.
const PLACE: &str = "/aegis/v1/mcp/";
/// Most attachments of a line at once.
const ATTACHMENTS_MAX: usize = 256;
/// Most messages of an attachment that wait for a reply.
const WAITING_MAX: usize = 256;

/// What is answered below [`PLACE`]: an attachment, and the reply to a message of one.
pub const ATTACHED_PATHS: [&str; 2] = ["/aegis/v1/mcp/{name}", "/aegis/v1/mcp/{name}/{id}/{number}"];

/// Whether a path leads to attachments, and not to an upstream.
pub(super) fn is_place(path: &str) -> bool {
    path.starts_with(PLACE)
}

/// Whether a path, whatever stands before it, brings the reply to a message: whoever waits for that has its place already.
pub(super) fn brings_reply(path: &str) -> bool {
    path.split_once(PLACE).is_some_and(|(_, rest)| rest.split('/').count() == 3)
}

/// The attachments of a line, by id.
#[derive(Debug, Default)]
pub(super) struct Attachments(Mutex<BTreeMap<String, Arc<Attachment>>>);

/// One server.
#[derive(Debug)]
struct Attachment {
    name: String,
    /// How long it may take to begin an answer.
    patience: Duration,
    state: Mutex<AttachmentState>,
}

#[derive(Debug)]
struct AttachmentState {
    /// Where its messages go; `None` once it takes no more.
    lines: Option<mpsc::Sender<Bytes>>,
    /// Who waits for a reply, by the number of the message.
    waiting: HashMap<u64, oneshot::Sender<Response<ReceivedBody>>>,
    next: u64,
    /// It ends as soon as nothing waits.
    stops: bool,
}

impl Attachments {
    /// A new attachment of this name: what it is to read.
    ///
    /// # Errors
    /// There are too many, or the system has no random numbers.
    fn attach(self: &Arc<Self>, name: &str, patience: Duration) -> Result<AttachedLines, ProxyError> {
        let mut random = [0; 16];
        SystemRandom::new().fill(&mut random).map_err(|_| ProxyError::Internal)?;
        let id = format!("{:032x}", u128::from_be_bytes(random));
        let (lines, reading) = mpsc::channel(WAITING_MAX + 1);
        let first = serde_json::json!({"attachment": id}).to_string() + "\n";
        lines.try_send(Bytes::from(first)).map_err(|_| ProxyError::Internal)?;
        let state = AttachmentState { lines: Some(lines), waiting: HashMap::new(), next: 0, stops: false };
        let attachment = Attachment { name: name.to_owned(), patience, state: Mutex::new(state) };
        let mut attachments = locked(&self.0);
        if attachments.len() >= ATTACHMENTS_MAX {
            return Err(ProxyError::BusyAttachments { limit: ATTACHMENTS_MAX });
        }
        attachments.insert(id.clone(), Arc::new(attachment));
        Ok(AttachedLines::new(reading, Arc::clone(self), id))
    }

    /// The attachment of this id, if it has this name.
    fn find(&self, id: &str, name: &str) -> Option<Arc<Attachment>> {
        locked(&self.0).get(id).filter(|attachment| attachment.name == name).cloned()
    }

    /// Whoever answers the messages to this path that name this attachment.
    pub(super) fn server(&self, id: &str, path: &str) -> AttachedServer {
        let place = path.split('?').next().unwrap_or_default().trim_start_matches('/');
        let name = place.split('/').nth(1).unwrap_or_default();
        AttachedServer { name: name.to_owned(), attachment: self.find(id, name) }
    }

    /// Forgets an attachment; who waits for a reply of it has none.
    fn detach(&self, id: &str) {
        let attachment = locked(&self.0).remove(id);
        if let Some(attachment) = attachment {
            let mut state = locked(&attachment.state);
            state.lines = None;
            state.waiting.clear();
        }
    }

    /// Ends each attachment as soon as no message waits for its reply.
    pub(super) fn stop(&self) {
        for attachment in locked(&self.0).values() {
            let mut state = locked(&attachment.state);
            state.stops = true;
            state.end_where_idle();
        }
    }
}

impl AttachmentState {
    fn end_where_idle(&mut self) {
        if self.stops && self.waiting.is_empty() {
            self.lines = None;
        }
    }
}

impl Attachment {
    /// Hands a message over, and waits for the head of the reply.
    async fn answer(&self, message: &Bytes) -> Result<Response<ReceivedBody>, UpstreamError> {
        let message = std::str::from_utf8(message).map_err(UpstreamError::unreachable)?;
        let (number, reply) = self.hand_over(message)?;
        let _place = WaitingPlace { attachment: self, number };
        match tokio::time::timeout(self.patience, reply).await {
            Err(_) => Err(UpstreamError::Timeout(self.patience)),
            Ok(Err(_)) => Err(UpstreamError::Closed("the attached server has ended".into())),
            Ok(Ok(response)) => Ok(response),
        }
    }

    fn hand_over(&self, message: &str) -> Result<(u64, oneshot::Receiver<Response<ReceivedBody>>), UpstreamError> {
        let mut state = locked(&self.state);
        let number = state.next;
        let line = serde_json::json!({"n": number, "message": message}).to_string() + "\n";
        let room = state.waiting.len() < WAITING_MAX;
        let lines = state.lines.as_ref().ok_or_else(|| detached(&self.name))?;
        let handed = if room { lines.try_send(Bytes::from(line)) } else { Err(TrySendError::Full(Bytes::new())) };
        handed.map_err(|error| match error {
            TrySendError::Full(_) => UpstreamError::unreachable(format!(
                "{WAITING_MAX} messages wait for the attached server `{}`",
                self.name
            )),
            TrySendError::Closed(_) => detached(&self.name),
        })?;
        let (sender, receiver) = oneshot::channel();
        state.next += 1;
        state.waiting.insert(number, sender);
        Ok((number, receiver))
    }

    /// Who waits for the reply to a message.
    fn waiting(&self, number: u64) -> Option<oneshot::Sender<Response<ReceivedBody>>> {
        let mut state = locked(&self.state);
        let waiting = state.waiting.remove(&number);
        state.end_where_idle();
        waiting
    }
}

/// Gives a message's place up when nobody waits for its reply any more.
struct WaitingPlace<'a> {
    attachment: &'a Attachment,
    number: u64,
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        drop(self.attachment.waiting(self.number));
    }
}

fn detached(name: &str) -> UpstreamError {
    UpstreamError::unreachable(format!("nothing is attached as `{name}` under this id: `aegis mcp` has ended"))
}

/// The attachment that a message names, as an upstream. It travels in the request's extensions where others decide who answers.
#[derive(Debug, Clone)]
pub(super) struct AttachedServer {
    name: String,
    /// `None` where there is no such attachment.
    attachment: Option<Arc<Attachment>>,
}

impl AttachedServer {
    /// Sends it a message.
    pub(super) fn send(self, request: Request<SentBody>) -> BackendAnswering<'static> {
        Box::pin(async move {
            let attachment = self.attachment.as_ref().ok_or_else(|| detached(&self.name))?;
            let body = request.into_body().collect().await.map_err(UpstreamError::Closed)?.to_bytes();
            attachment.answer(&body).await
        })
    }
}

/// The attachment that a request carries, where it carries one.
pub(super) fn carried(request: &mut Request<SentBody>) -> Option<AttachedServer> {
    request.extensions_mut().remove()
}

/// Sends a message to its attachment, or to the run's own upstream, which decides whether the attachment gets it.
pub(super) async fn send(
    mut request: Request<SentBody>,
    server: AttachedServer,
    own: Option<&Arc<dyn Upstream>>,
) -> Result<Response<ReceivedBody>, UpstreamError> {
    let Some(own) = own else { return server.send(request).await };
    request.extensions_mut().insert(server);
    own.send(request).await
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn paths_of_attachments() {
        assert!(is_place("/aegis/v1/mcp/calc") && !is_place("/v1/aegis/v1/mcp/calc") && !is_place("/mcp/calc"));
        assert!(brings_reply("/t/token/r/run/aegis/v1/mcp/calc/ab12/7") && brings_reply("/aegis/v1/mcp/calc/ab12/7"));
        assert!(!brings_reply("/r/run/aegis/v1/mcp/calc") && !brings_reply("/r/run/mcp/calc/ab12/7"));
    }

    #[tokio::test]
    async fn a_message_is_answered_by_its_own_attachment_only() {
        let attachments = Arc::new(Attachments::default());
        let mut lines = attachments.attach("calc", Duration::from_secs(20)).expect("attached");
        let first = lines.frame().await.expect("a line").expect("read").into_data().expect("data");
        let first: serde_json::Value = serde_json::from_slice(&first).expect("JSON");
        let id = first["attachment"].as_str().expect("an id").to_owned();
        assert_eq!(id.len(), 32);
        let request = || Request::new(SentBody::Left(Bytes::from_static(b"{\"id\":1}").into()));
        for (id, path) in [("0", "/mcp/calc"), (id.as_str(), "/mcp/other"), (id.as_str(), "/mcp")] {
            let refused = attachments.server(id, path).send(request()).await;
            assert!(matches!(refused, Err(UpstreamError::Unreachable { .. })), "{id} {path}");
        }
        let answered = tokio::spawn(attachments.server(&id, "/mcp/calc?x=1").send(request()));
        let line = lines.frame().await.expect("a line").expect("read").into_data().expect("data");
        assert_eq!(line, "{\"n\":0,\"message\":\"{\\\"id\\\":1}\"}\n");
        let attachment = attachments.find(&id, "calc").expect("attached");
        assert!(attachment.waiting(1).is_none(), "nobody has sent it");
        let reply = Response::new(ReceivedBody::Made(VecDeque::from([Bytes::from_static(b"{}")])));
        attachment.waiting(0).expect("it waits").send(reply).expect("sent");
        let answer = answered.await.expect("no panic").expect("answered");
        assert_eq!(answer.into_body().collect().await.expect("a body").to_bytes(), "{}");
        // One that ends while it is asked.
        let answered = tokio::spawn(attachments.server(&id, "/mcp/calc").send(request()));
        lines.frame().await.expect("a line").expect("read");
        drop(lines);
        assert!(matches!(answered.await.expect("no panic"), Err(UpstreamError::Closed(_))));
        let gone = attachments.server(&id, "/mcp/calc").send(request()).await;
        assert!(matches!(gone, Err(UpstreamError::Unreachable { .. })), "{gone:?}");
    }

    #[tokio::test]
    async fn attachments_and_what_waits_for_them_are_bounded() {
        let attachments = Arc::new(Attachments::default());
        let attached: Vec<_> = (0..ATTACHMENTS_MAX).map(|_| attachments.attach("calc", Duration::MAX)).collect();
        assert!(attached.iter().all(Result::is_ok));
        let more = attachments.attach("calc", Duration::MAX);
        assert!(matches!(more, Err(ProxyError::BusyAttachments { .. })));
        let one = locked(&attachments.0).values().next().cloned().expect("one");
        let waiting: Vec<_> = (0..WAITING_MAX).map(|_| one.hand_over("{}").expect("handed over")).collect();
        assert!(one.hand_over("{}").is_err());
        // One that stops ends when nothing waits.
        attachments.stop();
        assert!(locked(&one.state).lines.is_some());
        for (number, _) in waiting {
            drop(one.waiting(number));
        }
        assert!(locked(&one.state).lines.is_none());
        drop(attached);
        assert!(locked(&attachments.0).is_empty());
    }
}
