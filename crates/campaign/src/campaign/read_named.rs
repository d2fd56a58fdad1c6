//! What a campaign file names: files, plans, systems; and its counts.

use std::ops::Range;

use toml::Spanned;

use super::definition::Files;
use crate::{
    plan::{self, Problem},
    trajectory::nearest,
};

/// A count that must not be 0.
pub(super) fn at_least_one(entry: Option<&Spanned<u32>>, default: u32, name: &str, problems: &mut Vec<Problem>) -> u32 {
    if let Some(zero) = entry.filter(|count| *count.get_ref() == 0) {
        problems.push(Problem::new(zero.span(), format!("`{name}` is 0: expected a whole number from 1")));
    }
    entry.map_or(default, |count| *count.get_ref())
}

/// A plan that the campaign names; what is wrong in it is told with its own place.
pub(super) fn read_plan(
    files: &dyn Files,
    file: &str,
    span: Range<usize>,
    problems: &mut Vec<Problem>,
) -> Option<plan::Plan> {
    let text = read_file(files, file, span.clone(), problems)?;
    plan::parse(&text, file).map_err(|error| problems.push(Problem::new(span, one_line(&error.to_string())))).ok()
}

/// The message of a nested error on one line: its first.
fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

pub(super) fn read_file(
    files: &dyn Files,
    file: &str,
    span: Range<usize>,
    problems: &mut Vec<Problem>,
) -> Option<String> {
    let refused = |error: std::io::Error| problems.push(Problem::new(span, format!("cannot read `{file}`: {error}")));
    files.read(file).map_err(refused).ok()
}

/// The systems of these names by index; all if none are given.
pub(super) fn indices(only: Option<&[Spanned<String>]>, systems: &[String], problems: &mut Vec<Problem>) -> Vec<usize> {
    let Some(only) = only else { return (0..systems.len()).collect() };
    let mut found = Vec::new();
    for name in only {
        match systems.iter().position(|system| system == name.get_ref()) {
            Some(index) => found.push(index),
            None => problems.push(unknown("system", name, systems.iter().map(String::as_str))),
        }
    }
    found
}

/// A name that nothing has.
pub(super) fn unknown<'a>(what: &str, name: &Spanned<String>, known: impl Iterator<Item = &'a str>) -> Problem {
    let problem = Problem::new(name.span(), format!("no {what} is called `{}`", name.get_ref()));
    match nearest(name.get_ref(), known) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem,
    }
}

/// A file's name without directory and ending.
pub(super) fn stem(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    // Names of ready-made plans have points and no ending.
    name.strip_suffix(".toml").unwrap_or(name).to_owned()
}
