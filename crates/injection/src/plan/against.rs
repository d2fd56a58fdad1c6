//! A plan held against a recorded run: which steps each injection would meet, and what kept it from the others.

use std::collections::HashMap;

use super::decide::{Facts, MissedCondition, meets};
use super::{Injection, Operator, Plan, RecordedCall, Unresolvable, resolve};
use crate::mode::{self, CallFacts, Precondition};
use crate::surface::{self, Conversation, Served, door};
use crate::trajectory::{FailureMode, Step, StepIndex, Trajectory, nearest};

/// What an injection would meet in the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    /// Its index in the plan, 0-based.
    pub injection: u32,
    /// The steps that meet every condition; where it has a `probability`, each of them only with that.
    pub steps: Vec<StepIndex>,
    /// When there are none: what came nearest, in words.
    pub nearest_miss: Option<String>,
    /// The condition that kept it from what came nearest.
    pub miss: Option<MissedCondition>,
    /// Of these steps, those at which the failure mode that it declares cannot be.
    pub impossible: Vec<ImpossibleStep>,
}

/// A step at which a failure mode cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImpossibleStep {
    /// The step, 0-based.
    pub step: StepIndex,
    /// The mode.
    pub mode: FailureMode,
    /// What it needs and the step does not have.
    pub unmet: Precondition,
}

impl Matched {
    /// Whether there are steps, and its mode cannot be at any of them.
    pub fn is_impossible(&self) -> bool {
        !self.steps.is_empty() && self.impossible.len() == self.steps.len()
    }
}

/// Matches the plan against every step of the run; `step` and `last_n` are counted in it.
///
/// # Errors
/// [`Unresolvable`] when a `step` or `last_n` names no call of the run.
pub fn against(plan: &Plan, run: &Trajectory) -> Result<Vec<Matched>, Unresolvable> {
    let plan = resolve(plan, &called(run))?;
    let requests = requests(&run.steps);
    let facts = mode::of_run(&run.steps, &[]);
    let matched = (0..).zip(&plan.injections).map(|(index, injection)| {
        let mut delivered: HashMap<(&str, u32), u32> = HashMap::new();
        let (mut steps, mut missed) = (Vec::new(), Vec::new());
        for (step, conversation) in run.steps.iter().zip(&requests) {
            let who = (step.attribution.agent.as_str(), step.attribution.instance);
            let count = delivered.get(&who).copied().unwrap_or_default();
            let facts = Facts {
                run: run.run.as_str(),
                agent: who.0,
                instance: who.1,
                call: step.call,
                step: step.step,
                conversation: conversation.as_ref(),
                delivered: &|_| count,
                ambiguous: step.attribution.ambiguous,
            };
            match meets(injection, index, &facts) {
                Ok(()) => {
                    *delivered.entry(who).or_default() += 1;
                    steps.push(step.step);
                }
                Err(miss) => missed.push((miss, step)),
            }
        }
        let nearest = missed.into_iter().max_by_key(|(miss, step)| (*miss, std::cmp::Reverse(step.step)));
        let miss = nearest.filter(|_| steps.is_empty()).map(|(miss, _)| miss);
        let nearest_miss = steps.is_empty().then(|| miss_in_words(injection, nearest, run));
        let impossible = impossible(injection, &steps, &facts);
        Matched { injection: index, steps, nearest_miss, miss, impossible }
    });
    Ok(matched.collect())
}

/// The steps among these at which the mode of an edit cannot be.
fn impossible(injection: &Injection, steps: &[StepIndex], facts: &CallFacts) -> Vec<ImpossibleStep> {
    let (Some(mode), Operator::Manipulator { side, .. }) = (injection.failure_mode, &injection.operator) else {
        return Vec::new();
    };
    if injection.is_neutral() {
        return Vec::new();
    }
    let at = |step: &StepIndex| Some(ImpossibleStep { step: *step, mode, unmet: facts.unmet(*step, mode, *side)? });
    steps.iter().filter_map(at).collect()
}

/// The calls of a recorded run, as [`resolve`] wants them.
fn called(run: &Trajectory) -> Vec<RecordedCall> {
    let called = |step: &Step| RecordedCall {
        agent: step.attribution.agent.as_str().to_owned(),
        instance: step.attribution.instance,
        call: step.call,
        step: step.step,
    };
    run.steps.iter().map(called).collect()
}

/// The requests of a run as its plan saw them.
pub(super) fn requests(steps: &[Step]) -> Vec<Option<Conversation>> {
    let mut served = Served::default();
    let mut read = |step: &Step| {
        let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default())?;
        let mut asked = door::request_at(surface, &step.path, &step.request).ok();
        if let Some(asked) = &mut asked {
            served.name_results(asked);
        }
        if let Some(last) = step.last_attempt() {
            let body = last.delivered();
            let reply = door::reply(surface, body, last.streamed);
            if let Ok(reply) = reply {
                served.learn(&reply);
            }
        }
        asked
    };
    steps.iter().map(&mut read).collect()
}

fn miss_in_words(injection: &Injection, nearest_miss: Option<(MissedCondition, &Step)>, run: &Trajectory) -> String {
    let Some((miss, step)) = nearest_miss else { return "the run has no step".to_owned() };
    let agent = step.attribution.agent.as_str();
    let when = &injection.when;
    let at = format!("step {} (call {} of `{agent}`)", step.step, step.call);
    match miss {
        MissedCondition::Agent => {
            let mut seen: Vec<&str> = run.steps.iter().map(|step| step.attribution.agent.as_str()).collect();
            seen.sort_unstable();
            seen.dedup();
            let wanted = injection.agents.0.first().map(ToString::to_string).unwrap_or_default();
            let meant = nearest(&wanted, seen.iter().copied()).map(|near| format!(", did you mean `{near}`?"));
            format!("no agent is called {}: seen {}{}", injection.agents, seen.join(", "), meant.unwrap_or_default())
        }
        MissedCondition::Instance => {
            let called = run.steps.iter().filter(|step| injection.agents.matches(step.attribution.agent.as_str()));
            let last = called.map(|step| step.attribution.instance).max().unwrap_or_default();
            let wanted = injection.instance.unwrap_or_default();
            format!(
                "nearest {at}: no call is of instance {wanted}; instances of {} went up to {last}",
                injection.agents
            )
        }
        MissedCondition::Unresolved => format!("`{}` needs a recorded run", when.counted_by()),
        MissedCondition::Undecided => format!("nearest {at}: whether that is a call of its own cannot be told"),
        MissedCondition::Call => {
            let aimed = |step: &&Step| injection.aims_at(step.attribution.agent.as_str(), step.attribution.instance);
            let calls = run.steps.iter().filter(aimed);
            let last = calls.map(|step| step.call).max().unwrap_or_default();
            format!("nearest {at}: its call is not one that `when` names; calls went up to {last}")
        }
        MissedCondition::Target => format!("nearest {at}: `{}` names other calls", when.counted_by()),
        MissedCondition::Unreadable => format!("nearest {at}: its request could not be read"),
        MissedCondition::Tool => {
            format!("nearest {at}: it brings no result of `{}`", when.tool.as_deref().unwrap_or_default())
        }
        MissedCondition::Content => {
            let pattern = when.contains.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("nearest {at}: no message matches `{pattern}`")
        }
        MissedCondition::Spent | MissedCondition::Chance => format!("nearest {at}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;
    use crate::trajectory::{AgentName, Attribution, Outcome, RunId, Source};

    fn step(number: StepIndex, agent: &str, call: u32) -> Step {
        let agent = AgentName::parse(agent).expect("a name");
        Step {
            step: number,
            call,
            turn: number,
            attribution: Attribution {
                agent,
                instance: 0,
                source: Source::Path,
                evidence: String::new(),
                confidence: 1.0,
                ambiguous: false,
            },
            surface: "opaque".to_owned(),
            method: "POST".to_owned(),
            path: "/other".to_owned(),
            request: bytes::Bytes::new(),
            request_sent: None,
            attempts: Vec::new(),
            injected: Vec::new(),
            overlapping: false,
            unplaced: crate::trajectory::StepUnplaced::default(),
        }
    }

    fn check(agent: &str, when: &str, steps: &[StepIndex], miss: &str) {
        let run = Trajectory {
            run: RunId::parse("r").expect("an id"),
            seed: None,
            outcome: Outcome::default(),
            steps: vec![step(0, "planner", 0), step(1, "solver", 0), step(2, "solver", 1)],
        };
        let text = format!("[[injection]]\nagent = \"{agent}\"\nwhen = {{ {when} }}\nfault.latency.ms = 5");
        let matched = against(&parse(&text, "p").expect("reads"), &run).expect("resolves");
        let only = matched.first().expect("one injection");
        assert_eq!(only.steps, steps, "{agent} {when}");
        assert!(only.nearest_miss.clone().unwrap_or_default().contains(miss), "{:?}", only.nearest_miss);
        assert_eq!(only.nearest_miss.is_some(), steps.is_empty());
    }

    #[test]
    fn names_the_steps_or_what_came_nearest() {
        check("solver", "always = true", &[1, 2], "");
        check("solver", "max_times = 1", &[1], "");
        check("solver", "last_n = 1", &[2], "");
        check("*", "step = [0, 2]", &[0, 2], "");
        check("solver", "probability = 0.01", &[1, 2], "");
        check("solvr", "call = 0", &[], "seen planner, solver, did you mean `solver`?");
        check("solver", "call = 5", &[], "nearest step 1 (call 0 of `solver`): its call is not one");
        check("solver", "call = 5", &[], "calls went up to 1");
        check(
            "solver",
            "call = 1, contains = \"x\"",
            &[],
            "nearest step 2 (call 1 of `solver`): its request could not be read",
        );
    }
}
