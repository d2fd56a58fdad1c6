//! The verdict as a `JUnit` file, for CI servers: a case a call, a case a fault that was never delivered.

use std::fmt::{self, Write as _};

use super::{ClientVerdict, Weight};

/// The file. It has a failure or an error exactly where the verdict is not passed: a defect is a failure, a fault that
/// was never delivered an error, unless it is drawn by chance and another was delivered (then its case is skipped).
pub fn junit(run: &str, verdict: &ClientVerdict) -> String {
    let mut cases = String::new();
    // Writing to a string cannot fail.
    let counts = write_cases(&mut cases, verdict).unwrap_or_default();
    let JunitCounts { tests, failures, errors, skipped } = counts;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites><testsuite name=\"{}\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">\n{cases}</testsuite></testsuites>\n",
        escape(run)
    )
}

#[derive(Debug, Default)]
struct JunitCounts {
    tests: u32,
    failures: u32,
    errors: u32,
    skipped: u32,
}

fn write_cases(text: &mut String, verdict: &ClientVerdict) -> Result<JunitCounts, fmt::Error> {
    let mut counts = JunitCounts::default();
    for call in &verdict.calls {
        let operators = verdict
            .faults
            .iter()
            .filter(|fault| call.tries.iter().any(|tried| tried.faults.contains(&fault.injection())));
        let operators: Vec<&str> = operators.map(super::FaultVerdict::operator).collect();
        let what = if operators.is_empty() { "upstream".to_owned() } else { operators.join(", ") };
        let name = escape(&format!("{what} at call {} (step {})", call.call, call.step));
        let said = |remark: &super::Remark| format!("{}: {}", remark.rule, remark.seen);
        let defects: Vec<String> =
            call.remarks.iter().filter(|remark| remark.weight == Weight::Defect).map(said).collect();
        let all: Vec<String> = call.remarks.iter().map(said).collect();
        let all = escape(&format!("{}\n{}", call.way(), all.join("\n")));
        let inside = if defects.is_empty() {
            format!("<system-out>{all}</system-out>")
        } else {
            counts.failures += 1;
            format!("<failure message=\"{}\">{all}</failure>", escape(&defects.join("; ")))
        };
        counts.tests += 1;
        writeln!(text, "<testcase classname=\"{}\" name=\"{name}\">{inside}</testcase>", escape(call.agent.as_str()))?;
    }
    let any = verdict.faults.iter().any(|fault| fault.delivered > 0);
    for fault in verdict.faults.iter().filter(|fault| fault.delivered == 0) {
        let name = escape(&format!("{} (injection {})", fault.operator(), fault.injection()));
        let kind = if fault.by_chance() && any { "skipped" } else { "error" };
        *if kind == "error" { &mut counts.errors } else { &mut counts.skipped } += 1;
        counts.tests += 1;
        let why = "inconclusive: never delivered";
        let agents = escape(fault.agents());
        writeln!(text, "<testcase classname=\"{agents}\" name=\"{name}\"><{kind} message=\"{why}\"/></testcase>")?;
    }
    Ok(counts)
}

/// A text as an attribute or as content; XML has no way to write control characters.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() && c != '\n' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
