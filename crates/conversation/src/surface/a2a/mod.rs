//! The `Agent2Agent` protocol over JSON-RPC, versions 1.0 and 0.3 (<https://a2a-protocol.org/latest/specification/>): another system
//! that is asked as one.
//!
//! A message to the peer is read as a message of a user, and what it answers, in a message, in the status of a task or in artifacts, as
//! the parts of one answer. Its card names addresses; they are written anew where they lead to it.

mod account;
mod card;
mod message;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::{
    Conversation, ErrorBody, Reply, Surface, SurfaceError,
    account::{ReadAccount, StreamState},
    rpc,
    splice::Node,
};
use crate::trajectory::{CallEnding, Usage};

pub use card::{CARD_FOLDER, is_card, readdressed_card};

/// Before the name of a peer in a path.
const MOUNT: &str = "/a2a/";

/// A peer's side of A2A.
#[derive(Debug)]
pub struct A2a;

impl Surface for A2a {
    fn name(&self) -> &'static str {
        "a2a"
    }

    fn path(&self) -> &'static str {
        "/a2a/peer"
    }

    fn mount(&self) -> Option<&'static str> {
        Some(MOUNT)
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        method == "POST" && path.strip_prefix(MOUNT).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
    }

    fn read_request(&self, body: &[u8]) -> Result<Conversation, SurfaceError> {
        message::read_request(body)
    }

    fn write_request(&self, body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
        message::write_request(body, before, after)
    }

    fn blank_request(&self) -> &'static [u8] {
        br#"{"jsonrpc":"2.0","id":0,"method":"SendMessage","params":{"message":{"role":"ROLE_USER","parts":[{"text":""}]}}}"#
    }

    fn read_reply(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        message::read_reply(body, false)
    }

    fn write_reply(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        message::write_reply(body, false, before, after)
    }

    fn read_stream(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        message::read_reply(body, true)
    }

    fn write_stream(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        message::write_reply(body, true, before, after)
    }

    fn account_for_request(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::request(root, account);
    }

    fn account_for_reply(&self, root: &Node<'_>, account: &mut ReadAccount) {
        account::message(root, account);
    }

    fn account_for_event(&self, event: &Node<'_>, _: &mut StreamState, account: &mut ReadAccount) {
        account::message(event, account);
    }

    /// Peers count no tokens.
    fn usage(&self, _: &[u8], _: bool) -> Option<Usage> {
        None
    }

    fn compose(&self, reply: &Reply, _: u64) -> Bytes {
        message::compose(reply)
    }

    fn compose_stream(&self, reply: &Reply, _: u64, _: bool) -> Vec<Bytes> {
        vec![Bytes::from([b"data: ", &message::compose(reply)[..], b"\n\n"].concat())]
    }

    fn error_body(&self, error: &ErrorBody<'_>) -> Bytes {
        rpc::error_body(error)
    }

    fn answer_members(&self) -> &'static [&'static str] {
        &["result"]
    }

    fn error_part<'a>(&self, json: &Node<'a>) -> Option<Node<'a>> {
        rpc::error_part(json)
    }

    fn error_ending(&self, error: &Node<'_>, status: Option<u16>) -> CallEnding {
        rpc::error_ending(error, status)
    }

    /// A stream ends with its connection; each event is whole by itself.
    fn is_finished(&self, chunk: &[u8]) -> bool {
        ["\"result\"", "\"error\""].iter().any(|word| memchr::memmem::find(chunk, word.as_bytes()).is_some())
    }

    fn drop_names(&self, request: &mut serde_json::Value) {
        let Some(members) = request.as_object_mut() else { return };
        members.remove("id");
        let message = members.get_mut("params").and_then(|params| params.get_mut("message"));
        if let Some(message) = message.and_then(serde_json::Value::as_object_mut) {
            message.remove("messageId");
        }
    }

    fn write_model(&self, _: &[u8], _: bool, _: &str) -> Result<Bytes, SurfaceError> {
        Err(SurfaceError::NoPlace("a peer names no model".to_owned()))
    }
}
