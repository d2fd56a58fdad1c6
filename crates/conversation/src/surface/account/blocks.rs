//! The account of blocks: objects whose types say what they hold. APIs give the rules; the walk over blocks, and over the events that
//! stream them, stands once.

use super::{PieceOf, ReadAccount, ReadKind, StreamState, elements, inner, joined};
use crate::surface::{
    UnplacedKind,
    blocks::Block,
    fields::{number, text},
    splice::Node,
    typed_events::EventForm,
};

/// What a block holds, beside members of these names.
#[derive(Debug, Clone, Copy)]
pub(in crate::surface) enum BlockRule {
    /// A text in `text`.
    Text(&'static [&'static str]),
    /// A call of a tool that the caller runs, with `id` and `name`.
    Call(&'static [&'static str]),
    /// The result of one. Its words are a text or blocks.
    Result {
        /// Its members.
        members: &'static [&'static str],
        /// That with its words.
        words: &'static str,
    },
    /// Blocks in `content`.
    List(&'static [&'static str]),
    /// What is thought, media, what the upstream does itself: no answer, and no call that the caller runs.
    Silent,
    /// Nobody knows.
    Unknown,
}

/// The rules of an API.
#[derive(Debug)]
pub(in crate::surface) struct BlockRules {
    /// What a block of a reply (`true`) or of a request holds.
    pub(in crate::surface) rule: fn(&Node<'_>, bool) -> BlockRule,
    /// Whether blocks of a type are [silent](BlockRule::Silent).
    pub(in crate::surface) is_silent: fn(&str) -> bool,
    /// Whether pieces of a type add nothing to an answer.
    pub(in crate::surface) is_silent_piece: fn(&str) -> bool,
    /// Whether an object may stand in the place of a list of blocks, and of the words of a result.
    pub(in crate::surface) takes_objects: bool,
    /// The events that stream blocks.
    pub(in crate::surface) events: &'static EventForm,
}

impl BlockRules {
    /// A block of a reply. `of`: the text that its words are a part of.
    pub(in crate::surface) fn reply(&self, path: &str, of: &str, node: &Node<'_>, account: &mut ReadAccount) {
        match (self.rule)(node, true) {
            BlockRule::Text(members) => {
                account.strict(path, node, members);
                if let Some((path, words)) = inner(path, node, "text") {
                    account.reads(&path, PieceOf::new(0, ReadKind::Text, of), &words);
                }
            }
            BlockRule::Call(members) => {
                account.strict(path, node, members);
                let id = text(&node.members(), "id");
                if !id.is_empty() {
                    account.reads_id(&joined(path, "id"), 0, &id);
                }
                if let Some((path, name)) = inner(path, node, "name") {
                    account.reads(&path, PieceOf::new(0, ReadKind::Name, of), &name);
                }
                // An empty object may stand for what pieces say after it.
                let input = inner(path, node, self.events.input);
                let is_empty = |input: &Node<'_>| input.is_object() && input.members().is_empty();
                let Some((path, input)) = input.filter(|(_, input)| !is_empty(input)) else { return };
                let of = PieceOf::new(0, ReadKind::Arguments, format!("the start of {of}"));
                match (self.events.read)(node, true) {
                    // Some APIs are read as the JSON is written, whatever it is.
                    Block::Call(call) if call.arguments == input.raw() => account.reads_text(&path, of, input.raw()),
                    _ => account.reads(&path, of, &input),
                }
            }
            BlockRule::List(members) => {
                account.strict(path, node, members);
                let Some((path, list)) = inner(path, node, "content") else { return };
                if !list.is_array() {
                    account.unless_silent(&path, UnplacedKind::Value, &list);
                }
                for (path, node) in elements(&path, &list) {
                    self.inner_block(&path, &node, true, account);
                }
            }
            BlockRule::Silent => {}
            BlockRule::Result { .. } | BlockRule::Unknown => account.unless_silent(path, UnplacedKind::Part, node),
        }
    }

    /// A list of blocks of a reply.
    pub(in crate::surface) fn reply_list(&self, path: &str, list: &Node<'_>, account: &mut ReadAccount) {
        for (path, node) in elements(path, list) {
            let of = account.place(&path);
            self.reply(&path, &of, &node, account);
        }
    }

    /// A block of a request.
    pub(in crate::surface) fn request(&self, path: &str, node: &Node<'_>, account: &mut ReadAccount) {
        let (members, words) = match (self.rule)(node, false) {
            BlockRule::Text(members) | BlockRule::Call(members) => return account.strict(path, node, members),
            BlockRule::Result { members, words } => (members, words),
            BlockRule::List(members) => (members, "content"),
            BlockRule::Silent => return,
            BlockRule::Unknown => return account.unless_silent(path, UnplacedKind::Part, node),
        };
        account.strict(path, node, members);
        let Some((path, list)) = inner(path, node, words) else { return };
        if self.takes_objects && list.is_object() {
            // The words of a result may be any object.
            if words == "content" {
                self.inner_block(&path, &list, false, account);
            }
            return;
        }
        self.note_no_list(&path, &list, account);
        for (path, node) in elements(&path, &list) {
            self.inner_block(&path, &node, false, account);
        }
    }

    /// A block within another, which holds none itself.
    fn inner_block(&self, path: &str, node: &Node<'_>, is_reply: bool, account: &mut ReadAccount) {
        match (self.rule)(node, is_reply) {
            BlockRule::List(_) | BlockRule::Result { .. } => account.unless_silent(path, UnplacedKind::Part, node),
            _ if is_reply => self.reply(path, &account.place(path), node, account),
            _ => self.request(path, node, account),
        }
    }

    /// A list of blocks of a request, or a text in its place.
    pub(in crate::surface) fn request_list(&self, path: &str, list: &Node<'_>, account: &mut ReadAccount) {
        self.note_no_list(path, list, account);
        for (path, node) in elements(path, list) {
            self.request(&path, &node, account);
        }
    }

    fn note_no_list(&self, path: &str, list: &Node<'_>, account: &mut ReadAccount) {
        if !self.takes_objects && !list.is_array() && list.string().is_none() {
            account.unless_silent(path, UnplacedKind::Value, list);
        }
    }

    /// An event about a block, with its type: its start, a piece of it, or its end. Says whether it is one.
    pub(in crate::surface) fn event(
        &self,
        kind: &str,
        root: &Node<'_>,
        state: &mut StreamState,
        account: &mut ReadAccount,
    ) -> bool {
        let (events, index) = (self.events, number(&root.members(), "index"));
        let of = format!("block {}", index.unwrap_or_default());
        if kind == events.start {
            if let Some((path, block)) = inner("", root, events.block) {
                self.reply(&path, &of, &block, account);
                let kind = text(&block.members(), "type");
                if index.is_none_or(|index| state.blocks.insert(index, kind).is_some()) {
                    account.unplaced(&path, UnplacedKind::Index, &block);
                }
            }
            account.loose(kind, root, &[events.block]);
        } else if kind == events.delta {
            if let Some((path, delta)) = inner("", root, "delta") {
                match index.and_then(|index| state.blocks.get(&index)) {
                    Some(block) => self.piece(&path, block, of, &delta, account),
                    None => account.unless_silent(&path, UnplacedKind::Index, &delta),
                }
            }
            account.loose(kind, root, &["delta"]);
        } else if kind == events.stop {
            account.loose(kind, root, &[]);
        } else {
            return false;
        }
        true
    }

    /// A piece of a block of this type.
    fn piece(&self, path: &str, block: &str, of: String, delta: &Node<'_>, account: &mut ReadAccount) {
        let kind = text(&delta.members(), "type");
        let forms = [(ReadKind::Text, &self.events.text), (ReadKind::Arguments, &self.events.arguments)];
        let matching = forms.into_iter().find(|(_, form)| form.kind == kind && form.block == block);
        match matching {
            Some((what, form)) => {
                account.strict(path, delta, form.members);
                if let Some((path, words)) = inner(path, delta, form.key) {
                    account.reads(&path, PieceOf::new(0, what, of), &words);
                }
            }
            None if (self.is_silent_piece)(&kind) => {}
            // What a silent block adds is none of the answer, unless it bears the name of one.
            None if (self.is_silent)(block) => account.loose(path, delta, &[]),
            None => account.unless_silent(path, UnplacedKind::Part, delta),
        }
    }
}
