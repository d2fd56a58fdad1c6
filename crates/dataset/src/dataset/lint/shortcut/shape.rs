//! The outline of a log, as `score` probes it, beside rules that learn nothing.

use crate::score::{
    Gold, Share,
    shape::{Unseen, probe},
    shape_probe,
};

/// Whether the probe is far above the trivial rules, in words.
pub(super) fn finding(golds: &[Gold]) -> Option<String> {
    let (probed, best) = shape_probe(golds)?;
    let percent = |share: Share| format!("{:.1} %", share.share * 100.0);
    let others = [("systems", Unseen::System), ("templates", Unseen::Template)].map(|(what, unseen)| {
        let found = probe(golds, unseen).ok();
        found.map(|found| format!(", on other {what} {}", percent(found.step))).unwrap_or_default()
    });
    Some(format!(
        "length, place and the like find the labelled step of {} runs in {} on other tasks{}{}; the best rule that learns \
         nothing (`{}`) in {:.1} %",
        probed.step.of,
        percent(probed.step),
        others[0],
        others[1],
        best.rule,
        best.step.unwrap_or_default() * 100.0
    ))
}
