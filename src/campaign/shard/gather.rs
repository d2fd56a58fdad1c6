//! Cells of several shards brought into one directory: a chain comes from one of them whole, so that no run stands beside a
//! reference that it did not begin like.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    path::{Path, PathBuf},
    thread,
};

use serde::Deserialize;

use super::{manifest::ShardManifest, part::ShardPart};
use crate::{
    campaign::{Campaign, EndedCell, Ran, cell::Cell, chain::Chain, error::CampaignError},
    equality::{Rules, parting},
    recording,
    replay::told,
    trajectory::RunId,
};

/// Where samples lie that differ from those that were taken.
pub(super) const ASIDE: &str = "aside";

/// What was brought together.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct GatheredCells {
    /// Cells that were taken.
    pub cells: usize,
    /// Cells that more than one shard had made; each further one counts.
    pub duplicated: usize,
    /// Of these, those that came to something else than the one that was taken: both are kept.
    pub differing: usize,
}

/// What a cell is of.
#[derive(Deserialize)]
struct CellOf {
    run: RunId,
    kind: Ran,
}

/// A shard that cells are taken from.
pub(super) struct GivenShard {
    pub(super) dir: PathBuf,
    pub(super) manifest: ShardManifest,
}

/// The cells of a chain, by shard.
type ByShard = BTreeMap<usize, BTreeSet<RunId>>;

/// Brings what these shards have made of a campaign into `into`, which has directories `cells` and `logs`.
pub(super) fn gather(campaign: &Campaign, shards: &[GivenShard], into: &Path) -> Result<GatheredCells, CampaignError> {
    let made = by_chain(campaign, shards)?;
    let whole = whole(campaign, shards);
    let mut gathered = GatheredCells::default();
    let mut taken: Vec<(&Path, RunId)> = Vec::new();
    for (chain, made) in made {
        let is_whole = |shard: usize| whole.get(&chain).is_some_and(|shards| shards.contains(&shard));
        let Some(from) = choose(&made, shards, is_whole)? else { continue };
        let cells = made.get(&from).cloned().unwrap_or_default();
        let Some(one) = shards.get(from).map(|shard| shard.dir.as_path()) else { continue };
        for (other, runs) in made.iter().filter(|(other, _)| **other != from) {
            let Some(further) = shards.get(*other) else { continue };
            for run in runs.iter().filter(|run| cells.contains(run)) {
                gathered.duplicated += 1;
                if !is_equal(one, &further.dir, run)? {
                    gathered.differing += 1;
                    keep_aside(&further.dir, run, into)?;
                }
            }
        }
        gathered.cells += cells.len();
        taken.extend(cells.into_iter().map(|run| (one, run)));
    }
    side_by_side(&taken, |(from, run)| link_cell(from, run, into))?;
    Ok(gathered)
}

/// The cells of each chain, by shard. Those of what the campaign once was, before its file changed, are left where they are.
fn by_chain(campaign: &Campaign, shards: &[GivenShard]) -> Result<BTreeMap<Chain, ByShard>, CampaignError> {
    let mut roots: HashMap<RunId, Chain> = HashMap::new();
    for chain in campaign.chains(&[]) {
        let clean = |repeat| (Cell::clean(campaign, chain.system, chain.task, repeat).run, chain);
        roots.extend((0..campaign.clean).map(clean));
    }
    let mut chains: BTreeMap<Chain, ByShard> = BTreeMap::new();
    for (number, shard) in shards.iter().enumerate() {
        let listed: HashMap<RunId, Ran> = list(&shard.dir)?.into_iter().map(|cell| (cell.run, cell.kind)).collect();
        for run in listed.keys() {
            if let Some(chain) = root(run, &listed).and_then(|root| roots.get(root)) {
                chains.entry(*chain).or_default().entry(number).or_default().insert(run.clone());
            }
        }
    }
    Ok(chains)
}

/// The clean run that a cell goes back to.
fn root<'a>(run: &'a RunId, listed: &'a HashMap<RunId, Ran>) -> Option<&'a RunId> {
    match listed.get(run)? {
        Ran::Clean { .. } => Some(run),
        Ran::Injected { reference, .. } | Ran::Null { reference, .. } => Some(reference),
        // What is made again was injected, or had one injection less than what was.
        Ran::Again { of, .. } | Ran::Without { of, .. } => match listed.get(of)? {
            Ran::Injected { reference, .. } => Some(reference),
            Ran::Without { of, .. } => match listed.get(of)? {
                Ran::Injected { reference, .. } => Some(reference),
                _ => None,
            },
            _ => None,
        },
    }
}

/// The shards that say that they made a chain to its end.
fn whole(campaign: &Campaign, shards: &[GivenShard]) -> BTreeMap<Chain, Vec<usize>> {
    let mut whole: BTreeMap<Chain, Vec<usize>> = BTreeMap::new();
    for (number, shard) in shards.iter().enumerate().filter(|(_, shard)| shard.manifest.whole) {
        let part = ShardPart::new(shard.manifest.index, shard.manifest.of);
        for chain in part.into_iter().flat_map(|part| part.chains(campaign)) {
            whole.entry(chain).or_default().push(number);
        }
    }
    whole
}

/// The cells that a shard has finished.
fn list(shard: &Path) -> Result<Vec<CellOf>, CampaignError> {
    let cells = shard.join("cells");
    let cannot = |path: &Path, source| CampaignError::Directory { path: path.to_owned(), source };
    let entries = match fs::read_dir(&cells) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(cannot(&cells, source)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| cannot(&cells, source))?.path();
        // What a kill left half-written was never put in place.
        if path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    side_by_side(&paths, |path| {
        let bytes = fs::read(path).map_err(|source| cannot(path, source))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| CampaignError::Damaged { path: path.clone(), why: error.to_string() })
    })
}

/// The shard whose chain is taken: one that made it to its end, else the one that made most of it; of several such, whatever
/// their order, the one whose cells say what sorts first.
fn choose(
    made: &ByShard,
    shards: &[GivenShard],
    is_whole: impl Fn(usize) -> bool,
) -> Result<Option<usize>, CampaignError> {
    let rank = |(shard, runs): (&usize, &BTreeSet<RunId>)| (is_whole(*shard), runs.len());
    let most = made.iter().map(rank).max();
    let best: Vec<usize> = made.iter().filter(|one| Some(rank(*one)) == most).map(|(shard, _)| *shard).collect();
    if best.len() < 2 {
        return Ok(best.first().copied());
    }
    let mut said = Vec::new();
    for number in best {
        let (Some(shard), Some(runs)) = (shards.get(number), made.get(&number)) else { continue };
        let mut hash = blake3::Hasher::new();
        for run in runs {
            let told = what_it_says(&cell(&shard.dir, run)?);
            hash.update(run.as_str().as_bytes()).update(told.as_bytes());
        }
        said.push((*hash.finalize().as_bytes(), number));
    }
    Ok(said.into_iter().min().map(|(_, number)| number))
}

/// A cell less what it took: time, money, refusals.
fn what_it_says(cell: &EndedCell) -> String {
    format!("{:?} {:?} {:?} {:?}", cell.ending, cell.outcome, cell.answer, cell.label)
}

/// Whether two executions of a cell asked, were answered and came to the same, ids and times aside.
fn is_equal(one: &Path, other: &Path, run: &RunId) -> Result<bool, CampaignError> {
    let cells = [cell(one, run)?, cell(other, run)?];
    let [a, b] = &cells;
    if (a.ending, a.outcome.verdict, &a.answer) != (b.ending, b.outcome.verdict, &b.answer) {
        return Ok(false);
    }
    let rules = Rules::default();
    let heard = |shard: &Path| recording::read(&log(shard, run)).map(|recording| told(&recording, &rules));
    Ok(parting(&heard(one)?, &heard(other)?).is_none())
}

fn cell(shard: &Path, run: &RunId) -> Result<EndedCell, CampaignError> {
    let path = shard.join(format!("cells/{run}.json"));
    let bytes = fs::read(&path).map_err(|source| CampaignError::Directory { path: path.clone(), source })?;
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
        link_tree(&log(shard, run), &place)?;
        link(&shard.join(format!("cells/{run}.json")), &place.join("cell.json"))
    };
    keep().map_err(cannot)
}

/// The recording first, then the file that says that it is finished.
fn link_cell(shard: &Path, run: &RunId, into: &Path) -> Result<(), CampaignError> {
    let name = format!("cells/{run}.json");
    let errors = format!("output/{run}.stderr");
    let place = || {
        link_tree(&log(shard, run), &into.join("logs").join(run.as_str()))?;
        if shard.join(&errors).exists() {
            recording::make_private_dir(&into.join("output"))?;
            link(&shard.join(&errors), &into.join(&errors))?;
        }
        link(&shard.join(&name), &into.join(&name))
    };
    place().map_err(|source| CampaignError::Directory { path: shard.join(&name), source })
}

fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    recording::make_private_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() { link_tree(&entry.path(), &place)? } else { link(&entry.path(), &place)? }
    }
    Ok(())
}

/// One file more by name, or a copy where that cannot be: finished files are replaced whole and never written to.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => fs::copy(from, to).map(drop),
    }
}

/// Does something for each, on as many threads as there are cores, and returns it in their order.
fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    each: impl Fn(&T) -> Result<R, CampaignError> + Sync,
) -> Result<Vec<R>, CampaignError> {
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let part = all.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let each = &each;
        let parts: Vec<_> = all
            .chunks(part)
            .map(|part| scope.spawn(move || part.iter().map(each).collect::<Result<Vec<_>, _>>()))
            .collect();
        let mut done = Vec::with_capacity(all.len());
        for part in parts {
            done.append(&mut part.join().map_err(|_| CampaignError::Lost)??);
        }
        Ok(done)
    })
}
