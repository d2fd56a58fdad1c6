//! `aegis view [DIR…]`: a page on this machine that shows runs, campaigns and datasets; or that page as one file.

use crate::cli::printed::{NoData, ViewedAt, WrittenPage, printed};
use std::{
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;

use super::{
    Config, Exit, Failure, Finished, Global, OutputFormat, browser,
    output::{OutputFile, Replaces},
    serve::bind,
    settings, terminal,
};
use crate::viewer::{BundleError, BundleExtent, Viewer, ViewerLibrary, bundle};

/// Options of `view`.
#[derive(Debug, Args)]
#[command(
    after_help = "The printed address contains a token. Whoever has it can read everything below DIR, and change only what \
        --annotate writes: annotations/NAME.jsonl beside the runs, with --modes facts.jsonl in them."
)]
pub(super) struct ViewArgs {
    /// Runs, campaigns, data sets, directories of them, or rows of `aegis attribute --out`.
    #[arg(value_name = "DIR", env = "AEGIS_LOG_DIR", default_value = "logs")]
    dirs: Vec<PathBuf>,
    /// Address on this machine to listen on. Port 0 selects a free port.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: String,
    /// Open the page in the browser.
    #[arg(long)]
    open: bool,
    /// Annotate runs: the agent and step of the decisive error, and why. Labels, traces, injections and other
    /// annotations are hidden; `aegis annotations` compares them.
    #[arg(long, value_name = "NAME")]
    annotate: Option<String>,
    /// Annotate planted changes instead: which of three failure modes each shows. `aegis modes` compares the answers,
    /// and labels use them.
    #[arg(long, requires = "annotate")]
    modes: bool,
    /// Configuration file. Default: ./aegis.toml.
    #[arg(long, env = "AEGIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the page and its contents as one file, and exit.
    #[arg(long, value_name = "OUT.html", conflicts_with_all = ["listen", "open", "annotate"])]
    bundle: Option<PathBuf>,
    /// Replace an existing OUT.html.
    #[arg(long, requires = "bundle")]
    overwrite: bool,
    /// Include annotations with their authors' names in the file. Not for annotators who have yet to answer.
    #[arg(long, requires = "bundle")]
    with_annotations: bool,
}

pub(super) fn run(arguments: &ViewArgs, global: &Global) -> Result<Finished, Failure> {
    if let Some(missing) = arguments.dirs.iter().find(|dir| !dir.exists()) {
        let error = format!("there is nothing at `{}`", missing.display());
        return Err(Failure::new(Exit::Usage, error).hint("`aegis view DIR`, where DIR is or holds recordings"));
    }
    let replaces = Replaces::OnRequest(arguments.overwrite);
    let file = arguments.bundle.as_deref().map(|path| OutputFile::named(path, replaces)).transpose()?;
    let library = ViewerLibrary::new(arguments.dirs.clone());
    let library = match &arguments.annotate {
        None if arguments.with_annotations => library.with_annotations(),
        None => library,
        Some(name) => library
            .for_annotator(name)
            .map_err(|error| Failure::new(Exit::Usage, error).hint("aegis view logs --annotate ada"))?,
    };
    let library = if arguments.modes {
        library.asking_modes(Config::load(arguments.config.as_deref())?.recording()?)
    } else {
        library
    };
    match (&arguments.bundle, file) {
        (Some(path), Some(file)) => write_bundle(&library, path, &file),
        _ => settings::block_on(serve(library, arguments, global))?,
    }
}

fn write_bundle(library: &ViewerLibrary, path: &Path, file: &OutputFile<'_>) -> Result<Finished, Failure> {
    let made = bundle(library).map_err(|error| {
        let hint = match error {
            BundleError::Nothing => {
                "`aegis runs [DIR]` lists the runs of a directory; logs of others come in by `aegis import --from FORMAT PATH`"
            }
            BundleError::TooLong(_) => "name fewer runs: aegis view logs/RUN --bundle OUT.html",
        };
        Failure::new(Exit::Usage, error).hint(hint)
    })?;
    let bytes = made.html.len();
    file.write_aloud(&made.html)?;
    let left = if made.extent == BundleExtent::WithoutRaw {
        ", without the bodies as they are stored: it would be too long"
    } else {
        ""
    };
    let summary = format!("{}  {} runs, {} kB{left}", path.display(), made.runs, bytes.div_ceil(1024));
    Ok(Finished { exit: Exit::Ok, summary, data: printed(&WrittenPage { file: path, runs: made.runs, bytes }) })
}

async fn serve(library: ViewerLibrary, arguments: &ViewArgs, global: &Global) -> Result<Finished, Failure> {
    let listener = bind(&arguments.listen).await?;
    let address = listener.local_addr().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    if !address.ip().is_loopback() {
        let error = format!("`{}` can be reached from other machines, and the page is not encrypted", arguments.listen);
        return Err(Failure::new(Exit::Usage, error)
            .hint(format!("listen on 127.0.0.1, and come in by `ssh -L {0}:127.0.0.1:{0} HOST`", address.port())));
    }
    let token = settings::fresh_token();
    let url = format!("http://{address}/#t={token}");
    announce(&url, address, global).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    if arguments.open {
        browser::open(&url);
    }
    let viewer = Viewer::new(Arc::new(library), address.port(), &token, settings::fresh_token());
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    tokio::select! {
        () = viewer.serve(listener) => {}
        _ = ended.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(Finished { exit: Exit::Ok, summary: "no longer listening".to_owned(), data: printed(&NoData {}) })
}

/// Says where the page is: the address alone on standard output, for people and for programs.
fn announce(url: &str, address: SocketAddr, global: &Global) -> std::io::Result<()> {
    let mut out = terminal::stdout();
    match global.format {
        OutputFormat::Json => writeln!(out, "{}", printed(&ViewedAt { listen: address.to_string(), url }))?,
        OutputFormat::Text => writeln!(out, "{url}")?,
    }
    out.flush()?;
    if !global.quiet {
        talkln!("open it in a browser; Ctrl-C ends it");
    }
    Ok(())
}
