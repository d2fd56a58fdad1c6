//! Cells of several shards brought into one directory: a chain comes from one of them whole, so that no run stands beside a
//! reference that it did not begin like.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    listed::{ChainNames, HeldChain},
    manifest::ShardManifest,
    threads::side_by_side,
};
use crate::{
    campaign::{
        Campaign, EndedCell,
        chain::Chain,
        conclusion::{self, ConclusionHead},
        error::CampaignError,
    },
    equality::{Rules, parting},
    recording::{self, Recording, RunFile, link_plain, link_plain_tree},
    replay::{compared_run, learned_rules},
    trajectory::RunId,
};

/// Where samples lie that differ from those that were taken.
pub(super) const ASIDE: &str = "aside";
/// Where what programs said on their standard error lies.
const OUTPUT: &str = "output";

/// What was brought together.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct MergedCells {
    /// Cells that were taken.
    pub cells: usize,
    /// Cells that more than one shard had made; each further one counts.
    pub duplicated: usize,
    /// Of these, those that came to something else than the one that was taken: both are kept.
    pub differing: usize,
}

/// A shard that cells are taken from.
pub(super) struct GivenShard {
    pub(super) dir: PathBuf,
    pub(super) manifest: ShardManifest,
}

/// A chain in a shard.
struct ChainIn<'a> {
    shard: usize,
    dir: &'a Path,
    chain: Chain,
    held: HeldChain,
}

/// One of several shards that hold a chain.
struct ShardCandidate<'a> {
    of: &'a ChainIn<'a>,
    runs: HeldRuns,
    /// Whether it was made to its end there, and is as it was then.
    whole: bool,
}

/// The runs of a chain in a shard, with the digest of those that its conclusion rests on.
type HeldRuns = BTreeMap<RunId, Option<String>>;

/// Brings what these shards have made of a campaign with this digest into `into`, which has the directories of a campaign.
pub(super) fn gather(
    campaign: &Campaign,
    digest: &str,
    shards: &[GivenShard],
    into: &Path,
) -> Result<MergedCells, CampaignError> {
    let names = ChainNames::new(campaign, digest);
    let mut all: Vec<ChainIn<'_>> = Vec::new();
    for (shard, given) in shards.iter().enumerate() {
        let dir = given.dir.as_path();
        all.extend(names.held(dir)?.into_iter().map(|(chain, held)| ChainIn { shard, dir, chain, held }));
    }
    all.sort_by_key(|one| (one.chain, one.shard));
    let mut gathered = MergedCells::default();
    let mut taken: Vec<&ChainIn<'_>> = Vec::new();
    if all.iter().any(|one| one.dir.join(OUTPUT).is_dir()) {
        let output = into.join(OUTPUT);
        recording::make_private_dir(&output)
            .map_err(|source| CampaignError::Directory { path: output.clone(), source })?;
    }
    for made in all.chunk_by(|one, other| one.chain == other.chain) {
        let [one] = made else {
            let candidates: Vec<_> =
                made.iter().map(|one| one.candidate(campaign, digest)).collect::<Result<_, _>>()?;
            if let Some(chosen) = choose(&candidates)? {
                gathered.compare(&candidates, chosen, into)?;
                taken.push(chosen.of);
            }
            continue;
        };
        taken.push(one);
    }
    let cells = side_by_side(&taken, |one| {
        let runs = one.runs(campaign, digest)?;
        runs.keys().try_for_each(|run| link_cell(one.dir, run, into))?;
        // Why one is not believed is said by whoever concludes over all.
        if one.held.named {
            let name = conclusion::place(campaign, one.chain);
            let linked = link_plain(&one.dir.join(&name), &into.join(&name));
            linked.map_err(|source| CampaignError::Directory { path: one.dir.join(&name), source })?;
        }
        Ok(runs.len())
    })?;
    gathered.cells = cells.into_iter().sum();
    Ok(gathered)
}

impl ChainIn<'_> {
    /// Its runs in this shard.
    fn runs(&self, campaign: &Campaign, digest: &str) -> Result<HeldRuns, CampaignError> {
        let mut runs: HeldRuns = self.held.others.iter().map(|run| (run.clone(), None)).collect();
        if self.held.concluded {
            let head = ConclusionHead::read_settled(self.dir, campaign, digest, self.chain)
                .map_err(|_| CampaignError::Lost)?;
            runs.extend(head.evidence.into_iter().map(|(run, digest)| (run, Some(digest))));
        }
        Ok(runs)
    }

    fn candidate(&self, campaign: &Campaign, digest: &str) -> Result<ShardCandidate<'_>, CampaignError> {
        let runs = self.runs(campaign, digest)?;
        let is_as_it_was = |(run, digest): (&RunId, &Option<String>)| match digest {
            Some(digest) => conclusion::of_run(self.dir, run).is_ok_and(|now| now == *digest),
            None => true,
        };
        let whole = self.held.concluded && runs.iter().all(is_as_it_was);
        Ok(ShardCandidate { of: self, runs, whole })
    }
}

impl ShardCandidate<'_> {
    /// Whether nothing of either need be read to know that they hold the same.
    fn is_copy_of(&self, other: &Self) -> bool {
        self.whole && other.whole && self.runs == other.runs && self.runs.values().all(Option::is_some)
    }
}

/// The shard whose chain is taken: one that made it to its end, else the one that made most of it; of several such, whatever
/// their order, the one whose cells say what sorts first.
fn choose<'c, 'a>(made: &'c [ShardCandidate<'a>]) -> Result<Option<&'c ShardCandidate<'a>>, CampaignError> {
    let rank = |one: &ShardCandidate<'_>| (one.whole, one.runs.len());
    let most = made.iter().map(rank).max();
    let mut best: Vec<&'c ShardCandidate<'a>> = made.iter().filter(|one| Some(rank(one)) == most).collect();
    best.dedup_by(|other, one| other.is_copy_of(one));
    if best.len() < 2 {
        return Ok(best.first().copied());
    }
    let mut said = Vec::new();
    for one in best {
        let mut hash = blake3::Hasher::new();
        for run in one.runs.keys() {
            let told = what_it_says(&cell(one.of.dir, run)?);
            hash.update(run.as_str().as_bytes()).update(told.as_bytes());
        }
        said.push((*hash.finalize().as_bytes(), one));
    }
    Ok(said.into_iter().min_by_key(|(hash, _)| *hash).map(|(_, one)| one))
}

impl MergedCells {
    /// Looks at what others hold of a chain beside the one that is taken, and keeps what differs.
    fn compare(
        &mut self,
        made: &[ShardCandidate<'_>],
        chosen: &ShardCandidate<'_>,
        into: &Path,
    ) -> Result<(), CampaignError> {
        for other in made.iter().filter(|other| other.of.shard != chosen.of.shard) {
            for (run, digest) in &other.runs {
                let Some(taken) = chosen.runs.get(run) else { continue };
                self.duplicated += 1;
                // A copy is equal; what was executed twice is read.
                let is_copy = chosen.whole && other.whole && digest.is_some() && digest == taken;
                if !is_copy && !is_equal(chosen.of.dir, other.of.dir, run)? {
                    self.differing += 1;
                    keep_aside(other.of.dir, run, into)?;
                }
            }
        }
        Ok(())
    }
}

/// A cell less what it took: time, money, refusals.
fn what_it_says(cell: &EndedCell) -> String {
    format!("{:?} {:?} {:?} {:?}", cell.ending, cell.outcome, cell.answer, cell.label)
}

/// What is equal in executions of a cell: as they say, and as far as results of tools show that they differ.
fn recorded_rules(seen: &[Recording; 2]) -> Result<Rules, CampaignError> {
    let rules = seen[0].manifest.rules()?;
    Ok(learned_rules(seen, &rules, true))
}

/// Whether two executions of a cell asked, were answered and came to the same, ids and times aside.
fn is_equal(one: &Path, other: &Path, run: &RunId) -> Result<bool, CampaignError> {
    let cells = [cell(one, run)?, cell(other, run)?];
    let [a, b] = &cells;
    if (a.ending, a.outcome.verdict, &a.answer) != (b.ending, b.outcome.verdict, &b.answer) {
        return Ok(false);
    }
    let seen = [recording::read(&log(one, run))?, recording::read(&log(other, run))?];
    let rules = recorded_rules(&seen)?;
    let [one, other] = seen.each_ref().map(|recording| compared_run(recording, &rules));
    Ok(parting(&one, &other).is_none())
}

fn cell(shard: &Path, run: &RunId) -> Result<EndedCell, CampaignError> {
    let path = shard.join(format!("cells/{run}.json"));
    let bytes = RunFile::bytes(&path).map_err(|source| CampaignError::Directory { path: path.clone(), source })?;
    serde_json::from_slice(&bytes).map_err(|error| CampaignError::Damaged { path, why: error.to_string() })
}

fn log(shard: &Path, run: &RunId) -> PathBuf {
    shard.join("logs").join(run.as_str())
}

fn keep_aside(shard: &Path, run: &RunId, into: &Path) -> Result<(), CampaignError> {
    let below = into.join(ASIDE).join(run.as_str());
    let cannot = |source| CampaignError::Directory { path: below.clone(), source };
    recording::make_private_dir(&below).map_err(cannot)?;
    let number = fs::read_dir(&below).map_err(cannot)?.count();
    let place = below.join(format!("{number:04}"));
    let keep = || {
        link_plain_tree(&log(shard, run), &place)?;
        link_plain(&shard.join(format!("cells/{run}.json")), &place.join("cell.json"))
    };
    keep().map_err(cannot)
}

/// The recording first, then the file that says that it is finished.
fn link_cell(shard: &Path, run: &RunId, into: &Path) -> Result<(), CampaignError> {
    let name = format!("cells/{run}.json");
    let errors = format!("{OUTPUT}/{run}.stderr");
    let place = || {
        link_plain_tree(&log(shard, run), &into.join("logs").join(run.as_str()))?;
        match link_plain(&shard.join(&errors), &into.join(&errors)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        link_plain(&shard.join(&name), &into.join(&name))
    };
    place().map_err(|source| CampaignError::Directory { path: shard.join(&name), source })
}
