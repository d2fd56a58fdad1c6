//! `aegis learn DATASET --out prior.toml`: a readable ranker of executed effects, or nothing.

use crate::cli::printed::{HeldOutFigures, NotLearned, PrintedRanker, RankerAgainstScan, RankerHits, printed};
use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;

use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    output::{OutputFile, Replaces},
    terminal,
};
use crate::{
    attribution::methods::{LearnedFrom, LearnedRanker, LoggedRun, clues},
    dataset::{Dataset, Sample, SampleKind, Truth},
    recording::Masked,
    score::{
        Interval, RESAMPLED_MIN,
        ranker::{HeldOut, LinearRanker, RankerRun, held_out},
    },
    trajectory::LabelStatus,
};

/// Labels that a trace writes.
const TRACED: [&str; 4] = ["earliest_flip", "commitment", "flip", "coupled"];

/// What makes something to learn from.
const NEXT: &str = "`aegis trace BAD --twin GOOD --check CMD --dataset DIR --tasks FILE --task ID -- CMD`";

/// Options of `learn`.
#[derive(Debug, Args)]
pub(super) struct LearnArgs {
    /// Data sets of traced failures (`aegis trace … --dataset DIR`).
    #[arg(value_name = "DATASET", required = true)]
    datasets: Vec<PathBuf>,
    /// Write the ranker, if anything was learned, for `trace --prior` and `attribute --method learned --prior`.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace an existing FILE.
    #[arg(long)]
    overwrite: bool,
}

/// What is learned from, and what is left out.
#[derive(Debug, Default)]
struct LearningSet {
    runs: Vec<RankerRun>,
    /// Failures whose label says what was planted, what people think, or nothing that was executed.
    others: usize,
    /// Traced ones of which nothing was cleared.
    uncleared: usize,
}

pub(super) fn run(arguments: &LearnArgs, global: &Global) -> Result<Finished, Failure> {
    let file = OutputFile::named(&arguments.out, Replaces::OnRequest(arguments.overwrite))?;
    let set = read(&arguments.datasets)?;
    let from = from(&set.runs);
    let by = [
        ("system", held_out(&set.runs, |run| run.system.clone())),
        ("task", held_out(&set.runs, |run| format!("{}\n{}", run.system, run.task))),
    ];
    let all: Vec<&RankerRun> = set.runs.iter().collect();
    let text = LearnedRanker::new(LinearRanker::train(&all)).to_toml(&from, &by);
    // To a system that it has not seen where there are several; else to a task that it has not seen.
    let decides = by.iter().find_map(|(by, found)| Some((*by, (*found)?)));
    let why = match &decides {
        _ if set.runs.is_empty() => Some(format!(
            "no run has both a step that was blamed and one that was cleared; {NEXT} writes such rows of a recorded failure"
        )),
        None => Some("all runs are of one task: nothing says what it would be worth on another".to_owned()),
        Some((_, HeldOut { interval: None, .. })) => Some(format!(
            "its worth where it was not learned is known of fewer than {RESAMPLED_MIN} tasks, which may be luck"
        )),
        Some((by, found)) if !found.beats_scan() => {
            Some(format!("on runs of a {by} that it had not seen it does not surely beat the order of the run"))
        }
        Some(_) => None,
    };
    if global.format == OutputFormat::Text {
        let told = tell(&set, &from, &by, &mut terminal::stdout());
        told.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let data = printed(&PrintedRanker {
        runs: from.runs,
        systems: from.systems,
        tasks: from.tasks,
        steps_blamed: from.blamed,
        steps_cleared: from.cleared,
        digest: &from.digest,
        left_out: NotLearned { other_labels: set.others, nothing_cleared: set.uncleared },
        held_out: by.iter().filter_map(|(by, found)| found.map(|found| figures(by, &found))).collect(),
        written: why.is_none().then(|| arguments.out.display().to_string()),
    });
    match (why, decides) {
        (None, Some((_, found))) => {
            file.write_aloud(&Masked::new(text))?;
            let summary = format!(
                "learned from {} runs: {:.1} looks saved a run {}; wrote {}",
                from.runs,
                found.saved,
                in_words(found.interval),
                arguments.out.display()
            );
            Ok(Finished { exit: Exit::Ok, summary, data })
        }
        (why, _) => {
            let summary = format!("nothing learned: {}; nothing was written", why.unwrap_or_default());
            Ok(Finished { exit: Exit::Finding, summary, data })
        }
    }
}

fn read(datasets: &[PathBuf]) -> Result<LearningSet, Failure> {
    let mut set = LearningSet::default();
    for path in datasets {
        let dataset = Dataset::open(path)?;
        let samples =
            dataset.numbered_samples().map(|placed| Ok(placed?.sample)).collect::<Result<Vec<Sample>, Failure>>()?;
        for sample in samples.iter().filter(|sample| sample.kind == SampleKind::Failure) {
            let Some((blamed, cleared)) = sample.label.as_ref().and_then(executed) else {
                set.others += 1;
                continue;
            };
            if blamed.is_empty() || cleared.is_empty() {
                set.uncleared += 1;
                continue;
            }
            let same = |other: &&Sample| {
                other.id != sample.id && other.system == sample.system && other.task.id == sample.task.id
            };
            let others: Vec<LoggedRun> =
                samples.iter().filter(same).map(|other| LoggedRun::from_sample(other, false)).collect();
            let run = LoggedRun::from_sample(sample, false);
            let places = |steps: &[u32]| -> Vec<usize> {
                steps.iter().filter_map(|step| run.turns.iter().position(|turn| turn.step == *step)).collect()
            };
            set.runs.push(RankerRun {
                system: sample.system.clone(),
                task: sample.task.id.clone(),
                blamed: places(&blamed),
                cleared: places(&cleared),
                steps: clues(&run, &others),
            });
        }
    }
    Ok(set)
}

/// The steps that executions blame, and those that they clear; `None` where the label says something else.
fn executed(label: &Truth) -> Option<(Vec<u32>, Vec<u32>)> {
    let evidence = label.evidence.as_ref().filter(|evidence| evidence.executed.is_some())?;
    let traced = label.status == LabelStatus::Verified && TRACED.contains(&label.definition.as_str());
    let blamed: Vec<u32> = label.errors.iter().filter_map(|error| error.step).collect();
    traced.then(|| (blamed, evidence.cleared.clone()))
}

fn from(runs: &[RankerRun]) -> LearnedFrom {
    let mut hash = blake3::Hasher::new();
    for run in runs {
        for text in [&run.system, &run.task] {
            hash.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        for places in [&run.blamed, &run.cleared] {
            hash.update(&(places.len() as u64).to_le_bytes());
            for place in places {
                hash.update(&(*place as u64).to_le_bytes());
            }
        }
        for number in run.steps.iter().flatten() {
            hash.update(&number.to_bits().to_le_bytes());
        }
    }
    let systems: BTreeSet<&str> = runs.iter().map(|run| run.system.as_str()).collect();
    let tasks: BTreeSet<(&str, &str)> = runs.iter().map(|run| (run.system.as_str(), run.task.as_str())).collect();
    LearnedFrom {
        runs: runs.len(),
        systems: systems.len(),
        tasks: tasks.len(),
        blamed: runs.iter().map(|run| run.blamed.len()).sum(),
        cleared: runs.iter().map(|run| run.cleared.len()).sum(),
        digest: hash.finalize().to_hex().chars().take(32).collect(),
    }
}

fn tell(
    set: &LearningSet,
    from: &LearnedFrom,
    by: &[(&str, Option<HeldOut>)],
    out: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    let LearnedFrom { runs, systems, tasks, blamed, cleared, .. } = from;
    writeln!(
        out,
        "learns from  {runs} runs of {tasks} tasks and {systems} systems: {blamed} steps blamed, {cleared} cleared"
    )?;
    for (count, why) in [
        (set.others, "failures have another label: planted, of people, or not shown"),
        (
            set.uncleared,
            "traced ones name no step as cleared: none stands before the blamed one, `--label flip` tried no other, or an earlier version wrote them (trace again)",
        ),
    ] {
        if count > 0 {
            writeln!(out, "left out     {count} {why}")?;
        }
    }
    for (by, found) in by {
        match found {
            None => writeln!(out, "left out by {by:<6}  there are no two")?,
            Some(HeldOut { groups, runs, ranker, scan, saved, interval }) => writeln!(
                out,
                "left out by {by:<6}  {groups} groups, {runs} runs: {:.2} looks until the blamed step, {:.2} in the order of the run; \
                 {saved:.2} saved {}; first {} against {}, top 3 {} against {}",
                ranker.mean,
                scan.mean,
                in_words(*interval),
                ranker.first,
                scan.first,
                ranker.top_3,
                scan.top_3
            )?,
        }
    }
    Ok(())
}

/// An interval behind its figure.
fn in_words(interval: Option<Interval>) -> String {
    match interval {
        Some(Interval { low, high }) => format!("[{low:.2}, {high:.2}]"),
        None => format!("(no interval: fewer than {RESAMPLED_MIN} tasks)"),
    }
}

fn figures(by: &'static str, found: &HeldOut) -> HeldOutFigures {
    let HeldOut { groups, runs, ranker, scan, saved, interval } = *found;
    HeldOutFigures {
        by,
        groups,
        runs,
        looks: RankerAgainstScan { ranker: ranker.mean, scan: scan.mean },
        first: RankerHits { ranker: ranker.first, scan: scan.first },
        top_3: RankerHits { ranker: ranker.top_3, scan: scan.top_3 },
        saved,
        saved_95: interval.map(|interval| [interval.low, interval.high]),
    }
}
