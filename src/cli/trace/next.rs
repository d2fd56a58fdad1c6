//! What to type after a trace.

use super::arguments::TraceArgs;
use crate::{
    attribution::{LabelRule, TraceFinding},
    capability::{Capabilities, RunVerb},
    cli::typed::TypedLine,
    launch::shell_word,
    proof::{SearchEnding, Stands},
};

/// The line to type next; `None` where nothing is left to ask.
pub(super) fn line(finding: &TraceFinding, arguments: &TraceArgs, run: &Capabilities<'_>) -> Option<String> {
    let dir = shell_word(&arguments.dir.to_string_lossy());
    match finding.ending {
        Some(SearchEnding::NotReproduced) => return run.line_with(RunVerb::Replay, "--explain").ok(),
        Some(SearchEnding::Void(_)) => return run.line_with(RunVerb::Fork, "--at 0").ok(),
        None => {}
    }
    let doubt = finding.doubts.iter().find(|doubt| doubt.rule == arguments.label);
    let Some(doubt) = doubt.or(finding.doubts.first()).filter(|_| arguments.label != LabelRule::Flip) else {
        return match finding.flips.first().or(finding.coupled.first()) {
            Some(flip) => Some(format!("aegis show {dir} --step {}", flip.step)),
            None if !arguments.coupled && finding.claims > 1 => Some(trace(arguments, &["--coupled"])),
            None => None,
        };
    };
    let stands =
        |wanted: Stands| finding.steps.iter().any(|step| doubt.steps.contains(&step.step) && step.stands == wanted);
    let more = match () {
        () if arguments.source.analyzer.is_some() => &["--twin RUN_DIR"][..],
        () if stands(Stands::Untouched) && arguments.source.twin.is_some() && !arguments.source.redraw => &["--redraw"],
        () if stands(Stands::Untouched) => {
            let line = trace(arguments, &["--corrections FILE"]);
            return Some(format!("{line}  # with a line for step {}", untouched(finding, &doubt.steps)));
        }
        () if stands(Stands::Unsettled) => &["--pairs 120"],
        () => &[],
    };
    Some(trace(arguments, more))
}

fn untouched(finding: &TraceFinding, steps: &[u32]) -> String {
    let steps = finding.steps.iter().filter(|step| steps.contains(&step.step) && step.stands == Stands::Untouched);
    steps.take(8).map(|step| step.step.to_string()).collect::<Vec<_>>().join(", ")
}

/// The same trace with something more, without the budget that ended it: what was said of it is said again.
fn trace(arguments: &TraceArgs, more: &[&str]) -> String {
    /// What is about an analyzer, and whether a value follows it.
    const ANALYZER: [(&str, bool); 6] = [
        ("--analyzer", true),
        ("--analyzer-model", true),
        ("--analyzer-key-env", true),
        ("--answer", true),
        ("--gold", true),
        ("--no-feedback", false),
    ];
    let twin = more.iter().any(|more| more.starts_with("--twin"));
    let corrected = more.iter().any(|more| more.starts_with("--corrections"));
    let replaced = ANALYZER.into_iter().filter(|_| corrected || (twin && arguments.source.analyzer.is_some()));
    // Corrections of a file stand alone.
    let others = [("--twin", true), ("--redraw", false)].into_iter().filter(|_| corrected);
    let given = more.iter().filter_map(|more| Some((more.split(' ').next()?, more.contains(' '))));
    let budget = [("--budget", true)];
    let line = budget
        .into_iter()
        .chain(replaced)
        .chain(others)
        .chain(given)
        .fold(TypedLine::of_process(), |line, (name, value)| line.without(name, value));
    line.with(more.iter().flat_map(|more| more.split(' ')).map(str::to_owned)).text()
}
