//! What a hop through Aegis costs, beside a direct connection and nginx, in one run:
//! `cargo bench --bench proxy -- [--quick] [--targets direct,nginx,aegis]`, or `scripts/bench`.
//!
//! Load and upstream live in this process, on the first processor; the proxies run one at a time,
//! with one worker, on the second. Everything is on the loopback, bounded in time and count, and
//! ends with this program. Exit code 1: a gate does not hold; 3: something could not be started.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    reason = "a measuring program: it stops at the first thing it did not expect, talks to a terminal, computes ratios of counts, and its threads block by design"
)]

mod chat;
mod conversation;
mod figures;
mod kill;
mod load;
mod matching;
mod process;
mod report;
mod scenario;
mod selfcheck;
mod storage;
mod target;
mod text;
mod upstream;
mod wire;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;

use figures::Results;
use target::{Site, Way};

/// Measures what a hop through Aegis costs, beside a direct connection and nginx.
#[derive(Debug, Parser)]
struct Arguments {
    /// Two short rounds: a look, not a figure to quote.
    #[arg(long)]
    quick: bool,
    /// The ways to measure.
    #[arg(long, value_delimiter = ',', default_value = "direct,nginx,aegis")]
    targets: Vec<Way>,
    /// Scenarios by name, also `storage` and `kill`; all if not given.
    #[arg(long, value_delimiter = ',')]
    scenarios: Vec<String>,
    /// Rounds of each scenario (default 5).
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds of load in a round (default 2).
    #[arg(long)]
    seconds: Option<f64>,
    /// How many times Aegis is killed (default 100).
    #[arg(long)]
    kills: Option<usize>,
    /// The program to measure.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_aegis"))]
    aegis: PathBuf,
    /// An earlier program, measured in turn with this one.
    #[arg(long)]
    last: Option<PathBuf>,
    /// Where the results go.
    #[arg(long, default_value = concat!(env!("CARGO_TARGET_TMPDIR"), "/../bench"))]
    out: PathBuf,
    /// Given by `cargo bench`; without it only the measuring itself is checked.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    run(&Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(3)
    })
}

fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    process::raise_file_limit()?;
    process::pin_self();
    let upstream = upstream::start()?;
    selfcheck::run(upstream);
    if !arguments.bench {
        println!("the measuring itself is sound; `cargo bench --bench proxy` measures");
        return Ok(ExitCode::SUCCESS);
    }
    remove_leftovers(&arguments.out);
    let scratch = arguments.out.join(format!("scratch-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let last = arguments.last.as_ref().map(std::path::absolute).transpose()?;
    let site = Site { aegis: arguments.aegis.clone(), last, upstream, scratch: fs::canonicalize(scratch)? };
    let measured = measure(arguments, &site);
    fs::remove_dir_all(&site.scratch)?;
    let results = measured?;
    let scenarios = scenario::all();
    let text = format!("{}{}", preamble(arguments), report::markdown(&results, &scenarios));
    println!("{text}");
    fs::write(arguments.out.join("report.md"), &text)?;
    let figures = results.figures();
    eprintln!("written to {}", fs::canonicalize(&arguments.out)?.display());
    let json = serde_json::json!({"figures": figures, "results": results});
    fs::write(arguments.out.join("report.json"), serde_json::to_vec_pretty(&json)?)?;
    let failed = report::failed_gates(&figures);
    for gate in &failed {
        println!("gate fails: {gate}");
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(arguments: &Arguments, site: &Site) -> io::Result<Results> {
    let chosen = ways(arguments)?;
    let quick = arguments.quick;
    let rounds = arguments.rounds.unwrap_or(if quick { 2 } else { 5 });
    let seconds = Duration::from_secs_f64(arguments.seconds.unwrap_or(if quick { 0.6 } else { 2.0 }));
    let wanted = |name: &str| arguments.scenarios.is_empty() || arguments.scenarios.iter().any(|given| given == name);
    let mut results = Results::default();
    if chosen.contains(&Way::Aegis) {
        results.matched = Some(matching::measure(site)?);
    }
    for scenario in scenario::all().iter().filter(|scenario| wanted(scenario.name)) {
        eprintln!("{}: {}", scenario.name, scenario.title);
        let samples = scenario::measure(scenario, site, &chosen, rounds, seconds)?;
        results.samples.insert(scenario.name, samples);
    }
    if chosen.contains(&Way::Aegis) && wanted("storage") {
        eprintln!("storage: bytes stored ÷ text first said");
        results.stored = storage::measure(site)?;
    }
    if chosen.contains(&Way::Aegis) && wanted("kill") {
        let kills = arguments.kills.unwrap_or(if quick { 20 } else { 100 });
        eprintln!("kill: {kills} × kill -9");
        results.killed = Some(kill::measure(site, kills)?);
    }
    Ok(results)
}

/// What runs that were interrupted have left: recordings can be large.
fn remove_leftovers(out: &Path) {
    for entry in fs::read_dir(out).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("scratch-"));
        if owner.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// The ways asked for, once it is sure that they can be started.
fn ways(arguments: &Arguments) -> io::Result<Vec<Way>> {
    let missing = |what: String| io::Error::new(io::ErrorKind::NotFound, what);
    if arguments.targets.contains(&Way::Nginx) {
        let found = Command::new("nginx").arg("-v").stderr(Stdio::null()).status();
        found.map_err(|_| missing("`nginx` is not installed: `scripts/bench` installs it".to_owned()))?;
    }
    let programs = [&arguments.aegis].into_iter().chain(&arguments.last);
    if arguments.targets.contains(&Way::Aegis)
        && let Some(absent) = programs.into_iter().find(|program| !program.is_file())
    {
        return Err(missing(format!("`{}` is not a file: expected the program to measure", absent.display())));
    }
    Ok(arguments.targets.clone())
}

fn preamble(arguments: &Arguments) -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("", |pair| pair.1);
    let count = processor.lines().filter(|line| line.starts_with("processor")).count();
    let quick = if arguments.quick { " A quick look: quote the full run." } else { "" };
    format!(
        "# What a hop through Aegis costs\n\n{count} × {model}; loopback, HTTP/1.1 without TLS; one worker each, proxies on one processor, load and upstream on another.{quick}\nMedians of the rounds (least–greatest); ratios are paired by round, differences are of medians.\n"
    )
}
