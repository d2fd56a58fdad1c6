//! An edited request view, spliced into its body: what all APIs do alike.

use bytes::Bytes;
use serde_json::Value;

use super::{
    Conversation, Message, Role, SurfaceError, Tool, elements, fields,
    splice::{Member, Node, Splices, member},
};

/// A request, both views of it, and what is to be replaced.
#[derive(Debug)]
pub(super) struct RequestEdit<'a, 'v> {
    /// The body.
    pub(super) source: &'a str,
    /// Its object.
    pub(super) root: Node<'a>,
    /// The members of that.
    pub(super) members: Vec<Member<'a>>,
    /// What it says.
    pub(super) before: &'v Conversation,
    /// What it is to say.
    pub(super) after: &'v Conversation,
    /// What is replaced so far.
    pub(super) splices: Splices,
}

impl<'a, 'v> RequestEdit<'a, 'v> {
    /// Opens a body that `before` was read from.
    ///
    /// # Errors
    /// [`SurfaceError::Unreadable`] when it is no text.
    pub(super) fn open(
        body: &'a [u8],
        expected: &'static str,
        before: &'v Conversation,
        after: &'v Conversation,
    ) -> Result<Self, SurfaceError> {
        let source = fields::source(body, expected)?;
        let root = Node::parsed_before(source);
        Ok(Self { source, root, members: root.members(), before, after, splices: Splices::default() })
    }

    /// The edited body.
    pub(super) fn apply(self) -> Bytes {
        self.splices.apply(self.source.as_bytes())
    }

    /// Replaces or adds a member.
    pub(super) fn set(&mut self, key: &str, json: &str) {
        fields::set(&self.root, &self.members, key, json, &mut self.splices);
    }

    /// Takes members out.
    pub(super) fn remove(&mut self, keys: &[&str]) {
        fields::remove_members(self.source, &self.root, &self.members, keys, &mut self.splices);
    }

    /// The messages that belong to the one prompt, and the rest. Prompts that an edit made have no other place than that one.
    pub(super) fn parted(&self, has_prompt: bool) -> (Vec<&'v Message>, Vec<&'v Message>) {
        self.after.messages.iter().partition(|message| {
            let is_new = message.origin.is_none() && matches!(message.role, Role::System | Role::Developer);
            is_new || (has_prompt && message.origin == Some(0))
        })
    }

    /// Writes the tools that stand in `tools`, each as an object.
    pub(super) fn write_tools(&mut self, make: impl Fn(&Tool) -> Value) {
        let Some(array) = member(&self.members, "tools").filter(Node::is_array) else {
            let tools: Value = self.after.tools.iter().map(make).collect();
            return self.set("tools", &tools.to_string());
        };
        let nodes = array.elements();
        let elements = elements::tools(&nodes, &self.before.tools, &self.after.tools, |node| Some(*node), make);
        elements::write(self.source, &array, &elements, &mut self.splices);
    }
}

/// What messages say together as one prompt.
pub(super) fn prompt_text(prompts: &[&Message]) -> String {
    prompts.iter().map(|message| message.text()).collect::<Vec<_>>().join("\n\n")
}
