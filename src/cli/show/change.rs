//! What injections changed: blocks that differ, line by line, and inside a line word by word.

use std::io::{self, Write};

use similar::{Algorithm, ChangeTag, DiffOp, TextDiff, utils::TextDiffRemapper};

use super::view::View;
use crate::{cli::escape, trajectory::Step};

/// Texts that have less than this in common are shown one below the other, not word by word.
const ALIKE: f32 = 0.4;

/// One side of a step that was changed: (side, blocks before, blocks after).
pub(super) type ChangedSide = (&'static str, Vec<(String, String)>, Vec<(String, String)>);

/// The changed sides of a step.
pub(super) fn of(step: &Step) -> Vec<ChangedSide> {
    let view = View::of(step);
    let mut changes: Vec<ChangedSide> = Vec::new();
    if let Some(sent) = &step.request_sent {
        changes.push(("request", view.request(&step.request), view.request(sent)));
    }
    for attempt in &step.attempts {
        if let Some(delivered) = &attempt.reply_delivered {
            let read = |body| view.reply(body, attempt.streamed);
            changes.push(("response", read(&attempt.reply), read(delivered)));
        }
    }
    changes
}

/// Writes all changes and returns how many sides were changed.
pub(super) fn write_all(steps: &[&Step], out: &mut dyn Write) -> io::Result<usize> {
    let mut changed = 0;
    for step in steps {
        for (side, before, after) in of(step) {
            changed += 1;
            let planted = step.injected.iter().filter(|error| super::data::word(&error.side) == side).map(|error| {
                let mode = error.failure_mode.map(|mode| format!(" {} {}", mode.code(), mode.name()));
                format!("{}{}", error.operator, mode.unwrap_or_default())
            });
            let planted = planted.collect::<Vec<_>>().join(", ");
            let agent = escape(step.attribution.agent.as_str());
            writeln!(out, "== step {}  {agent} call {}  {side}  {}", step.step, step.call, escape(&planted))?;
            write_blocks(&before, &after, out)?;
            writeln!(out)?;
        }
    }
    Ok(changed)
}

/// Blocks that are equal on both sides are only counted.
fn write_blocks(before: &[(String, String)], after: &[(String, String)], out: &mut dyn Write) -> io::Result<()> {
    let mut same = 0;
    let equal = |out: &mut dyn Write, same: &mut usize| match std::mem::take(same) {
        0 => Ok(()),
        count => writeln!(out, "   ({count} unchanged)"),
    };
    for op in similar::capture_diff_slices(Algorithm::Myers, before, after) {
        let old = before.get(op.old_range()).unwrap_or_default();
        let new = after.get(op.new_range()).unwrap_or_default();
        if let DiffOp::Equal { len, .. } = op {
            same += len;
            continue;
        }
        equal(out, &mut same)?;
        let pairs = old.len().min(new.len());
        for ((who, old), (now, new)) in old.iter().zip(new) {
            let who = if who == now { who.clone() } else { format!("[-{who}-]{{+{now}+}}") };
            writeln!(out, "-- {}\n{}", escape(&who), escape(&words(old, new)))?;
        }
        for (who, text) in old.iter().skip(pairs) {
            writeln!(out, "-- [-{}-]\n{}", escape(who), escape(&marked(text, "- ")))?;
        }
        for (who, text) in new.iter().skip(pairs) {
            writeln!(out, "-- {{+{}+}}\n{}", escape(who), escape(&marked(text, "+ ")))?;
        }
    }
    equal(out, &mut same)
}

/// Both texts in one: `[-taken out-]` and `{+put in+}`.
pub(in crate::cli) fn words(before: &str, after: &str) -> String {
    let difference = TextDiff::configure().algorithm(Algorithm::Patience).diff_words(before, after);
    if difference.ratio() < ALIKE {
        return format!("{}\n{}", marked(before, "- "), marked(after, "+ "));
    }
    let remapper = TextDiffRemapper::from_text_diff(&difference, before, after);
    let mut text = String::with_capacity(before.len() + after.len());
    for (tag, piece) in difference.ops().iter().flat_map(|op| remapper.iter_slices(op)) {
        match tag {
            ChangeTag::Equal => text.push_str(piece),
            ChangeTag::Delete => text.extend(["[-", piece, "-]"]),
            ChangeTag::Insert => text.extend(["{+", piece, "+}"]),
        }
    }
    text
}

/// The text with a mark before each line.
fn marked(text: &str, mark: &str) -> String {
    text.lines().map(|line| format!("{mark}{line}")).collect::<Vec<_>>().join("\n")
}
