//! Readers of bytes that strangers write, under inputs that nobody would write. Each target says what must hold of any
//! input; its corpus is replayed by every `cargo test`, and `scripts/fuzz` mutates it for a bounded time.
//!
//! The loop is guided by outcomes: an input that makes a target say something that no other did joins the pool. That
//! finds less than guidance by coverage, and needs neither another toolchain nor instrumented builds.

mod clone;
mod examples;
mod files;
mod foreign;
mod mutation;
mod servers;
mod socket;
mod targets;
mod task_set;

use std::{
    collections::HashSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    time::{Duration, Instant},
};

use mutation::Mutation;
use targets::{TARGETS, Target};

/// Longest input, in bytes.
const LENGTH_MAX: usize = 4 << 10;
/// Most inputs of a corpus: so many that replaying them takes no time.
const CORPUS_MAX: usize = 60;

fn corpus_of(target: &Target) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/fuzz/corpus").join(target.name)
}

/// The corpus of a target, in the order of its names, with the target's own examples.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let files = fs::read_dir(corpus_of(target)).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
    paths.sort();
    let kept = paths.iter().map(|path| fs::read(path).expect("readable"));
    (target.examples)().into_iter().chain(kept).collect()
}

/// What a target says of an input; `None` when it panicked.
fn outcome(target: &Target, input: &[u8]) -> Option<u64> {
    catch_unwind(AssertUnwindSafe(|| (target.check)(input))).ok()
}

fn keep(target: &Target, input: &[u8], prefix: &str) -> PathBuf {
    let path = corpus_of(target).join(format!("{prefix}-{:016x}", twox_hash::XxHash3_64::oneshot(input)));
    fs::create_dir_all(corpus_of(target)).expect("a directory");
    fs::write(&path, input).expect("written");
    path
}

#[test]
fn the_corpus_of_each_target_is_replayed() {
    for target in TARGETS {
        let corpus = corpus(target);
        assert!(corpus.len() > 3, "{} has a corpus", target.name);
        for input in corpus {
            let shown = String::from_utf8_lossy(&input).into_owned();
            assert!(outcome(target, &input).is_some(), "{} fails on {shown:?}", target.name);
        }
    }
}

/// How long a target is tried.
enum Effort {
    /// So many inputs; what is new is not kept.
    Inputs(u64),
    /// So long; what is new joins the corpus.
    Time(Duration),
}

/// Takes the corpus of a target apart and together; says how many inputs were tried and how large the pool has grown.
fn mutate(target: &Target, effort: &Effort, seed: u64) -> (u64, usize, Vec<String>) {
    let mut pool = corpus(target);
    let mut room = CORPUS_MAX.saturating_sub(pool.len());
    let mut seen: HashSet<u64> = pool.iter().filter_map(|input| outcome(target, input)).collect();
    let (mut mutation, start) = (Mutation::new(seed, target.words), Instant::now());
    let (mut tried, mut failures) = (0, Vec::new());
    let goes_on = |tried: u64| match effort {
        Effort::Inputs(most) => tried < *most,
        Effort::Time(limit) => start.elapsed() < *limit,
    };
    let keeps = matches!(effort, Effort::Time(_));
    while goes_on(tried) && failures.len() < 5 {
        let input = mutation.of(&pool, LENGTH_MAX);
        tried += 1;
        match outcome(target, &input) {
            None => {
                let shown = String::from_utf8_lossy(&input).into_owned();
                let kept = if keeps { keep(target, &input, "failure").display().to_string() } else { String::new() };
                failures.push(format!("{} {kept} {shown:?}", target.name));
            }
            Some(said) if seen.insert(said) => {
                if keeps && room > 0 {
                    keep(target, &input, "kept");
                    room -= 1;
                }
                pool.push(input);
            }
            Some(_) => {}
        }
    }
    (tried, pool.len(), failures)
}

/// `AEGIS_FUZZ_S` is the time for each target in seconds; without it each gets a few hundred inputs.
/// `AEGIS_FUZZ_SEED` is what the mutations depend on.
#[test]
fn mutated_inputs_make_no_target_fail() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let effort = number("AEGIS_FUZZ_S").map_or(Effort::Inputs(300), |s| Effort::Time(Duration::from_secs(s)));
    let seed = number("AEGIS_FUZZ_SEED").unwrap_or_default();
    let mut failed = Vec::new();
    for target in TARGETS {
        let (tried, pool, failures) = mutate(target, &effort, seed);
        println!("{:20} {tried:9} inputs  {pool:5} in the pool  {} failures", target.name, failures.len());
        failed.extend(failures);
    }
    assert!(failed.is_empty(), "these make a target fail: {failed:#?}");
}
