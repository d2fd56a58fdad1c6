//! What the exchanges of a line share.

use std::sync::Arc;

use super::{limits::Limits, listen::gate::Gate, runs::Runs, servers::NamedServers, upstream::Upstream};
use crate::{identity::Identity, trajectory::RunId};

/// Everything that an exchange needs.
#[derive(Debug)]
pub struct Proxy {
    /// Who is who.
    pub identity: Identity,
    /// Where requests go.
    pub upstream: Arc<dyn Upstream>,
    /// The runs under way.
    pub runs: Arc<Runs>,
    /// The run of requests that name none; without one they are refused.
    pub default_run: Option<RunId>,
    /// Model patterns of the upstream's routes, in their order.
    pub routes: Vec<regex::Regex>,
    /// The servers of tools and the peers that requests may select.
    pub servers: NamedServers,
    /// Who may ask.
    pub gate: Gate,
    /// Bounds.
    pub limits: Limits,
}
