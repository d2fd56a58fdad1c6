//! Triggers that count in a recorded run, turned into calls of agents: `step` and `last_n`.

use super::{Injection, Plan, Target};
use crate::trajectory::{Call, StepIndex};

/// A call of the recorded run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    /// Who called.
    pub agent: String,
    /// Its instance, 0-based.
    pub instance: u32,
    /// Its own call, 0-based.
    pub call: Call,
    /// The run's step, 0-based.
    pub step: StepIndex,
}

/// An injection that names no call of the recorded run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("injection {injection} would never fire: {reason}")]
pub struct Unresolvable {
    /// Its index in the plan, 0-based.
    pub injection: u32,
    /// Why.
    pub reason: String,
}

/// The plan with `step` and `last_n` counted in `reference`, a clean recorded run in any order.
///
/// # Errors
/// [`Unresolvable`] for the first injection that names a step of another agent, or one that the run does not have.
pub fn resolve(plan: &Plan, reference: &[RecordedCall]) -> Result<Plan, Unresolvable> {
    let mut resolved = plan.clone();
    for (index, injection) in (0..).zip(&mut resolved.injections) {
        if injection.when.step.is_some() || injection.when.last_n.is_some() {
            let targets = targets(injection, reference);
            if targets.is_empty() {
                let reason = reason(injection, reference);
                return Err(Unresolvable { injection: index, reason });
            }
            injection.when.targets = Some(targets);
        }
    }
    Ok(resolved)
}

fn targets(injection: &Injection, reference: &[RecordedCall]) -> Vec<Target> {
    let when = &injection.when;
    let is_last = |called: &RecordedCall| {
        when.last_n.is_none_or(|last_n| {
            let same = |other: &&RecordedCall| other.agent == called.agent && other.instance == called.instance;
            let later = reference.iter().filter(same).filter(|other| other.call > called.call).count();
            u32::try_from(later).is_ok_and(|later| later < last_n)
        })
    };
    reference
        .iter()
        .filter(|called| injection.aims_at(&called.agent, called.instance) && when.allows_call(called.call))
        .filter(|called| when.step.as_ref().is_none_or(|steps| steps.contains(&called.step)) && is_last(called))
        .map(|called| Target { agent: called.agent.clone(), instance: called.instance, call: called.call })
        .collect()
}

fn reason(injection: &Injection, reference: &[RecordedCall]) -> String {
    let steps = injection.when.step.as_deref().unwrap_or_default();
    match reference.iter().find(|called| steps.contains(&called.step)) {
        Some(called) if !injection.agents.matches(&called.agent) => {
            format!("step {} is a call of `{}`, not of {}", called.step, called.agent, injection.agents)
        }
        Some(called) if !injection.aims_at(&called.agent, called.instance) => {
            let wanted = injection.instance.unwrap_or_default();
            format!(
                "step {} is a call of instance {} of `{}`, not of {wanted}",
                called.step, called.instance, called.agent
            )
        }
        None if !steps.is_empty() => format!("the recorded run has {} steps", reference.len()),
        _ if !reference.iter().any(|called| injection.agents.matches(&called.agent)) => {
            format!("{} makes no call in the recorded run", injection.agents)
        }
        _ if !reference.iter().any(|called| injection.aims_at(&called.agent, called.instance)) => {
            let wanted = injection.instance.unwrap_or_default();
            format!("{} has no instance {wanted} in the recorded run", injection.agents)
        }
        _ => "its other conditions exclude those calls".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;

    fn called() -> Vec<RecordedCall> {
        let called = |agent: &str, instance, call, step| RecordedCall { agent: agent.to_owned(), instance, call, step };
        vec![
            called("solver", 0, 0, 1),
            called("planner", 0, 0, 0),
            called("solver", 0, 1, 3),
            called("solver", 1, 0, 2),
        ]
    }

    fn check(agent: &str, when: &str, expected: Result<&[(u32, u32)], &str>) {
        let (agent, instance) = agent.split_once('#').unwrap_or((agent, ""));
        let instance = if instance.is_empty() { String::new() } else { format!("instance = {instance}\n") };
        let text = format!(
            "[[injection]]\nagent = \"{agent}\"\n{instance}failure_mode = \"FM-3.1\"\nwhen = {{ {when} }}\nmanipulator.end_early = {{}}"
        );
        let plan = parse(&text, "p").expect("a plan");
        assert!(plan.injections.first().expect("one").when.is_unresolved());
        match (resolve(&plan, &called()), expected) {
            (Ok(resolved), Ok(expected)) => {
                let targets = resolved.injections.first().expect("one").when.targets.clone().unwrap_or_default();
                let calls: Vec<_> = targets.iter().map(|target| (target.instance, target.call)).collect();
                assert_eq!(calls, expected, "{when}");
            }
            (Err(error), Err(reason)) => assert!(error.reason.contains(reason), "{error}"),
            (seen, _) => panic!("{when}: {seen:?}"),
        }
    }

    #[test]
    fn steps_and_last_calls_become_calls() {
        check("solver", "step = 3", Ok(&[(0, 1)]));
        check("solver", "step = [1, 2]", Ok(&[(0, 0), (1, 0)]));
        check("solver", "last_n = 1", Ok(&[(0, 1), (1, 0)]));
        check("solver", "last_n = 9", Ok(&[(0, 0), (0, 1), (1, 0)]));
        check("*", "step = 0", Ok(&[(0, 0)]));
        check("solver", "step = 0", Err("step 0 is a call of `planner`"));
        check("solver", "step = 9", Err("has 4 steps"));
        check("solver#1", "last_n = 1", Ok(&[(1, 0)]));
        check("solver#1", "step = 3", Err("step 3 is a call of instance 0 of `solver`, not of 1"));
        check("solver#7", "last_n = 1", Err("`solver` has no instance 7"));
        check("critic", "last_n = 1", Err("`critic` makes no call"));
        check("solver", "step = 3, call = 0", Err("other conditions"));
    }
}
