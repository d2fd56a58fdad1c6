//! The roster of one run, where whoever opened it gave one: it stands in the place of the server's.

use std::sync::OnceLock;

use super::Run;
use crate::{
    identity::{Identity, Roster, RosterRule},
    recording::RecordingError,
};

/// The roster, and the server's other rules with it.
#[derive(Debug)]
pub(super) struct OwnRules {
    roster: Roster,
    rules: OnceLock<Identity>,
}

impl OwnRules {
    /// From the rules as they are recorded; none where there are none.
    pub(super) fn new(rules: Vec<RosterRule>) -> Result<Option<Self>, RecordingError> {
        let roster = Roster::new(rules).map_err(|error| RecordingError::Roster { why: error.to_string() })?;
        Ok((!roster.is_empty()).then(|| Self { roster, rules: OnceLock::new() }))
    }
}

impl Run {
    /// The rules that tell its agents apart: the server's, or its own roster among them.
    pub(in crate::proxy) fn rules<'a>(&'a self, server: &'a Identity) -> &'a Identity {
        let own = self.own_rules.as_ref();
        own.map_or(server, |own| own.rules.get_or_init(|| Identity { roster: own.roster.clone(), ..server.clone() }))
    }
}
