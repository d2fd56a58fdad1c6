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
            "failure_mode": {"code": "FM-2.6", "name": "reasoning-action mismatch", "taxonomy": "MAST-2503.13657v2"}}]},
        "clean_twin": format!("CLEAN-{id}"),
    });
    serde_json::from_value(sample).expect("a sample")
}

/// Its clean twin: the same but for what the solver said.
pub(super) fn clean(id: &str, steps: usize) -> Sample {
    let mut sample = failure(id, steps);
    sample.id = format!("CLEAN-{id}");
    sample.kind = crate::dataset::Kind::Clean;
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
