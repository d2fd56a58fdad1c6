//! Which of several planted errors a failure needs, once it is shown that they made it together: each is left out in turn.

use std::sync::Arc;

use super::{
    bench::{CellBench, Slots},
    cell::Cell,
    claim::{Claimed, ConcludedClaim, MadeCells},
    error::CampaignError,
    treatment::Treatment,
};
use crate::{
    plan::Planted,
    proof::{Arm, LeaveOneOut, NeedTerms, NextForNeed, ProofSample},
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
    without: Vec<ProofSample>,
    with_all: Vec<ProofSample>,
    terms: NeedTerms,
    /// What is shown of it; `None` while it is being executed.
    state: Option<Need>,
}

impl LeftOutError<'_> {
    fn question(&self) -> LeaveOneOut<'_> {
        LeaveOneOut { without: &self.without, with_all: &self.with_all, terms: self.terms }
    }

    fn known(&self) -> Option<Necessity> {
        let question = self.question();
        Some(necessity(self.planted, self.state?, question.executed(), Some(question.exclusion())))
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
        (slots, made): (&Slots, &mut MadeCells),
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
                let arm = match one.question().next() {
                    NextForNeed::Execute(arm) => arm,
                    NextForNeed::Stop(need) => {
                        one.state = Some(need);
                        continue;
                    }
                };
                let Some(cell) = self.next_cell(one, arm, (claimed, treatment)) else {
                    one.state = Some(Need::NotShown);
                    continue;
                };
                let Some(ended) = self.make(&cell, slots, made).await? else {
                    concluded.standing = Standing::Unproven;
                    return Ok(());
                };
                match arm {
                    Arm::Null => one.without.push(ended.says()),
                    Arm::Treated => one.with_all.push(ended.says()),
                }
            }
        }
        concluded.necessity = errors.iter().filter_map(LeftOutError::known).collect();
        Ok(())
    }

    /// The errors of a claim, each with the first run that leaves it out.
    fn left_out<'a>(&self, claimed: &'a Claimed, concluded: &ConcludedClaim) -> Vec<LeftOutError<'a>> {
        let (campaign, terms) = (&self.context.campaign, &self.context.campaign.proof);
        let of_each = NeedTerms::of(terms, &concluded.executed, claimed.planted.len());
        let left_out = |planted| {
            let first = Cell::without(campaign, &claimed.cell, &claimed.planned, planted)?;
            let terms = of_each.drawn_for(terms, first.run.as_str());
            let (without, with_all) = (Vec::new(), Vec::new());
            Some(LeftOutError { planted, first, met: None, without, with_all, terms, state: None })
        };
        claimed.planted.iter().filter_map(left_out).collect()
    }

    /// The next run for an error; `None` where its bytes are not in the record.
    fn next_cell(
        &self,
        one: &LeftOutError<'_>,
        arm: Arm,
        (claimed, treatment): (&Claimed, &Arc<Treatment>),
    ) -> Option<Cell> {
        let campaign = &self.context.campaign;
        let number = |samples: &[ProofSample]| u32::try_from(samples.len()).unwrap_or(u32::MAX);
        match arm {
            Arm::Treated => Cell::beside(campaign, &claimed.cell, treatment, &one.first, number(&one.with_all)),
            Arm::Null => Cell::again(campaign, &one.first, one.met.as_ref()?, number(&one.without)),
        }
    }
}
