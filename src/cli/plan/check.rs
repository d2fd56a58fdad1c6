//! `aegis plan check`: what is found about plan files.

use crate::cli::printed::{CheckedPlan, FailedCheck, ImpossibleMode, MatchedInjection};
use std::{fmt::Write as _, path::Path};

use super::read;
use crate::{
    cli::{
        Config, Exit, Failure, escape,
        screen::{Colour, Screen},
    },
    plan::{self, Plan},
    trajectory::{Trajectory, nearest},
};

/// What was found about one plan file.
#[derive(Debug)]
pub(super) struct Checked {
    file: String,
    injections: usize,
    /// Failed checks: the line of each, and what was not as expected.
    failures: Vec<(usize, String)>,
    checks: usize,
    matched: Vec<plan::Matched>,
    /// Agents that the roster does not know, a line each.
    strangers: Vec<String>,
}

/// The names of a roster, and where they stand. A file that is not named and cannot be used has none.
pub(super) fn roster(config: Option<&Path>) -> Result<Vec<String>, Failure> {
    let config = match (Config::load(config), config) {
        (Err(failure), Some(_)) => return Err(failure),
        (read, _) => read.unwrap_or_default(),
    };
    Ok(config.agent.into_iter().filter_map(|rule| rule.name).collect())
}

/// Agents of a plan that a roster does not name. They may be named elsewhere: on the wire, by path or header.
fn strangers(plan: &Plan, roster: &[String]) -> Vec<String> {
    if roster.is_empty() {
        return Vec::new();
    }
    let names = || roster.iter().map(String::as_str);
    let aimed = plan.injections.iter().flat_map(|injection| &injection.agents.0);
    let unknown = aimed.filter(|pattern| !names().any(|name| pattern.matches(name)));
    let told = unknown.map(|pattern| {
        let pattern = pattern.to_string();
        let near = nearest(&pattern, names()).map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
        format!("no [[agent]] of the configuration is called `{pattern}`{near}")
    });
    told.collect()
}

pub(super) fn check(file: &Path, run: Option<&Trajectory>, roster: &[String]) -> Result<Checked, Failure> {
    let plan = read(file)?;
    let file = file.display().to_string();
    let matched = if let Some(run) = run {
        plan::against(&plan, run).map_err(|error| Failure::new(Exit::Usage, format!("{file}: {error}")))?
    } else {
        plan::require_resolved(&plan, &file, Some("--against RUN_DIR"))
            .map_err(|errors| Failure::new(Exit::Usage, errors))?;
        Vec::new()
    };
    let reports = plan.run_checks().into_iter();
    let failures = reports.flat_map(|report| report.failures.into_iter().map(move |failure| (report.line, failure)));
    Ok(Checked {
        failures: failures.collect(),
        strangers: if run.is_some() { Vec::new() } else { strangers(&plan, roster) },
        injections: plan.injections.len(),
        checks: plan.checks.len(),
        file,
        matched,
    })
}

impl Checked {
    pub(super) fn passed(&self) -> bool {
        let is_planted = |matched: &plan::Matched| !matched.steps.is_empty() && !matched.is_impossible();
        self.failures.is_empty() && self.matched.iter().all(is_planted)
    }

    /// What is worth a look and fails nothing.
    pub(super) fn notes(&self) -> usize {
        let in_part = self.matched.iter().filter(|matched| !matched.is_impossible());
        self.strangers.len() + in_part.map(|matched| matched.impossible.len()).sum::<usize>()
    }

    pub(super) fn data(&self) -> CheckedPlan<'_> {
        let failures = self.failures.iter().map(|(line, failure)| FailedCheck { line: *line, failure });
        let impossible = |one: &plan::ImpossibleStep| ImpossibleMode {
            step: one.step,
            failure_mode: one.mode.code(),
            unmet: one.unmet.name(),
            why: one.unmet.missing(),
        };
        let matched = self.matched.iter().map(|matched| MatchedInjection {
            injection: matched.injection,
            steps: &matched.steps,
            nearest_miss: &matched.nearest_miss,
            impossible: matched.impossible.iter().map(impossible).collect(),
        });
        CheckedPlan {
            file: &self.file,
            passed: self.passed(),
            injections: self.injections,
            checks: self.checks,
            failures: failures.collect(),
            matched: matched.collect(),
            notes: &self.strangers,
        }
    }
}

pub(super) fn texts(checked: &[Checked], screen: Screen) -> String {
    let mut text = String::new();
    let word = |colour, word: &str| screen.paint(colour, word);
    for Checked { file, injections, failures, checks, matched, strangers } in checked {
        let file = escape(file);
        for stranger in strangers {
            let _ = writeln!(text, "{file}: {}: {}", word(Colour::Doubtful, "note"), escape(stranger));
        }
        for (line, failure) in failures {
            let _ = writeln!(text, "{file}:{line}: {}: {}", word(Colour::Bad, "check failed"), escape(failure));
        }
        for plan::Matched { injection, steps, nearest_miss, impossible, .. } in matched {
            let steps = steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let _ = match nearest_miss {
                Some(miss) => writeln!(text, "{file}: injection {injection} would meet no step: {}", escape(miss)),
                None => writeln!(text, "{file}: injection {injection} would meet step {steps}"),
            };
            for plan::ImpossibleStep { step, mode, unmet } in impossible {
                let (code, name, missing) = (mode.code(), mode.name(), unmet.missing());
                let _ = writeln!(
                    text,
                    "{file}: injection {injection}: {}: {code} {name} cannot be at step {step}: {missing}",
                    word(Colour::Doubtful, "note")
                );
            }
        }
        if failures.is_empty() {
            let plural = |count: usize| if count == 1 { "" } else { "s" };
            let (several, many) = (plural(*injections), plural(*checks));
            let tested = match checks {
                0 => "it reads well; it has no `[[check]]` of its own".to_owned(),
                _ => format!("{checks} check{many} passed"),
            };
            let _ = writeln!(text, "{file}: {injections} injection{several}, {tested}");
        }
    }
    text
}
