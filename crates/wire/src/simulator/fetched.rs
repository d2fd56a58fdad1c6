//! What can be fetched of what the simulator keeps: replies, their input, conversations.

use bytes::Bytes;
use serde_json::{Value, json};

use super::stored::Stored;

/// What a fetch gets.
pub(super) enum Fetched {
    /// A whole object.
    Whole(Bytes),
    /// The frames of a stream.
    Stream(Vec<Bytes>),
}

/// What is kept at a path; `None` where there is nothing of the kind. `created` is in seconds since 1970.
pub(super) fn get(stored: &mut Stored, path: &str, query: &str, created: u64) -> Option<Fetched> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let parameter = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next_back()
    };
    match segments.as_slice() {
        [.., "responses", id, "input_items"] => Some(list(stored.input_of(id)?, parameter("order"))),
        [.., "conversations", id, "items"] => Some(list(stored.items_of(id)?, parameter("order"))),
        [.., "responses", id] | [.., "chat", "completions", id] => {
            let streamed = parameter("stream") == Some("true");
            if streamed {
                stored.make(id);
            }
            if let Some(unmade) = stored.look(id, created) {
                return Some(Fetched::Whole(unmade));
            }
            let (surface, reply) = stored.reply(id)?;
            if !streamed {
                return Some(Fetched::Whole(surface.compose(reply, created)));
            }
            let after = parameter("starting_after").and_then(|number| number.parse::<usize>().ok());
            let frames = surface.compose_stream(reply, created, true).into_iter();
            Some(Fetched::Stream(frames.skip(after.map_or(0, |after| after + 1)).collect()))
        }
        _ => None,
    }
}

/// A list as services give it: the newest first unless asked otherwise.
fn list(items: &[Value], order: Option<&str>) -> Fetched {
    let mut data = items.to_vec();
    if order != Some("asc") {
        data.reverse();
    }
    let id = |item: Option<&Value>| item.and_then(|item| item.get("id")).cloned().unwrap_or_default();
    let (first, last) = (id(data.first()), id(data.last()));
    let list = json!({"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": false});
    Fetched::Whole(Bytes::from(list.to_string()))
}
