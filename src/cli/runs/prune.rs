//! `aegis runs prune DIR --keep 30d,50GB`: removes ended runs that nobody needs; without `--yes` it only says which.

use crate::cli::printed::{PrunedRun, PrunedRuns, printed};
use std::{collections::BTreeMap, io::Write, path::PathBuf};

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use crate::{
    cli::{Exit, Failure, Finished, Global, OutputFormat, escape, terminal},
    recording::{self, KeepLimit, RunFate, StayReason, SurveyedRun},
};

/// Options of `runs prune`.
#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// Directory that holds the runs, and those of users (`@NAME`), for each of whom the limit holds by itself.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Longest age since the end of a run (`30d`, `12h`, `4w`), most bytes of all runs (`50GB`, `500MB`), or both.
    #[arg(long, value_name = "AGE,SIZE", value_parser = keep_limit)]
    keep: KeepLimit,
    /// Remove the runs. Without it, nothing is changed.
    #[arg(long)]
    yes: bool,
    /// Further data sets and reports whose runs are kept: files, or directories of files.
    #[arg(long, value_name = "PATH")]
    needed_by: Vec<PathBuf>,
}

/// What came of it.
#[derive(Debug, Default)]
struct Pruned {
    runs: usize,
    bytes: u64,
    failed: usize,
    /// Runs that stay, by the reason.
    kept: BTreeMap<String, usize>,
    rows: Vec<PrunedRun>,
}

pub(super) fn run(arguments: &PruneArgs, global: &Global) -> Result<Finished, Failure> {
    if !arguments.dir.is_dir() {
        let error = format!("there is no directory `{}`", arguments.dir.display());
        return Err(Failure::new(Exit::Usage, error).hint("name the directory that holds the runs, for example `logs`"));
    }
    if let Some(missing) = arguments.needed_by.iter().find(|path| !path.exists()) {
        return Err(Failure::new(Exit::Usage, format!("there is no file or directory `{}`", missing.display())));
    }
    let runs = recording::survey(&arguments.dir, arguments.keep, &arguments.needed_by, Timestamp::now())?;
    let mut pruned = Pruned::default();
    let mut out = terminal::stdout();
    for surveyed in &runs {
        let line = pruned.take(surveyed, arguments.yes);
        if global.format == OutputFormat::Text {
            writeln!(out, "{}", escape(&line)).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
    }
    Ok(pruned.finished(arguments.yes))
}

impl Pruned {
    /// Removes a run that goes, if that was asked for. Gives the line that says so, or why it stays.
    fn take(&mut self, surveyed: &SurveyedRun, removes: bool) -> String {
        let SurveyedRun { run, dir, bytes, ended, fate } = surveyed;
        let why = match fate {
            RunFate::Stays(reason) => return self.keep(surveyed, &reason.words()),
            RunFate::TooOld => "older than --keep",
            RunFate::TooMuch => "more than --keep",
        };
        if removes && let Err(error) = recording::prune(surveyed) {
            self.failed += 1;
            return self.keep(surveyed, &format!("not removed: {error}"));
        }
        self.runs += 1;
        self.bytes += bytes;
        let state = if removes { "pruned" } else { "would go" };
        let ended = ended.map(|ended| ended.to_string());
        self.rows.push(PrunedRun {
            run: run.clone(),
            dir: dir.clone(),
            bytes: *bytes,
            ended,
            state,
            why: why.to_owned(),
        });
        format!("{state:<9} {}  {}  {why}", dir.display(), amount(*bytes))
    }

    fn keep(&mut self, surveyed: &SurveyedRun, why: &str) -> String {
        let SurveyedRun { run, dir, bytes, ended, .. } = surveyed;
        *self.kept.entry(why.to_owned()).or_default() += 1;
        let ended = ended.map(|ended| ended.to_string());
        self.rows.push(PrunedRun {
            run: run.clone(),
            dir: dir.clone(),
            bytes: *bytes,
            ended,
            state: "kept",
            why: why.to_owned(),
        });
        format!("{:<9} {}  {}  {why}", "kept", dir.display(), amount(*bytes))
    }

    fn finished(self, removed: bool) -> Finished {
        let kept: usize = self.kept.values().sum();
        let within = self.kept.get(&StayReason::Limit.words()).copied().unwrap_or_default();
        let amount = amount(self.bytes);
        let asked = self.kept.get(&StayReason::KeepMark.words()).copied().unwrap_or_default();
        let asked = if asked > 0 { format!(" ({asked} by `runs keep`)") } else { String::new() };
        let counts = format!("{kept} kept, {} of them needed{asked}", kept - within);
        let summary = match (removed, self.runs) {
            (true, runs) => format!("{runs} runs pruned, {amount}; {counts}"),
            (false, 0) => format!("no run would go; {counts}"),
            (false, runs) => {
                format!("{runs} runs would go, {amount}; {counts}. Nothing was changed: --yes removes them")
            }
        };
        let exit = if self.failed > 0 { Exit::Finding } else { Exit::Ok };
        Finished { exit, summary, data: printed(&PrunedRuns { pruned: removed, runs: self.rows, bytes: self.bytes }) }
    }
}

/// Reads what is kept: an age, a size, or both.
pub(in crate::cli) fn keep_limit(text: &str) -> Result<KeepLimit, String> {
    const HOURS: [(&str, i64); 3] = [("h", 1), ("d", 24), ("w", 7 * 24)];
    const BYTES: [(&str, u64); 4] = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
    let expected = || format!("`{text}`: expected an age, a size or both, for example 30d,50GB");
    let mut limit = KeepLimit::default();
    for part in text.split(',') {
        let age = HOURS.iter().find_map(|(unit, hours)| {
            let number: i64 = part.strip_suffix(unit)?.parse().ok().filter(|number| *number >= 0)?;
            Some(SignedDuration::from_hours(number.checked_mul(*hours).filter(|hours| *hours < 1_000_000)?))
        });
        let bytes =
            BYTES.iter().find_map(|(unit, bytes)| part.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(*bytes));
        match (age, bytes) {
            (Some(age), None) if limit.age.is_none() => limit.age = Some(age),
            (None, Some(bytes)) if limit.bytes.is_none() => limit.bytes = Some(bytes),
            _ => return Err(expected()),
        }
    }
    Ok(limit)
}

/// A number of bytes, as people say it.
fn amount(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_an_age_a_size_or_both() {
        let hours = |hours| Some(SignedDuration::from_hours(hours));
        for (text, age, bytes) in [
            ("30d", hours(720), None),
            ("50GB", None, Some(50_000_000_000)),
            ("4w,500MB", hours(672), Some(500_000_000)),
            ("1TB,12h", hours(12), Some(1_000_000_000_000)),
            ("0d", hours(0), None),
        ] {
            assert_eq!(keep_limit(text), Ok(KeepLimit { age, bytes }), "{text}");
        }
        for text in ["", "30", "d", "-1d", "30d,40d", "1GB,2GB", "30d,", "1.5GB", "99999999999999999999GB", "9000000d"]
        {
            assert!(keep_limit(text).is_err(), "{text}");
        }
        assert_eq!([999, 1_500_000, 3_400_000_000].map(amount), ["1 kB", "1.5 MB", "3.4 GB"]);
    }
}
