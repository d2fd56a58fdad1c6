//! What methods of attribution say of a run: rows beside it, and rows of files that were named. They come from the log
//! alone, and nothing here takes them for more than suspicions.

use std::{
    collections::{BTreeMap, HashMap},
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step_view::first_words;
use crate::{recording::RunFile, trajectory::StepIndex};

/// What `aegis attribute` leaves beside a run that it looked at, a row a method.
pub const ATTRIBUTION_FILE: &str = "attribution.jsonl";
/// The method that is none: what several said together, counted.
const COMBINED: &str = "combined";
/// Most places that a line names.
const NAMED: usize = 3;
/// How much of a name stands in a line, in characters.
const NAME: usize = 60;
/// Most of the file beside a run that is read, in bytes: a row for each method takes a hundredth of it.
const BESIDE: u64 = 16 << 20;
/// Most of a file that is read to tell what it is, in bytes.
const FIRST_ROW: u64 = 1 << 20;

/// The rows of a run.
#[derive(Debug, Clone, Default)]
pub struct Suspected {
    rows: Vec<SuspectedRow>,
}

/// What a method says of a run, as `aegis attribute` writes it; what the page shows of it, and nothing else.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct SuspectedRow {
    #[serde(default)]
    id: String,
    method: String,
    /// What the method does.
    #[serde(default)]
    about: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    served_model: Option<String>,
    #[serde(default)]
    gold: bool,
    #[serde(default)]
    compat: Option<String>,
    #[serde(default)]
    predictions: Vec<SuspectedStep>,
    #[serde(default)]
    abstained: Option<SuspectedNone>,
    #[serde(default)]
    interval: Option<SuspectedInterval>,
    #[serde(default)]
    votes: Option<[u32; 2]>,
    #[serde(default)]
    calls: u64,
    #[serde(default)]
    tokens_in: u64,
    #[serde(default)]
    tokens_out: u64,
    #[serde(default)]
    cost: Option<f64>,
    #[serde(default)]
    cuts: Option<SuspectedCuts>,
}

/// Whom a row names, and why.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct SuspectedStep {
    agent: Option<String>,
    step: Option<StepIndex>,
    score: Option<f64>,
    failure_mode: Option<String>,
    reason: String,
    fix: String,
    evidence: Vec<SuspectedQuote>,
    conflict: Option<String>,
}

/// Words that a row quotes, and whether they stand in the step.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
struct SuspectedQuote {
    step: StepIndex,
    quote: String,
    stands: bool,
}

/// Why a row names nobody.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
struct SuspectedNone {
    why: String,
    #[serde(default)]
    said: String,
}

/// Between which steps the true one lies, how often that may miss, and how many rows it rests on.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
struct SuspectedInterval {
    first: StepIndex,
    last: StepIndex,
    alpha: f64,
    rows: usize,
}

/// What was cut from the log.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
struct SuspectedCuts {
    steps: u64,
    characters: u64,
}

/// Whether two rows answer the same question: by the same method, judge and rules, of which the later counts.
pub fn same_question(one: &Value, other: &Value) -> bool {
    ["method", "model", "gold", "compat"].iter().all(|name| one.get(name) == other.get(name))
}

impl Suspected {
    /// What is said of the run in this directory: beside it, then in `files`; `None` where nothing is.
    pub fn read(run_dir: &Path, run: &str, files: &[PathBuf]) -> Option<Self> {
        let mut all = Self::default();
        rows(&run_dir.join(ATTRIBUTION_FILE), BESIDE, |row| all.add(row));
        for file in files {
            rows(file, u64::MAX, |row| {
                if row.id == run {
                    all.add(row);
                }
            });
        }
        Some(all).filter(|all| !all.rows.is_empty())
    }

    /// What files say, by the names of runs.
    pub(super) fn by_run(files: &[PathBuf]) -> HashMap<String, Self> {
        let mut all: HashMap<String, Self> = HashMap::new();
        for file in files {
            rows(file, u64::MAX, |row| all.entry(row.id.clone()).or_default().add(row));
        }
        all
    }

    fn add(&mut self, row: SuspectedRow) {
        let asked = |row: &SuspectedRow| (row.method.clone(), row.model.clone(), row.gold, row.compat.clone());
        let new = asked(&row);
        self.rows.retain(|former| asked(former) != new);
        self.rows.push(row);
    }

    /// The rows, whole.
    pub(super) fn rows(&self) -> &[SuspectedRow] {
        &self.rows
    }

    /// Whom methods name first, and the methods' names; the most named first, of equal ones the earlier step. Methods that
    /// name nobody come under nobody.
    fn named(&self) -> Vec<(SuspectedStep, Vec<String>)> {
        let methods = self.rows.iter().filter(|row| row.method != COMBINED);
        let mut named: BTreeMap<(StepIndex, Option<String>), Vec<String>> = BTreeMap::new();
        for row in methods.clone() {
            let twice = methods.clone().filter(|other| other.method == row.method).count() > 1;
            let judge = row.model.as_ref().filter(|_| twice).map(|model| format!(" by {model}")).unwrap_or_default();
            let first = row.predictions.first();
            let place = (first.and_then(|first| first.step), first.and_then(|first| first.agent.clone()));
            named.entry((place.0.unwrap_or(StepIndex::MAX), place.1)).or_default().push(row.method.clone() + &judge);
        }
        let mut named: Vec<_> = named
            .into_iter()
            .map(|((step, agent), by)| {
                let step = Some(step).filter(|step| *step != StepIndex::MAX);
                (SuspectedStep { agent, step, ..SuspectedStep::default() }, by)
            })
            .collect();
        named.sort_by_key(|(place, by)| (place.agent.is_none() && place.step.is_none(), usize::MAX - by.len()));
        named
    }

    /// One line: whom methods name, and which.
    pub fn line(&self) -> String {
        let named = self.named();
        let place = |(place, by): &(SuspectedStep, Vec<String>)| {
            let who = match (&place.agent, place.step) {
                (Some(agent), Some(step)) => format!("{} at step {step}", first_words(agent, NAME)),
                (Some(agent), None) => first_words(agent, NAME),
                (None, Some(step)) => format!("step {step}"),
                (None, None) => "nobody".to_owned(),
            };
            format!("{who} ({})", first_words(&by.join(", "), 2 * NAME))
        };
        let more = if named.len() > NAMED { "; …" } else { "" };
        named.iter().take(NAMED).map(place).collect::<Vec<_>>().join("; ") + more
    }

    /// The steps that methods name first, each with the methods.
    pub(super) fn steps(&self) -> BTreeMap<StepIndex, Vec<String>> {
        let mut steps: BTreeMap<StepIndex, Vec<String>> = BTreeMap::new();
        for (place, by) in self.named() {
            if let Some(step) = place.step {
                steps.entry(step).or_default().extend(by);
            }
        }
        steps
    }

    /// Whether a method names a step first.
    pub fn is_suspect(&self, step: StepIndex) -> bool {
        self.steps().contains_key(&step)
    }
}

/// Whether a file holds rows of `aegis attribute`, by its first line.
pub(super) fn is_rows(path: &Path) -> bool {
    let first = || {
        let mut line = String::new();
        BufReader::new(RunFile::open(path).ok()?.take(FIRST_ROW)).read_line(&mut line).ok()?;
        let row: Value = serde_json::from_str(&line).ok()?;
        Some(row.get("method")?.is_string() && row.get("predictions")?.is_array())
    };
    first().unwrap_or(false)
}

/// The rows of a file, one after the other, of so many bytes at most; lines that are none are left out.
fn rows(path: &Path, most: u64, mut told: impl FnMut(SuspectedRow)) {
    let Ok(file) = RunFile::open(path) else { return };
    for line in BufReader::new(file.take(most)).lines() {
        let Ok(line) = line else { return };
        if let Ok(row) = serde_json::from_str(&line) {
            told(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use std::fs;

    use super::*;

    fn row(method: &str, step: Option<u32>) -> Value {
        let named = step.map(|step| json!({"agent": if step == 1 { "solver" } else { "critic" }, "step": step}));
        json!({"id": "r", "method": method, "gold": false, "predictions": named.into_iter().collect::<Vec<_>>()})
    }

    fn suspected(rows: impl IntoIterator<Item = Value>) -> Suspected {
        let mut all = Suspected::default();
        rows.into_iter().for_each(|row| all.add(serde_json::from_value(row).expect("a row")));
        all
    }

    #[test]
    fn a_line_says_who_is_named_by_whom() {
        for (rows, expected) in [
            (vec![row("rules", Some(1))], "solver at step 1 (rules)"),
            (vec![row("rules", Some(2)), row("rules", Some(1))], "solver at step 1 (rules)"),
            (vec![row("a2p", None)], "nobody (a2p)"),
            (
                vec![row("a2p", None), row("rules", Some(2)), row("graph", Some(1)), row("panel", Some(2))],
                "critic at step 2 (rules, panel); solver at step 1 (graph); nobody (a2p)",
            ),
            (vec![row("rules", Some(1)), row(COMBINED, Some(2))], "solver at step 1 (rules)"),
        ] {
            assert_eq!(suspected(rows).line(), expected);
        }
    }

    #[test]
    fn judges_of_one_method_are_told_apart() {
        let by = |model: &str, step| {
            let mut row = row("a2p", Some(step));
            row["model"] = model.into();
            row
        };
        let said = suspected([by("m", 1), by("n", 2), by("m", 1)]);
        assert_eq!(said.line(), "solver at step 1 (a2p by m); critic at step 2 (a2p by n)");
        assert_eq!([0, 1, 2].map(|step| said.is_suspect(step)), [false, true, true]);
    }

    #[test]
    fn rows_are_found_beside_the_run_and_in_files_that_are_told_from_datasets() {
        let dir = tempfile::tempdir().expect("a directory");
        let (rows, samples) = (dir.path().join("pred.jsonl"), dir.path().join("samples.jsonl"));
        fs::write(&rows, format!("{}\nno row\n{}\n", row("graph", Some(2)), json!({"id": "s", "method": "a2p"})))
            .expect("written");
        fs::write(&samples, "{\"id\":\"r\",\"kind\":\"failure\"}\n").expect("written");
        assert_eq!((is_rows(&rows), is_rows(&samples), is_rows(&dir.path().join("none"))), (true, false, false));
        let run = dir.path().join("r");
        fs::create_dir(&run).expect("a directory");
        assert!(Suspected::read(&run, "r", &[]).is_none());
        fs::write(run.join(ATTRIBUTION_FILE), row("rules", Some(1)).to_string()).expect("written");
        let said = Suspected::read(&run, "r", std::slice::from_ref(&rows)).expect("rows");
        assert_eq!(said.line(), "solver at step 1 (rules); critic at step 2 (graph)");
        assert_eq!(Suspected::by_run(&[rows]).len(), 2);
    }
}
