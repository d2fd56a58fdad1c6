//! `aegis token`: draws a token for a user of `aegis serve --tokens`, says it once, and writes the entry that knows it by its hash.

use crate::cli::printed::{MadeToken, RemovedToken, printed};
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
    recording::{Redactor, Secrets},
};

const TAKEN_UP: &str = "a server that reads it takes that up after kill -HUP";

/// Options of `token`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TokenEntryArgs {
    /// User or team whose token it is: letters, digits, `.`, `_` and `-`. Its recordings lie in `@NAME` below the log directory.
    #[arg(value_name = "NAME")]
    name: String,
    /// Tokens file to which the entry is added, made if missing. Default: the entry is printed.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Give the user of an entry of the file another token, in place of the one it has. Its limits stay.
    #[arg(long, requires = "file", conflicts_with_all = ["requests_per_minute", "max_body_bytes"])]
    renew: bool,
    /// Remove the user's entry from the file. Its recordings stay.
    #[arg(long, requires = "file", conflicts_with_all = ["renew", "requests_per_minute", "max_body_bytes"])]
    remove: bool,
    /// Most requests of this user in a minute, 60,000 at most. Default: no limit.
    #[arg(long, value_name = "N")]
    requests_per_minute: Option<NonZeroU32>,
    /// Longest request body of this user, in bytes. Default: that of the server.
    #[arg(long, value_name = "BYTES")]
    max_body_bytes: Option<NonZeroUsize>,
}

/// Draws the token, or removes the entry.
///
/// # Errors
/// The name is none, or has an entry already; the file cannot be read or written.
pub(super) fn run(arguments: &TokenEntryArgs, format: OutputFormat, out: &mut dyn Write) -> Result<Finished, Failure> {
    let name = UserName::parse(&arguments.name).ok_or_else(|| {
        let hint =
            "1 to 64 letters, digits, `.`, `_` and `-`, not beginning with `.` and not `operator`: aegis token alice";
        Failure::new(Exit::Usage, format!("`{}` is no name of a user", arguments.name)).hint(hint)
    })?;
    if let (true, Some(path)) = (arguments.remove, &arguments.file) {
        replace(path, |text| tokens::removed(text, path, &name))?;
        let summary = format!("the entry of {name} is removed from {}; {TAKEN_UP}", path.display());
        return Ok(Finished { exit: Exit::Ok, summary, data: printed(&RemovedToken { name: name.as_str() }) });
    }
    let shown = settings::fresh_token();
    let token = Token::new(&shown);
    let sha256 = token.sha256();
    let limits = (arguments.requests_per_minute, arguments.max_body_bytes.map(NonZeroUsize::get));
    let grant = UserGrant { name, token, requests_per_minute: limits.0, max_body_bytes: limits.1 };
    let (name, entry) = (&grant.name, tokens::entry(&grant));
    let place = match &arguments.file {
        Some(path) => {
            if arguments.renew {
                replace(path, |text| tokens::renewed(text, path, name, &grant.token))?;
            } else {
                append(path, name, &entry)?;
            }
            format!("its entry is in {}; {TAKEN_UP}", path.display())
        }
        None => "add the entry to the file of `aegis serve --tokens`".to_owned(),
    };
    // It is for whoever asked for it, who sees it this once; by its name it would be masked as all else is.
    let shows = Secrets { keep: vec![shown.clone()], ..Secrets::default() };
    let _ = Redactor::new(&shows).map(Redactor::for_process);
    if format == OutputFormat::Text {
        let entry = if arguments.file.is_none() { format!("\n{entry}") } else { String::new() };
        let written = writeln!(out, "{shown}{entry}").and_then(|()| out.flush());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let summary = format!("a token for {name}, shown this once: {place}");
    let data = printed(&MadeToken { name: name.as_str(), token: &shown, sha256 });
    Ok(Finished { exit: Exit::Ok, summary, data })
}

/// Puts another text in the place of a file's, whole: a server may read it at any moment.
fn replace(path: &Path, change: impl FnOnce(&str) -> Result<String, Failure>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Usage, format!("cannot write the tokens file `{}`: {error}", path.display()))
    };
    let place = std::fs::canonicalize(path).map_err(cannot)?;
    let text = change(&std::fs::read_to_string(&place).map_err(cannot)?)?;
    tokens::parse(&text, path)?;
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(place.parent().unwrap_or(Path::new(".")))?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(std::fs::metadata(&place)?.permissions())?;
        file.as_file().sync_all()?;
        file.persist(&place).map_err(|refused| refused.error)
    };
    write().map(drop).map_err(cannot)
}

/// Adds an entry to a file, if the file is one of tokens and is one with the entry, too.
fn append(path: &Path, name: &UserName, entry: &str) -> Result<(), Failure> {
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
    let has_entry = |grant: &UserGrant| grant.name.as_str().eq_ignore_ascii_case(name.as_str());
    if tokens::parse(&text, path)?.iter().any(has_entry) {
        let place = crate::launch::shell_word(&path.to_string_lossy());
        let error = format!("{name} has a token in {}", path.display());
        let hint = format!("another one in its place: aegis token {name} --file {place} --renew");
        return Err(Failure::new(Exit::Usage, error).hint(hint));
    }
    let added = format!("{break_before}{entry}");
    tokens::parse(&format!("{text}{added}"), path)?;
    // At once, so that a server that reads it meanwhile finds the whole entry.
    file.write_all(added.as_bytes()).and_then(|()| file.sync_all()).map_err(cannot)
}
