//! What an upstream keeps and hands out by id, as a program was told it: kept replies, lists of them, and lists of their
//! items. An edit on the way changes none of it; without this a program that fetches a reply would see two truths.

use std::collections::HashMap;

use bytes::Bytes;

use super::{
    Reply, Surface, SurfaceError,
    elements::{self, Element},
    fields::{self, unreadable},
    splice::{Node, Splices, encode_string, member},
    sse,
};

const EXPECTED: &str = "a kept object";

/// Replies that a program was told otherwise than the upstream keeps them.
#[derive(Debug, Default)]
pub struct Edited {
    /// By the id of a reply: what the program was told.
    replies: HashMap<String, Reply>,
    /// By the id of an item that the upstream keeps: what stands in its place, as it was written.
    items: HashMap<String, Vec<String>>,
}

/// Whether something that was fetched is a list.
pub fn is_list(fetched: &[u8]) -> bool {
    Node::parse(fetched).is_ok_and(|root| root.get("data").is_some_and(|data| data.is_array()))
}

impl Edited {
    /// Whether nothing was told otherwise.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Whether this is the id of a reply, or of an item of one, that was told otherwise.
    pub fn knows(&self, id: &str) -> bool {
        !id.is_empty() && (self.replies.contains_key(id) || self.items.contains_key(id))
    }

    /// Keeps what a program was told in place of what the upstream keeps.
    ///
    /// # Errors
    /// [`SurfaceError::Unreadable`] when either is no reply of the surface.
    pub fn keep(
        &mut self,
        surface: &dyn Surface,
        kept: &[u8],
        told: &[u8],
        streamed: bool,
    ) -> Result<(), SurfaceError> {
        let reply = if streamed { surface.read_stream(told)? } else { surface.read_reply(told)? };
        let items = |reply: &[u8]| surface.kept(b"{}", reply, streamed).map(|kept| kept.replied).unwrap_or_default();
        let (kept, told) = (items(kept), items(told));
        let ids: Vec<String> = kept.iter().filter_map(|item| id_of(item)).collect();
        let mut of_id: HashMap<String, Vec<String>> = ids.iter().map(|id| (id.clone(), Vec::new())).collect();
        let mut added = Vec::new();
        for item in told {
            match id_of(&item).and_then(|id| of_id.get_mut(&id)) {
                Some(of_id) => of_id.push(item),
                None => added.push(item),
            }
        }
        for (at, id) in ids.iter().enumerate() {
            let mut instead = of_id.remove(id).unwrap_or_default();
            if at + 1 == ids.len() {
                // What an edit added stands after the last item.
                instead.append(&mut added);
            }
            if instead.as_slice() != kept.get(at..=at).unwrap_or_default() {
                self.items.insert(id.clone(), instead);
            }
        }
        self.replies.insert(reply.id.clone(), reply);
        Ok(())
    }

    /// A fetched object or list as the program was told it; `None` where that is what the upstream keeps.
    ///
    /// # Errors
    /// [`SurfaceError`] when it cannot be read, or has no place for what the program was told.
    pub fn restate(
        &self,
        surface: &dyn Surface,
        fetched: &[u8],
        newest_first: bool,
    ) -> Result<Option<Bytes>, SurfaceError> {
        let source = fields::source(fetched, EXPECTED)?;
        let root = Node::parse(fetched).map_err(|detail| unreadable(EXPECTED, detail))?;
        let members = root.members();
        let Some(list) = member(&members, "data").filter(Node::is_array) else {
            return match self.instead(surface, &root)?.as_deref() {
                Some([one]) => Ok(Some(Bytes::from(one.clone()))),
                Some(_) => Err(SurfaceError::NoPlace("the program was told of no such item".to_owned())),
                None => Ok(None),
            };
        };
        let (mut elements, mut ids, mut changed) = (Vec::new(), Vec::new(), false);
        for (at, node) in list.elements().iter().enumerate() {
            match self.instead(surface, node)? {
                None => {
                    elements.push(Element::kept(at, Splices::default()));
                    ids.extend(id_of(node.raw()));
                }
                Some(mut instead) => {
                    if newest_first {
                        instead.reverse();
                    }
                    ids.extend(instead.iter().filter_map(|item| id_of(item)));
                    elements.extend(instead.into_iter().map(Element::made));
                    changed = true;
                }
            }
        }
        if !changed {
            return Ok(None);
        }
        let mut splices = Splices::default();
        elements::write(source, &list, &elements, &mut splices);
        for (key, id) in [("first_id", ids.first()), ("last_id", ids.last())] {
            if let Some(place) = member(&members, key) {
                splices.replace(place.span(), id.map_or("null".to_owned(), |id| encode_string(id)));
            }
        }
        Ok(Some(splices.apply(fetched)))
    }

    /// A kept reply that is fetched as a stream, as the program was told it; of that, what comes after an event's
    /// number if one is given. `None` where it is what the upstream keeps.
    ///
    /// # Errors
    /// [`SurfaceError`] when it cannot be read, or has no place for what the program was told.
    pub fn restate_stream(
        &self,
        surface: &dyn Surface,
        fetched: &[u8],
        after: Option<u64>,
    ) -> Result<Option<Bytes>, SurfaceError> {
        let before = surface.read_stream(fetched)?;
        let Some(told) = self.replies.get(&before.id) else { return Ok(None) };
        let written = surface.write_stream(fetched, &before, &aligned(&before, told))?;
        let Some(after) = after else { return Ok(Some(written)) };
        let text = fields::source(&written, EXPECTED)?;
        let comes_after = |event: &sse::Event| {
            let data = Node::parse_at(text, event.data.first()?.clone()).ok()?;
            Some(data.get("sequence_number")?.value::<u64>()? > after)
        };
        let events = sse::events(&written).into_iter().filter(|event| comes_after(event) != Some(false));
        Ok(Some(events.flat_map(|event| written.slice(event.span)).collect()))
    }

    /// What stands in the place of an object, each as it is written; `None` where it stays.
    fn instead(&self, surface: &dyn Surface, object: &Node<'_>) -> Result<Option<Vec<String>>, SurfaceError> {
        let Some(id) = object.get("id").and_then(|id| id.string()) else { return Ok(None) };
        let Some(told) = self.replies.get(id.as_ref()) else { return Ok(self.items.get(id.as_ref()).cloned()) };
        let body = object.raw().as_bytes();
        let before = surface.read_reply(body)?;
        let written = surface.write_reply(body, &before, &aligned(&before, told))?;
        let written = fields::source(&written, EXPECTED)?.to_owned();
        Ok((written != object.raw()).then(|| vec![written]))
    }
}

fn id_of(item: &str) -> Option<String> {
    Some(Node::parse(item.as_bytes()).ok()?.get("id")?.string()?.into_owned())
}

/// What was told, as an edit of what is kept: tool calls find their places by their ids.
fn aligned(kept: &Reply, told: &Reply) -> Reply {
    let mut edited = kept.clone();
    for answer in &mut edited.answers {
        let Some(told) = told.answers.iter().find(|told| told.index == answer.index) else { continue };
        let kept = answer.message.tool_calls.iter();
        let mut places: HashMap<&str, _> = kept.map(|call| (call.id.as_str(), call.origin)).collect();
        let mut calls = told.message.tool_calls.clone();
        for call in &mut calls {
            call.origin = places.remove(call.id.as_str()).flatten();
        }
        answer.message.tool_calls = calls;
        answer.message.parts.clone_from(&told.message.parts);
        answer.finish_reason.clone_from(&told.finish_reason);
    }
    edited
}
