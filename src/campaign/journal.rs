//! What a campaign spends, written down as it is spent: a line when a call is put aside, a line when it is settled. A
//! call that was never settled counts at its bound.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};

use super::cost::Cost;

/// The journal, open for more.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    next: AtomicU64,
    before: Cost,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalLine {
    Reserved { n: u64, most: Cost },
    Settled { n: u64, cost: Cost },
}

impl Journal {
    /// Reads what was spent and goes on. A torn last line, of a call that was never made, is passed over.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::options().create(true).read(true).append(true).mode(0o600).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let mut calls: BTreeMap<u64, Cost> = BTreeMap::new();
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(JournalLine::Reserved { n, most }) => drop(calls.insert(n, most)),
                Ok(JournalLine::Settled { n, cost }) => drop(calls.insert(n, cost)),
                Err(error) => tracing::debug!(%error, "a line of the journal is torn"),
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        let mut before = Cost::default();
        for cost in calls.values() {
            before.add(cost);
        }
        let next = calls.last_key_value().map_or(0, |(last, _)| last + 1);
        Ok(Self { file, next: AtomicU64::new(next), before })
    }

    /// What was spent before this program began.
    pub(super) fn spent_before(&self) -> Cost {
        self.before
    }

    /// A call is put aside; its number.
    pub(super) fn reserve(&self, most: &Cost) -> io::Result<u64> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.write(&JournalLine::Reserved { n, most: *most })?;
        Ok(n)
    }

    /// A call is settled.
    pub(super) fn settle(&self, n: u64, cost: &Cost) -> io::Result<()> {
        self.write(&JournalLine::Settled { n, cost: *cost })
    }

    /// One write a line: lines of several threads do not mix.
    fn write(&self, line: &JournalLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line).map_err(io::Error::other)?;
        text.push(b'\n');
        (&self.file).write_all(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_settled_counts_at_its_bound() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("spent.jsonl");
        let cost = |calls, input| Cost { calls, input, ..Cost::default() };
        let journal = Journal::open(&path).expect("opens");
        let first = journal.reserve(&cost(1, 100)).expect("written");
        journal.reserve(&cost(1, 50)).expect("written");
        journal.settle(first, &cost(1, 7)).expect("written");
        (&journal.file).write_all(b"{\"settled\":{\"n\":1,\"co").expect("written");
        drop(journal);
        let again = Journal::open(&path).expect("opens");
        assert_eq!(again.spent_before(), cost(2, 57));
        assert_eq!(again.reserve(&cost(1, 1)).expect("written"), 2);
        assert_eq!(Journal::open(&path).expect("opens").spent_before(), cost(3, 58));
    }
}
