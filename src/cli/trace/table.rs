//! A finding in the terminal: a line a step, with a bar for its effect.

use std::io::{self, Write};

use crate::{
    attribution::{Decisive, Finding, Share},
    cli::escape,
};

/// Characters of a bar that stands for an effect of 1.
const BAR: f64 = 10.0;

/// Steps that a doubt names.
const DOUBTED: usize = 8;

/// One line a step, with a bar for its effect.
pub(super) fn write(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "step  {:<20} call  null  treated  effect", "agent")?;
    for step in &finding.steps {
        let bar = step.effect.map(bar).unwrap_or_default();
        let effect = match (step.effect, step.interval) {
            (Some(effect), Some(interval)) => format!("{effect:+.2} [{:+.2}, {:+.2}]", interval.low, interval.high),
            _ => step.note.clone().unwrap_or_default(),
        };
        let is = |decisive: &Option<Decisive>| decisive.as_ref().is_some_and(|decisive| decisive.step == step.step);
        let marks = [(is(&finding.earliest_flip), "earliest flip"), (is(&finding.commitment), "commitment")];
        let marks: Vec<&str> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        let mark = if marks.is_empty() { String::new() } else { format!("  ◀ {}", marks.join(", ")) };
        let (agent, call) = (escape(step.agent.as_str()), step.call);
        let (null, treated) = (share(step.null.share), share(step.treated.share));
        let line = format!("{agent:<20} {call:>4}  {null:<5} {treated:<7}  {bar:<10} {}{mark}", escape(&effect));
        writeln!(out, "{:>4}  {}", step.step, line.trim_end())?;
    }
    if !finding.agents.is_empty() {
        writeln!(out, "\nagent                replaced by   null  treated  effect")?;
    }
    for agent in &finding.agents {
        let (null, treated) = (share(agent.null.share), share(agent.treated.share));
        let (effect, interval) = (agent.effect, agent.interval);
        let effect = format!("{:<10} {effect:+.2} [{:+.2}, {:+.2}]", bar(effect), interval.low, interval.high);
        writeln!(
            out,
            "{:<20} {:<13} {null:<5} {treated:<7}  {effect}",
            escape(agent.agent.as_str()),
            agent.replaced_by
        )?;
    }
    let spent = finding.spent;
    writeln!(out)?;
    if finding.other_tool_results > 0 {
        let count = finding.other_tool_results;
        writeln!(out, "in {count} executions tools gave other results than were recorded")?;
    }
    for doubt in &finding.doubts {
        let steps: Vec<String> = doubt.steps.iter().take(DOUBTED).map(ToString::to_string).collect();
        let more = if doubt.steps.len() > DOUBTED { ", …" } else { "" };
        let rule = doubt.rule.name().replace('_', " ");
        writeln!(out, "not sure of the {rule}, perhaps step {}{more}: {}", steps.join(", "), doubt.why)?;
    }
    writeln!(
        out,
        "a step without effect is blamed with a probability of at most {:.1} %; order {}{}",
        finding.false_blame * 100.0,
        finding.order,
        if finding.out_of_budget { "; the budget ended the search" } else { "" }
    )?;
    writeln!(
        out,
        "spent {} executions, {} live calls, {} tokens; {} tokens came from the record",
        spent.runs, spent.calls, spent.live_tokens, spent.recorded_tokens
    )
}

fn bar(effect: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an effect lies between -1 and 1")]
    let length = (effect.abs() * BAR).round() as usize;
    if effect < 0.0 { "-".repeat(length) } else { "█".repeat(length) }
}

/// Successes of samples.
pub(super) fn share(share: Share) -> String {
    if share.samples == 0 { "-".to_owned() } else { format!("{}/{}", share.successes, share.samples) }
}
