//! A wide set in which nothing tells raises nothing; each seeded shortcut raises its rule.

use std::{collections::BTreeSet, path::Path};

use serde_json::json;

use super::*;
use crate::dataset::{
    Mode, Sample, Split,
    lint::{
        defects::{Samples, answer, truth},
        tests::{lint_dir, shown, write},
    },
    samples::{clean, corrupted, step},
};

/// A rule and what seeds its defect in [`wide`].
pub(in crate::dataset::lint) type Seeded = (Rule, &'static str, fn(&mut Samples));

const AGENTS: [&str; 3] = ["planner", "solver", "critic"];

/// Sixty tasks with a clean run and a failure each: at another of five steps each time, with words as long as the twin's.
fn wide() -> Samples {
    (0..60).flat_map(|n| [right(n), wrong(n)]).collect()
}

fn right(n: u32) -> Sample {
    let mut sample = clean(n);
    sample.steps = (0..5).map(|number| says(n, number, draw(n, number, 0))).collect();
    sample
}

fn wrong(n: u32) -> Sample {
    let mut sample = corrupted(n);
    let at = planted(n);
    sample.steps = right(n).steps;
    sample.steps[at as usize] = says(n, at, draw(n, at, 1));
    let step = sample.steps[at as usize].clone();
    let error = &mut truth(&mut sample).errors[0];
    (error.agent, error.step, error.call) = (step.agent, Some(at), Some(step.call));
    truth(&mut sample).changes[0].step = at;
    sample
}

fn planted(n: u32) -> u32 {
    draw(n, 7, 3) % 5
}

fn says(n: u32, number: u32, drawn: u32) -> crate::dataset::SampleStep {
    let words = ["adds", "takes", "counts", "weighs", "finds"][(drawn % 5) as usize];
    let agent = AGENTS[(number % 3) as usize];
    step(
        number,
        agent,
        number / 3,
        &format!("Go on with {n} at {number}."),
        &format!("It {words} {} pears.", 10 + drawn % 89),
    )
}

/// A draw that depends on its arguments alone.
fn draw(n: u32, number: u32, salt: u32) -> u32 {
    let hash = XxHash3_64::oneshot(format!("{n} {number} {salt}").as_bytes());
    u32::try_from(hash % 100_003).expect("small")
}

fn failures(samples: &mut Samples) -> impl Iterator<Item = (&mut Sample, u32)> {
    let failures = samples.iter_mut().filter(|sample| sample.kind == SampleKind::Failure);
    failures.zip(0..).map(|(sample, n)| (sample, planted(n)))
}

/// Has each altered reply be set otherwise.
fn typed(set: &mut Samples, change: fn(&str) -> String) {
    for (sample, at) in failures(set) {
        let said = sample.steps[at as usize].output.clone().expect("an answer").text;
        answer(sample, at as usize, &change(&said));
    }
}

/// Has all replies be of two lines.
fn lines(set: &mut Samples) {
    for step in set.iter_mut().flat_map(|sample| &mut sample.steps) {
        let said = step.output.as_mut().expect("an answer");
        said.text = said.text.replace(' ', "\n");
    }
}

pub(in crate::dataset::lint) const SEEDED: &[Seeded] = &[
    (Rule::ShortcutWords, "a word that only edits say", |set| {
        for (sample, at) in failures(set) {
            answer(sample, at as usize, "It hereby 44 pears.");
        }
    }),
    (Rule::ShortcutDesign, "a mode that is planted at one end of the log alone", |set| {
        for (sample, at) in failures(set) {
            let code = match at {
                0 => "FM-3.1",
                4 => "FM-2.4",
                _ => "FM-2.6",
            };
            truth(sample).errors[0].failure_mode = crate::trajectory::FailureMode::parse(code).ok().map(Mode::from);
        }
    }),
    (Rule::GivesItselfAway, "the few words that a manipulator writes", |set| {
        for (sample, at) in failures(set) {
            answer(sample, at as usize, "It stops, for all 44 pears are known.");
        }
    }),
    (Rule::ShortcutLength, "cut to a word", |set| {
        for (sample, at) in failures(set) {
            answer(sample, at as usize, "It.");
        }
    }),
    (Rule::ShortcutLength, "padded", |set| {
        for (sample, at) in failures(set) {
            answer(sample, at as usize, &"It adds 12 pears. ".repeat(5));
        }
    }),
    (Rule::ShortcutFigures, "a finish reason of edits alone", |set| {
        for (sample, at) in failures(set) {
            sample.steps[at as usize].finish_reason = Some("length".to_owned());
        }
    }),
    (Rule::ShortcutFigures, "counts of tokens that stayed behind", |set| {
        for sample in &mut *set {
            for step in &mut sample.steps {
                step.extra.insert("usage".to_owned(), json!({"completion_tokens": 6}));
            }
        }
        for (sample, at) in failures(set) {
            sample.steps[at as usize].extra.clear();
        }
    }),
    (Rule::ShortcutPosition, "ever the last step but one", |set| {
        let again: Vec<Sample> = (0..60).map(right).collect();
        for (((sample, at), right), n) in failures(set).zip(again).zip(0..) {
            sample.steps[at as usize] = right.steps[at as usize].clone();
            let step = says(n, 3, draw(n, 3, 1));
            let error = &mut truth(sample).errors[0];
            (error.agent, error.step, error.call) = (step.agent.clone(), Some(3), Some(step.call));
            truth(sample).changes[0].step = 3;
            sample.steps[3] = step;
        }
    }),
    (Rule::ShortcutTypography, "a doubled blank", |set| typed(set, |said| said.replacen(' ', "  ", 1))),
    (Rule::ShortcutTypography, "a blank at the end", |set| typed(set, |said| format!("{said} "))),
    (Rule::ShortcutTypography, "a line end at the end", |set| typed(set, |said| format!("{said}\n"))),
    (Rule::ShortcutTypography, "a no-break space", |set| typed(set, |said| said.replacen(' ', "\u{a0}", 1))),
    (Rule::ShortcutTypography, "the line ends of another system", |set| {
        lines(set);
        typed(set, |said| said.replace('\n', "\r\n"));
    }),
    (Rule::ShortcutTypography, "a small first letter", |set| typed(set, |said| said.replacen('I', "i", 1))),
    (Rule::ShortcutTypography, "a character without width", |set| {
        typed(set, |said| said.replacen(' ', " \u{200b}", 1))
    }),
    (Rule::ShortcutEnd, "nothing behind the error", |set| {
        for (sample, at) in failures(set) {
            sample.steps.truncate(at as usize + 1);
        }
    }),
    (Rule::ShortcutSystem, "all failures are of one system", |set| {
        let mut other: Samples = (60..70).map(right).collect();
        other.iter_mut().for_each(|sample| sample.system = "trio".to_owned());
        set.extend(other);
    }),
    (Rule::ShortcutPart, "a part without a failure", |set| {
        let mut other: Samples = (60..70).map(right).collect();
        for sample in &mut other {
            sample.split = Some(Split::Test);
            sample.task.question = format!("{} weighs how much, told as {}?", sample.task.id, sample.task.answer);
        }
        set.extend(other);
    }),
    (Rule::ShortcutCopies, "the same question with another number in another part", |set| {
        let parts = [Split::Train, Split::Test];
        set.iter_mut().enumerate().for_each(|(number, sample)| sample.split = Some(parts[number / 2 % 2]));
    }),
    (Rule::ShortcutCopies, "the same question with another first name in another part", |set| {
        for sample in set.iter_mut().take(2) {
            sample.split = Some(Split::Test);
            sample.task.question = sample.task.question.replace("Ada", "Bea");
        }
    }),
    (Rule::ShortcutShape, "a doubt wherever something was planted", |set| {
        for (sample, at) in failures(set) {
            let said = sample.steps[at as usize].output.clone().expect("an answer").text;
            answer(sample, at as usize, &said.replace("It ", "Perhaps it "));
        }
    }),
];

fn found(dir: &Path, samples: &[Sample]) -> (BTreeSet<Rule>, String) {
    write(dir, samples);
    let report = lint_dir(dir);
    let rules = report.findings.iter().map(|found| found.rule).filter(|rule| rule.is_shortcut());
    (rules.collect(), shown(&report))
}

#[test]
fn where_nothing_tells_nothing_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let (rules, said) = found(dir.path(), &wide());
    assert!(rules.is_empty(), "{said}");
}

#[test]
fn every_seeded_shortcut_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut wrong = Vec::new();
    for (rule, what, seed) in SEEDED {
        let mut samples = wide();
        seed(&mut samples);
        let (rules, said) = found(dir.path(), &samples);
        // What tells by its words or length has a shape too.
        let beside = [*rule, Rule::GivesItselfAway, Rule::ShortcutShape, Rule::ShortcutTypography, Rule::ShortcutWords];
        if !rules.contains(rule) || !rules.iter().all(|found| beside.contains(found)) {
            wrong.push(format!("{} ({what}): {said}", rule.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_manipulator_gives_itself_away_in_few_tasks_too() {
    let dir = tempfile::tempdir().expect("a directory");
    for (what, seed) in [
        ("words", SEEDED[0].2),
        ("finish_reason", SEEDED.iter().find(|(rule, ..)| *rule == Rule::ShortcutFigures).expect("seeded").2),
        ("a doubled blank", SEEDED.iter().find(|(_, what, _)| *what == "a doubled blank").expect("seeded").2),
    ] {
        for (tasks, found) in [(3, false), (4, true), (8, true)] {
            let mut samples = wide();
            seed(&mut samples);
            samples.truncate(2 * tasks);
            write(dir.path(), &samples);
            let report = lint_dir(dir.path());
            let away = report.findings.iter().find(|found| found.rule == Rule::GivesItselfAway);
            assert_eq!(away.is_some(), found, "{what} over {tasks}: {}", shown(&report));
            let interval = if tasks == 4 { "1.00 [0.51, 1.00]" } else { "1.00 [0.68, 1.00]" };
            assert!(away.is_none_or(|away| away.what.contains(interval)), "{}", shown(&report));
        }
    }
}

#[test]
fn a_mode_that_stands_alone_is_odd() {
    let dir = tempfile::tempdir().expect("a directory");
    for (others, odd) in [(1, true), (3, true), (20, false)] {
        let mut samples = wide();
        for (sample, _) in failures(&mut samples) {
            let error = &mut truth(sample).errors[0];
            error.agent = crate::trajectory::AgentName::parse("solver").expect("a name");
        }
        for (sample, _) in failures(&mut samples).take(others) {
            truth(sample).errors[0].failure_mode = Some(crate::trajectory::FailureMode::StepRepetition.into());
        }
        write(dir.path(), &samples);
        let report = lint_dir(dir.path());
        let found = report.findings.iter().filter(|found| found.rule == Rule::OddMode).count();
        assert_eq!(found, if odd { others } else { 0 }, "{others}: {}", shown(&report));
    }
}

#[test]
fn template_and_words_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut samples = wide();
    SEEDED[0].2(&mut samples);
    let (_, said) = found(dir.path(), &samples);
    assert!(said.contains("`corrupt_number (FM-2.6)`") && said.contains("hereby"), "{said}");
}

#[test]
fn places_are_held_against_what_the_sampler_declares() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut samples = wide();
    SEEDED.iter().find(|(rule, ..)| *rule == Rule::ShortcutPosition).expect("seeded").2(&mut samples);
    for (position, expected) in [("uniform", true), ("first", true)] {
        let cells: Vec<_> = samples.iter().map(|sample| json!({"run": sample.id, "position": position})).collect();
        std::fs::write(dir.path().join("report.json"), json!({ "cells": cells }).to_string()).expect("writes");
        let (rules, said) = found(dir.path(), &samples);
        assert_eq!(rules.contains(&Rule::ShortcutPosition), expected, "{position}: {said}");
        assert!(said.contains("declares for 60"), "{said}");
    }
    // Each agent's first call is what was declared, and three agents share them.
    let cells: Vec<_> = samples.iter().map(|sample| json!({"run": sample.id, "position": "first"})).collect();
    std::fs::write(dir.path().join("report.json"), json!({ "cells": cells }).to_string()).expect("writes");
    let mut samples = wide();
    samples.retain(|sample| sample.kind == SampleKind::Clean);
    let again: Vec<Sample> = (0..60).map(right).collect();
    for (n, right) in (0..).zip(again) {
        let mut sample = wrong(n);
        sample.steps = right.steps;
        let at = n % 3;
        let step = says(n, at, draw(n, at, 1));
        let error = &mut truth(&mut sample).errors[0];
        (error.agent, error.step, error.call) = (step.agent.clone(), Some(at), Some(0));
        truth(&mut sample).changes[0].step = at;
        sample.steps[at as usize] = step;
        samples.push(sample);
    }
    let (rules, said) = found(dir.path(), &samples);
    assert!(!rules.contains(&Rule::ShortcutPosition), "{said}");
}

#[test]
fn few_samples_and_broken_lines_say_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut samples = wide();
    SEEDED[0].2(&mut samples);
    let (rules, said) = found(dir.path(), &samples[..6]);
    assert!(rules.is_empty(), "{said}");
    write(dir.path(), &samples);
    let path = dir.path().join(crate::dataset::FILE);
    let text = std::fs::read_to_string(&path).expect("there");
    std::fs::write(&path, format!("{text}{{\"half\":\n")).expect("writes");
    assert!(!lint_dir(dir.path()).findings.iter().any(|found| found.rule.is_shortcut()));
}
