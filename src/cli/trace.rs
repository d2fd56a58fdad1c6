//! `aegis trace RUN -- CMD`: which step made the run fail, found by executing it again from there.

mod arguments;
mod corpus;
mod dataset;
mod dry;
mod journal;
mod label;
mod missed_catch;
mod next;
mod prepared;
mod prior;
mod prior_args;
mod proven;
mod table;

use crate::cli::printed::{PrintedTrace, printed};
use std::{io::Write, path::Path, sync::Arc};

pub(super) use self::arguments::TraceArgs;
use self::prepared::{PreparedSearch, PreparedTrace, beneath, require_corrections};
use super::{
    Exit, Failure, Finished, Global, OutputFormat, settings, terminal,
    trial::{ExecutionSpec, ExecutionTalk, JudgedProgram, cannot_check, failed},
};
use crate::{
    attribution::{Analyzer, Corrections, Decisive, LabelRule, Trace, TraceFinding, TraceJournal, label_of},
    capability::Capabilities,
    dataset::{Corpus, formats},
    execution::{Console, Meter, SystemUnderTest},
    proof::SearchEnding,
    replay::Cassette,
    trajectory::{Trajectory, Void},
};

pub(super) fn run(arguments: &TraceArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    if !formats::is_recording(&arguments.dir) && Corpus::is_at(&arguments.dir) {
        return corpus::run(arguments, global);
    }
    trace_run(arguments, None, global)
}

/// Traces one run. One of several spends from a meter of them all, and the line that was typed leads no further.
pub(super) fn trace_run(
    arguments: &TraceArgs,
    shared: Option<&Arc<Meter>>,
    global: &Global,
) -> Result<Finished, Failure> {
    let limits = arguments.execute.budget.limits()?;
    let meter = shared.map_or_else(|| Meter::within(limits.budget, arguments.execute.budget.price), |all| all.part());
    let prepared = PreparedTrace::prepare(arguments, global)?;
    if arguments.source.missed_catch {
        return missed_catch::run(arguments, prepared, &meter, global);
    }
    let PreparedTrace { cassette, executed, entry, search } = prepared;
    let executed = match executed {
        ExecutionSpec::Whole(executed) if !arguments.dry_run => executed,
        executed => return dry::tell(&cassette, &search, &executed, arguments, global),
    };
    let traced = conduct(executed, Arc::clone(&cassette), search, meter, arguments, global);
    let finding = settings::block_on(traced)??;
    write(&finding, &arguments.dir)?;
    if let (Some(SearchEnding::Void(Void::NoVerdict)), Some(said)) = (finding.ending, &finding.unrunnable_check) {
        return Err(cannot_check(said));
    }
    let label = label::settle(&finding, arguments.label, &arguments.dir, &cassette)?;
    if let Some(entry) = &entry {
        entry.keep(&arguments.dir, arguments.source.twin.as_deref())?;
    }
    let next = next::line(&finding, arguments, &Capabilities::new(cassette.recording(), &arguments.dir));
    let next = next.filter(|_| shared.is_none());
    if global.format == OutputFormat::Text {
        let mut out = terminal::stdout();
        let written = table::write(&finding, &mut out).and_then(|()| match &next {
            Some(next) => writeln!(out, "next  {}", super::escape(next)),
            None => Ok(()),
        });
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    Ok(finish(&finding, arguments, &label, next))
}

async fn conduct(
    executed: JudgedProgram,
    cassette: Arc<Cassette>,
    search: PreparedSearch,
    meter: Arc<Meter>,
    arguments: &TraceArgs,
    global: &Global,
) -> Result<TraceFinding, Failure> {
    let journal = journal::open(&search, &executed, &arguments.dir)?;
    let PreparedSearch { given: known, settings, prior, analyzer, proxy, .. } = search;
    let system = Arc::new(
        arguments
            .execute
            .system(executed, proxy, Console::default(), arguments.matching.reference(global.quiet))
            .await?,
    );
    let run = &cassette.recording().trajectory;
    if journal.executions() > 0 && !global.quiet {
        talkln!("goes on  {} executions of an earlier start are known", journal.executions());
    }
    if let Some(asked) = &prior {
        meter.charge(asked.calls, asked.usage);
    }
    let mut corrections = completed(known, analyzer, &system, run, &meter, &journal, global).await?;
    let prior = prior.map(|asked| asked.prior);
    if let Some(prior) = &prior {
        prior.suspect(&mut corrections);
    }
    if !global.quiet {
        talkln!(
            "trace    {}  {} of {} steps have a correction; tools and all they do run again in each execution",
            arguments.dir.display(),
            corrections.by_step.len(),
            run.steps.len()
        );
    }
    let trace = Trace::new(system, cassette, corrections, settings, meter, journal);
    let finding = trace.run(&ExecutionTalk { quiet: global.quiet }).await.map_err(failed)?;
    Ok(TraceFinding { prior, ..finding })
}

/// The corrections that there are, and those that an analyzer proposes now.
async fn completed(
    given: Corrections,
    analyzer: Option<Analyzer>,
    system: &SystemUnderTest,
    run: &Trajectory,
    meter: &Arc<Meter>,
    journal: &TraceJournal,
    global: &Global,
) -> Result<Corrections, Failure> {
    let corrections = match analyzer {
        None => given,
        Some(analyzer) => {
            let own = settings::fresh_run_id();
            if !global.quiet {
                talkln!("analyzer {} steps are asked about, recorded as run {own}", run.steps.len());
            }
            let proposed = analyzer.corrections(system.executor.listening(), run, &own, meter, journal).await;
            proposed.map_err(failed)?.checked_by(given)
        }
    };
    require_corrections(&corrections)?;
    Ok(corrections)
}

/// `trace.json` beside the log: the whole evidence, replaced whole by the next trace.
fn write(finding: &TraceFinding, dir: &Path) -> Result<(), Failure> {
    Ok(crate::recording::write_beside(&dir.join("trace.json"), finding)?)
}

fn finish(finding: &TraceFinding, arguments: &TraceArgs, label: &str, next: Option<String>) -> Finished {
    let named = |rule: LabelRule, name: &str, decisive: &Option<Decisive>| match decisive {
        Some(Decisive { agent, instance, step, .. }) => format!("{name} {} at step {step}", agent.numbered(*instance)),
        None if finding.is_in_doubt(rule) => format!("{name} not sure"),
        None => format!("{name} not found"),
    };
    let mut parts = Vec::new();
    if arguments.label != LabelRule::Flip {
        parts.push(named(LabelRule::EarliestFlip, "earliest flip", &finding.earliest_flip));
        if !arguments.first {
            parts.push(named(LabelRule::Commitment, "commitment", &finding.commitment));
        }
    }
    let labelled = label_of(finding, arguments.label);
    match labelled.as_ref().map(|label| label.definition.as_str()) {
        Some("flip") => {
            let flips = finding
                .flips
                .iter()
                .map(|flip| format!("{} at step {}", flip.agent.numbered(flip.instance), flip.step));
            parts.push(format!("flips {}", flips.collect::<Vec<_>>().join(", ")));
        }
        Some("coupled") => {
            let steps = finding
                .coupled
                .iter()
                .map(|step| format!("{} at step {}", step.agent.numbered(step.instance), step.step));
            parts.push(format!("coupled {}", steps.collect::<Vec<_>>().join(" and ")));
        }
        _ => {}
    }
    parts.push(label.to_owned());
    let exit = match finding.ending {
        _ if labelled.is_some() => Exit::Ok,
        Some(SearchEnding::Void(Void::Unanswered | Void::TimedOut)) => Exit::Infrastructure,
        _ if finding.out_of_budget => Exit::Budget,
        _ => Exit::Finding,
    };
    let data = printed(&PrintedTrace { finding, label, next });
    Finished { exit, summary: parts.join("  "), data }
}
