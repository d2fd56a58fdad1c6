//! What injections changed: blocks that differ, line by line, and inside a line word by word.

use std::io::{self, Write};

use crate::{
    cli::escape,
    trajectory::Step,
    viewer::{changes, pairs_text, side_by_side, word},
};

/// Writes all changes and returns how many sides were changed.
pub(super) fn write_all(steps: &[&Step], out: &mut dyn Write) -> io::Result<usize> {
    let mut changed = 0;
    for step in steps {
        for one in changes(step) {
            let side = one.side;
            changed += 1;
            let planted = step.injected.iter().filter(|error| word(&error.side) == side).map(|error| {
                let mode = error.failure_mode.map(|mode| format!(" {} {}", mode.code(), mode.name()));
                format!("{}{}", error.operator, mode.unwrap_or_default())
            });
            let planted = planted.collect::<Vec<_>>().join(", ");
            let agent = escape(step.attribution.agent.as_str());
            writeln!(out, "== step {}  {agent} call {}  {side}  {}", step.step, step.call, escape(&planted))?;
            writeln!(out, "{}", escape(&pairs_text(&side_by_side(&one.before, &one.after))))?;
        }
    }
    Ok(changed)
}
