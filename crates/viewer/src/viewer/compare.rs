//! Two runs side by side as data, as `diff --format json` prints them.

use serde_json::{Value, json};

use super::change::{pieces, words};
use crate::{
    recording::Recording,
    replay::{Changed, Comparison},
};

/// The comparison of two runs.
pub fn compared(comparison: &Comparison, a: &Recording, b: &Recording) -> Value {
    let told = |blocks: &[Changed]| -> Vec<Value> {
        let told = blocks.iter().map(|block| {
            json!({"place": block.place, "a": block.a, "b": block.b, "words": words(&block.a, &block.b),
                "pieces": pieces(&block.a, &block.b)})
        });
        told.collect()
    };
    let pairs = comparison.pairs.iter().map(|pair| {
        json!({
            "agent": pair.agent, "instance": pair.instance, "a": pair.a, "b": pair.b, "change": pair.change,
            "blocks": told(&pair.blocks), "sent": told(&pair.sent),
        })
    });
    json!({
        "a": {"run": a.manifest.run, "outcome": a.trajectory.outcome.verdict},
        "b": {"run": b.manifest.run, "outcome": b.trajectory.outcome.verdict},
        "same": comparison.is_same(),
        "first_divergence": comparison.first,
        "spread": comparison.spread,
        "pairs": pairs.collect::<Vec<_>>(),
    })
}
