//! `aegis doctor`: what of the set-up works, what does not, what to do. No model is asked, and no key is shown.

use std::{
    net::{TcpListener, TcpStream, ToSocketAddrs},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use clap::Args;
use nix::sys::{
    resource::{Resource, getrlimit},
    statvfs::statvfs,
};
use serde::Serialize;

use crate::{
    cli::{
        Config, Failure, escape,
        screen::{Colour, Screen},
        settings::{self, ProxyArgs},
    },
    launch::{Ending, Launch},
};

/// Where `serve` listens if nobody says otherwise.
const LISTEN: &str = "127.0.0.1:8484";
/// Descriptors that a busy proxy may need: two a call under way, one a run.
const DESCRIPTORS: u64 = 4096;
/// Free room below which a recording may fail soon, in bytes.
const ROOM: u64 = 1 << 30;
/// Longest wait for an upstream to take a connection.
const CONNECT: Duration = Duration::from_secs(3);
/// Longest wait for an interpreter to import an SDK.
const IMPORT: Duration = Duration::from_secs(30);
/// A base URL that no SDK has by itself.
const MARK: &str = "http://127.0.0.1:9/marked/v1";

/// What asks an SDK where it would send its calls: what it is, the program, its arguments.
const SDKS: &[(&str, &str, &[&str])] = &[
    ("openai (Python)", "python3", &["-c", "import openai; print(openai.__version__, openai.OpenAI().base_url)"]),
    (
        "anthropic (Python)",
        "python3",
        &["-c", "import anthropic; print(anthropic.__version__, anthropic.Anthropic().base_url)"],
    ),
    (
        "openai (Node)",
        "node",
        &[
            "-e",
            "const s = require('openai'); const c = new s.OpenAI(); console.log(require('openai/version').VERSION, c.baseURL)",
        ],
    ),
];

/// Options of `doctor`.
#[derive(Debug, Args)]
pub(in crate::cli) struct DoctorArgs {
    /// Upstream to check, as for `run`.
    #[arg(long, env = "AEGIS_UPSTREAM", value_name = "URL")]
    upstream: Option<String>,
    /// Directory for recordings.
    #[arg(long, env = "AEGIS_LOG_DIR", value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Configuration file. Default: ./aegis.toml.
    #[arg(long, env = "AEGIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Health {
    /// It works.
    Well,
    /// It works, and something about it may surprise.
    Note,
    /// It does not work.
    Wrong,
}

/// What was looked at.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cli) struct Examined {
    what: &'static str,
    health: Health,
    says: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Examined {
    fn new(what: &'static str, health: Health, says: impl Into<String>) -> Self {
        Self { what, health, says: says.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(super) fn is_wrong(&self) -> bool {
        self.health == Health::Wrong
    }

    /// In words, the first in its colour.
    pub(super) fn painted(&self, screen: Screen) -> String {
        let (word, colour) = match self.health {
            Health::Well => ("ok", Colour::Good),
            Health::Note => ("note", Colour::Strong),
            Health::Wrong => ("WRONG", Colour::Bad),
        };
        let hint = self.hint.as_ref().map(|hint| format!("\n{:27}do: {hint}", "")).unwrap_or_default();
        let word = screen.paint(colour, &format!("{word:<5}"));
        format!("{word}  {:<18}  {}\n", self.what, escape(&format!("{}{hint}", self.says)))
    }
}

/// Looks at everything, in the order in which it matters.
///
/// # Errors
/// The configuration cannot be read: it says so itself.
pub(super) fn examine(arguments: &DoctorArgs) -> Result<Vec<Examined>, Failure> {
    let config = Config::load(arguments.config.as_deref())?;
    let proxy =
        ProxyArgs { upstream: arguments.upstream.clone(), log_dir: arguments.log_dir.clone(), ..ProxyArgs::default() };
    let (url, from) = proxy.destination(&config);
    let mut found = vec![
        binary(),
        port(config.listen.as_deref().unwrap_or(LISTEN)),
        upstream(&url, &from),
        key(&url, config.upstream.key_env.as_deref()),
        descriptors(),
        disk(&proxy.log_dir(&config)),
        clock(),
    ];
    for (what, program, arguments) in SDKS {
        found.push(settings::block_on(sdk(what, program, arguments))?);
    }
    Ok(found)
}

fn binary() -> Examined {
    let Ok(own) = std::env::current_exe() else {
        return Examined::new("aegis", Health::Note, concat!("version ", env!("CARGO_PKG_VERSION")));
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path).map(|dir| dir.join("aegis")).find(|path| path.is_file());
    let says = format!("version {}, {}", env!("CARGO_PKG_VERSION"), own.display());
    match first.and_then(|first| first.canonicalize().ok()) {
        Some(first) if own.canonicalize().is_ok_and(|own| own == first) => Examined::new("aegis", Health::Well, says),
        Some(first) => Examined::new("aegis", Health::Note, format!("{says}; `aegis` on PATH is {}", first.display())),
        None => Examined::new("aegis", Health::Note, format!("{says}; not on PATH"))
            .hint(format!("add {} to PATH", own.parent().unwrap_or(Path::new("/")).display())),
    }
}

fn port(listen: &str) -> Examined {
    match TcpListener::bind(listen) {
        Ok(_) => Examined::new("port", Health::Well, format!("{listen} is free for `aegis serve`")),
        Err(error) => Examined::new("port", Health::Note, format!("`aegis serve` cannot have {listen}: {error}"))
            .hint("`aegis serve --listen 127.0.0.1:0` takes a free one; `aegis run` always does"),
    }
}

fn upstream(url: &str, from: &str) -> Examined {
    const WHAT: &str = "upstream";
    if url == "simulator" {
        return Examined::new(WHAT, Health::Well, format!("the embedded simulator  ({from})"));
    }
    let wrong =
        |says: String| Examined::new(WHAT, Health::Wrong, says).hint("--upstream URL, or [upstream] of aegis.toml");
    let Some((host, port)) = host_and_port(url) else {
        return wrong(format!("`{url}` is no base URL: expected http://… or https://…  ({from})"));
    };
    let addresses = match (host.as_str(), port).to_socket_addrs() {
        Ok(addresses) => addresses.collect::<Vec<_>>(),
        Err(error) => return wrong(format!("{url}: the name {host} is not found: {error}  ({from})")),
    };
    let reached = addresses.iter().any(|address| TcpStream::connect_timeout(address, CONNECT).is_ok());
    if reached {
        Examined::new(WHAT, Health::Well, format!("{url} takes connections; no call was made  ({from})"))
    } else {
        wrong(format!("{url}: nobody takes connections at {host}:{port}  ({from})"))
    }
}

fn host_and_port(url: &str) -> Option<(String, u16)> {
    let uri: hyper::Uri = url.parse().ok()?;
    let port = match uri.scheme_str()? {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    Some((host, uri.port_u16().unwrap_or(port)))
}

fn key(url: &str, key_env: Option<&str>) -> Examined {
    const WHAT: &str = "key";
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if let Some(name) = key_env {
        return if is_set(&name) {
            Examined::new(WHAT, Health::Well, format!("{name} is set ([upstream] key_env)"))
        } else {
            Examined::new(WHAT, Health::Wrong, format!("{name} is not set ([upstream] key_env)"))
                .hint(format!("export {name}=…"))
        };
    }
    let set: Vec<&str> = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"].into_iter().filter(is_set).collect();
    match set.as_slice() {
        [] if url == "simulator" => Examined::new(WHAT, Health::Well, "none is needed"),
        [] => Examined::new(
            WHAT,
            Health::Note,
            "neither OPENAI_API_KEY nor ANTHROPIC_API_KEY is set: programs get a dummy",
        )
        .hint("export the key that your upstream wants, if it wants one"),
        set => {
            Examined::new(WHAT, Health::Well, format!("{} set; programs send it, Aegis passes it on", set.join(", ")))
        }
    }
}

fn descriptors() -> Examined {
    const WHAT: &str = "descriptors";
    match getrlimit(Resource::RLIMIT_NOFILE) {
        // The soft limit is raised by itself.
        Ok((_, hard)) if hard >= DESCRIPTORS => Examined::new(WHAT, Health::Well, format!("up to {hard}")),
        Ok((_, hard)) => Examined::new(WHAT, Health::Note, format!("up to {hard}: many agents at once may need more"))
            .hint(format!("ulimit -Hn {DESCRIPTORS}")),
        Err(error) => Examined::new(WHAT, Health::Note, format!("the limit is not known: {error}")),
    }
}

fn disk(log_dir: &Path) -> Examined {
    const WHAT: &str = "disk";
    let there = log_dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("."));
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let wrong = |error: &dyn std::fmt::Display| {
        Examined::new(WHAT, Health::Wrong, format!("recordings cannot be written to {}: {error}", log_dir.display()))
            .hint("--log-dir DIR")
    };
    if let Err(error) = tempfile::tempfile_in(there) {
        return wrong(&error);
    }
    match statvfs(there) {
        Ok(found) => {
            let free = found.blocks_available().saturating_mul(found.fragment_size());
            let says = format!("{} can be written, {} MB free", log_dir.display(), free >> 20);
            let health = if free < ROOM { Health::Note } else { Health::Well };
            Examined::new(WHAT, health, says)
        }
        Err(error) => wrong(&error),
    }
}

/// A clock that is older than the program is wrong; certificates are not believed then.
fn clock() -> Examined {
    let made = std::env::current_exe().and_then(|path| path.metadata()).and_then(|own| own.modified());
    let now = jiff::Timestamp::now().to_string();
    match made {
        Ok(made) if made > SystemTime::now() => {
            Examined::new("clock", Health::Wrong, format!("{now} is before this program was made"))
                .hint("set the clock: certificates are refused by it, and recordings are dated by it")
        }
        _ => Examined::new("clock", Health::Well, now),
    }
}

/// Asks an SDK of this directory's environment where it would send its calls.
async fn sdk(what: &'static str, program: &str, arguments: &[&str]) -> Examined {
    let variables = [
        ("OPENAI_BASE_URL", MARK),
        ("ANTHROPIC_BASE_URL", MARK),
        ("OPENAI_API_KEY", "sk-none"),
        ("ANTHROPIC_API_KEY", "sk-none"),
    ];
    let launch = Launch {
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        limit: Some(IMPORT),
        input: Some(Vec::new()),
        hush: true,
        ..Launch::new(std::iter::once(program).chain(arguments.iter().copied()).map(Into::into).collect())
    };
    let Ok(ended) = launch.run(std::future::pending()).await else {
        return Examined::new(what, Health::Note, format!("no {program} here"));
    };
    let said = String::from_utf8_lossy(&ended.output).trim().to_owned();
    match (ended.ending, said.split_once(' ')) {
        (Ending::Exited(0), Some((version, url))) if url.starts_with(MARK.trim_end_matches("/v1")) => {
            Examined::new(what, Health::Well, format!("{version} follows the variable"))
        }
        (Ending::Exited(0), Some((version, url))) => {
            Examined::new(what, Health::Wrong, format!("{version} does not follow the variable: it would ask {url}"))
                .hint("give the client base_url=os.environ[\"OPENAI_BASE_URL\"]")
        }
        (Ending::TimedOut, _) => Examined::new(what, Health::Note, format!("not loaded within {} s", IMPORT.as_secs())),
        _ => Examined::new(what, Health::Note, format!("not found by the {program} of this environment")),
    }
}
