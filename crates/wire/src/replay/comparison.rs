//! Two recorded runs side by side: calls paired by agent, the first divergence, and where its words went.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use similar::{Algorithm, DiffOp};

use super::{
    Rules,
    quoted::QuotedWords,
    reading::{NamedBlock, StepReading},
};
use crate::trajectory::{AgentName, Call, Step, StepIndex, Trajectory};

/// Pairs of calls of one agent that are looked at; beyond it calls are paired by their numbers.
const PAIRS_MAX: usize = 1 << 20;

/// Two runs, compared.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Pairs in the order of the steps.
    pub pairs: Vec<Pair>,
    /// Index of the first pair that differs.
    pub first: Option<usize>,
    /// Steps of the second run, after the first divergence, whose request quotes what is new in it.
    pub spread: Vec<StepIndex>,
}

/// A call in both runs, or in one of them only.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Pair {
    /// The agent.
    pub agent: AgentName,
    /// Its instance.
    pub instance: u32,
    /// Its call in the first run.
    pub a: Option<CallPlace>,
    /// Its call in the second run.
    pub b: Option<CallPlace>,
    /// What differs.
    pub change: CallChange,
    /// Blocks that differ, with both texts.
    pub blocks: Vec<Changed>,
    /// Blocks in which the requests differ as the upstream got them, where an injection edited one of them.
    pub sent: Vec<Changed>,
}

/// Where a call stands in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CallPlace {
    /// Step of the run.
    pub step: StepIndex,
    /// Call of the agent.
    pub call: Call,
}

/// What differs between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallChange {
    /// Nothing.
    Same,
    /// The request, and the reply is the same.
    Request,
    /// The reply to the same request.
    Reply,
    /// Request and reply.
    Both,
    /// The call is in the first run only.
    OnlyA,
    /// The call is in the second run only.
    OnlyB,
}

/// A block that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Changed {
    /// For example `request messages[2] user` or `reply (stop)`.
    pub place: String,
    /// Its text in the first run; empty if it has none.
    pub a: String,
    /// Its text in the second run; empty if it has none.
    pub b: String,
}

/// One side of a pair.
type ComparedStep<'a> = (&'a Step, StepReading);

impl Comparison {
    /// Compares two runs. Volatile parts that the rules name are no difference.
    pub fn compare(a: &Trajectory, b: &Trajectory, rules: &Rules) -> Self {
        let told = |run: &'_ Trajectory| -> Vec<(usize, StepReading)> {
            run.steps.iter().map(|step| StepReading::read(step, rules)).enumerate().collect()
        };
        let (read_a, read_b) = (told(a), told(b));
        let (told_a, told_b) = (lanes(a, read_a), lanes(b, read_b));
        let agents: BTreeSet<_> = told_a.keys().chain(told_b.keys()).collect();
        let mut pairs = Vec::new();
        for key in agents {
            let none = Vec::new();
            let (left, right) = (told_a.get(key).unwrap_or(&none), told_b.get(key).unwrap_or(&none));
            pairs.extend(aligned(left, right).into_iter().map(|(a, b)| Pair::compare(key.1, a, b)));
        }
        pairs.sort_by_key(|pair| {
            let step = |place: Option<CallPlace>| place.map(|place| place.step);
            (step(pair.a).or(step(pair.b)), pair.a.is_none())
        });
        let first = pairs.iter().position(Pair::differs);
        let spread = first.and_then(|first| pairs.get(first)).map(|pair| spread(pair, &told_b)).unwrap_or_default();
        Self { pairs, first, spread }
    }

    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.first.is_none()
    }

    /// The call of the other run that stands for a step of the first.
    pub fn twin_of(&self, step: StepIndex) -> Option<CallPlace> {
        self.pairs.iter().find(|pair| pair.a.is_some_and(|place| place.step == step))?.b
    }
}

type Lanes<'a> = BTreeMap<(String, u32), Vec<ComparedStep<'a>>>;

/// The steps of each agent instance, in order.
fn lanes(run: &Trajectory, readings: Vec<(usize, StepReading)>) -> Lanes<'_> {
    let mut lanes: Lanes<'_> = BTreeMap::new();
    for (step, (_, reading)) in run.steps.iter().zip(readings) {
        let key = (step.attribution.agent.to_string(), step.attribution.instance);
        lanes.entry(key).or_default().push((step, reading));
    }
    lanes
}

/// Pairs the calls of one agent so that most of their text is alike (Needleman and Wunsch, 1970).
fn aligned<'a, 'b>(
    left: &'b [ComparedStep<'a>],
    right: &'b [ComparedStep<'a>],
) -> Vec<(Option<&'b ComparedStep<'a>>, Option<&'b ComparedStep<'a>>)> {
    let rows = left.len();
    let columns = right.len();
    if (rows + 1) * (columns + 1) > PAIRS_MAX {
        return (0..rows.max(columns)).map(|index| (left.get(index), right.get(index))).collect();
    }
    let width = columns + 1;
    let mut best = vec![0_u32; (rows + 1) * width];
    let at = |best: &[u32], row: usize, column: usize| best.get(row * width + column).copied().unwrap_or_default();
    for (row, a) in left.iter().enumerate().rev() {
        for (column, b) in right.iter().enumerate().rev() {
            let paired = at(&best, row + 1, column + 1) + likeness(&a.1, &b.1);
            let value = paired.max(at(&best, row + 1, column)).max(at(&best, row, column + 1));
            if let Some(cell) = best.get_mut(row * width + column) {
                *cell = value;
            }
        }
    }
    let (mut row, mut column, mut pairs) = (0, 0, Vec::new());
    while row < rows || column < columns {
        match (left.get(row), right.get(column)) {
            (Some(a), Some(b)) if at(&best, row, column) == at(&best, row + 1, column + 1) + likeness(&a.1, &b.1) => {
                pairs.push((Some(a), Some(b)));
                (row, column) = (row + 1, column + 1);
            }
            (Some(a), b) if b.is_none() || at(&best, row, column) == at(&best, row + 1, column) => {
                pairs.push((Some(a), None));
                row += 1;
            }
            (_, b) => {
                pairs.push((None, b));
                column += 1;
            }
        }
    }
    pairs
}

/// How alike two calls are: at least 1, so that a pair is always better than two gaps.
fn likeness(a: &StepReading, b: &StepReading) -> u32 {
    let same = |a: &str, b: &str| {
        if a == b {
            return 100;
        }
        let longer = a.len().max(b.len()).max(1);
        let start = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        let end = a.bytes().rev().zip(b.bytes().rev()).take(a.len().min(b.len()) - start);
        u32::try_from((start + end.take_while(|(a, b)| a == b).count()) * 60 / longer).unwrap_or(60)
    };
    1 + 2 * same(&a.request_key, &b.request_key) + same(&a.answered, &b.answered)
}

impl Pair {
    fn compare(instance: u32, a: Option<&ComparedStep<'_>>, b: Option<&ComparedStep<'_>>) -> Self {
        let place =
            |told: Option<&ComparedStep<'_>>| told.map(|(step, _)| CallPlace { step: step.step, call: step.call });
        let agent = a.or(b).map(|(step, _)| step.attribution.agent.clone());
        let mut sent = Vec::new();
        let (change, blocks) = match (a, b) {
            (Some((_, a)), Some((_, b))) => {
                if a.sent.is_some() || b.sent.is_some() {
                    let [of_a, of_b] = [a, b].map(|read| read.sent.as_ref().unwrap_or(&read.request));
                    changed("request as delivered ", of_a, of_b, &mut sent);
                }
                let change = match (a.request_key == b.request_key, a.answered == b.answered) {
                    (true, true) => CallChange::Same,
                    (false, true) => CallChange::Request,
                    (true, false) => CallChange::Reply,
                    (false, false) => CallChange::Both,
                };
                let mut blocks = Vec::new();
                if a.request_key != b.request_key {
                    changed("request ", &a.request, &b.request, &mut blocks);
                }
                if a.answered != b.answered {
                    changed("", &a.reply, &b.reply, &mut blocks);
                }
                (change, blocks)
            }
            (Some(_), None) => (CallChange::OnlyA, Vec::new()),
            _ => (CallChange::OnlyB, Vec::new()),
        };
        let agent = agent.unwrap_or_else(|| AgentName::unnamed(0));
        Self { agent, instance, a: place(a), b: place(b), change, blocks, sent }
    }

    /// Whether anything differs: what was asked, what was answered, or what the upstream got of the question.
    pub fn differs(&self) -> bool {
        self.change != CallChange::Same || !self.sent.is_empty()
    }
}

/// The blocks that differ, paired.
fn changed(side: &str, a: &[NamedBlock], b: &[NamedBlock], into: &mut Vec<Changed>) {
    let texts = |blocks: &[NamedBlock]| blocks.iter().map(|block| block.text.clone()).collect::<Vec<_>>();
    for op in similar::capture_diff_slices(Algorithm::Myers, &texts(a), &texts(b)) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let old = a.get(op.old_range()).unwrap_or_default();
        let new = b.get(op.new_range()).unwrap_or_default();
        for index in 0..old.len().max(new.len()) {
            let (old, new) = (old.get(index), new.get(index));
            let place = new.or(old).map(|block| block.place.as_str()).unwrap_or_default();
            let text = |block: Option<&NamedBlock>| block.map(|block| block.text.clone()).unwrap_or_default();
            into.push(Changed { place: format!("{side}{place}"), a: text(old), b: text(new) });
        }
    }
}

/// Steps of the second run after a pair whose request quotes words that are new in the pair's second reply.
fn spread(pair: &Pair, told: &Lanes<'_>) -> Vec<StepIndex> {
    let Some(origin) = pair.b else { return Vec::new() };
    let all = told.values().flatten();
    let Some((_, source)) = all.clone().find(|(step, _)| step.step == origin.step) else { return Vec::new() };
    let old = pair.blocks.iter().filter(|block| block.place.starts_with("reply")).map(|block| block.a.as_str());
    let words = QuotedWords::new_in(&source.answered_text(), old);
    let mut steps: Vec<StepIndex> = all
        .filter(|(step, _)| step.step > origin.step)
        .filter(|(_, reading)| words.quoted_in(&reading.request_text()) > 0)
        .map(|(step, _)| step.step)
        .collect();
    steps.sort_unstable();
    steps
}
