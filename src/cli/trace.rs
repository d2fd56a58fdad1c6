//! `aegis trace RUN -- CMD`: which step made the run fail, found by executing it again from there.

mod dataset;
mod table;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};

use super::{
    Exit, Failure, Finished, Format, Global,
    fork::{TrialArgs, failed, live},
    replay::MatchArgs,
    settings,
    settings::ProxyArgs,
};
use crate::{
    attribution::{
        Analyzer, Bench, Budget, Corrections, Decisive, Finding, LabelRule, Order, StepFinding, Trace, TraceSettings,
        Watch, label_of,
    },
    launch::Echo,
    proxy::Proxy,
    recording,
    replay::Cassette,
    trajectory::{Label, NoLabel, Verdict},
};

/// Options of `trace`.
#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    /// The failed run's directory.
    #[arg(value_name = "RUN_DIR")]
    dir: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    analyzer: AnalyzerArgs,
    /// Samples of each arm, at most.
    #[arg(long, default_value_t = 3, value_name = "K", value_parser = clap::value_parser!(u32).range(2..=1000))]
    samples: u32,
    /// Which step is tested next.
    #[arg(long, value_enum, default_value_t = Order::Scan)]
    order: Order,
    /// Stop when the earliest decisive step is known.
    #[arg(long)]
    first: bool,
    /// Most executions of the command.
    #[arg(long, value_name = "N")]
    budget_runs: Option<u64>,
    /// Most live model calls; the call beyond it is refused, never paid for.
    #[arg(long, value_name = "N")]
    budget_calls: Option<u64>,
    /// Test each agent as a whole too: its replies all corrected, or emptied, call by call.
    #[arg(long)]
    agents: bool,
    /// The rule whose step becomes the run's label, if it has none yet.
    #[arg(long, value_enum, default_value_t = LabelRule::EarliestFlip, value_name = "RULE")]
    label: LabelRule,
    #[command(flatten)]
    kept: dataset::DatasetArgs,
    #[command(flatten)]
    matching: MatchArgs,
    #[command(flatten)]
    proxy: ProxyArgs,
    #[command(flatten)]
    trial: TrialArgs,
    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Where corrections come from.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = true)]
struct SourceArgs {
    /// JSON lines: {"step": N, "reply": "…", "reason": "…"}.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["twin", "redraw", "analyzer"])]
    corrections: Option<PathBuf>,
    /// A recorded run of the same task that succeeded: each step is corrected with its twin's reply. With --redraw,
    /// steps that it has no call for are asked once more.
    #[arg(long, value_name = "RUN_DIR", conflicts_with = "analyzer")]
    twin: Option<PathBuf>,
    /// Ask the live model once more at each step: finds an error that chance made, never one that it makes again.
    #[arg(long, conflicts_with = "analyzer")]
    redraw: bool,
    /// Ask an analyzer model for a correction of each step: http://…, https://… or `simulator`. Its questions and
    /// answers are recorded as a run of their own.
    #[arg(long, value_name = "URL")]
    analyzer: Option<String>,
}

/// The analyzer model, and what it may know.
#[derive(Debug, Clone, Args)]
struct AnalyzerArgs {
    /// Its name.
    #[arg(long, default_value = "gpt-4o-mini", value_name = "NAME", requires = "analyzer")]
    analyzer_model: String,
    /// Environment variable that holds its key.
    #[arg(long, value_name = "VAR", requires = "analyzer")]
    analyzer_key_env: Option<String>,
    /// The right result, for it to know; corrections that give it away are refused.
    #[arg(long, value_name = "TEXT", requires = "analyzer")]
    gold: Option<String>,
    /// Do not tell it what the verifier said of the run.
    #[arg(long, requires = "analyzer")]
    no_feedback: bool,
}

impl ValueEnum for Order {
    fn value_variants<'a>() -> &'a [Self] {
        Order::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}

impl ValueEnum for LabelRule {
    fn value_variants<'a>() -> &'a [Self] {
        LabelRule::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}

pub(super) fn run(arguments: &TraceArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    let cassette = arguments.matching.open(&arguments.dir)?;
    require_failure(&cassette, &arguments.dir)?;
    let entry = arguments.kept.entry()?;
    let known = known(&arguments.source, &cassette)?;
    let analyzer = analyzer(arguments, &cassette)?;
    let (proxy, _) = live(&arguments.proxy, &cassette).proxy(None)?;
    let traced = conduct(Arc::new(proxy), Arc::clone(&cassette), (known, analyzer), arguments, global);
    let finding = settings::block_on(traced)??;
    write(&finding, &arguments.dir)?;
    if global.format == Format::Text {
        let written = table::write(&finding, &mut std::io::stdout().lock());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let truth = label_of(&finding, arguments.label).map(|label| nameable(label, &cassette));
    let label = label(truth.as_ref(), arguments)?;
    if let (Some(entry), Some(truth)) = (entry, truth) {
        let unnamed = |why| Failure::new(Exit::Finding, format!("the run is not added to the dataset: {why}"));
        let truth = truth.map_err(|why| unnamed(why).hint(ROSTER))?;
        entry.add(&arguments.dir, truth, arguments.source.twin.as_deref())?;
    }
    Ok(finish(&finding, &label))
}

/// A run that did not fail has no decisive error.
fn require_failure(cassette: &Cassette, dir: &Path) -> Result<(), Failure> {
    if cassette.recording().trajectory.outcome.verdict == Verdict::Success {
        let error = format!("`{}` succeeded: there is no failure to trace", dir.display());
        return Err(Failure::new(Exit::Usage, error));
    }
    Ok(())
}

/// Corrections that nobody need be asked for.
fn known(source: &SourceArgs, cassette: &Cassette) -> Result<Corrections, Failure> {
    let run = &cassette.recording().trajectory;
    if let Some(file) = &source.corrections {
        let unread = |error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(unread)?;
        let read = Corrections::from_lines(&text, &file.display().to_string(), run);
        return read.map_err(|error| Failure::new(Exit::Usage, error));
    }
    if let Some(twin) = &source.twin {
        let corrections = Corrections::from_twin(cassette, &recording::read(twin)?.trajectory);
        return Ok(if source.redraw { corrections.or_redrawn(run) } else { corrections });
    }
    Ok(if source.redraw { Corrections::redrawn(run) } else { Corrections::default() })
}

/// The analyzer, where it is the source.
fn analyzer(arguments: &TraceArgs, cassette: &Cassette) -> Result<Option<Analyzer>, Failure> {
    let Some(url) = &arguments.source.analyzer else { return Ok(None) };
    let AnalyzerArgs { analyzer_model, analyzer_key_env, gold, no_feedback } = &arguments.analyzer;
    let upstream = settings::other_upstream(url, analyzer_key_env.as_deref(), &arguments.proxy)?;
    let said = &cassette.recording().trajectory.outcome.evidence;
    let feedback = Some(said.clone()).filter(|said| !no_feedback && !said.is_empty());
    Ok(Some(Analyzer { upstream, model: analyzer_model.clone(), gold: gold.clone(), feedback }))
}

async fn conduct(
    proxy: Arc<Proxy>,
    cassette: Arc<Cassette>,
    (known, analyzer): (Corrections, Option<Analyzer>),
    arguments: &TraceArgs,
    global: &Global,
) -> Result<Finding, Failure> {
    let system = arguments.trial.system(&arguments.command, &proxy, Echo::Silent, true)?;
    let bench = Arc::new(Bench::start(proxy, Arc::new(system)).await.map_err(failed)?);
    let run = &cassette.recording().trajectory;
    let corrections = match analyzer {
        None => known,
        Some(analyzer) => {
            let own = settings::fresh_run_id();
            if !global.quiet {
                eprintln!("analyzer {} steps are asked about, recorded as run {own}", run.steps.len());
            }
            analyzer.corrections(&bench, run, &own).await.map_err(failed)?
        }
    };
    if corrections.by_step.is_empty() {
        let why = corrections.left_out.iter().next().map(|(step, why)| format!(": step {step}: {why}"));
        let error = format!("no step has a correction that changes anything{}", why.unwrap_or_default());
        return Err(Failure::new(Exit::Usage, error)
            .hint("with --twin, give a run of the same task that succeeded; aegis diff shows both"));
    }
    if !global.quiet {
        eprintln!(
            "trace    {}  {} of {} steps have a correction; tools and all they do run again in each execution",
            arguments.dir.display(),
            corrections.by_step.len(),
            run.steps.len()
        );
    }
    let trace = Trace::new(
        bench,
        cassette,
        corrections,
        TraceSettings {
            samples: arguments.samples,
            order: arguments.order,
            first: arguments.first,
            budget: Budget { runs: arguments.budget_runs, calls: arguments.budget_calls },
            jobs: arguments.trial.jobs,
            any_tool_results: arguments.matching.any_tool_results(),
            agents: arguments.agents,
            salt: settings::fresh_token(),
        },
    );
    trace.run(&Talk { quiet: global.quiet }).await.map_err(failed)
}

/// Says what is found as it is found.
struct Talk {
    quiet: bool,
}

impl Watch for Talk {
    fn tested(&self, finding: &StepFinding) {
        if !self.quiet {
            let StepFinding { step, null, treated, .. } = finding;
            let (null, treated) = (table::share(null.share), table::share(treated.share));
            eprintln!("tested   step {step}  null {null}  treated {treated}");
        }
    }
}

/// `trace.json` beside the log: the whole evidence, replaced whole by the next trace.
fn write(finding: &Finding, dir: &Path) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(finding).map_err(|error| Failure::new(Exit::Recording, error))?;
    let (new, path) = (dir.join("trace.json.new"), dir.join("trace.json"));
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
    written.map_err(|error| Failure::new(Exit::Recording, format!("cannot write `{}`: {error}", path.display())))
}

/// How a step gets a name that a label may use.
const ROSTER: &str = "aegis agents RUN_DIR --suggest proposes rules; with them, record the program once more";

/// A label whose agents are surely those that spoke; else why there is none.
fn nameable(label: Label, cassette: &Cassette) -> Result<Label, NoLabel> {
    let mut steps = label.errors.iter().map(|entry| entry.error.step);
    steps.try_for_each(|step| recording::may_name(cassette.recording(), step))?;
    Ok(label)
}

/// Writes the label, where the run has none; says what became of it.
fn label(truth: Option<&Result<Label, NoLabel>>, arguments: &TraceArgs) -> Result<String, Failure> {
    if recording::read_label(&arguments.dir)?.is_some() {
        return Ok("label kept".to_owned());
    }
    match truth {
        None => Ok("no label".to_owned()),
        Some(Err(why)) => Ok(format!("no label: {why}; {ROSTER}")),
        Some(Ok(label)) => {
            recording::write_label(&arguments.dir, label)?;
            Ok("label verified".to_owned())
        }
    }
}

fn finish(finding: &Finding, label: &str) -> Finished {
    let named = |rule: LabelRule, name: &str, decisive: &Option<Decisive>| match decisive {
        Some(Decisive { agent, step, .. }) => format!("{name} {agent} at step {step}"),
        None if finding.is_in_doubt(rule) => format!("{name} not sure"),
        None => format!("{name} not found"),
    };
    let summary = format!(
        "{}  {}  {label}",
        named(LabelRule::EarliestFlip, "earliest flip", &finding.earliest_flip),
        named(LabelRule::Commitment, "commitment", &finding.commitment)
    );
    let found = finding.earliest_flip.is_some();
    let exit = match (finding.out_of_budget, found) {
        (true, false) => Exit::Budget,
        (_, true) => Exit::Ok,
        (false, false) => Exit::Finding,
    };
    let data = serde_json::to_value(finding).unwrap_or_default();
    Finished { exit, summary, data }
}
