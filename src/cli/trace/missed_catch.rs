//! `aegis trace RUN --missed-catch`: which agents that spoke after the labelled error could have saved the run.

use crate::cli::printed::{ForetoldCatches, PrintedCatches, printed};
use std::{io::Write, path::Path, sync::Arc};

use super::{
    TraceArgs, completed, journal,
    prepared::{PreparedSearch, PreparedTrace},
    proven::proven,
};
use crate::{
    attribution::{LaterAgent, SearchSpent, Trace, TraceJournal},
    cli::{
        Exit, Failure, Finished, Global, OutputFormat, escape, settings, terminal,
        trial::{ExecutionSpec, ExecutionTalk, JudgedProgram, failed},
    },
    execution::{Console, Meter},
    recording::{self, Amendment, AmendmentSource, FactSource, RunFile, Settings},
    replay::Cassette,
    trajectory::{CatchState, Executions, Label, MissedCatch},
};

/// What such a search found, beside the run.
const CATCH_FILE: &str = "missed-catch.json";

/// What was found of all later agents.
struct Searched {
    found: Vec<MissedCatch>,
    spent: SearchSpent,
    out_of_budget: bool,
}

/// Searches each agent that spoke after the error, and writes what is shown to the facts of the run.
pub(super) fn run(
    arguments: &TraceArgs,
    prepared: PreparedTrace,
    meter: &Arc<Meter>,
    global: &Global,
) -> Result<Finished, Failure> {
    let PreparedTrace { cassette, executed, search, .. } = prepared;
    let label = proven(&cassette)?;
    let executed = match executed {
        ExecutionSpec::Whole(executed) if !arguments.dry_run => executed,
        executed => return Ok(foretold(&label, &cassette, &search, &executed)),
    };
    let searched = conduct(executed, &cassette, search, &label, meter, arguments, global);
    let searched = settings::block_on(searched)??;
    recording::write_beside(&arguments.dir.join(CATCH_FILE), &searched.printed())?;
    finish(&searched, global)
}

/// What would be tried; nothing is executed.
fn foretold(label: &Label, cassette: &Cassette, search: &PreparedSearch, executed: &ExecutionSpec) -> Finished {
    let agents = LaterAgent::all(label, &cassette.recording().trajectory, &search.given);
    let names: Vec<String> = agents.iter().map(|later| escape(later.agent.as_str())).collect();
    let count = names.len();
    // Where nothing heals the run, each correction is executed once more as it is.
    let most = (2 * u64::from(search.settings.terms.pairs) + 1) * count as u64;
    let summary = format!(
        "later agents that can be tried: {count} ({}); at most {most} executions where each has one step; nothing was executed{}",
        names.join(", "),
        executed.needs()
    );
    Finished { exit: Exit::Ok, summary, data: printed(&ForetoldCatches { agents: names, executions: most }) }
}

async fn conduct(
    executed: JudgedProgram,
    cassette: &Arc<Cassette>,
    search: PreparedSearch,
    label: &Label,
    meter: &Arc<Meter>,
    arguments: &TraceArgs,
    global: &Global,
) -> Result<Searched, Failure> {
    let recording = search.proxy.runs.template().recording.clone();
    let subject = journal::subject(&search, &executed);
    let journal = journal::open(&search, &executed, &arguments.dir)?;
    let PreparedSearch { given, settings, analyzer, proxy, .. } = search;
    let run = &cassette.recording().trajectory;
    let system = Arc::new(
        arguments
            .execute
            .system(executed, proxy, Console::default(), arguments.matching.reference(global.quiet))
            .await?,
    );
    let corrections = completed(given, analyzer, &system, run, meter, &journal, global).await?;
    let mut searched = Searched { found: Vec::new(), spent: SearchSpent::default(), out_of_budget: false };
    let agents = LaterAgent::all(label, run, &corrections);
    let claims: usize = agents.iter().map(LaterAgent::claims).sum();
    for (part, later) in agents.into_iter().enumerate() {
        // What an earlier start has settled by replies of this source is not paid for again.
        let is_known = |one: &&MissedCatch| {
            let is_same = (&one.agent, one.instance) == (&later.agent, later.instance);
            is_same && later.is_corrected_by(&one.source) && one.state != CatchState::Unknown
        };
        if let Some(known) = label.missed_catch.iter().find(is_known) {
            searched.found.push(known.clone());
            continue;
        }
        let mut own = later.settings(&settings, claims);
        own.runs = settings.runs.map(|most| most.saturating_sub(searched.spent.runs - searched.spent.resumed));
        if own.runs == Some(0) || meter.is_spent() {
            searched.out_of_budget = true;
            break;
        }
        if !global.quiet {
            talkln!(
                "later    {}",
                escape(&format!("{}, steps to try: {}", later.agent, later.corrections.by_step.len()))
            );
        }
        let subject = format!("{subject} {} {}", later.agent, later.instance);
        let journal =
            TraceJournal::open_part(&arguments.dir, part, &subject, own.salt.clone(), recording.redactor.clone());
        let journal = journal.map_err(|error| Failure::new(Exit::Recording, error))?;
        let (system, cassette, corrections) = (Arc::clone(&system), Arc::clone(cassette), later.corrections.clone());
        let trace = Trace::new(system, cassette, corrections, own, meter.part(), journal);
        let finding = trace.run(&ExecutionTalk { quiet: global.quiet }).await.map_err(failed)?;
        searched.add(finding.spent, finding.out_of_budget);
        if let Some(found) = later.shown_by(&finding) {
            keep(&found, arguments, &recording)?;
            searched.found.push(found);
        }
    }
    if !searched.out_of_budget {
        journal.finish().map_err(|error| Failure::new(Exit::Recording, error))?;
    }
    Ok(searched)
}

/// Writes what was found of one agent to the facts of the run.
fn keep(found: &MissedCatch, arguments: &TraceArgs, recording: &Settings) -> Result<(), Failure> {
    let giver = AmendmentSource { source: FactSource::Trace, by: None };
    let amendment = Amendment { missed_catch: vec![found.clone()], ..Amendment::default() };
    recording::amend(&arguments.dir, &amendment, &giver, recording)?;
    Ok(())
}

/// Whether such a search of a run has come to its end.
pub(super) fn is_finished(dir: &Path) -> bool {
    let end = RunFile::bytes(&dir.join(CATCH_FILE)).ok();
    let end = end.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    end.is_some_and(|end| end.get("out_of_budget") == Some(&false.into()))
}

impl Searched {
    fn printed(&self) -> PrintedCatches<'_> {
        PrintedCatches { missed_catch: &self.found, spent: &self.spent, out_of_budget: self.out_of_budget }
    }

    fn add(&mut self, spent: SearchSpent, out_of_budget: bool) {
        self.spent.runs += spent.runs;
        self.spent.resumed += spent.resumed;
        self.spent.calls += spent.calls;
        self.spent.live_tokens += spent.live_tokens;
        self.spent.recorded_tokens += spent.recorded_tokens;
        self.out_of_budget |= out_of_budget;
    }
}

fn finish(searched: &Searched, global: &Global) -> Result<Finished, Failure> {
    let Searched { found, out_of_budget, .. } = searched;
    if global.format == OutputFormat::Text {
        let mut out = terminal::stdout();
        let share = |arm: &Executions| format!("{} of {}", arm.passed, arm.passed + arm.failed);
        for one in found {
            let (control, treated) = (share(&one.executed.control), share(&one.executed.treated));
            let line = format!(
                "step {:>3}  {:<20} {}; passed as recorded {control}, with the reply of {} {treated}",
                one.step,
                one.agent.numbered(one.instance),
                one.state.words(),
                one.source
            );
            writeln!(out, "{}", escape(&line)).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
    }
    let missed: Vec<String> = found
        .iter()
        .filter(|one| one.state == CatchState::Missed)
        .map(|one| format!("{} at step {}", one.agent.numbered(one.instance), one.step))
        .collect();
    let summary = match missed.len() {
        0 if found.is_empty() => "missed catch: no agent spoke later in other words than its correction".to_owned(),
        0 => format!("missed catch: none of {} later agents is shown to have missed it", found.len()),
        _ => format!("missed catch: {}", missed.join(", ")),
    };
    let exit = if *out_of_budget { Exit::Budget } else { Exit::Ok };
    Ok(Finished { exit, summary, data: printed(&searched.printed()) })
}
