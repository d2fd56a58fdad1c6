//! A ranker that `aegis learn` made of executed effects: its file, and the method that ranks by it.

use std::fmt::Write as _;

use serde::Deserialize;

use super::{
    Abstention, Dialogue, LoggedRun, LoggedTurn, Method, Needs, Pause, PredictedStep, View, clues, clues::CLUES,
};
use crate::{
    score::{
        Interval, RESAMPLED_MIN,
        ranker::{HeldOut, LinearRanker},
    },
    trajectory::nearest,
};

/// Version of the file.
const FORMAT: u32 = 1;
/// Most predictions.
const NAMED: usize = 5;
/// Clues that a prediction names.
const TOLD: usize = 3;

/// Ranks steps by a table of weights.
#[derive(Debug)]
pub(super) struct Learned;

/// A ranker of executed effects.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedRanker(LinearRanker);

/// What a ranker was learned from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LearnedFrom {
    /// Failed runs with steps that were blamed and steps that were cleared.
    pub runs: usize,
    /// Their systems.
    pub systems: usize,
    /// Their tasks.
    pub tasks: usize,
    /// Steps that were blamed.
    pub blamed: usize,
    /// Steps that were cleared by executions.
    pub cleared: usize,
    /// Hash of the numbers that it was learned from.
    pub digest: String,
}

/// Why a file is no ranker.
#[derive(Debug, thiserror::Error)]
pub enum LearnedError {
    /// It has another form.
    #[error("{0}: it is not what `aegis learn` writes: {1}")]
    Form(String, String),
    /// It is of another version.
    #[error("{0}: format {1}: expected {FORMAT}; learn it again with this version")]
    Version(String, u32),
    /// It weighs something that is not known here.
    #[error("{0}: there is no feature `{1}`{2}")]
    Unknown(String, String, String),
}

#[derive(Deserialize)]
struct RankerFile {
    format: u32,
    #[serde(default)]
    feature: Vec<RankerFeature>,
}

#[derive(Deserialize)]
struct RankerFeature {
    name: String,
    weight: f64,
    mean: f64,
    scale: f64,
}

impl LearnedRanker {
    /// A trained ranker over [`CLUES`].
    pub fn new(ranker: LinearRanker) -> Self {
        Self(ranker)
    }

    /// Reads what `aegis learn` wrote. `file` is only named in errors. A feature that it does not name weighs nothing.
    ///
    /// # Errors
    /// [`LearnedError`], with the file.
    pub fn parse(text: &str, file: &str) -> Result<Self, LearnedError> {
        let form = |why: String| LearnedError::Form(file.to_owned(), why);
        let read: RankerFile = toml::from_str(text).map_err(|error| form(error.to_string().trim_end().to_owned()))?;
        if read.format != FORMAT {
            return Err(LearnedError::Version(file.to_owned(), read.format));
        }
        let mut ranker = LinearRanker {
            weights: vec![0.0; CLUES.len()],
            mean: vec![0.0; CLUES.len()],
            scale: vec![1.0; CLUES.len()],
        };
        for RankerFeature { name, weight, mean, scale } in read.feature {
            let Some(place) = CLUES.iter().position(|(known, _)| *known == name) else {
                let near = nearest(&name, CLUES.iter().map(|(known, _)| *known));
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(LearnedError::Unknown(file.to_owned(), name, near));
            };
            if !(weight.is_finite() && mean.is_finite() && scale.is_finite() && scale > 0.0) {
                return Err(form(format!("`{name}`: weight and mean are numbers, scale is above 0")));
            }
            for (numbers, value) in
                [(&mut ranker.weights, weight), (&mut ranker.mean, mean), (&mut ranker.scale, scale)]
            {
                numbers.iter_mut().skip(place).take(1).for_each(|number| *number = value);
            }
        }
        Ok(Self(ranker))
    }

    /// The file: what it was learned from, what it is worth where it was not, and its table, the weightiest feature first.
    pub fn to_toml(&self, from: &LearnedFrom, held_out: &[(&str, Option<HeldOut>)]) -> String {
        let mut text = format!(
            "# What `aegis learn` made of executed effects. It orders what a trace looks at first, and labels nothing.\n\
             # A step's score: the sum of weight * (feature - mean) / scale; the highest of a run comes first.\n\
             format = {FORMAT}\n\n[learned_from]\nruns = {}\nsystems = {}\ntasks = {}\nsteps_blamed = {}\nsteps_cleared = {}\n\
             digest = \"{}\"\n",
            from.runs, from.systems, from.tasks, from.blamed, from.cleared, from.digest
        );
        text.push_str("\n# Runs that were left out of learning: how many steps are looked at until the blamed one.\n");
        for (by, held_out) in held_out {
            let Some(found) = held_out else {
                let _ = writeln!(text, "# by {by}: there is only one");
                continue;
            };
            let HeldOut { groups, runs, ranker, scan, saved, interval } = found;
            let _ = write!(
                text,
                "[[held_out]]\nby = \"{by}\"\ngroups = {groups}\nruns = {runs}\n\
                 looks = {{ ranker = {:.3}, scan = {:.3} }}\nfirst = {{ ranker = {}, scan = {} }}\n\
                 top_3 = {{ ranker = {}, scan = {} }}\nsaved = {saved:.3}\n",
                ranker.mean, scan.mean, ranker.first, scan.first, ranker.top_3, scan.top_3
            );
            let _ = match interval {
                Some(Interval { low, high }) => writeln!(text, "saved_95 = [{low:.3}, {high:.3}]\n"),
                None => writeln!(text, "# fewer than {RESAMPLED_MIN} tasks: no interval\n"),
            };
        }
        let LinearRanker { weights, mean, scale } = &self.0;
        let numbers = weights.iter().zip(mean).zip(scale).map(|((weight, mean), scale)| (*weight, *mean, *scale));
        let mut table: Vec<_> = CLUES.iter().zip(numbers).collect();
        // Stable: of equals the order is that of the features.
        table.sort_by(|(_, a), (_, b)| b.0.abs().total_cmp(&a.0.abs()));
        for ((name, about), (weight, mean, scale)) in table {
            let _ = write!(
                text,
                "[[feature]] # {about}\nname = \"{name}\"\nweight = {weight:?}\nmean = {mean:?}\nscale = {scale:?}\n\n"
            );
        }
        text
    }

    /// The steps of a run, the one that is most like a blamed one first, with their scores and the clues that speak most for
    /// each.
    pub fn ranked(&self, run: &LoggedRun, others: &[LoggedRun]) -> Vec<(u32, f64, String)> {
        let rows = clues::clues(run, others);
        let scored = run.turns.iter().zip(&rows).map(|(turn, row)| (turn.step, self.0.score(row), self.reasons(row)));
        let mut ranked: Vec<_> = scored.collect();
        // Stable: of equals the earlier step stays first.
        ranked.sort_by(|(_, a, _), (_, b, _)| b.total_cmp(a));
        ranked
    }

    fn reasons(&self, row: &[f64]) -> String {
        let LinearRanker { weights, mean, scale } = &self.0;
        let parts = row
            .iter()
            .zip(mean)
            .zip(scale)
            .zip(weights)
            .map(|(((value, mean), scale), weight)| (weight * (value - mean) / scale, *value));
        let mut parts: Vec<_> = CLUES.iter().zip(parts).filter(|(_, (part, _))| *part > 0.0).collect();
        parts.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
        let told =
            parts.into_iter().take(TOLD).map(|((name, _), (part, value))| format!("{name} {value:.2} (+{part:.2})"));
        told.collect::<Vec<_>>().join(", ")
    }
}

impl Method for Learned {
    fn name(&self) -> &'static str {
        "learned"
    }

    fn description(&self) -> &'static str {
        "ranks steps as executed effects taught it; --prior names the file that `aegis learn` wrote"
    }

    fn needs(&self) -> Needs {
        Needs::Ranker
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        _dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        let inapplicable = |why: &str| Err(Pause::Abstain(Abstention::Inapplicable(why.to_owned())));
        let Some(ranker) = view.ranker else {
            return inapplicable(
                "nothing was learned: `aegis learn DATASET --out prior.toml`, then --prior prior.toml",
            );
        };
        let ranked = ranker.ranked(run, view.others);
        if ranked.is_empty() {
            return inapplicable("the run has no step");
        }
        let said = ranked.into_iter().take(NAMED).map(|(step, score, reasons)| {
            let start = run.turn(step).map(LoggedTurn::words_and_calls).unwrap_or_default();
            let start = start.split_whitespace().take(16).collect::<Vec<_>>().join(" ");
            PredictedStep::at(run, step, format!("speaks for it: {reasons}")).scored(score).quoting(run, step, &start)
        });
        Ok(said.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::methods::testing::{VIEW, driven, run};

    fn ranker(name: &str, weight: f64) -> LearnedRanker {
        let weights = CLUES.iter().map(|(known, _)| if *known == name { weight } else { 0.0 }).collect();
        LearnedRanker(LinearRanker { weights, mean: vec![0.125; CLUES.len()], scale: vec![3.0; CLUES.len()] })
    }

    #[test]
    fn what_is_written_is_read_again_to_the_last_bit() {
        let written = ranker("hops", -1.0 / 3.0);
        let text = written.to_toml(&LearnedFrom::default(), &[("system", None)]);
        assert_eq!(LearnedRanker::parse(&text, "p.toml").expect("read"), written);
        assert!(text.find("name = \"hops\"") < text.find("name = \"position\""), "the weightiest first: {text}");
    }

    #[test]
    fn what_is_no_ranker_is_refused_with_the_nearest_name() {
        let feature = |name: &str, scale: &str| {
            format!("format = 1\n[[feature]]\nname = \"{name}\"\nweight = 1.0\nmean = 0.0\nscale = {scale}\n")
        };
        for (text, expected) in [
            ("format = ".to_owned(), "p.toml: it is not what `aegis learn` writes"),
            ("format = 9".to_owned(), "format 9: expected 1"),
            (feature("hopps", "1.0"), "there is no feature `hopps`; did you mean `hops`?"),
            (feature("hops", "0.0"), "scale is above 0"),
            (feature("hops", "nan"), "scale is above 0"),
        ] {
            let error = LearnedRanker::parse(&text, "p.toml").expect_err(&text).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_method_ranks_by_the_table_and_abstains_without() {
        let run = run(&["a", "b", "c"]);
        assert!(matches!(driven(&Learned, &run, VIEW, &[]).0, Err(Pause::Abstain(Abstention::Inapplicable(_)))));
        let ranker = ranker("position", 2.0);
        let found = driven(&Learned, &run, View { ranker: Some(&ranker), ..VIEW }, &[]).0.expect("a ranking");
        assert_eq!(found.iter().filter_map(|found| found.step).collect::<Vec<_>>(), [2, 1, 0]);
        assert!(found[0].reason.contains("position 1.00 (+0.58)"), "{}", found[0].reason);
    }
}
