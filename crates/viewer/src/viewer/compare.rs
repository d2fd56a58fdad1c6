//! Two runs side by side as data, as `diff --format json` prints them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::change::{Pieces, pieces, words};
use crate::{
    recording::Recording,
    replay::{CallChange, CallPlace, Changed, Comparison},
    trajectory::{AgentName, RunId, StepIndex, Verdict},
};

/// Two runs, aligned by agent and call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparedRuns<'a> {
    a: ComparedSide<'a>,
    b: ComparedSide<'a>,
    /// Whether nothing differs.
    same: bool,
    /// Index of the first pair that differs.
    first_divergence: Option<usize>,
    /// Steps of the second run, after the first divergence, whose request quotes what is new in it.
    spread: &'a [StepIndex],
    pairs: Vec<ComparedPair<'a>>,
}

/// One of both runs.
#[derive(Debug, Serialize, JsonSchema)]
struct ComparedSide<'a> {
    run: &'a RunId,
    outcome: Verdict,
}

/// A call in both runs, or in one of them only.
#[derive(Debug, Serialize, JsonSchema)]
struct ComparedPair<'a> {
    agent: &'a AgentName,
    instance: u32,
    a: Option<CallPlace>,
    b: Option<CallPlace>,
    change: CallChange,
    /// Blocks that differ.
    blocks: Vec<ComparedBlock<'a>>,
    /// Blocks in which the requests differ as the upstream got them.
    sent: Vec<ComparedBlock<'a>>,
}

/// A block that differs.
#[derive(Debug, Serialize, JsonSchema)]
struct ComparedBlock<'a> {
    place: &'a str,
    a: &'a str,
    b: &'a str,
    /// Both texts in one: `[-taken out-]` and `{+put in+}`.
    words: String,
    pieces: Pieces,
}

/// The comparison of two runs.
pub fn compared(comparison: &Comparison, a: &Recording, b: &Recording) -> Value {
    serde_json::to_value(compared_runs(comparison, a, b)).unwrap_or_default()
}

fn compared_runs<'a>(comparison: &'a Comparison, a: &'a Recording, b: &'a Recording) -> ComparedRuns<'a> {
    let blocks = |blocks: &'a [Changed]| -> Vec<ComparedBlock<'a>> {
        let compared = blocks.iter().map(|block| ComparedBlock {
            place: &block.place,
            a: &block.a,
            b: &block.b,
            words: words(&block.a, &block.b),
            pieces: pieces(&block.a, &block.b),
        });
        compared.collect()
    };
    let pairs = comparison.pairs.iter().map(|pair| ComparedPair {
        agent: &pair.agent,
        instance: pair.instance,
        a: pair.a,
        b: pair.b,
        change: pair.change,
        blocks: blocks(&pair.blocks),
        sent: blocks(&pair.sent),
    });
    let run = |recording: &'a Recording| ComparedSide {
        run: &recording.manifest.run,
        outcome: recording.trajectory.outcome.verdict,
    };
    ComparedRuns {
        a: run(a),
        b: run(b),
        same: comparison.is_same(),
        first_divergence: comparison.first,
        spread: &comparison.spread,
        pairs: pairs.collect(),
    }
}
