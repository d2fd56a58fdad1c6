//! `aegis trace DIR`: the failures of a directory of runs that no plan made, one after another.

use crate::cli::printed::{TracedRun, TracedRuns, printed};
use std::path::Path;

use super::{TraceArgs, missed_catch, trace_run};
use crate::{
    attribution::TraceJournal,
    cli::{Exit, Failure, Finished, Global, corpus_work::CorpusWork, escape, trial::ExecuteArgs},
    dataset::Corpus,
    recording,
    trajectory::{LabelStatus, Verdict},
};

/// Traces each failure that is not explained yet, within one budget. One that was traced before is not paid for again.
pub(super) fn run(arguments: &TraceArgs, global: &Global) -> Result<Finished, Failure> {
    if arguments.kept.is_given() {
        let error = "--dataset keeps one run: the rows of a directory of runs are written by `export`";
        return Err(Failure::new(Exit::Usage, error));
    }
    let corpus = Corpus::open(&arguments.dir)?;
    let open: Vec<&Path> = corpus.runs().iter().map(AsRef::as_ref).filter(|dir| is_open(dir, arguments)).collect();
    let mut work = CorpusWork::begin("traced", open.len(), arguments.execute.budget, global)?;
    let (mut labelled, mut traced, mut rows) = (0, 0, Vec::new());
    for dir in &open {
        if work.is_over() {
            break;
        }
        let execute = ExecuteArgs { budget: work.next_budget(), ..arguments.execute.clone() };
        let own = TraceArgs { dir: dir.to_path_buf(), execute, ..arguments.clone() };
        let name = escape(&dir.display().to_string());
        match trace_run(&own, Some(&work.meter), global) {
            Ok(finished) => {
                traced += 1;
                labelled += usize::from(finished.exit == Exit::Ok && !arguments.dry_run);
                work.end(dir, &finished);
                rows.push(TracedRun::Traced { run: name, finding: finished.data });
            }
            Err(failure) => {
                let why = work.refuse(dir, failure)?;
                rows.push(TracedRun::Refused { run: name, refused: why });
            }
        }
    }
    let done = if arguments.source.missed_catch { "searched for missed catches" } else { "labelled" };
    let mut parts = vec![format!("{labelled} of {} failures {done}", open.len())];
    let CorpusWork { refused, is_spent, .. } = work;
    if refused > 0 {
        parts.push(format!("{refused} could not be executed"));
    }
    let waiting = open.len() - traced - refused;
    if waiting > 0 {
        parts.push(format!("{waiting} not begun: the same line goes on"));
    }
    let exit = match () {
        () if is_spent => Exit::Budget,
        () if labelled < open.len() && !arguments.dry_run => Exit::Finding,
        () => Exit::Ok,
    };
    let searched = arguments.source.missed_catch;
    let data = TracedRuns {
        failures: open.len(),
        labelled: (!searched).then_some(labelled),
        searched: searched.then_some(labelled),
        refused,
        runs: rows,
    };
    Ok(Finished { exit, summary: parts.join(", "), data: printed(&data) })
}

/// Whether a run failed by itself, and nobody has said why: no plan, no label that is shown, no trace that is
/// finished. Or, where missed catches are sought, whether its label is shown and nothing is known of later agents.
fn is_open(dir: &Path, arguments: &TraceArgs) -> bool {
    let Ok(manifest) = recording::read_manifest(dir) else { return false };
    if arguments.source.missed_catch {
        let label = recording::read_label(dir).ok().flatten();
        return label.is_some_and(|label| label.status == LabelStatus::Verified) && !missed_catch::is_finished(dir);
    }
    let own = manifest.plan.is_none() && manifest.origin.is_none() && manifest.repeat_of.is_none();
    let shown = || {
        let label = recording::read_label(dir).ok().flatten();
        label.is_some_and(|label| label.status == LabelStatus::Verified)
    };
    let traced = dir.join("trace.json").exists() && !TraceJournal::is_at(dir);
    own && manifest.outcome.verdict == Verdict::Failure && !traced && !shown()
}
