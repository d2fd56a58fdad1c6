//! A message of a client: a call of a tool, another request, or a notice.

use bytes::Bytes;

use crate::surface::{
    Conversation, Message, Part, Role, SurfaceError, ToolCall,
    fields::{self, string, text, unreadable},
    splice::{Member, Node, Splices, member},
};

const EXPECTED: &str = "a message of MCP";
/// The method that calls a tool.
pub(super) const CALL: &str = "tools/call";

/// The tool that a message calls, if it calls one.
pub(super) fn called_tool(body: &[u8]) -> Option<String> {
    let root = Node::parse(body).ok()?;
    let members = root.members();
    let params = member(&members, "params").filter(|_| text(&members, "method") == CALL)?;
    string(&params.members(), "name")
}

pub(super) fn read(body: &[u8]) -> Result<Conversation, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    if member(&members, "jsonrpc").is_none() {
        return Err(unreadable(EXPECTED, "`jsonrpc` is missing"));
    }
    let message = match member(&members, "method").and_then(|method| method.string()) {
        Some(method) if method == CALL => called(&members),
        Some(method) => other(&method, member(&members, "params").as_ref()),
        // A client answers what its server asked.
        None => other("reply", None),
    };
    Ok(Conversation { messages: vec![message], choices: 1, ..Conversation::default() })
}

/// The message of whoever calls a tool.
fn called(members: &[Member<'_>]) -> Message {
    let params = member(members, "params").map(|params| params.members()).unwrap_or_default();
    let call = ToolCall {
        id: member(members, "id")
            .map(|id| id.string().map_or_else(|| id.raw().to_owned(), Into::into))
            .unwrap_or_default(),
        name: text(&params, "name"),
        arguments: member(&params, "arguments").map_or_else(|| "{}".to_owned(), |given| given.raw().to_owned()),
        origin: Some(0),
    };
    Message { tool_calls: vec![call], parts: Vec::new(), origin: Some(0), ..Message::text_of(Role::Assistant, "") }
}

/// Any other message: what it is about, never edited.
fn other(method: &str, params: Option<&Node<'_>>) -> Message {
    let params = params.map(Node::members).unwrap_or_default();
    let about = ["uri", "name", "requestId", "progressToken"].iter().find_map(|key| member(&params, key));
    let about = about.map(|about| format!(" {}", about.string().unwrap_or_else(|| about.raw().into())));
    let part = Part::Opaque(format!("{method}{}", about.unwrap_or_default()));
    Message { parts: vec![part], origin: Some(0), ..Message::text_of(Role::Other, "") }
}

/// Splices an edited call into the body.
pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let root = Node::parsed_before(fields::source(body, EXPECTED)?);
    let members = root.members();
    let mut splices = Splices::default();
    if before.messages != after.messages {
        let ([old], [new]) = (before.messages.as_slice(), after.messages.as_slice()) else {
            return Err(no_place("a message of MCP is one message"));
        };
        let ([old_call], [new_call]) = (old.tool_calls.as_slice(), new.tool_calls.as_slice()) else {
            return Err(no_place("only a call of one tool has anything to edit"));
        };
        let rest = |message: &Message| Message { tool_calls: Vec::new(), ..message.clone() };
        if rest(old) != rest(new) || old_call.id != new_call.id {
            return Err(no_place("of a call of a tool, only its arguments are edited"));
        }
        // The headers of the request name the tool, and servers refuse a request whose headers say otherwise.
        if old_call.name != new_call.name {
            return Err(no_place("the headers of the request name the tool: only its arguments are edited"));
        }
        if old_call.arguments != new_call.arguments {
            arguments(&members, &new_call.arguments, &mut splices)?;
        }
    }
    if before.tools != after.tools || before.sampling != after.sampling {
        return Err(no_place("a call of a tool offers no tools and has no parameters"));
    }
    Ok(splices.apply(body))
}

fn arguments(members: &[Member<'_>], arguments: &str, splices: &mut Splices) -> Result<(), SurfaceError> {
    let params = member(members, "params").ok_or_else(|| no_place("`params` is missing"))?;
    if !Node::parse(arguments.as_bytes()).is_ok_and(|value| value.is_object()) {
        return Err(no_place("the arguments of a tool are a JSON object"));
    }
    match params.get("arguments") {
        Some(place) => splices.replace(place.span(), arguments),
        None => splices.insert_member(&params, "arguments", arguments),
    }
    Ok(())
}

pub(super) fn no_place(why: &str) -> SurfaceError {
    SurfaceError::NoPlace(why.to_owned())
}
