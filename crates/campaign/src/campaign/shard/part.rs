//! Which part of a campaign a process makes, by its number among all, given or read from what the engine that started it says.

use std::{fmt, str::FromStr};

use crate::campaign::{chain::Chain, definition::Campaign};

/// One of several parts of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardPart {
    index: u64,
    total: u64,
}

/// Why something names no part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// It is none.
    #[error("`{0}` is no shard: expected I/N with I from 0 to N-1, or `auto`")]
    Malformed(String),
    /// A variable says what cannot be.
    #[error("`{name}` = `{value}` is no number of a shard{why}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: String,
        /// Why not, after a colon; may be empty.
        why: String,
    },
    /// An engine says which part, and nobody how many there are.
    #[error("`{name}` says which shard this is, and nothing says of how many")]
    HowMany {
        /// The variable.
        name: &'static str,
    },
    /// No variable of an engine is there.
    #[error("nothing says which shard this is: none of {} is set", ShardPart::VARIABLES.join(", "))]
    Nothing,
}

impl ShardPart {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, total: 1 };

    /// What engines call the number of a task of an array, in the order in which it is looked for.
    pub const VARIABLES: [&'static str; 5] =
        ["AEGIS_SHARD", "SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "PBS_ARRAY_INDEX", "HQ_TASK_ID"];

    /// The part of this number, 0-based, of so many.
    pub fn new(index: u64, of: u64) -> Option<Self> {
        (index < of).then_some(Self { index, total: of })
    }

    /// Its number, 0-based.
    pub fn index(self) -> u64 {
        self.index
    }

    /// How many parts there are.
    pub fn total(self) -> u64 {
        self.total
    }

    /// The part that an engine's variables name. Nothing found is an error, never everything.
    ///
    /// # Errors
    /// [`PartError`].
    pub fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, PartError> {
        let said = |name: &'static str| variable(name).filter(|text| !text.trim().is_empty()).map(|text| (name, text));
        let Some((name, text)) = Self::VARIABLES.into_iter().find_map(said) else { return Err(PartError::Nothing) };
        if name == "AEGIS_SHARD" {
            return text.parse();
        }
        let number = |(name, value): (&'static str, String)| match value.trim().parse::<u64>() {
            Ok(number) => Ok(number),
            Err(_) => Err(PartError::Variable { name, value, why: String::new() }),
        };
        let index = number((name, text.clone()))?;
        let (first, count) = if name == "SLURM_ARRAY_TASK_ID" {
            // `--array=1-8` counts from one, `--array=0-14:2` in steps: its place among them is its number.
            let step = said("SLURM_ARRAY_TASK_STEP").map(number).transpose()?.unwrap_or(1).max(1);
            let first = said("SLURM_ARRAY_TASK_MIN").map(number).transpose()?.unwrap_or(0);
            let place = index.checked_sub(first).filter(|place| place % step == 0).map(|place| place / step);
            let Some(place) = place else {
                let why = format!(": the array begins at {first}, in steps of {step}");
                return Err(PartError::Variable { name, value: text, why });
            };
            // `scontrol requeue` and an array that is submitted again in part say less than all: `AEGIS_SHARDS` says more.
            let count = said("AEGIS_SHARDS").or_else(|| said("SLURM_ARRAY_TASK_COUNT"));
            (if said("AEGIS_SHARDS").is_some() { index } else { place }, count)
        } else {
            (index, said("AEGIS_SHARDS"))
        };
        let of = number(count.ok_or(PartError::HowMany { name })?)?;
        let why = || format!(": there are {of}, counted from 0");
        Self::new(first, of).ok_or_else(|| PartError::Variable { name, value: text.clone(), why: why() })
    }

    /// This part of an amount: the parts of all numbers together are the amount.
    pub fn share(self, whole: u64) -> u64 {
        whole / self.total + u64::from(self.index < whole % self.total)
    }

    /// The directory of its state, below that of the campaign.
    pub fn directory(self) -> String {
        format!("shard-{}-of-{}", self.index, self.total)
    }

    /// The chains of this part, in the order of the data. Each is in one part; parts differ in number by one at most. Which
    /// part is drawn by name, so that a file that is sorted by difficulty is spread evenly.
    pub(in crate::campaign) fn chains(self, campaign: &Campaign) -> Vec<Chain> {
        let all = campaign.chains(&[]);
        if self == Self::WHOLE {
            return all;
        }
        let mut drawn: Vec<([u8; 32], usize)> = all.iter().map(|chain| key(campaign, *chain)).zip(0..).collect();
        drawn.sort_unstable();
        let mine = (0..self.total).cycle().zip(drawn).filter(|(turn, _)| *turn == self.index);
        let mut places: Vec<usize> = mine.map(|(_, (_, place))| place).collect();
        places.sort_unstable();
        places.into_iter().filter_map(|place| all.get(place).copied()).collect()
    }
}

fn key(campaign: &Campaign, chain: Chain) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    hash.update(b"aegis chain 1").update(&campaign.seed.to_le_bytes());
    let system = campaign.systems.get(chain.system).map_or("", |system| system.name.as_str());
    let task = campaign.tasks.get(chain.task).map_or("", |task| task.id.as_str());
    for word in [system, task] {
        hash.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
    }
    *hash.finalize().as_bytes()
}

impl FromStr for ShardPart {
    type Err = PartError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (index, of) = text.trim().split_once('/')?;
            Self::new(index.parse().ok()?, of.parse().ok()?)
        };
        read().ok_or_else(|| PartError::Malformed(text.to_owned()))
    }
}

impl fmt::Display for ShardPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.total)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn engines_say_which_part_it_is_and_nothing_is_never_everything() {
        for (variables, expected) in [
            ("AEGIS_SHARD=2/5 SLURM_ARRAY_TASK_ID=9", "2/5"),
            ("SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8 SLURM_ARRAY_TASK_MIN=0", "3/8"),
            ("SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8 SLURM_ARRAY_TASK_MIN=1", "2/8"),
            ("SLURM_ARRAY_TASK_ID=6 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_STEP=2", "3/4"),
            // Only numbers 3 and 5 of an array of eight were submitted again.
            ("SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=3 AEGIS_SHARDS=8", "5/8"),
            ("JOB_COMPLETION_INDEX=0 AEGIS_SHARDS=4", "0/4"),
            ("PBS_ARRAY_INDEX=1 AEGIS_SHARDS=4", "1/4"),
            ("HQ_TASK_ID=3 AEGIS_SHARDS=4", "3/4"),
            ("AEGIS_SHARDS=4", "nothing says which shard this is: none of AEGIS_SHARD, SLURM"),
            ("AEGIS_SHARD=", "nothing says which shard"),
            ("", "nothing says which shard"),
            ("JOB_COMPLETION_INDEX=0", "`JOB_COMPLETION_INDEX` says which shard this is, and nothing says of how many"),
            ("HQ_TASK_ID=4 AEGIS_SHARDS=4", "`HQ_TASK_ID` = `4` is no number of a shard: there are 4, counted from 0"),
            ("PBS_ARRAY_INDEX=x AEGIS_SHARDS=4", "`PBS_ARRAY_INDEX` = `x` is no number"),
            ("JOB_COMPLETION_INDEX=1 AEGIS_SHARDS=0", "there are 0, counted from 0"),
            ("AEGIS_SHARD=5/5", "`5/5` is no shard: expected I/N with I from 0 to N-1"),
            ("AEGIS_SHARD=all", "`all` is no shard"),
        ] {
            let set: BTreeMap<_, _> = variables.split(' ').filter_map(|pair| pair.split_once('=')).collect();
            let part = ShardPart::of_variables(|name| set.get(name).map(|&value| value.to_owned()));
            let said = part.map_or_else(|error| error.to_string(), |part| part.to_string());
            assert!(said.starts_with(expected) || said.ends_with(expected), "{variables}: {said}");
        }
    }

    #[test]
    fn the_parts_of_an_amount_are_the_amount() {
        for whole in [0, 1, 6, 7, 8, 1000, u64::MAX] {
            for of in 1..9 {
                let parts = (0..of).filter_map(|index| ShardPart::new(index, of)).map(|part| part.share(whole));
                assert_eq!(parts.map(u128::from).sum::<u128>(), u128::from(whole), "{whole} in {of}");
            }
        }
    }
}
