//! `aegis attribute RUN|DATASET --method M`: who failed, at which step, told from the log; nothing is executed, and no label
//! is written.

mod arguments;
mod beside;
pub(super) use beside::AttributionRow;
mod calibration;
mod dry;
mod judge;
mod logs;
mod page;
mod report;
mod table;

use crate::cli::printed::{ListedMethod, ListedMethods, PrintedAttribution, RunAttribution, printed};
use std::{
    fmt::Write as _,
    io::Write as _,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use self::logs::{Logs, RunLog};
pub(super) use self::{arguments::AttributeArgs, judge::JudgeArgs, logs::model_of};
use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    output::{OutputFile, Replaces},
    settings, terminal,
    tracer::ChosenMethod,
    trial::failed,
};
use crate::{
    attribution::{
        Attributed, DriverSettings, LogJudge, attribute, combine,
        methods::{self, LearnedRanker, LoggedRun, Method, Tracer, TracerAsking, View},
    },
    budget::Price,
    execution::ExecutionError,
    recording::Masked,
    trajectory::{RunId, Usage},
};

/// What was attributed, run by run.
struct AttributedLogs {
    rows: Vec<Vec<Attributed>>,
    /// Questions that were asked live, and that the cassette answered.
    questions: (u64, u64),
    /// The run that holds the live ones.
    recorded: Option<RunId>,
}

pub(super) fn run(arguments: &AttributeArgs, global: &Global) -> Result<Finished, Failure> {
    if arguments.list {
        return list(global);
    }
    settings::raise_file_limit();
    let Some(path) = &arguments.path else {
        return Err(Failure::new(Exit::Usage, "nothing was named that could be attributed"));
    };
    let methods = arguments.methods()?;
    let logs = logs::read(path, arguments, &methods, global.quiet)?;
    if !global.quiet {
        logs.notes.iter().for_each(|note| talkln!("{}", super::escape(note)));
    }
    let replaces = Replaces::OnRequest(arguments.overwrite);
    let named = |path| OutputFile::named(path, replaces);
    let written = arguments.out.as_deref().filter(|path| *path != Path::new("-"));
    let (out, html) = (written.map(named).transpose()?, arguments.html.as_deref().map(named).transpose()?);
    let price = arguments.judge.spending.price.unwrap_or_default();
    let judge = judge(arguments, &methods)?;
    let driving = DriverSettings { votes: arguments.votes, priced: price != Price::default() };
    let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
    let calibrations = calibration::read(arguments, &names)?;
    let ranker = arguments.ranker(&methods)?;
    // What the line itself would be refused for is no price.
    if arguments.dry_run {
        return dry::run(&logs, &methods, arguments, global);
    }
    let mut done = settings::block_on(conduct(&logs, &methods, ranker.as_ref(), judge, driving, arguments, global))??;
    calibration::apply(&calibrations, &logs, &mut done.rows);
    beside::keep(&logs, &done.rows, global);
    if arguments.out.is_some() {
        write(out.as_ref(), &done.rows)?;
    }
    if !global.quiet {
        let written = calibration::write(&calibrations, arguments.alpha, &mut terminal::stderr());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    print_results(&logs, &done, arguments, html.as_ref(), global)
}

/// Attributes a run that has just failed, and tells it as talk: the run's own output has standard output. What comes of it is
/// data for the run's own result.
pub(super) fn after(arguments: &AttributeArgs, global: &Global) -> Result<serde_json::Value, Failure> {
    let (logs, done) = quietly(arguments, global)?;
    beside::keep(&logs, &done.rows, global);
    let next = report::next(&logs, &done.rows);
    if let ([log], [rows]) = (logs.runs.as_slice(), done.rows.as_slice())
        && !global.quiet
    {
        let written = report::write(log, rows, next.as_deref(), &mut terminal::stderr());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    Ok(printed(&RunAttribution { rows: done.rows.iter().flatten().collect(), judge_run: &done.recorded }))
}

/// What methods say of one recorded run, for a verb that goes on from there, and how many questions were asked live. To be
/// called outside of any runtime.
pub(super) fn of_recording(
    arguments: &AttributeArgs,
    global: &Global,
) -> Result<(LoggedRun, Vec<Attributed>, u64), Failure> {
    let (mut logs, done) = quietly(arguments, global)?;
    let run = logs.runs.pop().map(|log| log.run).unwrap_or_default();
    let rows = done.rows.into_iter().flatten().filter(|row| row.method != methods::COMBINED);
    Ok((run, rows.collect(), done.questions.0))
}

/// What methods say of every run of a data set, as rows of `--out`. To be called outside of any runtime.
pub(super) fn rows_of(arguments: &AttributeArgs, global: &Global) -> Result<String, Failure> {
    settings::raise_file_limit();
    let path = arguments.path.as_deref().unwrap_or(Path::new(""));
    let methods = arguments.methods()?;
    let logs = logs::read(path, arguments, &methods, true)?;
    let (judge, driving) = (judge(arguments, &methods)?, DriverSettings { votes: 1, priced: false });
    let ranker = arguments.ranker(&methods)?;
    let done = settings::block_on(conduct(&logs, &methods, ranker.as_ref(), judge, driving, arguments, global))??;
    let mut text = String::new();
    for row in done.rows.iter().flatten() {
        text += &serde_json::to_string(row).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        text.push('\n');
    }
    Ok(text)
}

/// The tokens of what was asked live for some rows.
pub(super) fn usage_of(rows: &[Attributed]) -> Usage {
    let usage = rows.iter().map(|row| Usage { input: row.tokens_in, output: row.tokens_out });
    usage.fold(Usage::default(), |sum, one| Usage { input: sum.input + one.input, output: sum.output + one.output })
}

/// Attributes without a word. To be called outside of any runtime.
fn quietly(arguments: &AttributeArgs, global: &Global) -> Result<(Logs, AttributedLogs), Failure> {
    let path = arguments.path.as_deref().unwrap_or(Path::new(""));
    let methods = arguments.methods()?;
    let logs = logs::read(path, arguments, &methods, true)?;
    let judge = judge(arguments, &methods)?;
    let ranker = arguments.ranker(&methods)?;
    let (driving, still) = (DriverSettings { votes: 1, priced: false }, Global { quiet: true, ..global.clone() });
    let done = settings::block_on(conduct(&logs, &methods, ranker.as_ref(), judge, driving, arguments, &still))??;
    Ok((logs, done))
}

impl AttributeArgs {
    /// Says before anything is asked whether the judge that the methods need can be asked.
    ///
    /// # Errors
    /// It is not named, or cannot be used.
    pub(super) fn require_judge(&self) -> Result<(), Failure> {
        let methods = self.methods()?;
        judge(self, &methods).map(|_| ())
    }
}

/// The judge, where a method asks one.
fn judge(arguments: &AttributeArgs, methods: &[ChosenMethod]) -> Result<Option<LogJudge>, Failure> {
    let judge = arguments.judge_args()?;
    let named = judge.named(methods)?;
    named.map(|(url, model)| judge.open(url, model, arguments.compat.is_some())).transpose()
}

async fn conduct(
    logs: &Logs,
    methods: &[ChosenMethod],
    ranker: Option<&LearnedRanker>,
    judge: Option<LogJudge>,
    driving: DriverSettings,
    arguments: &AttributeArgs,
    global: &Global,
) -> Result<AttributedLogs, Failure> {
    let next = AtomicUsize::new(0);
    let workers = (0..arguments.jobs).map(|_| async {
        let mut done: Vec<(usize, Vec<Attributed>)> = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(log) = logs.runs.get(at) else { return Ok::<_, ExecutionError>(done) };
            let rows = rows(log, methods, ranker, judge.as_ref(), driving, arguments).await?;
            if !global.quiet {
                print_progress(&rows, at + 1, logs.runs.len());
            }
            done.push((at, rows));
        }
    });
    let mut done = Vec::new();
    for worker in all(workers.collect()).await {
        done.extend(worker.map_err(failed)?);
    }
    done.sort_by_key(|(at, _)| *at);
    let asked = judge.as_ref().map(LogJudge::counts).unwrap_or_default();
    let recorded = match judge {
        Some(judge) => judge.finish().await.map_err(failed)?,
        None => None,
    };
    Ok(AttributedLogs { rows: done.into_iter().map(|(_, rows)| rows).collect(), questions: asked, recorded })
}

/// All futures at once, on this task.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    use std::task::Poll;
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, slot) in &mut pending {
            if slot.is_none()
                && let Poll::Ready(done) = future.as_mut().poll(context)
            {
                *slot = Some(done);
            }
        }
        if pending.iter().all(|(_, slot)| slot.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, slot)| slot).collect()
}

/// A row a method, and one that combines them.
async fn rows(
    log: &RunLog,
    methods: &[ChosenMethod],
    ranker: Option<&LearnedRanker>,
    judge: Option<&LogJudge>,
    driving: DriverSettings,
    arguments: &AttributeArgs,
) -> Result<Vec<Attributed>, ExecutionError> {
    let (compat, longest_log) = (arguments.compat.is_some(), arguments.longest_log());
    let view = View { compat, longest_log, others: &log.others, ranker };
    let mut rows = Vec::new();
    for method in methods.iter().filter(|method| log.failed || method.takes_clean()) {
        rows.push(attribute(&**method, &log.run, view, judge, driving).await?);
    }
    if rows.len() > 1 && log.failed {
        rows.push(combine(&log.run, &rows));
    }
    Ok(rows)
}

/// A line a run, as it is done.
fn print_progress(rows: &[Attributed], number: usize, of: usize) {
    let Some(last) = rows.last() else { return };
    let what = report::named(last);
    talkln!("{}", super::escape(&format!("attributed {number:>4} of {of}  {}  {what}", last.id)));
}

/// The rows as lines of JSON, into a file or on standard output.
fn write(file: Option<&OutputFile<'_>>, rows: &[Vec<Attributed>]) -> Result<(), Failure> {
    let unwritten = |error: std::io::Error| Failure::new(Exit::Infrastructure, error);
    let mut text = Vec::new();
    for row in rows.iter().flatten() {
        serde_json::to_writer(&mut text, row).map_err(|error| unwritten(error.into()))?;
        text.push(b'\n');
    }
    match file {
        Some(file) => file.write_aloud(&Masked::new(text)),
        None => terminal::stdout().write_all(&text).map_err(unwritten),
    }
}

/// Tables and reports, and the last word.
fn print_results(
    logs: &Logs,
    done: &AttributedLogs,
    arguments: &AttributeArgs,
    html: Option<&OutputFile<'_>>,
    global: &Global,
) -> Result<Finished, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Infrastructure, error);
    let measured = table::measured(logs, &done.rows)?;
    let next = report::next(logs, &done.rows);
    if let Some(html) = html {
        html.write_aloud(&Masked::new(page::page(&measured, logs, &done.rows, next.as_deref())))?;
    }
    if global.format == OutputFormat::Text && arguments.out.as_deref() != Some(Path::new("-")) {
        let mut out = terminal::stdout();
        match (logs.runs.as_slice(), done.rows.as_slice()) {
            ([log], [rows]) => report::write(log, rows, next.as_deref(), &mut out).map_err(failed)?,
            _ => table::write(&measured, &done.rows, &mut out).map_err(failed)?,
        }
    }
    let rows: Vec<&Attributed> = done.rows.iter().flatten().collect();
    let asking = rows.iter().filter(|row| row.method != methods::COMBINED);
    let abstained = asking.clone().filter(|row| row.abstained.is_some()).count();
    let (live, replayed) = done.questions;
    let all = live + replayed;
    let mut summary =
        format!("{} runs, {} predictions, {abstained} abstained", done.rows.len(), asking.count() - abstained);
    if let ([_], [rows]) = (logs.runs.as_slice(), done.rows.as_slice())
        && let Some(last) = rows.last()
    {
        summary = report::named(last);
    }
    if all > 0 {
        let _ = write!(summary, "; answers replayed {replayed} of {all}");
    }
    let data = printed(&PrintedAttribution {
        rows,
        live_calls: live,
        replayed_calls: replayed,
        judge_run: &done.recorded,
        next: next.as_deref(),
        methods: measured.iter().map(table::MethodFigures::data).collect(),
    });
    Ok(Finished { exit: exit(&done.rows), summary, data })
}

/// Nobody there, nothing left to spend, or nothing found at all: each ends the verb in its own way.
fn exit(rows: &[Vec<Attributed>]) -> Exit {
    use crate::attribution::methods::Abstention::{Budget, TimedOut, Unanswered};
    let rows: Vec<&Attributed> = rows.iter().flatten().filter(|row| row.method != methods::COMBINED).collect();
    let why = |is: fn(&methods::Abstention) -> bool| rows.iter().filter_map(|row| row.abstained.as_ref()).any(is);
    if rows.iter().any(|row| row.abstained.is_none()) {
        return if why(|why| matches!(why, Budget(_))) { Exit::Budget } else { Exit::Ok };
    }
    match () {
        () if why(|why| matches!(why, Budget(_))) => Exit::Budget,
        () if why(|why| matches!(why, Unanswered(_) | TimedOut(_))) => Exit::Infrastructure,
        () => Exit::Finding,
    }
}

/// What there is.
fn list(global: &Global) -> Result<Finished, Failure> {
    use crate::attribution::methods::Needs;
    let needs = |needs| match needs {
        Needs::Log => "the log",
        Needs::Model => "a model",
        Needs::OtherRuns => "other runs",
        Needs::Ranker => "prior.toml",
    };
    let tracers: Vec<Tracer> =
        TracerAsking::names().filter_map(|name| Some(Tracer::new(name, TracerAsking::named(name)?))).collect();
    let tracers = tracers.iter().map(|tracer| (tracer as &dyn Method, "tracer"));
    let all: Vec<(&dyn Method, &str)> = methods::ALL.iter().map(|method| (*method, "method")).chain(tracers).collect();
    let mut lines = String::new();
    for (method, option) in &all {
        let public = if method.is_public() { "  (--compat whowhen)" } else { "" };
        let (name, needs) = (method.name(), needs(method.needs()));
        let _ = writeln!(lines, "--{option} {name:<15} {needs:<11} {}{public}", method.description());
    }
    if global.format == OutputFormat::Text {
        super::print(&lines, &mut terminal::stdout())?;
    }
    let data = all.iter().map(|(method, option)| ListedMethod {
        name: method.name().to_owned(),
        option,
        about: method.description().to_owned(),
        needs: needs(method.needs()),
        compat: method.is_public(),
    });
    let data = printed(&ListedMethods { methods: data.collect() });
    Ok(Finished {
        exit: Exit::Ok,
        summary: format!("{} methods, {} tracers", methods::ALL.len(), all.len() - methods::ALL.len()),
        data,
    })
}
