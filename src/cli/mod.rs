//! The command line: one file a verb, each thin. Data goes to standard output, talk to standard error, and the last
//! line of talk, the exit code and the `result` field of JSON output come from one value.

#[macro_use]
mod terminal;

mod again;
mod agents;
mod amend;
mod annotations;
mod asking;
mod attribute;
mod browser;
mod budget;
mod campaign;
mod certify;
mod checkers;
mod choice;
mod capability;
mod client_verdict;
mod config;
mod corpus;
mod corpus_work;
mod demo;
mod diff;
mod ending;
mod examples;
pub mod example;
mod export;
mod import;
mod learn;
mod lint;
mod logging;
mod matching;
mod mcp;
mod modes;
mod output;
mod fork;
mod groups;
mod plan;
mod prove;
mod printed;
mod progress;
mod repair;
mod replay;
mod retry;
mod reward;
mod run;
mod runs;
mod score;
mod screen;
mod serve;
mod servers;
mod settings;
mod setup;
mod shard;
mod show;
mod signals;
mod stats;
mod tasks;
mod test;
mod trace;
mod tracer;
mod trial;
mod typed;
mod upstream_origin;
mod view;
mod watch;

use std::io::Write;

use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};

use self::screen::Screen;
pub use self::{
    config::Config,
    ending::{Exit, Failure, Finished},
    terminal::{counted, escape},
};
use crate::recording;

/// Records multi-agent LLM runs at the wire and plants known errors in them, with ground-truth labels.
#[derive(Debug, Parser)]
#[command(name = "aegis", version = recording::VERSION, max_term_width = 110, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Output format.
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Text, env = "AEGIS_FORMAT", help_heading = "Everywhere")]
    format: OutputFormat,
    /// Print only errors and the result.
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    quiet: bool,
    /// Print more; given twice, trace messages too.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet", help_heading = "Everywhere")]
    verbose: u8,
    /// When to use colour.
    #[arg(long, global = true, value_enum, default_value_t = clap::ColorChoice::Auto, help_heading = "Everywhere")]
    color: clap::ColorChoice,
}

/// The form of a verb's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Text,
    /// For programs; field names are stable.
    Json,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the whole workflow on the embedded simulator: clean runs, injections, proof, dataset; needs no key and no network.
    Demo(demo::DemoArgs),
    /// Run the proxy.
    Serve(serve::ServeArgs),
    /// Run a command behind the proxy and record it as one run.
    Run(run::RunArgs),
    /// Stand for a tool server over standard input and output, so that its messages are recorded.
    Mcp(mcp::McpArgs),
    /// Run a command under plans of faults and check that it survives each of them; for CI.
    Test(test::TestArgs),
    /// Execute tasks × plans, prove which injections caused failures, and write the dataset.
    Campaign(campaign::CampaignArgs),
    /// Merge the parts of a campaign that several machines executed, or write the job file for a cluster.
    Shard(shard::ShardArgs),
    /// List recorded runs.
    Runs(runs::RunsArgs),
    /// Show a recorded run.
    Show(show::ShowArgs),
    /// Browse runs, campaigns and datasets in a web page, or write that page as one file.
    View(view::ViewArgs),
    /// Compare annotations of runs (`view --annotate`) with each other and with the proven labels.
    Annotations(annotations::AnnotationsArgs),
    /// Check that planted errors are the failure modes that their plans name; can ask a judge model.
    Modes(Box<modes::ModesArgs>),
    /// Show which agent made each call, and on what evidence.
    Agents(agents::AgentsArgs),
    /// Add facts to runs that have ended: names of agents, outcome, task.
    Amend(amend::AmendArgs),
    /// Answer a program from a recorded run; nothing is sent upstream.
    Replay(replay::ReplayArgs),
    /// Re-execute a program: recorded up to a step, a changed reply there, live after it.
    Fork(fork::ForkArgs),
    /// Predict from the log which agent failed and at which step, by published methods; executes nothing.
    Attribute(Box<attribute::AttributeArgs>),
    /// Certify a judge of failures on executed labels
    Certify(Box<certify::CertifyArgs>),
    /// Train a ranker that orders the steps for `trace`; writes nothing if it beats no baseline.
    Learn(learn::LearnArgs),
    /// Find the decisive step of a failed run by re-executing it.
    Trace(Box<trace::TraceArgs>),
    /// Prove by executions that a run's injection made it fail; continues an earlier proof. Given a dataset: each unproven row.
    Prove(Box<prove::ProveArgs>),
    /// Test whether a hint to the blamed agent repairs a failed run, against the same run without the hint.
    Retry(Box<retry::RetryArgs>),
    /// Compare two runs, aligned by agent and call.
    Diff(diff::DiffArgs),
    /// Write, check and explain injection plans.
    Plan(plan::PlanArgs),
    /// Convert public task sets (GSM8K, MATH, MMLU-Pro, HumanEval+, MBPP, GAIA …), or your own, for campaigns.
    Tasks(tasks::TasksArgs),
    /// Import labelled files as a dataset (Who&When, AgenTracer, MAST), or traces as runs (OTLP, Inspect, ATIF).
    Import(import::ImportArgs),
    /// Export a dataset in the format of a trainer or benchmark.
    Export(export::ExportArgs),
    /// Score predictions of agent, step and failure mode, beside baselines.
    Score(score::ScoreArgs),
    /// Serve rewards to a trainer over HTTP.
    Reward(reward::RewardArgs),
    /// Find defects that make a dataset unfit for training or evaluation.
    Lint(lint::LintArgs),
    /// Describe a dataset: balance, lengths, positions, twins, and whether injections can be detected by their looks.
    Stats(stats::StatsArgs),
    /// Recover what is readable of a damaged recording into a new one.
    Repair(repair::RepairArgs),
    #[command(flatten)]
    Setup(setup::SetupVerb),
    /// Run one of the example multi-agent systems.
    Example(example::Arguments),
}

/// Data as JSON to read, with a line's end.
fn pretty(data: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(data).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(text + "\n")
}

/// Runs the command line and returns the exit code.
pub fn main() -> u8 {
    let matches = examples::command().color(colour_choice()).try_get_matches();
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return misread(&error),
    };
    // A configuration that is read later adds what it names.
    let secrets = recording::Secrets { values: recording::keys_of_environment(), ..recording::Secrets::default() };
    let _ = recording::Redactor::new(&secrets).map(recording::Redactor::for_process);
    let json = cli.global.format == OutputFormat::Json;
    let exit = match cli.run() {
        Ok(exit) => exit,
        Err(failure) if failure.is_broken_pipe() => Exit::Ok,
        Err(failure) => {
            if json {
                failure.say_as_json();
            }
            failure.say(colour_choice());
            failure.exit
        }
    };
    exit.code()
}

/// Says what of a command line cannot be read, and a line of that verb that can; or the help that was asked for. Gives the
/// exit code.
fn misread(error: &clap::Error) -> u8 {
    let exit = u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
    let format = said_option("--format").or_else(|| std::env::var("AEGIS_FORMAT").ok());
    let arguments = std::env::args().skip(1).take_while(|argument| argument != "--").collect::<Vec<_>>();
    if error.use_stderr() && format.as_deref() == Some("json") {
        let text = error.render().to_string();
        let failure = Failure::new(Exit::Usage, text.trim().trim_start_matches("error: "));
        failure.say_as_json();
        if arguments.iter().any(|argument| argument == "serve") {
            logging::serves(true);
            failure.say(clap::ColorChoice::Never);
            return exit;
        }
    }
    let _ = error.print();
    if let (true, Some(line)) = (error.use_stderr(), examples::instead(&arguments)) {
        screen::say(colour_choice(), &format!("hint: for example: {line}"));
    }
    exit
}

/// What `--color` says, for help and usage errors, which are written before options are read.
fn colour_choice() -> clap::ColorChoice {
    let said = said_option("--color").and_then(|choice| clap::ColorChoice::from_str(&choice, true).ok());
    said.unwrap_or(clap::ColorChoice::Auto)
}

/// The value of an option of every verb as it was typed last: what is said before options are read needs it.
fn said_option(name: &str) -> Option<String> {
    let arguments: Vec<_> = std::env::args_os().skip(1).take_while(|argument| argument != "--").collect();
    arguments.iter().enumerate().rev().find_map(|(at, argument)| {
        let argument = argument.to_str()?;
        let value = if argument == name {
            arguments.get(at + 1)?.to_str()
        } else {
            argument.strip_prefix(name)?.strip_prefix('=')
        };
        value.map(str::to_owned)
    })
}

impl Cli {
    fn run(self) -> Result<Exit, Failure> {
        let global = &self.global;
        logging::start(global);
        if let Verb::Campaign(arguments) = &self.verb
            && let Some(text) = arguments.written()
        {
            return print(&text?, &mut terminal::stdout());
        }
        self.verb.tell(global)
    }
}

impl Verb {
    /// Does what ends with a result line.
    fn work(&self, global: &Global) -> Result<Finished, Failure> {
        let json = global.format == OutputFormat::Json;
        let out = || terminal::stdout();
        match self {
            Verb::Demo(arguments) => demo::run(arguments, global),
            Verb::Run(arguments) => run::run(arguments, global),
            Verb::Test(arguments) => test::run(arguments, global),
            Verb::Campaign(arguments) => campaign::run(arguments, global),
            Verb::Shard(arguments) => shard::run(arguments, global),
            Verb::Replay(arguments) => replay::run(arguments, global),
            Verb::Fork(arguments) => fork::run(arguments, global),
            Verb::Attribute(arguments) => attribute::run(arguments, global),
            Verb::Certify(arguments) => certify::run(arguments, global, &mut out()),
            Verb::Learn(arguments) => learn::run(arguments, global),
            Verb::Trace(arguments) => trace::run(arguments, global),
            Verb::Prove(arguments) => prove::run(arguments, global),
            Verb::Amend(arguments) => amend::run(arguments, json, &mut out()),
            Verb::Diff(arguments) => diff::run(arguments, json, &mut out()),
            Verb::Repair(arguments) => repair::run(arguments, json, &mut out()),
            Verb::Retry(arguments) => retry::run(arguments, global),
            Verb::Runs(arguments) => runs::run(arguments, global),
            Verb::View(arguments) => view::run(arguments, global),
            Verb::Annotations(arguments) => annotations::run(arguments, global),
            Verb::Modes(arguments) => modes::run(arguments, global),
            Verb::Tasks(arguments) => tasks::run(arguments, json, &mut out()),
            Verb::Import(arguments) => import::run(arguments, json, &mut out()),
            Verb::Export(arguments) => export::run(arguments, global, &mut out()),
            Verb::Score(arguments) => score::run(arguments, global, &mut out()),
            Verb::Reward(arguments) => reward::run(arguments, global),
            Verb::Lint(arguments) => lint::run(arguments, global),
            Verb::Stats(arguments) => stats::run(arguments, global),
            Verb::Serve(_)
            | Verb::Mcp(_)
            | Verb::Show(_)
            | Verb::Agents(_)
            | Verb::Plan(_)
            | Verb::Setup(_)
            | Verb::Example(_) => Err(Failure::new(Exit::Usage, "this verb has no result: a defect of this program")),
        }
    }

    /// Does what only tells something, or has its own last word; else what ends with a result line.
    fn tell(&self, global: &Global) -> Result<Exit, Failure> {
        let json = global.format == OutputFormat::Json;
        let out = || terminal::stdout();
        match self {
            Verb::Serve(arguments) => serve::run(arguments, global),
            Verb::Show(arguments) => show::run(arguments, json, Screen::stdout(global), &mut out()),
            Verb::Agents(arguments) => agents::run(arguments, json, Screen::stdout(global), &mut out()),
            Verb::Plan(arguments) => {
                let (exit, notes) = plan::run(arguments, json, Screen::stdout(global), &mut out())?;
                Ok(arguments.concluded(exit, notes).map_or(exit, |finished| finished.say(global)))
            }
            Verb::Setup(verb) => setup::run(verb, global),
            Verb::Mcp(arguments) => mcp::run(arguments),
            Verb::Example(arguments) => {
                example::run(arguments).map(|()| Exit::Ok).map_err(|error| Failure::new(Exit::Finding, error))
            }
            working => {
                let finished = working.work(global).or_else(|failure| match failure.exit {
                    // Whoever ends a verb that executes, by a signal or a budget, is told where that leaves it, as of any other end.
                    Exit::Signal(_) | Exit::Budget => Ok(Finished::stopped(&failure)),
                    _ => Err(failure),
                })?;
                Ok(finished.say(global))
            }
        }
    }
}

/// Prints what a verb was only asked to show.
fn print(text: &str, out: &mut dyn Write) -> Result<Exit, Failure> {
    let written = out.write_all(text.as_bytes()).map(|()| Exit::Ok);
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))
}
