//! The users of a server whose members do not trust each other. Each shows a token of its own, and each has a line of its own: a
//! [`Proxy`] that only requests with that token ever enter. Whatever a line finds a run by, it finds none of another user.

mod request_rate;

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};

use tokio::sync::watch;

use self::request_rate::RequestTimes;
use super::{
    error::ProxyError,
    limits::Limits,
    listen::gate::{Gate, Token},
    shared::Proxy,
    stored::objects::UserUpstream,
    user_name::UserName,
};
use crate::identity::Identity;

/// What a token allows, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGrant {
    /// Whose token it is.
    pub name: UserName,
    /// The token, by its hash.
    pub token: Token,
    /// Most requests in a minute.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Longest body of a request, in bytes.
    pub max_body_bytes: Option<usize>,
}

/// A user who is let in.
#[derive(Debug)]
pub struct User {
    /// What its token allows.
    pub grant: UserGrant,
    /// Where its requests go.
    pub(super) line: Arc<Proxy>,
    requests: Arc<RequestTimes>,
}

impl User {
    /// Takes in a request of this user, whose body says that it has so many bytes.
    ///
    /// # Errors
    /// It is one too many in a minute, or too long.
    pub(super) fn take_request(&self, bytes: u64) -> Result<(), ProxyError> {
        self.take_turn()?;
        match self.grant.max_body_bytes {
            Some(limit) if bytes > limit as u64 => Err(ProxyError::UserBodyTooLarge { limit }),
            _ => Ok(()),
        }
    }

    /// Takes in a request of this user.
    ///
    /// # Errors
    /// It is one too many in a minute.
    pub(super) fn take_turn(&self) -> Result<(), ProxyError> {
        let Some(most) = self.grant.requests_per_minute else { return Ok(()) };
        let taken = self.requests.take(usize::try_from(most.get()).unwrap_or(usize::MAX), Instant::now());
        taken.map_err(|wait| ProxyError::TooManyRequests { most: most.get(), wait })
    }

    /// The error in the words of this user's limits, where it met one of them.
    pub(super) fn limited(&self, error: ProxyError) -> ProxyError {
        match error {
            ProxyError::BodyTooLarge { limit } if self.grant.max_body_bytes == Some(limit) => {
                ProxyError::UserBodyTooLarge { limit }
            }
            error => error,
        }
    }
}

/// The users of a server.
#[derive(Debug, Default)]
pub struct Users {
    list: RwLock<UserList>,
    /// How often they were changed.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct UserList {
    admitted: Vec<Arc<User>>,
    /// The lines of users whose token is gone while runs of theirs are open.
    leaving: BTreeMap<UserName, Arc<Proxy>>,
}

impl Users {
    /// Lets these users in, and nobody else. A user who was let in before keeps its line; one who is gone takes no more requests,
    /// and its runs are let go of as those of any line are. A new line takes up what an earlier server left of that user's runs.
    /// `server`: what a new line starts from. Not to be called twice at the same time.
    pub async fn admit(&self, grants: Vec<UserGrant>, server: &Proxy) {
        let mut lines = self.by_name();
        let requests = |name: &UserName| self.named(name.as_str()).map(|user| Arc::clone(&user.requests));
        let mut admitted = Vec::with_capacity(grants.len());
        for grant in grants {
            let earlier = lines.remove(&grant.name);
            let line = server.line_for(&grant, earlier.as_deref());
            if earlier.is_none() {
                line.readopt().await;
            }
            let requests = requests(&grant.name).unwrap_or_default();
            admitted.push(Arc::new(User { grant, line: Arc::new(line), requests }));
        }
        lines.retain(|_, line| line.runs.open_runs() > 0);
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = UserList { admitted, leaving: lines };
        self.changes.send_modify(|times| *times += 1);
    }

    /// Waits until this user's token lets nobody in any more.
    pub(super) async fn until_gone(&self, user: &User) {
        let mut changes = self.changes.subscribe();
        let is_same = |now: &Arc<User>| now.grant.name == user.grant.name && now.grant.token == user.grant.token;
        let is_admitted = || {
            let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
            list.admitted.iter().any(is_same)
        };
        // Its sender is ours.
        while is_admitted() && changes.changed().await.is_ok() {}
    }

    /// The lines by the names of their users.
    pub(super) fn by_name(&self) -> BTreeMap<UserName, Arc<Proxy>> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let admitted = list.admitted.iter().map(|user| (user.grant.name.clone(), Arc::clone(&user.line)));
        admitted.chain(list.leaving.clone()).collect()
    }

    /// The user whose token is shown. All tokens are compared, each by its hash and in the same time.
    pub(super) fn find(&self, shown: &str) -> Option<Arc<User>> {
        let shown = Token::new(shown);
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.admitted
            .iter()
            .fold(None, |found, user| if user.grant.token == shown { Some(user) } else { found })
            .cloned()
    }

    /// The line of the user of this name, if it is let in.
    pub(super) fn named(&self, name: &str) -> Option<Arc<User>> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.admitted.iter().find(|user| user.grant.name.as_str() == name).cloned()
    }
}

impl Proxy {
    /// The line of a user: as this proxy, with what an `earlier` line of the same user had open.
    fn line_for(&self, grant: &UserGrant, earlier: Option<&Proxy>) -> Proxy {
        let lineage = || self.identity.lineage.is_some().then(Arc::default);
        let (runs, lineage) = match earlier {
            Some(earlier) => (Arc::clone(&earlier.runs), earlier.identity.lineage.clone()),
            None => (Arc::new(self.runs.for_user(&grant.name)), lineage()),
        };
        Proxy {
            identity: Identity { lineage, ..self.identity.clone() },
            upstream: match runs.objects().cloned() {
                Some(objects) => Arc::new(UserUpstream { upstream: Arc::clone(&self.upstream), objects }),
                None => Arc::clone(&self.upstream),
            },
            runs,
            default_run: self.default_run.clone(),
            routes: self.routes.clone(),
            servers: self.servers.clone(),
            // Whoever is led here has shown the token.
            gate: Gate { token: None, is_for_users: false, ..self.gate.clone() },
            limits: match grant.max_body_bytes {
                Some(most) => Limits {
                    max_body_bytes: most.min(self.limits.max_body_bytes),
                    max_upload_bytes: most.min(self.limits.max_upload_bytes),
                    ..self.limits.clone()
                },
                None => self.limits.clone(),
            },
        }
    }
}
