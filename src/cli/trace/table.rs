//! A finding in the terminal: a line a step, and beneath it what was said, what was tried instead, and what says nothing.

use std::io::{self, Write};

use crate::{
    attribution::{Decisive, StepFinding, TraceFinding},
    cli::{counted, escape},
    proof::{Stands, figure, in_words},
    trajectory::{Executions, difference},
};

/// Columns of a terminal that does not say how wide it is.
const WIDTH: usize = 110;
/// Steps that a doubt names.
const DOUBTED: usize = 8;

/// One line a step; what was tried has its words beneath.
pub(super) fn write(finding: &TraceFinding, out: &mut dyn Write) -> io::Result<()> {
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(WIDTH).max(60);
    writeln!(out, "step  {:<20} call  without  with    e          stands", "agent")?;
    for step in &finding.steps {
        write_step(finding, step, width, out)?;
    }
    for couple in &finding.couples {
        let [first, second] = couple.steps;
        writeln!(out, "steps {first} and {second} together: {}", in_words(&couple.executed, "without", "with both"))?;
    }
    write_agents(finding, out)?;
    writeln!(out)?;
    write_words(finding, out)?;
    let spent = finding.spent;
    writeln!(
        out,
        "spent {} executions, {} live calls, {} tokens; {} tokens came from the record",
        spent.runs, spent.calls, spent.live_tokens, spent.recorded_tokens
    )
}

fn write_step(finding: &TraceFinding, step: &StepFinding, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let is = |decisive: Option<&Decisive>| decisive.is_some_and(|decisive| decisive.step == step.step);
    let marks =
        [(is(finding.earliest_flip.as_ref()), "earliest flip"), (is(finding.commitment.as_ref()), "commitment")];
    let marks: Vec<&str> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
    let mark = if marks.is_empty() { String::new() } else { format!("  ◀ {}", marks.join(", ")) };
    let (control, treated, e) = match &step.executed {
        Some(executed) => (share(&executed.control), share(&executed.treated), executed.e),
        None => ("-".to_owned(), "-".to_owned(), None),
    };
    let e = e.filter(|_| step.executed.as_ref().is_some_and(|executed| executed.pairs > 0));
    let e = e.map(figure).unwrap_or_default();
    let stands = match (&step.note, step.stands) {
        (Some(note), Stands::Untouched | Stands::Same | Stands::Unsettled) => format!("{}: {note}", words(step.stands)),
        (_, stands) => words(stands).to_owned(),
    };
    let (agent, call) = (escape(&step.agent.numbered(step.instance)), step.call);
    let line = format!("{agent:<20} {call:>4}  {control:<7}  {treated:<6}  {e:<9}  {}{mark}", escape(&stands));
    writeln!(out, "{:>4}  {}", step.step, line.trim_end())?;
    let Some(source) = step.source else { return Ok(()) };
    let room = width.saturating_sub(16);
    writeln!(out, "        said     {}", escape(&shortened(&step.said, room)))?;
    let instead = step.instead.as_deref().map_or_else(|| "a fresh draw".to_owned(), |text| shortened(text, room));
    writeln!(out, "        instead  {}", escape(&instead))?;
    let mut from = source.name().to_owned();
    if !step.reason.is_empty() {
        from = format!("{from}: {}", step.reason);
    }
    if let Some(mode) = step.proposed_mode {
        from = format!("{from}  ({} {}, as proposed)", mode.code(), mode.name());
    }
    writeln!(out, "        by       {}", escape(&shortened(&from, room)))?;
    let voids = step.executed.iter().flat_map(|executed| [("without", &executed.control), ("with", &executed.treated)]);
    for (arm, executions) in voids.filter(|(_, executions)| executions.voids() > 0) {
        let reasons = executions.void.iter().map(|(why, count)| format!("{count} {}", why.words()));
        writeln!(out, "        void     {arm}: {}", reasons.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

fn words(stands: Stands) -> &'static str {
    match stands {
        Stands::Shown => "flips the outcome",
        Stands::Same => "cleared",
        Stands::Excluded => "cleared: no such effect",
        Stands::Untouched => "not tried",
        Stands::Void => "void",
        Stands::Open => "open",
        Stands::Unsettled => "not settled",
    }
}

fn write_agents(finding: &TraceFinding, out: &mut dyn Write) -> io::Result<()> {
    if !finding.agents.is_empty() {
        writeln!(
            out,
            "\nagent                replaced by   without  with    difference (it describes, and blames nobody)"
        )?;
    }
    for agent in &finding.agents {
        let (effect, interval) = difference(agent.treated.tally(), agent.control.tally());
        let (name, control, treated) = (escape(agent.agent.as_str()), share(&agent.control), share(&agent.treated));
        let effect = format!("{effect:+.2} [{:+.2}, {:+.2}]", interval.low, interval.high);
        writeln!(out, "{name:<20} {:<13} {control:<7}  {treated:<6}  {effect}", agent.replaced_by)?;
    }
    Ok(())
}

/// What is shown, what is not, and on what terms.
fn write_words(finding: &TraceFinding, out: &mut dyn Write) -> io::Result<()> {
    let sanity = &finding.sanity;
    writeln!(out, "as recorded throughout, without a live call: {} passed", share(sanity))?;
    if finding.other_tool_results > 0 {
        let count = finding.other_tool_results;
        writeln!(out, "in {count} executions tools gave other results than were recorded")?;
    }
    if let Some(why) = &finding.not_found {
        writeln!(out, "nothing found: {}", escape(why))?;
    }
    for doubt in &finding.doubts {
        let steps: Vec<String> = doubt.steps.iter().take(DOUBTED).map(ToString::to_string).collect();
        let more = if doubt.steps.len() > DOUBTED { ", …" } else { "" };
        let rule = doubt.rule.name().replace('_', " ");
        writeln!(out, "not sure of the {rule}, perhaps step {}{more}: {}", steps.join(", "), escape(&doubt.why))?;
    }
    writeln!(
        out,
        "a step is named at e {}, as this run has {}: any without effect is named with a \
         probability of at most {} %; others are cleared of an effect of {} with {} % to miss one; order {}{}",
        figure(finding.target),
        counted(finding.claims, "possible claim"),
        percent(finding.alpha),
        finding.effect,
        percent(finding.miss),
        finding.order,
        if finding.out_of_budget { "; the budget ended the search" } else { "" }
    )
}

fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Successes of those that tell.
fn share(arm: &Executions) -> String {
    let told = arm.passed + arm.failed;
    if told == 0 { "-".to_owned() } else { format!("{}/{told}", arm.passed) }
}

/// A text in one line of at most so many characters: its beginning and, where results stand, its end.
fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = line.chars().count();
    if length <= most {
        return line;
    }
    let end = most / 2;
    let start: String = line.chars().take(most - end - 3).collect();
    let rest: String = line.chars().skip(length - end).collect();
    format!("{start} … {rest}")
}
