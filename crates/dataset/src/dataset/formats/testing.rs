//! Samples for the tests of formats.

use serde_json::{Value, json};

use crate::{
    dataset::Sample,
    trajectory::{EffectExcluded, ErrorLists, Executed, Necessity, Need},
};

/// A failure of so many steps; the solver erred at step 1.
pub(super) fn failure(id: &str, steps: usize) -> Sample {
    let agents = ["planner", "solver", "critic"];
    let steps: Vec<Value> = (0..steps)
        .map(|step| {
            let agent = agents[step % agents.len()];
            json!({"step": step, "call": step / agents.len(), "turn": step, "agent": agent, "model": "sim",
                "input": {"messages": [{"role": "system", "text": format!("you are the {agent}")},
                    {"role": "user", "text": format!("go {step}")}]},
                "output": {"role": "assistant", "text": format!("{agent} says {step}")}})
        })
        .collect();
    let sample = json!({
        "format": 1, "id": format!("RUN-{id}"), "kind": "failure", "system": "pipeline", "backend": "simulator",
        "task": {"id": format!("task-{id}"), "question": "what is 2 + 2", "answer": "4"}, "split": "train",
        "outcome": "failure", "final_answer": "5", "steps": steps,
        "label": {"status": "verified", "definition": "injected", "seed": 7, "outcome": "failure", "errors": [{
            "agent": "solver", "step": 1, "call": 0, "side": "response", "operator": "corrupt_number", "injection": 0,
            "failure_mode": {"code": "FM-2.6", "name": "reasoning-action mismatch", "taxonomy": "MAST-2503.13657v2"},
            "mode_claim": {"state": "applicable"}}],
            "evidence": {"clean": {"passed": 2, "of": 2}, "executed": {"perturbed": true, "null": {"passed": 6, "failed": 0},
                "treated": {"passed": 0, "failed": 6}, "pairs": 6, "e": 1792.0, "target": 1000.0}}},
        "clean_twin": format!("CLEAN-{id}"),
    });
    serde_json::from_value(sample).expect("a sample")
}

/// A failure of two planted errors, of which this is shown: at step 0 the planner's, at step 1 the solver's.
pub(super) fn planted_twice(id: &str, states: [Need; 2]) -> Sample {
    let mut sample = failure(id, 4);
    let truth = sample.label.as_mut().expect("labelled");
    let second = truth.errors.remove(0);
    let mut earlier = second.clone();
    earlier.agent = crate::trajectory::AgentName::parse("planner").expect("a name");
    (earlier.step, earlier.injection) = (Some(0), Some(1));
    let evidence = truth.evidence.as_mut().expect("evidence");
    let executed = evidence.executed.clone().expect("executed");
    let planted = [earlier, second];
    for (error, state) in planted.iter().zip(states) {
        let (injection, agent) = (error.injection.unwrap_or_default(), error.agent.clone());
        let executed = Executed { e: executed.e.filter(|_| state != Need::NotShown).or(Some(3.0)), ..executed.clone() };
        let exclusion = Some(EffectExcluded { effect: 0.25, e: 43.0, target: 40.0 });
        evidence.necessity.push(Necessity { injection, agent, instance: 0, state, executed, exclusion });
    }
    *evidence = evidence.clone().with_joint_cause();
    let lists = evidence.sorted(planted.into_iter(), |one, error| Some(one.injection) == error.injection);
    ErrorLists { errors: truth.errors, others: truth.others, not_shown: truth.not_shown } = lists;
    sample
}

/// A failure that two planted errors made together: each contributes, and neither is shown to be necessary.
pub(super) fn planted_jointly(id: &str) -> Sample {
    let mut sample = planted_twice(id, [Need::NotShown; 2]);
    let truth = sample.label.as_mut().expect("labelled");
    let evidence = truth.evidence.as_mut().expect("evidence");
    evidence.necessity.iter_mut().for_each(|one| one.executed.e = Some(50.0));
    evidence.joint = true;
    truth.errors = std::mem::take(&mut truth.not_shown);
    sample
}

/// Its clean twin: the same but for what the solver said.
pub(super) fn clean(id: &str, steps: usize) -> Sample {
    let mut sample = failure(id, steps);
    sample.id = format!("CLEAN-{id}");
    sample.kind = crate::dataset::SampleKind::Clean;
    sample.outcome = crate::trajectory::Verdict::Success;
    sample.label = None;
    sample.clean_twin = None;
    sample.final_answer = "4".into();
    for step in sample.steps.iter_mut().filter(|step| step.step >= 1) {
        if let Some(output) = &mut step.output {
            output.text.push_str(", rightly");
        }
    }
    sample
}
