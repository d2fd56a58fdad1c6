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

/// The server of tools, or the peer, that a path leads to, whatever is asked there.
#[derive(Debug, Clone, Copy)]
pub struct ServerPath<'p> {
    /// Its API.
    pub surface: &'static dyn Surface,
    /// The beginning of the path, the name included: `/a2a/weather`.
    pub place: &'p str,
    /// Its name.
    pub name: &'p str,
}

impl<'p> ServerPath<'p> {
    /// Of a path without its query; `None` where it leads to a model.
    pub fn of_path(path: &'p str) -> Option<Self> {
        SERVERS.iter().find_map(|surface| {
            let mount = surface.mount()?;
            let name = path.strip_prefix(mount)?.split('/').next().filter(|name| !name.is_empty())?;
            Some(Self { surface: *surface, place: path.get(..mount.len() + name.len())?, name })
        })
    }
}

/// Whether steps of this surface are messages to a server of tools or a peer, which no model answers.
pub fn is_of_server(name: &str) -> bool {
    SERVERS.iter().any(|surface| surface.name() == name)
}

/// The surface of whose kept replies a request to this path fetches something.
pub fn fetched_from(method: &str, path: &str) -> Option<&'static dyn Surface> {
    ALL.iter().copied().find(|surface| surface.fetches(method, path))
}
