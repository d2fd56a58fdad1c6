//! `aegis.toml`: who is who, where requests go, bounds. Flags and `AEGIS_*` variables win over it.

mod limits;
mod server;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;

use super::{Exit, Failure, asking::ManipulatorConfig, ending::absent_config};
use crate::{
    identity::{Dialects, Hints, Identity, Roster, RosterRule},
    plan::{PlanError, Problem},
    proof::ProofConfig,
    proxy::{BodyMemory, Gate, Limits},
    recording::{Durability, MachineKey, Redactor, Secrets, Settings, keys_of_environment},
    trajectory::nearest,
};

pub(super) use limits::LimitsConfig;
pub(super) use server::ServerConfig;

/// Version of the file's format that this build reads.
const FORMAT: u32 = 1;
/// The file in the working directory that is read without being named.
const LOCAL: &str = "aegis.toml";

/// The file. Every key is optional.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Format of the file: 1.
    pub format: Option<u32>,
    /// Address to listen on.
    pub listen: Option<String>,
    /// Directory for recordings.
    pub log_dir: Option<PathBuf>,
    /// Upstream.
    pub upstream: UpstreamConfig,
    /// Model for manipulators.
    pub manipulator: ManipulatorConfig,
    /// Further upstreams, selected by model.
    pub route: Vec<RouteConfig>,
    /// Servers of tools that speak MCP.
    pub mcp: Vec<ServerConfig>,
    /// Peers that speak A2A.
    pub a2a: Vec<ServerConfig>,
    /// Headers and fields that name runs and agents.
    pub hints: Hints,
    /// Built-in recognition of agents.
    pub identity: IdentityConfig,
    /// Roster: rules that identify agents.
    pub agent: Vec<RosterRule>,
    /// Executions of a proof or a trace.
    pub proof: ProofConfig,
    /// Limits.
    pub limits: LimitsConfig,
    /// What recordings survive.
    pub durability: Option<DurabilityConfig>,
    /// Host names that the proxy answers to, besides addresses and loopback names.
    pub allowed_hosts: Vec<String>,
    /// Allowed origins of web pages, for example `http://localhost:3000`.
    pub allowed_origins: Vec<String>,
    /// Environment variable with the token that clients must send.
    pub token_env: Option<String>,
    /// Settings of `aegis serve`.
    pub serve: ServeConfig,
    /// What is masked in recordings, besides what looks like a key.
    pub secrets: SecretsConfig,
    /// OpenTelemetry collector that gets a span per call.
    pub otlp: Option<OtlpConfig>,
    /// Settings of `aegis test`.
    pub test: TestConfig,
    /// The file that this was read from.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

/// `[identity]`.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IdentityConfig {
    /// Built-in patterns of agent names to disable, by name.
    pub dialects_off: Vec<String>,
}

/// `[serve]`.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServeConfig {
    /// Tokens file: users with a token each, who see nothing of each other (`aegis token`).
    pub tokens: Option<PathBuf>,
}

/// `[test]`.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TestConfig {
    /// Rules whose findings are accepted, for example `crashed`.
    pub allow: Vec<String>,
}

/// `[upstream]`.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamConfig {
    /// `http://…`, `https://…` or `simulator`.
    pub url: Option<String>,
    /// Environment variable with the key to use instead of the client's, in the header in which the client sends its own.
    pub key_env: Option<String>,
    /// PEM file of additional certificates to trust.
    pub ca_file: Option<PathBuf>,
}

/// `[secrets]`: what is masked in recordings, besides the keys in use and everything that looks like a key.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsConfig {
    /// Environment variables whose values are masked.
    pub env: Vec<String>,
    /// Values that are masked, at least 4 bytes long.
    pub values: Vec<String>,
    /// Regular expressions of what is masked.
    pub patterns: Vec<String>,
    /// Regular expressions of what is never masked; each must match the whole.
    pub keep: Vec<String>,
}

/// `[otlp]`: each call is sent to an OpenTelemetry collector over HTTP when it ends.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtlpConfig {
    /// Collector, for example `http://127.0.0.1:4318`; spans go to `/v1/traces` below it.
    pub endpoint: String,
    /// Environment variable with the collector's key, sent as `Authorization: Bearer`.
    pub key_env: Option<String>,
    /// Whether spans include content, with keys masked.
    #[serde(default)]
    pub content: bool,
}

/// `[[route]]`: requests for some models go elsewhere.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// Name of the model; `*` stands for any text.
    pub model: String,
    /// `http://…` or `https://…`.
    pub url: String,
    /// Environment variable with its key, sent in the header in which the client sends its own. The client's key is never sent there.
    pub key_env: Option<String>,
}

/// What a recording survives.
#[derive(Debug, Clone, Copy, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityConfig {
    /// `kill -9` of the proxy.
    Written,
    /// Loss of power.
    Synced,
}

impl Config {
    /// Reads the named file, else `./aegis.toml`, else the user's `aegis/config.toml`, else nothing.
    ///
    /// # Errors
    /// A file that was named is missing, a file is not a configuration, or one that was only found in the working
    /// directory says what it needs to be named for.
    pub fn load(named: Option<&Path>) -> Result<Self, Failure> {
        let user = || {
            let home = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")));
            home.map(|home| home.join("aegis").join("config.toml"))
        };
        let path = match named {
            Some(path) => path.to_owned(),
            None => match [Some(PathBuf::from(LOCAL)), user()].into_iter().flatten().find(|path| path.is_file()) {
                Some(path) => path,
                None => return Ok(Self::default()),
            },
        };
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", path.display())))
            .map_err(|failure| if path.exists() { failure } else { failure.hint(absent_config(&path, LOCAL)) })?;
        let config = Self { file: Some(path.clone()), ..Self::parse(&text, &path.display().to_string())? };
        if named.is_none() && path == Path::new(LOCAL) {
            config.check_found()?;
        }
        Ok(config)
    }

    /// Whether a file that lay in the working directory keeps to what such a file may say. It may be another person's,
    /// come with a repository: it tells agents apart, and has no word in where calls, keys and recordings go, what is read of a key,
    /// whose words an edit or a neutral change says, or who may ask.
    fn check_found(&self) -> Result<(), Failure> {
        let said = [
            ("log_dir", self.log_dir.is_some()),
            ("[upstream] url", self.upstream.url.is_some()),
            ("[upstream] key_env", self.upstream.key_env.is_some()),
            ("[upstream] ca_file", self.upstream.ca_file.is_some()),
            ("[[route]]", !self.route.is_empty()),
            ("[[mcp]]", !self.mcp.is_empty()),
            ("[[a2a]]", !self.a2a.is_empty()),
            ("[manipulator] url", self.manipulator.url.is_some()),
            ("[manipulator] key_env", self.manipulator.key_env.is_some()),
            ("[manipulator] templates", self.manipulator.templates.is_some()),
            ("[proof] sentences", !self.proof.sentences.is_empty()),
            ("[hints] key", self.hints.uses_keys()),
            ("token_env", self.token_env.is_some()),
            ("[serve] tokens", self.serve.tokens.is_some()),
            ("[secrets] keep", !self.secrets.keep.is_empty()),
            ("[secrets] env", !self.secrets.env.is_empty()),
            ("allowed_hosts", !self.allowed_hosts.is_empty()),
            ("allowed_origins", !self.allowed_origins.is_empty()),
            ("[otlp]", self.otlp.is_some()),
        ];
        let said: Vec<&str> = said.iter().filter(|(_, is_said)| *is_said).map(|(key, _)| *key).collect();
        if said.is_empty() {
            return Ok(());
        }
        let error = format!(
            "`./{LOCAL}` was found, not named, and it says where calls, keys or recordings go, what is sent, or who may ask: {}",
            said.join(", ")
        );
        Err(Failure::new(Exit::Usage, error)
            .hint(format!("read it, and name it if it is yours: --config ./{LOCAL} (or AEGIS_CONFIG=./{LOCAL})")))
    }

    /// Reads a file's text; `name` is how messages call it.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn parse(text: &str, name: &str) -> Result<Self, Failure> {
        let config: Self =
            toml::from_str(text).map_err(|error| Failure::new(Exit::Usage, located(name, text, &error)))?;
        let refuse = |error: String| Failure::new(Exit::Usage, format!("{name}: {error}"));
        match config.format {
            None | Some(FORMAT) => {}
            Some(other) => {
                return Err(refuse(format!("format {other} is not one this build reads: expected {FORMAT}")));
            }
        }
        config.hints.check().map_err(|error| refuse(error.to_string()))?;
        Ok(config)
    }

    /// Who is who.
    ///
    /// # Errors
    /// A roster rule that cannot be used.
    pub fn identity(&self) -> Result<Identity, Failure> {
        let roster = Roster::new(self.agent.clone()).map_err(|error| Failure::new(Exit::Usage, error))?;
        let dialects = Dialects::without(&self.identity.dialects_off);
        let dialects =
            dialects.map_err(|error| Failure::new(Exit::Usage, format!("[identity] dialects_off: {error}")))?;
        Ok(Identity { hints: self.hints.clone(), roster, dialects, lineage: None })
    }

    /// Who may ask; the token of a listener is the listener's to add.
    ///
    /// # Errors
    /// An origin that no browser would name so.
    pub fn gate(&self) -> Result<Gate, Failure> {
        for origin in &self.allowed_origins {
            let plain = origin.split_once("://").is_some_and(|(scheme, host)| {
                !scheme.is_empty() && !host.is_empty() && !host.contains(['/', '*', '@', '?', ' '])
            });
            if !plain {
                let error =
                    format!("allowed_origins: `{origin}` is no origin: expected SCHEME://HOST[:PORT] and no path");
                return Err(Failure::new(Exit::Usage, error));
            }
        }
        Ok(Gate { hosts: self.allowed_hosts.clone(), origins: self.allowed_origins.clone(), ..Gate::default() })
    }

    /// The bounds.
    ///
    /// # Errors
    /// A time that is no time.
    pub fn limits(&self) -> Result<Limits, Failure> {
        let defaults = Limits::default();
        let given = &self.limits;
        let times: BTreeMap<&str, Option<f64>> = BTreeMap::from([
            ("head_timeout_s", given.head_timeout_s),
            ("body_timeout_s", given.body_timeout_s),
            ("upstream_timeout_s", given.upstream_timeout_s),
            ("write_timeout_s", given.write_timeout_s),
            ("tunnel_idle_s", given.tunnel_idle_s),
            ("room_wait_s", given.room_wait_s),
            ("drain_s", given.drain_s),
        ]);
        let time = |name: &str, default: Duration| match times.get(name).copied().flatten() {
            None => Ok(default),
            Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| {
                Failure::new(Exit::Usage, format!("`limits.{name}` is not a time: expected seconds, got `{seconds}`"))
            }),
        };
        Ok(Limits {
            max_body_bytes: given.max_body_bytes.unwrap_or(defaults.max_body_bytes),
            max_upload_bytes: defaults.max_upload_bytes,
            memory: given.memory.map_or(defaults.memory, BodyMemory::with_bytes),
            max_connections: given.max_connections.unwrap_or(defaults.max_connections),
            max_streams: given.max_streams.unwrap_or(defaults.max_streams),
            head_timeout: time("head_timeout_s", defaults.head_timeout)?,
            body_timeout: time("body_timeout_s", defaults.body_timeout)?,
            silence_timeout: time("upstream_timeout_s", defaults.silence_timeout)?,
            write_timeout: time("write_timeout_s", defaults.write_timeout)?,
            max_tunnels: given.max_tunnels.unwrap_or(defaults.max_tunnels),
            tunnel_idle: time("tunnel_idle_s", defaults.tunnel_idle)?,
            room_wait: time("room_wait_s", defaults.room_wait)?,
            drain: time("drain_s", defaults.drain)?,
        })
    }

    /// How recordings are made: what they survive, and what is masked in them. The keys in use are.
    ///
    /// # Errors
    /// A variable that is not set, a value too short to be looked for, a pattern that is none.
    pub fn recording(&self) -> Result<Settings, Failure> {
        let refuse = |error: String| Failure::new(Exit::Usage, error);
        let named = [&self.upstream.key_env, &self.manipulator.key_env, &self.token_env].into_iter();
        let named = named.chain(self.otlp.iter().map(|otlp| &otlp.key_env));
        let in_use = named
            .chain(self.route.iter().map(|route| &route.key_env))
            .chain(self.mcp.iter().chain(&self.a2a).map(|server| &server.key_env))
            .flatten();
        let in_use = in_use.map(String::as_str).chain(["AEGIS_TOKEN", "AEGIS_CONTROL_TOKEN"]);
        // What is shorter is a placeholder, and a word of texts.
        let mut values: Vec<String> =
            in_use.filter_map(|name| std::env::var(name).ok()).filter(|key| key.len() >= 8).collect();
        for name in &self.secrets.env {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty());
            values.push(value.ok_or_else(|| refuse(format!("[secrets] env: the variable `{name}` is not set")))?);
        }
        let environment = (!self.hints.uses_keys()).then(keys_of_environment);
        values.extend(self.secrets.values.iter().cloned().chain(environment.into_iter().flatten()));
        if let Some(short) = values.iter().map(String::len).find(|length| *length < 4) {
            let why = "would be found everywhere: expected 4 and more";
            return Err(refuse(format!("[secrets]: a value of {short} bytes {why}")));
        }
        let (patterns, keep) = (self.secrets.patterns.clone(), self.secrets.keep.clone());
        let secrets = Secrets { values, patterns, keep, keys_are_names: self.hints.uses_keys() };
        let redactor = Redactor::new(&secrets).map_err(|error| refuse(error.to_string()))?.for_process();
        let (durability, machine) = (self.durability(), MachineKey::of_user());
        Ok(Settings { durability, redactor, machine, ..Settings::default() })
    }

    /// What a record survives.
    pub fn durability(&self) -> Durability {
        match self.durability {
            Some(DurabilityConfig::Synced) => Durability::Synced,
            _ => Durability::Written,
        }
    }
}

/// The error with its place, in the form in which plans say theirs.
fn located(name: &str, text: &str, error: &toml::de::Error) -> PlanError {
    let span = error.span().unwrap_or_default();
    let message = error.message();
    // serde's words: unknown field `x`, expected one of `a`, `b`.
    let mut named = message.split('`').skip(1).step_by(2);
    let unknown = named.next().filter(|_| message.starts_with("unknown "));
    let near = unknown.and_then(|unknown| nearest(unknown, named));
    let hint = near.map(|near| format!("did you mean `{near}`?"));
    PlanError::new(name, text, vec![Problem { span, message: message.to_owned(), hint }])
}

#[cfg(test)]
mod tests;
