//! A step at length: its messages (those that are new, or all), its reply, its attempts, its injections.

use std::io::{self, Write};

use super::{attempt_text, injected_text, millis};
use crate::{
    cli::{
        escape,
        screen::{Colour, Screen},
    },
    recording::{Recording, ToolCaller, UnknownCaller, tool_callers},
    surface::{self, account},
    trajectory::{Attempt, ReplyOrigin, Step},
    viewer::{ReplyOrigins, StepView, TextBlock, before, fresh, since, word},
};

/// How much of a step is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownExtent {
    /// Of its request what its agent's call before did not have.
    New,
    /// All of it.
    All,
}

/// One step.
pub(super) fn write(
    step: &Step,
    recording: &Recording,
    origins: &ReplyOrigins,
    extent: ShownExtent,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_head(step, recording, screen, out)?;
    let told = StepView::new(step);
    let edited = if step.request_sent.is_some() { " as the agent sent it (an injection changed it)" } else { "" };
    writeln!(out, "\n{}", screen.paint(Colour::Strong, &format!("== request{edited}")))?;
    let blocks = told.request(&step.request);
    match extent {
        ShownExtent::All => write_blocks(&blocks, screen, out)?,
        ShownExtent::New => write_new(step, blocks, recording, screen, out)?,
    }
    for attempt in &step.attempts {
        let origin = origins.of_attempt(step, attempt);
        write_attempt(told, step, attempt, origin, recording, screen, out)?;
    }
    if !step.injected.is_empty() {
        writeln!(out, "\n{}: `--before-after` shows what was changed", injected_text(step))?;
    }
    Ok(())
}

fn write_head(step: &Step, recording: &Recording, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let attribution = &step.attribution;
    let doubt = if attribution.ambiguous { ", ambiguous" } else { "" };
    let overlapping = if step.overlapping { "; another call of its agent was under way at the same time" } else { "" };
    let agent = attribution.agent.numbered(attribution.instance);
    let name = format!("step {}  turn {}  {} call {}", step.step, step.turn, escape(&agent), step.call);
    let evidence = escape(&attribution.evidence);
    writeln!(out, "{}  (known by {evidence}{doubt}{overlapping})", screen.paint(Colour::Strong, &name))?;
    writeln!(out, "{} {}  surface {}", escape(&step.method), escape(&step.path), escape(&step.surface))?;
    if surface::is_of_server(&step.surface)
        && let Some(caller) = tool_callers(&recording.trajectory.steps, &recording.exchanges).get(&step.step)
    {
        writeln!(out, "{}", escape(&called_by(caller)))?;
    }
    for line in account::of_step(step).lines() {
        writeln!(out, "{}", screen.paint(Colour::Bad, &escape(&line)))?;
    }
    for error in &step.injected {
        let (operator, side) = (escape(&error.operator), word(&error.side));
        let arrived = if error.delivered { "delivered" } else { "not delivered" };
        let mode = error.failure_mode.map(|mode| format!("{} {}, ", mode.code(), mode.name())).unwrap_or_default();
        let line = format!("injected {mode}{operator}, {side} side, {arrived}");
        writeln!(out, "{}", screen.paint(Colour::Planted, &line))?;
    }
    Ok(())
}

/// For whom a tool was called.
fn called_by(caller: &ToolCaller) -> String {
    match caller {
        ToolCaller::Stated { agent, step: None } => format!("called for {agent}: the request says so"),
        ToolCaller::Stated { agent, step: Some(step) } => {
            format!("called for {agent}, as its reply at step {step} asks: the request says so")
        }
        ToolCaller::Reply { agent, instance, step, .. } => {
            format!("called for {}, as its reply at step {step} asks", agent.numbered(*instance))
        }
        ToolCaller::Unknown { why: UnknownCaller::NoReply } => {
            "called for nobody that is known: no reply before it asks for this tool with these arguments".to_owned()
        }
        ToolCaller::Unknown { why: UnknownCaller::Several } => {
            "called for one of several agents: each asked for this tool with these arguments".to_owned()
        }
    }
}

/// What is new in the request; what is not is counted.
fn write_new(
    step: &Step,
    blocks: Vec<TextBlock>,
    recording: &Recording,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let earlier = before(&recording.trajectory.steps, step).map(|(_, earlier)| earlier);
    let seen = fresh(blocks, earlier);
    let from = since(&seen, earlier).map(|from| format!(" since step {from}")).unwrap_or_default();
    let mut known = 0_usize;
    let mut rest = seen.iter().peekable();
    while let Some(one) = rest.next() {
        if !one.known {
            write_blocks(std::slice::from_ref(&one.block), screen, out)?;
            continue;
        }
        known += 1;
        if rest.peek().is_none_or(|next| !next.known) {
            let told = if known == 1 { "message is" } else { "messages are" };
            let line = format!("   ({known} {told} known{from}: `--all` shows them)");
            writeln!(out, "{}", screen.paint(Colour::Faint, &line))?;
            known = 0;
        }
    }
    Ok(())
}

fn write_attempt(
    told: StepView<'_>,
    step: &Step,
    attempt: &Attempt,
    origin: ReplyOrigin,
    recording: &Recording,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let first = attempt.first_byte_us.map(|micros| format!("  first byte {} ms", millis(micros))).unwrap_or_default();
    let last = attempt.last_byte_us.map(|micros| format!("  whole {} ms", millis(micros))).unwrap_or_default();
    let tokens = attempt.usage.map(|usage| format!("  tokens {}>{}", usage.input, usage.output)).unwrap_or_default();
    let detail = recording.exchanges.iter().find(|e| e.step == step.step && e.attempt == attempt.attempt);
    let events = detail.map_or(0, |detail| detail.frames.len());
    let events = if events > 0 { format!("  {events} events") } else { String::new() };
    let masked = !attempt.exact && origin != ReplyOrigin::Remade;
    let exact = if masked { "  (stored bytes are masked or cut)" } else { "" };
    let origin = match origin {
        ReplyOrigin::Live => String::new(),
        ReplyOrigin::Remade => "  (remade from a trace)".to_owned(),
        origin => format!("  ({})", origin.words()),
    };
    let head = format!("== reply {}: {}", attempt.attempt, attempt_text(attempt));
    writeln!(out, "\n{}{origin}{first}{last}{tokens}{events}{exact}", screen.paint(Colour::Strong, &head))?;
    write_blocks(&told.received(attempt), screen, out)
}

fn write_blocks(blocks: &[TextBlock], screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    for block in blocks {
        writeln!(out, "{}", screen.paint(Colour::Faint, &format!("-- {}", escape(&block.who))))?;
        if !block.text.is_empty() {
            writeln!(out, "{}", screen.wrapped(&escape(&block.text)))?;
        }
    }
    Ok(())
}
