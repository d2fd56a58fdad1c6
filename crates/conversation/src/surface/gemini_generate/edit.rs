//! An edited request view, spliced into its body.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    part::{self, answered_tool},
    reply::role,
    request::{self, EXPECTED},
    spelling::{listed, named, present, spelled},
};
use crate::surface::{
    Conversation, Message, Role, SurfaceError, Tool, ToolCall, ToolChoice,
    blocks::{
        Block,
        edit::{BlockForm, MessageList},
    },
    elements, fields,
    parameters::NestedParameters,
    request_edit::{RequestEdit, prompt_text},
    splice::{Member, Node, Splices, encode_string, member},
};

/// What the parameters are called.
const PARAMETERS: NestedParameters =
    NestedParameters { config: "generationConfig", longest: "maxOutputTokens", stop: "stopSequences", top_p: "topP" };

/// How this API writes parts. A result names its tool, which the views know by the id of the call.
pub(super) struct ContentParts {
    tools: HashMap<String, String>,
}

pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let mut edit = RequestEdit::open(body, EXPECTED, before, after)?;
    if before.model != after.model {
        return Err(no_place("the path of the request names the model, and the body does not"));
    }
    if before.messages != after.messages {
        let form = ContentParts::from_views([before, after]);
        let has_prompt = present(&edit.members, "systemInstruction").is_some();
        let (prompts, rest) = edit.parted(has_prompt);
        if has_prompt || !prompts.is_empty() {
            write_prompt(&mut edit, &prompts, &form);
        }
        let list = member(&edit.members, "contents").filter(Node::is_array);
        let list = list.ok_or_else(|| no_place("`contents` is no list"))?;
        let list = MessageList { source: edit.source, list, offset: usize::from(has_prompt), form: &form };
        list.write(before, &rest, &mut edit.splices)?;
    }
    if before.tools != after.tools {
        write_tools(&mut edit);
    }
    if before.tool_choice != after.tool_choice && !after.tools.is_empty() {
        write_choice(&edit.root, &edit.members, &after.tool_choice, &mut edit.splices);
    }
    let spell = |inner: &[Member<'_>], key: &str| spelled(inner, key, &edit.members).into_owned();
    PARAMETERS.write(&edit.root, &edit.members, PARAMETERS.changed(before, after), spell, &mut edit.splices);
    Ok(edit.apply())
}

fn write_prompt(edit: &mut RequestEdit<'_, '_>, prompts: &[&Message], form: &ContentParts) {
    let key = spelled(&edit.members, "systemInstruction", &edit.members);
    match (present(&edit.members, "systemInstruction"), prompts, edit.before.messages.first()) {
        (_, [], _) => edit.remove(&[&key]),
        (Some(_), [only], Some(old)) if only.origin == Some(0) && old.parts == only.parts => {}
        (Some(place), [only], Some(old)) if only.origin == Some(0) && old.parts.len() == only.parts.len() => {
            let nodes = place.get("parts").map(|parts| listed(&parts)).unwrap_or_default();
            for (node, text) in nodes.iter().zip(fields::new_texts(&old.parts, &only.parts)) {
                if let Some(text) = text {
                    form.edit_text(node, &text, &mut edit.splices);
                }
            }
        }
        (_, several, _) => {
            let content = json!({"parts": [form.text(&prompt_text(several))]});
            edit.set(&key, &content.to_string());
        }
    }
}

/// Writes the functions on offer. What else is on offer stays.
fn write_tools(edit: &mut RequestEdit<'_, '_>) {
    let make = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters});
    let (before, after) = (&edit.before.tools, &edit.after.tools);
    let nodes = present(&edit.members, "tools").map(|tools| listed(&tools)).unwrap_or_default();
    let is_plain =
        |node: &Node<'_>| node.members().len() == 1 && named(&node.members(), "functionDeclarations").is_some();
    if after.is_empty() && nodes.iter().all(is_plain) {
        let config = spelled(&edit.members, "toolConfig", &edit.members);
        return edit.remove(&["tools", &config]);
    }
    let declared = request::declarations(&edit.members);
    let Some(first) = declared.first().map(|declaration| declaration.tool) else {
        let mut tools: Vec<Value> = nodes.iter().filter_map(Node::value).collect();
        let made: Vec<Value> = after.iter().map(make).collect();
        tools.push(json!({"functionDeclarations": made}));
        return edit.set("tools", &Value::from(tools).to_string());
    };
    for (number, node) in nodes.iter().enumerate() {
        let members = node.members();
        let Some(list) = named(&members, "functionDeclarations") else { continue };
        let start = declared.iter().position(|declaration| declaration.tool == number).unwrap_or_default();
        let own: Vec<_> = declared.iter().filter(|declaration| declaration.tool == number).map(|it| it.node).collect();
        let local = |tool: &Tool| Tool { origin: tool.origin.and_then(|at| at.checked_sub(start)), ..tool.clone() };
        let is_here = |tool: &&Tool| match tool.origin {
            Some(origin) => (start..start + own.len()).contains(&origin),
            None => number == first,
        };
        let [old, new] = [before, after].map(|tools| tools.iter().filter(is_here).map(local).collect::<Vec<_>>());
        if new.is_empty() {
            let key = spelled(&members, "functionDeclarations", &members);
            fields::remove_members(edit.source, node, &members, &[&key], &mut edit.splices);
        } else {
            let elements = elements::tools(&own, &old, &new, |node| Some(*node), make);
            elements::write(edit.source, &list, &elements, &mut edit.splices);
        }
    }
}

fn write_choice(root: &Node<'_>, members: &[Member<'_>], choice: &ToolChoice, splices: &mut Splices) {
    let (mode, allowed) = match choice {
        ToolChoice::Auto => ("AUTO", None),
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Named(name) => ("ANY", Some([name])),
    };
    let mut said = json!({"mode": mode});
    if let (Some(names), Some(said)) = (allowed, said.as_object_mut()) {
        said.insert("allowedFunctionNames".to_owned(), json!(names));
    }
    let key = spelled(members, "toolConfig", members);
    let Some(config) = present(members, "toolConfig") else {
        return fields::set(root, members, &key, &json!({"functionCallingConfig": said}).to_string(), splices);
    };
    let inner = config.members();
    fields::set(&config, &inner, &spelled(&inner, "functionCallingConfig", members), &said.to_string(), splices);
}

impl ContentParts {
    /// That of these views, whose calls it knows.
    pub(super) fn from_views<'v>(views: impl IntoIterator<Item = &'v Conversation>) -> Self {
        let messages = views.into_iter().flat_map(|view| &view.messages);
        let calls = messages.flat_map(|message| &message.tool_calls);
        Self { tools: calls.map(|call| (call.id.clone(), call.name.clone())).collect() }
    }

    fn tool<'t>(&'t self, call_id: &'t str) -> &'t str {
        // A call without an id is known by its tool and number.
        let by_number = || call_id.rsplit_once('#').map_or(call_id, |(tool, _)| tool);
        self.tools.get(call_id).map_or_else(by_number, String::as_str)
    }
}

impl BlockForm for ContentParts {
    fn content(&self) -> &'static str {
        "parts"
    }

    fn role(&self, name: &str) -> Role {
        role(name)
    }

    fn role_name(&self, role: Role) -> &'static str {
        if role == Role::Assistant { "model" } else { "user" }
    }

    fn blocks(&self, content: &Node<'_>) -> Vec<Block> {
        part::read_all(content)
    }

    fn block(&self, node: &Node<'_>) -> Block {
        part::read(node)
    }

    fn plain_content(&self, text: &str) -> String {
        json!([part::text_part(text)]).to_string()
    }

    fn edit_text(&self, block: &Node<'_>, text: &str, splices: &mut Splices) {
        part::edit_text(block, text, splices);
    }

    fn edit_call(
        &self,
        block: &Node<'_>,
        old: &ToolCall,
        new: &ToolCall,
        splices: &mut Splices,
    ) -> Result<(), SurfaceError> {
        part::edit_call(block, old, new, splices)
    }

    fn edit_result(&self, block: &Node<'_>, old: &Message, new: &Message, splices: &mut Splices) {
        if old.parts != new.parts {
            part::edit_words(block, &new.text(), splices);
        }
        if let (true, Some(id)) = (old.answers_call != new.answers_call, &new.answers_call)
            && let Some(result) = named(&block.members(), "functionResponse")
        {
            let (members, tool) = (result.members(), self.tool(id));
            fields::set(&result, &members, "id", &encode_string(id), splices);
            if answered_tool(block) != tool {
                fields::set(&result, &members, "name", &encode_string(tool), splices);
            }
        }
    }

    fn text(&self, text: &str) -> Value {
        part::text_part(text)
    }

    fn call(&self, call: &ToolCall) -> Value {
        part::call_part(call)
    }

    fn result(&self, call_id: &str, text: &str) -> Value {
        let mut result = json!({"name": self.tool(call_id), "response": part::answer(text)});
        if let (false, Some(result)) = (call_id.contains('#'), result.as_object_mut()) {
            result.insert("id".to_owned(), call_id.into());
        }
        json!({"functionResponse": result})
    }
}

fn no_place(why: &str) -> SurfaceError {
    SurfaceError::NoPlace(why.to_owned())
}
