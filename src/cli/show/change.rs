//! What injections changed: blocks that differ, line by line, and inside a line word by word.

use std::io::{self, Write};

use crate::{
    cli::escape,
    trajectory::Step,
    viewer::{ChangePair, changes, marked, side_by_side, word, words},
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
            write_blocks(&side_by_side(&one.before, &one.after), out)?;
            writeln!(out)?;
        }
    }
    Ok(changed)
}

/// Blocks that are equal on both sides are only counted.
fn write_blocks(pairs: &[ChangePair], out: &mut dyn Write) -> io::Result<()> {
    for pair in pairs {
        match pair {
            ChangePair::Equal(count) => writeln!(out, "   ({count} unchanged)")?,
            ChangePair::Edited(old, new) => {
                let (was, is) = (&old.who, &new.who);
                let who = if was == is { is.clone() } else { format!("[-{was}-]{{+{is}+}}") };
                writeln!(out, "-- {}\n{}", escape(&who), escape(&words(&old.text, &new.text)))?;
            }
            ChangePair::Gone(old) => {
                writeln!(out, "-- [-{}-]\n{}", escape(&old.who), escape(&marked(&old.text, "- ")))?;
            }
            ChangePair::Came(new) => {
                writeln!(out, "-- {{+{}+}}\n{}", escape(&new.who), escape(&marked(&new.text, "+ ")))?;
            }
        }
    }
    Ok(())
}
