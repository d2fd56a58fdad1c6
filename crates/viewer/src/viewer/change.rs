//! What injections changed in a step, block by block, and inside a block word by word.

use serde::Serialize;
use similar::{Algorithm, ChangeTag, DiffOp, TextDiff, utils::TextDiffRemapper};

use super::step_view::{StepView, TextBlock};
use crate::trajectory::Step;

/// Texts that have less than this in common are shown one below the other, not word by word.
const ALIKE: f32 = 0.4;

/// One side of a step that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ShownChange {
    /// `request` or `response`.
    pub side: &'static str,
    /// What came.
    pub before: Vec<TextBlock>,
    /// What went on.
    pub after: Vec<TextBlock>,
}

/// Whether a piece of text stayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It stands in both texts.
    Same,
    /// It stood in the first.
    Old,
    /// It stands in the second.
    New,
}

/// Two texts in one, piece by piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Pieces {
    /// The texts are alike: what stayed, what went, what came.
    Mixed(Vec<(ChangeKind, String)>),
    /// They are not.
    Apart {
        /// The first.
        old: String,
        /// The second.
        new: String,
    },
}

/// Blocks side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangePair {
    /// This many blocks are equal.
    Equal(usize),
    /// A block and what became of it.
    Edited(TextBlock, TextBlock),
    /// A block that went.
    Gone(TextBlock),
    /// A block that came.
    CaseResult(TextBlock),
}

/// The changed sides of a step.
pub fn changes(step: &Step) -> Vec<ShownChange> {
    let told = StepView::new(step);
    let mut changes: Vec<ShownChange> = Vec::new();
    if let Some(sent) = &step.request_sent {
        let (mut before, mut after) = (told.request(&step.request), told.request(sent));
        if before == after {
            // Not what is said was changed, but a parameter or a tool.
            before.extend(other_members(&step.request, sent));
            after.extend(other_members(sent, &step.request));
        }
        changes.push(ShownChange { side: "request", before, after });
    }
    for attempt in &step.attempts {
        if let Some(delivered) = &attempt.reply_delivered {
            let read = |body| told.reply(body, attempt.streamed);
            changes.push(ShownChange { side: "response", before: read(&attempt.reply), after: read(delivered) });
        }
    }
    changes
}

/// The members of a body that are not so in another one, a block each.
fn other_members(body: &[u8], other: &[u8]) -> Vec<TextBlock> {
    let read = |body| serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(body).unwrap_or_default();
    let other = read(other);
    let members = read(body).into_iter().filter(|(name, value)| other.get(name) != Some(value));
    members.map(|(name, value)| TextBlock { who: name, text: value.to_string() }).collect()
}

/// Blocks of two sides in one row; those that are equal on both are only counted.
pub fn side_by_side(before: &[TextBlock], after: &[TextBlock]) -> Vec<ChangePair> {
    let mut pairs = Vec::new();
    for op in similar::capture_diff_slices(Algorithm::Myers, before, after) {
        if let DiffOp::Equal { len, .. } = op {
            match pairs.last_mut() {
                Some(ChangePair::Equal(count)) => *count += len,
                _ => pairs.push(ChangePair::Equal(len)),
            }
            continue;
        }
        let old = before.get(op.old_range()).unwrap_or_default();
        let new = after.get(op.new_range()).unwrap_or_default();
        let both = old.len().min(new.len());
        pairs.extend(old.iter().zip(new).map(|(old, new)| ChangePair::Edited(old.clone(), new.clone())));
        pairs.extend(old.iter().skip(both).map(|old| ChangePair::Gone(old.clone())));
        pairs.extend(new.iter().skip(both).map(|new| ChangePair::CaseResult(new.clone())));
    }
    pairs
}

/// Two texts, word by word.
pub fn pieces(before: &str, after: &str) -> Pieces {
    let difference = TextDiff::configure().algorithm(Algorithm::Patience).diff_words(before, after);
    if difference.ratio() < ALIKE {
        return Pieces::Apart { old: before.to_owned(), new: after.to_owned() };
    }
    let remapper = TextDiffRemapper::from_text_diff(&difference, before, after);
    let mut pieces: Vec<(ChangeKind, String)> = Vec::new();
    for (tag, piece) in difference.ops().iter().flat_map(|op| remapper.iter_slices(op)) {
        let kept = match tag {
            ChangeTag::Equal => ChangeKind::Same,
            ChangeTag::Delete => ChangeKind::Old,
            ChangeTag::Insert => ChangeKind::New,
        };
        match pieces.last_mut() {
            Some((last, text)) if *last == kept => text.push_str(piece),
            _ => pieces.push((kept, piece.to_owned())),
        }
    }
    Pieces::Mixed(pieces)
}

/// Both texts in one: `[-taken out-]` and `{+put in+}`.
pub fn words(before: &str, after: &str) -> String {
    match pieces(before, after) {
        Pieces::Apart { old, new } => format!("{}\n{}", marked(&old, "- "), marked(&new, "+ ")),
        Pieces::Mixed(pieces) => pieces.iter().fold(String::new(), |mut text, (kept, piece)| {
            match kept {
                ChangeKind::Same => text.push_str(piece),
                ChangeKind::Old => text.extend(["[-", piece, "-]"]),
                ChangeKind::New => text.extend(["{+", piece, "+}"]),
            }
            text
        }),
    }
}

/// Changed blocks as one text, word by word; those that are equal on both sides are only counted.
pub fn pairs_text(pairs: &[ChangePair]) -> String {
    let texts = pairs.iter().map(|pair| match pair {
        ChangePair::Equal(count) => format!("   ({count} unchanged)\n"),
        ChangePair::Edited(old, new) => {
            let (was, is) = (&old.who, &new.who);
            let who = if was == is { is.clone() } else { format!("[-{was}-]{{+{is}+}}") };
            format!("-- {who}\n{}\n", words(&old.text, &new.text))
        }
        ChangePair::Gone(old) => format!("-- [-{}-]\n{}\n", old.who, marked(&old.text, "- ")),
        ChangePair::CaseResult(new) => format!("-- {{+{}+}}\n{}\n", new.who, marked(&new.text, "+ ")),
    });
    texts.collect()
}

/// The text with a mark before each line.
fn marked(text: &str, mark: &str) -> String {
    text.lines().map(|line| format!("{mark}{line}")).collect::<Vec<_>>().join("\n")
}
