//! The head of a shown run: what it is, what became of it, what is known of it, what can be done with it.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{evidence, millis};
use crate::{
    capability::{Capabilities, RunVerb},
    cli::{
        escape,
        screen::{Colour, Screen},
        watch,
    },
    launch::shell_line,
    mode,
    recording::{self, Recording, RunFact, RunOrigin},
    ruling,
    surface::account::RunAccount,
    trajectory::{FailureMode, Label, LabelEntry, ModeClaim, Outcome, Reason, Verdict},
    viewer::{Suspected, Traced, first_words, word},
};

/// A line of the head: its name and its words.
type HeadLine = (&'static str, String);

/// Writes the head of a run, a line a fact.
pub(super) fn write(
    recording: &Recording,
    run_dir: &Path,
    traced: Option<&Traced>,
    suspected: Option<&Suspected>,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let capabilities = Capabilities::new(recording, run_dir);
    let mut lines = what_it_is(recording, screen);
    lines.extend(label_lines(recording, &capabilities, traced));
    let found = [("trace", traced.map(Traced::line)), ("suspect", suspected.map(Suspected::line))];
    lines.extend(found.into_iter().filter_map(|(name, text)| Some((name, text?))));
    let plan = match (&recording.manifest.plan_digest, recording.manifest.seed) {
        (Some(digest), Some(seed)) => format!("{}  seed {seed}", digest.get(..16).unwrap_or(digest)),
        _ => "none".to_owned(),
    };
    lines.push(("plan", plan));
    lines.extend(recording::read_kept(run_dir).ok().flatten().map(|kept| ("kept", kept.words())));
    let account = RunAccount::from_steps(&recording.trajectory.steps).counted();
    if !account.is_empty() {
        let steps = recording.trajectory.steps.len();
        lines.push(("account", format!("of {steps} steps {}: `--step N` says what", account.join(", "))));
    }
    lines.extend(record_lines(recording));
    lines.push(("can", capabilities.words()));
    for (name, value) in lines {
        let colour = match (name, recording.manifest.outcome.verdict) {
            ("outcome", Verdict::Success) => Some(Colour::Good),
            ("outcome", Verdict::Failure) => Some(Colour::Bad),
            ("run", _) => Some(Colour::Strong),
            _ => None,
        };
        let value = escape(&value);
        let value = colour.map_or_else(|| value.clone(), |colour| screen.paint(colour, &value));
        writeln!(out, "{}{value}", screen.paint(Colour::Faint, &format!("{name:9}")))?;
    }
    writeln!(out)
}

/// The run, where it comes from, what it was asked, what became of it, and what was said of it later.
fn what_it_is(recording: &Recording, screen: Screen) -> Vec<HeadLine> {
    let manifest = &recording.manifest;
    let state = match (recording.sealed, recording.open_exchanges) {
        (true, 0) => "sealed".to_owned(),
        (true, open) => format!("sealed, {open} exchanges never closed"),
        (false, open) => format!("not sealed, {open} exchanges open"),
    };
    let mut lines = vec![
        ("run", format!("{}  ({state})", manifest.run)),
        ("began", format!("{}  upstream {}", manifest.started, manifest.upstream)),
    ];
    if let Some(from) = &manifest.imported {
        lines.push(("imported", format!("{} {}  {}: bodies are remade", from.format, from.file, from.key)));
    }
    let made_for = match manifest.origin {
        Some(RunOrigin::Feedback) => Some("feedback: an execution of `aegis retry`, no evidence of who erred"),
        Some(RunOrigin::Proof) => {
            Some("proof: an execution with neutral changes, evidence for the label of another run")
        }
        Some(RunOrigin::Other) | None => None,
    };
    lines.extend(made_for.map(|words| ("origin", words.to_owned())));
    lines.extend(manifest.launched.as_ref().map(|launched| {
        let unproven = if manifest.is_made_here() { "" } else { "  (not recorded by you on this machine)" };
        ("program", format!("{}{unproven}", shell_line(&launched.command)))
    }));
    let equality = Some(&manifest.equality).filter(|equality| !equality.is_default());
    lines.extend(equality.map(|equality| ("equal", format!("requests are compared with {equality}"))));
    lines.extend(manifest.task.as_ref().map(|task| ("task", first_words(task, screen.width.saturating_sub(9)))));
    lines.push(("outcome", outcome_text(&manifest.outcome)));
    let later: Vec<String> = recording.facts_that_hold().map(RunFact::words).collect();
    lines.extend((!later.is_empty()).then(|| ("later", later.join("; "))));
    lines
}

/// The label and what it rests on, or why there is none.
fn label_lines(recording: &Recording, capabilities: &Capabilities<'_>, traced: Option<&Traced>) -> Vec<HeadLine> {
    let objection = ruling::objection(recording);
    let Some(label) = &recording.label else {
        return vec![("label", format!("none: {}", objection.unwrap_or_default()))];
    };
    let mut lines = vec![("label", label_text(label))];
    lines.extend(objection.map(|why| ("refused", format!("the label does not hold: {why}"))));
    let prove = capabilities.line(RunVerb::Prove).ok();
    lines.extend(evidence::lines(label, prove.as_deref(), traced.map_or(0, Traced::executions)));
    lines
}

/// What stands in the record beside the steps, a line each: questions of manipulators, edits that failed, signs, notes.
fn record_lines(recording: &Recording) -> Vec<HeadLine> {
    let asked = recording.manipulator_questions.iter().map(|asked| {
        let tokens = asked.usage.map(|usage| format!("  tokens {}>{}", usage.input, usage.output)).unwrap_or_default();
        let cost = asked.cost.map(|cost| format!("  cost {cost:.6}")).unwrap_or_default();
        let words = |said: &Option<String>| said.as_ref().map(|said| format!("  {said}")).unwrap_or_default();
        let (changed, error) = (words(&asked.changed), words(&asked.error));
        let took = millis(asked.took_us);
        let text = format!(
            "{} at step {}: {}  {took} ms{tokens}{cost}{changed}{error}",
            asked.model, asked.step, asked.template
        );
        ("asked", text)
    });
    let failed = recording
        .manipulator_failures
        .iter()
        .map(|failure| ("failed", format!("`{}` failed at step {}: {}", failure.operator, failure.step, failure.why)));
    let watched = recording.watched.iter().map(|sign| ("watch", watch::line(sign)));
    let notes = recording.notes.iter().map(|note| ("note", note.clone()));
    asked.chain(failed).chain(watched).chain(notes).collect()
}

fn outcome_text(outcome: &Outcome) -> String {
    let verdict = match outcome.verdict {
        Verdict::Success => "success",
        Verdict::Failure => "failure",
        Verdict::Unknown => "unknown",
    };
    let reason = match outcome.reason {
        Some(Reason::Amended) => "  given later".to_owned(),
        Some(reason) => format!("  by {}", word(&reason)),
        None => String::new(),
    };
    let evidence = first_words(&outcome.evidence, 80);
    format!("{verdict}{reason}{}{evidence}", if evidence.is_empty() { "" } else { ": " })
}

/// A failure mode with how far it is established that the error is of it, and what keeps it from being so.
fn mode_text(mode: FailureMode, entry: &LabelEntry) -> String {
    let claim = entry.mode_claim.clone().unwrap_or(ModeClaim::DECLARED);
    let unmet = claim.unmet.as_deref().and_then(mode::missing).map(|missing| format!(" ({missing})"));
    format!("mode {} {} {}{}", mode.code(), mode.name(), claim.text(), unmet.unwrap_or_default())
}

fn label_text(label: &Label) -> String {
    let errors = label.errors.iter().map(|entry| {
        let (error, side) = (&entry.error, word(&entry.error.side));
        let place = format!("{} at step {}", error.agent.numbered(error.instance), error.step);
        if let Some(found) = entry.finding() {
            return format!("{found} of {place} ({side}), shown by a {}", error.operator);
        }
        match error.failure_mode {
            Some(mode) => format!("{place} ({side}, {}) · {}", error.operator, mode_text(mode, entry)),
            None => format!("an error of {place} ({side}, {})", error.operator),
        }
    });
    let errors: Vec<String> = errors.chain(label.nobody()).collect();
    format!("{}: {}", word(&label.status), errors.join("; "))
}
