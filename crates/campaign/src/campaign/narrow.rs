//! Which of several planted errors a failure needs, once it is shown that they made it together: each is left out in turn.

use std::sync::Arc;

use super::{
    bench::{CellBench, Slots},
    cell::Cell,
    claim::{Claimed, ConcludedClaim, MadeCells},
    error::CampaignError,
    sitting::PairedArms,
    treatment::Treatment,
};
use crate::{
    plan::Planted,
    proof::{Arm, LeaveOneOut, NeedTerms, NextForNeed},
    trajectory::{EffectExcluded, Executed, Necessity, Need, Standing},
};

/// What is known of a planted error, as a label keeps it.
pub(super) fn necessity(
    planted: &Planted,
    state: Need,
    executed: Executed,
    exclusion: Option<EffectExcluded>,
) -> Necessity {
    let Planted { injection, agent, instance } = planted.clone();
    Necessity { injection, agent, instance, state, executed, exclusion }
}

/// An error that is left out, and the runs without it and with all so far.
struct LeftOutError<'a> {
    planted: &'a Planted,
    /// The first run without it, which has no neutral changes and is no sample.
    first: Cell,
    /// What that run met, to be given again, where its record holds the bytes.
    met: Option<Arc<Treatment>>,
    /// Without it, and with all.
    paired: PairedArms,
    terms: NeedTerms,
    /// What is shown of it; `None` while it is being executed.
    state: Option<Need>,
}

impl LeftOutError<'_> {
    /// What is answered of the runs so far.
    fn with_runs<T>(&self, answer: impl FnOnce(&LeaveOneOut<'_>) -> T) -> T {
        let (without, with_all) = (self.paired.samples(Arm::Control), self.paired.samples(Arm::Treated));
        answer(&LeaveOneOut { without: &without, with_all: &with_all, terms: self.terms })
    }

    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method itself is of one lifetime only")]
    fn next(&self) -> NextForNeed {
        self.with_runs(|question| question.next())
    }

    fn necessity(&self) -> Option<Necessity> {
        let (executed, exclusion) = self.with_runs(|question| (question.executed(), question.exclusion()));
        Some(necessity(self.planted, self.state?, executed, Some(exclusion)))
    }
}

impl CellBench {
    /// Which of several errors the failure needs. The errors take turns, and in each turn a run without one of them and a run
    /// with all are paired: what changes in the meantime meets all arms alike, and is blamed on none.
    pub(super) async fn narrow(
        &self,
        claimed: &Claimed,
        treatment: &Arc<Treatment>,
        concluded: &mut ConcludedClaim,
        slots: &Slots,
        made: &mut MadeCells,
    ) -> Result<(), CampaignError> {
        let mut errors = self.left_out(claimed, concluded);
        for one in &mut errors {
            if self.make(&one.first, slots, made).await?.is_none() {
                concluded.standing = Standing::Unproven;
                return Ok(());
            }
            one.met = self.treatment_of(&one.first, &claimed.planned)?;
        }
        while errors.iter().any(|one| one.state.is_none()) {
            for one in errors.iter_mut().filter(|one| one.state.is_none()) {
                let arm = match one.next() {
                    NextForNeed::Execute(arm) => arm,
                    NextForNeed::Stop(need) => {
                        one.state = Some(need);
                        continue;
                    }
                };
                let Some(cell) = self.next_cell(one, arm, claimed, treatment) else {
                    one.state = Some(Need::NotShown);
                    continue;
                };
                if !self.has_a_draw(&cell)? {
                    one.state = Some(Need::NotShown);
                    continue;
                }
                let Some(ended) = self.make(&cell, slots, made).await? else {
                    concluded.standing = Standing::Unproven;
                    return Ok(());
                };
                made.older.extend(one.paired.add(arm, ended.execution()));
            }
        }
        concluded.necessity = errors.iter().filter_map(LeftOutError::necessity).collect();
        Ok(())
    }

    /// The errors of a claim, each with the first run that leaves it out.
    fn left_out<'a>(&self, claimed: &'a Claimed, concluded: &ConcludedClaim) -> Vec<LeftOutError<'a>> {
        let (campaign, terms) = (&self.context.campaign, &self.context.campaign.proof);
        let of_each = NeedTerms::new(terms, &concluded.executed, claimed.planted.len());
        let left_out = |planted| {
            let first = Cell::without(campaign, &claimed.cell, &claimed.planned, planted)?;
            let terms = of_each.drawn_for(terms, first.key.as_str());
            Some(LeftOutError { planted, first, met: None, paired: PairedArms::default(), terms, state: None })
        };
        claimed.planted.iter().filter_map(left_out).collect()
    }

    /// The next run for an error; `None` where its bytes are not in the record.
    fn next_cell(
        &self,
        one: &mut LeftOutError<'_>,
        arm: Arm,
        claimed: &Claimed,
        treatment: &Arc<Treatment>,
    ) -> Option<Cell> {
        let campaign = &self.context.campaign;
        let number = one.paired.ask(arm);
        match arm {
            Arm::Treated => Cell::repeat_in_turn(campaign, &claimed.cell, treatment, &one.first, number),
            Arm::Control => Cell::repeat_of_treatment(campaign, &one.first, one.met.as_ref()?, number),
        }
    }
}
