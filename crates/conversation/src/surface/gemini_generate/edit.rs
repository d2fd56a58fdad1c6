//! An edited request view, spliced into its body.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    compose,
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
    let source = fields::source(body, EXPECTED)?;
    let root = Node::parsed_before(source);
    let members = root.members();
    let mut splices = Splices::default();
    if before.model != after.model {
        return Err(no_place("the path of the request names the model, and the body does not"));
    }
    if before.messages != after.messages {
        let form = ContentParts::from_views([before, after]);
        let prompt = present(&members, "systemInstruction");
        // Prompts that an edit made have no other place than the one prompt.
        let (prompts, rest): (Vec<_>, Vec<_>) = after.messages.iter().partition(|message| {
            let is_new = message.origin.is_none() && matches!(message.role, Role::System | Role::Developer);
            is_new || (prompt.is_some() && message.origin == Some(0))
        });
        if prompt.is_some() || !prompts.is_empty() {
            write_prompt((source, &root, &members), before, &prompts, &form, &mut splices);
        }
        let list = member(&members, "contents").filter(Node::is_array);
        let list = list.ok_or_else(|| no_place("`contents` is no list"))?;
        let offset = usize::from(prompt.is_some());
        MessageList { source, list, offset, form: &form }.write(before, &rest, &mut splices)?;
    }
    if before.tools != after.tools {
        write_tools((source, &root, &members), before, after, &mut splices);
    }
    if before.tool_choice != after.tool_choice && !after.tools.is_empty() {
        write_choice(&root, &members, &after.tool_choice, &mut splices);
    }
    let spell = |inner: &[Member<'_>], key: &str| spelled(inner, key, &members).into_owned();
    PARAMETERS.write(&root, &members, PARAMETERS.changed(before, after), spell, &mut splices);
    Ok(splices.apply(body))
}

/// A body, its root, and the members of that.
type OpenedRequest<'s, 'a> = (&'a str, &'s Node<'a>, &'s [Member<'a>]);

fn write_prompt(
    (source, root, members): OpenedRequest<'_, '_>,
    before: &Conversation,
    prompts: &[&Message],
    form: &ContentParts,
    splices: &mut Splices,
) {
    let place = present(members, "systemInstruction");
    match (place, prompts, before.messages.first()) {
        (_, [], _) => {
            let key = spelled(members, "systemInstruction", members);
            fields::remove_members(source, root, members, &[&key], splices);
        }
        (Some(_), [only], Some(old)) if only.origin == Some(0) && old.parts == only.parts => {}
        (Some(place), [only], Some(old)) if only.origin == Some(0) && old.parts.len() == only.parts.len() => {
            let nodes = place.get("parts").map(|parts| listed(&parts)).unwrap_or_default();
            for (node, text) in nodes.iter().zip(fields::new_texts(&old.parts, &only.parts)) {
                if let Some(text) = text {
                    form.edit_text(node, &text, splices);
                }
            }
        }
        (_, several, _) => {
            let texts: Vec<_> = several.iter().map(|message| message.text()).collect();
            let content = json!({"parts": [form.text(&texts.join("\n\n"))]});
            let key = spelled(members, "systemInstruction", members);
            fields::set(root, members, &key, &content.to_string(), splices);
        }
    }
}

/// Writes the functions on offer. What else is on offer stays.
fn write_tools(
    (source, root, members): OpenedRequest<'_, '_>,
    before: &Conversation,
    after: &Conversation,
    splices: &mut Splices,
) {
    let make = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters});
    let nodes = present(members, "tools").map(|tools| listed(&tools)).unwrap_or_default();
    let is_plain =
        |node: &Node<'_>| node.members().len() == 1 && named(&node.members(), "functionDeclarations").is_some();
    if after.tools.is_empty() && nodes.iter().all(is_plain) {
        let config = spelled(members, "toolConfig", members);
        return fields::remove_members(source, root, members, &["tools", &config], splices);
    }
    let declared = request::declarations(members);
    let Some(first) = declared.first().map(|declaration| declaration.tool) else {
        let mut tools: Vec<Value> = nodes.iter().filter_map(Node::value).collect();
        let made: Vec<Value> = after.tools.iter().map(make).collect();
        tools.push(json!({"functionDeclarations": made}));
        return fields::set(root, members, "tools", &Value::from(tools).to_string(), splices);
    };
    for (number, node) in nodes.iter().enumerate() {
        let tool_members = node.members();
        let Some(list) = named(&tool_members, "functionDeclarations") else { continue };
        let start = declared.iter().position(|declaration| declaration.tool == number).unwrap_or_default();
        let own: Vec<_> = declared.iter().filter(|declaration| declaration.tool == number).map(|it| it.node).collect();
        let local = |tool: &Tool| Tool { origin: tool.origin.and_then(|at| at.checked_sub(start)), ..tool.clone() };
        let is_here = |tool: &&Tool| match tool.origin {
            Some(origin) => (start..start + own.len()).contains(&origin),
            None => number == first,
        };
        let [old, new] = [before, after].map(|view| view.tools.iter().filter(is_here).map(local).collect::<Vec<_>>());
        if new.is_empty() {
            let key = spelled(&tool_members, "functionDeclarations", &tool_members);
            fields::remove_members(source, node, &tool_members, &[&key], splices);
        } else {
            let elements = elements::tools(&own, &old, &new, |node| Some(*node), make);
            elements::write(source, &list, &elements, splices);
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

    fn plain(&self, text: &str) -> String {
        json!([compose::text_part(text)]).to_string()
    }

    fn edit_text(&self, block: &Node<'_>, text: &str, splices: &mut Splices) {
        part::edit_text(block, text, splices);
    }

    fn edit_call(
        &self,
        block: &Node<'_>,
        calls: (&ToolCall, &ToolCall),
        splices: &mut Splices,
    ) -> Result<(), SurfaceError> {
        part::edit_call(block, calls, splices)
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
        compose::text_part(text)
    }

    fn call(&self, call: &ToolCall) -> Value {
        compose::call_part(call)
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
