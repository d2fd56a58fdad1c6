//! `aegis score PREDICTIONS --gold DATASET --profile P`: how good predictions are, beside rules without a model.

mod paper;
mod text;

use crate::cli::printed::{PrintedScore, ScoredRewards, printed};
use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use serde_json::json;

use self::paper::TableFormat;
use super::{Exit, Failure, Finished, Global, OutputFormat, corpus::CorpusArgs};
use crate::{
    dataset::{self, Grounds},
    score::{self, Gold, Profile, RewardKind, Scored, ScoringError, Share},
};

/// Options of `score`.
#[derive(Debug, Args)]
pub(super) struct ScoreArgs {
    /// Predictions: JSON rows or a Who&When inference log; `-` is standard input. Several files make a table.
    #[arg(value_name = "PREDICTIONS", required = true)]
    predictions: Vec<PathBuf>,
    /// Data set, or directory of runs, with the labels. A table takes several, each with columns of its own.
    #[arg(long, value_name = "DATASET")]
    gold: Vec<PathBuf>,
    /// Scoring rules: strict, aegis, aegis-fork, whowhen or agentracer. Strict figures are always included.
    #[arg(long, value_name = "PROFILE", default_value = "strict")]
    profile: Profile,
    /// Number of the first step in the predictions.
    #[arg(long, value_name = "0|1", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..=1))]
    base: i64,
    /// Method to score, in a file with several.
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// Print the papers' table instead: F1 of pairs, agents and modes, and accuracy, of each method and of the rules
    /// without a model.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "reward")]
    table: Option<TableFormat>,
    /// Print a training reward per row instead.
    #[arg(long, value_enum, value_name = "REWARD")]
    reward: Option<Reward>,
}

/// The rewards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reward {
    /// Agent, step and mode; a near step counts for less than the step.
    Step,
    /// Aegis' hierarchical reward of agents and modes; the right answer is worth 1.
    Aegis,
    /// The same without its two defects.
    AegisStrict,
    /// Aegis' reward exactly as in its authors' function, for comparison.
    AegisPublished,
    /// AgenTracer's gated reward.
    Agentracer,
}

impl Reward {
    /// The same for the library.
    pub(super) fn kind(self) -> RewardKind {
        match self {
            Reward::Step => RewardKind::Step,
            Reward::Aegis => RewardKind::Aegis,
            Reward::AegisPublished => RewardKind::AegisPublished,
            Reward::AegisStrict => RewardKind::AegisStrict,
            Reward::Agentracer => RewardKind::Agentracer,
        }
    }
}

pub(super) fn run(arguments: &ScoreArgs, global: &Global, out: &mut dyn Write) -> Result<Finished, Failure> {
    if let Some(format) = arguments.table {
        return paper::run(arguments, format, global, out);
    }
    let json = global.format == OutputFormat::Json;
    let ([file], [] | [_]) = (arguments.predictions.as_slice(), arguments.gold.as_slice()) else {
        let error = "several prediction files or data sets make a table, and none is asked for";
        return Err(Failure::new(Exit::Usage, error).hint("--table markdown"));
    };
    let gold = arguments.gold.first();
    let text = read(file)?;
    let text = score::read::of_method(&text, arguments.method.as_deref())
        .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", file.display())))?;
    let (golds, sure) = gold.map(|gold| golds(gold, global.quiet)).transpose()?.unzip();
    let named = |error: ScoringError| unscored(file, &error);
    if let Some(reward) = arguments.reward {
        let golds = golds.as_deref().ok_or(ScoringError::GoldNeeded("reward")).map_err(named)?;
        return rewards(&text, golds, reward, json, out).map_err(named)?;
    }
    let scored = score::score(&text, golds.as_deref(), arguments.profile, arguments.base).map_err(named)?;
    if !json {
        if let Some(sure) = &sure {
            writeln!(out, "gold: {sure}").map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
        text::write(&scored, out).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let data = printed(&PrintedScore { scored: &scored, gold_sure: sure });
    Ok(Finished { exit: Exit::Ok, summary: summary(&scored), data })
}

fn unscored(file: &Path, error: &ScoringError) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("{}: {error}", file.display()));
    match error {
        ScoringError::TwoDirectories(_) => failure.hint("import each directory on its own, and score it alone"),
        _ => failure,
    }
}

/// The text of a prediction file.
fn read(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|found| bytes = found)
    };
    let failed =
        |error: std::io::Error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", path.display()));
    read.map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(Exit::Usage, format!("`{}` is no UTF-8 text: byte {at} is not", path.display()))
    })
}

/// The labels of a dataset, and how sure they are. Clean runs count as runs in which nobody failed.
fn golds(path: &Path, quiet: bool) -> Result<(Vec<Gold>, String), Failure> {
    let dataset = CorpusArgs::default().open(path, quiet)?;
    let (mut golds, mut grounds) = (Vec::new(), Grounds::default());
    for placed in dataset.numbered_samples() {
        let sample = placed?.sample;
        grounds.add(&sample);
        golds.extend(dataset::gold(&sample));
    }
    let stated = dataset.manifest().and_then(|manifest| manifest.claims);
    Ok((golds, grounds.in_words(stated.as_ref())))
}

fn rewards(
    text: &str,
    golds: &[Gold],
    reward: Reward,
    json: bool,
    out: &mut dyn Write,
) -> Result<Result<Finished, Failure>, ScoringError> {
    let rows = score::rewards(text, golds, reward.kind())?;
    let known: Vec<f64> = rows.iter().filter_map(|row| row.reward).collect();
    let count = u32::try_from(known.len()).unwrap_or(u32::MAX);
    let mean = if known.is_empty() { 0.0 } else { known.iter().sum::<f64>() / f64::from(count) };
    let summary = format!("mean reward {mean:.4} over {} of {} rows", known.len(), rows.len());
    let written = if json { Ok(()) } else { rows.iter().try_for_each(|row| writeln!(out, "{}", json!(row))) };
    let data = printed(&ScoredRewards { rewards: &rows, mean, rows: rows.len(), known: known.len() });
    let exit = if known.is_empty() { Exit::Finding } else { Exit::Ok };
    Ok(written.map(|()| Finished { exit, summary, data }).map_err(|error| Failure::new(Exit::Infrastructure, error)))
}

/// A share with what it is of: labels without a step are no evidence about steps, so each has its own denominator.
fn part(share: &Share) -> String {
    format!("{:.1} % of {}", share.share * 100.0, share.of)
}

/// One line: the headline figures of the profile that was asked for.
fn summary(scored: &Scored) -> String {
    let strict = scored.strict.as_ref().map(|report| {
        let (accuracy, coverage) = (&report.accuracy, &report.coverage);
        format!(
            "agent {}, step {}, both {}; {} of {} runs answered",
            part(&accuracy.agent),
            part(&accuracy.step),
            part(&accuracy.joint),
            coverage.answered.hits,
            coverage.answered.of
        )
    });
    let public = scored.public.as_ref().map(|public| {
        let first = public.figures.iter().take(2).map(|figure| format!("{} {}", figure.name, figure.shown));
        format!("{}: {}", public.scorer, first.collect::<Vec<_>>().join(", "))
    });
    match (public, strict) {
        (Some(public), Some(strict)) => format!("{public}; strict: {strict}"),
        (public, strict) => public.or(strict).unwrap_or_default(),
    }
}
