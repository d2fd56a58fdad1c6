//! What a campaign spends, written down as it is spent: a line when a call is put aside, a line when it is settled. A
//! call that was never settled counts at its bound.
//!
//! A call is named by its source and a number: each process that writes is a source of its own. So the lines of several
//! journals, in one file and in any order, copies among them, say what all of them spent together.

use std::{
    collections::{BTreeMap, hash_map::RandomState},
    hash::BuildHasher,
    io::{self, BufRead, BufReader},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};

use crate::{
    budget::{Cost, SpendingJournal},
    recording::{AppendedLines, Masked, MaskedFile, RunFile},
};

/// The journal, open for more.
#[derive(Debug)]
pub(super) struct Journal {
    lines: AppendedLines,
    source: String,
    next: AtomicU64,
    before: Cost,
}

#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum JournalLine {
    Reserved {
        /// The process that made the call; empty in journals that were written before sources were.
        #[serde(default, rename = "s")]
        source: String,
        n: u64,
        most: Cost,
    },
    Settled {
        #[serde(default, rename = "s")]
        source: String,
        n: u64,
        cost: Cost,
    },
}

/// The schema of a line of `spent.jsonl`.
pub fn spending_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.root_schema_for::<JournalLine>()
}

/// What lines of journals say, each call once. It holds the calls that are not settled, and of the others only which they
/// are, in ranges: it does not grow with their number.
#[derive(Debug, Default)]
pub(super) struct JournalledCalls {
    sources: BTreeMap<String, JournalledBySource>,
}

#[derive(Debug, Default)]
struct JournalledBySource {
    settled: Cost,
    open: BTreeMap<u64, Cost>,
    /// Settled calls: first and last of each range.
    settled_ranges: BTreeMap<u64, u64>,
}

impl JournalledCalls {
    /// Hears a line; whether it says anything that was not said before.
    fn add_line(&mut self, line: &JournalLine) -> bool {
        match line {
            JournalLine::Reserved { source, n, most } => {
                let of = self.sources.entry(source.clone()).or_default();
                !of.is_settled(*n) && of.open.insert(*n, *most).is_none()
            }
            JournalLine::Settled { source, n, cost } => {
                let of = self.sources.entry(source.clone()).or_default();
                let new = of.settle(*n);
                if new {
                    of.open.remove(n);
                    of.settled.add(cost);
                }
                new
            }
        }
    }

    /// Reads lines to their end. A torn one, of a call that was never made, is passed over.
    fn read(&mut self, lines: impl BufRead, mut new: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        for line in lines.split(b'\n') {
            let line = line?;
            match serde_json::from_slice(&line) {
                Ok(told) => {
                    if self.add_line(&told) {
                        new(&line)?;
                    }
                }
                Err(error) if !line.is_empty() => tracing::debug!(%error, "a line of the journal is torn"),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// What all calls cost: settled ones what they did, others their bound.
    pub(super) fn total(&self) -> Cost {
        let mut total = Cost::default();
        for of in self.sources.values() {
            total.add(&of.settled);
            of.open.values().for_each(|most| total.add(most));
        }
        total
    }
}

impl JournalledBySource {
    fn is_settled(&self, n: u64) -> bool {
        self.settled_ranges.range(..=n).next_back().is_some_and(|(_, last)| n <= *last)
    }

    /// Marks a call as settled; whether it was not.
    fn settle(&mut self, n: u64) -> bool {
        if self.is_settled(n) {
            return false;
        }
        let mut last = n;
        if let Some(end) = n.checked_add(1).and_then(|next| self.settled_ranges.remove(&next)) {
            last = end;
        }
        match self.settled_ranges.range_mut(..n).next_back() {
            Some((_, end)) if end.checked_add(1) == Some(n) => *end = last,
            _ => drop(self.settled_ranges.insert(n, last)),
        }
        true
    }
}

impl Journal {
    /// Reads what was spent and goes on, as a source of its own.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let lines = AppendedLines::open(path)?;
        let mut spent = JournalledCalls::default();
        spent.read(BufReader::new(RunFile::open(path)?), |_| Ok(()))?;
        Ok(Self { lines, source: new_source(), next: AtomicU64::new(0), before: spent.total() })
    }

    /// What was spent before this program began.
    pub(super) fn spent_before(&self) -> Cost {
        self.before
    }

    fn write(&self, line: &JournalLine) -> io::Result<()> {
        self.lines.add(&Masked::json_line(line)?)
    }
}

impl SpendingJournal for Journal {
    fn reserve(&self, most: &Cost) -> io::Result<u64> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.write(&JournalLine::Reserved { source: self.source.clone(), n, most: *most })?;
        Ok(n)
    }

    fn settle(&self, n: u64, cost: &Cost) -> io::Result<()> {
        self.write(&JournalLine::Settled { source: self.source.clone(), n, cost: *cost })
    }
}

/// Puts journals together, each call once, into a file that is not there yet. Those that are not there add nothing.
pub(super) fn unite<'a>(journals: impl Iterator<Item = &'a Path>, into: &Path) -> io::Result<Cost> {
    let mut spent = JournalledCalls::default();
    let mut written = MaskedFile::create_new(into)?;
    for journal in journals {
        match RunFile::open(journal) {
            Ok(file) => spent.read(BufReader::new(file), |line| {
                let mut line = Masked::new(line);
                line.push(&Masked::fixed(b"\n"));
                written.write(&line)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    written.finish()?;
    Ok(spent.total())
}

/// A name that no other process has: no clock, no host is in it.
fn new_source() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(calls: u64, input: u64) -> Cost {
        Cost { calls, input, ..Cost::default() }
    }

    #[test]
    fn what_was_never_settled_counts_at_its_bound() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("spent.jsonl");
        let journal = Journal::open(&path).expect("opens");
        let first = journal.reserve(&cost(1, 100)).expect("written");
        journal.reserve(&cost(1, 50)).expect("written");
        journal.settle(first, &cost(1, 7)).expect("written");
        journal.lines.add(&Masked::fixed(b"{\"settled\":{\"n\":1,\"co")).expect("written");
        drop(journal);
        let again = Journal::open(&path).expect("opens");
        assert_eq!(again.spent_before(), cost(2, 57));
        again.reserve(&cost(1, 1)).expect("written");
        assert_eq!(Journal::open(&path).expect("opens").spent_before(), cost(3, 58));
    }

    #[test]
    fn journals_in_one_file_say_what_all_spent_together() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        // Written before sources were: its numbers are those of no other.
        let old = "{\"reserved\":{\"n\":0,\"most\":{\"calls\":1,\"input\":9,\"output\":0,\"pico\":0}}}\n\
                   {\"settled\":{\"n\":0,\"cost\":{\"calls\":1,\"input\":4,\"output\":0,\"pico\":0}}}\n";
        std::fs::write(at("a"), old).expect("written");
        for (name, tokens) in [("a", 10), ("b", 20), ("b", 30)] {
            let journal = Journal::open(&at(name)).expect("opens");
            let open = journal.reserve(&cost(1, 1000)).expect("written");
            let done = journal.reserve(&cost(1, 1000)).expect("written");
            journal.settle(done, &cost(1, tokens)).expect("written");
            if name == "b" {
                journal.settle(open, &cost(1, 1)).expect("written");
            }
        }
        let text = |name| std::fs::read_to_string(at(name)).expect("read");
        // A copy of one that went on afterwards is in it, too.
        let half: String = text("b").lines().take(3).flat_map(|line| [line, "\n"]).collect();
        let all = cost(7, 4 + 1000 + 10 + 20 + 1 + 30 + 1);
        for order in [["a", "b"], ["b", "a"]] {
            std::fs::write(at("half"), &half).expect("written");
            std::fs::write(at("all"), text(order[0]) + &half + &text(order[1]) + &text(order[0])).expect("written");
            assert_eq!(Journal::open(&at("all")).expect("opens").spent_before(), all, "{order:?}");
            let paths = [at(order[0]), at("half"), at(order[1]), at("none"), at(order[0])];
            let _ = std::fs::remove_file(at("united"));
            let united = unite(paths.iter().map(std::path::PathBuf::as_path), &at("united")).expect("united");
            assert_eq!(united, all, "{order:?}");
            let lines = text("united").lines().count();
            assert_eq!(lines, text("a").lines().count() + text("b").lines().count(), "each line once");
            assert_eq!(Journal::open(&at("united")).expect("opens").spent_before(), all);
        }
    }

    #[test]
    fn settled_calls_are_kept_as_ranges() {
        let mut of = JournalledBySource::default();
        for n in [5, 3, 4, 0, u64::MAX, 1, 7] {
            assert!(of.settle(n) && !of.settle(n), "{n}");
        }
        assert_eq!(
            of.settled_ranges.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>(),
            [(0, 1), (3, 5), (7, 7), (u64::MAX, u64::MAX)]
        );
        assert!(!of.is_settled(2) && !of.is_settled(6) && of.is_settled(4));
    }
}
