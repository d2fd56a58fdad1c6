//! `aegis agents RUN`: which agent made which call, and how that is known; unknown and ambiguous first. It proposes a
//! roster (`--suggest`) and says what a roster would change (`--roster`).

mod observe;
mod upstream;

use crate::cli::printed::{IdentifiedStep, RosterChange, RosterTrial, ShownAgent, ShownAgents, printed};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;

pub(super) use self::observe::LateRun;
use self::observe::{agent, ambiguous};
use super::{
    Exit, Failure,
    config::Config,
    counted, escape,
    screen::{Colour, Screen},
};
use crate::{
    identity::{self, ObservedRun, Proposal, Suggestions, helper_role, source_name},
    recording::{self, Recording},
    ruling::Ruling,
    trajectory::{AgentName, Attribution},
    viewer::as_written,
};

/// Options of `agents`.
#[derive(Debug, Args)]
pub(super) struct AgentsArgs {
    /// Directories of runs. Several runs of one program give more evidence.
    #[arg(value_name = "RUN_DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Show the evidence of each step's agent.
    #[arg(long)]
    evidence: bool,
    /// Print a roster for aegis.toml.
    #[arg(long, conflicts_with_all = ["roster", "evidence"])]
    suggest: bool,
    /// Report the effect of this roster (an aegis.toml) on the runs.
    #[arg(long, alias = "check", value_name = "FILE", conflicts_with = "evidence")]
    roster: Option<PathBuf>,
}

/// What is known of one agent.
#[derive(Debug)]
struct Audit<'a> {
    calls: usize,
    first: &'a Attribution,
    ambiguous: usize,
    late: usize,
}

type Names = BTreeMap<AgentName, Proposal>;
type AgentRow<'a> = ((&'a AgentName, &'static str), Audit<'a>);

pub(super) fn run(arguments: &AgentsArgs, json: bool, screen: Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let read = |dir: &PathBuf| recording::read(dir).map_err(Failure::from);
    let recordings: Vec<Recording> = arguments.dirs.iter().map(read).collect::<Result<_, _>>()?;
    let runs: Vec<LateRun<'_>> = recordings.iter().map(LateRun::from_recording).collect();
    let names = proposals(&runs);
    if let Some(roster) = &arguments.roster {
        return check(roster, &runs, json, screen, out);
    }
    let written = if arguments.suggest {
        out.write_all(Suggestions::for_runs(&observed_runs(&runs), &names).to_toml().as_bytes())
    } else if json {
        write_json(&runs, &names, out)
    } else {
        write_text(&runs, &names, arguments.evidence, screen, out)
    };
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Exit::Ok)
}

/// The roster that a run proposes, as TOML.
pub(super) fn roster_of(recording: &Recording) -> String {
    let runs = [LateRun::from_recording(recording)];
    Suggestions::anew(&observed_runs(&runs), &proposals(&runs)).to_toml()
}

fn observed_runs<'a>(runs: &[LateRun<'a>]) -> Vec<ObservedRun<'a>> {
    runs.iter().map(|run| run.steps.clone()).collect()
}

/// Display names: what the wire lets slip, over all runs; where runs contradict each other, none.
fn proposals(runs: &[LateRun<'_>]) -> Names {
    let mut names = Names::new();
    let mut refused = Vec::new();
    for (agent, proposal) in runs.iter().flat_map(|run| identity::propose(&run.steps.steps)) {
        match names.get_mut(&agent) {
            Some(known) if known.name == proposal.name => {
                known.votes += proposal.votes;
                known.firm |= proposal.firm;
            }
            // A guess contradicts nothing.
            Some(known) if known.firm && !proposal.firm => {}
            Some(known) if proposal.firm && !known.firm => *known = proposal,
            Some(_) => refused.push(agent),
            None => drop(names.insert(agent, proposal)),
        }
    }
    names.retain(|agent, _| !refused.contains(agent));
    names
}

/// One row an agent and rule, what needs a person's eye first.
fn rows<'a>(runs: &'a [LateRun<'a>]) -> Vec<AgentRow<'a>> {
    let mut agents: BTreeMap<(&AgentName, &'static str), Audit<'_>> = BTreeMap::new();
    for (step, late) in runs.iter().flat_map(LateRun::steps) {
        let told = &step.attribution;
        let audit = agents.entry((agent(step, late), source_name(told.source)));
        let audit = audit.or_insert(Audit { calls: 0, first: told, ambiguous: 0, late: 0 });
        audit.calls += 1;
        audit.ambiguous += usize::from(ambiguous(told, late));
        audit.late += usize::from(late.is_some());
    }
    let mut rows: Vec<_> = agents.into_iter().collect();
    rows.sort_by_key(|((_, source), audit)| (*source != "fallback", audit.ambiguous == 0, audit.first.is_certain()));
    rows
}

fn write_json<'a>(runs: &'a [LateRun<'a>], names: &'a Names, out: &mut dyn Write) -> std::io::Result<()> {
    let caller = |((agent, source), audit): AgentRow<'a>| ShownAgent::Caller {
        agent,
        calls: audit.calls,
        source,
        evidence: &audit.first.evidence,
        confidence: as_written(audit.first.confidence),
        ambiguous: audit.ambiguous,
        display: display(agent, names),
    };
    let mut agents: Vec<ShownAgent<'_>> = rows(runs).into_iter().map(caller).collect();
    let named = upstream::named(runs);
    agents.extend(named.iter().map(|((asker, agent), replies)| ShownAgent::Answerer {
        agent,
        replies: *replies,
        source: "upstream",
        asked_by: asker,
        confidence: 1.0,
        ambiguous: 0,
        display: agent,
    }));
    let steps = identified(runs, names);
    writeln!(out, "{}", printed(&ShownAgents { agents, steps }))
}

/// Each step, and who made its call.
fn identified<'a>(runs: &'a [LateRun<'a>], names: &'a Names) -> Vec<IdentifiedStep<'a>> {
    let mut steps = Vec::new();
    let heard = observed_runs(runs);
    let suggested = Suggestions::for_runs(&heard, names).of_steps(&heard);
    for (run, suggested) in runs.iter().zip(suggested) {
        let ruling = Ruling::new(run.recording);
        for (((step, late), looks), suggested) in run.steps().zip(identity::looks(&run.steps)).zip(suggested) {
            let told = &step.attribution;
            let agent = agent(step, late);
            let no_label = ruling.of_step(step).err();
            steps.push(IdentifiedStep {
                run: &run.recording.trajectory.run,
                step: step.step,
                call: step.call,
                turn: step.turn,
                agent: &told.agent,
                instance: told.instance,
                kind: kind(agent),
                source: told.source,
                confidence: as_written(told.confidence),
                ambiguous: told.ambiguous,
                evidence: &told.evidence,
                attempts: step.attempts.len(),
                run_source: run.run_source(step),
                labels: no_label.is_none(),
                no_label,
                upstream_agents: upstream::of_step(step),
                display: display(agent, names),
                suggested,
                looks,
                late,
            });
        }
    }
    steps
}

/// The name to show: proposed for learned looks where it is more than a guess, its own for what has a name.
fn display<'a>(agent: &'a AgentName, names: &'a Names) -> &'a str {
    let unnamed = agent.hash_of_unnamed().is_some();
    names
        .get(agent)
        .filter(|proposal| unnamed && proposal.firm)
        .map_or(agent.as_str(), |proposal| proposal.name.as_str())
}

/// What kind of caller it is: `agent`, or a helper's role.
fn kind(agent: &AgentName) -> &str {
    helper_role(agent).unwrap_or("agent")
}

fn write_text(
    runs: &[LateRun<'_>],
    names: &Names,
    evidence: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let rows = rows(runs);
    let width = rows.iter().map(|((agent, _), _)| escape(agent.as_str()).chars().count()).max().unwrap_or(5).max(5);
    let head = format!("{:width$}  calls  known by      evidence", "agent");
    writeln!(out, "{}", screen.paint(Colour::Faint, &head))?;
    for ((agent, source), audit) in &rows {
        let mut notes = String::new();
        if let Some(proposal) = names.get(*agent).filter(|_| agent.hash_of_unnamed().is_some()) {
            notes = format!("; perhaps `{}`: {}", escape(&proposal.name), proposal.evidence);
        }
        if audit.ambiguous > 0 {
            let _ = write!(notes, "; ambiguous in {} of {} calls", audit.ambiguous, audit.calls);
        }
        if audit.late > 0 {
            let _ = write!(notes, "; {} seen otherwise late", audit.late);
        }
        let notes = screen.paint(Colour::Doubtful, &notes);
        let (name, seen) = (escape(agent.as_str()), escape(&audit.first.evidence));
        writeln!(out, "{name:width$}  {:5}  {source:12}  {seen}{notes}", audit.calls)?;
    }
    for ((asker, agent), replies) in &upstream::named(runs) {
        let (name, asker) = (escape(agent), escape(asker.as_str()));
        writeln!(
            out,
            "{name:width$}  {:5}  {:12}  the upstream names it in {replies} replies to {asker}",
            "", "upstream"
        )?;
    }
    if evidence {
        write_evidence(runs, out)?;
    }
    let steps: usize = runs.iter().map(|run| run.recording.trajectory.steps.len()).sum();
    let mut distinct: Vec<&AgentName> = rows.iter().map(|((agent, _), _)| *agent).collect();
    distinct.sort();
    distinct.dedup();
    writeln!(out, "{}, {}", counted(distinct.len(), "agent"), counted(steps, "step"))?;
    let unnamed = distinct.iter().filter(|agent| agent.hash_of_unnamed().is_some()).count();
    if unnamed > 0 {
        let line = format!(
            "hint: {unnamed} {} no name yet; `aegis agents RUN_DIR --suggest` proposes [[agent]] rules, and `aegis amend RUN_DIR --roster FILE` names the agents of a recorded run by them",
            if unnamed == 1 { "has" } else { "have" }
        );
        writeln!(out, "{}", screen.painted(&line))?;
    }
    Ok(())
}

/// Each step's decision.
fn write_evidence(runs: &[LateRun<'_>], out: &mut dyn Write) -> std::io::Result<()> {
    for run in runs {
        writeln!(out, "\n{}", run.recording.trajectory.run)?;
        writeln!(out, "step  turn  call  agent")?;
        for (step, late) in run.steps() {
            let told = &step.attribution;
            let sure = if ambiguous(told, late) { "ambiguous".to_owned() } else { format!("{:.2}", told.confidence) };
            writeln!(
                out,
                "{:4}  {:4}  {:4}  {} #{}  {} {sure}: {}  (run by {})",
                step.step,
                step.turn,
                step.call,
                escape(agent(step, late).as_str()),
                late.and_then(|late| late.instance).unwrap_or(told.instance),
                source_name(told.source),
                escape(&told.evidence),
                run.run_source(step),
            )?;
        }
    }
    writeln!(out)
}

/// What a roster would make of the steps; a finding where its rules contradict each other or fit nothing.
fn check(file: &Path, runs: &[LateRun<'_>], json: bool, screen: Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let roster = Config::load(Some(file))?.identity()?.roster;
    let mut changes: BTreeMap<(String, String), (usize, bool)> = BTreeMap::new();
    for run in runs {
        for ((step, late), told) in run.steps().zip(identity::try_roster(&run.steps, &roster)) {
            let before = agent(step, late).to_string();
            let (after, clash) = match &told {
                Some(told) if told.ambiguous => (told.evidence.clone(), true),
                Some(told) => (told.agent.to_string(), false),
                None => (before.clone(), false),
            };
            let entry = changes.entry((before, after)).or_insert((0, clash));
            entry.0 += 1;
        }
    }
    let unmatched = unmatched(&roster, runs);
    let clashes = changes.values().filter(|(_, clash)| *clash).count();
    let write = |out: &mut dyn Write| -> std::io::Result<()> {
        if json {
            let changes = changes.iter().map(|((before, after), (calls, clash))| RosterChange {
                before,
                after,
                calls: *calls,
                clash: *clash,
            });
            let trial = RosterTrial { changes: changes.collect(), unmatched_rules: &unmatched };
            return writeln!(out, "{}", printed(&trial));
        }
        for ((before, after), (calls, clash)) in &changes {
            let (before, after) = (escape(before), escape(after));
            let verb = if *clash {
                "would be unclear"
            } else if before == after {
                "stays"
            } else {
                "becomes"
            };
            let after = if before == after { String::new() } else { format!(" {after}") };
            writeln!(out, "{before}: {}, {verb}{after}", identity::calls(*calls))?;
        }
        for number in &unmatched {
            let line = format!("warning: [[agent]] number {number} fits no step of these runs");
            writeln!(out, "{}", screen.painted(&line))?;
        }
        Ok(())
    };
    write(out).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(if clashes > 0 || !unmatched.is_empty() { Exit::Finding } else { Exit::Ok })
}

/// Rules, counted from 1, that fit no step.
fn unmatched(roster: &identity::Roster, runs: &[LateRun<'_>]) -> Vec<usize> {
    let mut fits = std::collections::BTreeSet::new();
    for run in runs {
        fits.extend(identity::fitting_rules(&run.steps, roster));
    }
    roster.numbers().filter(|number| !fits.contains(number)).collect()
}
