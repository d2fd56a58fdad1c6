//! `[[mcp]]` and `[[a2a]]` of aegis.toml.

use serde::Deserialize;

/// `[[mcp]]`, `[[a2a]]`: a server of tools, a peer. Its clients' address is `/mcp/<name>` or `/a2a/<name>` of the proxy,
/// `/r/<run>/mcp/<name>` where they name the run.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Name: 1 to 64 of A-Z a-z 0-9 . _ -, not starting with . _ or -.
    pub name: String,
    /// Where it is, for example `http://127.0.0.1:9000/mcp`; of a peer, the address below which its card lies.
    pub url: String,
    /// Environment variable with its token. Without one, the client's goes there.
    pub key_env: Option<String>,
}
