//! `--verify FILE`: runs of anybody are judged as a campaign judges its own, by the right answers of a task set.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Exit, Failure, escape, settings};
use crate::{
    dataset::{self, Task, read_tasks},
    execution::{Judge, TaskCheck},
    plan::OneOrMany,
    recording::{self, Recording, Redactor},
    trajectory::Outcome,
    verify::{Check, Output, Sources, Surroundings, Verify},
};

/// Checkers with the tasks whose answers they compare with.
#[derive(Debug)]
pub(super) struct Checkers {
    file: PathBuf,
    verify: Verify,
    tasks: Vec<Task>,
}

/// What is read of the file: a campaign's has it, and more.
#[derive(Debug, Deserialize)]
struct CheckersFile {
    tasks: Option<TasksTable>,
    verify: Option<Verify>,
}

#[derive(Debug, Deserialize)]
struct TasksTable {
    file: OneOrMany<String>,
}

impl Checkers {
    /// Reads checkers and tasks of a campaign file, or of one that holds no more than `tasks` and `verify`.
    ///
    /// # Errors
    /// Either is missing or unusable, or a checker is one that only a campaign has: a model.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::new(Exit::Usage, format!("--verify `{}`: {why}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let CheckersFile { tasks, verify } = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let Some(tasks) = tasks else {
            return Err(
                wrong("it names no tasks".to_owned()).hint("`tasks.file = \"tasks.jsonl\"`, as in a campaign file")
            );
        };
        let beside = file.parent().unwrap_or(Path::new("."));
        let mut known = Vec::new();
        for named in &tasks.file.0 {
            known.extend(read_tasks(&beside.join(named))?);
        }
        let (tasks, verify) = (known, verify.unwrap_or_default());
        verify.validate(tasks.iter().all(|task| task.check.is_some())).map_err(|error| {
            wrong(error.to_string()).hint("`verify = { answer = 'ANSWER: (.*)', checks = [{ numeric = {} }] }`")
        })?;
        let all = || verify.checks.iter().chain(tasks.iter().filter_map(|task| task.check.as_ref()));
        if all().any(|check| matches!(check, Check::ModelJudge(_))) {
            return Err(wrong("a model is to judge, and only a campaign asks one".to_owned()));
        }
        let own = tasks.iter().any(|task| matches!(task.check, Some(Check::Command(_))));
        if own && !verify.allow_task_commands {
            return Err(wrong("its tasks bring commands, which would run on this machine as you do".to_owned()).hint(
                "look at the `check.command` of the task files; if you trust them: `verify.allow_task_commands = true`",
            ));
        }
        Ok(Self { file: file.to_owned(), verify, tasks })
    }

    /// The task that a recorded run is of.
    ///
    /// # Errors
    /// None of them is asked in it.
    pub(super) fn task(&self, recording: &Recording) -> Result<&Task, Failure> {
        dataset::task_of_run(recording, &self.tasks)?.ok_or_else(|| {
            let run = escape(recording.manifest.run.as_str());
            let error = format!("`{run}` asks no task of `{}`", self.file.display());
            Failure::new(Exit::Usage, error)
                .hint("a run is of the task whose question its first request or its command holds")
        })
    }

    /// What judges executions of a recorded run.
    ///
    /// # Errors
    /// The run cannot be read, or is of no task.
    pub(super) fn judge(&self, dir: &Path) -> Result<Judge, Failure> {
        let recording = recording::read(dir)?;
        let task = self.task(&recording)?;
        let check = TaskCheck {
            verify: self.verify.clone(),
            question: task.question.clone(),
            answer: task.answer.clone(),
            own: task.check.clone(),
            exit_codes: vec![0],
        };
        Ok(Judge::Checkers(Box::new(check), None))
    }

    /// What a recorded run achieved. Its program's output is not recorded: the last reply stands for it.
    ///
    /// # Errors
    /// The run is of no task, or its answer lies in a file.
    pub(super) fn outcome(&self, recording: &Recording, dir: &Path) -> Result<Outcome, Failure> {
        let task = self.task(recording)?;
        let output = match &self.verify.output {
            Output::Stdout => Output::Reply("*".to_owned()),
            Output::File(_) => {
                let error = format!("`{}` reads answers from a file, and recordings hold none", self.file.display());
                return Err(
                    Failure::new(Exit::Usage, error).hint("`verify.output = { reply = \"*\" }` reads the last reply")
                );
            }
            reply @ Output::Reply(_) => reply.clone(),
        };
        let verify = Verify { output, ..self.verify.clone() };
        let sources = Sources { stdout: &[], directory: Path::new("."), trajectory: &recording.trajectory };
        let surroundings = Surroundings { run_dir: Some(dir.to_owned()), judge: None };
        let checking =
            verify.check(&task.question, &task.answer, task.check.as_ref(), verify.answer(&sources), &surroundings);
        let verified = settings::block_on(checking)?;
        let evidence = Redactor::of_process().masked(verified.outcome.evidence);
        Ok(Outcome { evidence, ..verified.outcome })
    }
}
