//! Systems and parts of the data that hold no failure, where others hold all: the name of the group tells that nobody erred, or
//! nothing can be measured in it.

use std::collections::{BTreeMap, HashMap};

use crate::dataset::{Sample, SampleKind};

/// How rarely a draw may give what is found, over all groups.
const CHANCE: f64 = 0.01;

/// Tasks of systems, and whether any run of them failed.
#[derive(Debug, Default)]
pub(super) struct RunGroups(HashMap<(String, String), TaskRuns>);

#[derive(Debug, Default)]
struct TaskRuns {
    system: String,
    part: Option<&'static str>,
    failed: bool,
}

/// Tasks of a group: those of which a run failed, and the others.
#[derive(Debug, Default, Clone, Copy)]
struct GroupTasks {
    failed: u32,
    without: u32,
}

impl RunGroups {
    /// What was imported is as its source drew it.
    pub(super) fn add(&mut self, sample: &Sample) {
        if matches!(sample.kind, SampleKind::Benign | SampleKind::Decoy) || super::super::is_imported(sample) {
            return;
        }
        let runs = self.0.entry((sample.system.clone(), sample.task.id.clone())).or_default();
        runs.system.clone_from(&sample.system);
        runs.part = runs.part.or(sample.split.map(crate::dataset::Split::name));
        runs.failed |= sample.kind == SampleKind::Failure;
    }

    /// A system without a failure, in words.
    pub(super) fn system(&self) -> Option<String> {
        self.by("system", |runs| Some(&runs.system))
    }

    /// A part without a failure, in words; `None` where only some runs are in a part.
    pub(super) fn part(&self) -> Option<String> {
        self.by("part", |runs| runs.part)
    }

    fn by(&self, what: &str, of: fn(&TaskRuns) -> Option<&str>) -> Option<String> {
        let mut groups: BTreeMap<&str, GroupTasks> = BTreeMap::new();
        for runs in self.0.values() {
            let group = groups.entry(of(runs)?).or_default();
            *(if runs.failed { &mut group.failed } else { &mut group.without }) += 1;
        }
        let (name, without, failed) = one_sided(&groups)?;
        Some(format!(
            "the {what} `{name}` has no failure of {without} tasks, and {failed} tasks have one elsewhere: the {what} alone tells \
             that nobody erred"
        ))
    }
}

/// The group whose tasks all went well, where a draw of so many tasks would hardly give that: its name, its tasks, and how many
/// failed elsewhere.
fn one_sided<'a>(groups: &BTreeMap<&'a str, GroupTasks>) -> Option<(&'a str, u32, u32)> {
    let failed: u32 = groups.values().map(|group| group.failed).sum();
    let without: u32 = groups.values().map(|group| group.without).sum();
    let all = f64::from(u32::try_from(groups.len()).unwrap_or(u32::MAX));
    let rare = |own: u32| {
        // Each task that is drawn must be one of those without a failure.
        let chance: f64 = (0..own).map(|at| f64::from(without - at) / f64::from(failed + without - at)).product();
        chance * all < CHANCE
    };
    let candidates = groups.iter().filter(|(_, group)| group.failed == 0 && failed > 0 && groups.len() > 1);
    candidates.map(|(name, group)| (*name, group.without, failed)).find(|(_, own, _)| rare(*own))
}
