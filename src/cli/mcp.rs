//! `aegis mcp NAME -- CMD`: a tool server over standard input and output, whose messages go through the proxy.
//!
//! A client of MCP names this in place of CMD. The shim attaches itself to the proxy, posts what the client says there, gives CMD
//! what the proxy makes of it, and leads CMD's replies back through the proxy.

mod address;
mod answer;
mod console;
mod message;
mod pending;
mod shim;
mod tasks;

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command};

use clap::Args;

use self::address::ProxyAddress;
use super::{Exit, Failure, escape, settings};
use crate::{
    proxy::{AttachClient, AttachError},
    trajectory::RunId,
};

/// Options of `mcp`.
#[derive(Debug, Args)]
pub(super) struct McpArgs {
    /// Name of the server: records and plans call it `mcp/NAME`.
    #[arg(value_name = "NAME")]
    name: String,
    /// Address of the proxy, with the run: http://HOST:PORT/r/RUN. Default: `AEGIS_URL`, of this or a parent process; without one,
    /// the command runs unrecorded.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Command of the server.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(super) fn run(arguments: &McpArgs) -> Result<Exit, Failure> {
    // A run's name is a segment of a path too.
    if RunId::parse(&arguments.name).is_err() {
        let error = format!("server `{}`: this is no name", escape(&arguments.name));
        return Err(Failure::new(Exit::Usage, error).hint("1 to 64 of A-Z a-z 0-9 . _ -, not starting with . _ or -"));
    }
    if let Some(url) = arguments.url.as_deref().filter(|url| url.trim_end_matches('/').ends_with("/v1")) {
        let error = format!("--url `{}`: this is the address of the model API", escape(url));
        return Err(Failure::new(Exit::Usage, error).hint("the run alone: http://HOST:PORT/r/RUN"));
    }
    let Some(address) = ProxyAddress::find(arguments.url.as_deref()) else {
        let name = escape(&arguments.name);
        talkln!("aegis mcp: no proxy is named (--url, AEGIS_URL): the messages of `{name}` are not recorded");
        return Err(unrecorded(&arguments.command));
    };
    let client = AttachClient::new(&address.url, address.token.as_deref()).map_err(unattached)?;
    settings::block_on_one(shim::run(&arguments.name, &arguments.command, client))?
}

/// Becomes the command. Only a failure returns.
fn unrecorded(command: &[OsString]) -> Failure {
    let (program, arguments) =
        command.split_first().map_or((OsString::new(), &[][..]), |(program, arguments)| (program.clone(), arguments));
    unstarted(&program, &Command::new(&program).args(arguments).exec())
}

/// The command cannot be started.
fn unstarted(program: &OsString, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("cannot start `{}`: {error}", escape(&program.to_string_lossy())))
}

/// The server cannot be attached.
fn unattached(error: AttachError) -> Failure {
    let exit = match &error {
        AttachError::Unreachable { .. } | AttachError::NotAProxy(_) => Exit::Infrastructure,
        _ => Exit::Usage,
    };
    Failure::new(exit, error)
}
