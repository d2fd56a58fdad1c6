//! One claim of a campaign: that what was delivered to some runs turned their outcome. Its executions, one after another,
//! until [`crate::proof`] says where it stands.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    bench::{CellBench, Slots},
    cell::{Cell, CellKind, Fork},
    ended::EndedCell,
    error::CampaignError,
    sitting::{ArmExecution, PairedArms},
    treatment::{TargetedPlan, Treatment},
};
use crate::{
    plan::Planted,
    proof::{Arm, Claim, Next, ProofSample, Terms},
    recording,
    replay::ForkPoint,
    trajectory::{Executed, Necessity, RunId, Standing},
};

/// Why a treatment cannot be given again.
const MASKED: &str = "its bytes hold secrets that the record masks, so they cannot be delivered again";

/// Why no more is executed where a claim is not settled.
const RAN_OUT: &str = "no neutral change of the text at the place where the runs leave the record is left that none of them had, \
                       and the same one again would be the same draw: plant the error in a longer message, or say that the system \
                       repeats itself (`proof.repeatable`)";

/// A claim: runs that met the same treatment.
#[derive(Debug)]
pub(super) struct Claimed {
    /// The runs, by the index of their attempts, in order.
    pub(super) attempts: Vec<usize>,
    /// The same as runs.
    pub(super) runs: Vec<RunId>,
    /// What each came to.
    pub(super) first: Vec<ArmExecution>,
    /// The first of them that flipped, or the first of all.
    pub(super) cell: Cell,
    /// Whether any flipped.
    pub(super) flipped: bool,
    /// Where its plan made it leave the reference.
    pub(super) planned: ForkPoint,
    /// What its control executions share with those of other claims.
    pub(super) fork: Fork,
    /// The treatment, to be given again; `None` where the bytes are not in the record.
    pub(super) treatment: Option<Arc<Treatment>>,
    /// What was delivered: each injection, for each agent that it hit.
    pub(super) planted: Vec<Planted>,
}

/// Where a claim stands, and on what.
#[derive(Debug, Clone)]
pub(super) struct ConcludedClaim {
    pub(super) standing: Standing,
    pub(super) executed: Executed,
    /// Of several injections: which the failure needs.
    pub(super) necessity: Vec<Necessity>,
    /// Why no more could be executed, in words.
    pub(super) why: Option<String>,
}

/// The cells that a claim asked for: what became of each.
#[derive(Debug, Default)]
pub(super) struct MadeCells {
    /// Those that are finished.
    pub(super) ended: BTreeMap<RunId, EndedCell>,
    /// Those that are not: the budget ended, or somebody ended the campaign.
    pub(super) unfinished: BTreeSet<RunId>,
    /// Finished runs without the injection that are older than those that they would stand against.
    pub(super) older: BTreeSet<RunId>,
}

impl MadeCells {
    /// Adds what another claim asked for.
    pub(super) fn add(&mut self, other: MadeCells) {
        self.ended.extend(other.ended);
        self.unfinished.extend(other.unfinished);
        self.older.extend(other.older);
    }
}

impl ConcludedClaim {
    /// Takes all weight from executions in a chaotic task, whatever they came to; those that depend on each other have none.
    pub(super) fn without_weight(mut self) -> Self {
        if self.executed.pairs > 0 && self.executed.dependent.is_none() {
            self.standing = Standing::Void;
            self.executed.chaotic = true;
            self.necessity.clear();
            self.why = Some("chaotic: neutral changes alone turn the task's outcome too often".to_owned());
        }
        self
    }

    /// A claim of which nothing more was executed than its first runs.
    pub(super) fn unexecuted(first: &[ProofSample], claim: &Claim<'_>, why: Option<String>) -> Self {
        debug_assert_eq!(first.len(), claim.treated.len(), "the first runs are the treated arm");
        Self { standing: claim.standing(), executed: claim.executed(), necessity: Vec::new(), why }
    }
}

/// Two arms under way.
struct ArmsUnderWay<'a> {
    /// What a control execution is, by its number.
    control: &'a (dyn Fn(u32) -> Option<Cell> + Sync),
    /// What a repeat of the treatment is, by its number.
    again: &'a (dyn Fn(u32) -> Option<Cell> + Sync),
    /// What they came to so far.
    paired: PairedArms,
    /// What is asked of the claim, the order of its arms drawn.
    terms: Terms,
    slots: &'a Slots,
    /// Whether an arm has no neutral changes left that none of its executions had.
    ran_out: bool,
}

impl ArmsUnderWay<'_> {
    fn next(&self) -> Next {
        let (control, treated) = (self.paired.samples(Arm::Control), self.paired.samples(Arm::Treated));
        Claim::perturbed(&self.terms, &control, &treated).next()
    }

    /// Where the claim stands where no more can be executed.
    fn given_up(&self) -> Standing {
        let (control, treated) = (self.paired.samples(Arm::Control), self.paired.samples(Arm::Treated));
        Claim::perturbed(&self.terms, &control, &treated).given_up()
    }

    /// The next cell of an arm.
    fn cell(&mut self, arm: Arm) -> Option<Cell> {
        let number = self.paired.ask(arm);
        match arm {
            Arm::Control => (self.control)(number),
            Arm::Treated => (self.again)(number),
        }
    }

    fn executed(&self) -> Executed {
        let (control, treated) = (self.paired.samples(Arm::Control), self.paired.samples(Arm::Treated));
        Claim::perturbed(&self.terms, &control, &treated).executed()
    }
}

fn samples_of(executions: &[ArmExecution]) -> Vec<ProofSample> {
    executions.iter().map(|one| one.sample).collect()
}

impl CellBench {
    /// Executes a claim to its end. Nothing of it runs side by side: what comes next depends on what came.
    pub(super) async fn pursue(
        &self,
        claimed: &Claimed,
        slots: &Slots,
        made: &mut MadeCells,
    ) -> Result<ConcludedClaim, CampaignError> {
        let terms = &self.context.campaign.proof;
        let first = samples_of(&claimed.first);
        let claim = Claim::injection(terms, &[], &first);
        if !claimed.flipped {
            return Ok(ConcludedClaim::unexecuted(&first, &claim, None));
        }
        let Some(treatment) = &claimed.treatment else {
            return Ok(ConcludedClaim::unexecuted(&first, &claim, Some(MASKED.to_owned())));
        };
        let campaign = &self.context.campaign;
        let again = |index| Cell::repeat_of_treatment(campaign, &claimed.cell, treatment, index);
        let control = |index| Some(Cell::control(campaign, &claimed.cell, &claimed.fork, index, true));
        let terms = terms.drawn_for(claimed.cell.key.as_str());
        let paired = PairedArms::default();
        let mut arms = ArmsUnderWay { control: &control, again: &again, paired, terms, slots, ran_out: false };
        let standing = self.execute(&mut arms, made).await?;
        let executed = arms.executed();
        let why = arms.ran_out.then(|| RAN_OUT.to_owned());
        let concluded = ConcludedClaim { standing, executed, necessity: Vec::new(), why };
        let mut concluded = match standing {
            Standing::Void => concluded,
            _ if !made.unfinished.is_empty() => concluded,
            _ => concluded.weighed(self.dependence(claimed, &arms.paired)?),
        };
        if concluded.standing == Standing::Verified {
            concluded = self.against_shams(claimed, concluded, &arms.paired, slots, made).await?;
        }
        if concluded.standing == Standing::Verified && claimed.planted.len() > 1 {
            self.narrow(claimed, treatment, &mut concluded, slots, made).await?;
        }
        Ok(concluded)
    }

    /// Executes arms until the claim on them is settled, or nothing more may be executed.
    async fn execute(&self, arms: &mut ArmsUnderWay<'_>, made: &mut MadeCells) -> Result<Standing, CampaignError> {
        loop {
            let arm = match arms.next() {
                Next::Stop(standing) => return Ok(standing),
                Next::Execute(arm) => arm,
            };
            let Some(cell) = arms.cell(arm) else { return Ok(Standing::Unproven) };
            if !self.has_a_draw(&cell)? {
                arms.ran_out = true;
                return Ok(arms.given_up());
            }
            let Some(ended) = self.make(&cell, arms.slots, made).await? else { return Ok(Standing::Unproven) };
            made.older.extend(arms.paired.add(arm, ended.execution()));
        }
    }

    /// Makes a cell once, whoever asks for it: control executions of a fork point serve all that fork there.
    pub(super) async fn make(
        &self,
        cell: &Cell,
        slots: &Slots,
        made: &mut MadeCells,
    ) -> Result<Option<EndedCell>, CampaignError> {
        let slot = Arc::clone(slots.lock().await.entry(cell.run.clone()).or_default());
        let mut slot = slot.lock().await;
        if slot.is_none() {
            *slot = self.finished(&cell.run)?;
        }
        if slot.is_none() {
            let place = self.context.gate.enter().await;
            if !self.is_over() {
                *slot = self.conduct(cell).await?;
            }
            drop(place);
        }
        if let Some(ended) = &*slot {
            made.ended.insert(cell.run.clone(), ended.clone());
        } else {
            made.unfinished.insert(cell.run.clone());
        }
        Ok(slot.clone())
    }

    /// What a finished cell met, to be given again.
    pub(super) fn treatment_of(
        &self,
        cell: &Cell,
        planned: &ForkPoint,
    ) -> Result<Option<Arc<Treatment>>, CampaignError> {
        let (Some(aimed), Some(reference)) = (cell.plan(), cell.reference()) else { return Ok(None) };
        let aimed: &TargetedPlan = aimed;
        let cassette = self.references.open(&self.state, reference)?;
        let met = recording::read(&self.state.run_dir(&cell.run))?.trajectory;
        Ok(Treatment::from_run(&cell.run, &met, aimed, &cassette, planned).map(Arc::new))
    }

    /// Where a cell's plan made it leave its reference.
    pub(super) fn planned(&self, cell: &Cell) -> Result<Option<ForkPoint>, CampaignError> {
        let (CellKind::Injected { aimed, .. }, Some(reference)) = (&cell.kind, cell.reference()) else {
            return Ok(None);
        };
        let cassette = self.references.open(&self.state, reference)?;
        Ok(ForkPoint::of_plan(&cassette, &aimed.plan, &cell.run))
    }
}
