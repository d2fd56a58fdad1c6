//! `aegis plan`: checks plans, says what they do, lists what they may use, prints their JSON schema.

mod check;

use crate::cli::printed::{ExplainedPlan, ReadyPlan};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use self::check::Checked;
use super::{
    Exit, Failure, Finished,
    screen::{Colour, Screen},
};
use crate::plan::{self, CatalogueEntry, Operation, Plan, ShippedPlan};
use crate::recording;
use crate::trajectory::Side;

/// Options of `plan`.
#[derive(Debug, clap::Args)]
pub(super) struct PlanArgs {
    #[command(subcommand)]
    action: PlanAction,
}

#[derive(Debug, clap::Subcommand)]
enum PlanAction {
    /// Check plans and run their tests.
    Check {
        /// Plan files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Show which steps of this recorded run each injection meets.
        #[arg(long, value_name = "RUN_DIR")]
        against: Option<PathBuf>,
        /// Configuration file. Default: ./aegis.toml.
        #[arg(long, env = "AEGIS_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Explain a plan in words.
    Explain {
        /// Plan file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// List the ready-made plans, or print one to copy.
    Ready {
        /// Name of a plan or folder.
        name: Option<String>,
    },
    /// List manipulators and faults with their parameters.
    List {
        /// Part of the name.
        name: Option<String>,
    },
    /// Print the catalogue page of a folder of plans.
    Catalogue {
        /// Folder of plans, with subfolders except `templates`.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Print the JSON schema of plans, for editors.
    Schema,
}

impl PlanArgs {
    /// What `plan check` came to, with so many notes; the other actions only tell something.
    pub(super) fn concluded(&self, exit: Exit, notes: usize) -> Option<Finished> {
        let PlanAction::Check { files, .. } = &self.action else { return None };
        let plans = if let [_] = files.as_slice() { "1 plan".to_owned() } else { format!("{} plans", files.len()) };
        let came = match (exit, notes) {
            (Exit::Ok, 0) => "nothing found".to_owned(),
            (Exit::Ok, 1) => "1 note, told above".to_owned(),
            (Exit::Ok, notes) => format!("{notes} notes, told above"),
            _ => "something found, told above".to_owned(),
        };
        Some(Finished { exit, summary: format!("{plans}, {came}"), data: serde_json::Value::Null })
    }
}

/// The exit code, and how many notes were written.
pub(super) fn run(
    arguments: &PlanArgs,
    json: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(Exit, usize), Failure> {
    let mut notes = 0;
    let (exit, text) = match &arguments.action {
        PlanAction::Check { files, against, config } => {
            let roster = check::roster(config.as_deref())?;
            let recording = against.as_deref().map(recording::read).transpose()?;
            let run = recording.as_ref().map(|recording| &recording.trajectory);
            let checked: Vec<Checked> =
                files.iter().map(|file| check::check(file, run, &roster)).collect::<Result<_, _>>()?;
            notes = checked.iter().map(Checked::notes).sum();
            let exit = if checked.iter().all(Checked::passed) { Exit::Ok } else { Exit::Finding };
            let text = if json {
                super::pretty(&checked.iter().map(Checked::data).collect::<Vec<_>>())?
            } else {
                check::texts(&checked, screen)
            };
            (exit, text)
        }
        PlanAction::Explain { file } => {
            let text = plan::explain(&read(file)?);
            let text = if json { super::pretty(&ExplainedPlan { file, explanation: text })? } else { text };
            (Exit::Ok, text)
        }
        PlanAction::Ready { name } => (Exit::Ok, ready(name.as_deref(), json)?),
        PlanAction::List { name } => {
            let mut entries = plan::catalogue();
            entries.retain(|entry| name.as_ref().is_none_or(|name| entry.name.contains(name)));
            (Exit::Ok, if json { super::pretty(&entries)? } else { listed(&entries, screen) })
        }
        PlanAction::Catalogue { dir } => {
            let plans = folder(dir)?;
            let page = plan::page(&plans).map_err(|errors| Failure::new(Exit::Usage, errors))?;
            (Exit::Ok, page)
        }
        PlanAction::Schema => (Exit::Ok, super::pretty(&plan::schema())?),
    };
    out.write_all(text.as_bytes()).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok((exit, notes))
}

/// What is said of ready-made plans: the text of one, or a line each.
fn ready(name: Option<&str>, json: bool) -> Result<String, Failure> {
    let plans = match name {
        Some(name) => shipped_as(name)
            .map_err(|hint| Failure::new(Exit::Usage, format!("no ready-made plan is called `{name}`")).hint(hint))?,
        None => plan::shipped(),
    };
    if json {
        let row =
            |plan: &ShippedPlan| ReadyPlan { name: plan.name, about: plan.description().to_owned(), text: plan.text };
        return super::pretty(&plans.iter().map(row).collect::<Vec<_>>());
    }
    if let (Some(_), [plan]) = (name, plans.as_slice()) {
        return Ok(plan.text.to_owned());
    }
    let width = plans.iter().map(|plan| plan.name.len()).max().unwrap_or_default();
    Ok(plans.iter().fold(String::new(), |mut text, plan| {
        let _ = writeln!(text, "{:width$}  {}", plan.name, plan.description());
        text
    }))
}

/// The ready-made plans that a word names, or what to type instead.
pub(super) fn shipped_as(word: &str) -> Result<Vec<ShippedPlan>, String> {
    let plans = plan::shipped_as(word);
    if plans.is_empty() {
        let near = plan::nearest_shipped(word).map(|near| format!("did you mean the ready-made plan `{near}`? "));
        return Err(near.unwrap_or_default() + "`aegis plan ready` lists them");
    }
    Ok(plans)
}

/// Reads a plan: a file, or where there is none a ready-made plan of that name. A larger file than a plan may be is not
/// read to its end.
///
/// # Errors
/// What kept it from being read, with its name, or every problem of the plan.
pub(super) fn read(file: &Path) -> Result<Plan, Failure> {
    if file.exists() {
        return read_file(file);
    }
    let named = shipped_as(&file.to_string_lossy());
    match named.as_deref() {
        Ok([plan]) => read_shipped(plan),
        // What looks like a path was meant as one.
        Ok(_) | Err(_) if file.components().count() > 1 || file.extension().is_some() => {
            read_file(file).map_err(|failure| {
                failure.hint("`aegis init DIR` writes a first plan, `aegis plan ready` lists ready-made ones")
            })
        }
        Ok(plans) => {
            let names: Vec<&str> = plans.iter().map(|plan| plan.name).collect();
            let error = format!("`{}` is a folder of ready-made plans: expected one", file.display());
            Err(Failure::new(Exit::Usage, error).hint(format!("name one of them: {}", names.join(", "))))
        }
        Err(_) if file.to_string_lossy().contains(',') => Err(Failure::new(
            Exit::Usage,
            format!("cannot read `{}`: there is no such file, and a run has one plan", file.display()),
        )
        .hint("put the injections of both into one file, or try them one by one: aegis test PLAN PLAN -- CMD")),
        Err(hint) => read_file(file).map_err(|failure| failure.hint(hint.clone())),
    }
}

/// Reads a ready-made plan.
///
/// # Errors
/// None of those that ship with the program.
pub(super) fn read_shipped(shipped: &ShippedPlan) -> Result<Plan, Failure> {
    let name = format!("the ready-made plan {}", shipped.name);
    plan::parse(shipped.text, &name).map_err(|errors| Failure::new(Exit::Usage, errors))
}

fn read_file(file: &Path) -> Result<Plan, Failure> {
    let name = file.display();
    let cannot = |error: &dyn std::error::Error| Failure::new(Exit::Usage, format!("cannot read `{name}`: {error}"));
    let mut bytes = Vec::new();
    let limit = u64::try_from(plan::SIZE_LIMIT).unwrap_or(u64::MAX).saturating_add(1);
    let handle = std::fs::File::open(file).map_err(|error| cannot(&error))?;
    handle.take(limit).read_to_end(&mut bytes).map_err(|error| cannot(&error))?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The cut may have split a character: what was read is too long in any case.
        Err(error) if error.as_bytes().len() > plan::SIZE_LIMIT => {
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
        Err(error) => return Err(cannot(&error)),
    };
    plan::parse(&text, &name.to_string()).map_err(|errors| Failure::new(Exit::Usage, errors))
}

/// Every plan in a folder and those inside it, with its path there, in order. Templates are no plans.
fn folder(dir: &Path) -> Result<Vec<(String, String)>, Failure> {
    let cannot = |path: &Path, error: &dyn std::error::Error| {
        Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", path.display()))
    };
    let mut plans = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).map_err(|error| cannot(&next, &error))? {
            let path = entry.map_err(|error| cannot(&next, &error))?.path();
            if path.is_dir() {
                folders.extend((!path.ends_with("templates")).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let text = std::fs::read_to_string(&path).map_err(|error| cannot(&path, &error))?;
                let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                plans.push((name, text));
            }
        }
    }
    plans.sort();
    Ok(plans)
}

fn listed(entries: &[CatalogueEntry], screen: Screen) -> String {
    let mut text = String::new();
    for (operation, heading) in [
        (Operation::Manipulator, "Manipulators (`manipulator.NAME = { … }`) edit what an agent is asked or answers"),
        (Operation::Fault, "Faults (`fault.NAME = { … }`) disturb the transport or the protocol"),
    ] {
        let mut entries = entries.iter().filter(|entry| entry.operation == operation).peekable();
        if entries.peek().is_none() {
            continue;
        }
        let blank = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{blank}{heading}");
        entries.for_each(|entry| describe(&mut text, entry, screen));
    }
    text
}

fn describe(text: &mut String, entry: &CatalogueEntry, screen: Screen) {
    let sides: Vec<&str> =
        entry.sides.iter().map(|side| if *side == Side::Request { "request" } else { "response" }).collect();
    let sides = if sides.is_empty() { String::new() } else { format!(" ({})", sides.join(", ")) };
    let _ = writeln!(text, "\n  {}{sides}\n      {}", screen.paint(Colour::Strong, entry.name), entry.summary);
    for parameter in &entry.parameters {
        let need = match (&parameter.default, parameter.required) {
            (_, true) => ", required".to_owned(),
            (Some(default), _) => format!(", default {default}"),
            (None, _) => String::new(),
        };
        let _ =
            writeln!(text, "        {} = {}{need}\n            {}", parameter.name, parameter.takes, parameter.summary);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: PlanArgs,
    }

    fn run_line(words: &[&str], json: bool) -> Result<(u8, String), String> {
        let line = Line::try_parse_from([&["plan"], words].concat()).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        let (exit, _) =
            run(&line.args, json, Screen::new(110, false), &mut out).map_err(|failure| failure.error.to_string())?;
        Ok((exit.code(), String::from_utf8(out).expect("text")))
    }

    fn written(directory: &tempfile::TempDir, name: &str, text: &str) -> String {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a temporary file");
        path.to_str().expect("a name in UTF-8").to_owned()
    }

    #[test]
    fn check_tells_good_from_failing_from_broken() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let plan = "[[injection]]\nagent = \"a\"\nfailure_mode = \"FM-3.1\"\nwhen.call = 0\n\
                    manipulator.end_early = { text = \"done\" }\n[[check]]\nagent = \"a\"\nmessages = [\"user: q\"]\n\
                    reply = \"x\"\nexpect = \"done\"\n";
        let good = written(&directory, "good.toml", plan);
        let failing = written(&directory, "failing.toml", &plan.replace("expect = \"done\"", "expect = \"x\""));
        let broken = written(&directory, "broken.toml", "[[injection]]\n");
        let unresolved = written(&directory, "unresolved.toml", &plan.replace("when.call = 0", "when.step = 0"));
        assert_eq!(run_line(&["check", &good], false).map(|(code, _)| code), Ok(0));
        let (code, out) = run_line(&["check", &failing, &good], false).expect("runs");
        assert!(
            code == 1 && out.contains("failing.toml:6: check failed: the answer: expected\n  x\ngot\n  done"),
            "{out}"
        );
        assert!(
            run_line(&["check", &broken], false).expect_err("broken").contains("broken.toml:1:1: the injection has no")
        );
        assert!(run_line(&["check", &unresolved], false).expect_err("no run").contains("needs a recorded run"));
        assert!(
            run_line(&["check", "no-such.toml"], false).expect_err("missing").contains("cannot read `no-such.toml`")
        );
        let binary = directory.path().join("binary.toml");
        std::fs::write(&binary, [0xff, 0xfe]).expect("a temporary file");
        let binary = binary.to_str().expect("a name in UTF-8");
        assert!(run_line(&["check", binary], false).expect_err("binary").contains("utf-8"));
    }

    #[test]
    fn a_plan_without_tests_is_no_failure_and_an_explanation_is_json_where_that_is_asked_for() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let plan = "[[injection]]\nagent = \"a\"\nfailure_mode = \"FM-3.1\"\nwhen.call = 0\n\
                    manipulator.end_early = { text = \"done\" }\n";
        let plain = written(&directory, "plain.toml", plan);
        let (code, out) = run_line(&["check", &plain], false).expect("runs");
        assert!(
            code == 0 && out.ends_with("plain.toml: 1 injection, it reads well; it has no `[[check]]` of its own\n")
        );
        let (_, out) = run_line(&["explain", &plain], true).expect("runs");
        let out: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert!(out["explanation"].as_str().is_some_and(|text| text.starts_with("1 injection, seed")), "{out}");
    }

    #[test]
    fn list_names_everything_and_filters() {
        let (_, all) = run_line(&["list"], false).expect("runs");
        for entry in plan::catalogue() {
            assert!(all.contains(&format!("\n  {}", entry.name)), "{}", entry.name);
        }
        let (_, one) = run_line(&["list", "garble"], true).expect("runs");
        let one: serde_json::Value = serde_json::from_str(&one).expect("json");
        assert_eq!(one.pointer("/0/name").and_then(serde_json::Value::as_str), Some("garble"));
        assert_eq!(one.as_array().map(Vec::len), Some(1));
    }
}
