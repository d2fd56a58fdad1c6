//! An edited request view, spliced into its body.

use bytes::Bytes;
use serde_json::json;

use super::{
    block::MessageBlocks,
    request::{EXPECTED, PARAMETERS},
};
use crate::surface::{
    Conversation, Message, SurfaceError, ToolChoice,
    blocks::edit::MessageList,
    fields,
    request_edit::{RequestEdit, prompt_text},
    splice::{Member, Node, encode_string, member},
};

pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let mut edit = RequestEdit::open(body, EXPECTED, before, after)?;
    if before.messages != after.messages {
        let has_prompt = system(&edit.members).is_some();
        let (prompts, rest) = edit.parted(has_prompt);
        write_system(&mut edit, &prompts);
        let list = member(&edit.members, "messages");
        let list = list.ok_or_else(|| SurfaceError::NoPlace("`messages` is missing".to_owned()))?;
        let list = MessageList { source: edit.source, list, offset: usize::from(has_prompt), form: &MessageBlocks };
        list.write(before, &rest, &mut edit.splices)?;
    }
    if after.tools.is_empty() && !before.tools.is_empty() {
        edit.remove(&["tools", "tool_choice"]);
    } else {
        if before.tools != after.tools {
            edit.write_tools(
                |tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters}),
            );
        }
        if before.tool_choice != after.tool_choice {
            let choice = choice_text(&edit.members, &after.tool_choice);
            edit.set("tool_choice", &choice);
        }
    }
    PARAMETERS.write(&edit.root, &edit.members, before, after, &mut edit.splices)?;
    Ok(edit.apply())
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

fn write_system(edit: &mut RequestEdit<'_, '_>, prompts: &[&Message]) {
    match (system(&edit.members), prompts) {
        (None, []) => {}
        (Some(place), []) => edit.splices.replace(place.span(), "[]"),
        (Some(_), [only]) if only.origin == Some(0) => {
            let old = edit.before.messages.first().map(|message| message.parts.as_slice()).unwrap_or_default();
            if old != only.parts.as_slice() {
                let (root, members) = (&edit.root, &edit.members);
                fields::edit_parts(root, members, "system", old, &only.parts, "\"\"", &mut edit.splices);
            }
        }
        (_, several) => edit.set("system", &encode_string(&prompt_text(several))),
    }
}
