//! The gates of a label, in order, and why each refuses.

use std::{collections::BTreeSet, sync::OnceLock};

use super::{NoLabel, PLANTED, contested, mode_claim};
use crate::{
    identity::LateStep,
    mode::{self, CallFacts},
    recording::{Recording, RunOrigin},
    surface::{
        self,
        account::{self, ReadState},
    },
    trajectory::{
        AgentName, Attempt, ErrorOrigin, InjectedError, Label, LabelContent, LabelEntry, LabelStatus, Side, Source,
        Step, StepIndex, TAXONOMY, Trajectory, altered_by_fault, ended_by_fault, ended_by_upstream, refused_as_edited,
    },
};

/// One condition that a label must meet.
#[derive(Debug)]
pub struct LabelGate {
    /// Its name.
    pub name: &'static str,
    /// What must be so, in a sentence for users.
    pub rule: &'static str,
    /// Why there is no label where it is not so.
    pub refusal: NoLabel,
    refuses: GateCheck,
}

/// What a gate looks at, and whether it refuses that.
#[derive(Debug)]
enum GateCheck {
    /// The run as a whole.
    Run(fn(&Ruling<'_>) -> bool),
    /// Each step that a label would name, with what was planted there where that is asked about.
    Step(fn(&Ruling<'_>, &Step, Option<&InjectedError>) -> bool),
}

const fn of_run(
    name: &'static str,
    rule: &'static str,
    refusal: NoLabel,
    refuses: fn(&Ruling<'_>) -> bool,
) -> LabelGate {
    LabelGate { name, rule, refusal, refuses: GateCheck::Run(refuses) }
}

const fn of_step(
    name: &'static str,
    rule: &'static str,
    refusal: NoLabel,
    refuses: fn(&Ruling<'_>, &Step, Option<&InjectedError>) -> bool,
) -> LabelGate {
    LabelGate { name, rule, refusal, refuses: GateCheck::Step(refuses) }
}

/// All gates, in the order in which they are asked: the first that refuses is the reason that is given.
pub const GATES: &[LabelGate] = &[
    of_run("no note", "The run answers no note of `aegis retry`.", NoLabel::Note, |run| {
        run.origin == Some(RunOrigin::Feedback)
    }),
    of_run(
        "no execution of a proof",
        "The run is no execution of a proof, which has neutral changes.",
        NoLabel::Perturbed,
        |run| run.origin == Some(RunOrigin::Proof),
    ),
    of_run(
        "edits made",
        "No planned edit failed: a plan that was carried out in part has no label. One that found nothing to change fails only where none was delivered.",
        NoLabel::ManipulatorFailed,
        |run| run.edits_failed,
    ),
    of_run("more than faults", "What was delivered is not a planned fault alone.", NoLabel::OnlyFaults, |run| {
        run.altered().next().is_none() && run.delivered().any(InjectedError::is_fault)
    }),
    of_run(
        "delivered",
        "Altered bytes of a planted error reached whom they were meant for.",
        NoLabel::NotInjected,
        |run| run.altered().next().is_none(),
    ),
    of_step(
        "certain agent",
        "The user declared the agent, a framework writes its name into each request, or the upstream names it in the reply.",
        NoLabel::AmbiguousAgent,
        |_, step, error| !error.is_some_and(InjectedError::is_named_by_upstream) && !step.attribution.is_certain(),
    ),
    of_step(
        "one speaker a name",
        "A name that only the wire gives is the name of one agent of the run.",
        NoLabel::ContestedName,
        is_contested,
    ),
    of_step(
        "one agent a reply",
        "The reply is one agent's, or what was edited in it is what one agent says that the upstream names.",
        NoLabel::SeveralAgentsReply,
        |_, step, error| error.is_none_or(|error| error.speaker.is_none()) && is_of_team(step),
    ),
    of_step(
        "no overlap",
        "No other call of the agent was under way at the same time.",
        NoLabel::Overlapping,
        |_, step, _| step.overlapping,
    ),
    of_step(
        "no overlap in the reference",
        "Nor was one in the run whose beginning was given again: a record answers at once, and hides an overlap.",
        NoLabel::OverlappingInReference,
        |run, step, _| run.late_of(step).any(|late| late.overlapping_in_reference),
    ),
    of_step(
        "not seen otherwise late",
        "All traffic together says the same of the step as its request alone did when it arrived.",
        NoLabel::SeenLate,
        |run, step, _| run.late_of(step).any(|late| !late.overlapping_in_reference),
    ),
    of_run(
        "answered",
        "The upstream failed at no step for its own reasons; what a retry healed does not count.",
        NoLabel::InfraError,
        |run| run.trajectory.steps.iter().any(ended_by_upstream),
    ),
    of_run("no fault", "No planned fault ended a step or altered an answer.", NoLabel::FaultEnded, |run| {
        run.trajectory.steps.iter().any(|step| ended_by_fault(step) || altered_by_fault(step))
    }),
    of_run(
        "accepted as edited",
        "The upstream answered each request as an edit had made it.",
        NoLabel::EditRefused,
        |run| run.trajectory.steps.iter().any(refused_as_edited),
    ),
    of_step(
        "answered where it is named",
        "The call that a label names was answered: it was not refused, did not fail or break off, and its client did not leave.",
        NoLabel::Unanswered,
        |_, step, _| !step.last_attempt().is_some_and(Attempt::is_answered),
    ),
    of_step(
        "placed",
        "All of the reply that a label names was read, and of an edited request all that the edit changed.",
        NoLabel::NotReadWhole,
        is_not_read_whole,
    ),
];

/// A recorded run before the gates.
#[derive(Debug)]
pub struct Ruling<'a> {
    trajectory: &'a Trajectory,
    /// The recording, where there is one: it knows which names were given later.
    recording: Option<&'a Recording>,
    late: &'a [LateStep],
    origin: Option<RunOrigin>,
    edits_failed: bool,
    /// The steps of the run that begins alike and in which nothing was planted, where one is at hand.
    reference: &'a [Step],
    /// What is so at each call; worked out where a label is made.
    calls: OnceLock<CallFacts>,
    /// Names that nobody declared and under which several agents spoke; worked out where a gate asks for it.
    contested: OnceLock<BTreeSet<AgentName>>,
    /// The same of names that the upstream gives.
    contested_upstream: OnceLock<BTreeSet<AgentName>>,
}

impl<'a> Ruling<'a> {
    /// Of a recorded run.
    pub fn new(recording: &'a Recording) -> Self {
        Self {
            trajectory: &recording.trajectory,
            recording: Some(recording),
            late: &recording.late,
            origin: recording.manifest.origin,
            edits_failed: edits_failed(recording),
            reference: &[],
            calls: OnceLock::new(),
            contested: OnceLock::new(),
            contested_upstream: OnceLock::new(),
        }
    }

    /// The same with the run whose beginning was given again, if one was: it tells which calls come after an error that ends a run.
    #[must_use]
    pub fn after(self, reference: Option<&'a Recording>) -> Self {
        Self { reference: reference.map_or(&[], |reference| &reference.trajectory.steps), ..self }
    }

    /// The label that the run earns by what was planted and delivered; it says nothing yet of what that caused.
    ///
    /// # Errors
    /// The first gate that refuses.
    pub fn label(&self) -> Result<Label, NoLabel> {
        for gate in GATES {
            let refused = match gate.refuses {
                GateCheck::Run(refuses) => refuses(self),
                GateCheck::Step(refuses) => self.altered().any(|(step, entry)| refuses(self, step, Some(&entry.error))),
            };
            if refused {
                return Err(gate.refusal);
            }
        }
        Ok(Label::ruled(LabelContent {
            format: 1,
            status: LabelStatus::Delivered,
            definition: PLANTED.to_owned(),
            seed: self.trajectory.seed.unwrap_or_default(),
            outcome: self.trajectory.outcome.verdict,
            errors: self.altered().map(|(step, entry)| self.claimed(step, entry)).collect(),
            others: Vec::new(),
            not_shown: Vec::new(),
            evidence: None,
            missed_catch: Vec::new(),
            names_later: self.altered().find_map(|(step, _)| self.recording?.later_names(step.step)),
        }))
    }

    /// Whether a label may name the agent and the call of a step, whatever was done there.
    ///
    /// # Errors
    /// The first gate of steps that refuses; [`NoLabel::AmbiguousAgent`] of a step that the run does not have.
    pub fn may_name(&self, step: StepIndex) -> Result<(), NoLabel> {
        let known = self.trajectory.steps.iter().find(|known| known.step == step).ok_or(NoLabel::AmbiguousAgent)?;
        self.of_step(known)
    }

    /// The same of a step of the run that is at hand.
    ///
    /// # Errors
    /// The first gate of steps that refuses.
    pub fn of_step(&self, step: &Step) -> Result<(), NoLabel> {
        let refuses = |gate: &&LabelGate| matches!(gate.refuses, GateCheck::Step(refuses) if refuses(self, step, None));
        GATES.iter().find(refuses).map_or(Ok(()), |gate| Err(gate.refusal))
    }

    /// Why a label that the run has does not hold: the first gate that refuses it, if one does. A label of what was planted is held
    /// to all gates, another to those of the steps that it names. Neither may have been edited, nor name another's step.
    pub fn objects_to(&self, label: &Label) -> Option<NoLabel> {
        if self.recording.is_some_and(|recording| !recording.edited.is_empty()) {
            return Some(NoLabel::Edited);
        }
        if label.definition == PLANTED {
            return match self.label() {
                Ok(own) if names_others(label, &own) => Some(NoLabel::DiffersFromLog),
                own => own.err(),
            };
        }
        label.errors.iter().find_map(|entry| {
            let InjectedError { step, agent, speaker, .. } = &entry.error;
            let named = || self.trajectory.steps.iter().find(|known| known.step == *step);
            let is_others = || speaker.is_none() && named().is_some_and(|known| known.attribution.agent != *agent);
            self.may_name(*step).err().or_else(|| is_others().then_some(NoLabel::DiffersFromLog))
        })
    }

    /// Whether a step may be another agent's, or another call of its agent: a doubt that rows of data sets state of any step. A
    /// name that was only learned is no such doubt, nor is a reply of several agents, which has a row for each.
    pub fn is_ambiguous(&self, step: &Step) -> bool {
        let doubts = |gate: &LabelGate| {
            gate.refusal.is_about_identity()
                && !matches!(gate.refusal, NoLabel::AmbiguousAgent | NoLabel::SeveralAgentsReply)
                && matches!(gate.refuses, GateCheck::Step(refuses) if refuses(self, step, None))
        };
        step.attribution.ambiguous || GATES.iter().any(doubts)
    }

    /// What was planted, altered something and was delivered, with its step.
    fn altered(&self) -> impl Iterator<Item = (&'a Step, LabelEntry)> {
        self.trajectory.steps.iter().flat_map(|step| {
            let altered = step.injected.iter().filter(|error| {
                let has_mode = error.failure_mode.is_some() || !error.is_of_agent();
                error.delivered && error.before != error.after && has_mode && !error.is_fault()
            });
            altered.map(move |error| {
                (
                    step,
                    LabelEntry {
                        error: error.clone(),
                        origin: ErrorOrigin::Planted,
                        taxonomy: TAXONOMY.to_owned(),
                        proposed_mode: None,
                        mode_claim: None,
                    },
                )
            })
        })
    }

    /// What was planted and delivered.
    fn delivered(&self) -> impl Iterator<Item = &'a InjectedError> {
        self.trajectory.steps.iter().flat_map(|step| &step.injected).filter(|error| error.delivered)
    }

    /// The entry with what is known of the mode that it declares.
    fn claimed(&self, step: &Step, entry: LabelEntry) -> LabelEntry {
        let calls = || self.calls.get_or_init(|| mode::of_run(&self.trajectory.steps, self.reference));
        LabelEntry { mode_claim: mode_claim::mode_claim(step, &entry.error, calls), ..entry }
    }

    fn late_of(&self, step: &Step) -> impl Iterator<Item = &'a LateStep> {
        let number = step.step;
        self.late.iter().filter(move |late| late.step == number)
    }
}

/// Whether a label names a planted error that is not among those of another.
fn names_others(label: &Label, own: &Label) -> bool {
    let planted = |entry: &LabelEntry| (entry.error.step, entry.error.agent.clone(), entry.error.failure_mode);
    let known: Vec<_> = own.errors.iter().map(planted).collect();
    let named = label.errors.iter().chain(&label.others).chain(&label.not_shown);
    named.filter(|entry| entry.origin == ErrorOrigin::Planted).any(|entry| !known.contains(&planted(entry)))
}

/// Whether several agents of the run go by the name of a step, and nobody declared it.
fn is_contested(run: &Ruling<'_>, step: &Step, error: Option<&InjectedError>) -> bool {
    if let Some(error) = error.filter(|error| error.is_named_by_upstream()) {
        return run.contested_upstream.get_or_init(|| contested::upstream(run.trajectory)).contains(&error.agent);
    }
    let told = &step.attribution;
    told.source == Source::Dialect
        && run.contested.get_or_init(|| contested::names(run.trajectory)).contains(&told.agent)
}

/// Whether agents that the upstream runs speak in the reply of a step.
fn is_of_team(step: &Step) -> bool {
    let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
    let Some((surface, attempt)) = surface.zip(step.last_attempt()) else { return false };
    surface::is_of_team(surface, &attempt.reply, attempt.streamed)
}

/// Whether more was said, or more was edited, than the readers know. Without a planted error a label is about the reply.
fn is_not_read_whole(_: &Ruling<'_>, step: &Step, error: Option<&InjectedError>) -> bool {
    match error.map(|error| error.side) {
        Some(Side::Request) => account::edits_unplaced(step),
        Some(Side::Response) | None => account::of_reply_to(step) != ReadState::Whole,
    }
}

/// Whether what was planned could not be planted: an edit failed, or none found anything to edit. One that found nothing
/// at its step, while another was delivered, leaves the run as sure as if it had not been planned.
fn edits_failed(recording: &Recording) -> bool {
    let delivered = || recording.trajectory.steps.iter().flat_map(|step| &step.injected).any(|error| error.delivered);
    let failures = &recording.manipulator_failures;
    failures.iter().any(|failure| !failure.nothing) || (!failures.is_empty() && !delivered())
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
