//! `aegis trace RUN -- CMD`: which step made the run fail, found by executing it again from there.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};

use super::{
    Exit, Failure, Finished, Format, Global, escape,
    fork::{TrialArgs, failed, live},
    replay::MatchArgs,
    settings,
    settings::ProxyArgs,
};
use crate::{
    attribution::{
        Bench, Budget, Corrections, Decisive, Finding, LabelRule, Order, Share, StepFinding, Trace, TraceSettings,
        Watch, label_of,
    },
    launch::Echo,
    proxy::Proxy,
    recording,
    replay::Cassette,
    trajectory::Verdict,
};

/// Characters of a bar that stands for an effect of 1.
const BAR: f64 = 10.0;

/// Options of `trace`.
#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    /// The failed run's directory.
    #[arg(value_name = "RUN_DIR")]
    dir: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
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
    /// The rule whose step becomes the run's label, if it has none yet.
    #[arg(long, value_enum, default_value_t = LabelRule::EarliestFlip, value_name = "RULE")]
    label: LabelRule,
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
#[group(required = true, multiple = false)]
struct SourceArgs {
    /// JSON lines: {"step": N, "reply": "…", "reason": "…"}.
    #[arg(long, value_name = "FILE")]
    corrections: Option<PathBuf>,
    /// A recorded run of the same task that succeeded: each step is corrected with its twin's reply.
    #[arg(long, value_name = "RUN_DIR")]
    twin: Option<PathBuf>,
    /// Ask the live model once more at each step: finds an error that chance made, never one that it makes again.
    #[arg(long)]
    redraw: bool,
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
    let corrections = corrections(&arguments.source, &cassette)?;
    if corrections.by_step.is_empty() {
        return Err(Failure::new(Exit::Usage, "no step has a correction that changes anything")
            .hint("with --twin, give a run of the same task that succeeded; aegis diff shows both"));
    }
    let (proxy, _) = live(&arguments.proxy, &cassette).proxy(None)?;
    if !global.quiet {
        eprintln!(
            "trace    {}  {} of {} steps have a correction; tools and all they do run again in each execution",
            arguments.dir.display(),
            corrections.by_step.len(),
            cassette.recording().trajectory.steps.len()
        );
    }
    let finding = settings::block_on(conduct(Arc::new(proxy), cassette, corrections, arguments, global))??;
    write(&finding, &arguments.dir)?;
    if global.format == Format::Text {
        let written = table(&finding, &mut std::io::stdout().lock());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let label = label(&finding, arguments)?;
    Ok(finish(&finding, label))
}

/// A run that did not fail has no decisive error.
fn require_failure(cassette: &Cassette, dir: &Path) -> Result<(), Failure> {
    if cassette.recording().trajectory.outcome.verdict == Verdict::Success {
        let error = format!("`{}` succeeded: there is no failure to trace", dir.display());
        return Err(Failure::new(Exit::Usage, error));
    }
    Ok(())
}

fn corrections(source: &SourceArgs, cassette: &Cassette) -> Result<Corrections, Failure> {
    let run = &cassette.recording().trajectory;
    if let Some(file) = &source.corrections {
        let unread = |error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(unread)?;
        let read = Corrections::from_lines(&text, &file.display().to_string(), run);
        return read.map_err(|error| Failure::new(Exit::Usage, error));
    }
    if let Some(twin) = &source.twin {
        return Ok(Corrections::from_twin(cassette, &recording::read(twin)?.trajectory));
    }
    Ok(Corrections::redrawn(run))
}

async fn conduct(
    proxy: Arc<Proxy>,
    cassette: Arc<Cassette>,
    corrections: Corrections,
    arguments: &TraceArgs,
    global: &Global,
) -> Result<Finding, Failure> {
    let system = arguments.trial.system(&arguments.command, &proxy, Echo::Silent, true)?;
    let bench = Arc::new(Bench::start(proxy, Arc::new(system)).await.map_err(failed)?);
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
            eprintln!("tested   step {step}  null {}  treated {}", share(null.share), share(treated.share));
        }
    }
}

fn share(share: Share) -> String {
    if share.samples == 0 { "-".to_owned() } else { format!("{}/{}", share.successes, share.samples) }
}

/// `trace.json` beside the log: the whole evidence, replaced whole by the next trace.
fn write(finding: &Finding, dir: &Path) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(finding).map_err(|error| Failure::new(Exit::Recording, error))?;
    let (new, path) = (dir.join("trace.json.new"), dir.join("trace.json"));
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
    written.map_err(|error| Failure::new(Exit::Recording, format!("cannot write `{}`: {error}", path.display())))
}

/// One line a step, with a bar for its effect.
fn table(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "step  {:<20} call  null  treated  effect", "agent")?;
    for step in &finding.steps {
        let bar = step.effect.map(bar).unwrap_or_default();
        let effect = match (step.effect, step.interval) {
            (Some(effect), Some(interval)) => format!("{effect:+.2} [{:+.2}, {:+.2}]", interval.low, interval.high),
            _ => step.note.clone().unwrap_or_default(),
        };
        let is = |decisive: &Option<Decisive>| decisive.as_ref().is_some_and(|decisive| decisive.step == step.step);
        let marks = [(is(&finding.earliest_flip), "earliest flip"), (is(&finding.commitment), "commitment")];
        let marks: Vec<&str> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        let mark = if marks.is_empty() { String::new() } else { format!("  ◀ {}", marks.join(", ")) };
        let (agent, call) = (escape(step.agent.as_str()), step.call);
        let (null, treated) = (share(step.null.share), share(step.treated.share));
        let line = format!("{agent:<20} {call:>4}  {null:<5} {treated:<7}  {bar:<10} {}{mark}", escape(&effect));
        writeln!(out, "{:>4}  {}", step.step, line.trim_end())?;
    }
    let spent = finding.spent;
    writeln!(
        out,
        "\na step without effect is blamed with a probability of at most {:.1} %; order {}{}",
        finding.false_blame * 100.0,
        finding.order,
        if finding.out_of_budget { "; the budget ended the search" } else { "" }
    )?;
    writeln!(
        out,
        "spent {} executions, {} live calls, {} tokens; {} tokens came from the record",
        spent.runs, spent.calls, spent.live_tokens, spent.recorded_tokens
    )
}

fn bar(effect: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an effect lies between -1 and 1")]
    let length = (effect.abs() * BAR).round() as usize;
    if effect < 0.0 { "-".repeat(length) } else { "█".repeat(length) }
}

/// Writes the label, where the run has none; says what became of it.
fn label(finding: &Finding, arguments: &TraceArgs) -> Result<&'static str, Failure> {
    if recording::read_label(&arguments.dir)?.is_some() {
        return Ok("label kept");
    }
    let Some(label) = label_of(finding, arguments.label) else { return Ok("no label") };
    recording::write_label(&arguments.dir, &label)?;
    Ok("label verified")
}

fn finish(finding: &Finding, label: &str) -> Finished {
    let named = |name: &str, decisive: &Option<Decisive>| match decisive {
        Some(Decisive { agent, step, .. }) => format!("{name} {agent} at step {step}"),
        None => format!("{name} not found"),
    };
    let summary = format!(
        "{}  {}  {label}",
        named("earliest flip", &finding.earliest_flip),
        named("commitment", &finding.commitment)
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
