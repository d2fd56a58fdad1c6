//! What to type after a trace.

use super::arguments::TraceArgs;
use crate::{
    attribution::{LabelRule, TraceFinding},
    cli::again::HowStarted,
    proof::{SearchEnding, Stands},
};

/// The line to type next; `None` where nothing is left to ask.
pub(super) fn line(finding: &TraceFinding, arguments: &TraceArgs, again: &HowStarted) -> Option<String> {
    let run = arguments.dir.display();
    match finding.ending {
        Some(SearchEnding::NotReproduced) => return Some(format!("aegis replay {run} --explain -- CMD")),
        Some(SearchEnding::Void(_)) => return Some(format!("aegis fork {run} --at 0 --check CMD -- CMD")),
        None => {}
    }
    let doubt = finding.doubts.iter().find(|doubt| doubt.rule == arguments.label);
    let Some(doubt) = doubt.or(finding.doubts.first()).filter(|_| arguments.label != LabelRule::Flip) else {
        return match finding.flips.first().or(finding.coupled.first()) {
            Some(flip) => Some(format!("aegis show {run} --step {}", flip.step)),
            None if !arguments.coupled && finding.claims > 1 => Some(trace(arguments, again, &["--coupled"])),
            None => None,
        };
    };
    let stands =
        |wanted: Stands| finding.steps.iter().any(|step| doubt.steps.contains(&step.step) && step.stands == wanted);
    let more = match () {
        () if arguments.source.analyzer.is_some() => &["--twin RUN_DIR"][..],
        () if stands(Stands::Untouched) && arguments.source.twin.is_some() && !arguments.source.redraw => &["--redraw"],
        () if stands(Stands::Untouched) => {
            return Some(format!(
                "aegis trace {run} --corrections FILE …  # with a line for step {}",
                untouched(finding, &doubt.steps)
            ));
        }
        () if stands(Stands::Unsettled) => &["--pairs 120"],
        () => &[],
    };
    Some(trace(arguments, again, more))
}

fn untouched(finding: &TraceFinding, steps: &[u32]) -> String {
    let steps = finding.steps.iter().filter(|step| steps.contains(&step.step) && step.stands == Stands::Untouched);
    steps.take(8).map(|step| step.step.to_string()).collect::<Vec<_>>().join(", ")
}

/// The same trace with something more, without the budget that ended it.
fn trace(arguments: &TraceArgs, again: &HowStarted, more: &[&str]) -> String {
    let source = &arguments.source;
    let mut options = Vec::new();
    let mut path = |name: &str, path: &Option<std::path::PathBuf>| {
        options.extend(path.as_ref().map(|path| format!("{name} '{}'", path.display())));
    };
    path("--twin", &source.twin);
    path("--corrections", &source.corrections);
    options.extend(source.redraw.then(|| "--redraw".to_owned()));
    options
        .extend(source.analyzer.as_ref().filter(|_| more != ["--twin RUN_DIR"]).map(|url| format!("--analyzer {url}")));
    options.extend(more.iter().map(|more| (*more).to_owned()));
    let check = arguments.execute.trial.check.as_deref().unwrap_or("CMD").replace('\'', r"'\''");
    options.push(format!("--check '{check}'"));
    let options = options.join(" ");
    let unknown = || format!("aegis trace {} {options} -- CMD", arguments.dir.display());
    again.line("trace", &options).unwrap_or_else(unknown)
}
