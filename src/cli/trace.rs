//! `aegis trace RUN -- CMD`: which step made the run fail, found by executing it again from there.

mod arguments;
mod dataset;
mod life;
mod next;
mod prior;
mod table;

use std::{io::Write, path::Path, sync::Arc};

pub(super) use self::arguments::TraceArgs;
use self::prior::AskedPrior;
use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    again::HowStarted,
    capability, settings,
    settings::ProxyArgs,
    trial::{ExecutionTalk, cannot_check, failed, live},
};
use crate::{
    attribution::{
        Analyzer, Corrections, Decisive, ForetoldTrace, LabelRule, Trace, TraceFinding, TraceSettings, foretell,
        label_of,
    },
    capability::{Capabilities, RunVerb},
    execution::{Console, Judge, Meter, Program},
    proof::SearchEnding,
    proxy::Proxy,
    recording,
    replay::Cassette,
    trajectory::{Verdict, Void},
};

/// Executions of each arm of an agent as a whole.
const AGENT_EXECUTIONS: u32 = 3;

pub(super) fn run(arguments: &TraceArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    let cassette = arguments.matching.open(&arguments.dir)?;
    capability::require(RunVerb::Trace, cassette.recording(), &arguments.dir)?;
    let (recorded, execute) = (HowStarted::of(&arguments.dir)?, &arguments.execute);
    let program = recorded.required(&execute.command, execute.again, "trace");
    let judge = execute.trial.required_judge(&recorded, execute.again, "a trace");
    // What it would cost can be asked before there is a check or a command.
    let executed = if arguments.dry_run { None } else { Some((program?, judge?)) };
    let entry = arguments.kept.entry()?;
    let mut known = known(arguments, &cassette)?;
    let settings = trace_settings(arguments)?;
    let prior = prior::ask(arguments, &cassette, global)?;
    if let Some(asked) = &prior {
        asked.prior.suspect(&mut known);
    }
    let live = live(&execute.proxy, execute.again, &cassette, &arguments.dir)?;
    let (analyzer, (proxy, _)) = (analyzer(arguments, &cassette)?, beneath(live, arguments, &cassette).proxy(None)?);
    let Some(executed) = executed else {
        return dry(&cassette, known, &settings, arguments, global);
    };
    let traced = conduct(proxy, executed, Arc::clone(&cassette), (known, analyzer, settings, prior), arguments, global);
    let finding = settings::block_on(traced)??;
    write(&finding, &arguments.dir)?;
    if let (Some(SearchEnding::Void(Void::NoVerdict)), Some(said)) = (finding.ending, &finding.unrunnable_check) {
        return Err(cannot_check(said));
    }
    let label = life::settle(&finding, arguments.label, &arguments.dir, &cassette)?;
    if let Some(entry) = &entry {
        entry.keep(&arguments.dir, arguments.source.twin.as_deref())?;
    }
    let next = next::line(&finding, arguments, &Capabilities::of(cassette.recording(), &arguments.dir));
    if global.format == OutputFormat::Text {
        let mut out = std::io::stdout().lock();
        let written = table::write(&finding, &mut out).and_then(|()| match &next {
            Some(next) => writeln!(out, "next  {}", super::escape(next)),
            None => Ok(()),
        });
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    finish(&finding, arguments, &label, next)
}

/// Trials are the trace's, not the user's runs.
fn beneath(proxy: ProxyArgs, arguments: &TraceArgs, cassette: &Cassette) -> ProxyArgs {
    let dir = proxy.beneath(&arguments.dir, cassette.run());
    ProxyArgs { log_dir: Some(dir.join("trials")), ..proxy }
}

/// Corrections that nobody need be asked for.
fn known(arguments: &TraceArgs, cassette: &Cassette) -> Result<Corrections, Failure> {
    let (run, source) = (&cassette.recording().trajectory, &arguments.source);
    if let Some(file) = &source.corrections {
        let unread = |error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(unread)?;
        let read = Corrections::from_lines(&text, &file.display().to_string(), run);
        return read.map_err(|error| Failure::new(Exit::Usage, error));
    }
    if let Some(twin) = &source.twin {
        let twin = recording::read(twin)?.trajectory;
        if twin.outcome.verdict == Verdict::Failure {
            let error = format!("the twin `{}` failed: its replies correct nothing", twin.run);
            return Err(Failure::new(Exit::Usage, error).hint("give a run of the same task that succeeded"));
        }
        let corrections = Corrections::from_twin(cassette, &twin);
        return Ok(if source.redraw { corrections.or_redrawn(run) } else { corrections });
    }
    Ok(if source.redraw { Corrections::redrawn(run) } else { Corrections::default() })
}

/// The analyzer, where it is the source.
fn analyzer(arguments: &TraceArgs, cassette: &Cassette) -> Result<Option<Analyzer>, Failure> {
    let Some(url) = &arguments.source.analyzer else { return Ok(None) };
    let arguments::AnalyzerArgs { analyzer_model, analyzer_key_env, gold, no_feedback, analyzer_parameter } =
        &arguments.analyzer;
    let upstream = settings::other_upstream(url, analyzer_key_env.as_deref(), &arguments.execute.proxy)?;
    let said = &cassette.recording().trajectory.outcome.evidence;
    let feedback = Some(said.clone()).filter(|said| !no_feedback && !said.is_empty());
    let parameters = analyzer_parameter.clone().into();
    Ok(Some(Analyzer { upstream, model: analyzer_model.clone(), gold: gold.clone(), feedback, parameters }))
}

fn trace_settings(arguments: &TraceArgs) -> Result<TraceSettings, Failure> {
    Ok(TraceSettings {
        terms: arguments.terms.terms()?,
        order: arguments.order()?,
        earliest: arguments.label != LabelRule::Flip,
        last: arguments.label != LabelRule::Flip && !arguments.first,
        coupled: arguments.coupled,
        runs: arguments.execute.budget.limits()?.runs,
        jobs: arguments.execute.trial.jobs,
        any_tool_results: arguments.matching.any_tool_results(),
        agents: if arguments.agents { AGENT_EXECUTIONS } else { 0 },
        salt: settings::fresh_token(),
    })
}

fn require_corrections(corrections: &Corrections) -> Result<(), Failure> {
    if let Some(why) = &corrections.unanswered {
        let error = format!("the analyzer answered no question: {why}");
        return Err(Failure::new(Exit::Infrastructure, error).hint("nothing was executed, and the run keeps its label"));
    }
    if corrections.by_step.is_empty() {
        let why = corrections.left_out.iter().next().map(|(step, why)| format!(": step {step}: {why}"));
        let error = format!("no step has a correction that changes anything{}", why.unwrap_or_default());
        return Err(Failure::new(Exit::Usage, error)
            .hint("with --twin, give a run of the same task that succeeded; aegis diff shows both"));
    }
    Ok(())
}

/// What a trace would cost; nothing is executed.
fn dry(
    cassette: &Cassette,
    known: Corrections,
    settings: &TraceSettings,
    arguments: &TraceArgs,
    global: &Global,
) -> Result<Finished, Failure> {
    let run = &cassette.recording().trajectory;
    // What an analyzer will propose is not known: perhaps something for each step.
    let asked = arguments.source.analyzer.is_some();
    let corrections = if asked { Corrections::redrawn(run) } else { known };
    require_corrections(&corrections)?;
    let foretold = foretell(cassette, &corrections, settings);
    let questions = if asked { 2 * run.steps.len() as u64 } else { 0 };
    let line = |foretold: &ForetoldTrace| {
        let at =
            foretold.step.map_or("no correction heals:".to_owned(), |step| format!("the error is at step {step}:"));
        format!("{at:<26} {} executions, {} live calls", foretold.executions, foretold.calls + questions)
    };
    if global.format == OutputFormat::Text {
        let mut out = std::io::stdout().lock();
        let lines = foretold.iter().map(line).collect::<Vec<_>>().join("\n");
        writeln!(
            out,
            "foretold for a model that repeats itself, and as many calls an execution as were recorded\n{lines}"
        )
        .map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let most = foretold.iter().max_by_key(|foretold| foretold.executions);
    let summary = most.map_or_else(String::new, |most| {
        format!(
            "for a model that repeats itself, at most {} executions, {} live calls foretold; nothing was executed",
            most.executions,
            most.calls + questions
        )
    });
    let data = serde_json::json!({"foretold": foretold, "analyzer_questions": questions});
    Ok(Finished { exit: Exit::Ok, summary, data })
}

async fn conduct(
    proxy: Proxy,
    executed: (Program, Judge),
    cassette: Arc<Cassette>,
    (known, analyzer, settings, prior): (Corrections, Option<Analyzer>, TraceSettings, Option<AskedPrior>),
    arguments: &TraceArgs,
    global: &Global,
) -> Result<TraceFinding, Failure> {
    let system = Arc::new(arguments.execute.trial.system(executed, proxy, Console::default()).await?);
    let (run, budget) = (&cassette.recording().trajectory, &arguments.execute.budget);
    let meter = Meter::within(budget.limits()?.budget, budget.price);
    if let Some(asked) = &prior {
        meter.charge(asked.calls, asked.usage);
    }
    let mut corrections = match analyzer {
        None => known,
        Some(analyzer) => {
            let own = settings::fresh_run_id();
            if !global.quiet {
                eprintln!("analyzer {} steps are asked about, recorded as run {own}", run.steps.len());
            }
            analyzer
                .corrections(system.executor.listening(), run, &own, &meter)
                .await
                .map_err(failed)?
                .checked_by(known)
        }
    };
    require_corrections(&corrections)?;
    let prior = prior.map(|asked| asked.prior);
    if let Some(prior) = &prior {
        prior.suspect(&mut corrections);
    }
    if !global.quiet {
        eprintln!(
            "trace    {}  {} of {} steps have a correction; tools and all they do run again in each execution",
            arguments.dir.display(),
            corrections.by_step.len(),
            run.steps.len()
        );
    }
    let trace = Trace::new(system, cassette, corrections, settings, meter);
    let finding = trace.run(&ExecutionTalk { quiet: global.quiet }).await.map_err(failed)?;
    Ok(TraceFinding { prior, ..finding })
}

/// `trace.json` beside the log: the whole evidence, replaced whole by the next trace.
fn write(finding: &TraceFinding, dir: &Path) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(finding).map_err(|error| Failure::new(Exit::Recording, error))?;
    life::replace(&dir.join("trace.json"), &text)
}

fn finish(
    finding: &TraceFinding,
    arguments: &TraceArgs,
    label: &str,
    next: Option<String>,
) -> Result<Finished, Failure> {
    let named = |rule: LabelRule, name: &str, decisive: &Option<Decisive>| match decisive {
        Some(Decisive { agent, step, .. }) => format!("{name} {agent} at step {step}"),
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
            let flips = finding.flips.iter().map(|flip| format!("{} at step {}", flip.agent, flip.step));
            parts.push(format!("flips {}", flips.collect::<Vec<_>>().join(", ")));
        }
        Some("coupled") => {
            let steps = finding.coupled.iter().map(|step| format!("{} at step {}", step.agent, step.step));
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
    let mut data = serde_json::to_value(finding).map_err(|error| Failure::new(Exit::Recording, error))?;
    if let Some(object) = data.as_object_mut() {
        object.insert("label".to_owned(), label.into());
        object.insert("next".to_owned(), next.into());
    }
    Ok(Finished { exit, summary: parts.join("  "), data })
}
