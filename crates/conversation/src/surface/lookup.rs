//! Which surface a request, or a record, is of.

use super::{ALL, SERVERS, Surface};

/// The surface for a request, if it is one that can be read and edited.
pub fn for_path(method: &str, path: &str) -> Option<&'static dyn Surface> {
    model_api(method, path).or_else(|| server_api(method, path))
}

/// The same among the APIs of models.
pub fn model_api(method: &str, path: &str) -> Option<&'static dyn Surface> {
    ALL.iter().copied().find(|surface| surface.matches(method, path))
}

/// The same among the APIs of tools and peers. A path is of one only where a server of that name is configured.
pub fn server_api(method: &str, path: &str) -> Option<&'static dyn Surface> {
    SERVERS.iter().copied().find(|surface| surface.matches(method, path))
}

/// The surface of that name in records.
pub fn named(name: &str) -> Option<&'static dyn Surface> {
    ALL.iter().chain(SERVERS).copied().find(|surface| surface.name() == name)
}

/// Whether a path leads to a server of tools or a peer, whatever is asked there.
pub fn leads_to_server(path: &str) -> bool {
    SERVERS.iter().filter_map(|surface| surface.mount()).any(|mount| path.starts_with(mount))
}

/// Whether steps of this surface are messages to a server of tools or a peer, which no model answers.
pub fn is_of_server(name: &str) -> bool {
    SERVERS.iter().any(|surface| surface.name() == name)
}

/// The surface of whose kept replies a request to this path fetches something.
pub fn fetched_from(method: &str, path: &str) -> Option<&'static dyn Surface> {
    ALL.iter().copied().find(|surface| surface.fetches(method, path))
}
