//! Tests of the plans that ship with the crate: they read, their checks pass, the catalogue page knows them, and the
//! schema beside them is today's.

use std::path::{Path, PathBuf};

use super::{Operator, parse, schema};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans")
}

/// Every plan under `plans/`, by its path there, with its text.
fn shipped() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("the folder of plans") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                // Templates have a format of their own, and tests beside it.
                folders.extend((!path.ends_with("templates")).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let name = path.strip_prefix(folder()).expect("inside").to_string_lossy().replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path).expect("a text")));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 14 + 28, "the plans are where they were");
    found
}

#[test]
fn every_plan_passes_its_own_checks() {
    for (name, text) in shipped() {
        let plan = parse(&text, &name).unwrap_or_else(|error| panic!("error: {error}"));
        assert!(!plan.injections.is_empty() && !plan.checks.is_empty(), "{name} plants something and checks it");
        for report in plan.run_checks() {
            assert!(report.failures.is_empty(), "plans/{name}:{}: {}", report.line, report.failures.join("\n"));
        }
    }
}

#[test]
fn the_catalogue_page_has_one_true_row_for_each_plan() {
    let page = |name: &str| std::fs::read_to_string(folder().join(name)).expect("the page");
    let named = page("faults/agentchaos/README.md");
    let page = page("README.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| [")).collect();
    let plans = shipped();
    assert_eq!(rows.len(), plans.len(), "one row for each plan");
    let chaos: Vec<_> = plans.iter().filter_map(|(name, _)| name.strip_prefix("faults/agentchaos/")).collect();
    assert_eq!(named.lines().filter(|line| line.starts_with("| [")).count(), chaos.len(), "and in their own page");
    assert!(chaos.iter().all(|name| named.contains(&format!("]({name})"))), "each of its plans");
    for (name, text) in plans {
        let row =
            rows.iter().find(|row| row.contains(&format!("({name})"))).unwrap_or_else(|| panic!("no row for {name}"));
        for injection in &parse(&text, &name).expect("reads").injections {
            assert!(row.contains(&format!("`{}`", injection.name)), "{row}");
            for agent in &injection.agents.0 {
                assert!(row.contains(&format!("`{agent}`")), "{row}");
            }
            match (&injection.operator, injection.failure_mode) {
                (Operator::Manipulator { .. }, Some(mode)) => assert!(row.contains(mode.code()), "{row}"),
                (operator, mode) => {
                    let has_no_mode = matches!(operator, Operator::Fault(_)) || !injection.agents.are_agents();
                    assert!(has_no_mode && mode.is_none(), "{row}");
                }
            }
        }
    }
}

#[test]
fn the_catalogue_page_is_what_its_command_writes() {
    let written = std::fs::read_to_string(folder().join("README.md")).unwrap_or_default();
    let current = super::page(&shipped()).unwrap_or_else(|error| panic!("error: {error}"));
    assert!(written == current, "write it anew: `aegis plan catalogue plans > plans/README.md`");
}

/// Every mode, on each side, by a model; each plan says code, name and taxonomy version.
#[test]
fn mast_is_whole() {
    use crate::trajectory::{FailureMode, Side, TAXONOMY};
    let plans = shipped();
    for (mode, side) in FailureMode::ALL.iter().flat_map(|mode| [(*mode, "request"), (*mode, "response")]) {
        let code = mode.code().to_lowercase();
        let (name, text) = plans
            .iter()
            .find(|(name, _)| *name == format!("mast/{code}-{side}.toml"))
            .unwrap_or_else(|| panic!("no plan of {code}, {side} side, by a model"));
        let plan = parse(text, name).expect("reads");
        let [injection] = plan.injections.as_slice() else { panic!("{name} plants one error") };
        assert!(injection.asks_model() && injection.failure_mode == Some(mode), "{name}");
        let expected = if side == "request" { Side::Request } else { Side::Response };
        assert!(matches!(&injection.operator, Operator::Manipulator { side, .. } if *side == expected), "{name}");
    }
    for (name, text) in plans.iter().filter(|(name, _)| name.starts_with("mast/")) {
        let plan = parse(text, name).expect("reads");
        let mode = plan.injections.first().and_then(|injection| injection.failure_mode).expect("a mode");
        let head = format!("# {} {} ({TAXONOMY}), ", mode.code(), mode.name());
        assert!(text.starts_with(&head), "{name}: expected {head}");
        assert!(name.starts_with(&format!("mast/{}-", mode.code().to_lowercase())), "{name}");
    }
    let rules = plans.iter().filter(|(name, _)| name.ends_with("-rule.toml")).count();
    assert!(rules >= 12, "rule-based variants: {rules}");
}

/// The page's own example is a plan, too.
#[test]
fn the_catalogue_page_teaches_a_plan_that_works() {
    let page = std::fs::read_to_string(folder().join("README.md")).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let plan = parse(example, "README.md").unwrap_or_else(|error| panic!("error: {error}"));
    assert!(plan.run_checks().iter().all(|report| report.failures.is_empty()), "{:?}", plan.run_checks());
}

#[test]
fn the_schema_beside_the_plans_is_current() {
    let written = std::fs::read_to_string(folder().join("plan.schema.json")).unwrap_or_default();
    let current = serde_json::to_string_pretty(&schema()).expect("serialises") + "\n";
    assert!(written == current, "write it anew: `aegis plan schema > plans/plan.schema.json`");
}

/// AgentChaos' names: fault × target × strategy, eight compound ones, nine at a position.
#[test]
fn every_fault_of_agentchaos_has_a_plan_of_its_name() {
    let mut names: Vec<String> = Vec::new();
    for target in ["llm", "tool"] {
        for fault in ["error", "timeout", "empty", "truncate", "corrupt", "schema"] {
            names.extend(["single", "persistent", "intermittent", "burst"].map(|s| format!("{target}_{fault}_{s}")));
        }
    }
    let compound =
        "api_degradation content_filter max_tokens proxy_html stale_cache stale_data wrong_entity slow_response";
    names.extend(compound.split(' ').map(str::to_owned));
    for fault in ["error", "timeout", "schema"] {
        names.extend(["early", "mid", "late"].map(|position| format!("llm_{fault}_{position}")));
    }
    assert_eq!(names.len(), 65);
    let found: Vec<String> = shipped().into_iter().map(|(name, _)| name).collect();
    for name in &names {
        assert!(found.contains(&format!("faults/agentchaos/{name}.toml")), "{name}");
    }
    assert_eq!(found.iter().filter(|name| name.starts_with("faults/agentchaos/")).count(), 65);
}

/// `docs/faults.md`: each way to fail is an injection that reads, or says why it is none; no operator is left out.
#[test]
fn every_way_to_fail_is_here_or_says_why() {
    let page = std::fs::read_to_string(folder().join("../docs/faults.md")).expect("the page");
    let mut named = std::collections::BTreeSet::new();
    let mut absent = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what")) {
        let (_, rest) = row.trim_start_matches("| ").split_once(" | ").expect("a second column");
        let (operator, note) =
            rest.rsplit_once(" |").and_then(|(rest, _)| rest.rsplit_once(" |")).unwrap_or((rest, ""));
        if operator == "—" {
            assert!(note.trim().len() > 20, "says why: {row}");
            absent += 1;
            continue;
        }
        let operator = operator.trim_matches('`');
        let mode = if operator.starts_with("manipulator.") { "failure_mode = \"FM-2.6\"\n" } else { "" };
        let side = ["replace_text", "rewrite_with_model", "neutral_change"].iter().any(|name| operator.contains(name));
        let asked = operator.contains("messages =") || operator.contains("message =");
        let side = match (side, asked) {
            (true, true) => "side = \"request\"\n",
            (true, false) => "side = \"response\"\n",
            _ => "",
        };
        let text = format!("[[injection]]\nagent = \"*\"\nwhen.always = true\n{mode}{side}{operator}\n");
        let plan = parse(&text, "docs/faults.md").unwrap_or_else(|error| panic!("{row}\n{error}"));
        named.extend(plan.injections.iter().map(|injection| injection.name.clone()));
    }
    assert!(absent < 20, "{absent} ways are not here");
    for entry in super::catalogue() {
        assert!(named.contains(entry.name), "docs/faults.md says what `{}` is for", entry.name);
    }
}
