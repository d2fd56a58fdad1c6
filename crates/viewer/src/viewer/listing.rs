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
    stamp::{Stamp, stamp},
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
        let listing = Self::again(dirs, &mut cache);
        cache.save();
        listing
    }

    /// The same, reading only what changed since it was looked last.
    pub fn again(dirs: &[PathBuf], known: &mut ListingCache) -> Self {
        let mut found = FoundEntry { cache: std::mem::take(known), ..FoundEntry::default() };
        for dir in dirs {
            let place = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
            found.look(dir, &place, 0, None);
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
    /// The place in the list of the run whose trace made it.
    trial_of: Option<usize>,
}

/// What was found so far.
#[derive(Debug, Default)]
struct FoundEntry {
    cache: ListingCache,
    now: ListingCache,
    listing: Listing,
    runs: Vec<RunDirectory>,
    stamps: Vec<Stamp>,
    keys: HashSet<(EntryKind, String)>,
    seen: HashSet<PathBuf>,
    /// Of campaigns: what their reports say of a run, by the run's id, and the campaign's key.
    cells: HashMap<String, (Arc<str>, CampaignCell)>,
}

impl FoundEntry {
    /// Looks at a path; `place` is where it is without links.
    fn look(&mut self, dir: &Path, place: &Path, depth: usize, trial_of: Option<usize>) {
        // A link that leads back up would be followed for ever.
        if depth > DEEPEST || !self.seen.insert(place.to_owned()) {
            return;
        }
        if dir.is_file() && is_rows(dir) {
            self.listing.predictions.push(dir.to_owned());
            return;
        }
        if dir.is_file() {
            let key = self.key(EntryKind::Dataset, dir);
            self.listing.datasets.push(ListingPlace { key, dir: dir.to_owned(), decoys: None });
            return;
        }
        if dir.join("run.json").is_file() {
            let number = self.runs.len();
            self.runs.push(RunDirectory { dir: dir.to_owned(), trial_of });
            self.below(&dir.join("trials"), &place.join("trials"), depth, Some(number));
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
        self.below(dir, place, depth, trial_of);
    }

    /// The lines of the runs that were found, read anew where their files changed.
    fn read_runs(&mut self) {
        self.stamps = each_in_threads(&self.runs, |run| stamp(&run.dir));
        let mut rows: Vec<Option<Arc<RunRow>>> = Vec::with_capacity(self.runs.len());
        for (run, stamp) in self.runs.iter().zip(&self.stamps) {
            rows.push(self.cache.take(&run.dir, *stamp));
        }
        let unread: Vec<&Path> =
            self.runs.iter().zip(&rows).filter(|(_, row)| row.is_none()).map(|(run, _)| run.dir.as_path()).collect();
        self.now.read_anew = unread.len();
        let mut read = each_in_threads(&unread, |dir| row::row_of(dir)).into_iter();
        let mut ids: Vec<Arc<str>> = Vec::with_capacity(self.runs.len());
        for (number, row) in rows.into_iter().enumerate() {
            let Some(mut row) = row.or_else(|| read.next().map(Arc::new)) else { continue };
            ids.push(row.run.as_str().into());
            let key = self.unique(EntryKind::Run, &row.run);
            let trial_of =
                self.runs.get(number).and_then(|run| run.trial_of).and_then(|parent| ids.get(parent).cloned());
            let own = Arc::make_mut(&mut row);
            self.cache.words.share(own);
            *own = RunRow { key, trial_of, campaign: None, class: None, ..std::mem::take(own) };
            self.listing.runs.push(row);
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

    fn below(&mut self, dir: &Path, place: &Path, depth: usize, trial_of: Option<usize>) {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let mut dirs: Vec<(PathBuf, PathBuf)> = entries
            .filter_map(|entry| {
                let (path, kind) = (entry.path(), entry.file_type().ok()?);
                if kind.is_dir() {
                    return Some((path, place.join(entry.file_name())));
                }
                let linked = fs::canonicalize(&path).ok().filter(|linked| kind.is_symlink() && linked.is_dir())?;
                Some((path, linked))
            })
            .collect();
        dirs.sort();
        for (dir, place) in dirs {
            self.look(&dir, &place, depth + 1, trial_of);
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
        for row in &mut self.listing.runs {
            if let Some((campaign, cell)) = self.cells.get(&row.run) {
                cell.tell(campaign, Arc::make_mut(row));
            }
        }
        let stamps: HashMap<&Path, Stamp> =
            self.runs.iter().map(|run| run.dir.as_path()).zip(self.stamps.iter().copied()).collect();
        self.listing.runs.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.key.cmp(&b.key)));
        let mut room = LOOKED_AT;
        for row in self.listing.runs.iter_mut().take(NEWEST).filter(|row| row.sealed && row.account.is_none()) {
            let Some(account) = account_of(&row.dir, &mut room) else { continue };
            self.now.read_anew += 1;
            Arc::make_mut(row).account = Some(account);
        }
        for row in &self.listing.runs {
            let Some(stamp) = stamps.get(row.dir.as_path()) else { continue };
            self.now.put(*stamp, Arc::clone(row));
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
    let mut counts = BTreeMap::new();
    for row in runs {
        *counts.entry(super::data::word(&row.outcome)).or_default() += 1;
    }
    counts
}
