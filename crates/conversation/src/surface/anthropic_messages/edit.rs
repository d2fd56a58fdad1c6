//! An edited request view, spliced into its body.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    block, changes, compose,
    request::{EXPECTED, PARAMETERS},
};
use crate::surface::{
    Conversation, Message, Role, SurfaceError, Tool, ToolCall, ToolChoice,
    blocks::{
        Block,
        edit::{BlockForm, MessageList},
    },
    elements, fields,
    splice::{Member, Node, Splices, encode_string, member},
};

pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, EXPECTED)?;
    let root = Node::parsed_before(source);
    let members = root.members();
    let mut splices = Splices::default();
    if before.messages != after.messages {
        let (prompts, rest) = parted(&members, &after.messages);
        write_system(&root, &members, before, &prompts, &mut splices);
        let list = member(&members, "messages");
        let list = list.ok_or_else(|| SurfaceError::NoPlace("`messages` is missing".to_owned()))?;
        let offset = usize::from(system(&members).is_some());
        MessageList { source, list, offset, form: &MessageBlocks }.write(before, &rest, &mut splices)?;
    }
    if after.tools.is_empty() && !before.tools.is_empty() {
        fields::remove_members(source, &root, &members, &["tools", "tool_choice"], &mut splices);
    } else {
        if before.tools != after.tools {
            write_tools(source, &root, &members, before, after, &mut splices);
        }
        if before.tool_choice != after.tool_choice {
            fields::set(&root, &members, "tool_choice", &choice_text(&members, &after.tool_choice), &mut splices);
        }
    }
    PARAMETERS.write(&root, &members, (before, after), &mut splices)?;
    Ok(splices.apply(body))
}

/// A tool choice that goes on to say whether calls may be made side by side.
fn choice_text(members: &[Member<'_>], choice: &ToolChoice) -> String {
    let mut said = match choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => return json!({"type": "none"}).to_string(),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
    };
    let key = "disable_parallel_tool_use";
    let single = member(members, "tool_choice").and_then(|choice| choice.get(key)?.value::<bool>());
    if let (Some(single), Some(said)) = (single, said.as_object_mut()) {
        said.insert(key.to_owned(), single.into());
    }
    said.to_string()
}

/// The prompt of the request, if it has one.
fn system<'a>(members: &[Member<'a>]) -> Option<Node<'a>> {
    member(members, "system").filter(|system| !system.is_null())
}

/// What belongs to the one prompt, and what to the messages. Prompts that an edit made have no other place.
fn parted<'m>(members: &[Member<'_>], messages: &'m [Message]) -> (Vec<&'m Message>, Vec<&'m Message>) {
    let prompt = system(members).map(|_| 0);
    messages.iter().partition(|message| {
        let new = message.origin.is_none() && matches!(message.role, Role::System | Role::Developer);
        new || (prompt.is_some() && message.origin == prompt)
    })
}

fn write_system(
    root: &Node<'_>,
    members: &[Member<'_>],
    before: &Conversation,
    prompts: &[&Message],
    splices: &mut Splices,
) {
    match (system(members), prompts) {
        (None, []) => {}
        (Some(place), []) => splices.replace(place.span(), "[]"),
        (Some(_), [only]) if only.origin == Some(0) => {
            let old = before.messages.first().map(|message| message.parts.as_slice()).unwrap_or_default();
            if old != only.parts.as_slice() {
                fields::edit_parts(root, members, "system", (old, &only.parts), "\"\"", splices);
            }
        }
        (_, several) => {
            let texts: Vec<_> = several.iter().map(|message| message.text()).collect();
            fields::set(root, members, "system", &encode_string(&texts.join("\n\n")), splices);
        }
    }
}

/// How this API writes blocks.
pub(super) struct MessageBlocks;

impl BlockForm for MessageBlocks {
    fn content(&self) -> &'static str {
        "content"
    }

    fn role(&self, name: &str) -> Role {
        fields::role(Some(name))
    }

    fn role_name(&self, role: Role) -> &'static str {
        fields::role_name(role)
    }

    fn blocks(&self, content: &Node<'_>) -> Vec<Block> {
        block::blocks(content)
    }

    fn block(&self, node: &Node<'_>) -> Block {
        block::read(node)
    }

    fn plain(&self, text: &str) -> String {
        encode_string(text)
    }

    fn edit_text(&self, block: &Node<'_>, text: &str, splices: &mut Splices) {
        changes::edit_text(block, text, splices);
    }

    fn edit_call(
        &self,
        block: &Node<'_>,
        (_, call): (&ToolCall, &ToolCall),
        splices: &mut Splices,
    ) -> Result<(), SurfaceError> {
        changes::edit_call(block, call, splices)
    }

    fn edit_result(&self, block: &Node<'_>, old: &Message, new: &Message, splices: &mut Splices) {
        let members = block.members();
        if old.parts != new.parts {
            fields::edit_parts(block, &members, "content", (&old.parts, &new.parts), "\"\"", splices);
        }
        if let (true, Some(id)) = (old.answers_call != new.answers_call, &new.answers_call) {
            fields::set(block, &members, "tool_use_id", &encode_string(id), splices);
        }
    }

    fn text(&self, text: &str) -> Value {
        compose::text_block(text)
    }

    fn call(&self, call: &ToolCall) -> Value {
        compose::called(call)
    }

    fn result(&self, call_id: &str, text: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": call_id, "content": text})
    }
}

fn write_tools(
    source: &str,
    root: &Node<'_>,
    members: &[Member<'_>],
    before: &Conversation,
    after: &Conversation,
    splices: &mut Splices,
) {
    let make =
        |tool: &Tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters});
    let Some(array) = member(members, "tools").filter(Node::is_array) else {
        let tools: Value = after.tools.iter().map(make).collect();
        return fields::set(root, members, "tools", &tools.to_string(), splices);
    };
    let nodes = array.elements();
    let elements = elements::tools(&nodes, &before.tools, &after.tools, |node| Some(*node), make);
    elements::write(source, &array, &elements, splices);
}
