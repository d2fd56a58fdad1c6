//! A step as an entry of Aegis' unified record (arXiv 2509.14295), and as the text that a prompt makes of it.

use serde_json::{Value, json};

use super::{foreign::put_back, render::RenderedStep};
use crate::dataset::SampleStep;

pub(super) fn entry(step: &SampleStep, told: &RenderedStep) -> Value {
    let agent = step.raw_agent.as_deref().unwrap_or(step.agent.as_str());
    let mut entry = json!({"step": step.step + 1, "agent_name": agent, "content": told.both_parts()});
    if let Some(fields) = entry.as_object_mut() {
        put_back(fields, &step.extra);
    }
    entry
}

/// An entry as the text that Aegis' converter to verl rows makes of it; a role or phase that is missing is empty.
pub(super) fn entry_text(step: &SampleStep, told: &RenderedStep) -> String {
    let entry = entry(step, told);
    let text = |name: &str| match entry.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let [step, agent, role, phase, content] = ["step", "agent_name", "agent_role", "phase", "content"].map(text);
    format!("Step {step} - {agent} ({role}) [{phase}]:\n{content}\n\n")
}
