//! Servers of tools: those of aegis.toml, and those of `--mcp`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use clap::{Args, ValueEnum};

use super::{
    Exit, Failure,
    config::{Config, McpConfig},
};
use crate::{
    proxy::{HttpUpstream, OriginError, UpstreamOrigin, WithTools, upstream::Upstream},
    replay::Replayed,
    simulator::Simulator,
    surface::MCP_MOUNT,
    trajectory::RunId,
};

/// Options of `replay` about tools.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ToolsArgs {
    /// Who answers calls to tool servers ([[mcp]]): the recording, or the servers. Effects of a tool outside are not undone.
    #[arg(long, value_enum, default_value_t = ToolReplies::Recorded)]
    tools: ToolReplies,
}

/// Where the replies of tool servers come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ToolReplies {
    /// The recording.
    #[default]
    Recorded,
    /// The servers of the configuration.
    Live,
}

impl ToolsArgs {
    /// A replay whose tools answer as the option says.
    ///
    /// # Errors
    /// The configuration names no usable server.
    pub(super) fn on(&self, replayed: Replayed, config: Option<&Path>) -> Result<Replayed, Failure> {
        if self.tools == ToolReplies::Recorded {
            return Ok(replayed);
        }
        let servers = upstreams(&Config::load(config)?, &[], None)?;
        if servers.is_empty() {
            let error = "--tools live: no tool server is configured";
            return Err(Failure::new(Exit::Usage, error).hint("name it in aegis.toml: [[mcp]], with `name` and `url`"));
        }
        let none: Arc<dyn Upstream> = Arc::new(Simulator::new(0));
        Ok(replayed.with_live_tools(Arc::new(WithTools::new(none, servers))))
    }
}

/// The servers by name, those of the command line last.
///
/// # Errors
/// A name that no path can hold or that is given twice; an option of another form.
fn servers(config: &Config, options: &[String]) -> Result<BTreeMap<String, McpConfig>, Failure> {
    let usage = |error: String| Failure::new(Exit::Usage, error).hint("--mcp calc=http://127.0.0.1:9000/mcp");
    let mut servers = BTreeMap::new();
    let of_options = options.iter().map(|option| {
        let (name, url) =
            option.split_once('=').ok_or_else(|| usage(format!("--mcp `{option}`: expected NAME=URL")))?;
        Ok::<_, Failure>(McpConfig { name: name.to_owned(), url: url.to_owned(), key_env: None })
    });
    for server in config.mcp.iter().cloned().map(Ok).chain(of_options) {
        let server = server?;
        // A run's name is a segment of a path too.
        if RunId::parse(&server.name).is_err() {
            return Err(usage(format!(
                "tool server `{}`: a name is 1 to 64 of A-Z a-z 0-9 . _ -, not starting with . _ or -",
                server.name.escape_debug()
            )));
        }
        if let Some(earlier) = servers.insert(server.name.clone(), server) {
            return Err(usage(format!("tool server `{}` is given twice", earlier.name)));
        }
    }
    Ok(servers)
}

/// Their names.
///
/// # Errors
/// See [`servers`].
pub(super) fn names(config: &Config, options: &[String]) -> Result<BTreeSet<String>, Failure> {
    servers(config, options).map(|servers| servers.into_keys().collect())
}

/// Each as an upstream of its own.
///
/// # Errors
/// As [`servers`]; a URL, a token or certificates that cannot be used.
pub(super) fn upstreams(
    config: &Config,
    options: &[String],
    ca_file: Option<&Path>,
) -> Result<BTreeMap<String, Arc<dyn Upstream>>, Failure> {
    let servers = servers(config, options)?;
    if servers.is_empty() {
        return Ok(BTreeMap::new());
    }
    let timeout = config.limits()?.silence_timeout;
    let ca_file = ca_file.or(config.upstream.ca_file.as_deref());
    let upstream = |(name, server): (String, McpConfig)| {
        let failed = |error: OriginError| Failure::new(Exit::Usage, format!("tool server `{name}`: {error}"));
        let key = server.key_env.as_ref().map(|variable| {
            std::env::var(variable)
                .map(|key| (variable.as_str(), key))
                .map_err(|_| OriginError::KeyMissing(variable.clone()))
        });
        let key = key.transpose().map_err(failed)?;
        let key = key.as_ref().map(|(variable, key)| (*variable, key.as_str()));
        let origin = UpstreamOrigin::mounted(&server.url, key, format!("{MCP_MOUNT}{name}")).map_err(failed)?;
        let server = HttpUpstream::new(origin, Vec::new(), ca_file, timeout).map_err(failed)?;
        Ok((name, server.shared()))
    };
    servers.into_iter().map(upstream).collect()
}
