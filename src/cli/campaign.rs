//! `aegis campaign FILE`: clean runs, injected runs, controls, labels, dataset, report.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use tokio::sync::watch;

use super::{
    Config, Exit, Failure, Finished, Global, progress::Shown, run::interrupted, settings, settings::ProxyArgs,
};
use crate::{
    campaign::{self, Beside, Campaign, CampaignError, Concluded, Earlier, Options},
    proxy::{Proxy, upstream::Upstream},
};

/// Options of `campaign`.
#[derive(Debug, Args)]
pub(super) struct CampaignArgs {
    /// The campaign: tasks, systems, plans, verification, budget.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where logs, dataset and report go; the campaign's name with `-run` if not said.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with what the directory holds: finished cells are not run again, and nothing is paid for twice.
    #[arg(long)]
    resume: bool,
    /// Cells at once; one a core if not said.
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Only these tasks: TASK or SYSTEM/TASK, `*` for any text; may be repeated.
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Where requests go, instead of what the file says.
    #[arg(long, env = "AEGIS_UPSTREAM", value_name = "URL")]
    upstream: Option<String>,
    /// PEM file of certificates to trust beside the system's.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

pub(super) fn run(arguments: &CampaignArgs, global: &Global) -> Result<Finished, Failure> {
    let campaign = read(arguments)?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}-run", campaign.name)));
    let earlier = if arguments.resume { Earlier::Resume } else { Earlier::Refuse };
    let directory = beside(&arguments.file);
    let only = arguments.only.iter().map(|pattern| settings::pattern(pattern)).collect::<Result<_, _>>()?;
    let begun = Begun { out, earlier, directory, only, jobs: arguments.jobs, ca_file: arguments.ca_file.clone() };
    let (concluded, signal) = conduct(campaign, begun, global)?;
    Ok(finished(&concluded, signal))
}

/// What a campaign is run with, from the command line.
pub(super) struct Begun {
    pub(super) out: PathBuf,
    pub(super) earlier: Earlier,
    pub(super) directory: PathBuf,
    pub(super) only: Vec<regex::Regex>,
    pub(super) jobs: Option<std::num::NonZeroUsize>,
    pub(super) ca_file: Option<PathBuf>,
}

/// Runs a campaign to its end, or until a signal.
pub(super) fn conduct(campaign: Campaign, begun: Begun, global: &Global) -> Result<(Concluded, Option<u8>), Failure> {
    settings::raise_file_limit();
    let program = std::env::current_exe().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    let cores = || std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let proxies = proxies(&campaign, &begun)?;
    let shown = Shown::new(global);
    let (stopping, stop) = watch::channel(false);
    let options = Options {
        out: begun.out.clone(),
        earlier: begun.earlier,
        jobs: begun.jobs.map_or_else(cores, std::num::NonZero::get),
        only: begun.only,
        judge: judge(&campaign, begun.ca_file.as_ref())?,
        program,
        directory: begun.directory,
        stop,
    };
    let (concluded, signal) = settings::block_on(async move {
        let running = campaign::run(Arc::new(campaign), proxies, options, &shown);
        let mut running = std::pin::pin!(running);
        tokio::select! {
            done = &mut running => (done, None),
            signal = interrupted() => {
                let _ = stopping.send(true);
                (running.await, Some(signal))
            }
        }
    })?;
    Ok((concluded.map_err(|error| failure(error, &begun.out))?, signal))
}

/// The directory that paths of a campaign file are relative to.
fn beside(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned())
}

fn read(arguments: &CampaignArgs) -> Result<Campaign, Failure> {
    let file = &arguments.file;
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display())))?;
    let campaign = campaign::parse(&text, &file.display().to_string(), &Beside(beside(file)));
    let mut campaign = campaign.map_err(|errors| Failure::new(Exit::Usage, errors))?;
    campaign.upstream = arguments.upstream.clone().or(campaign.upstream);
    Ok(campaign)
}

/// A proxy a system, each with the system's own configuration.
fn proxies(campaign: &Campaign, begun: &Begun) -> Result<Vec<Proxy>, Failure> {
    let proxy = |system: &campaign::System| {
        let config = Config::parse(&system.config_text, system.config.as_deref().unwrap_or("aegis.toml"))?;
        let arguments = ProxyArgs {
            upstream: campaign.upstream.clone(),
            log_dir: Some(begun.out.join("logs")),
            simulator_seed: campaign.seed,
            ca_file: begun.ca_file.clone(),
            ..ProxyArgs::default()
        };
        Ok(arguments.proxy_of(config, None)?.0)
    };
    campaign.systems.iter().map(proxy).collect()
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

fn failure(error: CampaignError, out: &Path) -> Failure {
    let out = out.display();
    match error {
        CampaignError::Recording(error) => error.into(),
        CampaignError::Damaged { .. } => Failure::new(Exit::Recording, error),
        CampaignError::Exists(_) => Failure::new(Exit::Usage, error)
            .hint(format!("go on with `--resume`, or choose another `--out` than `{out}`")),
        CampaignError::Dataset(_) => Failure::new(Exit::Recording, error),
        CampaignError::Directory { .. } | CampaignError::Locked(_) | CampaignError::Launch { .. } => {
            Failure::new(Exit::Usage, error)
        }
        CampaignError::NoCall { .. } => Failure::new(Exit::Infrastructure, error).hint(
            "point the program at OPENAI_BASE_URL (or ANTHROPIC_BASE_URL): a URL in its own code wins over these",
        ),
        CampaignError::Listen(_) | CampaignError::Proxy(_) | CampaignError::Lost => {
            Failure::new(Exit::Infrastructure, error)
        }
    }
}

/// The exit code and the last line, from one value.
pub(super) fn finished(concluded: &Concluded, signal: Option<u8>) -> Finished {
    let exit = match signal {
        Some(signal) => Exit::Signal(signal),
        None if concluded.exhausted => Exit::Budget,
        None if concluded.is_unreachable() => Exit::Infrastructure,
        None if concluded.delivered() == 0 => Exit::Finding,
        None => Exit::Ok,
    };
    Finished { exit, summary: concluded.line(), data: concluded.data() }
}
