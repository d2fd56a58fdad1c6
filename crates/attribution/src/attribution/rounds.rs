//! The rounds of a retry: each goes on from the newest run that failed, and the last is the one that repairs it, or that leaves
//! nothing to go on from.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{critique::Critique, retried::RetryRound};
use crate::replay::Cassette;

/// A failed run that a round goes on from.
#[derive(Debug, Clone)]
pub struct FailedRun {
    /// Its directory.
    pub dir: PathBuf,
    /// Its record.
    pub cassette: Arc<Cassette>,
}

/// What the rounds of a retry are made by.
pub trait RetryConductor {
    /// What keeps a round from being made.
    type Error;

    /// What is said to whom, or why there is nothing to say.
    ///
    /// # Errors
    /// Whoever says it cannot be asked.
    fn critique(&mut self, failed: &FailedRun) -> Result<Result<Critique, String>, Self::Error>;

    /// Executes a round, 1-based.
    ///
    /// # Errors
    /// It cannot be executed.
    fn round(&mut self, number: u32, critique: Critique, failed: &FailedRun) -> Result<RetryRound, Self::Error>;

    /// Opens a run that failed in a round.
    ///
    /// # Errors
    /// It cannot be read.
    fn open(&self, dir: &Path) -> Result<Arc<Cassette>, Self::Error>;
}

/// What came of a retry.
#[derive(Debug, Default)]
pub struct RetryRounds {
    /// The rounds, in order.
    pub rounds: Vec<RetryRound>,
    /// Why there is no further round; `None` where the last repaired the run, or was the last that may be made.
    pub ended: Option<String>,
}

impl RetryRounds {
    /// Makes at most so many rounds.
    ///
    /// # Errors
    /// What keeps a round from being made.
    pub fn conduct<C: RetryConductor>(by: &mut C, mut failed: FailedRun, most: u32) -> Result<Self, C::Error> {
        let mut rounds = Vec::new();
        for number in 1..=most {
            let critique = match by.critique(&failed)? {
                Ok(critique) => critique,
                Err(why) => return Ok(Self { rounds, ended: Some(why) }),
            };
            let round = by.round(number, critique, &failed)?;
            let (over, newest) = (round.is_repaired() || round.out_of_budget, round.newest_failure());
            let next = newest.map(|one| one.dir.clone());
            rounds.push(round);
            match next {
                _ if over => break,
                Some(dir) if number < most => failed = FailedRun { cassette: by.open(&dir)?, dir },
                Some(_) => {}
                None => {
                    let ended = "no execution of the critique says anything to go on from".to_owned();
                    return Ok(Self { rounds, ended: Some(ended) });
                }
            }
        }
        Ok(Self { rounds, ended: None })
    }
}
