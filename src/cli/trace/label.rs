//! What a trace makes of the run's label.

use std::path::Path;

use crate::{
    attribution::{LabelRule, TraceFinding, is_contradicted, label_of},
    cli::Failure,
    replay::Cassette,
    ruling,
    trajectory::Label,
};

/// How a step gets a name that a label may use.
const ROSTER: &str = "`aegis agents RUN_DIR --suggest` proposes rules; `aegis amend RUN_DIR --roster FILE` names its agents by them, then trace it again";

/// Writes, replaces or withdraws the label; says what became of it.
pub(super) fn settle(
    finding: &TraceFinding,
    rule: LabelRule,
    dir: &Path,
    cassette: &Cassette,
) -> Result<String, Failure> {
    let contradicts = |former: &Label| is_contradicted(former, finding);
    let settled = ruling::settle_finding(cassette.recording(), dir, label_of(finding, rule), contradicts)?;
    Ok(settled.unwrap_or_else(|why| {
        let hint = if why.is_mended_by_names() { format!("; {ROSTER}") } else { String::new() };
        format!("no label: {why}{hint}")
    }))
}
