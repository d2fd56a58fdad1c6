//! `aegis shard`: parts of campaigns, put together, and the files that have engines make them.

use crate::cli::printed::{EmittedScript, PrintedMerge, printed};
use std::{
    io::Write,
    num::{NonZeroU64, NonZeroUsize},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, builder::PossibleValuesParser};

use super::{Exit, Failure, Finished, Global, campaign::failure, progress::ShownProgress, settings, terminal};
use crate::{
    campaign::{self, Engine, EngineScript, MergeOptions, Merged, PlanFolder},
    launch::shell_word,
};

/// Options of `shard`.
#[derive(Debug, Args)]
pub(super) struct ShardArgs {
    #[command(subcommand)]
    what: ShardWhat,
}

#[derive(Debug, Subcommand)]
enum ShardWhat {
    /// Combine parts into the data set, report and bill of the whole campaign. No model is asked.
    Merge(MergeArgs),
    /// Print the file with which an engine makes the parts. Nothing is started.
    Emit(EmitArgs),
}

#[derive(Debug, Args)]
struct MergeArgs {
    /// Directories of parts, at any depth. Divisions may differ and overlap.
    #[arg(value_name = "DIR", required = true)]
    from: Vec<PathBuf>,
    /// Directory for logs, data set and report.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Allow missing or unfinished chains (one task in one system); `dataset.json` counts them.
    #[arg(long)]
    allow_missing: bool,
    /// Replace an earlier merge and all that was added to it.
    #[arg(long)]
    overwrite: bool,
    /// Conclude every chain from its recordings and report differences. Default: only where a part left no matching
    /// conclusion.
    #[arg(long)]
    reread: bool,
    /// Also write `report.html`, with at most 300 runs.
    #[arg(long)]
    page: bool,
}

#[derive(Debug, Args)]
struct EmitArgs {
    /// Engine.
    #[arg(value_name = "ENGINE", value_parser = PossibleValuesParser::new(Engine::ALL.iter().map(|engine| engine.name)))]
    engine: String,
    /// Campaign file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of parts.
    #[arg(long, value_name = "N")]
    shards: NonZeroU64,
    /// Directory for the parts, on a disk that all machines share. Default: the campaign's name with `-run`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Cells in parallel per part, and cores for it.
    #[arg(long, value_name = "N", default_value = "4")]
    jobs: NonZeroUsize,
    /// `k8s`: container image with aegis, the programs under test and the campaign.
    #[arg(long, value_name = "IMAGE", default_value = "registry.example/aegis:latest")]
    image: String,
    /// Further options of `aegis campaign`.
    #[arg(last = true, value_name = "OPTION")]
    further: Vec<String>,
}

pub(super) fn run(arguments: &ShardArgs, global: &Global) -> Result<Finished, Failure> {
    match &arguments.what {
        ShardWhat::Merge(arguments) => merge(arguments, global),
        ShardWhat::Emit(arguments) => emit(arguments, global),
    }
}

fn merge(arguments: &MergeArgs, global: &Global) -> Result<Finished, Failure> {
    let options = MergeOptions {
        from: arguments.from.clone(),
        out: arguments.out.clone(),
        allow_missing: arguments.allow_missing,
        overwrite: arguments.overwrite,
        reread: arguments.reread,
        page: arguments.page,
        jobs: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    let shown = ShownProgress::new(global);
    let done = settings::block_on(async { campaign::merge(&options, &shown).await })?;
    let (merged, concluded) = done.map_err(|error| failure(error, &arguments.out))?;
    tell(&merged, &arguments.out, global);
    let (missing, unfinished) = (merged.missing.len(), merged.unfinished.len());
    let Some((concluded, _)) = concluded else {
        let summary = format!("{missing} of {} chains are missing, {unfinished} unfinished", merged.chains);
        let data = printed(&merged);
        return Ok(Finished { exit: Exit::Finding, summary, data });
    };
    let data = printed(&PrintedMerge { merged: &merged, sums: concluded.sums() });
    if !global.quiet {
        let (page, more) = if arguments.page {
            ("report.html", "report.md, report.json beside it")
        } else {
            ("report.md", "report.json beside it; `aegis view` shows the runs")
        };
        talkln!("report    {}   {more}", arguments.out.join(page).display());
    }
    let summary = format!("{} shards: {}", merged.shards, concluded.line());
    Ok(Finished { exit: Exit::Ok, summary, data })
}

/// Names what is missing, and says what to do about it.
fn tell(merged: &Merged, out: &Path, global: &Global) {
    let named = [(&merged.missing, "missing"), (&merged.unfinished, "unfinished"), (&merged.refuted, "refuted")];
    for (chains, what) in named {
        for chain in chains.iter().take(if global.quiet { 0 } else { NAMED }) {
            talkln!("{what:<9} {}", super::escape(chain));
        }
        if chains.len() > NAMED && !global.quiet {
            talkln!("          and {} more: merged.json names all", chains.len() - NAMED);
        }
    }
    if merged.is_whole() || global.quiet {
        return;
    }
    for system in &merged.revoked {
        talkln!(
            "hint: `{system}` was declared to repeat itself and does not, and parts that had not seen that stopped early: set \
             `proof.repeatable = false` and make them again; what they have made is kept"
        );
    }
    let out = shell_word(&out.to_string_lossy());
    talkln!(
        "hint: make the parts again that hold them, with the command that made the others; or go on here: \
         `aegis campaign FILE --out {out} --resume`; or leave them out: --allow-missing"
    );
}

/// Most chains that are named on the screen.
const NAMED: usize = 20;

fn emit(arguments: &EmitArgs, global: &Global) -> Result<Finished, Failure> {
    let engine = Engine::ALL.into_iter().find(|engine| engine.name == arguments.engine);
    let engine = engine.ok_or_else(|| Failure::new(Exit::Usage, format!("unknown engine `{}`", arguments.engine)))?;
    let unread = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", arguments.file.display()))
    };
    let text = std::fs::read_to_string(&arguments.file).map_err(|error| unread(&error))?;
    let file = std::path::absolute(&arguments.file).map_err(|error| unread(&error))?;
    let beside = file.parent().unwrap_or(Path::new(".")).to_owned();
    let campaign = campaign::parse(&text, &arguments.file.display().to_string(), &PlanFolder(beside));
    let campaign = campaign.map_err(|errors| Failure::new(Exit::Usage, errors))?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}-run", campaign.name)));
    // In a container paths are the image's: they stay as they were written.
    let contained = engine.name == "k8s";
    let place = |path: &Path| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if contained { path.display().to_string() } else { absolute.display().to_string() }
    };
    let program = std::env::current_exe().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    let aegis = if contained { "aegis".to_owned() } else { program.display().to_string() };
    let (out, merged) = (place(&out), place(&out.join("merged")));
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let jobs = arguments.jobs.to_string();
    let mut command = words(&[&aegis, "campaign", &place(&arguments.file), "--out", &out, "--jobs", &jobs]);
    command.extend(arguments.further.iter().cloned());
    let script = EngineScript {
        name: campaign.name.clone(),
        shards: arguments.shards.get(),
        jobs: arguments.jobs.get(),
        command,
        merge: words(&[&aegis, "shard", "merge", &out, "--out", &merged, "--overwrite"]),
        image: arguments.image.clone(),
    };
    let (text, name) = (engine.script(&script), engine.file(&script));
    let next = engine.submit(&script, &name);
    if global.format != super::OutputFormat::Json {
        let written = terminal::stdout().write_all(text.as_bytes());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    if !global.quiet {
        talkln!("next      read it, keep it as {name}, and: {next}");
    }
    let summary = format!("{} shards for {}; nothing was started", script.shards, engine.name);
    Ok(Finished {
        exit: Exit::Ok,
        summary,
        data: printed(&EmittedScript { file: &name, script: &text, submit: &next }),
    })
}
