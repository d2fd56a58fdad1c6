//! The client verdict on the terminal and as a `JUnit` file: what `run` and `show` share.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{
    Failure, escape,
    output::{OutputFile, Replaces, ReportKind},
};
use crate::verdict::{CallVerdict, ClientVerdict, Weight};

/// Says the verdict: a line on the whole, a line a call with what its rules found, a line a fault that never came.
pub(super) fn write(verdict: &ClientVerdict, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "client   {}", verdict.summary())?;
    verdict.calls.iter().try_for_each(|call| write_call(call, out))?;
    for fault in verdict.faults.iter().filter(|fault| fault.delivered == 0) {
        let (agents, operator) = (escape(fault.agents()), escape(fault.operator()));
        let chance = if fault.by_chance() { " (drawn by chance)" } else { "" };
        writeln!(out, "  {agents}  {operator}: inconclusive, never delivered{chance}")?;
    }
    Ok(())
}

/// Says how one call met its trouble, and what the rules found.
pub(super) fn write_call(call: &CallVerdict, out: &mut dyn Write) -> io::Result<()> {
    let own = if call.planned { "" } else { "  (the upstream's own failure)" };
    writeln!(out, "  {}  step {} call {}: {}{own}", escape(call.agent.as_str()), call.step, call.call, call.way())?;
    for remark in &call.remarks {
        let mark = if remark.weight == Weight::Defect { "!" } else { " " };
        writeln!(out, "    {mark} {}: {}", remark.rule, escape(&remark.seen))?;
    }
    Ok(())
}

/// The file that `--junit` names: an earlier one is replaced, as test runners do; nothing else is.
///
/// # Errors
/// There is something else.
pub(super) fn junit_file(path: Option<&Path>) -> Result<Option<OutputFile<'_>>, Failure> {
    path.map(|path| OutputFile::named(path, Replaces::Earlier(ReportKind::Junit))).transpose()
}
