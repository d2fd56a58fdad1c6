//! The Model Context Protocol over streamable HTTP: a message of JSON-RPC a POST (<https://modelcontextprotocol.io/specification/2025-11-25/basic/transports>,
//! and the stateless revision of 2026-07-28).
//!
//! A call of a tool is read as the message of an assistant that calls it, the result as an answer whose parts are the result's
//! contents. So whatever edits a model's answer edits a tool's result, and whatever edits a call edits its arguments.

mod account;
mod mirror;
mod reply;
mod request;
mod structured;
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

pub use mirror::{EditedArgument, edited_arguments, mirrored};

/// The name of its steps' surface in records.
pub const NAME: &str = "mcp_tools";
/// Before the name of a server in a path.
const MOUNT: &str = "/mcp/";

/// A tool server's side of MCP.
#[derive(Debug)]
pub struct Mcp;

impl Surface for Mcp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self) -> &'static str {
        "/mcp/server"
    }

    fn mount(&self) -> Option<&'static str> {
        Some(MOUNT)
    }

    fn called(&self, request: &[u8]) -> Option<String> {
        request::called_tool(request)
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        method == "POST" && path.strip_prefix(MOUNT).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
    }

    fn read_request(&self, body: &[u8]) -> Result<Conversation, SurfaceError> {
        request::read(body)
    }

    fn write_request(&self, body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
        request::write(body, before, after)
    }

    fn blank_request(&self) -> &'static [u8] {
        br#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"tool","arguments":{}}}"#
    }

    fn read_reply(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        reply::read(body)
    }

    fn write_reply(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        reply::write(body, before, after)
    }

    fn read_stream(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        reply::read_stream(body)
    }

    fn write_stream(&self, body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
        reply::write_stream(body, before, after)
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

    /// Tools count no tokens.
    fn usage(&self, _: &[u8], _: bool) -> Option<Usage> {
        None
    }

    fn compose(&self, reply: &Reply, _: u64) -> Bytes {
        reply::compose(reply)
    }

    fn compose_stream(&self, reply: &Reply, _: u64, _: bool) -> Vec<Bytes> {
        vec![Bytes::from([b"event: message\ndata: ", &reply::compose(reply)[..], b"\n\n"].concat())]
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

    /// A client leaves as soon as it has read its answer.
    fn is_answer(&self, event: &[u8]) -> bool {
        std::str::from_utf8(event).is_ok_and(|event| rpc::messages(event, true).iter().any(rpc::is_answer))
    }

    fn is_finished(&self, chunk: &[u8]) -> bool {
        self.is_answer(chunk)
    }

    /// A message that asks nothing is answered with nothing.
    fn is_plainly_finished(&self, body: &[u8], _: bool) -> bool {
        body.is_empty()
    }

    fn drop_names(&self, request: &mut serde_json::Value) {
        let Some(message) = request.as_object_mut() else { return };
        message.remove("id");
        if let Some(params) = message.get_mut("params").and_then(serde_json::Value::as_object_mut) {
            for name in ["_meta", "progressToken", "requestId", "requestState"] {
                params.remove(name);
            }
        }
    }

    fn write_model(&self, _: &[u8], _: bool, _: &str) -> Result<Bytes, SurfaceError> {
        Err(SurfaceError::NoPlace("a tool server names no model".to_owned()))
    }
}
