//! What a path asks of what an upstream keeps.

use hyper::Method;

use crate::proxy::listen::gate;

/// What stands in a path before the id of something that the upstream keeps.
pub(super) const SHELVES: [&str; 5] = ["responses", "completions", "conversations", "threads", "interactions"];
/// How often a path may be encoded over itself.
const ENCODINGS: usize = 4;

/// What a path asks of what the upstream keeps.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StoredPath {
    /// One more of it.
    New,
    /// All of it, whoever it is of.
    List,
    /// What has this id, and the shelf with it: `files/abc`.
    Id {
        /// The id.
        id: String,
        /// The shelf and the id.
        name: String,
    },
}

/// A path as the most generous server would read it.
pub(super) fn decoded(path: &str) -> String {
    let mut path = path.as_bytes().to_vec();
    for _ in 0..ENCODINGS {
        path = gate::decode_percent(&path);
    }
    String::from_utf8_lossy(&path).into_owned()
}

/// The segments of a path; behind a semicolon stand their parameters.
pub(super) fn segments(path: &str) -> impl Iterator<Item = &str> {
    let name = |segment: &'_ str| segment.len() - segment.split_once(';').map_or(0, |(_, rest)| rest.len() + 1);
    path.split(['/', '\\'])
        .map(move |segment| segment.get(..name(segment)).unwrap_or(segment))
        .filter(|name| !name.is_empty())
}

/// What of all that the upstream keeps on some shelves a path asks for; `None` where it asks for nothing of it.
pub(super) fn stored_path(shelves: &[&str], method: &Method, path: &str) -> Option<StoredPath> {
    let mut segments =
        segments(path).skip_while(|segment| !shelves.iter().any(|shelf| segment.eq_ignore_ascii_case(shelf)));
    let shelf = segments.next()?;
    let below: Vec<&str> = segments.collect();
    Some(match below.as_slice() {
        // A thread, and a run of it at once.
        ["runs"] if *method == Method::POST && shelf.eq_ignore_ascii_case("threads") => StoredPath::New,
        // Calls beside those that make a response: what they go on from stands in their bodies.
        ["compact" | "input_tokens"] if *method == Method::POST && shelf.eq_ignore_ascii_case("responses") => {
            StoredPath::New
        }
        [id, ..] => {
            // Behind a colon stands what is to be done with it.
            let name = format!("{shelf}/{}", id.split(':').next().unwrap_or(id));
            StoredPath::Id { id: (*id).to_owned(), name }
        }
        [] if *method == Method::POST => StoredPath::New,
        [] => StoredPath::List,
    })
}

#[cfg(test)]
mod tests {
    use super::{super::objects, *};

    #[test]
    fn paths_of_what_is_kept() {
        let at = |shelf: &str, id: &str| Some(StoredPath::Id { id: id.to_owned(), name: format!("{shelf}/{id}") });
        for (method, path, expected) in [
            (Method::GET, "/v1/responses/resp_1", at("responses", "resp_1")),
            (Method::GET, "/v1//responses//resp_1/input_items", at("responses", "resp_1")),
            (Method::GET, "/v1/%72esponses/resp%5F1", at("responses", "resp_1")),
            (Method::GET, "/v1/%2572esponses/resp_1", at("responses", "resp_1")),
            (Method::GET, "/v1/Responses;a=b/resp_1;c", at("Responses", "resp_1")),
            (Method::POST, "/v1/responses/resp_1/cancel", at("responses", "resp_1")),
            (Method::DELETE, "/openai/v1/chat/completions/c1", at("completions", "c1")),
            (Method::POST, "/v1/conversations/conv_1/items", at("conversations", "conv_1")),
            (Method::GET, "/v1/chat/completions", Some(StoredPath::List)),
            (Method::POST, "/v1/chat/completions", Some(StoredPath::New)),
            (Method::POST, "/v1/conversations", Some(StoredPath::New)),
            (Method::POST, "/v1/threads/runs", Some(StoredPath::New)),
            (Method::GET, "/v1/threads/runs", at("threads", "runs")),
            (Method::POST, "/v1/responses/compact", Some(StoredPath::New)),
            (Method::POST, "/openai/v1/responses/input_tokens", Some(StoredPath::New)),
            (Method::GET, "/v1/responses/compact", at("responses", "compact")),
            (Method::POST, "/v1/responses/compact/cancel", at("responses", "compact")),
            (Method::GET, "/v1/models/gpt", None),
        ] {
            assert_eq!(stored_path(&SHELVES, &method, &decoded(path)), expected, "{path}");
        }
        let object = StoredPath::Id { id: "abc:download".to_owned(), name: "files/abc".to_owned() };
        assert_eq!(stored_path(&objects::SHELVES, &Method::GET, "/v1beta/files/abc:download"), Some(object));
    }
}
