//! Who asks on the control listener: the operator, who holds the control token, or a user, who has a token of its own.

use std::sync::Arc;

use super::Refusal;
use crate::proxy::{listen::gate::Token, server::Server, shared::Proxy, user_name::OPERATOR, users::User};

/// Below this, the operator names a user, and then what is asked of that user's runs.
const USERS: &str = "/aegis/v1/users/";

/// Who asks.
#[derive(Debug)]
pub(super) enum Caller {
    /// The holder of the control token.
    Operator,
    /// A user.
    User(Arc<User>),
}

impl Caller {
    /// Whose token it is.
    ///
    /// # Errors
    /// Nobody's, or that of a user who asks too often.
    pub(super) fn identify(server: &Server, control: &Token, shown: &str) -> Result<Self, Refusal> {
        if control.is(shown) {
            return Ok(Self::Operator);
        }
        let user = server.users.as_ref().and_then(|users| users.find(shown));
        let user = user.ok_or_else(|| Refusal::token(shown))?;
        user.take_turn().map_err(|error| Refusal::turn(&error))?;
        Ok(Self::User(user))
    }

    /// The name under which changes are written down.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Operator => OPERATOR,
            Self::User(user) => user.grant.name.as_str(),
        }
    }

    /// The line whose runs are asked for, and the path as it reads there.
    ///
    /// # Errors
    /// There is no such user.
    pub(super) fn line(&self, server: &Server, path: &str) -> Result<(Arc<Proxy>, String), Refusal> {
        let (user, rest) = match (self, path.strip_prefix(USERS).and_then(|below| below.split_once('/'))) {
            (Self::User(user), _) => return Ok((Arc::clone(&user.line), path.to_owned())),
            (Self::Operator, None) => return Ok((Arc::clone(&server.line), path.to_owned())),
            (Self::Operator, Some(named)) => named,
        };
        let user = server.users.as_ref().and_then(|users| users.named(user));
        let line = user.map(|user| Arc::clone(&user.line)).ok_or_else(Refusal::user)?;
        Ok((line, format!("/aegis/v1/{rest}")))
    }

    /// Whether what is asked for concerns all users.
    ///
    /// # Errors
    /// A user asks for it.
    pub(super) fn check_operator(&self) -> Result<(), Refusal> {
        match self {
            Self::Operator => Ok(()),
            Self::User(_) => Err(Refusal::operator()),
        }
    }
}
