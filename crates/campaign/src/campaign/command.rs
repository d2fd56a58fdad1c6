//! Command templates: a program's arguments with placeholders for the task.

use std::path::Path;

use serde_json::Value;

use crate::{dataset::Task, trajectory::nearest};

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTemplate {
    /// The text as written.
    pub text: String,
    parts: Vec<CommandPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CommandPart {
    Text(String),
    Question,
    Id,
    Aegis,
    Scratch,
    Extra(String),
}

/// What placeholders stand for besides the task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'a> {
    /// This program.
    pub(super) aegis: &'a Path,
    /// A directory of the cell's own.
    pub(super) scratch: &'a Path,
}

impl CommandTemplate {
    /// Reads a template. A brace that is no placeholder's stands for itself.
    ///
    /// # Errors
    /// A placeholder that does not exist, in words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            push(&mut parts, before);
            rest = if let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_name(name)) {
                parts.push(CommandPart::named(name)?);
                after
            } else {
                push(&mut parts, "{");
                after
            };
        }
        push(&mut parts, rest);
        Ok(Self { text: text.to_owned(), parts })
    }

    /// The text for a task. A key that the task's `extra` does not have is empty.
    pub(super) fn fill(&self, task: &Task, setting: Setting<'_>) -> String {
        let filled = self.parts.iter().map(|part| match part {
            CommandPart::Text(text) => text.clone(),
            CommandPart::Question => task.question.clone(),
            CommandPart::Id => task.id.clone(),
            CommandPart::Aegis => setting.aegis.display().to_string(),
            CommandPart::Scratch => setting.scratch.display().to_string(),
            CommandPart::Extra(key) => extra(task, key),
        });
        filled.collect()
    }

    /// Whether a directory of the cell's own is asked for.
    pub(super) fn wants_scratch(&self) -> bool {
        self.parts.contains(&CommandPart::Scratch)
    }
}

impl CommandPart {
    const NAMES: [&str; 4] = ["question", "id", "aegis", "scratch"];

    fn named(name: &str) -> Result<Self, String> {
        match name {
            "question" => Ok(CommandPart::Question),
            "id" => Ok(CommandPart::Id),
            "aegis" => Ok(CommandPart::Aegis),
            "scratch" => Ok(CommandPart::Scratch),
            "answer" => Err("`{answer}` would tell the system what is right: leave it out".to_owned()),
            other => {
                if let Some(key) = other.strip_prefix("extra.").filter(|key| !key.is_empty()) {
                    return Ok(CommandPart::Extra(key.to_owned()));
                }
                let near = nearest(other, Self::NAMES).map(|near| format!(": did you mean `{{{near}}}`?"));
                let known = ": expected {question}, {id}, {extra.KEY}, {aegis} or {scratch}".to_owned();
                Err(format!("unknown placeholder `{{{other}}}`{}", near.unwrap_or(known)))
            }
        }
    }
}

/// What else a task says, as text: an entry of its own, or of a table `extra`.
fn extra(task: &Task, key: &str) -> String {
    let nested = || task.extra.get("extra").and_then(|table| table.get(key));
    match task.extra.get(key).or_else(nested) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

fn push(parts: &mut Vec<CommandPart>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(CommandPart::Text(last)) => last.push_str(text),
        _ => parts.push(CommandPart::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_unknown_ones_named() {
        let task = r#"{"id": "t1", "question": "What is 2 {+} 2?", "unit": "m", "extra": {"n": 3}}"#;
        let task: Task = serde_json::from_str(task).expect("a task");
        let setting = Setting { aegis: Path::new("aegis"), scratch: Path::new("s") };
        for (text, expected) in [
            ("--task={question}", Ok("--task=What is 2 {+} 2?")),
            ("{id}/{extra.unit}{extra.n}{extra.none}/{scratch}", Ok("t1/m3/s")),
            ("{\"a\": {}}", Ok("{\"a\": {}}")),
            ("{aegis", Ok("{aegis")),
            ("{qestion}", Err("did you mean `{question}`?")),
            ("{zzz}", Err("expected {question}")),
            ("{answer}", Err("would tell")),
        ] {
            match (CommandTemplate::parse(text), expected) {
                (Ok(template), Ok(expected)) => assert_eq!(template.fill(&task, setting), expected),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (seen, _) => panic!("{text}: {seen:?}"),
            }
        }
        assert!(CommandTemplate::parse("x{scratch}").expect("a template").wants_scratch());
    }
}
