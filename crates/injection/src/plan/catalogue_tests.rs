//! Tests of [`super`]: every entry of the catalogue is documented, and its example is a plan whose checks pass.

use std::collections::HashSet;

use super::*;
use crate::plan::{explain, parse};

#[test]
fn every_example_is_a_plan_whose_checks_pass() {
    for entry in catalogue() {
        let name = entry.name;
        let plan = parse(&entry.example, name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(plan.injections.iter().any(|injection| injection.name == name), "the example of {name} uses it");
        assert!(!plan.checks.is_empty(), "the example of {name} has a check");
        for report in plan.run_checks() {
            assert_eq!(report.failures, Vec::<String>::new(), "example of {name}");
        }
        assert!(explain(&plan).contains(name));
    }
}

#[test]
fn every_entry_and_parameter_is_documented() {
    let mut names = HashSet::new();
    for entry in catalogue() {
        assert!(names.insert(entry.name), "{} is listed once", entry.name);
        assert!(entry.summary.ends_with('.'), "{}: {}", entry.name, entry.summary);
        for parameter in &entry.parameters {
            assert!(!parameter.summary.is_empty() && !parameter.takes.is_empty(), "{}.{}", entry.name, parameter.name);
        }
    }
    assert!(names.len() >= 16, "none was lost");
}

/// What serde calls an operator is what its file is called: the list derives one from the type, one from the file.
#[test]
fn names_are_file_names() {
    for entry in catalogue() {
        let key = if entry.operation == Operation::Fault { "fault" } else { "manipulator" };
        let text = format!("[[injection]]\nagent = \"a\"\nwhen.call = 0\n{key}.{} = 1", entry.name);
        let error = parse(&text, "p").expect_err("1 is no table").to_string();
        assert!(!error.contains("unknown"), "{error}");
    }
}

/// An agent that reads a planted text must not be told that it is planted.
#[test]
fn default_texts_do_not_speak_of_injection() {
    for entry in catalogue() {
        for default in entry.parameters.iter().filter_map(|parameter| parameter.default.as_ref()) {
            let text = default.to_string().to_lowercase();
            for word in ["inject", "corrupt", "manipulat", "fault", "aegis", "fm-", "failure mode", "simulat"] {
                assert!(!text.contains(word), "{}: {text}", entry.name);
            }
        }
    }
}

#[test]
fn the_schema_knows_every_name() {
    let schema = serde_json::to_string(&schema()).expect("serialises");
    for entry in catalogue() {
        assert!(schema.contains(&format!("\"{}\"", entry.name)), "{}", entry.name);
        for parameter in entry.parameters {
            assert!(schema.contains(&format!("\"{}\"", parameter.name)), "{}.{}", entry.name, parameter.name);
        }
    }
}
