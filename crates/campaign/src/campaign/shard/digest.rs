//! What the rows of a campaign depend on, part by part, hashed: shards are put together only where all of it is equal, and
//! where it is not, the part that differs is named.

use std::{collections::BTreeMap, fmt::Debug};

use serde::{Deserialize, Serialize};

use crate::campaign::{definition::Campaign, ended, prefix::CampaignEquality};

/// Hashes of what rows depend on, by what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub(in crate::campaign) struct CampaignDigest(BTreeMap<String, String>);

impl CampaignDigest {
    /// The digest of a campaign before this upstream, with what its start says beside the file: the model that manipulators ask,
    /// and what is equal.
    pub(in crate::campaign) fn compute(
        campaign: &Campaign,
        backend: &str,
        rewriting: &str,
        equality: &CampaignEquality,
    ) -> Self {
        let mut parts = BTreeMap::new();
        let mut add = |name: &str, value: &dyn Debug| {
            // How values are written out is this version's, and the version is among the parts.
            let hash = blake3::hash(format!("{value:?}").as_bytes()).to_hex();
            parts.insert(name.to_owned(), hash.as_str().get(..32).unwrap_or_default().to_owned());
        };
        let plans: Vec<_> = campaign
            .plans
            .iter()
            .map(|fixed| (&fixed.name, &fixed.plan.digest, fixed.plan.seed, &fixed.systems, fixed.repeats))
            .collect();
        add("version", &(env!("CARGO_PKG_VERSION"), ended::FORMAT));
        add("seed", &campaign.seed);
        add("upstream", &(&campaign.upstream, backend));
        add("rewriting model", &rewriting);
        add("what is equal", equality);
        add("tasks", &campaign.tasks);
        add("systems", &campaign.systems);
        add("verify", &(&campaign.verify, &campaign.judge));
        add("clean", &(campaign.clean, &campaign.repeatable));
        add("proof", &(&campaign.proof, campaign.repeats_itself, campaign.decoys, campaign.chaotic));
        add("plans", &plans);
        add("sample", &campaign.sample);
        add("dataset.splits", &campaign.splits);
        // Directories of earlier versions, which knew of none, stay as they were.
        let searches = [("natural", &campaign.natural), ("missed_catch", &campaign.missed_catch)];
        for (name, search) in searches.iter().filter_map(|(name, search)| Some((name, search.as_ref()?))) {
            add(name, search);
        }
        Self(parts)
    }

    /// All of it as one.
    pub(in crate::campaign) fn hash(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for word in self.0.iter().flat_map(|(name, part)| [name, part]) {
            hash.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
        }
        hash.finalize().to_hex().get(..32).unwrap_or_default().to_owned()
    }

    /// The parts in which another differs.
    pub(super) fn differs<'a>(&'a self, other: &'a Self) -> Vec<&'a str> {
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        names.into_iter().filter(|name| self.0.get(*name) != other.0.get(*name)).map(String::as_str).collect()
    }
}
