//! `aegis retry DIR`: the failures of a directory of runs that no plan made, and what critiques add over all of them.

use crate::cli::printed::{RetriedRuns, printed};
use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::Path,
};

use super::{RetryArgs, retry_run};
use crate::{
    attribution::{CorpusGain, RetriedRun, RetryArm},
    cli::{
        Exit, Failure, Finished, Global, OutputFormat, corpus_work::CorpusWork, escape, terminal, tracer::TracerArgs,
    },
    dataset::Corpus,
    recording::{self, RecordedCheck},
    trajectory::Verdict,
};

/// What was retried, a line for each run and source, beside the runs.
const JOURNAL: &str = "retried.jsonl";

/// Who is asked where nobody is named: the labels that traces have proven, and `rules` where there is none.
const LABEL_OR_RULES: &str = "label, else rules";

/// A corpus under retry.
struct CorpusRetry<'a> {
    arguments: &'a RetryArgs,
    global: &'a Global,
    work: CorpusWork,
    retried: Vec<RetriedRun>,
}

/// Retries each failure for each source, within one budget. What was retried before is not paid for again.
pub(super) fn run(arguments: &RetryArgs, global: &Global) -> Result<Finished, Failure> {
    if arguments.critique.is_some() || arguments.preferences.is_some() || arguments.answer.is_some() {
        let error = "--critique, --preferences and --answer are of one run";
        return Err(Failure::new(Exit::Usage, error).hint("name the directory of one run"));
    }
    if arguments.tracers.tracer.is_empty() {
        super::require_method(arguments)?;
    }
    let corpus = Corpus::open(&arguments.dir)?;
    let failures: Vec<&Path> = corpus.runs().iter().map(AsRef::as_ref).filter(|dir| failed_by_itself(dir)).collect();
    if failures.is_empty() {
        let error = format!("`{}` holds no run that failed by itself", escape(&arguments.dir.display().to_string()));
        return Err(
            Failure::new(Exit::Usage, error).hint("a run whose plan made it fail is healed by leaving the plan out")
        );
    }
    let retried = journal(&arguments.dir)?;
    let sources = sources(arguments);
    let known = |source: &String, dir: &Path| retried.iter().any(|run| run.run == name_of(dir) && run.asked == *source);
    let open = sources.iter().map(|source| failures.iter().filter(|dir| !known(source, dir)).count()).sum();
    let work = CorpusWork::begin("retried", open, arguments.execute.budget, global)?;
    let mut retry = CorpusRetry { arguments, global, work, retried };
    for source in &sources {
        for dir in &failures {
            retry.retry_run(source, dir)?;
        }
    }
    retry.finish(&sources, failures.len())
}

/// A run's name: that of its directory.
fn name_of(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Who is asked, one after the other.
fn sources(arguments: &RetryArgs) -> Vec<String> {
    let tracers = &arguments.tracers.tracer;
    match &arguments.method {
        _ if !tracers.is_empty() => tracers.clone(),
        Some(method) => vec![method.clone()],
        None => vec![LABEL_OR_RULES.to_owned()],
    }
}

impl CorpusRetry<'_> {
    fn retry_run(&mut self, source: &str, dir: &Path) -> Result<(), Failure> {
        let run = name_of(dir);
        if self.retried.iter().any(|known| known.run == run && known.asked == source) {
            return Ok(());
        }
        if self.work.is_over() {
            return Ok(());
        }
        let mut own = RetryArgs { dir: dir.to_owned(), answer: answer(dir), ..self.arguments.clone() };
        own.execute.budget = self.work.next_budget();
        if !own.tracers.tracer.is_empty() {
            own.tracers = TracerArgs { tracer: vec![source.to_owned()] };
        }
        match retry_run(&own, Some(&self.work.meter), self.global) {
            Ok((finished, round)) => {
                self.work.end(dir, &finished);
                match round.filter(|round| !round.out_of_budget) {
                    Some(round) => self.keep(RetriedRun::of_round(&run, source, &round)),
                    None => Ok(()),
                }
            }
            Err(failure) => self.work.refuse(dir, failure).map(|_| ()),
        }
    }

    fn keep(&mut self, retried: RetriedRun) -> Result<(), Failure> {
        let path = self.arguments.dir.join(JOURNAL);
        let unkept =
            |error: io::Error| Failure::new(Exit::Recording, format!("cannot write `{}`: {error}", path.display()));
        let line = serde_json::to_string(&retried).map_err(|error| unkept(error.into()))?;
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).map_err(unkept)?;
        writeln!(file, "{line}").map_err(unkept)?;
        self.retried.push(retried);
        Ok(())
    }

    fn finish(self, sources: &[String], failures: usize) -> Result<Finished, Failure> {
        let gains: Vec<CorpusGain> =
            sources.iter().filter_map(|source| CorpusGain::of_runs(source, &self.retried)).collect();
        if self.global.format == OutputFormat::Text {
            let mut out = terminal::stdout();
            let written = gains.iter().try_for_each(|gain| write(gain, &mut out));
            written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
        let done: BTreeSet<(&str, &str)> =
            self.retried.iter().map(|run| (run.asked.as_str(), run.run.as_str())).collect();
        let done = done.iter().filter(|(asked, _)| sources.iter().any(|source| source == asked)).count();
        let mut parts: Vec<String> =
            gains.iter().map(|gain| format!("{}: gain {}", gain.asked, in_words(gain))).collect();
        parts.push(format!("{done} of {} retried", failures * sources.len()));
        if self.work.refused > 0 {
            parts.push(format!("{} could not be executed", self.work.refused));
        }
        let exit = match () {
            () if self.work.is_spent => Exit::Budget,
            () if gains.iter().any(|gain| gain.interval.low > 0.0) => Exit::Ok,
            () => Exit::Finding,
        };
        let data = printed(&RetriedRuns { failures, refused: self.work.refused, gains: &gains, runs: &self.retried });
        Ok(Finished { exit, summary: parts.join(", "), data })
    }
}

fn write(gain: &CorpusGain, out: &mut dyn Write) -> io::Result<()> {
    let labelled =
        if gain.labelled > 0 { format!(", {} at the step of a label", gain.labelled) } else { String::new() };
    writeln!(out, "{}  {} runs{labelled}", escape(&gain.asked), gain.runs)?;
    for (arm, [passed, told]) in &gain.arms {
        writeln!(out, "  {:<20} {passed} of {told} passed", arm.name())?;
    }
    writeln!(out, "  gain     {}", in_words(gain))?;
    let interval = gain.paired_interval.map_or_else(
        || "too few runs for an interval".to_owned(),
        |interval| format!("[{:.2}, {:.2}]", interval.low, interval.high),
    );
    writeln!(out, "  paired   {:+.2} {interval} within runs", gain.paired)?;
    if gain.gain < 0.0 {
        let next = if gain.over == RetryArm::Elsewhere { "another step is to blame" } else { "the critique misleads" };
        writeln!(out, "  note     `{}` does better than the critique: {next}", gain.over.name())?;
    }
    Ok(())
}

fn in_words(gain: &CorpusGain) -> String {
    let (low, high) = (gain.interval.low, gain.interval.high);
    format!("{:+.2} [{low:.2}, {high:.2}] over {}", gain.gain, gain.over.name())
}

/// What former calls retried; a line that was not written whole is left out.
fn journal(dir: &Path) -> Result<Vec<RetriedRun>, Failure> {
    let path = dir.join(JOURNAL);
    match recording::RunFile::text(&path) {
        Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Failure::new(Exit::Recording, format!("cannot read `{}`: {error}", path.display()))),
    }
}

/// Whether a run failed, and neither a plan nor a verb of ours made it.
fn failed_by_itself(dir: &Path) -> bool {
    let Ok(manifest) = recording::read_manifest(dir) else { return false };
    let own = manifest.plan.is_none() && manifest.origin.is_none() && manifest.repeat_of.is_none();
    own && manifest.outcome.verdict == Verdict::Failure
}

/// The right answer, where the run's own checkers compared with one: no note may tell it.
fn answer(dir: &Path) -> Option<String> {
    match recording::read_manifest(dir).ok()?.launched?.check? {
        RecordedCheck::Checkers(value) => {
            value.get("answer")?.as_str().map(str::to_owned).filter(|text| !text.is_empty())
        }
        RecordedCheck::Command(_) => None,
    }
}
