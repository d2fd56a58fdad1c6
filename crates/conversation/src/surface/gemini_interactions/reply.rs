//! A whole reply: reading it, and an edited view spliced into it.

use bytes::Bytes;

use super::step::{self, StepKind};
use crate::{
    surface::{
        Answer, Reply, Role, SurfaceError,
        blocks::{self, Block, BlockChange, BlockChanges},
        elements::{self, Element},
        fields::{self, number, string, text, unreadable},
        splice::{Member, Node, Splices, encode_string, member},
    },
    trajectory::Usage,
};

/// What a whole reply is called.
pub(super) const EXPECTED: &str = "an interaction";

/// A block of a reply, and where it stands.
#[derive(Debug)]
pub(super) struct PlacedBlock<'a> {
    /// What it says.
    pub(super) block: Block,
    /// The number of its step.
    pub(super) step: usize,
    /// The step, or the content of it that is the block.
    pub(super) node: Node<'a>,
}

/// The steps of an interaction; those of older versions are called outputs, and are contents and calls.
pub(super) fn steps<'a>(members: &[Member<'a>]) -> Option<Node<'a>> {
    ["steps", "outputs"].iter().find_map(|key| member(members, key).filter(Node::is_array))
}

/// The blocks of steps. What the user said may stand among them, and is none.
pub(super) fn placed<'a>(steps: &[Node<'a>]) -> Vec<PlacedBlock<'a>> {
    let of = |(number, node): (usize, &Node<'a>)| -> Vec<PlacedBlock<'a>> {
        let place = |block, node| PlacedBlock { block, step: number, node };
        match step::kind(node) {
            StepKind::User if !step::is_content(node) => Vec::new(),
            StepKind::User | StepKind::Model => {
                step::contents(node).into_iter().map(|content| place(step::content(&content), content)).collect()
            }
            StepKind::Call => vec![place(Block::Call(step::call(node)), *node)],
            StepKind::Result | StepKind::Other => {
                vec![place(Block::Other(text(&node.members(), "type")), *node)]
            }
        }
    };
    steps.iter().enumerate().flat_map(of).collect()
}

pub(super) fn read(body: &[u8]) -> Result<Reply, SurfaceError> {
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let members = root.members();
    let steps = steps(&members);
    if steps.is_none() && member(&members, "status").is_none() {
        return Err(unreadable(EXPECTED, "it has neither `steps` nor a `status`"));
    }
    let placed = placed(&steps.map(|steps| steps.elements()).unwrap_or_default());
    let message = blocks::message(Role::Assistant, placed.iter().map(|placed| &placed.block), 0);
    let finish = string(&members, "status").and_then(|status| step::finish(&status).map(str::to_owned));
    Ok(Reply { answers: vec![Answer { index: 0, message, finish_reason: finish }], ..head(&members) })
}

/// What an interaction says besides its steps.
pub(super) fn head(members: &[Member<'_>]) -> Reply {
    Reply {
        id: text(members, "id"),
        model: string(members, "model").or_else(|| string(members, "agent")).unwrap_or_default(),
        usage: member(members, "usage").and_then(|node| usage(&node)),
        ..Reply::default()
    }
}

/// Token counts. What was thought was answered, and what tools put into the prompt was asked.
pub(super) fn usage(node: &Node<'_>) -> Option<Usage> {
    let members = node.members();
    let sum = |keys: [&str; 2]| {
        let counts: Vec<u64> = keys.iter().filter_map(|key| number(&members, key)).collect();
        (!counts.is_empty()).then(|| counts.iter().sum::<u64>())
    };
    let input = sum(["total_input_tokens", "total_tool_use_tokens"]);
    let output = sum(["total_output_tokens", "total_thought_tokens"]);
    (input.is_some() || output.is_some())
        .then(|| Usage { input: input.unwrap_or_default(), output: output.unwrap_or_default() })
}

/// The id of an interaction that is still being made.
pub(super) fn in_the_making(body: &[u8]) -> Option<String> {
    let members = Node::parse(body).ok()?.members();
    let status = string(&members, "status")?;
    matches!(status.as_str(), "in_progress" | "queued").then(|| string(&members, "id")).flatten()
}

pub(super) fn write(body: &[u8], before: &Reply, after: &Reply) -> Result<Bytes, SurfaceError> {
    let source = fields::source(body, EXPECTED)?;
    let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
    let mut splices = Splices::default();
    let (old, new) = before.only_answers(after)?;
    edit(source, &root, old, new, &mut splices)?;
    Ok(splices.apply(body))
}

/// Edits an interaction in a source.
pub(super) fn edit(
    source: &str,
    root: &Node<'_>,
    old: &Answer,
    new: &Answer,
    splices: &mut Splices,
) -> Result<(), SurfaceError> {
    let members = root.members();
    let Some(list) = steps(&members) else {
        return Err(SurfaceError::NoPlace("the interaction has no steps".to_owned()));
    };
    let nodes = list.elements();
    let placed = placed(&nodes);
    let read: Vec<Block> = placed.iter().map(|placed| placed.block.clone()).collect();
    let changes = blocks::compare(&read, old, new);
    has_status(&changes)?;
    let mut inside: Vec<Option<Splices>> = nodes.iter().map(|_| Some(Splices::default())).collect();
    for (placed, change) in placed.iter().zip(&changes.blocks) {
        let Some(slot) = inside.get_mut(placed.step) else { continue };
        match (change, &mut *slot) {
            (BlockChange::Text(text), Some(inside)) => step::edit_text(&placed.node, text, inside),
            (BlockChange::Call(call), Some(inside)) => step::edit_call(&placed.node, call, inside)?,
            (BlockChange::Drop, _) => *slot = None,
            _ => {}
        }
    }
    let kept = inside.into_iter().enumerate().filter_map(|(at, inside)| Some(Element::retained(at, inside?)));
    let is_flat = member(&members, "steps").is_none();
    let made = |block: &Block| match block {
        // Among outputs a text is a content.
        Block::Text(text) if is_flat => step::text_content(text),
        other => step::new_step(other),
    };
    let added = changes.added.iter().map(|block| Element::from_json(made(block).to_string()));
    let all: Vec<Element> = kept.chain(added).collect();
    elements::write(source, &list, &all, splices);
    edit_end(&members, &changes, new, splices);
    Ok(())
}

/// Whether the API has a status for why the model stopped.
///
/// # Errors
/// [`SurfaceError::NoPlace`] for an answer that was filtered: no status says so.
pub(super) fn has_status(changes: &BlockChanges) -> Result<(), SurfaceError> {
    match changes.finish.as_deref() {
        Some(Answer::FILTERED) => {
            Err(SurfaceError::NoPlace("no status of an interaction says that it was filtered".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Edits what an interaction says beside its steps: why it stopped, and its text in one piece.
pub(super) fn edit_end(members: &[Member<'_>], changes: &BlockChanges, new: &Answer, splices: &mut Splices) {
    if let (Some(finish), Some(place)) = (&changes.finish, member(members, "status")) {
        splices.replace(place.span(), encode_string(step::status(finish)));
    }
    if let Some(place) = member(members, "output_text").filter(|place| place.string().is_some()) {
        let said: String = new.message.parts.iter().filter_map(crate::surface::Part::as_text).collect();
        if place.string().as_deref() != Some(&said) && says_else(changes) {
            splices.replace(place.span(), encode_string(&said));
        }
    }
}

fn says_else(changes: &BlockChanges) -> bool {
    !changes.added.is_empty() || changes.blocks.iter().any(|change| *change != BlockChange::Keep)
}
