//! AgenTracer's reward (arXiv 2509.03312, §3.3): nothing without the answer format, then half for the agent and half
//! for how near the step is. The kernel is the standard Gaussian one; the authors published no code to compare with.

use serde_json::Value;

use super::matched::{Shares, matched, near};
use crate::score::{gold::Culprit, names::agent_key, prediction::PredictedAnswer, read};

/// The weights of [`gated`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gated {
    /// λ: the share of the step, 0 to 1; the agent has the rest.
    pub step_weight: f64,
    /// σ of the kernel, in steps.
    pub sigma: f64,
}

impl Default for Gated {
    /// The paper's: λ = 0.5, σ = 1.
    fn default() -> Self {
        Self { step_weight: 0.5, sigma: 1.0 }
    }
}

/// Rewards a completion, 0 to 1. The format gate wants reasoning closed by `</think>` and then, once and last, an
/// `<answer>AGENT|STEP</answer>` with a whole step number, 0-based. Of several true culprits the best match counts.
pub fn gated(completion: &str, truth: &[Culprit], weights: Gated) -> f64 {
    let Some((agent, step)) = formatted(completion) else { return 0.0 };
    let reward = |culprit: &Culprit| {
        let agent_hit = culprit.agent.as_deref().is_some_and(|name| agent_key(name) == agent);
        let near = culprit.step.map_or(0.0, |gold| near(step, gold, weights.sigma));
        weights.step_weight * near + (1.0 - weights.step_weight) * if agent_hit { 1.0 } else { 0.0 }
    };
    truth.iter().map(reward).fold(0.0, f64::max)
}

/// The same for prompts that ask for JSON and for a set: the gate is then that the completion, reasoning closed by
/// `</think>` aside, is one object with `faulty_agents` and nothing else. Guesses are held to true culprits one to one, over
/// the larger of the two sets; nobody where nobody erred is worth 1. What is in the paper's form is rewarded as the paper does.
pub fn gated_set(completion: &str, truth: &[Culprit], weights: Gated) -> f64 {
    let said = completion.rsplit_once("</think>").map_or(completion, |(_, after)| after).trim();
    let whole = serde_json::from_str::<Value>(said).ok();
    let asked = whole
        .as_ref()
        .and_then(Value::as_object)
        .is_some_and(|fields| fields.len() == 1 && fields.get("faulty_agents").is_some_and(Value::is_array));
    if !asked {
        return gated(completion, truth, weights);
    }
    let shares =
        Shares { agent: 1.0 - weights.step_weight, step: weights.step_weight, mode: 0.0, sigma: weights.sigma };
    match read::answer(said) {
        PredictedAnswer::Unparsed(_) => 0.0,
        answer => matched(answer.claimed(), truth, shares),
    }
}

/// Agent and step of a completion in the demanded format.
fn formatted(completion: &str) -> Option<(String, i64)> {
    let (_, after) = completion.rsplit_once("</think>")?;
    let after = after.trim();
    let inner = after.strip_prefix("<answer>")?.strip_suffix("</answer>")?;
    if inner.contains('<') {
        return None;
    }
    let (agent, step) = inner.rsplit_once('|')?;
    let agent = agent_key(agent);
    (!agent.is_empty()).then_some((agent, step.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth() -> Vec<Culprit> {
        vec![Culprit { agent: Some("Solver".into()), step: Some(4), mode: None }]
    }

    #[test]
    fn the_published_points_of_the_kernel() {
        for (answer, expected) in [
            ("Solver|4", 1.0),
            ("Solver|5", 0.803_265_329_856_316_7),
            ("Solver|2", 0.567_667_641_618_306_3),
            ("Solver|7", 0.505_554_498_269_121_2),
            ("Critic|4", 0.5),
            ("solver|4", 1.0),
            ("Solver|-1", 0.5),
        ] {
            let completion = format!("<think>because</think>\n<answer>{answer}</answer>");
            let reward = gated(&completion, &truth(), Gated::default());
            assert!((reward - expected).abs() < 1e-15, "{answer}: {reward}");
        }
    }

    #[test]
    fn without_the_format_there_is_nothing() {
        for completion in [
            "Solver|4",
            "<answer>Solver|4</answer>",
            "<think>x</think>Solver|4",
            "<think>x</think><answer>Solver</answer>",
            "<think>x</think><answer>Solver|four</answer>",
            "<think>x</think><answer>|4</answer>",
            "<think>x</think><answer>A|1</answer><answer>Solver|4</answer>",
            "<think>x</think><answer>Solver|4</answer> or so",
            "",
        ] {
            assert!(gated(completion, &truth(), Gated::default()).abs() < 1e-15, "{completion}");
        }
    }

    #[test]
    fn weights_shift_between_agent_and_step_and_widen_the_kernel() {
        let completion = "<think></think><answer>Critic|6</answer>";
        for (step_weight, sigma, expected) in [
            (1.0, 1.0, (-2.0_f64).exp()),
            (1.0, 2.0, (-0.5_f64).exp()),
            (0.25, 2.0, 0.25 * (-0.5_f64).exp()),
            (0.0, 1.0, 0.0),
        ] {
            let reward = gated(completion, &truth(), Gated { step_weight, sigma });
            assert!((reward - expected).abs() < 1e-15, "{step_weight} {sigma}: {reward}");
        }
    }

    #[test]
    fn prompts_that_ask_for_json_have_that_as_their_gate() {
        let one = r#"{"faulty_agents":[{"agent_name":"Solver","step":4,"error_type":"FM-2.6"}]}"#;
        for (completion, expected) in [
            (one.to_owned(), 1.0),
            (format!("<think>because</think>\n{one}"), 1.0),
            (one.replace('4', "5"), 0.803_265_329_856_316_7),
            ("<think>x</think><answer>Solver|4</answer>".to_owned(), 1.0),
            (format!("It is {one}"), 0.0),
            (r#"{"faulty_agents":[]}"#.to_owned(), 0.0),
            (r#"{"faulty_agents":["Solver"]}"#.to_owned(), 0.0),
            (one.replace("]}", r#",{"agent_name":"Critic","step":9}]}"#), 0.5),
        ] {
            let reward = gated_set(&completion, &truth(), Gated::default());
            assert!((reward - expected).abs() < 1e-12, "{completion}: {reward}");
        }
        assert!((gated_set(r#"{"faulty_agents":[]}"#, &[], Gated::default()) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_far_step_keeps_the_agents_half() {
        let completion = "<think></think><answer>Solver|9223372036854775807</answer>";
        assert!((gated(completion, &truth(), Gated::default()) - 0.5).abs() < 1e-15);
    }
}
