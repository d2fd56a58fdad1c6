//! Shards put together: the data set, the report and the bill that one machine would have made. No model is asked and no
//! socket is opened: there is no upstream to ask.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead},
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use serde::{Deserialize, Serialize};

use super::{
    manifest::{ShardManifest, shard_dirs},
    merge_cells::{ASIDE, GivenShard, MergedCells, gather},
    snapshot::CampaignSnapshot,
};
use crate::{
    campaign::{
        CampaignReport, Concluded, Progress,
        bench::CellBench,
        chain::{Chain, SystemSilences},
        conclusion::Unbelieved,
        error::CampaignError,
        journal,
        report_sums::ReportContext,
        state::{CHAINS, CampaignState, ExistingContent},
    },
    recording::{Masked, MaskedFile, RunFile},
};

/// Says that a directory was made by a merge, and of what.
const FILE: &str = "merged.json";

/// How shards are put together.
#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// The shards, or directories that hold them.
    pub from: Vec<PathBuf>,
    /// Where it goes.
    pub out: PathBuf,
    /// Whether a data set is made although chains are missing.
    pub allow_missing: bool,
    /// Whether what an earlier merge put there is replaced.
    pub overwrite: bool,
    /// Whether every chain is concluded from its recordings, and what was concluded of it before is checked by that.
    pub reread: bool,
    /// Whether the page `report.html` is written, too.
    pub page: bool,
    /// Chains that are looked at side by side.
    pub jobs: usize,
}

/// What was put together.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Merged {
    /// Shards.
    pub shards: usize,
    /// Chains of the campaign.
    pub chains: usize,
    /// What was brought together.
    #[serde(flatten)]
    pub gathered: MergedCells,
    /// Chains of which nothing was made, as SYSTEM/TASK.
    pub missing: Vec<String>,
    /// Chains that were not made to their end.
    pub unfinished: Vec<String>,
    /// Systems that are declared to repeat themselves, and do not.
    pub revoked: Vec<String>,
    /// Chains that were concluded here from their recordings, by why: all others as the shard that made them concluded.
    pub reread: BTreeMap<Unbelieved, usize>,
    /// Those whose recordings say something else than their shard concluded.
    pub refuted: Vec<String>,
}

/// How far a chain came that is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotWhole {
    Missing,
    Unfinished,
}

impl Merged {
    /// Whether every chain was made to its end.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.unfinished.is_empty()
    }

    /// A line: what was put together.
    pub fn line(&self) -> String {
        let Self { shards, chains, missing, unfinished, .. } = self;
        let MergedCells { cells, duplicated, differing } = self.gathered;
        let left = chains - missing.len() - unfinished.len();
        let mut line = format!("merge     {shards} shards   {cells} runs   {left} of {chains} chains whole");
        if duplicated > 0 {
            line.extend([format!("   {duplicated} runs were made more than once, {differing} of them differ")]);
        }
        let reread: usize = self.reread.values().sum();
        if reread > 0 {
            line.extend([format!("\n          {reread} chains were concluded from their recordings:")]);
            for (why, count) in &self.reread {
                line.extend([format!(" {count} {}", why.in_words())]);
            }
        }
        line
    }
}

impl Unbelieved {
    /// Why a chain was concluded anew.
    fn in_words(self) -> &'static str {
        match self {
            Unbelieved::Absent => "had no conclusion",
            Unbelieved::Unreadable => "had one that is damaged",
            Unbelieved::OtherCampaign => "had one of another campaign or version",
            Unbelieved::OtherRuns => "had one that does not fit their runs",
            Unbelieved::Revoked => "stood on a system's repeating itself",
            Unbelieved::Unasked => "as was asked for",
        }
    }
}

/// Puts shards together. `None` instead of what came of it where chains are missing and that is not allowed: then nothing but
/// runs was written.
///
/// # Errors
/// A shard cannot be read, is at work, or is of another campaign.
pub async fn merge(
    options: &MergeOptions,
    progress: &dyn Progress,
) -> Result<(Merged, Option<(Concluded, CampaignReport)>), CampaignError> {
    let began = Instant::now();
    let (shards, locks) = equal(shard_dirs(&options.from)?)?;
    let Some(first) = shards.first() else { return Err(CampaignError::NoShard(PathBuf::new())) };
    let kept = CampaignSnapshot::read(&first.dir)?;
    let campaign = Arc::new(kept.campaign().map_err(CampaignError::Snapshot)?);
    if options.overwrite {
        clear(&options.out)?;
    }
    let state = CampaignState::open(&options.out, ExistingContent::Refuse)?;
    let mut merged = Merged { shards: shards.len(), ..Merged::default() };
    write(&state, &merged)?;
    let digest = first.manifest.digest.hash();
    merged.gathered = gather(&campaign, &digest, &shards, state.root())?;
    unite(&shards, state.root())?;
    drop(locks);
    let chains = campaign.chains(&[]);
    merged.chains = chains.len();
    let bench = CellBench::closed(&campaign, state, digest, options.jobs, options.reread)?;
    merged.conclude(&bench, &chains, progress).await?;
    write(&bench.state, &merged)?;
    progress.done(&merged.line());
    if !merged.is_whole() && !options.allow_missing {
        return Ok((merged, None));
    }
    let mut of_all = bench.of_all();
    of_all.missing_chains = merged.missing.len() + merged.unfinished.len();
    let told = ReportContext { backend: &first.manifest.backend, began };
    let done = bench.write_all(&chains, of_all, told, progress)?;
    if options.page {
        bench.write_page()?;
    }
    Ok((merged, Some(done)))
}

impl Merged {
    /// Concludes over each chain: as its shard did where that is to be believed, else from its recordings.
    async fn conclude(
        &mut self,
        bench: &Arc<CellBench>,
        chains: &[Chain],
        progress: &dyn Progress,
    ) -> Result<(), CampaignError> {
        let campaign = &bench.context.campaign;
        let mut heard = SystemSilences::default();
        let mut open: BTreeMap<usize, NotWhole> = BTreeMap::new();
        let mut refuted: BTreeSet<usize> = BTreeSet::new();
        bench
            .make_and_revoke(chains, progress, |number, end| {
                let Some(chain) = chains.get(number) else { return Err(CampaignError::Lost) };
                heard.add(*chain, end.facts.silence.as_ref());
                if let Some(why) = end.anew.filter(|_| end.facts.begun) {
                    *self.reread.entry(why).or_default() += 1;
                }
                if end.refuted {
                    refuted.insert(number);
                }
                match (end.facts.whole, end.facts.begun) {
                    (true, _) => open.remove(&number),
                    (false, true) => open.insert(number, NotWhole::Unfinished),
                    (false, false) => open.insert(number, NotWhole::Missing),
                };
                Ok(())
            })
            .await?;
        heard.refuse_silence(campaign)?;
        let named = |number: &usize| chains.get(*number).map(|chain| campaign.named(*chain));
        let came = |how| open.iter().filter(move |(_, came)| **came == how).filter_map(|(number, _)| named(number));
        self.missing = came(NotWhole::Missing).collect();
        self.unfinished = came(NotWhole::Unfinished).collect();
        self.refuted = refuted.iter().filter_map(named).collect();
        self.revoked = bench.revoked_names(&bench.revoked());
        Ok(())
    }
}

/// Checks that shards are of one campaign and that nobody is at work in them; returns them, and what keeps others out as long
/// as it is held.
fn equal(dirs: Vec<PathBuf>) -> Result<(Vec<GivenShard>, Vec<fs::File>), CampaignError> {
    let mut shards: Vec<GivenShard> = Vec::new();
    let mut locks = Vec::new();
    for shard in dirs {
        let manifest = ShardManifest::read(&shard)?;
        // A copy of a shard may be without it, and on a disk that cannot be written to.
        if let Ok(lock) = RunFile::open(&shard.join("lock")).map(RunFile::into_file) {
            match lock.try_lock_shared() {
                Ok(()) => locks.push(lock),
                Err(fs::TryLockError::WouldBlock) => return Err(CampaignError::Locked(shard.clone())),
                Err(fs::TryLockError::Error(source)) => {
                    return Err(CampaignError::Directory { path: shard.clone(), source });
                }
            }
        }
        if let Some(first) = shards.first() {
            let parts = first.manifest.digest.differs(&manifest.digest);
            if !parts.is_empty() {
                return Err(CampaignError::OtherCampaign {
                    parts: parts.join("`, `"),
                    versions: (first.manifest.version.clone(), manifest.version.clone()),
                    one: first.dir.clone(),
                    other: shard,
                });
            }
        }
        shards.push(GivenShard { dir: shard, manifest });
    }
    Ok((shards, locks))
}

/// Takes away what an earlier merge left; where none was, nothing.
fn clear(out: &Path) -> Result<(), CampaignError> {
    if !out.join(FILE).is_file() {
        return Ok(());
    }
    // Locked as by anyone who works there.
    let state = CampaignState::open(out, ExistingContent::Replace)?;
    let aside = state.root().join(ASIDE);
    let cannot = |source| CampaignError::Directory { path: aside.clone(), source };
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(cannot)?;
    }
    for dir in ["cells", "logs", CHAINS] {
        fs::remove_dir_all(state.root().join(dir)).map_err(cannot)?;
    }
    // What is concluded of less must not look like what was concluded of more.
    for file in
        ["dataset.jsonl", "benign.jsonl", "decoys.jsonl", "dataset.json", "report.json", "report.md", "report.html"]
    {
        let _ = fs::remove_file(state.root().join(file));
    }
    Ok(())
}

/// The bills and the judges' answers of all shards.
fn unite(shards: &[GivenShard], into: &Path) -> Result<(), CampaignError> {
    let path = into.join("spent.jsonl");
    let journals: Vec<PathBuf> = shards.iter().map(|shard| shard.dir.join("spent.jsonl")).collect();
    journal::unite(journals.iter().map(PathBuf::as_path), &path)
        .map_err(|source| CampaignError::Directory { path, source })?;
    let path = into.join("judge.jsonl");
    judged(shards, &path).map_err(|source| CampaignError::Directory { path, source })
}

fn judged(shards: &[GivenShard], path: &Path) -> io::Result<()> {
    #[derive(Deserialize)]
    struct JudgedLine {
        key: String,
    }
    let mut known = BTreeSet::new();
    let mut out = None;
    for shard in shards {
        let file = match RunFile::open(&shard.dir.join("judge.jsonl")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for line in io::BufReader::new(file).lines() {
            let line = line?;
            // What a kill cut off was never answered to anybody.
            let Ok(JudgedLine { key }) = serde_json::from_str(&line) else { continue };
            if known.insert(key) {
                let out = match &mut out {
                    Some(out) => out,
                    none => none.insert(MaskedFile::create(path)?),
                };
                out.write(&Masked::new(line + "\n"))?;
            }
        }
    }
    out.map_or(Ok(()), |out| out.finish().map(drop))
}

fn write(state: &CampaignState, merged: &Merged) -> Result<(), CampaignError> {
    let unwritten =
        |error: serde_json::Error| CampaignError::Unwritten { path: state.root().join(FILE), why: error.to_string() };
    let mut text = serde_json::to_vec_pretty(merged).map_err(unwritten)?;
    text.push(b'\n');
    state.replace(FILE, &Masked::new(text))
}
