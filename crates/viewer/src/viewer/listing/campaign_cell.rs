//! What a campaign's report says of one of its runs, as far as a list shows it.

use std::sync::Arc;

use serde_json::Value;

use super::row::{RunKind, RunRow};

/// A run's place in a campaign.
#[derive(Debug, Clone)]
pub(super) struct CampaignCell {
    plan: Option<Arc<str>>,
    class: Option<Arc<str>>,
    task: Option<Arc<str>>,
    system: Option<Arc<str>>,
    /// What was to be planted, and at whom.
    planted: Option<Arc<str>>,
    is_decoy: bool,
}

impl CampaignCell {
    /// The place, from a row of `report.json`.
    pub(super) fn from_report(cell: &Value, is_decoy: bool) -> Self {
        let word = |name: &str| cell.get(name).and_then(Value::as_str).map(Arc::from);
        let aims =
            cell.get("aims").and_then(Value::as_array).into_iter().flatten().filter_map(|aim| {
                Some(format!("{} at {}", aim.get("operator")?.as_str()?, aim.get("agent")?.as_str()?))
            });
        let planted = aims.collect::<Vec<_>>().join(", ");
        Self {
            plan: word("plan"),
            class: word("class"),
            task: word("task"),
            system: word("system"),
            planted: (!planted.is_empty()).then(|| planted.into()),
            is_decoy,
        }
    }

    /// Says in a run's line what the campaign knows of it. What the run says itself stays.
    pub(super) fn tell(&self, campaign: &Arc<str>, row: &mut RunRow) {
        row.campaign = Some(Arc::clone(campaign));
        row.plan.clone_from(&self.plan);
        row.class.clone_from(&self.class);
        row.task = row.task.take().or_else(|| self.task.clone());
        row.program = row.program.take().or_else(|| self.system.clone());
        row.planted = row.planted.take().or_else(|| self.planted.clone());
        if self.is_decoy {
            row.kind = RunKind::Decoy;
        }
    }
}
