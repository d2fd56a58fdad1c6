//! What an upstream keeps and hands out by id, as a program was told it and as it sent it: kept replies, lists of them,
//! and lists of their items and of what they answer. An edit on the way changes none of it; without this a program that
//! fetches a reply or its own request would see two truths.

use std::collections::HashMap;

use bytes::Bytes;

use super::{
    Reply, Surface, SurfaceError,
    elements::{self, Element},
    fields::{self, unreadable},
    sent::{List, Sent},
    splice::{Member, Node, Splices, encode_string, member},
    sse,
};

const EXPECTED: &str = "a kept object";

/// Replies that a program was told otherwise than the upstream keeps them, and requests that it sent otherwise.
#[derive(Debug, Default)]
pub struct Edited {
    /// By the id of a reply: what the program was told.
    replies: HashMap<String, Reply>,
    /// By the id of an item that the upstream keeps: what stands in its place, as it was written.
    items: HashMap<String, Vec<String>>,
    sent: Sent,
}

/// What a fetch asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The path.
    pub path: &'a str,
    /// The order of a list.
    pub order: ListOrder,
    /// Whether a list begins where all of it begins.
    pub from_start: bool,
}

/// In which order a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOrder {
    /// The oldest first.
    Ascending,
    /// The newest first.
    Descending,
}

impl Edited {
    /// Whether nothing was told otherwise.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty() && self.sent.is_empty()
    }

    /// Whether all requests went as they were sent.
    pub fn sent_all(&self) -> bool {
        self.sent.is_empty()
    }

    /// Whether what is fetched under this id may hold anything that was told or sent otherwise.
    pub fn concerns(&self, id: &str) -> bool {
        self.knows(id) || self.sent.concerns(id)
    }

    /// Whether this is the id of a reply, or of an item of one, that was told otherwise.
    pub fn knows(&self, id: &str) -> bool {
        !id.is_empty() && (self.replies.contains_key(id) || self.items.contains_key(id))
    }

    /// Keeps what a program sent (`own`) in place of what the upstream got, and keeps, of the request of a reply; and
    /// where that reply went on from, as long as anything before it was sent otherwise.
    pub fn keep_request(
        &mut self,
        surface: &dyn Surface,
        reply: &Reply,
        (from, thread): (Option<String>, Option<String>),
        edit: Option<(&[u8], &[u8])>,
    ) {
        if let Some((own, got)) = edit {
            let read = |asked: &[u8]| surface.kept(asked, b"{}", false).unwrap_or_default();
            self.sent.keep(reply, thread.clone(), read(own), read(got));
        }
        self.sent.link(&reply.id, from, thread);
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
        let (kept, mut told) = (items(kept), items(told));
        let ids: Vec<String> = kept.iter().filter_map(|item| id_of(item)).collect();
        for (at, id) in ids.iter().enumerate() {
            let mut instead: Vec<String> = told.extract_if(.., |item| id_of(item).as_ref() == Some(id)).collect();
            if at + 1 == ids.len() {
                // What an edit added stands after the last item.
                instead.append(&mut told);
            }
            if instead.as_slice() != kept.get(at..=at).unwrap_or_default() {
                self.items.insert(id.clone(), instead);
            }
        }
        self.replies.insert(reply.id.clone(), reply);
        Ok(())
    }

    /// A fetched object or list as the program was told it, or sent it; `None` where that is what the upstream keeps.
    ///
    /// # Errors
    /// [`SurfaceError`] when it cannot be read, or has no place for what the program was told.
    pub fn restate(
        &self,
        surface: &dyn Surface,
        fetched: &[u8],
        asked: Asked<'_>,
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
        let sent = self.sent_instead(surface, &list, &members, asked)?;
        let (mut elements, mut ids, mut changed) = (Vec::new(), Vec::new(), false);
        for (at, (node, sent)) in list.elements().iter().zip(sent).enumerate() {
            match self.instead(surface, node)?.or(sent) {
                None => {
                    elements.push(Element::kept(at, Splices::default()));
                    ids.extend(id_of(node.raw()));
                }
                Some(mut instead) => {
                    if asked.order == ListOrder::Descending {
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

    /// For each element of a list what the program sent in its place.
    fn sent_instead(
        &self,
        surface: &dyn Surface,
        list: &Node<'_>,
        members: &[Member<'_>],
        asked: Asked<'_>,
    ) -> Result<Vec<Option<Vec<String>>>, SurfaceError> {
        let nodes = list.elements();
        let mut elements: Vec<&str> = nodes.iter().map(Node::raw).collect();
        if self.sent.is_empty() {
            return Ok(vec![None; elements.len()]);
        }
        if asked.order == ListOrder::Descending {
            elements.reverse();
        }
        let whole = asked.from_start && !fields::is_true(members, "has_more");
        let instead = self.sent.instead(surface, List { path: asked.path, elements: &elements, whole });
        let lost = || SurfaceError::NoPlace("the request that its program sent is not found in it".to_owned());
        let mut instead = instead.ok_or_else(lost)?;
        if asked.order == ListOrder::Descending {
            instead.reverse();
        }
        Ok(instead)
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
