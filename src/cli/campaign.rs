//! `aegis campaign FILE`: clean runs, injected runs, proof, labels, dataset, report.

use crate::cli::printed::printed;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use nix::sys::signal::Signal;
use tokio::sync::watch;

use self::natural::CampaignTracer;
use super::{
    Config, Exit, Failure, Finished, Global,
    asking::{self, AskingArgs},
    browser,
    budget::BudgetLimits,
    client_verdict,
    matching::MatchArgs,
    progress::ShownProgress,
    settings,
    settings::ProxyArgs,
    signals::{interrupted, number},
};
use crate::{
    campaign::{
        self, Campaign, CampaignBudget, CampaignEquality, CampaignError, CampaignOptions, CampaignReport,
        CampaignSnapshot, Concluded, ExistingContent, NotedFiles, PlanFolder,
    },
    proxy::{Proxy, ProxyError, upstream::Upstream},
    recording::Masked,
    verify,
};

mod dry;
mod natural;
mod next;
mod shard;

/// Options of `campaign`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub(super) struct CampaignArgs {
    #[command(subcommand)]
    action: Option<CampaignAction>,
    /// Campaign file: tasks, systems, plans, verification, budget.
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,
    /// Directory for logs, data set and report. Default: the campaign's name with `-run`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the campaign in the directory; finished cells are kept.
    #[arg(long)]
    resume: bool,
    /// With `--resume` or `--shard`: continue although campaign or upstream changed. Missing runs are made at new cost,
    /// and the data set is replaced.
    #[arg(long)]
    changed: bool,
    /// Cells in parallel. Default: one per core.
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Seed of what the campaign draws (`[sample]`, decoys, the simulator), instead of the file's. A `[[plan]]` keeps its own.
    #[arg(long, value_name = "N", conflicts_with = "shard")]
    seed: Option<u64>,
    /// Only these tasks: TASK or SYSTEM/TASK, with `*` for any text; repeatable.
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Make or continue part I of N (from 0) below `--out`; `auto`: the part that the engine assigns. `aegis shard
    /// merge` combines parts.
    #[arg(long, value_name = "I/N|auto", conflicts_with_all = ["only", "junit", "dry_run"])]
    shard: Option<String>,
    /// Upstream, instead of the file's.
    #[arg(long, env = "AEGIS_UPSTREAM", value_name = "URL")]
    upstream: Option<String>,
    /// Print what would run, its expected cost and its maximum cost; execute nothing.
    #[arg(long)]
    dry_run: bool,
    /// Limits instead of the file's: calls=N,tokens=N,money=X. Never exceeded.
    #[arg(long, value_name = "LIMITS")]
    budget: Option<BudgetLimits>,
    /// Write a `JUnit` report, one case per cell.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Open the finished report in the browser.
    #[arg(long)]
    open: bool,
    /// Allow commands in task files (`check.command`), which run with your rights.
    #[arg(long)]
    allow_task_commands: bool,
    /// PEM file of additional certificates to trust.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    #[command(flatten)]
    matching: MatchArgs,
    #[command(flatten)]
    asking: AskingArgs,
}

/// What else is to be done with campaign files.
#[derive(Debug, clap::Subcommand)]
enum CampaignAction {
    /// Print the JSON schema of campaign files, for editors.
    Schema,
}

impl CampaignArgs {
    /// What is asked for instead of a campaign, written out; `None` if a campaign is to be run.
    pub(super) fn written(&self) -> Option<Result<String, Failure>> {
        self.action.as_ref().map(|CampaignAction::Schema| super::pretty(&campaign::schema()))
    }
}

/// Keeps the keys in this process's environment from checks where no sandbox hides it. Linux shows an environment to other
/// processes of its user; macOS does not show it to those of another binary.
fn hide_environment() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_dumpable(false);
}

pub(super) fn run(arguments: &CampaignArgs, global: &Global) -> Result<Finished, Failure> {
    let Some(file) = &arguments.file else {
        return Err(Failure::new(Exit::Usage, "no campaign file is named"));
    };
    let (campaign, kept) = read(file, arguments)?;
    let only = arguments.only.iter().map(|pattern| settings::pattern(pattern)).collect::<Result<Vec<_>, _>>()?;
    for (pattern, said) in only.iter().zip(&arguments.only) {
        if !campaign.has_task(pattern) {
            let error = format!("`--only {said}` names no task of `{}`", file.display());
            return Err(Failure::new(Exit::Usage, error)
                .hint("TASK or SYSTEM/TASK, `*` for any words; `--dry-run` counts what is left"));
        }
    }
    let commands = campaign.task_commands();
    let allowed = commands == 0 || campaign.verify.allow_task_commands || arguments.allow_task_commands;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}-run", campaign.name)));
    let earlier = existing_content(arguments);
    let directory = base_directory(file);
    let (ca_file, asking) = (arguments.ca_file.clone(), arguments.asking.clone());
    let tool_results_given = arguments.matching.tool_results().is_some();
    let equality = CampaignEquality { rules: arguments.matching.equality()?, tool_results_given };
    let begun = CampaignStart { out, earlier, directory, only, jobs: arguments.jobs, ca_file, asking, equality };
    if arguments.dry_run {
        return dry::tell(&campaign, &begun, arguments, allowed, global);
    }
    let junit = client_verdict::junit_file(arguments.junit.as_deref())?;
    if !allowed {
        let error = format!("{commands} tasks bring commands of their own, which would run on this machine as you do");
        return Err(Failure::new(Exit::Usage, error).hint(
            "look at the `check.command` of the task files; if you trust them: --allow-task-commands, or \
             `verify.allow_task_commands = true` in the campaign",
        ));
    }
    if commands > 0 {
        hide_environment();
        if !global.quiet {
            talkln!("checks    {commands} tasks bring commands: {}", verify::sandbox_words());
        }
    }
    if let Some(part) = &arguments.shard {
        return shard::work(part, arguments.changed, campaign, kept, begun, global);
    }
    let out = begun.out.clone();
    let done = conduct(campaign, begun, global)?;
    let finished = done.finish();
    if let Some(file) = junit {
        let failed = (finished.exit != Exit::Ok).then(|| format!("{}: {}", finished.exit.word(), finished.summary));
        let text = campaign::junit(&done.report, failed.as_deref())
            .map_err(|error| Failure::new(Exit::Recording, format!("cannot tell the report as JUnit: {error}")))?;
        file.write_aloud(&Masked::new(text))?;
    }
    if arguments.open {
        browser::open(&out.join("report.html").to_string_lossy());
    }
    if !global.quiet {
        if !done.concluded.is_complete() {
            talkln!("next      {}", next::line(arguments, &out, &done.concluded));
        }
        talkln!("report    {}   report.md, report.json beside it", out.join("report.html").display());
    }
    Ok(finished)
}

/// Bounds from the command line in the place of the file's.
fn bounded(limits: BudgetLimits, budget: &mut CampaignBudget) -> Result<(), Failure> {
    if limits.runs.is_some() {
        return Err(Failure::new(Exit::Usage, "--budget runs=… is for `trace` and `retry`"));
    }
    budget.calls = limits.budget.calls.or(budget.calls);
    budget.tokens = limits.budget.tokens.or(budget.tokens);
    budget.money = limits.budget.cost.or(budget.money);
    Ok(())
}

/// What a campaign is run with, from the command line.
pub(super) struct CampaignStart {
    pub(super) out: PathBuf,
    pub(super) earlier: ExistingContent,
    pub(super) directory: PathBuf,
    pub(super) only: Vec<regex::Regex>,
    pub(super) jobs: Option<std::num::NonZeroUsize>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) asking: AskingArgs,
    pub(super) equality: CampaignEquality,
}

/// Runs a campaign to its end, or until a signal.
pub(super) fn conduct(campaign: Campaign, begun: CampaignStart, global: &Global) -> Result<CampaignDone, Failure> {
    let (proxies, shown, out) = (proxies(&campaign, &begun)?, ShownProgress::new(global), begun.out.clone());
    let (options, stopping) = options(&campaign, begun, global)?;
    let running = campaign::run(Arc::new(campaign), proxies, options, &shown);
    let (done, signal) = settings::block_on(until_signalled(running, stopping))?;
    let (concluded, report) = done.map_err(|error| failure(error, &out))?;
    Ok(CampaignDone { concluded, report, signal })
}

/// What a campaign is run with, and what tells it to stop.
fn options(
    campaign: &Campaign,
    begun: CampaignStart,
    global: &Global,
) -> Result<(CampaignOptions, watch::Sender<Option<Signal>>), Failure> {
    settings::raise_file_limit();
    let program = std::env::current_exe().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    let (stopping, stop) = watch::channel(None);
    let options = CampaignOptions {
        tracer: CampaignTracer::of_campaign(campaign, begun.directory.clone(), begun.ca_file.clone(), global),
        judge: judge(campaign, begun.ca_file.as_ref())?,
        out: begun.out,
        earlier: begun.earlier,
        jobs: begun.jobs.map_or_else(cores, std::num::NonZero::get),
        only: begun.only,
        program,
        directory: begun.directory,
        rewriting: begun.asking.named(),
        equality: begun.equality,
        stop,
    };
    Ok((options, stopping))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

/// Waits for work to end; at a signal it is told to stop, and the signal's number is returned with what came of it.
async fn until_signalled<T>(
    running: impl Future<Output = Result<T, CampaignError>>,
    stopping: watch::Sender<Option<Signal>>,
) -> (Result<T, CampaignError>, Option<u8>) {
    let mut running = std::pin::pin!(running);
    tokio::select! {
        done = &mut running => (done, None),
        signal = interrupted() => {
            let _ = stopping.send(Some(signal));
            (running.await, Some(number(signal)))
        }
    }
}

/// What a campaign came to, and the signal that ended it.
pub(super) struct CampaignDone {
    pub(super) concluded: Concluded,
    pub(super) report: CampaignReport,
    pub(super) signal: Option<u8>,
}

/// What becomes of a directory that holds something already.
fn existing_content(arguments: &CampaignArgs) -> ExistingContent {
    let resumes = ExistingContent::Resume { changed: arguments.changed };
    if arguments.resume { resumes } else { ExistingContent::Refuse }
}

/// The directory that paths of a campaign file are relative to.
fn base_directory(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned())
}

fn read(file: &Path, arguments: &CampaignArgs) -> Result<(Campaign, CampaignSnapshot), Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display())))
        .map_err(|failure| {
            failure
                .hint("`aegis init DIR` writes a first campaign, `aegis init DIR --from RUN_DIR` one of a recorded run")
        })?;
    let (name, files) = (file.display().to_string(), NotedFiles::new(PlanFolder(base_directory(file))));
    let campaign = campaign::parse(&text, &name, &files);
    let mut campaign = campaign.map_err(|errors| Failure::new(Exit::Usage, errors))?;
    let kept = files.into_snapshot(name, text, arguments.upstream.clone());
    if let Some(limits) = arguments.budget {
        bounded(limits, &mut campaign.budget)?;
        if campaign.budget.money.is_some() && campaign.prices.is_empty() {
            let error = "`--budget money` bounds what calls cost, and the campaign has no `[[price]]`";
            return Err(Failure::new(Exit::Usage, error));
        }
    }
    campaign.upstream = arguments.upstream.clone().or(campaign.upstream);
    campaign.seed = arguments.seed.unwrap_or(campaign.seed);
    Ok((campaign, kept))
}

/// A proxy a system, each with the system's own configuration.
fn proxies(campaign: &Campaign, begun: &CampaignStart) -> Result<Vec<Proxy>, Failure> {
    let proxy = |(number, system): (usize, &campaign::CampaignSystem)| {
        let parsed = Config::parse(&system.config_text, system.config.as_deref().unwrap_or("aegis.toml"))?;
        let config = Config { file: system.config.as_ref().map(|file| begun.directory.join(file)), ..parsed };
        let arguments = ProxyArgs {
            upstream: campaign.upstream.clone(),
            log_dir: Some(begun.out.join("logs")),
            simulator_seed: campaign.seed,
            ca_file: begun.ca_file.clone(),
            asking: begun.asking.clone(),
            equality: begun.equality.rules.setting(),
            ..ProxyArgs::default()
        };
        let proxy = arguments.proxy_of(config, None)?.0;
        match campaign.asks_model(number).filter(|_| proxy.runs.model().is_none()) {
            Some(plan) => Err(asking::unnamed(&format!("the plan `{plan}` of system `{}`", system.name))),
            None => Ok(proxy),
        }
    };
    campaign.systems.iter().enumerate().map(proxy).collect()
}

/// Where a model judge is asked, if the file says so.
fn judge(campaign: &Campaign, ca_file: Option<&PathBuf>) -> Result<Option<Arc<dyn Upstream>>, Failure> {
    let Some(url) = campaign.judge.clone().filter(|_| campaign.asks_a_judge()) else { return Ok(None) };
    let arguments = ProxyArgs {
        upstream: Some(url),
        simulator_seed: campaign.seed,
        ca_file: ca_file.cloned(),
        ..ProxyArgs::default()
    };
    Ok(Some(arguments.proxy_of(Config::default(), None)?.0.upstream))
}

pub(super) fn failure(error: CampaignError, out: &Path) -> Failure {
    let out = out.display();
    match error {
        CampaignError::Recording(error) | CampaignError::Proxy(ProxyError::Recording(error)) => error.into(),
        CampaignError::Damaged { .. } | CampaignError::Unwritten { .. } | CampaignError::Dataset(_) => {
            Failure::new(Exit::Recording, error)
        }
        CampaignError::Exists(_) => Failure::new(Exit::Usage, error)
            .hint(format!("go on with `--resume`, or choose another `--out` than `{out}`")),
        CampaignError::NoShard(_) => Failure::new(Exit::Usage, error)
            .hint("`aegis campaign FILE --shard I/N --out DIR` makes DIR/shard-I-of-N"),
        CampaignError::OtherCampaign { .. } => Failure::new(Exit::Usage, error).hint(
            "make those shards again (`--changed` where no run of theirs is kept) with the file and the version of the others: \
             runs that are equal are kept, nothing is paid for twice",
        ),
        CampaignError::Nothing { .. } => {
            Failure::new(Exit::Usage, error).hint("leave out `--resume` to begin one there, or name where it lies: `--out DIR`")
        }
        CampaignError::OtherRuns { .. } => Failure::new(Exit::Usage, error).hint(
            "say what it was made with (`--upstream URL`, the file as it was), or choose another `--out`; with `--changed` \
             what is not there is made and paid for anew, and the data set is replaced",
        ),
        CampaignError::Unshared { .. }
        | CampaignError::Snapshot(_)
        | CampaignError::Directory { .. }
        | CampaignError::Locked(_)
        | CampaignError::NotOurs(_)
        | CampaignError::Launch { .. } => Failure::new(Exit::Usage, error),
        CampaignError::NoCall { .. } => Failure::new(Exit::Infrastructure, error).hint(
            "point the program at OPENAI_BASE_URL (or ANTHROPIC_BASE_URL): a URL in its own code wins over these",
        ),
        CampaignError::Listen(_) | CampaignError::Proxy(_) | CampaignError::Lost => {
            Failure::new(Exit::Infrastructure, error)
        }
    }
}

impl CampaignDone {
    /// The exit code and the last line, from one value.
    pub(super) fn finish(&self) -> Finished {
        let concluded = &self.concluded;
        let exit = match self.signal {
            Some(signal) => Exit::Signal(signal),
            None if concluded.exhausted => Exit::Budget,
            None if concluded.is_unreachable() => Exit::Infrastructure,
            None if concluded.delivered() == 0 && concluded.natural_labelled() == 0 => Exit::Finding,
            None => Exit::Ok,
        };
        Finished { exit, summary: concluded.line(), data: printed(&concluded.sums()) }
    }
}
