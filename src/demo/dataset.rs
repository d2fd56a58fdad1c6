//! What the demo writes: `dataset.jsonl` (verified failures with their clean twins) and `report.json`. Rows hold no
//! clock, port or random id, so two demos write the same bytes.

use std::{collections::BTreeMap, fs, io::Write, path::Path, time::Duration};

use serde_json::{Value, json};

use super::{DemoError, cell::Conducted, class_of};
use crate::{
    recording,
    surface::{self, Message},
    trajectory::{Label, LabelStatus, RunId, Step, Verdict},
};

/// What came of the demo.
#[derive(Debug)]
pub struct Summary {
    origin: String,
    tasks: usize,
    passed: usize,
    calls: usize,
    attempts: usize,
    delivered: usize,
    flipped: usize,
    classes: BTreeMap<&'static str, usize>,
    verified: BTreeMap<RunId, Label>,
    rows: usize,
}

impl Summary {
    pub(super) fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            tasks: 0,
            passed: 0,
            calls: 0,
            attempts: 0,
            delivered: 0,
            flipped: 0,
            classes: BTreeMap::new(),
            verified: BTreeMap::new(),
            rows: 0,
        }
    }

    /// How many failures are proven.
    pub fn verified(&self) -> usize {
        self.verified.len()
    }

    pub(super) fn clean(&mut self, runs: &[Conducted]) {
        self.tasks = runs.len();
        self.passed = runs.iter().filter(|run| run.verdict == Verdict::Success).count();
        self.calls += runs.iter().map(|run| run.recording.trajectory.steps.len()).sum::<usize>();
    }

    pub(super) fn injected(&mut self, runs: &[Conducted]) {
        self.attempts = runs.len();
        self.delivered = runs.iter().filter(|run| run.label.is_ok()).count();
        self.flipped = runs.iter().filter(|run| run.is_flip()).count();
        self.calls += runs.iter().map(|run| run.recording.trajectory.steps.len()).sum::<usize>();
        for run in runs {
            let class = match (&run.label, run.verdict) {
                (Err(why), _) => class_of(*why),
                (Ok(_), Verdict::Success) => "benign",
                (Ok(_), _) => continue,
            };
            *self.classes.entry(class).or_default() += 1;
        }
    }

    /// Proves flips by their controls, and writes the proven labels.
    pub(super) fn verify(
        &mut self,
        injected: &[Conducted],
        controls: &BTreeMap<Option<RunId>, Conducted>,
    ) -> Result<(), DemoError> {
        for run in injected.iter().filter(|run| run.is_flip()) {
            let Some(control) = controls.get(&Some(run.cell.run.clone())) else { continue };
            self.calls += control.recording.trajectory.steps.len();
            let class = match (run.shares_prefix_with(control), control.verdict, &run.label) {
                (true, Verdict::Success, Ok(label)) => {
                    let proven = Label { status: LabelStatus::Verified, ..label.clone() };
                    recording::write_label(&run.dir, &proven)?;
                    self.verified.insert(run.cell.run.clone(), proven);
                    continue;
                }
                (false, ..) => "diverged",
                _ => "flaky_task",
            };
            *self.classes.entry(class).or_default() += 1;
        }
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        dir: &Path,
        clean: &[Conducted],
        injected: &[Conducted],
        controls: &BTreeMap<Option<RunId>, Conducted>,
        took: Duration,
    ) -> Result<(), DemoError> {
        let mut lines = Vec::new();
        let twin = |run: &Conducted| {
            clean.iter().find(|twin| twin.cell.system == run.cell.system && twin.cell.task.id == run.cell.task.id)
        };
        for run in clean.iter().filter(|run| injected.iter().any(|other| self.is_twin(run, other))) {
            lines.push(row(run, None, None));
        }
        for run in injected {
            if let Some(label) = self.verified.get(&run.cell.run) {
                lines.push(row(run, Some(label), twin(run).map(|twin| &twin.cell.run)));
            }
        }
        self.rows = lines.len();
        let mut text = String::new();
        for line in &lines {
            text.push_str(&line.to_string());
            text.push('\n');
        }
        replace(&dir.join("dataset.jsonl"), text.as_bytes())?;
        let report = self.report(injected, controls, took);
        let pretty = serde_json::to_vec_pretty(&report).unwrap_or_default();
        replace(&dir.join("report.json"), &pretty)
    }

    fn is_twin(&self, clean: &Conducted, injected: &Conducted) -> bool {
        let same = clean.cell.system == injected.cell.system && clean.cell.task.id == injected.cell.task.id;
        same && self.verified.contains_key(&injected.cell.run)
    }

    fn report(&self, injected: &[Conducted], controls: &BTreeMap<Option<RunId>, Conducted>, took: Duration) -> Value {
        let cell = |run: &Conducted| {
            let class = match (&run.label, run.verdict, self.verified.contains_key(&run.cell.run)) {
                (_, _, true) => "verified",
                (Err(why), ..) => class_of(*why),
                (Ok(_), Verdict::Success, _) => "benign",
                (Ok(_), ..) => "unproven",
            };
            json!({"system": run.cell.system, "task": run.cell.task.id, "plan": run.cell.plan.as_ref().map(|(name, _)| *name),
                "run": run.cell.run, "class": class, "expected": run.cell.task.answer, "answer": run.answer})
        };
        json!({
            "format": 1,
            "backend": "simulator (a scripted model, not a language model)",
            "clean": {"runs": self.tasks, "passed": self.passed},
            "injected": {"attempts": self.attempts, "delivered": self.delivered, "flipped": self.flipped,
                "verified": self.verified.len(), "other": self.classes},
            "controls": controls.len(),
            "calls": self.calls,
            "seconds": took.as_secs_f64(),
            "cells": injected.iter().map(cell).collect::<Vec<_>>(),
        })
    }

    pub(super) fn clean_line(&self) -> String {
        format!(
            "clean     {} runs   {} passed   {} failed (kept out)   {}",
            self.tasks,
            self.passed,
            self.tasks - self.passed,
            self.origin
        )
    }

    pub(super) fn injected_line(&self) -> String {
        let classes: Vec<_> = self.classes.iter().map(|(class, count)| format!("   {class} {count}")).collect();
        let classes = classes.concat();
        format!(
            "inject    {} runs   delivered {}   outcome flipped {}{classes}",
            self.attempts, self.delivered, self.flipped
        )
    }

    pub(super) fn verify_line(&self) -> String {
        format!(
            "verify    {} of {} flips vanish when the same run is repeated without the injection",
            self.verified.len(),
            self.flipped
        )
    }

    pub(super) fn dataset_line(&self, dir: &Path) -> String {
        format!(
            "dataset   {}   {} failures, {} rows with their clean twins",
            dir.join("dataset.jsonl").display(),
            self.verified.len(),
            self.rows
        )
    }

    /// One line: what came of it.
    pub fn line(&self) -> String {
        format!(
            "{} verified failures from {} injected runs, {} model calls",
            self.verified.len(),
            self.attempts,
            self.calls
        )
    }

    /// The same as data.
    pub fn data(&self) -> Value {
        json!({"clean": self.tasks, "passed": self.passed, "attempts": self.attempts, "delivered": self.delivered,
            "flipped": self.flipped, "verified": self.verified.len(), "rows": self.rows})
    }
}

/// One line of the dataset.
fn row(run: &Conducted, label: Option<&Label>, twin: Option<&RunId>) -> Value {
    json!({
        "id": run.cell.run,
        "system": run.cell.system,
        "backend": "simulator",
        "task": {"id": run.cell.task.id, "question": run.cell.task.question, "answer": run.cell.task.answer},
        "outcome": run.verdict,
        "final_answer": run.answer,
        "steps": run.recording.trajectory.steps.iter().map(step_of).collect::<Vec<_>>(),
        "label": label,
        "clean_twin": twin,
    })
}

/// A step as its agent lived it: what its model was asked, and the answer that the agent got.
fn step_of(step: &Step) -> Value {
    let surface = surface::ALL.iter().find(|surface| surface.name() == step.surface);
    let asked =
        surface.and_then(|surface| surface.read_request(step.request_sent.as_ref().unwrap_or(&step.request)).ok());
    let answered = step.last_attempt().and_then(|attempt| {
        let (surface, body) = (surface?, attempt.delivered());
        if attempt.streamed { surface.read_stream(body).ok() } else { surface.read_reply(body).ok() }
    });
    let said = |message: &Message| {
        let calls: Vec<_> =
            message.tool_calls.iter().map(|call| json!({"name": call.name, "arguments": call.arguments})).collect();
        json!({"role": format!("{:?}", message.role).to_lowercase(), "name": message.name, "text": message.text(), "calls": calls})
    };
    json!({
        "step": step.step,
        "call": step.call,
        "agent": step.attribution.agent,
        "input": asked.map(|asked| asked.messages.iter().map(said).collect::<Vec<_>>()),
        "output": answered.and_then(|reply| reply.answers.first().map(|answer| said(&answer.message))),
    })
}

/// Replaces a file whole: a reader sees the old one or the new one.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), DemoError> {
    let temporary = path.with_extension("tmp");
    let write = || {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        fs::rename(&temporary, path)
    };
    write().map_err(|source| DemoError::Dir { dir: path.to_owned(), source })
}
