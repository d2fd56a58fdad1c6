//! What lies below some directories: runs, campaigns, datasets. Small files are read; a log is opened where its run has a label, to
//! ask whether that holds, and of the newest sealed runs to say how much of them was read, as far as [`LOOKED_AT`] goes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use super::{
    accounts::account_of,
    stamp::{Stamp, stamp},
    suspected::{Suspected, is_rows},
    traced::Traced,
};
use crate::{
    dataset,
    recording::{self, Manifest, RunFile},
    ruling,
    surface::account::RunAccount,
    trajectory::{Label, Verdict},
};

/// What a campaign says of itself.
const REPORT: &str = "report.json";
/// How deep is looked.
const DEEPEST: usize = 6;
/// How much of logs and requests is looked at for the accounts of a list, in bytes.
const LOOKED_AT: u64 = 64 << 20;

/// A run in one line.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct RunRow {
    /// What names it in addresses: its id, with a number behind it where another run of the list has the same id.
    pub key: String,
    /// Its id.
    pub run: String,
    /// Its directory.
    pub dir: PathBuf,
    /// When it began, RFC 3339 UTC.
    pub started: String,
    /// From its first call to the end of its last, in seconds; `None` where it is not sealed, or an earlier version sealed it.
    pub seconds: Option<f64>,
    /// What was run.
    pub program: Option<String>,
    /// The task, by words or by its id.
    pub task: Option<String>,
    /// Its agents; of a run that is not sealed, nobody knows yet.
    pub agents: Vec<String>,
    /// Its steps, as far as the seal tells.
    pub calls: Option<u64>,
    /// What it achieved.
    pub outcome: Verdict,
    /// What was seen.
    pub evidence: String,
    /// Whether it is sealed; others may still be written.
    pub sealed: bool,
    /// How many of its steps were read. `None` where it is not sealed, or where the list had looked at enough.
    pub account: Option<RunAccount>,
    /// Its label: how sure, and who failed where.
    pub label: Option<LabelRow>,
    /// The format of the trace that it was imported from.
    pub imported: Option<String>,
    /// What a trace found.
    pub trace: Option<String>,
    /// Whom methods of attribution name, from the log alone.
    pub suspected: Option<String>,
    /// The campaign that it belongs to.
    pub campaign: Option<String>,
    /// Its plan's name there.
    pub plan: Option<String>,
    /// What it was counted as there.
    pub class: Option<String>,
    /// The run whose trace made it.
    pub trial_of: Option<String>,
    /// Why it cannot be read.
    pub unreadable: Option<String>,
}

/// A label in short.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct LabelRow {
    /// How far it is established.
    pub status: String,
    /// Who, where, how.
    pub errors: Vec<LabelledStep>,
    /// What stands in their place where it names nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nobody: Option<String>,
    /// The first gate that refuses it now, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// An error of a label.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct LabelledStep {
    /// The agent.
    pub agent: String,
    /// The step.
    pub step: u32,
    /// The failure mode's code; `None` where it is unknown.
    pub mode: Option<&'static str>,
    /// What it is where executions found it: `natural error` or `inherited error`; `None` where it was planted in the run.
    pub found: Option<&'static str>,
}

/// A directory that is no run: a campaign or a dataset.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ListingPlace {
    /// What names it in addresses.
    pub key: String,
    /// Where it lies.
    pub dir: PathBuf,
}

/// What lies below some directories.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Listing {
    /// The runs, newest first.
    pub runs: Vec<RunRow>,
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
        Self::again(dirs, &mut ListingCache::default())
    }

    /// The same, reading only what changed since it was looked last.
    pub fn again(dirs: &[PathBuf], known: &mut ListingCache) -> Self {
        let mut found = FoundEntry { cache: std::mem::take(known), ..FoundEntry::default() };
        for dir in dirs {
            found.look(dir, 0, None);
        }
        found.finish();
        *known = found.now;
        found.listing
    }

    /// The run that an address names.
    pub fn run(&self, key: &str) -> Option<&RunRow> {
        self.runs.iter().find(|row| row.key == key)
    }

    /// The run of this id; of several, the one nearest to a directory.
    pub fn run_named(&self, id: &str, near: &Path) -> Option<&RunRow> {
        let shared = |row: &&RunRow| {
            let parts = row.dir.components().zip(near.components());
            parts.take_while(|(own, other)| own == other).count()
        };
        self.runs.iter().filter(|row| row.run == id).max_by_key(shared)
    }

    /// A run of the same program with the same words that nothing was planted in and that did not fail: what a run that
    /// failed, or a labelled one without a proven twin, is best seen beside. The newest of several.
    pub fn like(&self, dir: &Path) -> Option<&RunRow> {
        let went_wrong = |row: &RunRow| row.label.is_some() || row.outcome == Verdict::Failure;
        let own = self.runs.iter().find(|row| row.dir == dir && went_wrong(row) && row.program.is_some())?;
        self.runs.iter().find(|row| {
            let planted = row.label.is_some() || row.plan.is_some() || row.trial_of.is_some();
            row.key != own.key && row.program == own.program && !planted && row.outcome != Verdict::Failure
        })
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

/// What was read of runs and campaigns, with how their directories looked then.
#[derive(Debug, Default)]
pub struct ListingCache {
    rows: HashMap<PathBuf, (Stamp, RunRow)>,
    reports: HashMap<PathBuf, (Stamp, Option<Cells>)>,
}

/// What a campaign's report says of its injected runs, by their ids.
type Cells = std::sync::Arc<Vec<(String, Value)>>;

/// What was found so far.
#[derive(Debug, Default)]
struct FoundEntry {
    cache: ListingCache,
    now: ListingCache,
    listing: Listing,
    keys: HashSet<(EntryKind, String)>,
    seen: HashSet<PathBuf>,
    /// Of campaigns: what their reports say of a run, by the run's id, and the campaign's key.
    cells: HashMap<String, (String, Value)>,
}

impl FoundEntry {
    fn look(&mut self, dir: &Path, depth: usize, trial_of: Option<&str>) {
        // A link that leads back up would be followed for ever.
        if depth > DEEPEST || !self.seen.insert(fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned())) {
            return;
        }
        if dir.is_file() && is_rows(dir) {
            self.listing.predictions.push(dir.to_owned());
            return;
        }
        if dir.is_file() {
            let key = self.key(EntryKind::Dataset, dir);
            self.listing.datasets.push(ListingPlace { key, dir: dir.to_owned() });
            return;
        }
        if dir.join("run.json").is_file() {
            let mut row = self.row(dir);
            row.key = self.unique(EntryKind::Run, &row.run);
            row.trial_of = trial_of.map(str::to_owned);
            let id = row.run.clone();
            self.listing.runs.push(row);
            self.below(&dir.join("trials"), depth, Some(&id));
            return;
        }
        if let Some(cells) = self.report(dir) {
            let key = self.key(EntryKind::Campaign, dir);
            for (run, cell) in cells.iter() {
                self.cells.insert(run.clone(), (key.clone(), cell.clone()));
            }
            self.listing.campaigns.push(ListingPlace { key, dir: dir.to_owned() });
        }
        if dir.join(dataset::FILE).is_file() {
            let key = self.key(EntryKind::Dataset, dir);
            self.listing.datasets.push(ListingPlace { key, dir: dir.to_owned() });
        }
        self.below(dir, depth, trial_of);
    }

    /// The line of a run, read anew where its files changed.
    fn row(&mut self, dir: &Path) -> RunRow {
        let stamp = stamp(dir);
        let known = self.cache.rows.remove(dir).filter(|(known, _)| *known == stamp);
        let row = known.map_or_else(|| row_of(dir), |(_, row)| row);
        self.now.rows.insert(dir.to_owned(), (stamp, row.clone()));
        row
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

    fn below(&mut self, dir: &Path, depth: usize, trial_of: Option<&str>) {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let mut dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        dirs.sort();
        for dir in dirs {
            self.look(&dir, depth + 1, trial_of);
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
            let Some((campaign, cell)) = self.cells.get(&row.run) else { continue };
            let word = |name: &str| cell.get(name).and_then(Value::as_str).map(str::to_owned);
            row.campaign = Some(campaign.clone());
            row.plan = word("plan");
            row.class = word("class");
            row.task = row.task.take().or_else(|| word("task"));
            row.program = row.program.take().or_else(|| word("system"));
        }
        self.listing.runs.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.key.cmp(&b.key)));
        let mut room = LOOKED_AT;
        for row in self.listing.runs.iter_mut().filter(|row| row.sealed && row.account.is_none()) {
            row.account = account_of(&row.dir, &mut room);
            if let Some((_, known)) = self.now.rows.get_mut(&row.dir) {
                known.account = row.account;
            }
        }
    }
}

/// What a campaign's report says; `None` where the directory is none of a campaign that has come to one.
pub(super) fn report_of(dir: &Path) -> Option<Value> {
    let report: Value = serde_json::from_slice(&RunFile::bytes(&dir.join(REPORT)).ok()?).ok()?;
    report.get("campaign").is_some().then_some(report)
}

fn cells_of(report: &Value) -> Cells {
    let cells = ["cells", "decoy_cells"].into_iter().filter_map(|list| report.get(list).and_then(Value::as_array));
    let named = cells.flatten().filter_map(|cell| Some((cell.get("run")?.as_str()?.to_owned(), cell.clone())));
    std::sync::Arc::new(named.collect())
}

/// The line of a run.
fn row_of(dir: &Path) -> RunRow {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let manifest = match recording::read_manifest(dir) {
        Ok(manifest) => manifest,
        Err(error) => {
            let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
            let run = name.chars().map(plain).collect();
            return RunRow { run, dir: dir.to_owned(), unreadable: Some(error.to_string()), ..RunRow::default() };
        }
    };
    let sealed = dir.join("seal.json").is_file();
    let label = recording::read_label(dir);
    let unreadable = label.as_ref().err().map(ToString::to_string);
    let agents = &manifest.agents;
    RunRow {
        run: manifest.run.to_string(),
        dir: dir.to_owned(),
        seconds: seconds(&manifest),
        program: manifest.launched.as_ref().map(|launched| launched.command.join(" ")),
        task: manifest.task.clone(),
        agents: agents.keys().cloned().collect(),
        calls: (sealed || !agents.is_empty()).then(|| agents.values().sum()),
        outcome: manifest.outcome.verdict,
        evidence: manifest.outcome.evidence.clone(),
        started: manifest.started,
        sealed,
        label: label.ok().flatten().map(|label| label_of(dir, &label)),
        imported: manifest.imported.map(|imported| imported.format),
        trace: Traced::read(dir).as_ref().map(Traced::line),
        suspected: Suspected::read(dir, manifest.run.as_str(), &[]).as_ref().map(Suspected::line),
        unreadable,
        ..RunRow::default()
    }
}

fn label_of(dir: &Path, label: &Label) -> LabelRow {
    let errors = label.errors.iter().map(|entry| LabelledStep {
        agent: entry.error.agent.to_string(),
        step: entry.error.step,
        mode: entry.error.failure_mode.map(crate::trajectory::FailureMode::code),
        found: entry.found(),
    });
    let refused = ruling::refused(dir, label).ok().flatten().map(|why| why.to_string());
    LabelRow { status: super::data::word(&label.status), errors: errors.collect(), nobody: label.nobody(), refused }
}

/// From the first call to the last, in seconds: how long somebody waited to end the run is not its time.
#[expect(clippy::cast_precision_loss, reason = "a time that is shown")]
fn seconds(manifest: &Manifest) -> Option<f64> {
    Some((manifest.calls_us? / 1000) as f64 / 1000.0)
}

/// How many runs there are of each outcome, for the last line of a list.
pub fn outcomes(runs: &[RunRow]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in runs {
        *counts.entry(super::data::word(&row.outcome)).or_default() += 1;
    }
    counts
}
