//! Samples for the tests of formats.

use serde_json::{Value, json};

use crate::dataset::Sample;

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
            "failure_mode": {"code": "FM-2.6", "name": "reasoning-action mismatch", "taxonomy": "MAST-2503.13657v2"}}],
            "evidence": {"clean": {"passed": 2, "of": 2}, "executed": {"null": {"passed": 6, "failed": 0},
                "treated": {"passed": 0, "failed": 6}, "pairs": 6, "e": 1792.0, "target": 1000.0}}},
        "clean_twin": format!("CLEAN-{id}"),
    });
    serde_json::from_value(sample).expect("a sample")
}

/// A failure of two planted errors, of which it needs these: at step 0 the planner's, at step 1 the solver's.
pub(super) fn planted_twice(id: &str, needed: [bool; 2]) -> Sample {
    let mut sample = failure(id, 4);
    let truth = sample.label.as_mut().expect("labelled");
    let second = truth.errors.remove(0);
    let mut earlier = second.clone();
    earlier.agent = crate::trajectory::AgentName::parse("planner").expect("a name");
    (earlier.step, earlier.injection) = (Some(0), Some(1));
    let evidence = truth.evidence.as_mut().expect("evidence");
    let executed = evidence.executed.clone().expect("executed");
    evidence.overdetermined = needed == [false; 2];
    for (error, needed) in [(earlier, needed[0]), (second, needed[1])] {
        evidence.necessity.push(crate::trajectory::Necessity {
            injection: error.injection.unwrap_or_default(),
            agent: error.agent.clone(),
            instance: 0,
            necessary: needed,
            executed: executed.clone(),
        });
        if needed || evidence.overdetermined { truth.errors.push(error) } else { truth.others.push(error) }
    }
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
