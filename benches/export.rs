//! Export of 10,000 runs: `cargo bench --bench export [-- --runs N FORMAT …]`. Each format is written by a process of its own, so
//! that its peak memory is its own; the rate stands beside that of a plain copy of the dataset on the same disk. Exit
//! code 1: a format took more memory than is promised.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a measurement talks, and stops where it cannot measure")]

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use aegis::dataset::{
    Dataset, Sample, Writer,
    formats::{self, ExportOptions, Lint},
};
use serde_json::json;

/// Runs of the dataset where `--runs` names no other count: half clean, half failures.
const RUNS: u32 = 10_000;
/// Steps of a run.
const STEPS: u32 = 12;
/// What is promised, in MB.
const MEMORY_MAX: u64 = 200;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [one, format, dataset, out] = arguments.as_slice()
        && one == "--one"
    {
        return one_export(format, Path::new(dataset), Path::new(out));
    }
    let (runs, named) = match arguments.as_slice() {
        [option, count, named @ ..] if option == "--runs" => (count.parse().expect("a count of runs"), named),
        named => (RUNS, named),
    };
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("export");
    let dataset = dir.join(format!("dataset-{runs}"));
    write(&dataset, runs);
    let file = dataset.join("dataset.jsonl");
    let bytes = fs::metadata(&file).expect("a dataset").len();
    println!("dataset    {runs} runs of {STEPS} steps, {} MB", bytes >> 20);
    let copied = copy(&file, &dir.join("copy"));
    println!("disk       a synced copy: {copied:.0} MB/s\n");
    println!(
        "{:<14}{:>10}{:>12}{:>12}{:>12}{:>10}",
        "format", "seconds", "read MB/s", "of a copy", "written MB", "peak MB"
    );
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let all = || formats::ALL.iter().map(|format| format.name()).collect();
    let mut within = true;
    for format in if named.is_empty() { all() } else { named } {
        let out = dir.join(format!("{format}.out"));
        remove(&out);
        let began = Instant::now();
        let program = std::env::current_exe().expect("this program");
        let done = Command::new(program).args(["--one", format]).args([&dataset, &out]).output().expect("it runs");
        let seconds = began.elapsed().as_secs_f64();
        assert!(done.status.success(), "{format}: {}", String::from_utf8_lossy(&done.stderr));
        let said = String::from_utf8_lossy(&done.stdout);
        let mut words = said.split_whitespace().map(|word| word.parse::<u64>().expect("a number"));
        let (peak, written) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let rate = rate(bytes, seconds);
        let share = rate / copied * 100.0;
        println!("{format:<14}{seconds:>10.1}{rate:>12.0}{share:>10.0} %{:>12}{peak:>10}", written >> 20);
        within &= peak <= MEMORY_MAX;
        remove(&out);
    }
    println!("\npromised   at most {MEMORY_MAX} MB: {}", if within { "kept" } else { "NOT KEPT" });
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One export as a process of its own: prints its peak memory in MB, and the bytes that it wrote.
fn one_export(format: &str, dataset: &Path, out: &Path) -> ExitCode {
    let format = formats::format(format).expect("a format");
    let dataset = Dataset::open(dataset).expect("a dataset");
    // Lint is asked, as a user's export asks it; what it finds in made-up runs is no matter here.
    let found = aegis::dataset::lint::lint(&dataset).expect("lint reads it").findings.len();
    let options = ExportOptions { lint: Lint::Ignore, one_file: true, ..ExportOptions::default() };
    let manifest = formats::export(&dataset, format, out, &options).expect("an export");
    let written: u64 = manifest.files.values().map(|file| file.bytes).sum();
    println!("{} {written} {found}", peak_memory());
    ExitCode::SUCCESS
}

/// Removes what an export left, so that the next one begins with nothing and the disk is not filled.
fn remove(out: &Path) {
    if out.is_dir() {
        fs::remove_dir_all(out).expect("removed");
    } else if out.exists() {
        fs::remove_file(out).expect("removed");
    }
}

/// Writes the dataset, unless it is there.
fn write(dir: &Path, runs: u32) {
    if dir.join("dataset.json").is_file() {
        return;
    }
    let mut writer = Writer::create(dir).expect("a writer");
    for number in 0..runs / 2 {
        for failure in [false, true] {
            writer.push(&sample(number, failure)).expect("written");
        }
    }
    writer.finish().expect("finished");
}

/// A run of three agents whose steps say about 1.5 kB each; a failure leaves its clean twin at step 5.
fn sample(number: u32, failure: bool) -> Sample {
    let agents = ["planner", "solver", "critic"];
    let words = |step: u32| {
        let wrong = if failure && step >= 5 { "wrongly" } else { "rightly" };
        let told = (0..40).map(|word| format!("{wrong} said word {} of run {number} ", word * (step + 3) + number));
        told.collect::<String>()
    };
    let steps: Vec<_> = (0..STEPS)
        .zip(agents.into_iter().cycle())
        .map(|(step, agent)| {
            json!({"step": step, "call": step / 3, "turn": step, "agent": agent, "model": "m",
                "input": {"messages": [{"role": "system", "text": format!("You are the {agent}.")},
                    {"role": "user", "text": if step == 0 { format!("Task {number}") } else { words(step - 1) }}]},
                "output": {"role": "assistant", "text": words(step)}, "usage": {"input": 400, "output": 400}})
        })
        .collect();
    let error = json!({"agent": "critic", "step": 5, "call": 1, "side": "response", "operator": "replace_text",
        "failure_mode": {"code": "FM-2.6", "name": "reasoning-action mismatch", "taxonomy": "MAST-2503.13657v2"}});
    let label = json!({"status": "verified", "definition": "injected", "outcome": "failure", "errors": [error]});
    let split = ["train", "train", "train", "validation", "test"].get(number as usize % 5);
    let kind = if failure { "failure" } else { "clean" };
    let sample = json!({
        "format": 1, "id": format!("{kind}-{number:05}"), "kind": kind, "system": "bench", "backend": "simulator",
        "task": {"id": format!("task-{number}"), "question": format!("Task {number}"), "answer": "yes"},
        "split": split,
        "outcome": if failure { "failure" } else { "success" }, "final_answer": if failure { "no" } else { "yes" },
        "steps": steps, "label": failure.then_some(label),
        "clean_twin": failure.then(|| format!("clean-{number:05}")),
    });
    serde_json::from_value(sample).expect("a sample")
}

/// The rate of a copy that reached the disk, in MB/s.
fn copy(from: &Path, to: &PathBuf) -> f64 {
    let began = Instant::now();
    let mut file = File::create(to).expect("created");
    let bytes = io::copy(&mut File::open(from).expect("opened"), &mut file).expect("copied");
    file.flush().and_then(|()| file.sync_all()).expect("synced");
    let rate = rate(bytes, began.elapsed().as_secs_f64());
    fs::remove_file(to).expect("removed");
    rate
}

#[expect(clippy::cast_precision_loss, reason = "a rate is read to two digits")]
fn rate(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / seconds / f64::from(1 << 20)
}

/// The most memory that this process held at any time, in MB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or_default() >> 10
}
