//! `aegis token`: draws a token for a user of `aegis serve --tokens`, says it once, and writes the entry that knows it by its hash.

use crate::cli::printed::{MadeToken, printed};
use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    num::{NonZeroU32, NonZeroUsize},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::{
    cli::{Exit, Failure, Finished, OutputFormat, serve::tokens, settings},
    proxy::{Token, UserGrant, UserName},
};

/// Options of `token`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TokenEntryArgs {
    /// User or team whose token it is: letters, digits, `.`, `_` and `-`. Its recordings lie in `@NAME` below the log directory.
    #[arg(value_name = "NAME")]
    name: String,
    /// Tokens file to which the entry is added, made if missing. Default: the entry is printed.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Most requests of this user in a minute, 60,000 at most. Default: no limit.
    #[arg(long, value_name = "N")]
    requests_per_minute: Option<NonZeroU32>,
    /// Longest request body of this user, in bytes. Default: that of the server.
    #[arg(long, value_name = "BYTES")]
    max_body_bytes: Option<NonZeroUsize>,
}

/// Draws the token.
///
/// # Errors
/// The name is none, or has an entry already; the file cannot be read or written.
pub(super) fn run(arguments: &TokenEntryArgs, format: OutputFormat, out: &mut dyn Write) -> Result<Finished, Failure> {
    let name = UserName::parse(&arguments.name).ok_or_else(|| {
        let hint =
            "1 to 64 letters, digits, `.`, `_` and `-`, not beginning with `.` and not `operator`: aegis token alice";
        Failure::new(Exit::Usage, format!("`{}` is no name of a user", arguments.name)).hint(hint)
    })?;
    let token = settings::fresh_token();
    let grant = UserGrant {
        name,
        token: Token::new(&token),
        requests_per_minute: arguments.requests_per_minute,
        max_body_bytes: arguments.max_body_bytes.map(NonZeroUsize::get),
    };
    let entry = tokens::entry(&grant);
    if let Some(path) = &arguments.file {
        append(path, &entry)?;
    }
    if format == OutputFormat::Text {
        let entry = if arguments.file.is_none() { format!("\n{entry}") } else { String::new() };
        let written = writeln!(out, "{token}{entry}").and_then(|()| out.flush());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let place = match &arguments.file {
        Some(path) => format!("its entry is in {}; a server that reads it takes it up after kill -HUP", path.display()),
        None => "add the entry to the file of `aegis serve --tokens`".to_owned(),
    };
    let summary = format!("a token for {}, shown this once: {place}", grant.name);
    let data = printed(&MadeToken { name: grant.name.as_str(), token: &token, sha256: grant.token.sha256() });
    Ok(Finished { exit: Exit::Ok, summary, data })
}

/// Adds an entry to a file, if the file is one of tokens and is one with the entry, too.
fn append(path: &Path, entry: &str) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Usage, format!("cannot write the tokens file `{}`: {error}", path.display()))
    };
    let mut file = File::options().read(true).append(true).create(true).mode(0o600).open(path).map_err(cannot)?;
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text)).map_err(cannot)?;
    let break_before = match text.as_str() {
        "" => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let added = format!("{break_before}{entry}");
    tokens::parse(&format!("{text}{added}"), path)?;
    // At once, so that a server that reads it meanwhile finds the whole entry.
    file.write_all(added.as_bytes()).and_then(|()| file.sync_all()).map_err(cannot)
}
