//! A search by halves that a wrong outcome does not mislead.
//!
//! Two rows are halved ([`boundary`]). With *recorded* replies: up to the decisive step a fresh draw of the rest heals
//! the run, from it on none does. Where the model makes its error again, nothing heals it by chance; then with
//! *corrected* replies: from the decisive step on, down to a last one, a correction heals. Each look executes the
//! program once where it tells most, and no look decides: what was seen gives every step a probability. Steps are then
//! tested in full, null against treated, the most probable first, until the one that is blamed is probably the
//! earliest. What stays open is a [`Doubt`], never a guess.

use std::collections::BTreeSet;

use super::{
    Doubt, LabelRule, TrialError,
    boundary::{self, Succeed},
    search::{Search, Side},
};
use crate::trajectory::StepIndex;

/// From this probability on a boundary is worth a test.
const SETTLED: f64 = 0.85;
/// Below this probability a step is not worth a test.
const NEGLIGIBLE: f64 = 0.05;
/// From this probability on that another step is the one, the rule names none.
const DOUBTFUL: f64 = 0.15;
/// How many steps chance may point at in vain, before corrections are asked where they heal.
const FEW: usize = 2;
/// The weight of a step that was tested and not blamed: the test may have missed it.
const MISSED: f64 = 0.15;
/// The weight of a step that is blamed.
const BLAMED: f64 = 10.0;

/// The steps that can be corrected, and what their tests said.
struct Row {
    steps: Vec<StepIndex>,
    /// By step: the first place from which on a run has it from the record. Calls of the same time may be in before
    /// their place.
    entries: Vec<usize>,
    tested: BTreeSet<usize>,
    blamed: BTreeSet<usize>,
}

/// Searches for the earliest step with an effect and, unless `first`, for the latest.
pub(super) async fn search(search: &mut Search<'_>, first: bool) -> Result<(), TrialError> {
    let mut row = Row::of(search);
    let mut from = row.by_chance(search, FEW).await?;
    if row.blamed.is_empty() && from < row.steps.len() {
        row.by_correction(search, from).await?;
    }
    if row.blamed.is_empty() && from < row.steps.len() {
        from = row.by_chance(search, row.patience()).await?;
    }
    if search.out_of_budget {
        return Ok(());
    }
    let Some(earliest) = row.blamed.first().copied() else {
        row.doubt_that_none(search, from);
        return Ok(());
    };
    if first { Ok(()) } else { row.latest(search, earliest).await }
}

impl Row {
    fn of(search: &Search<'_>) -> Self {
        let steps = search.candidates();
        let cassette = &search.subject().cassette;
        let recorded = &cassette.recording().trajectory.steps;
        let spans = steps.iter().map(|step| {
            let step = recorded.iter().find(|recorded| recorded.step == *step);
            step.map(|step| cassette.span(step)).unwrap_or_default()
        });
        let mut closed_until = 0;
        let spans: Vec<(u64, u64)> = spans
            .map(|(opened, closed)| {
                closed_until = closed.max(closed_until);
                (opened, closed_until)
            })
            .collect();
        let entry = |(place, (opened, _)): (usize, &(u64, u64))| {
            spans.partition_point(|(_, closed)| closed <= opened).min(place)
        };
        let entries = spans.iter().enumerate().map(entry).collect();
        Self { steps, entries, tested: BTreeSet::new(), blamed: BTreeSet::new() }
    }

    fn step(&self, place: usize) -> StepIndex {
        self.steps.get(place).copied().unwrap_or_default()
    }

    fn entry(&self, place: usize) -> usize {
        self.entries.get(place).copied().unwrap_or(place)
    }

    fn weight(&self, place: usize) -> f64 {
        match (self.blamed.contains(&place), self.tested.contains(&place)) {
            (true, _) => BLAMED,
            (false, true) => MISSED,
            (false, false) => 1.0,
        }
    }

    /// How many steps may be tested in vain: what halving costs once more.
    fn patience(&self) -> usize {
        2 + self.steps.len().max(1).ilog2() as usize
    }

    /// What one arm came to, place by place.
    fn posterior(&self, search: &Search<'_>, side: Side, prior: &[f64], succeed: Succeed) -> Vec<f64> {
        let seen: Vec<_> = self.steps.iter().map(|step| search.share(*step, side)).collect();
        boundary::posterior(&seen, prior, succeed)
    }

    /// Looks where it tells most until a boundary is settled, or there is nothing left to look at; the posterior.
    async fn settle(
        &self,
        search: &mut Search<'_>,
        side: Side,
        prior: &[f64],
        succeed: Succeed,
    ) -> Result<Vec<f64>, TrialError> {
        loop {
            let posterior = self.posterior(search, side, prior, succeed);
            if boundary::most_probable(&posterior).1 >= SETTLED {
                return Ok(posterior);
            }
            let place = boundary::most_telling(&posterior, |place| search.has_room(self.step(place), side));
            let Some(place) = place else { return Ok(posterior) };
            if !search.look(self.step(place), side).await? {
                return Ok(posterior);
            }
        }
    }

    async fn test(&mut self, search: &mut Search<'_>, place: usize) -> Result<bool, TrialError> {
        let blamed = search.test(self.step(place)).await?;
        self.tested.insert(place);
        if blamed {
            self.blamed.insert(place);
        }
        Ok(blamed)
    }

    /// How probable each step is the decisive one, after the boundaries of chance.
    fn shares(&self, posterior: &[f64], prior: &[f64]) -> Vec<f64> {
        let at = |list: &[f64], index: usize| list.get(index).copied().unwrap_or_default();
        let share = |place: usize| {
            let entry = self.entry(place);
            let all = at(prior, entry);
            if all > 0.0 { at(posterior, entry) * self.weight(place) / all } else { 0.0 }
        };
        (0..self.steps.len()).map(share).collect()
    }

    /// Each step is as likely as any other the one that enters the record where chance ceases to heal; the last
    /// boundary is that chance heals it to the end.
    fn prior(&self) -> Vec<f64> {
        let mut prior = vec![0.0; self.steps.len()];
        for place in 0..self.steps.len() {
            if let Some(weight) = prior.get_mut(self.entry(place)) {
                *weight += self.weight(place);
            }
        }
        prior.push(1.0);
        prior
    }

    /// Where chance ceases to heal the run. Tests what enters the record there, until so many steps were tested in
    /// vain; says where that is.
    async fn by_chance(&mut self, search: &mut Search<'_>, patience: usize) -> Result<usize, TrialError> {
        loop {
            let prior = self.prior();
            let posterior = self.settle(search, Side::Null, &prior, Succeed::Before).await?;
            let (from, _) = boundary::most_probable(&posterior);
            let shares = self.shares(&posterior, &prior);
            let open = |place: &usize| !self.tested.contains(place) && self.blamed.first().is_none_or(|b| place < b);
            let open: Vec<usize> = (0..self.steps.len()).filter(open).collect();
            let share = |place: usize| shares.get(place).copied().unwrap_or_default();
            let next = open.iter().copied().filter(|place| share(*place) >= NEGLIGIBLE);
            let next = next.reduce(|best, next| if share(next) > share(best) { next } else { best });
            let in_vain = self.tested.len() - self.blamed.len();
            if let Some(next) = next.filter(|_| in_vain < patience && !search.out_of_budget) {
                self.test(search, next).await?;
                continue;
            }
            let others: f64 = open.iter().map(|place| share(*place)).sum();
            if let Some(blamed) = self.blamed.first().filter(|_| others >= DOUBTFUL) {
                let mut steps: Vec<_> =
                    open.iter().filter(|p| share(**p) >= NEGLIGIBLE).map(|p| self.step(*p)).collect();
                steps.push(self.step(*blamed));
                let why = "an earlier step is not ruled out; more samples would tell".to_owned();
                search.doubts.push(Doubt { rule: LabelRule::EarliestFlip, steps, why });
            }
            return Ok(from);
        }
    }

    /// From which step on a correction heals the run, of those from a place on, where chance does not.
    async fn by_correction(&mut self, search: &mut Search<'_>, from: usize) -> Result<(), TrialError> {
        for _ in 0..self.patience() {
            let within = |place: usize| if place < from { 0.0 } else { self.weight(place) };
            let prior: Vec<f64> = (0..self.steps.len()).map(within).chain([1.0]).collect();
            let posterior = self.settle(search, Side::Treated, &prior, Succeed::From).await?;
            let (place, _) = boundary::most_probable(&posterior);
            if search.out_of_budget || place >= self.steps.len() || self.tested.contains(&place) {
                return Ok(());
            }
            if self.test(search, place).await? {
                return self.earlier_of_others(search).await;
            }
        }
        Ok(())
    }

    /// Goes back while an agent that spoke before the earliest blamed step is to blame too: what agents do side by
    /// side heals on one side only, so that halving may have passed by the other.
    async fn earlier_of_others(&mut self, search: &mut Search<'_>) -> Result<(), TrialError> {
        loop {
            let Some(earliest) = self.blamed.first().copied() else { return Ok(()) };
            let mut last = std::collections::BTreeMap::new();
            for place in 0..earliest {
                if let Some(finding) = search.known(self.step(place)) {
                    last.insert((finding.agent.clone(), finding.instance), place);
                }
            }
            let open: Vec<usize> = last.into_values().filter(|place| !self.tested.contains(place)).collect();
            for place in open {
                self.test(search, place).await?;
                if search.out_of_budget {
                    return Ok(());
                }
            }
            if self.blamed.first() == Some(&earliest) {
                return Ok(());
            }
        }
    }

    /// The last step whose correction heals.
    async fn latest(&mut self, search: &mut Search<'_>, earliest: usize) -> Result<(), TrialError> {
        for _ in 0..self.patience() {
            // The boundary lies behind the last step that heals.
            // That a step is blamed says nothing of those after it.
            let weight = |last: usize| self.weight(last).min(1.0);
            let behind = (0..self.steps.len()).map(|last| if last < earliest { 0.0 } else { weight(last) });
            let prior: Vec<f64> = [0.0].into_iter().chain(behind).collect();
            let posterior = self.settle(search, Side::Treated, &prior, Succeed::Before).await?;
            let last = boundary::most_probable(&posterior).0.saturating_sub(1);
            if search.out_of_budget {
                return Ok(());
            }
            if !self.tested.contains(&last) {
                self.test(search, last).await?;
                continue;
            }
            let latest = self.blamed.last().copied().unwrap_or(earliest);
            let later = posterior.get(latest + 2..).unwrap_or_default();
            if later.iter().sum::<f64>() < DOUBTFUL {
                return Ok(());
            }
            break;
        }
        let latest = self.blamed.last().copied().unwrap_or(earliest);
        let steps = self.steps.get(latest..).unwrap_or_default().to_vec();
        let why = "a later step is not ruled out; more samples, or `scan`, would tell".to_owned();
        search.doubts.push(Doubt { rule: LabelRule::Commitment, steps, why });
        Ok(())
    }

    /// Nothing is blamed: either chance heals the run wherever it is forked, or the step was not among those tested.
    fn doubt_that_none(&self, search: &mut Search<'_>, from: usize) {
        let open = |place: &usize| !self.tested.contains(place);
        let steps: Vec<StepIndex> = (from..self.steps.len()).filter(open).map(|place| self.step(place)).collect();
        if !steps.is_empty() {
            let why = "halving settles on no step; more samples, or `scan`, would tell".to_owned();
            let doubt = |rule| Doubt { rule, steps: steps.clone(), why: why.clone() };
            search.doubts.extend([LabelRule::EarliestFlip, LabelRule::Commitment].map(doubt));
        }
    }
}
