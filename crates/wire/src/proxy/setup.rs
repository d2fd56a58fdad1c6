//! What a run starts from: what all runs of a server share, and what one that is opened on purpose has of its own.

use std::{path::PathBuf, sync::Arc};

use super::{asking::ManipulatorModel, upstream::Upstream, watched::LiveWatch};
use crate::{
    equality::EqualitySetting,
    identity::{ReferenceCalls, RosterRule},
    plan::Plan,
    recording::{Launched, RecordedCard, RunOrigin, Settings},
    trajectory::RunId,
};

/// What every run of a server starts from.
#[derive(Debug, Clone)]
pub struct RunTemplate {
    /// Where run directories are made.
    pub log_dir: PathBuf,
    /// How recordings are written.
    pub recording: Settings,
    /// The plan, if there is one.
    pub plan: Option<Arc<Plan>>,
    /// The upstream's name.
    pub upstream: String,
    /// Where model calls go, as somebody would type it: a base URL or `simulator`. None where nothing live is asked.
    pub base_url: Option<String>,
    /// The `aegis.toml` that was read.
    pub config: Option<PathBuf>,
    /// What may differ in requests that are still the same.
    pub equality: EqualitySetting,
}

/// What a run that somebody opens on purpose has of its own.
#[derive(Debug, Clone, Default)]
pub struct RunSetup {
    /// Its plan, immutable for its life.
    pub plan: Option<Arc<Plan>>,
    /// Its task, where whoever opens it says one.
    pub task: Option<String>,
    /// Who its agents are, where whoever opens it says so: these rules stand in the place of the server's.
    pub roster: Vec<RosterRule>,
    /// Its upstream; without one it uses the server's.
    pub upstream: Option<Arc<dyn Upstream>>,
    /// The model that its manipulators may ask; without one they ask the server's.
    pub asking: Option<Arc<ManipulatorModel>>,
    /// What it is watched for; without that what all runs of the server are.
    pub watch: Option<Arc<LiveWatch>>,
    /// What it was made for, where it is nobody's run.
    pub origin: Option<RunOrigin>,
    /// How its program is started and judged, where we start it.
    pub launched: Option<Launched>,
    /// The recorded run that answers it, or its beginning.
    pub repeat_of: Option<RunId>,
    /// What a run of the same program without faults asked.
    pub reference: Option<Arc<ReferenceCalls>>,
    /// What may differ in its requests that are still the same; the server's where nothing is said.
    pub equality: Option<EqualitySetting>,
    /// The cards of peers that its program gets where a record answers it.
    pub cards: Vec<RecordedCard>,
}
