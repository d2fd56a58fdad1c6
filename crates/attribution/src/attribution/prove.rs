//! More evidence for a label that a run has already: its injection again, the same bytes, against the same beginning
//! without it, until [`crate::proof`] says where the claim stands.

use std::{collections::BTreeSet, sync::Arc};

use super::recorded_proof::{CountedArms, ProofOf, ProofQuestion, RecordedArms, RecordedProof};
use crate::{
    execution::{ExecutionArm, ExecutionError, Meter, SystemUnderTest},
    plan::{Plan, Planted, Settled},
    proof::{Arm, Claim, NeedTerms, Next, NextForNeed, ProofSample, ShamDraw, Terms, is_fragile},
    replay::{AtFork, Cassette, ForkPoint},
    trajectory::{Executed, Label, Necessity, Need, RunId, Side, Standing, Step, Verdict, Void},
};

/// A run whose label is to be shown.
pub struct Proving {
    /// Where its program is executed again.
    pub system: Arc<SystemUnderTest>,
    /// What its calls are paid from.
    pub meter: Arc<Meter>,
    /// The run.
    pub cassette: Arc<Cassette>,
    /// Its label, as it was delivered.
    pub label: Label,
    /// Its plan, for what was planted behind the first edit.
    pub plan: Option<Plan>,
    /// What the claim must reach.
    pub terms: Terms,
    /// What is executed and how it is judged.
    pub of: ProofOf,
    /// Whether the run itself was executed and judged so: then it has shown once what the injection does.
    pub made_alike: bool,
}

/// Why a run's label cannot be shown by executing it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unprovable {
    /// Nothing was planted.
    #[error("its label is not of an injection: `aegis trace` finds errors that nobody planted")]
    NotInjected,
    /// The run did not fail.
    #[error("the run did not fail, so there is no flip to show")]
    NoFailure,
    /// The bytes are not in the record.
    #[error("its record masks secrets in the bytes that were delivered, so they cannot be delivered again")]
    Masked,
    /// Several edits, and no plan.
    #[error("several calls were edited, and its record holds no plan to edit the later ones by")]
    NoPlan,
    /// The labelled step is not in the record.
    #[error("its labelled step is not in its record")]
    NoStep,
}

/// Where the claim stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Proved {
    /// Where it stands.
    pub standing: Standing,
    /// What was executed.
    pub executed: Executed,
    /// Of several things planted, which the failure needs.
    pub necessity: Vec<Necessity>,
    /// Executions made now.
    pub runs: u32,
    /// What counted as equal in them beyond what the run says, in words.
    pub counts_as_equal: Vec<String>,
}

/// How a run is left, and with what.
struct RunTreatment {
    fork: ForkPoint,
    plan: Option<Arc<Plan>>,
}

/// One of the two arms of a question.
struct ProofArm<'a> {
    treatment: &'a RunTreatment,
    /// What its neutral changes are drawn by.
    name: String,
}

/// What is executed for a question.
struct ProofArms<'a> {
    control: ProofArm<'a>,
    treated: ProofArm<'a>,
}

impl<'a> ProofArms<'a> {
    fn of_whole(control: &'a RunTreatment, treated: &'a RunTreatment) -> Self {
        Self::named(control, "null".to_owned(), treated, "treated".to_owned())
    }

    fn without(number: usize, control: &'a RunTreatment, treated: &'a RunTreatment) -> Self {
        Self::named(control, format!("without {number}"), treated, format!("beside {number}"))
    }

    fn named(control: &'a RunTreatment, name: String, treated: &'a RunTreatment, name_of_treated: String) -> Self {
        let control = ProofArm { treatment: control, name };
        Self { control, treated: ProofArm { treatment: treated, name: name_of_treated } }
    }

    fn arm(&self, arm: Arm) -> &ProofArm<'a> {
        match arm {
            Arm::Control => &self.control,
            Arm::Treated => &self.treated,
        }
    }
}

impl Proving {
    /// Why the label cannot be shown, if it cannot.
    ///
    /// # Errors
    /// [`Unprovable`].
    pub fn check(&self) -> Result<(), Unprovable> {
        if self.label.definition != "injected" {
            return Err(Unprovable::NotInjected);
        }
        if self.cassette.recording().trajectory.outcome.verdict != Verdict::Failure {
            return Err(Unprovable::NoFailure);
        }
        let steps: BTreeSet<u32> = self.entries().map(|error| error.step).collect();
        if steps.len() > 1 && self.plan.is_none() {
            return Err(Unprovable::NoPlan);
        }
        self.treated().map(|_| ())
    }

    /// Executes until the claim is settled, going on from what was executed before. `keep` is told before and after each execution.
    ///
    /// # Errors
    /// [`ExecutionError`] when the program cannot be executed; what it comes to is no error.
    pub async fn run(
        &self,
        mut kept: RecordedProof,
        keep: &mut (dyn FnMut(&RecordedProof) + Send),
    ) -> Result<Proved, ExecutionError> {
        kept.of = self.of.clone();
        let (Ok(treated), Ok(control)) = (self.treated(), self.control(None)) else { return Err(ExecutionError::Lost) };
        let terms = self.terms.drawn_for(self.cassette.run().as_str());
        let arms = ProofArms::of_whole(&control, &treated);
        let mut runs = self.make_void_again(ProofQuestion::Whole, &arms, &mut kept, keep).await?;
        let standing = loop {
            let counted = kept.whole.counted();
            let claim = self.claim(&terms, &counted);
            let arm = match claim.next() {
                Next::Stop(standing) => break standing,
                Next::Execute(arm) => arm,
            };
            let Some(of_execution) = self.perturbed(arms.arm(arm), kept.whole.next_number(arm)) else {
                break claim.given_up();
            };
            let sample = self.execute(of_execution, &mut kept, keep).await?;
            kept.whole.add(arm, sample);
            runs += 1;
            keep(&kept);
        };
        let executed = self.claim(&self.terms, &kept.whole.counted()).executed();
        let mut proved = Proved { standing, executed, necessity: Vec::new(), runs, counts_as_equal: Vec::new() };
        let planted = self.planted();
        if standing == Standing::Verified {
            self.against_shams(&control, &mut kept, keep, &mut proved).await?;
        }
        if proved.standing == Standing::Verified && planted.len() > 1 {
            self.narrow(&planted, kept, keep, &mut proved).await?;
        }
        proved.counts_as_equal = self.system.reference.words();
        Ok(proved)
    }

    /// Makes an execution for each that said nothing at an earlier start: the upstream may answer now, or another rule may hold for what
    /// is equal. It stands behind all others, so no pair that was made changes. Ends with the first that says nothing again. Gives how
    /// many were made.
    async fn make_void_again(
        &self,
        question: ProofQuestion,
        arms: &ProofArms<'_>,
        kept: &mut RecordedProof,
        keep: &mut (dyn FnMut(&RecordedProof) + Send),
    ) -> Result<u32, ExecutionError> {
        let mut runs = 0;
        for arm in [Arm::Control, Arm::Treated] {
            while let Some(recorded) = kept.arms(question).filter(|recorded| recorded.has_void(arm)) {
                let Some(of_execution) = self.perturbed(arms.arm(arm), recorded.next_number(arm)) else {
                    return Ok(runs);
                };
                let sample = self.execute(of_execution, kept, keep).await?;
                kept.arms(question).into_iter().for_each(|recorded| recorded.add_again(arm, sample));
                runs += 1;
                keep(kept);
                if sample.verdict().is_none() {
                    return Ok(runs);
                }
            }
        }
        Ok(runs)
    }

    /// Executes the neutral changes of runs without the injection that failed once more, as the injection is: where one fails each time,
    /// the claim has no weight.
    async fn against_shams(
        &self,
        control: &RunTreatment,
        kept: &mut RecordedProof,
        keep: &mut (dyn FnMut(&RecordedProof) + Send),
        proved: &mut Proved,
    ) -> Result<(), ExecutionError> {
        let failed = kept.whole.control.iter().zip(0..).filter(|(sample, _)| **sample == ProofSample::Failed);
        let failed: Vec<u32> = failed.map(|(_, number)| number).collect();
        while let Some(draw) = kept.shams.next(&failed) {
            let sample = match self.sham(control, draw) {
                Some(arm) => {
                    proved.runs += 1;
                    Some(self.execute(arm, kept, keep).await?)
                }
                None => None,
            };
            kept.shams.add(draw.control, sample);
            keep(kept);
        }
        proved.executed.shams = kept.shams.executions();
        if is_fragile(&proved.executed) {
            proved.standing = Standing::Void;
        }
        Ok(())
    }

    /// An execution of a sham, by its number; `None` where what stands there takes no neutral change, or none is left.
    fn sham(&self, control_arm: &RunTreatment, ShamDraw { control, number }: ShamDraw) -> Option<ExecutionArm> {
        let arm = self.forked(control_arm);
        if !arm.takes_changes() {
            return None;
        }
        let of = arm.draw(&self.arm_name("null"), control)?;
        let arm = arm.sham(&of);
        let draw = arm.draw(&self.arm_name(&format!("sham {control}")), number)?;
        Some(arm.perturbed(draw))
    }

    /// A treatment as an arm, without neutral changes.
    fn forked(&self, treatment: &RunTreatment) -> ExecutionArm {
        let arm = ExecutionArm::forked(&self.cassette, treatment.fork.clone(), treatment.plan.clone());
        ExecutionArm { sentences: self.system.sentences.clone(), ..arm }
    }

    /// What an arm of this proof is named by.
    fn arm_name(&self, arm: &str) -> String {
        let ProofOf { check, command, .. } = &self.of;
        format!("{} {check} {command} {arm}", self.cassette.run())
    }

    fn claim<'a>(&self, terms: &Terms, arms: &'a CountedArms) -> Claim<'a> {
        Claim { has_flipped: self.made_alike, ..Claim::perturbed(terms, &arms.control, &arms.treated) }
    }

    /// Which of several things planted the failure needs: they take turns, and in each a run without one of them and a run with all
    /// are paired.
    async fn narrow(
        &self,
        planted: &[Planted],
        mut kept: RecordedProof,
        keep: &mut (dyn FnMut(&RecordedProof) + Send),
        proved: &mut Proved,
    ) -> Result<(), ExecutionError> {
        let Ok(treated) = self.treated() else { return Err(ExecutionError::Lost) };
        kept.left_out.resize(planted.len(), RecordedArms::default());
        let of_each = NeedTerms::new(&self.terms, &proved.executed, planted.len());
        let terms =
            |number: usize| of_each.drawn_for(&self.terms, &format!("{} without {number}", self.cassette.run()));
        let mut without = Vec::new();
        for one in planted {
            without.push(self.control(Some(one)).map_err(|_| ExecutionError::Lost)?);
        }
        let mut states = vec![None; planted.len()];
        for (number, without) in without.iter().enumerate() {
            let arms = ProofArms::without(number, without, &treated);
            proved.runs += self.make_void_again(ProofQuestion::Without(number), &arms, &mut kept, keep).await?;
        }
        while states.iter().any(Option::is_none) {
            for (number, without) in without.iter().enumerate() {
                let (Some(state @ None), Some(so_far)) = (states.get_mut(number), kept.left_out.get(number)) else {
                    continue;
                };
                let arm = match so_far.counted().without_one(terms(number)).next() {
                    NextForNeed::Execute(arm) => arm,
                    NextForNeed::Stop(need) => {
                        *state = Some(need);
                        continue;
                    }
                };
                let arms = ProofArms::without(number, without, &treated);
                let Some(of_execution) = self.perturbed(arms.arm(arm), so_far.next_number(arm)) else {
                    *state = Some(Need::NotShown);
                    continue;
                };
                let sample = self.execute(of_execution, &mut kept, keep).await?;
                kept.left_out.get_mut(number).into_iter().for_each(|left_out| left_out.add(arm, sample));
                proved.runs += 1;
                keep(&kept);
            }
        }
        for (number, (one, state)) in planted.iter().zip(states).enumerate() {
            let (Some(left_out), Some(state)) = (kept.left_out.get(number), state) else { continue };
            let Planted { injection, agent, instance } = one.clone();
            let counted = left_out.counted();
            let question = counted.without_one(terms(number));
            let (executed, exclusion) = (question.executed(), Some(question.exclusion()));
            proved.necessity.push(Necessity { injection, agent, instance, state, executed, exclusion });
        }
        Ok(())
    }

    /// An execution of an arm, by its number there; `None` where no neutral change is left that none before it had.
    fn perturbed(&self, arm: &ProofArm<'_>, number: usize) -> Option<ExecutionArm> {
        let of_execution = self.forked(arm.treatment);
        let draw = of_execution.draw(&self.arm_name(&arm.name), u32::try_from(number).ok()?)?;
        Some(of_execution.perturbed(draw))
    }

    async fn execute(
        &self,
        arm: ExecutionArm,
        kept: &mut RecordedProof,
        keep: &mut (dyn FnMut(&RecordedProof) + Send),
    ) -> Result<ProofSample, ExecutionError> {
        if self.meter.is_spent() {
            return Err(ExecutionError::Budget);
        }
        let ProofOf { check, command, upstream, .. } = &self.of;
        let name = format!("{} {check} {command} {upstream} perturbed {}", self.cassette.run(), kept.begun);
        let run = RunId::hashed("p", name.as_bytes());
        // Before it begins: its recording is in the way of another one of its name, however it ends.
        kept.begun += 1;
        keep(kept);
        let sample = self.system.execute(&run, arm, &self.meter).await?.uninterrupted()?.sample();
        // It says nothing of the claim, and what is executed with a larger budget goes on from here.
        if sample == ProofSample::Void(Void::Budget) { Err(ExecutionError::Budget) } else { Ok(sample) }
    }

    /// The injection again: the bytes of the first edit, the plan's draws of then behind it.
    fn treated(&self) -> Result<RunTreatment, Unprovable> {
        let step = self.first()?;
        let attempt = step.last_attempt().filter(|attempt| attempt.exact).ok_or(Unprovable::Masked)?;
        let side = self.side(step);
        let at = match side {
            Side::Response => AtFork::AlteredAgain(attempt.delivered().clone()),
            Side::Request => AtFork::LiveRequest(step.request_sent.clone().ok_or(Unprovable::Masked)?),
        };
        let made = self.entries().filter(|error| error.step == step.step && error.side == side);
        let settled = Settled {
            agent: step.attribution.agent.to_string(),
            instance: step.attribution.instance,
            call: step.call,
            injections: made.map(|error| error.injection).collect(),
        };
        let plan = self.plan.clone().map(|plan| Plan { settled: Some(settled), ..self.drawing(plan) });
        Ok(RunTreatment { fork: ForkPoint { step: step.step, at }, plan: plan.map(Arc::new) })
    }

    /// The same beginning without the injection, or without a part of it.
    fn control(&self, less: Option<&Planted>) -> Result<RunTreatment, Unprovable> {
        let step = self.first()?;
        let at = if self.side(step) == Side::Response { AtFork::Recorded } else { AtFork::Live };
        let plan = self.plan.clone().filter(|_| less.is_some());
        let plan = plan.map(|plan| Arc::new(Plan { left_out: less.cloned(), ..self.drawing(plan) }));
        Ok(RunTreatment { fork: ForkPoint { step: step.step, at }, plan })
    }

    fn drawing(&self, plan: Plan) -> Plan {
        Plan { draws_of: Some(self.cassette.run().as_str().to_owned()), without_faults: true, ..plan }
    }

    /// The step that was edited first.
    fn first(&self) -> Result<&Step, Unprovable> {
        let first = self.entries().map(|error| error.step).min();
        let steps = &self.cassette.recording().trajectory.steps;
        first.and_then(|first| steps.iter().find(|step| step.step == first)).ok_or(Unprovable::NoStep)
    }

    /// Which side of it was edited first.
    fn side(&self, step: &Step) -> Side {
        let request = self.entries().any(|error| error.step == step.step && error.side == Side::Request);
        if request { Side::Request } else { Side::Response }
    }

    fn entries(&self) -> impl Iterator<Item = &crate::trajectory::InjectedError> {
        self.label.planted().map(|entry| &entry.error)
    }

    fn planted(&self) -> Vec<Planted> {
        let planted = self.entries().map(|error| Planted {
            injection: error.injection,
            agent: error.agent.clone(),
            instance: error.instance,
        });
        planted.collect::<BTreeSet<_>>().into_iter().collect()
    }
}
