//! `aegis replay RUN [-- CMD]`: a recording as the upstream, offline; as a server or around a command.

use crate::cli::printed::{PrintedReplay, printed};
use std::{ffi::OsString, path::PathBuf, sync::Arc};

use clap::{Args, ValueEnum};

use super::{
    Exit, Failure, Finished, Global, OutputFormat,
    again::{AgainArgs, HowStarted},
    escape,
    matching::MatchArgs,
    serve::{TokenArgs, announce, bind},
    servers, settings,
    signals::interrupted,
    trial,
};
use crate::{
    execution::{Console, ErrorOutput, Execution, ExecutionArm, Executor, Judge, ListeningProxy, Program, ReplySource},
    launch::{Echo, Ending},
    proxy::{NamedServers, Proxy, RunSetup, upstream::Upstream},
    recording,
    replay::{Cassette, Fit, ReplayReport, Replayed, Timing},
    trajectory::RunId,
};

/// Options of `replay`.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// Directory of the recorded run.
    #[arg(value_name = "RUN_DIR")]
    dir: PathBuf,
    /// Address to listen on. Port 0 selects a free port and prints it as a JSON line. Default with a command:
    /// 127.0.0.1:0.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    #[command(flatten)]
    token: TokenArgs,
    /// Speed of recorded replies.
    #[arg(long, value_enum, default_value_t = ReplayPace::Fast)]
    timing: ReplayPace,
    /// Print how each request was matched, and the canonical form of unmatched ones.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    tools: servers::ToolsArgs,
    #[command(flatten)]
    matching: MatchArgs,
    /// Directory for the replay's recording.
    #[arg(long, env = "AEGIS_LOG_DIR", value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Configuration file. Default: ./aegis.toml.
    #[arg(long, env = "AEGIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the new run. Default: generated.
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Timeout of the command in seconds.
    #[arg(long, value_name = "S", value_parser = super::settings::seconds)]
    timeout: Option<f64>,
    #[command(flatten)]
    again: AgainArgs,
    /// Command to execute. Default: serve until stopped.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// How fast recorded replies come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReplayPace {
    /// As fast as possible.
    Fast,
    /// At the recorded times.
    Recorded,
}

pub(super) fn run(arguments: &ReplayArgs, global: &Global) -> Result<Finished, Failure> {
    settings::raise_file_limit();
    let cassette = arguments.matching.open(&arguments.dir, global.quiet)?;
    let id = match &arguments.run {
        Some(name) => RunId::parse(name).map_err(|error| Failure::new(Exit::Usage, error))?,
        None => settings::fresh_run_id(),
    };
    let timing = if arguments.timing == ReplayPace::Fast { Timing::Fast } else { Timing::Recorded };
    let replayed = Replayed::new(Arc::clone(&cassette)).with_timing(timing);
    let again = HowStarted::read(&arguments.dir)?;
    let config = arguments.config.clone().or_else(|| again.config().filter(|_| arguments.again.again));
    let servers = NamedServers::of_steps(&cassette.recording().trajectory.steps);
    let replayed = arguments.tools.on(replayed, &servers, config.as_deref(), global.quiet)?;
    let replayed = Arc::new(replayed);
    let upstream: Arc<dyn Upstream> = Arc::clone(&replayed) as Arc<dyn Upstream>;
    let mut proxy = settings::offline(config.as_deref(), arguments.log_dir.as_deref(), upstream, id.clone())?;
    proxy.servers = servers;
    let limit = settings::time_limit(arguments.timeout)?;
    let program = again.program(&arguments.command, arguments.again, "replay")?;
    again.say(arguments.again, global.quiet);
    // A command that is started here knows no token.
    let token = if program.is_some() { &arguments.token.without_token() } else { &arguments.token };
    token.guard(&mut proxy.gate, arguments.listen.as_deref().unwrap_or("127.0.0.1:0"), None)?;
    if program.is_none()
        && !global.quiet
        && let Some(line) = again.line("replay", "")
    {
        talkln!("recorded {}", escape(&line));
    }
    let echo = if global.format == OutputFormat::Json { Echo::Stderr } else { Echo::Stdout };
    let console = Console { reads: true, echo, errors: ErrorOutput::Ours };
    let program = program.map(|program| Program { limit, console, ..program });
    let served = conduct(Arc::new(proxy), id.clone(), &replayed, program, arguments, global);
    let ended = settings::block_on_one(served)??;
    let report = replayed.report();
    if !global.quiet {
        talk(&cassette, &report, arguments.explain);
    }
    Ok(finish(&id, &cassette, &report, ended))
}

/// Serves until the command has ended, or until we are told to stop. Says how the command ended.
async fn conduct(
    proxy: Arc<Proxy>,
    id: RunId,
    replayed: &Arc<Replayed>,
    program: Option<Program>,
    arguments: &ReplayArgs,
    global: &Global,
) -> Result<Option<Ending>, Failure> {
    let own = if program.is_none() { "127.0.0.1:8484" } else { "127.0.0.1:0" };
    let listen = arguments.listen.as_deref().unwrap_or(own);
    let listener = bind(listen).await?;
    let address = listener.local_addr().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    let listening = ListeningProxy::at(Arc::clone(&proxy), listener).map_err(trial::failed)?;
    let (ending, dir, steps) = if let Some(program) = program {
        let executor = Executor::at(listening, trial::stop());
        let arm = ExecutionArm { replies: ReplySource::Replayed(Arc::clone(replayed)), ..ExecutionArm::default() };
        let executed = executor.execute(Execution::new(&id, &program, arm, &Judge::End)).await;
        executor.stop().await;
        let executed = executed.map_err(trial::failed)?;
        (Some(executed.ending), executed.dir, executed.steps)
    } else {
        let upstream: Arc<dyn Upstream> = Arc::clone(replayed) as Arc<dyn Upstream>;
        let repeat_of = Some(replayed.cassette().run().clone());
        let (cards, equality) = (replayed.cassette().cards(), Some(replayed.cassette().rules().setting()));
        let setup = RunSetup { upstream: Some(upstream), repeat_of, cards, equality, ..RunSetup::default() };
        let run = proxy.runs.open(&id, setup).await.map_err(|error| Failure::new(Exit::unopened(&error), error))?;
        announce(address, None, listen, &proxy, global)?;
        interrupted().await;
        listening.stop().await;
        proxy.runs.retire();
        proxy.runs.seal(&run).map_err(|error: recording::RecordingError| Failure::new(Exit::Recording, error))?;
        (None, run.dir().to_owned(), run.steps())
    };
    if !global.quiet {
        talkln!("run      {}  {steps} steps", dir.display());
    }
    Ok(ending)
}

/// Says what came of it, on standard error.
fn talk(cassette: &Cassette, report: &ReplayReport, explain: bool) {
    let steps = cassette.bare_steps();
    let fits = [
        (Fit::Bytes, "by bytes"),
        (Fit::Canonical, "by canonical form"),
        (Fit::Masked, "but for masked secrets"),
        (Fit::ToolResults, "but for results of tools"),
    ];
    let counted = fits.map(|(fit, words)| (report.served.iter().filter(|served| served.fit == fit).count(), words));
    let counted = counted.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
    let counted = counted.collect::<Vec<_>>().join(", ");
    talkln!("served   {} replies  {counted}", report.served.len());
    if explain {
        for served in &report.served {
            let fit = format!("{:?}", served.fit).to_lowercase();
            let exact = if served.exact { "" } else { "  not exact" };
            talkln!("         step {} ← step {} of the record  {fit}{exact}", served.step, served.recorded);
        }
    }
    for missed in &report.missed {
        talkln!("missed   {}", escape(&missed.to_string()));
        for line in missed.rule.iter().flat_map(|rule| rule.lines()) {
            talkln!("         {}", escape(line));
        }
        if explain {
            talkln!("         its canonical form is {}", escape(&missed.form));
        }
    }
    for refused in report.refused.iter().take(20) {
        talkln!("refused  {}", escape(&refused.to_string()));
    }
    if report.refused.len() > 20 {
        talkln!("refused  and {} more", report.refused.len() - 20);
    }
    let inexact = report.served.iter().filter(|served| !served.exact).count();
    if inexact > 0 {
        talkln!("note: {inexact} replies are not exact: secrets were masked, or a body was cut, when it was recorded");
    }
    if !report.unsure.is_empty() {
        let steps: Vec<String> = report.unsure.iter().take(20).map(ToString::to_string).collect();
        let steps = steps.join(", ");
        talkln!(
            "note: not exact: the questions of steps {steps} were asked several times at once, and answered differently;"
        );
        talkln!("      nothing asked later quotes the answers, so that nobody knows which asker got which of them");
    }
    for other in report.other_values.iter().take(20) {
        talkln!("note: not exact: {}", escape(&other.to_string()));
    }
    for number in report.unused.iter().take(20) {
        let call = steps.iter().find(|step| step.step == *number);
        let call = call.map(|step| format!("  call {} of {}", step.call, step.attribution.agent)).unwrap_or_default();
        talkln!("unused   step {number}{}", escape(&call));
    }
    if report.unused.len() > 20 {
        talkln!("unused   and {} more", report.unused.len() - 20);
    }
}

fn finish(id: &RunId, cassette: &Cassette, report: &ReplayReport, ending: Option<Ending>) -> Finished {
    let exit = match ending {
        Some(Ending::Interrupted) => Exit::Signal(2),
        _ if !report.missed.is_empty() => Exit::Finding,
        Some(_) if report.served.is_empty() && report.live.is_empty() => Exit::Infrastructure,
        _ if !report.unsure.is_empty() => Exit::Finding,
        _ if report.other_values.iter().any(|other| !other.made_anew) => Exit::Finding,
        None | Some(Ending::Exited(0)) => Exit::Ok,
        Some(_) => Exit::Finding,
    };
    let inexact = report.unsure.len() + report.other_values.len();
    let unsure = match inexact {
        0 => String::new(),
        count => format!("  not exact: {count} steps"),
    };
    let refused = match report.refused.len() {
        0 => String::new(),
        count => format!("  {count} refused"),
    };
    let live = match report.live.len() {
        0 => String::new(),
        count => format!("  {count} answered live by tools and peers"),
    };
    let summary = format!(
        "{id}  {} served{live}  {} missed{refused}  {} of {} steps unused{unsure}",
        report.served.len(),
        report.missed.len(),
        report.unused.len(),
        cassette.bare_steps().len()
    );
    Finished { exit, summary, data: printed(&PrintedReplay { run: id, record: cassette.run(), report }) }
}
