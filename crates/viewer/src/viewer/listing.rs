//! What lies below some directories: runs, campaigns, datasets. Small files are read; a log is opened where its run has a label, to
//! ask whether that holds, and of the newest sealed runs to say how much of them was read, as far as [`LOOKED_AT`] goes. What was
//! read of many runs is [kept on disk](cache): a hundred thousand are listed in a second.

mod cache;
mod campaign_cell;
mod query;
mod row;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::campaign_cell::CampaignCell;
pub use self::{
    cache::ListingCache,
    query::{ChosenRuns, RunOrder, RunQuery},
    row::{LabelRow, LabelledStep, RunKind, RunRow},
};
use super::{
    accounts::account_of,
    stamp::{RunStamp, TRIALS, stamp},
    suspected::is_rows,
};
use crate::{
    dataset::{self, DecoyCounts},
    recording::{RunFile, each_in_threads},
    trajectory::Verdict,
};

/// What a campaign says of itself.
const REPORT: &str = "report.json";
/// How deep is looked.
const DEEPEST: usize = 6;
/// How much of logs and requests is looked at for the accounts of a list, in bytes.
const LOOKED_AT: u64 = 64 << 20;
/// Of how many runs, the newest, at most.
const NEWEST: usize = 4000;
/// So many directories are looked at, and so many runs read, before what they share is stored once.
const AT_ONCE: usize = 8192;

/// A directory that is no run: a campaign or a dataset.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ListingPlace {
    /// What names it in addresses.
    pub key: String,
    /// Where it lies.
    pub dir: PathBuf,
    /// Of a campaign that planted decoys: how many of them its proof took for errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoys: Option<DecoyCounts>,
}

/// What lies below some directories.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Listing {
    /// The runs, newest first.
    pub runs: Vec<Arc<RunRow>>,
    /// The campaigns.
    pub campaigns: Vec<ListingPlace>,
    /// The datasets.
    pub datasets: Vec<ListingPlace>,
    /// Files of rows of `aegis attribute` that were named: they tell of runs and samples by their ids.
    #[serde(skip)]
    pub predictions: Vec<PathBuf>,
}

impl Listing {
    /// Looks below directories, and at files of samples. A directory may be a run, a campaign, a dataset, or hold some.
    pub fn scan(dirs: &[PathBuf]) -> Self {
        let mut cache = ListingCache::open(dirs);
        let listing = Self::refreshed(dirs, &mut cache);
        cache.save();
        listing
    }

    /// The same, reading only what changed since it was looked last.
    pub fn refreshed(dirs: &[PathBuf], known: &mut ListingCache) -> Self {
        let mut found = FoundEntry { cache: std::mem::take(known), ..FoundEntry::default() };
        for dir in dirs {
            found.look(&FoundPath::at(dir.to_owned(), &found.cache), 0, None);
        }
        found.read_runs();
        found.finish();
        *known = found.now;
        found.listing
    }

    /// The run that an address names.
    pub fn run(&self, key: &str) -> Option<&RunRow> {
        self.runs.iter().map(AsRef::as_ref).find(|row: &&RunRow| row.key == key)
    }

    /// The run of this id; of several, the one nearest to a directory.
    pub fn run_named(&self, id: &str, near: &Path) -> Option<&RunRow> {
        let shared = |row: &&Arc<RunRow>| {
            let parts = row.dir.components().zip(near.components());
            parts.take_while(|(own, other)| own == other).count()
        };
        self.runs.iter().filter(|row| row.run == id).max_by_key(shared).map(AsRef::as_ref)
    }

    /// A run of the same program with the same words that nothing was planted in and that did not fail: what a run that
    /// failed, or a labelled one without a proven twin, is best seen beside. The newest of several.
    pub fn like(&self, dir: &Path) -> Option<&RunRow> {
        let went_wrong = |row: &RunRow| row.label.is_some() || row.outcome == Verdict::Failure;
        let own = self.runs.iter().find(|row| row.dir == dir && went_wrong(row) && row.program.is_some())?;
        let like = self.runs.iter().find(|row| {
            let planted = row.label.is_some() || row.plan.is_some() || row.trial_of.is_some();
            row.key != own.key && row.program == own.program && !planted && row.outcome != Verdict::Failure
        });
        like.map(AsRef::as_ref)
    }

    /// The campaign that an address names.
    pub fn campaign(&self, key: &str) -> Option<&ListingPlace> {
        self.campaigns.iter().find(|place| place.key == key)
    }

    /// The dataset that an address names.
    pub fn dataset(&self, key: &str) -> Option<&ListingPlace> {
        self.datasets.iter().find(|place| place.key == key)
    }
}

/// What a name in an address is of; each kind has names of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum EntryKind {
    Run,
    Campaign,
    Dataset,
}

/// What a campaign's report says of its runs.
#[derive(Debug, Default)]
struct ReportedRuns {
    /// Of injected ones, by their ids.
    cells: Vec<(String, CampaignCell)>,
    decoys: Option<DecoyCounts>,
}

type Cells = Arc<ReportedRuns>;

/// A run's directory that was found.
#[derive(Debug)]
struct RunDirectory {
    dir: PathBuf,
    stamp: RunStamp,
    /// The place in the list of the run whose trace made it.
    trial_of: Option<usize>,
}

/// A path that is looked at.
#[derive(Debug)]
struct FoundPath {
    path: PathBuf,
    /// What the file system says of it, links followed.
    facts: Option<fs::Metadata>,
    /// Where it is a run.
    run: Option<RunStamp>,
}

impl FoundPath {
    fn at(path: PathBuf, cache: &ListingCache) -> Self {
        let facts = fs::metadata(&path).ok();
        let dir = facts.as_ref().filter(|facts| facts.is_dir());
        let run = dir.and_then(|facts| RunStamp::now(&path, facts, cache.stamp_of(&path)));
        Self { path, facts, run }
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct FoundEntry {
    cache: ListingCache,
    now: ListingCache,
    listing: Listing,
    runs: Vec<RunDirectory>,
    rows: Vec<(RunStamp, Arc<RunRow>)>,
    keys: HashSet<(EntryKind, String)>,
    /// Device and inode of what was looked at.
    seen: HashSet<(u64, u64)>,
    /// Of campaigns: what their reports say of a run, by the run's id, and the campaign's key.
    cells: HashMap<String, (Arc<str>, CampaignCell)>,
}

impl FoundEntry {
    /// Looks at a path.
    fn look(&mut self, found: &FoundPath, depth: usize, trial_of: Option<usize>) {
        let dir = found.path.as_path();
        let Some(facts) = &found.facts else { return };
        // A link that leads back up would be followed for ever.
        if depth > DEEPEST || !self.seen.insert((facts.dev(), facts.ino())) {
            return;
        }
        if facts.is_file() && is_rows(dir) {
            self.listing.predictions.push(dir.to_owned());
            return;
        }
        if facts.is_file() {
            let key = self.key(EntryKind::Dataset, dir);
            self.listing.datasets.push(ListingPlace { key, dir: dir.to_owned(), decoys: None });
            return;
        }
        if let Some(stamp) = found.run {
            let number = self.runs.len();
            self.runs.push(RunDirectory { dir: dir.to_owned(), stamp, trial_of });
            if stamp.has_trials {
                self.below(&dir.join(TRIALS), depth, Some(number));
            }
            return;
        }
        if let Some(cells) = self.report(dir) {
            let key = self.key(EntryKind::Campaign, dir);
            let shared: Arc<str> = key.as_str().into();
            for (run, cell) in &cells.cells {
                self.cells.insert(run.clone(), (Arc::clone(&shared), cell.clone()));
            }
            self.listing.campaigns.push(ListingPlace { key, dir: dir.to_owned(), decoys: cells.decoys });
        }
        if dir.join(dataset::FILE).is_file() {
            let key = self.key(EntryKind::Dataset, dir);
            self.listing.datasets.push(ListingPlace { key, dir: dir.to_owned(), decoys: None });
        }
        self.below(dir, depth, trial_of);
    }

    /// The lines of the runs that were found, read anew where their files changed.
    fn read_runs(&mut self) {
        for block in std::mem::take(&mut self.runs).chunks(AT_ONCE) {
            let known: Vec<Option<Arc<RunRow>>> =
                block.iter().map(|run| self.cache.take(&run.dir, run.stamp)).collect();
            let unread: Vec<&Path> =
                block.iter().zip(&known).filter(|(_, row)| row.is_none()).map(|(run, _)| run.dir.as_path()).collect();
            self.now.read_anew += unread.len();
            let mut read = each_in_threads(&unread, |dir| row::row_of(dir)).into_iter().map(|mut row| {
                self.cache.words.share(&mut row);
                Arc::new(row)
            });
            let rows: Vec<Arc<RunRow>> = known.into_iter().filter_map(|row| row.or_else(|| read.next())).collect();
            for (run, mut row) in block.iter().zip(rows) {
                let key = self.unique(EntryKind::Run, &row.run);
                let trial_of = run.trial_of.and_then(|parent| Some(self.rows.get(parent)?.1.run.as_str().into()));
                let own = Arc::make_mut(&mut row);
                (own.key, own.trial_of, own.campaign, own.class) = (key, trial_of, None, None);
                self.rows.push((run.stamp, row));
            }
        }
    }

    /// What a campaign's report says of its runs; `None` where the directory is none of a campaign.
    fn report(&mut self, dir: &Path) -> Option<Cells> {
        if !dir.join(REPORT).is_file() {
            return None;
        }
        let stamp = stamp(dir);
        let known = self.cache.reports.remove(dir).filter(|(known, _)| *known == stamp);
        let cells = known.map_or_else(|| report_of(dir).map(|report| cells_of(&report)), |(_, cells)| cells);
        self.now.reports.insert(dir.to_owned(), (stamp, cells.clone()));
        cells
    }

    fn below(&mut self, dir: &Path, depth: usize, trial_of: Option<usize>) {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let may_be_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
        let mut paths: Vec<PathBuf> = entries.filter(may_be_dir).map(|entry| entry.path()).collect();
        paths.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        for block in paths.chunks(AT_ONCE) {
            let cache = &self.cache;
            let found = each_in_threads(block, |path| FoundPath::at(path.clone(), cache));
            for found in found.iter().filter(|found| found.facts.as_ref().is_some_and(fs::Metadata::is_dir)) {
                self.look(found, depth + 1, trial_of);
            }
        }
    }

    /// A name for addresses, from a directory's.
    fn key(&mut self, kind: EntryKind, dir: &Path) -> String {
        let named = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let name = named.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let name: String = name.chars().map(plain).collect();
        self.unique(kind, if name.is_empty() { "here" } else { &name })
    }

    /// The name, with a number behind it where it is taken.
    fn unique(&mut self, kind: EntryKind, name: &str) -> String {
        let mut key = name.to_owned();
        let mut number = 1;
        while !self.keys.insert((kind, key.clone())) {
            number += 1;
            key = format!("{name}~{number}");
        }
        key
    }

    fn finish(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        for (_, row) in &mut rows {
            if let Some((campaign, cell)) = self.cells.get(&row.run) {
                cell.tell(campaign, Arc::make_mut(row));
            }
        }
        rows.sort_unstable_by(|(_, a), (_, b)| b.started.cmp(&a.started).then_with(|| a.key.cmp(&b.key)));
        let mut room = LOOKED_AT;
        for (_, row) in rows.iter_mut().take(NEWEST).filter(|(_, row)| row.sealed && row.account.is_none()) {
            let Some(account) = account_of(&row.dir, &mut room) else { continue };
            self.now.read_anew += 1;
            Arc::make_mut(row).account = Some(account);
        }
        self.listing.runs = rows.iter().map(|(_, row)| Arc::clone(row)).collect();
        for (stamp, row) in rows {
            self.now.insert(stamp, row);
        }
        self.now.words = std::mem::take(&mut self.cache.words);
        self.now.file = self.cache.file.take();
    }
}

/// What a campaign's report says; `None` where the directory is none of a campaign that has come to one.
pub(super) fn report_of(dir: &Path) -> Option<Value> {
    let report: Value = serde_json::from_slice(&RunFile::bytes(&dir.join(REPORT)).ok()?).ok()?;
    report.get("campaign").is_some().then_some(report)
}

fn cells_of(report: &Value) -> Cells {
    let named = |list: &str, is_decoy: bool| {
        let cells = report.get(list).and_then(Value::as_array).into_iter().flatten();
        let named = cells.filter_map(|cell| {
            Some((cell.get("run")?.as_str()?.to_owned(), CampaignCell::from_report(cell, is_decoy)))
        });
        named.collect::<Vec<_>>()
    };
    let decoys = report.get("decoys").and_then(|decoys| DecoyCounts::deserialize(decoys).ok());
    Arc::new(ReportedRuns { cells: [named("cells", false), named("decoy_cells", true)].concat(), decoys })
}

/// How many runs there are of each outcome, for the last line of a list.
pub fn outcomes(runs: &[Arc<RunRow>]) -> BTreeMap<String, usize> {
    let counted = [Verdict::Success, Verdict::Failure, Verdict::Unknown].map(|outcome| {
        let count = runs.iter().filter(|row| row.outcome == outcome).count();
        (super::data::word(&outcome), count)
    });
    counted.into_iter().filter(|(_, count)| *count > 0).collect()
}
