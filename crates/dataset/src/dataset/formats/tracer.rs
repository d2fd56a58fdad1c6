//! The question that a trained tracer is asked: made by the function that writes the rows it was trained on, with the choices
//! that their export made.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    ALL, AnswerForm, BudgetUnit, Inputs, Prompt, PromptAsking, PromptBudget, PromptTemplate, PromptTemplateError,
    Prompts, prompt, sink,
};
use crate::dataset::Sample;

/// Longest template or manifest that is read, in bytes: a manifest names its files and the steps that were not read whole.
const LONGEST_FILE: u64 = 16 << 20;

/// How a tracer is asked about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracerPrompt {
    template: PromptTemplate,
    gold_answer: bool,
    inputs: Inputs,
    budget: Option<PromptBudget>,
    form: AnswerForm,
}

/// Why a file says nothing about how a tracer is asked.
#[derive(Debug, thiserror::Error)]
pub enum TracerPromptError {
    /// It cannot be read.
    #[error("`{}` cannot be read: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The rows of an export whose manifest is gone.
    #[error("`{}` holds rows, and no manifest lies beside them that says how their prompts were made", .0.display())]
    NoManifest(PathBuf),
    /// The manifest of rows that ask nobody.
    #[error("`{}` is the manifest of an export that holds no prompts", .0.display())]
    NoPrompts(PathBuf),
    /// A template that cannot be used.
    #[error("`{}`: {error}", .path.display())]
    Template {
        /// Where it stands.
        path: PathBuf,
        /// What is wrong with it.
        error: PromptTemplateError,
    },
}

impl TracerPrompt {
    /// The names that ship: the prompt that Aegis published, and each training format with a prompt, as it is exported without
    /// options.
    pub fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once(prompt::PUBLISHED)
            .chain(ALL.iter().filter(|format| format.holds_question()).map(|format| format.name()))
    }

    /// One of the [`names`](Self::names).
    pub fn named(name: &str) -> Option<Self> {
        let known = Self::names().any(|known| known == name);
        known.then(|| Self::of_template(PromptTemplate::named(name).unwrap_or_default()))
    }

    /// What a file says: the manifest of an export, exported rows beside their manifest, or a template.
    ///
    /// # Errors
    /// [`TracerPromptError`].
    pub fn read(path: &Path) -> Result<Self, TracerPromptError> {
        let rows = path.extension().is_some_and(|end| end == "jsonl" || end == "parquet");
        let manifest = rows.then(|| sink::manifests(path).into_iter().find(|manifest| manifest.is_file()));
        let path = match manifest {
            Some(manifest) => &manifest.ok_or_else(|| TracerPromptError::NoManifest(path.to_owned()))?,
            None => path,
        };
        let text = text(path)?;
        match serde_json::from_str::<Stated>(&text) {
            Ok(Stated { prompts: Some(prompts) }) => Self::exported(&prompts, path),
            Ok(Stated { prompts: None }) => Err(TracerPromptError::NoPrompts(path.to_owned())),
            Err(_) => parsed(&text, path).map(Self::of_template),
        }
    }

    /// A template as it is exported without options.
    fn of_template(template: PromptTemplate) -> Self {
        let inputs = template.usual_inputs();
        Self { template, gold_answer: false, inputs, budget: None, form: AnswerForm::Text }
    }

    fn exported(prompts: &Prompts, path: &Path) -> Result<Self, TracerPromptError> {
        let template = match prompts.template.as_deref() {
            None => PromptTemplate::default(),
            Some(named) => PromptTemplate::named(named).map_or_else(|| parsed(named, path), Ok)?,
        };
        let Prompts { gold_answer, inputs, budget, answer, .. } = *prompts;
        Ok(Self { template, gold_answer, inputs, budget, form: answer })
    }

    /// Whether its rows tell the right answer, so that the tracer expects it.
    pub fn tells_answer(&self) -> bool {
        self.gold_answer
    }

    /// The tool that the tracer answers by, where its rows do.
    pub fn tool(&self) -> Option<Value> {
        (self.form == AnswerForm::Call).then(prompt::tool)
    }

    /// The question about a run, in at most so many characters where its rows were not cut shorter. The label is not looked at,
    /// so a run that has to be cut may be cut elsewhere than its row was.
    pub fn ask(&self, sample: &Sample, gold_answer: bool, longest: usize) -> Prompt {
        let budget = self.budget.unwrap_or(PromptBudget { most: longest, unit: BudgetUnit::Characters });
        let gold_answer = gold_answer || self.gold_answer;
        let asking = PromptAsking { gold_answer, inputs: self.inputs, budget: Some(budget), form: self.form };
        self.template.fill(sample, asking)
    }
}

/// What a manifest says of its prompts; nothing else is looked at.
#[derive(Debug, Deserialize)]
struct Stated {
    prompts: Option<Prompts>,
}

fn parsed(text: &str, path: &Path) -> Result<PromptTemplate, TracerPromptError> {
    PromptTemplate::parse(text).map_err(|error| TracerPromptError::Template { path: path.to_owned(), error })
}

fn text(path: &Path) -> Result<String, TracerPromptError> {
    let unreadable = |error| TracerPromptError::Unreadable { path: path.to_owned(), error };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    let read = file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(unreadable)?;
    if u64::try_from(read).is_ok_and(|read| read > LONGEST_FILE) {
        return Err(unreadable(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it is above 16 MiB")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::formats::{
        ExportOptions, export, format,
        formats_tests::{dataset, rows, unchecked},
        testing,
    };

    /// The prompts of exported rows, by the id of their sample.
    fn prompts(rows: &[Value]) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let one = |row: &Value| {
            let asked = row.pointer("/messages/0/content").or_else(|| row.pointer("/prompt/0/content"));
            let id = row.get("id").or_else(|| row.pointer("/extra_info/original_id"));
            (id.map(text).unwrap_or_default(), asked.map(text).unwrap_or_default())
        };
        rows.iter().map(one).collect()
    }

    #[test]
    fn a_tracer_is_asked_in_the_words_of_its_rows() {
        let dir = tempfile::tempdir().expect("a directory");
        let samples: Vec<Sample> = (0..3).map(|number| testing::failure(&format!("r{number}"), 4)).collect();
        let samples_of = dataset(&dir.path().join("d"), &samples);
        let template = dir.path().join("mine.txt");
        fs::write(&template, "Who of {agents}? {gold_answer}{conversation} {answer_form}").expect("written");
        let mine = PromptTemplate::parse(&fs::read_to_string(&template).expect("text")).expect("a template");
        let budget = Some(PromptBudget { most: 120, unit: BudgetUnit::Tokens });
        for name in ["sft", "grpo", "verl"] {
            for (number, options) in [
                ExportOptions::default(),
                ExportOptions { template: PromptTemplate::aegis(), ..ExportOptions::default() },
                ExportOptions { template: mine.clone(), gold_answer: true, ..ExportOptions::default() },
                ExportOptions { inputs: Some(Inputs::All), answer: AnswerForm::Call, ..ExportOptions::default() },
                ExportOptions { budget, ..ExportOptions::default() },
            ]
            .into_iter()
            .enumerate()
            {
                let out = dir.path().join(format!("{name}-{number}.jsonl"));
                let options = ExportOptions { lint: unchecked().lint, one_file: number != 1, ..options };
                export(&samples_of, format(name).expect("a format"), &out, &options).expect("exported");
                let out = if number == 1 { dir.path().join(format!("{name}-1-train.jsonl")) } else { out };
                let asked = TracerPrompt::read(&out).expect("the rows say how they ask");
                assert_eq!(asked.tool().is_some(), name == "sft" && number == 3, "{name} {number}");
                for (id, prompt) in prompts(&rows(&out)) {
                    let sample = samples.iter().find(|sample| sample.id == id).expect("its sample");
                    let said = asked.ask(sample, false, 1_000_000).text;
                    assert_eq!(said, prompt, "{name} {number}");
                }
                if number == 0 {
                    assert_eq!(TracerPrompt::named(name), Some(asked), "{name}");
                }
            }
        }
    }

    #[test]
    fn aegis_is_asked_as_its_converter_writes_rows() {
        let mut sample = testing::failure("r", 2);
        sample.task.question = "How {many}?".to_owned();
        let asked = TracerPrompt::named("aegis").expect("it ships").ask(&sample, false, 1_000_000).text;
        let (head, conversation) = asked.split_once("CONVERSATION TO ANALYZE:\n").expect("a conversation");
        assert!(head.starts_with("## ROLE AND GOAL\nYou are a meticulous Multi-Agent System"), "{head}");
        assert_eq!(
            conversation,
            "\"\"\"\nQUERY:\nHow {many}?\n\nCONVERSATION HISTORY:\nStep 1 - planner () []:\nplanner says 0\n\n\
             Step 2 - solver () []:\nsolver says 1\n\n\n\"\"\"\n\n## YOUR ANALYSIS (JSON ONLY):\n"
        );
    }

    #[test]
    fn what_says_nothing_about_a_tracer_says_so() {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, text, why) in [
            ("rows.jsonl", "{}", "holds rows, and no manifest lies beside them"),
            ("contrastive.jsonl.manifest.json", "{\"format\": 1, \"to\": \"contrastive\"}", "holds no prompts"),
            ("prompt.txt", "Who erred?", "lacks `{conversation}`"),
        ] {
            let path = dir.path().join(name);
            fs::write(&path, text).expect("written");
            let error = TracerPrompt::read(&path).expect_err(name).to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(TracerPrompt::read(&dir.path().join("none")).is_err());
        assert_eq!(TracerPrompt::named("sfd"), None);
        assert_eq!(TracerPrompt::names().collect::<Vec<_>>(), ["aegis", "sft", "verl", "grpo"]);
    }
}
