//! From flags and `aegis.toml` to a proxy: what `serve`, `run` and `demo` share.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;

use super::{
    Exit, Failure,
    asking::{self, AskingArgs},
    config::Config,
    escape, logging,
    servers::{self, ServerArgs},
    upstream_origin::{followed_by_others, origin},
};
use crate::{
    equality::EqualitySetting,
    identity::RosterRule,
    plan::{self, Plan},
    proxy::{HttpUpstream, Limits, NamedServers, Proxy, RunTemplate, Runs, WithServers, upstream::Upstream},
    replay::Rules,
    simulator::Simulator,
    surface,
    trajectory::RunId,
};

/// The public API, used when nothing else is named.
const PUBLIC_API: &str = "https://api.openai.com/v1";

/// Options of every verb that runs a proxy.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ProxyArgs {
    /// Upstream: http://…, https://… or `simulator`. Default: [upstream] of aegis.toml, `OPENAI_BASE_URL`, the public
    /// API.
    #[arg(long, env = "AEGIS_UPSTREAM", value_name = "URL")]
    pub upstream: Option<String>,
    /// Directory for recordings.
    #[arg(long, env = "AEGIS_LOG_DIR", value_name = "DIR")]
    pub log_dir: Option<PathBuf>,
    /// Configuration file. Default: ./aegis.toml.
    #[arg(long, env = "AEGIS_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub servers: ServerArgs,
    /// Seed of the simulator.
    #[arg(long, default_value_t = 7, value_name = "N")]
    pub simulator_seed: u64,
    /// Refuse `WebSocket`s: clients that speak HTTP, too, fall back to that.
    #[arg(long)]
    pub no_websocket: bool,
    /// PEM file of additional certificates to trust.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The plan; verbs that apply one take [`PlannedArgs`].
    #[arg(skip)]
    pub plan: Option<PathBuf>,
    /// The model that its manipulators may ask.
    #[arg(skip)]
    pub asking: AskingArgs,
    /// Whether the upstream is asked for log-probabilities; `run` and `serve` have a flag for it.
    #[arg(skip)]
    pub logprobs: bool,
    /// Who the agents of the run are that is executed again, where that was said after it was recorded.
    #[arg(skip)]
    pub(super) later_roster: Vec<RosterRule>,
    /// What is equal in its runs; verbs that execute take `MatchArgs`.
    #[arg(skip)]
    pub(super) equality: EqualitySetting,
}

/// Options of the verbs that apply a plan, beside those of the proxy: elsewhere nobody would look at them.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PlannedArgs {
    /// Injection plan: a file, or the name of a ready-made plan (`aegis plan ready`).
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub asking: AskingArgs,
}

impl PlannedArgs {
    /// The proxy with this plan.
    pub(super) fn on(&self, proxy: &ProxyArgs) -> ProxyArgs {
        ProxyArgs { plan: self.plan.clone(), asking: self.asking.clone(), ..proxy.clone() }
    }
}

impl ProxyArgs {
    /// Reads configuration and plan, and checks everything before a request can come.
    ///
    /// # Errors
    /// Whatever cannot be used, with the place and what was expected.
    pub(super) fn proxy(&self, run: Option<RunId>) -> Result<(Proxy, Config), Failure> {
        self.proxy_of(Config::load(self.config.as_deref())?, run)
    }

    /// The same with a configuration that was read already.
    ///
    /// # Errors
    /// Whatever cannot be used, with the place and what was expected.
    pub(super) fn proxy_of(&self, mut config: Config, run: Option<RunId>) -> Result<(Proxy, Config), Failure> {
        if config.agent.is_empty() {
            config.agent.clone_from(&self.later_roster);
        }
        let plan = self.plan.as_deref().map(read_plan).transpose()?.map(Arc::new);
        let upstream = self.upstream(&config)?;
        let model = self.asking.asking(&config.manipulator, self.simulator_seed)?;
        if model.is_none() && plan.as_ref().is_some_and(|plan| plan.asks_model()) {
            return Err(asking::unnamed("the plan"));
        }
        let template = RunTemplate {
            log_dir: self.log_dir(&config),
            recording: config.recording()?,
            plan,
            upstream: upstream.name().to_owned(),
            base_url: Some(self.upstream_url(&config)),
            config: config.file.clone(),
            equality: self.equality.clone(),
        };
        let runs = if self.logprobs { Runs::new(template).asking_logprobs() } else { Runs::new(template) };
        let proxy = Proxy {
            identity: config.identity()?,
            upstream,
            runs: match model {
                Some(model) => Arc::new(runs.asking(model)),
                None => Arc::new(runs),
            },
            default_run: run,
            routes: config.route.iter().map(|route| pattern(&route.model)).collect::<Result<_, _>>()?,
            servers: servers::named(&config, &self.servers)?,
            gate: config.gate()?,
            limits: self.limits(&config)?,
        };
        Ok((proxy, config))
    }

    fn limits(&self, config: &Config) -> Result<Limits, Failure> {
        let limits = config.limits()?;
        Ok(if self.no_websocket { Limits { max_tunnels: 0, ..limits } } else { limits })
    }

    /// Where recordings go.
    pub(super) fn log_dir(&self, config: &Config) -> PathBuf {
        self.log_dir.clone().or_else(|| config.log_dir.clone()).unwrap_or_else(|| PathBuf::from("logs"))
    }

    /// Where executions of a recorded run lie, which are no runs of the user's: beneath it, or beneath its name where
    /// `--log-dir` says so.
    pub(super) fn beneath(&self, dir: &Path, run: &RunId) -> PathBuf {
        self.log_dir.as_ref().map_or_else(|| dir.to_owned(), |logs| logs.join(run.as_str()))
    }

    /// Where model calls go: `simulator`, or a base URL.
    pub(super) fn upstream_url(&self, config: &Config) -> String {
        self.destination(config).0
    }

    /// Where model calls go, and who said so.
    pub(super) fn destination(&self, config: &Config) -> (String, String) {
        if let Some(url) = &self.upstream {
            let inherited = std::env::var("AEGIS_UPSTREAM").is_ok_and(|inherited| inherited == *url);
            return (url.clone(), if inherited { "AEGIS_UPSTREAM" } else { "--upstream" }.to_owned());
        }
        if let Some(url) = &config.upstream.url {
            let file = config.file.as_deref().map_or_else(|| "aegis.toml".into(), Path::to_string_lossy);
            return (url.clone(), format!("[upstream] of {file}"));
        }
        match std::env::var("OPENAI_BASE_URL").ok().filter(|url| !url.is_empty()) {
            Some(url) => (url, "OPENAI_BASE_URL".to_owned()),
            None => (PUBLIC_API.to_owned(), "nothing names another upstream".to_owned()),
        }
    }

    /// Says where calls go, who said so, and with which key: the first line of a verb that sends some.
    pub(super) fn say_destination(&self, config: &Config) {
        let (url, from) = self.destination(config);
        let key = config.upstream.key_env.as_ref().map(|name| format!(", with the key in {name}"));
        let line = format!("calls go to {url}  ({from}{})", key.unwrap_or_default());
        logging::line(format_args!("{}", escape(&line)));
        for route in &config.route {
            let key = route.key_env.as_ref().map(|name| format!(", with the key in {name}")).unwrap_or_default();
            logging::line(format_args!(
                "{}",
                escape(&format!("  {}: to {}  ([[route]]{key})", route.model, route.url))
            ));
        }
    }

    /// Where calls go: models, and the servers of tools beside them.
    fn upstream(&self, config: &Config) -> Result<Arc<dyn Upstream>, Failure> {
        let models = self.models(config)?;
        let servers = servers::upstreams(config, &self.servers, self.ca_file.as_deref())?;
        // Without a server, too: one may be attached.
        Ok(Arc::new(WithServers::new(models, servers)))
    }

    fn models(&self, config: &Config) -> Result<Arc<dyn Upstream>, Failure> {
        let url = self.upstream_url(config);
        if url == "simulator" {
            return Ok(Arc::new(Simulator::new(self.simulator_seed)));
        }
        let usage = |error: crate::proxy::OriginError| Failure::new(Exit::Usage, error);
        if config.hints.uses_keys() && config.upstream.key_env.is_none() {
            let error = "API keys carry hints ([hints] key or keys), so they must not reach the upstream";
            return Err(Failure::new(Exit::Usage, error)
                .hint("name the variable that holds the upstream's key: [upstream] key_env = \"…\""));
        }
        is_base(&url)?;
        let default = origin(&url, config.upstream.key_env.as_deref()).map_err(usage)?;
        let routes = config.route.iter().map(|route| origin(&route.url, route.key_env.as_deref()));
        let routes = routes.collect::<Result<Vec<_>, _>>().map_err(usage)?;
        let ca_file = self.ca_file.as_deref().or(config.upstream.ca_file.as_deref());
        let timeout = config.limits()?.silence_timeout;
        if let Some(variable) = followed_by_others(&url) {
            tracing::warn!("{variable} is set and not followed: Aegis connects to the upstream itself");
        }
        HttpUpstream::new(default, routes, ca_file, timeout).map(HttpUpstream::shared).map_err(usage)
    }
}

/// A further model's upstream, beside the one that is proxied.
///
/// # Errors
/// The URL or its key cannot be used.
pub(super) fn other_upstream(
    url: &str,
    key_env: Option<&str>,
    proxy: &ProxyArgs,
) -> Result<Arc<dyn Upstream>, Failure> {
    if url == "simulator" {
        return Ok(Arc::new(Simulator::new(proxy.simulator_seed)));
    }
    is_base(url)?;
    let usage = |error: crate::proxy::OriginError| Failure::new(Exit::Usage, error);
    let timeout = crate::proxy::Limits::default().silence_timeout;
    let origin = origin(url, key_env).map_err(usage)?;
    HttpUpstream::new(origin, Vec::new(), proxy.ca_file.as_deref(), timeout).map(HttpUpstream::shared).map_err(usage)
}

/// Refuses the address of a call where that of an API is expected: programs append the call to it.
fn is_base(url: &str) -> Result<(), Failure> {
    let path = url.split_once("://").and_then(|(_, rest)| rest.get(rest.find('/')?..)).unwrap_or_default();
    let path = path.trim_end_matches('/');
    if surface::for_path("POST", path).is_none() {
        return Ok(());
    }
    let known = ["/chat/completions", "/completions", "/responses", "/messages", "/embeddings"];
    let base = known.iter().find_map(|call| url.trim_end_matches('/').strip_suffix(call)).unwrap_or(url);
    let error =
        format!("`{url}` is the address of one call, and a base URL is expected: programs append the call to it");
    Err(Failure::new(Exit::Usage, error).hint(format!("--upstream {base}")))
}

/// A pattern in which `*` stands for any text.
pub(super) fn pattern(pattern: &str) -> Result<regex::Regex, Failure> {
    let expression = pattern.split('*').map(regex::escape).collect::<Vec<_>>().join(".*");
    regex::Regex::new(&format!("^{expression}$")).map_err(|error| Failure::new(Exit::Usage, error))
}

/// Reads and checks a plan that is to be applied as it stands.
///
/// # Errors
/// Every error of the file, with line and column; injections that count in a recorded run.
fn read_plan(path: &Path) -> Result<Plan, Failure> {
    let plan = super::plan::read(path)?;
    plan::require_resolved(&plan, &path.display().to_string(), None)
        .map_err(|errors| Failure::new(Exit::Usage, errors))?;
    Ok(plan)
}

/// A proxy before an upstream that is no backend.
///
/// # Errors
/// The configuration cannot be used.
pub(super) fn offline(
    config: Option<&Path>,
    log_dir: Option<&Path>,
    upstream: Arc<dyn Upstream>,
    run: RunId,
) -> Result<Proxy, Failure> {
    let config = Config::load(config)?;
    let log_dir = log_dir.map(Path::to_owned).or_else(|| config.log_dir.clone());
    let template = RunTemplate {
        log_dir: log_dir.unwrap_or_else(|| PathBuf::from("logs")),
        recording: config.recording()?,
        plan: None,
        upstream: upstream.name().to_owned(),
        base_url: None,
        config: config.file.clone(),
        equality: EqualitySetting::default(),
    };
    Ok(Proxy {
        identity: config.identity()?,
        upstream,
        runs: Arc::new(Runs::new(template)),
        default_run: Some(run),
        routes: Vec::new(),
        servers: NamedServers::default(),
        gate: config.gate()?,
        limits: config.limits()?,
    })
}

/// A time limit in seconds, as given.
///
/// # Errors
/// It is negative or no number.
pub(super) fn time_limit(seconds: Option<f64>) -> Result<Option<Duration>, Failure> {
    let limit = seconds.map(Duration::try_from_secs_f64).transpose();
    limit.map_err(|error| Failure::new(Exit::Usage, format!("--timeout: {error}")))
}

/// Reads a number of seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>().map_err(|_| {
        let unit = text
            .strip_suffix(['s', 'm', 'h'])
            .and_then(|number| Some((number.parse::<f64>().ok()?, text.chars().last()?)));
        let factor = |unit| match unit {
            'h' => 3600.0,
            'm' => 60.0,
            _ => 1.0,
        };
        let meant = unit.map(|(number, unit)| format!(": {}", number * factor(unit))).unwrap_or_default();
        format!("expected seconds, without a unit{meant}")
    })
}

/// Normalisation rules: the built-in ones, or a file's.
///
/// # Errors
/// The file cannot be read, with line and column where it is wrong.
pub(super) fn rules(file: Option<&Path>) -> Result<Rules, Failure> {
    let Some(file) = file else { return Ok(Rules::default()) };
    let unread = |error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(unread)?;
    Rules::parse(&text, &file.display().to_string()).map_err(|error| Failure::new(Exit::Usage, error))
}

/// Runs asynchronous work on worker threads; `AEGIS_WORKERS` says how many (default: one a core).
///
/// # Errors
/// The threads cannot be started.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let workers = std::env::var("AEGIS_WORKERS").ok().and_then(|count| count.parse().ok()).filter(|count| *count > 0);
    block_on_workers(work, workers)
}

/// The same on this thread alone, where requests that come at the same time are taken in the order in which they came.
///
/// # Errors
/// As [`block_on`].
pub(super) fn block_on_one<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    block_on_workers(work, Some(1))
}

fn block_on_workers<T>(work: impl Future<Output = T>, workers: Option<usize>) -> Result<T, Failure> {
    let mut builder = match workers {
        // One worker needs no thread beside this one, and nothing that threads need to wake each other.
        Some(1) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if let Some(workers) = workers.filter(|count| *count > 1) {
        builder.worker_threads(workers);
    }
    let runtime = builder.enable_all().build().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    let done = runtime.block_on(work);
    // What nobody waits for any more, as the edit of a reply whose client was cut off, is left.
    runtime.shutdown_timeout(Duration::from_millis(500));
    Ok(done)
}

/// An opaque run id: nothing of task, agent or mode is in it.
pub(super) fn fresh_run_id() -> RunId {
    let now = jiff::Timestamp::now();
    let seed =
        format!("{}-{}-{}", now.as_nanosecond(), std::process::id(), std::thread::current().name().unwrap_or_default());
    RunId::hashed("r", seed.as_bytes())
}

/// Raises the limit of open files as far as it goes: an exchange takes two.
pub(super) fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// A token that nobody can guess: 128 random bits from the system.
pub(super) fn fresh_token() -> String {
    use std::{collections::hash_map::RandomState, hash::BuildHasher};
    // The standard library seeds each map's keys from the system's random source.
    let bits = || RandomState::new().hash_one(0u8);
    format!("{:016x}{:016x}", bits(), bits())
}
