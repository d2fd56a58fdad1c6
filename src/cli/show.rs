//! `aegis show RUN`: a recorded run in the terminal: what became of it, its steps, one step whole, what was changed.

mod change;
mod evidence;
mod head;
mod table;
mod whole;

use crate::cli::printed::{ShownRule, ShownSigns, ShownVerdict, printed};
use std::{
    io::{self, Write},
    path::PathBuf,
    str::FromStr,
};

use clap::Args;

use self::whole::ShownExtent;
use super::{
    Exit, Failure, client_verdict, escape,
    screen::Screen,
    test::allowed::{allowed, defect_rule},
    watch,
};
use crate::{
    recording::{self, Masked, Recording},
    ruling,
    trajectory::{Attempt, CallEnding, CloseCause, ReplyOrigin, Step, StepIndex},
    verdict::{self, FindingKind, Judgement},
    viewer::{ReplyOrigins, Suspected, Traced, shown, word},
};

/// Options of `show`.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Directory of the run.
    #[arg(value_name = "RUN_DIR")]
    dir: PathBuf,
    /// Show this step or range in full.
    #[arg(long, value_name = "N|A-B")]
    step: Option<Steps>,
    /// Show what is new since the agent's previous call. Default: of all steps.
    #[arg(long, conflicts_with = "all")]
    new: bool,
    /// Show whole requests.
    #[arg(long)]
    all: bool,
    /// Only steps of this agent; `NAME#1` selects the second instance.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Show changes by injections word by word.
    #[arg(long)]
    before_after: bool,
    /// Show the client verdict: faults per attempt, the client's reactions, and whether they were right.
    #[arg(long, conflicts_with_all = ["step", "before_after"])]
    verdict: bool,
    /// Apply these watch rules to the recording (docs/watch.md), or `all`. Default: all but `other-result` and
    /// `new-number`.
    #[arg(long, alias = "watch", value_name = "RULE", value_delimiter = ',', num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["step", "before_after", "verdict"])]
    watch_rules: Option<Vec<String>>,
    /// Accept findings of this rule in the client verdict; repeatable. Adds to `[test] allow` of aegis.toml.
    #[arg(long = "allow", value_name = "RULE", value_parser = defect_rule, requires = "verdict")]
    allow: Vec<String>,
    /// Configuration file with the roster and with `[test] allow`. Default: ./aegis.toml.
    #[arg(long, value_name = "FILE", env = "AEGIS_CONFIG")]
    config: Option<PathBuf>,
    /// Write the verdict as a `JUnit` report, one case per call.
    #[arg(long, value_name = "FILE", requires = "verdict")]
    junit: Option<PathBuf>,
}

/// Steps that are asked for: from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Steps(StepIndex, StepIndex);

impl FromStr for Steps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<StepIndex>().ok();
        let read = match text.split_once('-') {
            None => number(text).map(|one| Steps(one, one)),
            Some((from, to)) => number(from).zip(number(to)).map(|(from, to)| Steps(from, to)),
        };
        read.filter(|steps| steps.0 <= steps.1).ok_or_else(|| "expected a step, or two: 3, 3-7".to_owned())
    }
}

pub(super) fn run(arguments: &ShowArgs, json: bool, screen: Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    if let Some(rules) = &arguments.watch_rules {
        return watched(arguments, rules, json, out);
    }
    let recording = recording::read(&arguments.dir)?;
    if arguments.verdict {
        let allowed = allowed(&arguments.allow, &super::Config::load(arguments.config.as_deref())?)?;
        return judged(&recording, &allowed, arguments.junit.as_deref(), json, out);
    }
    let steps = wanted(arguments, &recording)?;
    let written = if json {
        writeln!(out, "{}", shown(&recording, &arguments.dir, &steps, arguments.before_after))
    } else {
        write_text(arguments, &recording, &steps, screen, out)
    };
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Exit::Ok)
}

/// Which injections never came to work, and why, as far as the record holds it.
fn unfired(recording: &Recording, out: &mut dyn Write) -> std::io::Result<()> {
    let findings = verdict::survival(recording, &[]).findings;
    let mut never = findings.iter().filter(|finding| finding.kind == FindingKind::NeverDelivered);
    never.try_for_each(|finding| writeln!(out, "  ! {}", escape(&finding.says)))
}

/// How the program met faults; a verdict that is not passed is a finding, but for what `aegis test` passes: a fault that is drawn by
/// chance may stay away if another came.
fn judged(
    recording: &Recording,
    allowed: &[String],
    junit: Option<&std::path::Path>,
    json: bool,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
    let verdict = verdict::read(recording).allowing(allowed);
    let survival = verdict::survival(recording, allowed);
    let stays_away = verdict.result == Judgement::Inconclusive && survival.is_passed();
    let exit = if verdict.result == Judgement::Passed || stays_away { Exit::Ok } else { Exit::Finding };
    if let Some(file) = client_verdict::junit_file(junit)? {
        let failed = (exit != Exit::Ok).then(|| format!("client {}", verdict.summary()));
        let text = verdict::junit(recording.manifest.run.as_str(), &verdict, failed.as_deref());
        file.write_aloud(&Masked::new(text))?;
    }
    let written = if json {
        let shown = ShownVerdict { run: &recording.manifest.run, client: &verdict, survival: &survival };
        writeln!(out, "{}", printed(&shown))
    } else {
        client_verdict::write(&verdict, out).and_then(|()| unfired(recording, out))
    };
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(exit)
}

/// What the rules see in the record, whether or not they looked while the run was under way; a sign is a finding.
fn watched(arguments: &ShowArgs, rules: &[String], json: bool, out: &mut dyn Write) -> Result<Exit, Failure> {
    // The roster that says who verifies says who speaks, too.
    let config = super::Config::load(arguments.config.as_deref())?;
    let recording = recording::read_under(&arguments.dir, &config.agent)?;
    let named: Vec<String> = rules.iter().filter(|rule| !rule.is_empty()).cloned().collect();
    let settings = watch::settings(&named, &[])?;
    let signs = crate::watch::read(&recording, settings.clone(), &watch::roster(&config));
    let written = if json {
        let asked: Vec<&str> = settings.names().collect();
        let rules = crate::watch::RULES.iter().filter(|rule| asked.contains(&rule.name)).map(|rule| {
            let mode = Some(rule.mode).filter(|mode| !mode.is_empty());
            ShownRule { name: rule.name, mode, on: rule.is_on, says: rule.says }
        });
        let shown = ShownSigns { run: &recording.manifest.run, watched: &signs, rules: rules.collect() };
        writeln!(out, "{}", printed(&shown))
    } else {
        signs.iter().try_for_each(|sign| writeln!(out, "{}", escape(&watch::line(sign))))
    };
    written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(if signs.is_empty() { Exit::Ok } else { Exit::Finding })
}

/// The steps that are asked for.
fn wanted<'a>(arguments: &ShowArgs, recording: &'a Recording) -> Result<Vec<&'a Step>, Failure> {
    let steps = &recording.trajectory.steps;
    let Steps(from, to) = arguments.step.unwrap_or(Steps(0, StepIndex::MAX));
    if let (Some(_), None) = (arguments.step, steps.iter().find(|step| step.step == from)) {
        let expected = match steps.last() {
            Some(last) => format!("expected 0 to {}", last.step),
            None => "the run has no steps".to_owned(),
        };
        return Err(Failure::new(Exit::Usage, format!("step `{from}` is not in the run: {expected}")));
    }
    let of_agent = |step: &&Step| arguments.agent.as_ref().is_none_or(|name| is_of(step, name));
    if let (Some(name), false) = (&arguments.agent, steps.iter().any(|step| of_agent(&step))) {
        let mut names: Vec<&str> = steps.iter().map(|step| step.attribution.agent.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let error = format!("agent `{name}` has no step in the run: expected one of {}", names.join(", "));
        return Err(Failure::new(Exit::Usage, error));
    }
    Ok(steps.iter().filter(|step| (from..=to).contains(&step.step)).filter(of_agent).collect())
}

/// Whether a step is an agent's: `name` all of that name, `name#1` the second of them.
fn is_of(step: &Step, name: &str) -> bool {
    let attribution = &step.attribution;
    let numbered = name.rsplit_once('#').and_then(|(name, number)| Some((name, number.parse::<u32>().ok()?)));
    let whole = attribution.agent.as_str() == name;
    whole || numbered.is_some_and(|(name, number)| attribution.agent.as_str() == name && attribution.instance == number)
}

fn write_text(
    arguments: &ShowArgs,
    recording: &Recording,
    steps: &[&Step],
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let traced = Traced::read(&arguments.dir);
    let suspected = Suspected::read(&arguments.dir, recording.manifest.run.as_str(), &[]);
    let origins = ReplyOrigins::read(recording, &arguments.dir);
    if arguments.step.is_none() {
        head::write(recording, &arguments.dir, traced.as_ref(), suspected.as_ref(), screen, out)?;
        if !recording.sealed {
            let dir = escape(&arguments.dir.display().to_string());
            writeln!(out, "next     aegis runs end {dir}  if nothing serves it any more")?;
        }
    }
    if arguments.before_after {
        let changed = change::write_all(steps, out)?;
        return match (changed, ruling::repeats(recording)) {
            (0, Some(of)) => writeln!(out, "nothing was altered anew: what run {of} got altered was given again"),
            (0, None) => writeln!(out, "no injection changed a byte"),
            _ => Ok(()),
        };
    }
    if arguments.step.is_none() && !arguments.new && !arguments.all {
        return table::write(steps, &origins, traced.as_ref(), suspected.as_ref(), screen, out);
    }
    let extent = if arguments.all { ShownExtent::All } else { ShownExtent::New };
    for (number, step) in steps.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        whole::write(step, recording, &origins, extent, screen, out)?;
    }
    Ok(())
}

/// Microseconds as milliseconds.
fn millis(micros: u64) -> String {
    format!("{}.{}", micros / 1000, micros % 1000 / 100)
}

/// Status and cause of the last attempt, where its reply came from if not from the upstream, and how many there were.
fn status_text(step: &Step, origin: ReplyOrigin) -> String {
    let ended = step.last_attempt().map_or_else(|| "open".to_owned(), attempt_text);
    let ended = if origin.is_live() { ended } else { format!("{ended} {}", origin.words()).trim().to_owned() };
    if step.attempts.len() > 1 { format!("{ended} x{}", step.attempts.len()) } else { ended }
}

/// Status and cause of an attempt; how it ended where neither says so.
fn attempt_text(attempt: &Attempt) -> String {
    let status = attempt.status.map(|status| status.to_string()).unwrap_or_default();
    let inside = attempt.status.is_some_and(|status| status < 400);
    match attempt.cause {
        None => "open".to_owned(),
        Some(_) if inside && attempt.ending.is_some_and(CallEnding::is_error) => {
            format!("{status} {}", attempt.ending.map(CallEnding::name).unwrap_or_default())
        }
        Some(CloseCause::Complete) => status,
        Some(cause) => format!("{status} {}", word(&cause)).trim().to_owned(),
    }
}

/// The failure modes (or faults) that were planted, and whether they arrived.
fn injected_text(step: &Step) -> String {
    let marks = step.injected.iter().map(|error| {
        let what = error.failure_mode.map_or(error.operator.as_str(), |mode| mode.code());
        if error.delivered { format!("*{what}") } else { format!("({what})") }
    });
    escape(&marks.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests;
