//! A plan in plain words: what each injection does, to whom, when.

use std::fmt::Write as _;

use super::{Injection, Operator, Plan, When};
use crate::manipulator::quoted;
use crate::trajectory::Side;

/// One paragraph for each injection.
pub fn explain(plan: &Plan) -> String {
    let injections = plan.injections.len();
    let mut text = format!("{injections} injection{}, seed {}\n", if injections == 1 { "" } else { "s" }, plan.seed);
    for (number, injection) in plan.injections.iter().enumerate() {
        let _ = writeln!(text, "\n{number}. {}", sentence(injection));
    }
    text
}

fn sentence(injection: &Injection) -> String {
    let Injection { agents, instance, failure_mode, when, choice, retell, name, operator, .. } = injection;
    let (what, does) = match operator {
        Operator::Manipulator { side: Side::Request, manipulator } => ("request", manipulator.explain()),
        Operator::Manipulator { side: Side::Response, manipulator } => ("response", manipulator.explain()),
        Operator::Fault(fault) => ("fault", fault.explain()),
    };
    let anyone = agents.0.iter().any(|pattern| pattern.to_string() == "*");
    let who = if anyone { "any agent".to_owned() } else { agents.to_string() };
    let who = instance.map_or(who.clone(), |instance| format!("instance {instance} of {who}"));
    let choice = choice.map(|choice| format!(" (answer {choice} only)")).unwrap_or_default();
    let mode = failure_mode
        .map(|mode| format!("\n   This plants {} ({}): the agent {}.", mode.code(), mode.name(), mode.meaning()));
    format!(
        "{} of {who}{}: it {does}{choice}. [{name}, {what}]{}{}",
        calls(when),
        conditions(when, !agents.is_single()),
        if *retell { "\n   A later call that goes on from the stored reply says it as edited." } else { "" },
        mode.unwrap_or_default()
    )
}

/// Which calls, as the start of a sentence.
fn calls(when: &When) -> String {
    let mut parts = Vec::new();
    if let Some(calls) = &when.call {
        parts.push(format!("call {}", list(calls)));
    }
    if let Some(steps) = &when.step {
        parts.push(format!("the call at step {} of the run", list(steps)));
    }
    if let Some(every) = when.every {
        parts.push(if every == 1 {
            "every call".to_owned()
        } else {
            format!("calls 0, {every}, {}, …", u64::from(every) * 2)
        });
    }
    if let Some(first) = when.first {
        parts.push(format!("each of the first {first} calls"));
    }
    if let Some(last_n) = when.last_n {
        parts.push(format!("each of the last {last_n} calls"));
    }
    if parts.is_empty() { "On every call".to_owned() } else { format!("On {}", parts.join(", being ")) }
}

/// The other conditions, as the middle of a sentence.
fn conditions(when: &When, several: bool) -> String {
    let mut parts = Vec::new();
    if let Some(tool) = &when.tool {
        parts.push(format!("that brings a new result of `{tool}`"));
    }
    if let Some(pattern) = &when.contains {
        parts.push(format!("whose request says {}", quoted(&pattern.to_string())));
    }
    if let Some(probability) = when.probability {
        parts.push(format!("with probability {probability}"));
    }
    if let Some(times) = when.max_times {
        let each = if several { " for each one that is met" } else { "" };
        parts.push(format!("at most {times} time{} each run{each}", if times == 1 { "" } else { "s" }));
    }
    if parts.is_empty() { String::new() } else { format!(", {}", parts.join(", ")) }
}

fn list(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    match numbers.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;

    #[test]
    fn sentences_say_who_when_and_what() {
        for (when, expected) in [
            ("always = true", "On every call of any agent: it"),
            ("call = [0, 2]", "On call 0 and 2 of any agent: it"),
            ("every = 3", "On calls 0, 3, 6, … of any agent: it"),
            ("first = 2, probability = 0.5", "On each of the first 2 calls of any agent, with probability 0.5: it"),
            (
                "tool = \"f\", max_times = 1",
                "On every call of any agent, that brings a new result of `f`, at most 1 time each run for each one that is met: it",
            ),
            ("step = 4", "On the call at step 4 of the run of any agent: it"),
        ] {
            let text = format!("[[injection]]\nagent = \"*\"\nwhen = {{ {when} }}\nfault.latency.ms = 5");
            let seen = explain(&parse(&text, "p").expect("reads"));
            assert!(seen.contains(expected), "{seen}");
            assert!(seen.contains("waits 5 ms before the upstream is asked, on every try. [latency, fault]"), "{seen}");
        }
    }
}
