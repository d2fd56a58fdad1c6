//! What there is to execute of a failed run: its arms, and which of them speak to which step.

use std::collections::BTreeSet;

use super::{Corrections, TraceSettings};
use crate::{
    proof::{Couple, Offer, SearchQuestion, TriedWords},
    replay::{AtFork, Cassette, ForkPoint},
    trajectory::{AgentName, Step, StepIndex},
};

/// One arm: where it leaves the record, and what is said there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ForkArm {
    pub(super) fork: ForkPoint,
    /// A later step whose reply is set too, and its agent.
    pub(super) also: Option<(AgentName, StepIndex, AtFork)>,
    /// What it is, in words.
    pub(super) words: &'static str,
    /// Whether its executions get no neutral changes.
    pub(super) plain: bool,
}

/// The arms of a failed run, and what is asked of them.
#[derive(Debug)]
pub(super) struct Arms {
    pub(super) arms: Vec<ForkArm>,
    pub(super) question: SearchQuestion,
}

impl Arms {
    /// The arms for these corrections. An arm that a step shares with another stands once: a step that is drawn anew is the
    /// record up to the step before it.
    pub(super) fn from_corrections(cassette: &Cassette, corrections: &Corrections, settings: &TraceSettings) -> Self {
        let recorded = &cassette.recording().trajectory.steps;
        let last = recorded.iter().map(|step| step.step).max().unwrap_or_default();
        let mut arms = Self {
            arms: Vec::new(),
            question: SearchQuestion {
                steps: Vec::new(),
                couples: Vec::new(),
                arms: 0,
                sanity: 0,
                order: settings.order,
                earliest: settings.earliest,
                last: settings.last,
                terms: settings.terms.drawn_for(cassette.run().as_str()),
            },
        };
        // The record as it is: nothing is live in it, and no claim rests on it.
        let fork = ForkPoint { step: last, at: AtFork::Delivered };
        arms.question.sanity = arms.stand(ForkArm { fork, also: None, words: "as recorded", plain: true });
        for (rank, step) in recorded.iter().enumerate() {
            let offer = match corrections.by_step.get(&step.step) {
                None if corrections.alike.contains(&step.step) => Offer::Same,
                None => Offer::None,
                Some(correction) => {
                    #[expect(clippy::cast_precision_loss, reason = "steps of one run")]
                    let early = 1.0 / (rank + 2) as f64;
                    let suspicion = correction.suspicion.unwrap_or(early).max(f64::MIN_POSITIVE);
                    let by = correction.source.by();
                    let control = arms.control(step.step);
                    let treated = match by {
                        TriedWords::Drawn => arms.drawn(cassette, step),
                        _ => arms.place(step.step, correction.at.clone(), None, "corrected"),
                    };
                    Offer::Other { control, treated, by, suspicion }
                }
            };
            arms.question.steps.push(offer);
        }
        if settings.coupled {
            arms.couples(recorded, corrections);
        }
        arms.question.arms = arms.arms.len();
        arms
    }

    fn control(&mut self, step: StepIndex) -> usize {
        self.place(step, AtFork::Delivered, None, "as recorded")
    }

    /// A step drawn anew: the record up to a step before it, where that leaves out this step alone.
    fn drawn(&mut self, cassette: &Cassette, step: &Step) -> usize {
        let mut others = prefix(cassette, step);
        others.remove(&step.step);
        let steps = &cassette.recording().trajectory.steps;
        let before = steps
            .iter()
            .take_while(|before| before.step < step.step)
            .filter(|before| prefix(cassette, before) == others);
        match before.last().map(|before| before.step) {
            Some(before) => self.control(before),
            None => self.place(step.step, AtFork::Live, None, "drawn anew"),
        }
    }

    /// Pairs of steps with words of their own to try; what proposes, and what is drawn anew, makes none.
    fn couples(&mut self, recorded: &[Step], corrections: &Corrections) {
        let given: Vec<(usize, &Step, &AtFork)> = recorded
            .iter()
            .enumerate()
            .filter_map(|(place, step)| {
                let correction = corrections.by_step.get(&step.step)?;
                (correction.source.by() == TriedWords::Given).then_some((place, step, &correction.at))
            })
            .collect();
        for (index, (first, one, at_one)) in given.iter().enumerate() {
            for (second, other, at_other) in given.iter().skip(index + 1) {
                let agent = &other.attribution.agent;
                let set = |at: &AtFork| Some((agent.clone(), other.step, at.clone()));
                let control = self.place(one.step, AtFork::Delivered, set(&AtFork::Delivered), "both as recorded");
                let treated = self.place(one.step, (*at_one).clone(), set(at_other), "both corrected");
                self.question.couples.push(Couple { steps: (*first, *second), control, treated });
            }
        }
    }

    fn place(
        &mut self,
        step: StepIndex,
        at: AtFork,
        also: Option<(AgentName, StepIndex, AtFork)>,
        words: &'static str,
    ) -> usize {
        self.stand(ForkArm { fork: ForkPoint { step, at }, also, words, plain: false })
    }

    /// The number of an arm; equal ones stand once.
    fn stand(&mut self, arm: ForkArm) -> usize {
        if let Some(known) = self.arms.iter().position(|known| *known == arm) {
            return known;
        }
        self.arms.push(arm);
        self.arms.len() - 1
    }
}

/// The steps whose calls are live where a run is forked at one and makes the calls of the record again. `is_drawn`: the step itself is
/// live, too. Messages to tools and peers are no calls of a model.
pub(super) fn live_calls<'a>(cassette: &'a Cassette, at: &Step, is_drawn: bool) -> impl Iterator<Item = &'a Step> {
    let (recorded, at) = (prefix(cassette, at), at.step);
    let steps = cassette.bare_steps().iter();
    steps.filter(move |step| {
        let is_live = !recorded.contains(&step.step) || (is_drawn && step.step == at);
        is_live && step.attribution.agent.is_agent()
    })
}

/// The steps that come from the record when a run is forked at one.
pub(super) fn prefix(cassette: &Cassette, at: &Step) -> BTreeSet<StepIndex> {
    let (_, closed) = cassette.span(at);
    let steps = cassette.bare_steps().iter();
    steps.filter(|step| step.step <= at.step || cassette.span(step).0 < closed).map(|step| step.step).collect()
}
