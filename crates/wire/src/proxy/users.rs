//! The users of a server whose members do not trust each other. Each shows a token of its own, and each has a line of its own: a
//! [`Proxy`] that only requests with that token ever enter. Whatever a line finds a run by, it finds none of another user.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use super::{
    exchange::Proxy,
    limits::Limits,
    listen::gate::{Gate, Token},
};

/// Longest name of a user.
const NAME_MAX: usize = 64;
/// The name under which the holder of the control token is written down.
pub(super) const OPERATOR: &str = "operator";

/// The name of a user or a team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName(String);

impl UserName {
    /// A name that a path and a directory can have: 1 to 64 letters, digits, `.`, `_` and `-`, not beginning with `.`, and not
    /// `operator`, which is who holds the control token. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let fits = (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(is_plain) && !text.starts_with('.');
        (fits && !text.eq_ignore_ascii_case(OPERATOR)).then(|| Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What a token allows, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGrant {
    /// Whose token it is.
    pub name: UserName,
    /// The token, by its hash.
    pub token: Token,
}

/// A user who is let in.
#[derive(Debug)]
pub struct User {
    /// What its token allows.
    pub grant: UserGrant,
    /// Where its requests go.
    pub(super) line: Arc<Proxy>,
}

/// The users of a server.
#[derive(Debug, Default)]
pub struct Users(RwLock<UserList>);

#[derive(Debug, Default)]
struct UserList {
    admitted: Vec<Arc<User>>,
    /// The lines of users whose token is gone while runs of theirs are open.
    leaving: BTreeMap<UserName, Arc<Proxy>>,
}

impl Users {
    /// Lets these users in, and nobody else. A user who was let in before keeps its line; one who is gone takes no more requests,
    /// and its runs are let go of as those of any line are. `server`: what a new line starts from.
    pub fn admit(&self, grants: Vec<UserGrant>, server: &Proxy) {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut lines = std::mem::take(&mut list.leaving);
        lines.extend(list.admitted.drain(..).map(|user| (user.grant.name.clone(), Arc::clone(&user.line))));
        let admitted = grants.into_iter().map(|grant| {
            let earlier = lines.remove(&grant.name);
            let line = Arc::new(server.line_of(&grant, earlier.as_deref()));
            Arc::new(User { grant, line })
        });
        list.admitted = admitted.collect();
        lines.retain(|_, line| line.runs.open_runs() > 0);
        list.leaving = lines;
    }

    /// The user whose token is shown. All tokens are compared, each by its hash and in the same time.
    pub(super) fn find(&self, shown: &str) -> Option<Arc<User>> {
        let shown = Token::new(shown);
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        list.admitted
            .iter()
            .fold(None, |found, user| if user.grant.token == shown { Some(user) } else { found })
            .cloned()
    }

    /// The lines of all users, also of those who are gone and whose runs are still open.
    fn lines(&self) -> Vec<Arc<Proxy>> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        list.admitted.iter().map(|user| &user.line).chain(list.leaving.values()).cloned().collect()
    }
}

impl Proxy {
    /// This proxy, and the lines of its users.
    pub fn lines(self: &Arc<Self>) -> Vec<Arc<Proxy>> {
        let users = self.gate.users.as_ref().map(|users| users.lines()).unwrap_or_default();
        [Arc::clone(self)].into_iter().chain(users).collect()
    }

    /// The line of a user: as this proxy, with what an `earlier` line of the same user had open.
    fn line_of(&self, _grant: &UserGrant, earlier: Option<&Proxy>) -> Proxy {
        let from = earlier.unwrap_or(self);
        Proxy {
            identity: from.identity.clone(),
            upstream: Arc::clone(&self.upstream),
            runs: Arc::clone(&from.runs),
            default_run: self.default_run.clone(),
            routes: self.routes.clone(),
            // Whoever is led here has shown the token.
            gate: Gate { token: None, users: None, ..self.gate.clone() },
            limits: Limits { ..self.limits.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_directories() {
        for good in ["alice", "team-7", "a.b_c", "A"] {
            assert_eq!(UserName::parse(good).map(|name| name.to_string()).as_deref(), Some(good));
        }
        for bad in ["", ".", "..", ".a", "a/b", "a b", "é", "operator", "Operator", "@a", &"a".repeat(65)] {
            assert_eq!(UserName::parse(bad), None, "{bad}");
        }
    }
}
