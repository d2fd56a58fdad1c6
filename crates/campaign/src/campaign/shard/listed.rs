//! What a shard holds, by chains: conclusions by their names, and the runs that no conclusion names.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    fs,
    hash::Hash,
    io,
    path::Path,
};

use serde::Deserialize;

use super::threads::side_by_side;
use crate::{
    campaign::{
        Campaign, Ran,
        cell::Cell,
        chain::Chain,
        conclusion::{self, ConclusionHead, ENDING},
        error::CampaignError,
        state::CHAINS,
    },
    recording::RunFile,
    trajectory::RunId,
};

/// What a cell is of.
#[derive(Deserialize)]
struct CellOf {
    run: RunId,
    kind: Ran,
}

/// The chains of a campaign by what names them in a shard.
pub(super) struct ChainNames<'a> {
    campaign: &'a Campaign,
    digest: &'a str,
    chains: Vec<Chain>,
    by_file: HashMap<String, Chain>,
    /// Only of use where runs lie that no conclusion names.
    by_clean_run: OnceCell<HashMap<RunId, Chain>>,
}

/// How many steps a run is from the clean one that it goes back to, at most.
const STEPS: usize = 4;

/// What a shard holds of a chain.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldChain {
    /// Whether something lies there by the name of its conclusion.
    pub(super) named: bool,
    /// Whether that is one, and says that the chain was made to its end.
    pub(super) concluded: bool,
    /// Runs that are of it, and that the conclusion does not name.
    pub(super) others: BTreeSet<RunId>,
}

impl<'a> ChainNames<'a> {
    /// The chains of a campaign with this digest.
    pub(super) fn new(campaign: &'a Campaign, digest: &'a str) -> Self {
        let chains = campaign.chains(&[]);
        let by_file = chains.iter().map(|chain| (conclusion::place(campaign, *chain), *chain)).collect();
        Self { campaign, digest, chains, by_file, by_clean_run: OnceCell::new() }
    }

    fn of_clean_run(&self, run: &RunId) -> Option<Chain> {
        let clean = |chain: Chain, repeat| (Cell::clean(self.campaign, chain.system, chain.task, repeat).run, chain);
        let runs = |chain: &Chain| (0..self.campaign.clean).map(|repeat| clean(*chain, repeat)).collect::<Vec<_>>();
        self.by_clean_run.get_or_init(|| self.chains.iter().flat_map(runs).collect()).get(run).copied()
    }

    /// What a shard holds of them. Cells of what the campaign once was, before its file changed, are left where they are.
    pub(super) fn held(&self, shard: &Path) -> Result<BTreeMap<Chain, HeldChain>, CampaignError> {
        let mut held: BTreeMap<Chain, HeldChain> = BTreeMap::new();
        let mut known: HashMap<RunId, Chain> = HashMap::new();
        let mut cells: HashSet<RunId> = names(&shard.join("cells"), "json")?;
        for file in names::<String>(&shard.join(CHAINS), ENDING)? {
            let Some(chain) = self.by_file.get(&format!("{CHAINS}/{file}.{ENDING}")) else { continue };
            let of_it = held.entry(*chain).or_default();
            of_it.named = true;
            let Ok(head) = ConclusionHead::read_settled(shard, self.campaign, self.digest, *chain) else { continue };
            of_it.concluded = head.evidence.iter().all(|(run, _)| cells.contains(run));
            for (run, _) in head.evidence {
                if cells.remove(&run) && !of_it.concluded {
                    of_it.others.insert(run.clone());
                }
                known.insert(run, *chain);
            }
        }
        let others: Vec<RunId> = cells.into_iter().collect();
        let listed: HashMap<RunId, Ran> =
            read_cells(shard, &others)?.into_iter().map(|cell| (cell.run, cell.kind)).collect();
        for run in listed.keys() {
            if let Some(chain) = self.chain_of(run, &listed, &known) {
                held.entry(chain).or_default().others.insert(run.clone());
            }
        }
        Ok(held)
    }

    /// The chain that a cell is of: that of what it goes back to. What is made again was injected, or had one injection less
    /// than what was.
    fn chain_of(&self, run: &RunId, listed: &HashMap<RunId, Ran>, known: &HashMap<RunId, Chain>) -> Option<Chain> {
        let mut run = run;
        for _ in 0..STEPS {
            if let Some(chain) = known.get(run).copied().or_else(|| self.of_clean_run(run)) {
                return Some(chain);
            }
            run = match listed.get(run)? {
                Ran::Clean { .. } => return None,
                Ran::Injected { reference: of, .. }
                | Ran::Control { reference: of, .. }
                | Ran::Sham { reference: of, .. }
                | Ran::Again { of, .. }
                | Ran::Without { of, .. } => of,
            };
        }
        None
    }
}

/// The names in a directory that end so, without that. What a kill left half-written was never put in place.
fn names<T: TryFrom<String> + Eq + Hash>(dir: &Path, ending: &str) -> Result<HashSet<T>, CampaignError> {
    let cannot = |source| CampaignError::Directory { path: dir.to_owned(), source };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(source) => return Err(cannot(source)),
    };
    let mut names = HashSet::new();
    for entry in entries {
        let name = entry.map_err(cannot)?.file_name();
        let path = Path::new(&name);
        if path.extension() == Some(OsStr::new(ending)) {
            let stem = path.file_stem().and_then(OsStr::to_str);
            names.extend(stem.and_then(|stem| T::try_from(stem.to_owned()).ok()));
        }
    }
    Ok(names)
}

fn read_cells(shard: &Path, runs: &[RunId]) -> Result<Vec<CellOf>, CampaignError> {
    side_by_side(runs, |run| {
        let path = shard.join("cells").join(format!("{run}.json"));
        let bytes = RunFile::bytes(&path).map_err(|source| CampaignError::Directory { path: path.clone(), source })?;
        serde_json::from_slice(&bytes).map_err(|error| CampaignError::Damaged { path, why: error.to_string() })
    })
}
