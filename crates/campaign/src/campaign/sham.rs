//! Whether a neutral change alone does at a place what the injection did there: [`crate::proof::Shams`], executed.

use super::{
    bench::{CellBench, Slots},
    cell::Cell,
    claim::{Claimed, ConcludedClaim, MadeCells},
    error::CampaignError,
    sitting::PairedArms,
};
use crate::{
    proof::{Arm, ProofSample, ShamDraw, Shams, fragile},
    trajectory::Standing,
};

impl CellBench {
    /// Executes the neutral changes of runs without the injection that failed once more, as the injection was, and takes all weight from a
    /// claim at a place where one of them fails each time.
    pub(super) async fn against_shams(
        &self,
        claimed: &Claimed,
        mut concluded: ConcludedClaim,
        arms: &PairedArms,
        slots: &Slots,
        made: &mut MadeCells,
    ) -> Result<ConcludedClaim, CampaignError> {
        let failed = arms.executions(Arm::Control).iter().filter(|one| one.sample == ProofSample::Failed);
        let failed: Vec<u32> = failed.filter_map(|one| made.ended.get(&one.run)?.control_number()).collect();
        let mut shams = Shams::default();
        while let Some(ShamDraw { control, number }) = shams.next(&failed) {
            let cell = Cell::sham(&self.context.campaign, &claimed.cell, &claimed.fork, control, number);
            let sample = match cell {
                Some(cell) if self.takes_changes(&cell)? && self.has_a_draw(&cell)? => {
                    let Some(ended) = self.make(&cell, slots, made).await? else {
                        return Ok(ConcludedClaim { standing: Standing::Unproven, ..concluded });
                    };
                    Some(ended.proof_sample())
                }
                _ => None,
            };
            shams.add(control, sample);
        }
        concluded.executed.shams = shams.executions();
        if let Some(why) = fragile(&concluded.executed) {
            concluded.standing = Standing::Void;
            concluded.why = Some(why);
        }
        Ok(concluded)
    }
}
