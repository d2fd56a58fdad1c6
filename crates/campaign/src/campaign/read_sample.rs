//! `[sample]` checked: templates read, narrowed to the modes and sides that are asked for.

use std::collections::BTreeMap;

use toml::Spanned;

use super::{
    definition::{Files, Planting, SampleSpace},
    file::{CallPosition, SampleEntry},
    read_named::{at_least_one, indices, read_file, read_plan, stem},
};
use crate::{
    plan::{self, AgentPattern, Operator, Problem},
    trajectory::{FailureMode, Pattern, Side},
};

/// What may be drawn.
pub(super) fn check(
    entry: &Spanned<SampleEntry>,
    systems: &[String],
    files: &dyn Files,
    problems: &mut Vec<Problem>,
) -> Option<SampleSpace> {
    let span = entry.span();
    let entry = entry.get_ref();
    let modes = modes(entry.modes.as_deref(), problems);
    let agents = patterns(entry.agents.as_deref().unwrap_or_default(), problems);
    let mut mode_agents = BTreeMap::new();
    for (code, agents) in entry.mode_agents.iter().flatten() {
        match FailureMode::parse(code) {
            Ok(mode) => drop(mode_agents.insert(mode, patterns(agents, problems))),
            Err(error) => problems.push(Problem::new(span.clone(), format!("`mode_agents`: {error}"))),
        }
    }
    let mut targets = Vec::new();
    for count in entry.targets.iter().flatten() {
        targets.push(at_least_one(Some(count), 1, "targets", problems));
    }
    let per_task = at_least_one(entry.per_task.as_ref(), 1, "per_task", problems);
    let systems = indices(entry.systems.as_deref(), systems, problems);
    let Some(patterns) = &entry.templates else {
        let problem = Problem::new(span, "the sample has no `templates`");
        problems.push(problem.hint("name plan files: `templates = [\"plans/mast/*.toml\"]`"));
        return None;
    };
    let mut templates = Vec::new();
    for pattern in patterns.get_ref() {
        for file in matching(pattern, files, problems) {
            plantings(&file, pattern, files, problems, &mut templates);
        }
    }
    let wanted = |planting: &Planting| {
        let side = entry.sides.as_ref().is_none_or(|sides| sides.contains(&planting.side));
        side && modes.as_ref().is_none_or(|modes| planting.mode.is_some_and(|mode| modes.contains(&mode)))
    };
    templates.retain(wanted);
    if templates.is_empty() && problems.is_empty() {
        problems.push(Problem::new(patterns.span(), "no template plants what `modes` and `sides` ask for"));
    }
    let positions = entry.positions.clone().filter(|list| !list.is_empty()).unwrap_or(vec![CallPosition::First]);
    let targets = if targets.is_empty() { vec![1] } else { targets };
    Some(SampleSpace { templates, agents, mode_agents, targets, positions, per_task, systems })
}

/// Agents as they are named.
fn patterns(names: &[Spanned<String>], problems: &mut Vec<Problem>) -> Vec<AgentPattern> {
    let pattern = |name: &Spanned<String>| {
        let read = AgentPattern::parse(name.get_ref());
        read.map_err(|error| problems.push(Problem::new(name.span(), error.to_string()))).ok()
    };
    names.iter().filter_map(pattern).collect()
}

fn modes(entry: Option<&[Spanned<String>]>, problems: &mut Vec<Problem>) -> Option<Vec<FailureMode>> {
    let read = |code: &Spanned<String>| FailureMode::parse(code.get_ref()).map_err(|error| (code.span(), error));
    let mut modes = Vec::new();
    for code in entry? {
        match read(code) {
            Ok(mode) => modes.push(mode),
            Err((span, error)) => problems.push(Problem::new(span, error.to_string())),
        }
    }
    Some(modes)
}

/// The files that a pattern names: a `*` in the last part of the path stands for any text.
fn matching(pattern: &Spanned<String>, files: &dyn Files, problems: &mut Vec<Problem>) -> Vec<String> {
    let text = pattern.get_ref();
    let (directory, name) = text.rsplit_once('/').unwrap_or((".", text));
    if !name.contains('*') {
        let is_missing = files.read(text).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        // A folder of ready-made plans.
        let shipped = if is_missing { plan::shipped_as(text) } else { Vec::new() };
        return if shipped.is_empty() {
            vec![text.clone()]
        } else {
            shipped.iter().map(|plan| plan.name.to_owned()).collect()
        };
    }
    let expression = name.split('*').map(regex::escape).collect::<Vec<_>>().join(".*");
    let expression = match Pattern::new(&format!("^{expression}$")) {
        Ok(expression) => expression,
        Err(error) => {
            problems.push(Problem::new(pattern.span(), format!("`{name}` {error}")));
            return Vec::new();
        }
    };
    let names = match files.list(directory) {
        Ok(names) => names,
        Err(error) => {
            problems.push(Problem::new(pattern.span(), format!("cannot list `{directory}`: {error}")));
            return Vec::new();
        }
    };
    let found: Vec<String> = names
        .iter()
        .filter(|name| expression.regex().is_match(name))
        .map(|name| format!("{directory}/{name}"))
        .collect();
    if found.is_empty() {
        problems.push(Problem::new(pattern.span(), format!("no file of `{directory}` is named `{name}`")));
    }
    found
}

/// The injections of a template file; faults plant no failure mode and are left out.
fn plantings(
    file: &str,
    pattern: &Spanned<String>,
    files: &dyn Files,
    problems: &mut Vec<Problem>,
    into: &mut Vec<Planting>,
) {
    let Some(plan) = read_plan(files, file, pattern.span(), problems) else { return };
    let Some(text) = read_file(files, file, pattern.span(), problems) else { return };
    let written: toml::Table = match text.parse() {
        Ok(written) => written,
        Err(error) => return problems.push(Problem::new(pattern.span(), format!("`{file}` cannot be read: {error}"))),
    };
    // A plan of faults alone, or of none, has no such list.
    let entries = written.get("injection").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    for (injection, entry) in plan.injections.iter().zip(entries) {
        let Operator::Manipulator { side, .. } = &injection.operator else { continue };
        let mode = injection.failure_mode;
        let servers = (!injection.agents.are_agents()).then(|| injection.agents.clone());
        let toml::Value::Table(mut written) = entry else { continue };
        for key in ["agent", "tool", "peer", "when"] {
            written.remove(key);
        }
        // Said even where it is implied, so that a plan made of it can be read alone.
        let word = if *side == Side::Request { "request" } else { "response" };
        written.insert("side".to_owned(), word.into());
        let manipulator = injection.name.clone();
        let (name, questions) = (stem(file), injection.questions());
        into.push(Planting { name, injection: written, mode, servers, side: *side, manipulator, questions });
    }
}
