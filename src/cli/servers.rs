//! Servers of tools and peers: those of aegis.toml, and those of `--mcp` and `--a2a`.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use clap::{Args, ValueEnum};

use super::{
    Exit, Failure,
    config::{Config, ServerConfig},
};
use crate::{
    proxy::{HttpUpstream, NamedServers, OriginError, UpstreamOrigin, WithServers, upstream::Upstream},
    replay::Replayed,
    simulator::Simulator,
    trajectory::RunId,
};

/// Options of `replay` about tools.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ToolsArgs {
    /// Who answers calls to tool servers and peers: the recording, or the servers of aegis.toml ([[mcp]], [[a2a]]) and those that
    /// `aegis mcp` attaches. What a tool does outside is not undone.
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
    /// A replay whose tools answer as the option says. `recorded`: the servers that the run called.
    ///
    /// # Errors
    /// The configuration names an unusable server, or there is none to ask.
    pub(super) fn on(
        &self,
        replayed: Replayed,
        recorded: &NamedServers,
        config: Option<&Path>,
        quiet: bool,
    ) -> Result<Replayed, Failure> {
        if self.tools == ToolReplies::Recorded {
            return Ok(replayed);
        }
        let servers = upstreams(&Config::load(config)?, &ServerArgs::default(), None)?;
        let attached: Vec<&str> = recorded.places().filter(|place| !servers.contains_key(*place)).collect();
        if servers.is_empty() && attached.is_empty() {
            let error = "--tools live: the run called no tool server or peer, and aegis.toml names none";
            return Err(Failure::new(Exit::Usage, error).hint("name it in aegis.toml: [[mcp]], with `name` and `url`"));
        }
        if !attached.is_empty() && !quiet {
            talkln!(
                "tools     live: {} only as the program attaches it (`aegis mcp NAME -- CMD`); aegis.toml names no such server",
                attached.join(", ")
            );
        }
        let none: Arc<dyn Upstream> = Arc::new(Simulator::new(0));
        Ok(replayed.with_live_tools(Arc::new(WithServers::new(none, servers))))
    }
}

/// Servers of tools and peers beside those of aegis.toml.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ServerArgs {
    /// Server of tools that speaks MCP, beside those of aegis.toml. Clients find it at `/mcp/NAME`.
    #[arg(long, value_name = "NAME=URL")]
    pub mcp: Vec<String>,
    /// Peer that speaks A2A, beside those of aegis.toml. Clients find it at `/a2a/NAME`.
    #[arg(long, value_name = "NAME=URL")]
    pub a2a: Vec<String>,
}

/// The servers of aegis.toml and of the options, each by where its paths begin: `/mcp/calc`.
///
/// # Errors
/// A name that no path can hold or that is given twice; an option of another form.
fn servers(config: &Config, options: &ServerArgs) -> Result<BTreeMap<String, ServerConfig>, Failure> {
    let mut servers = BTreeMap::new();
    for (table, configured, given) in [("mcp", &config.mcp, &options.mcp), ("a2a", &config.a2a, &options.a2a)] {
        let usage =
            |error: String| Failure::new(Exit::Usage, error).hint(format!("--{table} name=http://127.0.0.1:9000"));
        let of_options = given.iter().map(|option| {
            let (name, url) =
                option.split_once('=').ok_or_else(|| usage(format!("--{table} `{option}`: expected NAME=URL")))?;
            Ok::<_, Failure>(ServerConfig { name: name.to_owned(), url: url.to_owned(), key_env: None })
        });
        for server in configured.iter().cloned().map(Ok).chain(of_options) {
            let server = server?;
            // A run's name is a segment of a path too.
            if RunId::parse(&server.name).is_err() {
                return Err(usage(format!(
                    "{table} server `{}`: a name is 1 to 64 of A-Z a-z 0-9 . _ -, not starting with . _ or -",
                    server.name.escape_debug()
                )));
            }
            if let Some(earlier) = servers.insert(format!("/{table}/{}", server.name), server) {
                return Err(usage(format!("{table} server `{}` is given twice", earlier.name)));
            }
        }
    }
    Ok(servers)
}

/// Where the path of each begins, and where it is.
///
/// # Errors
/// See [`servers`].
pub(super) fn named(config: &Config, options: &ServerArgs) -> Result<NamedServers, Failure> {
    let servers = servers(config, options)?;
    Ok(NamedServers::new(servers.into_iter().map(|(place, server)| (place, server.url)).collect()))
}

/// Each as an upstream of its own.
///
/// # Errors
/// As [`servers`]; a URL, a token or certificates that cannot be used.
pub(super) fn upstreams(
    config: &Config,
    options: &ServerArgs,
    ca_file: Option<&Path>,
) -> Result<BTreeMap<String, Arc<dyn Upstream>>, Failure> {
    let servers = servers(config, options)?;
    if servers.is_empty() {
        return Ok(BTreeMap::new());
    }
    let timeout = config.limits()?.silence_timeout;
    let ca_file = ca_file.or(config.upstream.ca_file.as_deref());
    let upstream = |(place, server): (String, ServerConfig)| {
        let failed = |error: OriginError| Failure::new(Exit::Usage, format!("{place}: {error}"));
        let key = server.key_env.as_ref().map(|variable| {
            let key = std::env::var(variable);
            key.map(|key| (variable.as_str(), key)).map_err(|_| OriginError::KeyMissing(variable.clone()))
        });
        let key = key.transpose().map_err(failed)?;
        let key = key.as_ref().map(|(variable, key)| (*variable, key.as_str()));
        let origin = UpstreamOrigin::mounted(&server.url, key, place.clone()).map_err(failed)?;
        let server = HttpUpstream::new(origin, Vec::new(), ca_file, timeout).map_err(failed)?;
        Ok((place, server.shared()))
    };
    servers.into_iter().map(upstream).collect()
}
