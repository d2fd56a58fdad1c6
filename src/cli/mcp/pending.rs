//! Which request a server's message belongs to: its answer, its progress, and what the server says while only one is under way.

use std::collections::BTreeMap;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::message::{MessageKind, RpcId};

/// Where a reply goes: the attachment, and the number of the message that it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplyPlace {
    pub(super) attachment: String,
    pub(super) number: u64,
}

/// A request that the server has, and has not answered.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) place: ReplyPlace,
    token: Option<String>,
    /// Its reply, once it has begun to stream.
    pub(super) events: Option<mpsc::Sender<Bytes>>,
}

/// The requests under way.
#[derive(Debug, Default)]
pub(super) struct PendingRequests(BTreeMap<RpcId, PendingRequest>);

/// Where a message of the server goes.
#[derive(Debug)]
pub(super) enum ServerRoute<'a> {
    /// It ends the reply to this request.
    Ends(PendingRequest),
    /// It belongs into the reply to this request, before its answer.
    Within(&'a mut PendingRequest),
    /// It belongs to no request: the client gets it directly.
    Direct,
}

impl PendingRequests {
    /// The server gets a request.
    pub(super) fn insert(&mut self, id: RpcId, token: Option<String>, place: ReplyPlace) {
        self.0.insert(id, PendingRequest { place, token, events: None });
    }

    /// The client has given a request up.
    pub(super) fn forget(&mut self, id: &RpcId) {
        self.0.remove(id);
    }

    /// Whether the server owes no answer.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where a message goes.
    pub(super) fn route(&mut self, message: &MessageKind) -> ServerRoute<'_> {
        match message {
            MessageKind::Answer(id) => self.0.remove(id).map_or(ServerRoute::Direct, ServerRoute::Ends),
            MessageKind::Progress(token) => {
                let reported = self.0.values_mut().find(|request| request.token.as_ref() == Some(token));
                reported.map_or(ServerRoute::Direct, ServerRoute::Within)
            }
            _ if self.0.len() == 1 => self.0.values_mut().next().map_or(ServerRoute::Direct, ServerRoute::Within),
            _ => ServerRoute::Direct,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(route: ServerRoute<'_>) -> Option<(bool, u64)> {
        match route {
            ServerRoute::Ends(request) => Some((true, request.place.number)),
            ServerRoute::Within(request) => Some((false, request.place.number)),
            ServerRoute::Direct => None,
        }
    }

    #[test]
    fn messages_go_where_they_belong() {
        let mut pending = PendingRequests::default();
        let read = |line: &str| MessageKind::read(line.as_bytes());
        let notice = read(r#"{"method":"notifications/message"}"#);
        assert_eq!(number(pending.route(&notice)), None, "nothing is under way");
        let add = |pending: &mut PendingRequests, id: &str, number| {
            let line = format!(r#"{{"id":{id},"method":"x","params":{{"_meta":{{"progressToken":{id}}}}}}}"#);
            let MessageKind::Request(id, token) = read(&line) else { panic!("{line}") };
            pending.insert(id, token, ReplyPlace { attachment: "a".to_owned(), number });
        };
        add(&mut pending, "7", 0);
        assert_eq!(number(pending.route(&notice)), Some((false, 0)), "it can be of this one only");
        add(&mut pending, "8", 1);
        assert_eq!(number(pending.route(&notice)), None, "it can be of either");
        let progress = |token: u64| {
            read(&format!(r#"{{"method":"notifications/progress","params":{{"progressToken":{token}}}}}"#))
        };
        assert_eq!(number(pending.route(&progress(8))), Some((false, 1)));
        assert_eq!(number(pending.route(&progress(9))), None);
        assert_eq!(number(pending.route(&read(r#"{"id":8,"result":{}}"#))), Some((true, 1)));
        assert_eq!(number(pending.route(&read(r#"{"id":8,"result":{}}"#))), None, "it is answered");
        let MessageKind::Request(id, _) = read(r#"{"id":7,"method":"x"}"#) else { panic!("a request") };
        pending.forget(&id);
        assert!(pending.is_empty());
    }
}
