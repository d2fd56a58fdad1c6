//! Whether a neutral change alone does at a place what the injection did there: [`crate::proof::Sham`], executed.

use super::{
    bench::{CellBench, Slots},
    cell::Cell,
    claim::{Claimed, ConcludedClaim, MadeCells},
    error::CampaignError,
    sitting::PairedArms,
};
use crate::{
    proof::{Arm, ProofSample, Sham, fragile, is_steady},
    trajectory::Standing,
};

/// What became of a sham.
enum ShamEnd {
    /// It was executed as often as it takes.
    Executed(Sham),
    /// What stands there takes no neutral change.
    NoChange,
    /// The budget ended, or somebody ended the campaign.
    Unfinished,
}

impl CellBench {
    /// Executes the neutral changes of runs without the injection that failed once more, as the injection was, and takes all weight from a
    /// claim at a place where one of them fails each time.
    pub(super) async fn against_shams(
        &self,
        claimed: &Claimed,
        mut concluded: ConcludedClaim,
        arms: &PairedArms,
        (slots, made): (&Slots, &mut MadeCells),
    ) -> Result<ConcludedClaim, CampaignError> {
        let failed = arms.of(Arm::Null).iter().filter(|one| one.sample == ProofSample::Failed);
        let controls: Vec<u32> = failed.filter_map(|one| made.ended.get(&one.run)?.null_number()).collect();
        for control in controls {
            let sham = match self.execute_sham(claimed, control, (slots, &mut *made)).await? {
                ShamEnd::NoChange => continue,
                ShamEnd::Unfinished => return Ok(ConcludedClaim { standing: Standing::Unproven, ..concluded }),
                ShamEnd::Executed(sham) => sham.executions(),
            };
            let is_steady = is_steady(&sham);
            if is_steady {
                concluded.standing = Standing::Void;
                concluded.why = Some(fragile(&sham));
            }
            concluded.executed.shams.push(sham);
            if is_steady {
                break;
            }
        }
        Ok(concluded)
    }

    async fn execute_sham(
        &self,
        claimed: &Claimed,
        control: u32,
        (slots, made): (&Slots, &mut MadeCells),
    ) -> Result<ShamEnd, CampaignError> {
        let mut sham = Sham { control, samples: Vec::new() };
        for number in 0.. {
            if !sham.is_open() {
                break;
            }
            let cell = Cell::sham(&self.context.campaign, &claimed.cell, &claimed.fork, control, number);
            let Some(cell) = cell else { return Ok(ShamEnd::NoChange) };
            if !self.takes_changes(&cell)? {
                return Ok(ShamEnd::NoChange);
            }
            if !self.has_a_draw(&cell)? {
                break;
            }
            let Some(ended) = self.make(&cell, slots, made).await? else { return Ok(ShamEnd::Unfinished) };
            sham.samples.push(ended.says());
        }
        Ok(ShamEnd::Executed(sham))
    }
}
