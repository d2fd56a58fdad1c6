//! How often signs show in many runs, and whether that has changed: shares of runs with intervals, before and after a moment.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::trajectory::{Interval, Proportion, Verdict, difference};

/// What a report needs to know of a run.
#[derive(Debug, Clone, Default)]
pub struct RatedRun {
    /// Whether it began at the cut or after it.
    pub is_after: bool,
    /// What it achieved.
    pub outcome: Verdict,
    /// The agents that spoke in it.
    pub agents: BTreeSet<String>,
    /// What was found in it: the kind of rule, the agent, the rule.
    pub found: BTreeSet<(&'static str, String, String)>,
}

/// A share of runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RunShare {
    /// Runs in which it was so.
    pub runs: u32,
    /// Runs in which it could be so.
    pub of: u32,
    /// `runs / of`; 0 of nothing.
    pub share: f64,
    /// Wilson's 95 % interval.
    #[serde(flatten)]
    pub interval: Interval,
}

/// How often one thing was so, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RateRow {
    /// What it is: `outcome`, `watch`, `client`.
    pub kind: &'static str,
    /// The agent; of an outcome none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The rule, or `failure`.
    pub rule: String,
    /// Before the cut.
    pub before: RunShare,
    /// From the cut on.
    pub after: RunShare,
    /// After less before, where there are runs on both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// Newcombe's 95 % interval of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

/// How often everything was so.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Rates {
    /// Runs before the cut.
    pub before: u32,
    /// Runs from it on.
    pub after: u32,
    /// Runs of which nobody knows what they achieved.
    pub unjudged: u32,
    /// What was so in any run; what rose most surely comes first.
    pub rows: Vec<RateRow>,
}

impl From<Proportion> for RunShare {
    fn from(proportion: Proportion) -> Self {
        let (share, interval) = proportion.share();
        Self { runs: proportion.hits, of: proportion.of, share, interval }
    }
}

impl RateRow {
    /// Whether it is rarer or more frequent than before, beyond what 95 % of chance does.
    pub fn has_changed(&self) -> bool {
        self.interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0)
    }

    fn new(kind: &'static str, agent: Option<String>, rule: String, before: Proportion, after: Proportion) -> Self {
        let both = before.of > 0 && after.of > 0;
        let (change, interval) = difference(after, before);
        Self {
            kind,
            agent,
            rule,
            before: before.into(),
            after: after.into(),
            change: both.then_some(change),
            interval: both.then_some(interval),
        }
    }
}

/// The rates of these runs.
pub fn rates(runs: &[RatedRun]) -> Rates {
    let count = |is_after: bool, holds: &dyn Fn(&RatedRun) -> bool| {
        let found = runs.iter().filter(|run| run.is_after == is_after && holds(run)).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let both = |hit: &dyn Fn(&RatedRun) -> bool, may: &dyn Fn(&RatedRun) -> bool| {
        let of = |is_after| Proportion::new(count(is_after, &|run| may(run) && hit(run)), count(is_after, may));
        (of(false), of(true))
    };
    let judged = |run: &RatedRun| run.outcome != Verdict::Unknown;
    let (before, after) = both(&|run| run.outcome == Verdict::Failure, &judged);
    let mut rows = Vec::new();
    if before.of + after.of > 0 {
        rows.push(RateRow::new("outcome", None, "failure".to_owned(), before, after));
    }
    let things: BTreeSet<_> = runs.iter().flat_map(|run| &run.found).collect();
    let mut found: Vec<RateRow> = things
        .into_iter()
        .map(|thing| {
            let (kind, agent, rule) = thing;
            let (before, after) = both(&|run| run.found.contains(thing), &|run| run.agents.contains(agent));
            RateRow::new(kind, Some(agent.clone()), rule.clone(), before, after)
        })
        .collect();
    let rise = |row: &RateRow| row.interval.map_or(row.after.interval.low, |interval| interval.low);
    found.sort_by(|one, other| rise(other).total_cmp(&rise(one)));
    rows.extend(found);
    Rates {
        before: count(false, &|_| true),
        after: count(true, &|_| true),
        unjudged: count(false, &|run| !judged(run)) + count(true, &|run| !judged(run)),
        rows,
    }
}
