//! A server: its own line, and those of its users.

use std::sync::Arc;

use super::{shared::Proxy, users::Users};

/// What a listener leads its requests to.
#[derive(Debug, Clone)]
pub struct Server {
    /// The line of whoever has no token of a user.
    pub line: Arc<Proxy>,
    /// Its users, where each has a token.
    pub users: Option<Arc<Users>>,
}

impl Server {
    /// All lines: its own, and those of its users, also of those who are gone and whose runs were open then.
    pub fn lines(&self) -> Vec<Arc<Proxy>> {
        let users = self.users.as_ref().map(|users| users.by_name()).unwrap_or_default();
        [Arc::clone(&self.line)].into_iter().chain(users.into_values()).collect()
    }
}

impl From<Arc<Proxy>> for Server {
    fn from(line: Arc<Proxy>) -> Self {
        Self { line, users: None }
    }
}
