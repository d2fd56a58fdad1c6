//! Manipulators that give themselves away: their replies are told from the clean twins' by words, by how they are set, or by what
//! stands beside them.

use std::collections::{BTreeMap, BTreeSet};

use super::{TELLS, characters, figures::FeatureValues, typography::TypedReplies};
use crate::{
    dataset::{
        Dataset, DatasetError, Index,
        statistics::{FEW_TASKS, Probed, Replies, TwinPair, pairs},
    },
    trajectory::Interval,
};

/// Lengths of altered replies over the twins', at the median, that are no tell.
const LENGTHS: (f64, f64) = (0.5, 2.0);

/// What altered replies of one name have in common, beside their words.
#[derive(Default)]
pub(super) struct Altered {
    pub(super) tasks: BTreeSet<String>,
    lengths: Vec<f64>,
    figures: FeatureValues,
    typed: TypedReplies,
}

/// Altered replies by a name: a manipulator, or more.
#[derive(Default)]
pub(super) struct AlteredReplies {
    replies: Replies,
    by: BTreeMap<String, Altered>,
}

impl AlteredReplies {
    pub(super) fn add(&mut self, name: &str, pair: &TwinPair<'_>, dataset: &Dataset) -> Result<(), DatasetError> {
        self.replies.pair(name.to_owned(), pair);
        self.by.entry(name.to_owned()).or_default().add(pair, dataset)
    }

    /// What each name's replies have in common.
    pub(super) fn altered(&self) -> impl Iterator<Item = (&String, &Altered)> {
        self.by.iter()
    }

    /// Names whose replies a classifier of words tells from the twins', in words.
    pub(super) fn by_words(&self) -> BTreeMap<String, String> {
        self.replies
            .each()
            .into_iter()
            .filter_map(|probed| Some((probed.manipulator.clone(), words(&probed)?)))
            .collect()
    }

    /// Names that give themselves away, each with what tells it.
    fn giveaways(&self) -> BTreeMap<String, String> {
        let mut found = self.by_words();
        for (name, altered) in &self.by {
            if let Some(what) = altered.figures().next().or_else(|| altered.typed()) {
                found.entry(name.clone()).or_insert(what);
            }
        }
        found
    }
}

/// Manipulators of a dataset that give themselves away, each with what tells it.
pub(in crate::dataset) fn giveaways(dataset: &Dataset) -> Result<BTreeMap<String, String>, DatasetError> {
    let mut altered = AlteredReplies::default();
    let index: Index = dataset.index()?;
    pairs(dataset, &index, |pair| altered.add_planted(pair, dataset))?;
    Ok(altered.giveaways())
}

impl AlteredReplies {
    /// Takes a pair under its manipulator's name; an error that nobody planted gives nobody away.
    pub(super) fn add_planted(&mut self, pair: &TwinPair<'_>, dataset: &Dataset) -> Result<(), DatasetError> {
        pair.error.planted_by().map_or(Ok(()), |operator| self.add(operator, pair, dataset))
    }

    /// Each manipulator that gives itself away, in one line.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.giveaways().into_iter().map(|(name, what)| format!("`{name}`: {what}"))
    }
}

/// What a classifier of words finds, where that is more than chance.
fn words(probed: &Probed) -> Option<String> {
    let (auc, (low, high)) = (probed.auc?, probed.interval?);
    let tells: Vec<String> = probed.tells.iter().map(|tell| super::super::quoted(tell)).collect();
    (auc > TELLS && low > 0.5).then(|| {
        format!(
            "words tell {} altered replies from the twins' with an area under the curve of {auc:.2} [{low:.2}, {high:.2}]: {}",
            probed.injected,
            tells.join(", ")
        )
    })
}

impl Altered {
    fn add(&mut self, pair: &TwinPair<'_>, dataset: &Dataset) -> Result<(), DatasetError> {
        self.tasks.insert(pair.failure.task.id.clone());
        self.lengths.push((characters(pair.step) + 1.0) / (characters(pair.other) + 1.0));
        self.typed.add(pair);
        self.figures.add(pair, dataset)
    }

    /// Whether an area tells, over so many tasks, and its interval: replies of one task are not independent of one another.
    fn telling_interval(&self, area: f64) -> Option<Interval> {
        let tasks = self.tasks.len();
        let of = f64::from(u32::try_from(tasks).unwrap_or(u32::MAX));
        let interval = Interval::wilson(area * of, of);
        (tasks >= FEW_TASKS && area > TELLS && interval.low > 0.5).then_some(interval)
    }

    /// How replies are set, where that tells.
    pub(super) fn typed(&self) -> Option<String> {
        let (feature, area) = self.typed.best()?;
        let Interval { low, high } = self.telling_interval(area)?;
        Some(format!(
            "{feature}, or none, tells {} altered replies from the twins' with an area under the curve of {area:.2} \
             [{low:.2}, {high:.2}]",
            self.lengths.len()
        ))
    }

    /// What stands beside replies, where that tells.
    pub(super) fn figures(&self) -> impl Iterator<Item = String> {
        self.figures.areas().filter_map(|(name, how, area)| {
            let Interval { low, high } = self.telling_interval(area)?;
            Some(format!(
                "`{name}` {how}tells {} altered replies from the twins' with an area under the curve of {area:.2} [{low:.2}, \
                 {high:.2}]",
                self.lengths.len()
            ))
        })
    }

    /// How much longer or shorter replies are, where that tells.
    pub(super) fn length(&self) -> Option<String> {
        let mut sorted = self.lengths.clone();
        sorted.sort_by(f64::total_cmp);
        let median = *sorted.get(sorted.len() / 2)?;
        let what = format!(
            "altered replies are {median:.2} times as long as the twins' at the median of {}; {} to {} are no tell",
            sorted.len(),
            LENGTHS.0,
            LENGTHS.1
        );
        (median < LENGTHS.0 || median > LENGTHS.1).then_some(what)
    }
}
