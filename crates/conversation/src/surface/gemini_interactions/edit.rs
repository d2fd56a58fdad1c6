//! An edited request view, spliced into its body.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    request::{EXPECTED, InteractionInput},
    step,
};
use crate::surface::{
    Conversation, Message, Part, Role, SurfaceError, ToolChoice,
    elements::{self, Element},
    fields,
    parameters::NestedParameters,
    request_edit::{RequestEdit, prompt_text},
    splice::{Member, Node, Splices, encode_string, member},
};

/// What the parameters are called.
const PARAMETERS: NestedParameters = NestedParameters {
    config: "generation_config",
    longest: "max_output_tokens",
    stop: "stop_sequences",
    top_p: "top_p",
};

pub(super) fn write(body: &[u8], before: &Conversation, after: &Conversation) -> Result<Bytes, SurfaceError> {
    let mut edit = RequestEdit::open(body, EXPECTED, before, after)?;
    if before.messages != after.messages {
        write_messages(&mut edit)?;
    }
    if before.tools != after.tools {
        write_tools(&mut edit);
    }
    if before.model != after.model {
        let names_agent = member(&edit.members, "model").is_none() && member(&edit.members, "agent").is_some();
        edit.set(if names_agent { "agent" } else { "model" }, &encode_string(&after.model));
    }
    let choice = (before.tool_choice != after.tool_choice && !after.tools.is_empty())
        .then(|| ("tool_choice", choice(&after.tool_choice)));
    let changed = PARAMETERS.changed(before, after).into_iter().chain(choice).collect();
    let spell = |_: &[Member<'_>], key: &str| key.to_owned();
    PARAMETERS.write(&edit.root, &edit.members, changed, spell, &mut edit.splices);
    Ok(edit.apply())
}

fn write_messages(edit: &mut RequestEdit<'_, '_>) -> Result<(), SurfaceError> {
    let prompt = member(&edit.members, "system_instruction").filter(|prompt| prompt.string().is_some());
    let (prompts, rest) = edit.parted(prompt.is_some());
    let text = prompt_text(&prompts);
    match prompt {
        Some(_) if prompts.is_empty() => edit.remove(&["system_instruction"]),
        Some(place) if place.string().as_deref() == Some(&text) => {}
        None if prompts.is_empty() => {}
        _ => edit.set("system_instruction", &encode_string(&text)),
    }
    let place = member(&edit.members, "input");
    let place = place.ok_or_else(|| SurfaceError::NoPlace("`input` is missing".to_owned()))?;
    let input = InteractionInput::read(&place).ok_or_else(|| SurfaceError::NoPlace("`input` is no list".to_owned()))?;
    let first = usize::from(prompt.is_some());
    let (input_edit, splices) =
        (InputEdit { source: edit.source, place, before: edit.before, first }, &mut edit.splices);
    match input {
        InteractionInput::Text(_) => input_edit.text(&rest, splices),
        InteractionInput::Contents(nodes) => input_edit.contents(&nodes, &rest, splices),
        InteractionInput::Steps(nodes) => return input_edit.steps(&nodes, &rest, splices),
    }
    Ok(())
}

/// The edit of an input under way.
struct InputEdit<'a, 'v> {
    source: &'a str,
    place: Node<'a>,
    before: &'v Conversation,
    /// The origin of its first message.
    first: usize,
}

impl InputEdit<'_, '_> {
    fn old(&self, message: &Message) -> Option<&Message> {
        self.before.messages.get(message.origin?)
    }

    /// A text stays one, or becomes steps.
    fn text(&self, rest: &[&Message], splices: &mut Splices) {
        match rest {
            [only] if only.origin == Some(self.first) && only.role == Role::User && only.tool_calls.is_empty() => {
                if self.old(only).is_some_and(|old| old.parts != only.parts) {
                    splices.replace(self.place.span(), encode_string(&only.text()));
                }
            }
            several => {
                let steps: Vec<Value> = several.iter().flat_map(|message| new_steps(message)).collect();
                splices.replace(self.place.span(), Value::from(steps).to_string());
            }
        }
    }

    /// Contents stay so, or become the contents of one step among others.
    fn contents(&self, nodes: &[Node<'_>], rest: &[&Message], splices: &mut Splices) {
        let whole = rest.iter().find(|message| message.origin == Some(self.first) && message.role == Role::User);
        let old = whole.and_then(|message| self.old(message));
        let mut inside = Splices::default();
        let is_same = match (whole, old) {
            (Some(new), Some(old)) if old.parts.len() == new.parts.len() && new.tool_calls.is_empty() => {
                for (node, text) in nodes.iter().zip(fields::new_texts(&old.parts, &new.parts)) {
                    if let Some(text) = text {
                        step::edit_text(node, &text, &mut inside);
                    }
                }
                true
            }
            _ => false,
        };
        if is_same && rest.len() == 1 {
            return splices.append(inside);
        }
        let span = self.place.span();
        let edited = inside.apply(self.source.as_bytes());
        // What stands behind the input is as long as it was.
        let end = edited.len() - (self.source.len() - span.end);
        let own = String::from_utf8_lossy(edited.get(span.start..end).unwrap_or_default()).into_owned();
        let own = if self.place.is_object() { format!("[{own}]") } else { own };
        let steps = rest.iter().flat_map(|message| match whole {
            Some(whole) if is_same && std::ptr::eq(*message, *whole) => {
                vec![format!("{{\"type\":\"user_input\",\"content\":{own}}}")]
            }
            _ => new_steps(message).iter().map(Value::to_string).collect(),
        });
        splices.replace(span, format!("[{}]", steps.collect::<Vec<_>>().join(",")));
    }

    fn steps(&self, nodes: &[Node<'_>], rest: &[&Message], splices: &mut Splices) -> Result<(), SurfaceError> {
        let (mut elements, mut used) = (Vec::new(), std::collections::HashSet::new());
        for message in rest {
            let origin = message.origin.filter(|origin| used.insert(*origin));
            let place = origin.and_then(|origin| origin.checked_sub(self.first));
            let known = place.and_then(|place| Some((place, nodes.get(place)?, self.old(message)?)));
            let Some((place, node, old)) = known else {
                elements.extend(new_steps(message).iter().map(|step| Element::from_json(step.to_string())));
                continue;
            };
            elements.extend(edited(place, node, old, message)?);
        }
        elements::write(self.source, &self.place, &elements, splices);
        Ok(())
    }
}

/// A step as an edited message has it, and the steps that the message has more.
fn edited(place: usize, node: &Node<'_>, old: &Message, new: &Message) -> Result<Vec<Element>, SurfaceError> {
    let mut inside = Splices::default();
    let own = new.tool_calls.iter().find(|call| call.origin == Some(0));
    let is_gone = match (old.tool_calls.first(), own) {
        (Some(old), Some(new)) => {
            if old != new {
                step::edit_call(node, new, &mut inside)?;
            }
            false
        }
        (Some(_), None) => true,
        (None, _) => {
            if old.answers_call.is_some() {
                edit_result(node, old, new, &mut inside);
            } else if old.parts != new.parts {
                step::edit_texts(node, &old.parts, &new.parts, &mut inside);
            }
            false
        }
    };
    let mut elements = Vec::new();
    if is_gone {
        elements.extend(
            (!new.parts.is_empty()).then(|| Element::from_json(step::output(new.role, &new.text()).to_string())),
        );
    } else {
        if old.role != new.role {
            write_role(node, new.role, &mut inside);
        }
        elements.push(Element::retained(place, inside));
    }
    let more = new.tool_calls.iter().filter(|call| own.is_none_or(|own| !std::ptr::eq(*call, own)));
    elements.extend(more.map(|call| Element::from_json(step::function_call(call).to_string())));
    Ok(elements)
}

fn edit_result(node: &Node<'_>, old: &Message, new: &Message, splices: &mut Splices) {
    if old.parts != new.parts {
        step::edit_result(node, &old.parts, &new.parts, splices);
    }
    if let (true, Some(id)) = (old.answers_call != new.answers_call, &new.answers_call) {
        fields::set(node, &node.members(), "call_id", &encode_string(id), splices);
    }
}

fn write_role(node: &Node<'_>, role: Role, splices: &mut Splices) {
    let members = node.members();
    let is_model = role == Role::Assistant;
    if member(&members, "role").is_some() {
        let name = if is_model { "\"model\"" } else { "\"user\"" };
        return fields::set(node, &members, "role", name, splices);
    }
    let kind = if is_model { "model_output" } else { "user_input" };
    if step::is_content(node) {
        return splices.replace(node.span(), format!("{{\"type\":\"{kind}\",\"content\":[{}]}}", node.raw()));
    }
    fields::set(node, &members, "type", &encode_string(kind), splices);
}

/// The steps of a message of ours. What is opaque cannot be made.
fn new_steps(message: &Message) -> Vec<Value> {
    let text = message.text();
    if let Some(id) = &message.answers_call {
        return vec![json!({"type": "function_result", "call_id": id, "result": text})];
    }
    let opaque = !message.parts.is_empty() && !message.parts.iter().any(|part| matches!(part, Part::Text(_)));
    let is_said = !opaque && (!text.is_empty() || message.tool_calls.is_empty());
    let said = is_said.then(|| step::output(message.role, &text));
    said.into_iter().chain(message.tool_calls.iter().map(step::function_call)).collect()
}

fn write_tools(edit: &mut RequestEdit<'_, '_>) {
    if edit.after.tools.is_empty() && member(&edit.members, "tools").is_some_and(|tools| tools.is_array()) {
        edit.remove(&["tools"]);
        if let Some(config) = member(&edit.members, "generation_config") {
            let inner = config.members();
            fields::remove_members(edit.source, &config, &inner, &["tool_choice"], &mut edit.splices);
        }
        return;
    }
    edit.write_tools(|tool| json!({"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}));
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "any".into(),
        ToolChoice::Named(name) => json!({"allowed_tools": {"mode": "any", "tools": [name]}}),
    }
}
