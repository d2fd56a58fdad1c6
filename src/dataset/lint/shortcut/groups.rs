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
    part: Option<&'static str>,
    failed: bool,
}

impl RunGroups {
    /// What was imported is as its source drew it.
    pub(super) fn add(&mut self, sample: &Sample) {
        if sample.kind == SampleKind::Benign || super::super::is_imported(sample) {
            return;
        }
        let runs = self.0.entry((sample.system.clone(), sample.task.id.clone())).or_default();
        runs.part = runs.part.or(sample.split.map(crate::dataset::Split::name));
        runs.failed |= sample.kind == SampleKind::Failure;
    }

    /// Groups without a failure, in words: by system, then by part.
    pub(super) fn tells(&self) -> (Option<String>, Option<String>) {
        let by = |what: &str, of: &dyn Fn(&(String, String), &TaskRuns) -> Option<String>| {
            let mut groups: BTreeMap<String, (u32, u32)> = BTreeMap::new();
            for (key, runs) in &self.0 {
                let (failed, without) = groups.entry(of(key, runs)?).or_default();
                *(if runs.failed { failed } else { without }) += 1;
            }
            one_sided(&groups).map(|(name, without, failed)| {
                format!(
                    "{what} `{name}` has no failure of {without} tasks, and {failed} tasks have one elsewhere: {what} alone \
                     tells that nobody erred"
                )
            })
        };
        (
            by("the system", &|(system, _), _| Some(system.clone())),
            by("the part", &|_, runs| runs.part.map(str::to_owned)),
        )
    }
}

/// The group whose tasks all went well, where a draw of so many tasks would hardly give that.
fn one_sided(groups: &BTreeMap<String, (u32, u32)>) -> Option<(&String, u32, u32)> {
    let (failed, without) = groups.values().fold((0, 0), |(a, b), (failed, without)| (a + failed, b + without));
    let candidates = groups.iter().filter(|(_, (own, _))| *own == 0 && failed > 0 && groups.len() > 1);
    candidates
        .filter_map(|(name, (_, own))| {
            // Each task that is drawn must be one of those without a failure.
            let chance: f64 = (0..*own).map(|at| f64::from(without - at) / f64::from(failed + without - at)).product();
            let all = f64::from(u32::try_from(groups.len()).unwrap_or(u32::MAX));
            (chance * all < CHANCE).then_some((name, *own, failed))
        })
        .next()
}
