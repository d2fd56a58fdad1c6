//! What a chain came to, kept beside its runs as soon as it has ended: what data set, report and bill take of it. Whoever
//! concludes over all chains (this machine, a later start, a merge) reads that and no recording.
//!
//! A conclusion names the runs that it rests on, each with the digest of its cell, its seal and its label, and the campaign
//! by the digest of all that rows depend on. It is believed where all of that is still so; else the chain is concluded anew
//! from its recordings. This guards against stale, torn and mixed-up files, not against somebody who forges recordings.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    bench::CellBench,
    chain::{Chain, Silence},
    definition::Campaign,
    error::CampaignError,
    funnel::{ConcludedChain, LeftOut},
    state::CHAINS,
};
use crate::{
    recording::{Masked, RunFile},
    {dataset::SampleLine, recording, trajectory::RunId},
};

/// How a conclusion's file ends.
pub(super) const ENDING: &str = "chain";
/// The format of these files; others are not believed.
const FORMAT: u32 = 3;
/// How hard they are compressed.
const LEVEL: i32 = 1;

/// Most that is unpacked of one, in bytes: a chain has some tens of samples.
const PLAIN_MAX: u64 = 1 << 30;

/// What is said of a conclusion that was there a moment ago.
const GONE: &str = "it is not there, or not as it was written";

/// What is known of a chain without looking into its conclusion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct ChainFacts {
    /// Whether any clean run is finished.
    pub(super) begun: bool,
    /// Whether all of it was made.
    pub(super) whole: bool,
    /// Whether nothing of it would be made anew if the campaign were gone on with.
    pub(super) settled: bool,
    /// Whether any claim stands because the system repeats itself.
    pub(super) repeats: bool,
    /// Whether the system was seen not to.
    pub(super) revokes: bool,
    /// Whether its clean runs made calls; `None` where none is finished.
    pub(super) silence: Option<Silence>,
    /// Whether the upstream's failure ended its clean runs.
    pub(super) unreachable: bool,
    /// Injected runs, those that failed for it, and failures that are shown.
    pub(super) attempts: usize,
    pub(super) flipped: usize,
    pub(super) verified: usize,
    /// Calls that recordings answered.
    pub(super) answered: u64,
}

/// Why a conclusion that may lie there is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unbelieved {
    /// There is none, or the chain had not been made to its end.
    Absent,
    /// It is damaged, or of another format.
    Unreadable,
    /// It was made of another campaign, or by another version.
    OtherCampaign,
    /// The runs that it rests on are not as they were.
    OtherRuns,
    /// It rests on the system repeating itself, and the system was seen not to.
    Revoked,
    /// Recordings were to be read whatever lies there.
    Unasked,
}

/// The first line of a conclusion's file.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct ConclusionHead {
    format: u32,
    /// Whose: system and task.
    system: String,
    task: String,
    /// The digest of all that rows of the campaign depend on.
    campaign: String,
    pub(super) facts: ChainFacts,
    /// The runs that it rests on, with the digest of each.
    pub(super) evidence: Vec<(RunId, String)>,
    /// The digest of what follows.
    pub(super) body: String,
}

/// The schema of the first line of a file of `chains/`.
pub fn conclusion_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.root_schema_for::<ConclusionHead>()
}

/// What a chain came to.
#[derive(Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct ChainConclusion {
    /// All that reports and sums are made of.
    pub(super) concluded: ConcludedChain,
    /// Its samples; their texts follow, a line each.
    pub(super) lines: Vec<SampleLine>,
    /// How many more are left out, for an agent repeats the order that was planted in it.
    pub(super) repeating_orders: usize,
}

/// Where the conclusion of a chain lies, below the root of a campaign or a shard.
pub(super) fn place(campaign: &Campaign, chain: Chain) -> String {
    let (system, task) = campaign.names_of(chain);
    let mut hash = blake3::Hasher::new();
    for word in ["aegis chain", system, task] {
        hash.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
    }
    format!("{CHAINS}/{}.{ENDING}", short(&hash.finalize()))
}

/// What the conclusion of a chain says of it, as it lies there; `None` where it cannot be read.
pub(super) fn facts(root: &Path, campaign: &Campaign, chain: Chain) -> Option<ChainFacts> {
    Some(ConclusionHead::read(&root.join(place(campaign, chain))).ok()?.0.facts)
}

/// The digest of what is evidence of a run: what it came to, its record's seal, its label and what was said of
/// it since.
pub(super) fn of_run(root: &Path, run: &RunId) -> io::Result<String> {
    let log = root.join("logs").join(run.as_str());
    let mut hash = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    };
    add(&RunFile::bytes(&root.join("cells").join(format!("{run}.json")))?);
    add(&RunFile::bytes(&log.join("seal.json"))?);
    recording::label_bytes(&log)?.iter().for_each(|label| add(label));
    Ok(short(&hash.finalize()))
}

fn short(hash: &blake3::Hash) -> String {
    hash.to_hex().get(..32).unwrap_or_default().to_owned()
}

impl ConclusionHead {
    /// Reads the head of the conclusion at a path, and what follows it.
    fn read(path: &Path) -> Result<(Self, Vec<u8>), Unbelieved> {
        let bytes = match RunFile::bytes(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Unbelieved::Absent),
            Err(_) => return Err(Unbelieved::Unreadable),
        };
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(Unbelieved::Unreadable)?;
        let (head, body) = bytes.split_at_checked(end).ok_or(Unbelieved::Unreadable)?;
        let head: Self = serde_json::from_slice(head).map_err(|_| Unbelieved::Unreadable)?;
        let body = body.get(1..).unwrap_or_default();
        if head.format != FORMAT || head.body != short(&blake3::hash(body)) {
            return Err(Unbelieved::Unreadable);
        }
        Ok((head, body.to_vec()))
    }

    /// The head of the conclusion of a chain below a root, if it is one to be believed there, whatever became of its runs.
    pub(super) fn read_settled(
        root: &Path,
        campaign: &Campaign,
        digest: &str,
        chain: Chain,
    ) -> Result<Self, Unbelieved> {
        let (head, _) = Self::read(&root.join(place(campaign, chain)))?;
        let (system, task) = campaign.names_of(chain);
        if head.campaign != digest || (head.system.as_str(), head.task.as_str()) != (system, task) {
            return Err(Unbelieved::OtherCampaign);
        }
        if head.facts.settled { Ok(head) } else { Err(Unbelieved::Absent) }
    }

    /// Whether the runs that it rests on are there as they were.
    pub(super) fn fits(&self, root: &Path) -> bool {
        self.evidence.iter().all(|(run, digest)| of_run(root, run).is_ok_and(|now| now == *digest))
    }
}

impl ChainConclusion {
    /// The conclusion of a chain, as it was kept by this process or believed by it.
    pub(super) fn read(root: &Path, campaign: &Campaign, chain: Chain) -> Result<Self, CampaignError> {
        let path = root.join(place(campaign, chain));
        let damaged =
            |why: &dyn std::fmt::Display| CampaignError::Unshared { path: path.clone(), why: why.to_string() };
        let (_, body) = ConclusionHead::read(&path).map_err(|_| damaged(&GONE))?;
        let mut text = Vec::new();
        let plain = zstd::Decoder::new(body.as_slice()).and_then(|body| body.take(PLAIN_MAX).read_to_end(&mut text));
        plain.map_err(|error| damaged(&error))?;
        let mut parts = text.split(|byte| *byte == b'\n');
        let mut read: Self =
            serde_json::from_slice(parts.next().unwrap_or_default()).map_err(|error| damaged(&error))?;
        for line in &mut read.lines {
            line.text = parts.next().ok_or_else(|| damaged(&"it ends early"))?.to_vec();
        }
        Ok(read)
    }

    /// What follows the head.
    fn packed(&self) -> io::Result<Masked> {
        let mut text = serde_json::to_vec(self)?;
        for line in &self.lines {
            text.push(b'\n');
            text.extend_from_slice(&line.text);
        }
        Masked::new(text).packed(LEVEL)
    }
}

impl ChainFacts {
    fn from_concluded(concluded: &ConcludedChain, silence: Option<Silence>) -> Self {
        let left_out = |why| concluded.tasks.iter().any(|task| task.left_out == Some(why));
        let whole = concluded.unfinished == 0 && !left_out(LeftOut::Unfinished);
        Self {
            begun: concluded.tasks.iter().any(|task| task.runs > 0),
            whole,
            settled: whole && !concluded.failed_upstream,
            repeats: concluded.repeats,
            revokes: concluded.revokes,
            silence,
            unreachable: left_out(LeftOut::InfraError),
            attempts: concluded.attempts.len(),
            flipped: concluded.flipped(),
            verified: concluded.verified(),
            answered: concluded.prefix.calls,
        }
    }
}

impl CellBench {
    /// What is known of a chain that need not be looked at again.
    pub(super) fn believed(self: &Arc<Self>, chain: Chain) -> Result<ChainFacts, Unbelieved> {
        if self.rereads {
            return Err(Unbelieved::Unasked);
        }
        let head = ConclusionHead::read_settled(self.state.root(), &self.context.campaign, &self.digest, chain)?;
        if head.facts.repeats && self.revoked().contains(&chain.system) {
            return Err(Unbelieved::Revoked);
        }
        if !head.fits(self.state.root()) {
            return Err(Unbelieved::OtherRuns);
        }
        if head.facts.revokes {
            self.revoke(chain.system, None);
        }
        Ok(head.facts)
    }

    /// What is known of a chain that this process has made or believed.
    pub(super) fn read_facts(&self, chain: Chain) -> Result<ChainFacts, CampaignError> {
        let path = self.state.root().join(place(&self.context.campaign, chain));
        match ConclusionHead::read(&path) {
            Ok((head, _)) => Ok(head.facts),
            Err(_) => Err(CampaignError::Unshared { path, why: GONE.to_owned() }),
        }
    }

    /// Keeps what a chain came to. Whether another conclusion lay there for the same campaign is told, too.
    pub(super) fn keep(
        &self,
        chain: Chain,
        concluded: ConcludedChain,
        silence: Option<Silence>,
    ) -> Result<(ChainFacts, bool), CampaignError> {
        let (campaign, root) = (&self.context.campaign, self.state.root());
        let facts = ChainFacts::from_concluded(&concluded, silence);
        let cannot = |path: PathBuf| move |source| CampaignError::Directory { path, source };
        let evidence = concluded
            .runs
            .iter()
            .map(|run| Ok((run.clone(), of_run(root, run).map_err(cannot(root.join("cells")))?)))
            .collect::<Result<Vec<_>, CampaignError>>()?;
        let (lines, repeating_orders) = self.sample_lines(chain, &concluded)?;
        let conclusion = ChainConclusion { concluded, lines, repeating_orders };
        let name = place(campaign, chain);
        let body = conclusion.packed().map_err(cannot(root.join(&name)))?;
        let (system, task) = campaign.names_of(chain);
        let head = ConclusionHead {
            format: FORMAT,
            system: system.to_owned(),
            task: task.to_owned(),
            campaign: self.digest.clone(),
            facts,
            evidence,
            body: short(&blake3::hash(body.as_bytes())),
        };
        let before =
            self.rereads.then(|| ConclusionHead::read_settled(root, campaign, &self.digest, chain).ok()).flatten();
        let refuted = before.is_some_and(|before| before.body != head.body);
        let mut text = Masked::json_line(&head).map_err(cannot(root.join(&name)))?;
        text.push(&body);
        self.state.replace(&name, &text)?;
        Ok((head.facts, refuted))
    }
}
