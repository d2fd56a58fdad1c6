//! The catalogue page of a folder of plans: one row a plan, read off the plans themselves.

use std::fmt::Write as _;

use super::{Injection, Operator, Plan, PlanError, parse};
use crate::trajectory::Side;

/// The page around its tables.
const PAGE: &str = include_str!("page.md");
/// Where the tables stand.
const TABLES: &str = "<!-- plans -->";
/// Headings of the folders that ship.
const HEADINGS: &[(&str, &str)] = &[
    ("", "For the example systems"),
    ("mast", "MAST: every failure mode, on both sides, by a model and by rule"),
    ("faults", "Faults"),
    ("tools", "Tools of MCP servers: what they are called with and what they give"),
    ("peers", "A2A peers: what they answer"),
];

/// The page for these plans: (path within the folder, text).
///
/// # Errors
/// [`PlanError`] of the first plan that cannot be read.
pub fn page(plans: &[(String, String)]) -> Result<String, PlanError> {
    let mut folders: Vec<(&str, Vec<String>)> = Vec::new();
    for (path, text) in plans {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let row = row(path, text, &parse(text, path)?);
        match folders.iter_mut().find(|(name, _)| *name == folder) {
            Some((_, rows)) => rows.push(row),
            None => folders.push((folder, vec![row])),
        }
    }
    let rank = |folder: &str| HEADINGS.iter().position(|(name, _)| *name == folder).unwrap_or(HEADINGS.len());
    folders.sort_by_key(|(folder, _)| (rank(folder), *folder));
    let mut tables = String::new();
    for (folder, mut rows) in folders {
        rows.sort();
        let heading = HEADINGS.iter().find(|(name, _)| *name == folder).map_or(folder, |(_, heading)| heading);
        let _ = writeln!(
            tables,
            "## {heading}\n\n| plan | agent | side | operator | failure mode | what |\n|---|---|---|---|---|---|"
        );
        for row in rows {
            let _ = writeln!(tables, "{row}");
        }
        tables.push('\n');
    }
    Ok(PAGE.replace(&format!("{TABLES}\n"), &tables))
}

fn row(path: &str, text: &str, plan: &Plan) -> String {
    let name = path.strip_suffix(".toml").unwrap_or(path);
    let of = |part: &dyn Fn(&Injection) -> String| {
        let mut parts: Vec<String> = Vec::new();
        for part in plan.injections.iter().map(part).filter(|part| !part.is_empty()) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join(", ")
    };
    let agents =
        of(&|injection| injection.agents.0.iter().map(|agent| format!("`{agent}`")).collect::<Vec<_>>().join(", "));
    let side = of(&|injection| match &injection.operator {
        Operator::Manipulator { side: Side::Request, .. } => "request".to_owned(),
        Operator::Manipulator { side: Side::Response, .. } => "response".to_owned(),
        Operator::Fault(_) => String::new(),
    });
    let operators = of(&|injection| format!("`{}`", injection.name));
    let modes = of(&|injection| {
        injection.failure_mode.map(|mode| format!("{} {}", mode.code(), mode.name())).unwrap_or_default()
    });
    format!("| [{name}]({path}) | {agents} | {side} | {operators} | {modes} | {} |", what(text))
}

/// What a plan says of itself: the comment at its beginning, without what other columns hold.
fn what(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    let said = lines.join(" ");
    let said = said.split_once(" side, ").map_or(said.as_str(), |(_, said)| said);
    said.trim_end_matches('.').replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_off_plans() {
        let plan = "# The solver | is hasty.\n# Very.\n[[injection]]\nagent = [\"a\", \"b\"]\nfailure_mode = \"FM-3.1\"\nwhen.call = 0\n\
                    manipulator.end_early = {}\n[[injection]]\nagent = \"c\"\nwhen.call = 0\nfault.hang = {}\n";
        let plans = [("own/hasty.toml".to_owned(), plan.to_owned())];
        let page = page(&plans).expect("a page");
        let row = "| [own/hasty](own/hasty.toml) | `a`, `b`, `c` | response | `end_early`, `hang` | \
                   FM-3.1 premature termination | The solver \\| is hasty. Very |";
        assert!(page.contains("## own\n\n") && page.contains(row), "{page}");
        assert!(!page.contains(TABLES) && page.contains("## Writing one"));
        assert!(super::page(&[("x.toml".to_owned(), "[[injection]]".to_owned())]).is_err());
    }
}
