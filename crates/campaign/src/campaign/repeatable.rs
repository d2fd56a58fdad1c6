//! Systems that are declared to repeat themselves: each arm of a claim runs twice, once plain and once with neutral changes,
//! and everything that two executions of an arm asked, were answered and came to must be equal, those changes aside. One
//! difference anywhere takes the declaration back for all of that system.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    bench::CellBench,
    cell::Cell,
    claim::{Claimed, ConcludedClaim, MadeCells},
    ended::EndedCell,
    error::CampaignError,
    narrow::necessity,
};
use crate::{
    equality::{ComparedRun, parting},
    plan::Planted,
    proof::{ProofSample, Repetition},
    recording,
    replay::{Rules, compared_run},
    trajectory::{RunId, Standing},
};

/// What was seen of an execution.
#[derive(Debug)]
struct SeenExecution {
    run: RunId,
    calls: ComparedRun,
    answer: String,
}

impl PartialEq for SeenExecution {
    fn eq(&self, other: &Self) -> bool {
        self.answer == other.answer && parting(&self.calls, &other.calls).is_none()
    }
}

/// A claim of a system that is declared to repeat itself, with the cells of its second executions.
struct Declared<'a> {
    number: usize,
    claimed: &'a Claimed,
    agains: Vec<Cell>,
    controls: Vec<Cell>,
}

/// What each execution of an arm came to, and what was seen of it.
type SeenArm = Vec<(ProofSample, SeenExecution)>;

/// Where claims stand, by their index.
type Repeated = BTreeMap<usize, ConcludedClaim>;

impl CellBench {
    /// Executes the claims of a chain whose system is said to repeat itself; `None` where it does not.
    pub(super) async fn repeat(
        self: &Arc<Self>,
        claims: &[Arc<Claimed>],
        made: &mut MadeCells,
    ) -> Result<Option<Repeated>, CampaignError> {
        let campaign = &self.context.campaign;
        let mut of: Vec<Declared<'_>> = Vec::new();
        for (number, claimed) in claims.iter().enumerate().filter(|(_, claimed)| claimed.flipped) {
            let Some(treatment) = &claimed.treatment else { continue };
            let Some(again) = Cell::repeat_of_treatment(campaign, &claimed.cell, treatment, 0) else { continue };
            let controls =
                [false, true].map(|perturbed| Cell::control(campaign, &claimed.cell, &claimed.fork, 0, perturbed));
            of.push(Declared { number, claimed, agains: vec![again], controls: controls.to_vec() });
        }
        let mut repeated = Repeated::default();
        let cells: Vec<Cell> = of.iter().flat_map(|one| one.agains.iter().chain(&one.controls)).cloned().collect();
        self.execute_each_once(cells, made).await?;
        for one in &mut of {
            let level = self.even_sittings(one, made).await?;
            let controls: Vec<&RunId> = one.controls.iter().map(|cell| &cell.run).collect();
            let treated: Vec<&RunId> = one.treated_runs().collect();
            let [control, treated] = self.arms([&controls, &treated], &one.claimed.fork.reference, made)?;
            let arms = Repetition { control: &control, treated: &treated };
            if let Some((one_run, other)) = arms.difference() {
                self.revoke(one.claimed.cell.system, Some(&one_run.difference(other)));
                return Ok(None);
            }
            let standing = arms.standing().filter(|_| level).unwrap_or(Standing::Unproven);
            let executed = arms.executed();
            repeated.insert(one.number, ConcludedClaim { standing, executed, necessity: Vec::new(), why: None });
        }
        let repeats = self.narrow_repeated(&of, &mut repeated, made).await?;
        Ok(repeats.then_some(repeated))
    }

    /// Makes more of the arm whose last execution is older than the other's, until the last ones are of one sitting: what was equal
    /// at an earlier start counts only where it is so now. False where that cannot be made.
    async fn even_sittings(
        self: &Arc<Self>,
        one: &mut Declared<'_>,
        made: &mut MadeCells,
    ) -> Result<bool, CampaignError> {
        let campaign = &self.context.campaign;
        let Some(treatment) = &one.claimed.treatment else { return Ok(true) };
        let index = |cells: &[Cell]| u32::try_from(cells.len()).unwrap_or(u32::MAX);
        loop {
            let last = |runs: &mut dyn Iterator<Item = &RunId>| -> Result<_, CampaignError> {
                let mut sittings = Vec::new();
                for run in runs {
                    sittings.push(self.finished(run)?.map(|ended| ended.sitting));
                }
                // One that is not finished leaves nothing to compare.
                let whole = sittings.iter().all(Option::is_some);
                Ok(sittings.into_iter().flatten().max().filter(|_| whole))
            };
            let control = last(&mut one.controls.iter().map(|cell| &cell.run))?;
            let (Some(control), Some(treated)) = (control, last(&mut one.treated_runs())?) else { return Ok(false) };
            let more = match control.cmp(&treated) {
                Ordering::Equal => return Ok(true),
                Ordering::Less => {
                    let more =
                        Cell::control(campaign, &one.claimed.cell, &one.claimed.fork, index(&one.controls), true);
                    one.controls.push(more.clone());
                    more
                }
                Ordering::Greater => {
                    let of = &one.claimed.cell;
                    let Some(more) = Cell::repeat_of_treatment(campaign, of, treatment, index(&one.agains)) else {
                        return Ok(false);
                    };
                    one.agains.push(more.clone());
                    more
                }
            };
            self.execute_each_once(vec![more], made).await?;
        }
    }

    /// Which of several injections the failures need; false where the system does not repeat itself.
    async fn narrow_repeated(
        self: &Arc<Self>,
        of: &[Declared<'_>],
        repeated: &mut Repeated,
        made: &mut MadeCells,
    ) -> Result<bool, CampaignError> {
        let campaign = &self.context.campaign;
        let mut less: Vec<(usize, &Planted, Cell, &Claimed)> = Vec::new();
        for one in of.iter().filter(|one| one.claimed.planted.len() > 1) {
            let stands = repeated.get(&one.number).map(|concluded| concluded.standing);
            for planted in one.claimed.planted.iter().filter(|_| stands == Some(Standing::Verified)) {
                let without = Cell::without(campaign, &one.claimed.cell, &one.claimed.planned, planted);
                less.extend(without.map(|cell| (one.number, planted, cell, one.claimed)));
            }
        }
        self.execute_each_once(less.iter().map(|(_, _, cell, _)| cell.clone()).collect(), made).await?;
        let mut agains: BTreeMap<RunId, Cell> = BTreeMap::new();
        for (_, _, cell, claimed) in &less {
            if made.ended.contains_key(&cell.run)
                && let Some(treatment) = self.treatment_of(cell, &claimed.planned)?
                && let Some(again) = Cell::repeat_of_treatment(campaign, cell, &treatment, 0)
            {
                agains.insert(cell.run.clone(), again);
            }
        }
        self.execute_each_once(agains.values().cloned().collect(), made).await?;
        for (number, planted, cell, claimed) in less {
            let reference = &claimed.fork.reference;
            let less = [Some(&cell.run), agains.get(&cell.run).map(|again| &again.run)];
            let less: Vec<&RunId> = less.into_iter().flatten().collect();
            let all = of.iter().find(|one| one.number == number);
            let all: Vec<&RunId> = all.into_iter().flat_map(Declared::treated_runs).collect();
            let [control, treated] = self.arms([&less, &all], reference, made)?;
            let arms = Repetition { control: &control, treated: &treated };
            if let Some((one, other)) = arms.difference() {
                self.revoke(claimed.cell.system, Some(&one.difference(other)));
                return Ok(false);
            }
            let Some(concluded) = repeated.get_mut(&number) else { continue };
            match arms.need() {
                None => concluded.standing = Standing::Unproven,
                Some(need) => concluded.necessity.push(necessity(planted, need, arms.executed(), None)),
            }
        }
        Ok(true)
    }

    /// Makes cells side by side, each once.
    async fn execute_each_once(self: &Arc<Self>, cells: Vec<Cell>, made: &mut MadeCells) -> Result<(), CampaignError> {
        let mut once = BTreeSet::new();
        let cells: Vec<Cell> = cells.into_iter().filter(|cell| once.insert(cell.run.clone())).collect();
        let ended = self.stage(&cells).await?;
        for (cell, ended) in cells.iter().zip(ended) {
            match ended {
                Some(ended) => drop(made.ended.insert(cell.run.clone(), ended)),
                None => drop(made.unfinished.insert(cell.run.clone())),
            }
        }
        Ok(())
    }

    /// Two arms. Executions of one arm that differ in nothing but what tools and clocks say show that it is equal.
    fn arms(&self, runs: [&[&RunId]; 2], reference: &RunId, made: &MadeCells) -> Result<[SeenArm; 2], CampaignError> {
        loop {
            let [control, treated] = runs.map(|runs| self.arm(runs, reference, made));
            let (control, treated) = (control?, treated?);
            if (Repetition { control: &control, treated: &treated }).difference().is_none() {
                return Ok([control, treated]);
            }
            let mut learned = false;
            for arm in [&control, &treated] {
                let runs = arm.iter().map(|(_, seen)| recording::read(&self.state.run_dir(&seen.run)));
                let runs: Vec<_> = runs.collect::<Result<_, _>>()?;
                learned |= self.references.learn_from_arm(reference, &runs, &self.arm_rules(reference));
            }
            if !learned {
                return Ok([control, treated]);
            }
        }
    }

    /// How executions of an arm are compared: the reply at the fork may have other blanks, and with it the requests that quote it.
    fn arm_rules(&self, reference: &RunId) -> Rules {
        self.references.rules(reference).with_blanks_alike()
    }

    /// An arm: what each of these runs came to, and what was seen of it. Unfinished ones are left out.
    fn arm(&self, runs: &[&RunId], reference: &RunId, made: &MadeCells) -> Result<SeenArm, CampaignError> {
        let mut arm = Vec::new();
        for &run in runs {
            let finished = match made.ended.get(run) {
                Some(ended) => Some(ended.clone()),
                None => self.finished(run)?,
            };
            let Some(ended) = finished else { continue };
            arm.push((ended.proof_sample(), self.seen_execution(&ended, reference)?));
        }
        Ok(arm)
    }

    fn seen_execution(&self, ended: &EndedCell, reference: &RunId) -> Result<SeenExecution, CampaignError> {
        let recording = recording::read(&self.state.run_dir(&ended.run))?;
        Ok(SeenExecution {
            run: ended.run.clone(),
            calls: compared_run(&recording, &self.arm_rules(reference)),
            answer: ended.answer.clone(),
        })
    }
}

impl SeenExecution {
    /// Where another execution of the arm differs from this one.
    fn difference(&self, other: &Self) -> String {
        let (run, reference) = (&other.run, &self.run);
        match parting(&self.calls, &other.calls) {
            Some(parted) => format!("of the run `{run}`, beside `{reference}` of its arm: {parted}"),
            None if self.answer == other.answer => {
                format!("the runs `{run}` and `{reference}` of one arm ended otherwise")
            }
            None => {
                format!("the run `{run}` answers {:?}, and `{reference}` of its arm {:?}", other.answer, self.answer)
            }
        }
    }
}

impl Declared<'_> {
    /// The runs that met the treatment.
    fn treated_runs(&self) -> impl Iterator<Item = &RunId> {
        self.claimed.runs.iter().chain(self.agains.iter().map(|cell| &cell.run))
    }
}
