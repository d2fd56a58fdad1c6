//! Who&When's `Automated_FA/evaluate.py`, figure by figure: the log text of an inference run against the label files of
//! one directory.

use std::collections::BTreeMap;

use regex::Regex;

use super::{Public, PublicFigure, is_python_space};
use crate::score::{gold::RawLabel, ratio};
use crate::trajectory::patterns;

const QUIRKS: &[&str] = &[
    "a label counts as found where it is contained in the prediction, case and all: step `1` is hit by `10`, `12`, `21`",
    "the denominator is every label file: what cannot be read, or was never answered, is wrong",
    "an agent's name is cut at the first character that is no letter, digit or `_`: `Blu-Ray_Expert` cannot be hit",
    "`**Agent Name:** X` and a negative step are not read; `3.0` is read as `3`; an empty name takes the next word",
    "a header with words between file name and colon, as binary search logs have them, loses its block",
    "the words `Prediction for` inside a reason end the block",
    "a later block for a file replaces the earlier one",
];

/// What the log says about one file.
struct LoggedPrediction {
    agent: String,
    step: String,
}

/// Scores a log text against the labels of one directory; `labels` holds every file, as written.
pub fn evaluate(log: &str, labels: &[RawLabel]) -> Public {
    let said = read(log);
    let (mut evaluated, mut agents, mut steps) = (0, 0, 0);
    let files: BTreeMap<&str, &RawLabel> = labels.iter().map(|label| (label.file.as_str(), label)).collect();
    for (file, said) in &said {
        let Some(label) = files.get(file.as_str()) else { continue };
        evaluated += 1;
        agents += usize::from(said.agent.contains(&label.agent));
        steps += usize::from(said.step.contains(&label.step));
    }
    let count = |name: &str, count: usize| PublicFigure {
        name: name.to_owned(),
        value: super::super::real(count),
        shown: count.to_string(),
    };
    let percent = |name: &str, hits: usize| {
        let value = ratio(hits, labels.len()) * 100.0;
        PublicFigure { name: name.to_owned(), value, shown: format!("{value:.2}%") }
    };
    Public {
        scorer: "Who&When Automated_FA/evaluate.py",
        figures: vec![
            percent("Agent Accuracy", agents),
            percent("Step Accuracy", steps),
            count("Total reference files", labels.len()),
            count("Predictions parsed", said.len()),
            count("Files evaluated", evaluated),
            count("Correct Agent Predictions", agents),
            count("Correct Step Predictions", steps),
        ],
        quirks: QUIRKS,
    }
}

patterns! {
    // Python's \w, \s and \d, spelled out: Rust's \w holds marks, which Python's does not.
    AGENT = r"(?i)Agent Name:[\s\x1c-\x1f]*([\p{L}\p{N}_]+)";
    STEP = r"(?i)Step Number:[\s\x1c-\x1f]*(\p{Nd}+)";
}

/// What the scorer reads in the body of one block: agent and step, as written.
pub fn answer(body: &str) -> Option<(String, String)> {
    let first = |pattern: &Regex, block: &str| pattern.captures(block)?.get(1).map(|group| group.as_str().to_owned());
    let block = body.find("Prediction for").and_then(|end| body.get(..end)).unwrap_or(body);
    Some((first(&AGENT, block)?, first(&STEP, block)?))
}

/// The blocks that the scorer's expression finds. It looks ahead for the next block, which `regex` cannot, so the
/// blocks are cut by hand and only the lines inside are matched.
fn read(log: &str) -> BTreeMap<String, LoggedPrediction> {
    let mut said = BTreeMap::new();
    let mut rest = log;
    while let Some((_, after)) = rest.split_once("Prediction for ") {
        rest = after;
        // `[^:]+\.json:` takes everything up to the first colon.
        let Some((name, body)) = after.split_once(':') else { break };
        if name.strip_suffix(".json").is_none_or(str::is_empty) {
            continue;
        }
        let block = body.find("Prediction for").and_then(|end| body.get(..end)).unwrap_or(body);
        rest = body.get(block.len()..).unwrap_or_default();
        if let Some((agent, step)) = answer(block) {
            said.insert(name.trim_matches(is_python_space).to_owned(), LoggedPrediction { agent, step });
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(file: &str, agent: &str, step: &str) -> RawLabel {
        RawLabel { file: file.into(), agent: agent.into(), step: step.into() }
    }

    /// Each case was run through the public script; `expected` is what it printed: parsed, agents, steps.
    #[test]
    fn quirk_by_quirk() {
        let cases: &[(&str, &str, [f64; 3])] = &[
            (
                "exact",
                "Prediction for 1.json:\nAgent Name: Solver\nStep Number: 1\nReason for Mistake: x\n",
                [1.0, 1.0, 1.0],
            ),
            ("step 12 holds 1", "Prediction for 1.json:\nAgent Name: Solver\nStep Number: 12\n", [1.0, 1.0, 1.0]),
            ("joined names", "Prediction for 1.json:\nAgent Name: A_Solver_B\nStep Number: 0\n", [1.0, 1.0, 0.0]),
            ("case counts", "Prediction for 1.json:\nAgent Name: solver\nStep Number: 1\n", [1.0, 0.0, 1.0]),
            ("labels in any case", "Prediction for 1.json: AGENT NAME: Solver STEP NUMBER: 1", [1.0, 1.0, 1.0]),
            ("bold", "Prediction for 1.json:\n**Agent Name:** Solver\n**Step Number:** 1\n", [0.0, 0.0, 0.0]),
            ("hyphen", "Prediction for 2.json:\nAgent Name: Blu-Ray_Expert\nStep Number: 3.0\n", [1.0, 0.0, 1.0]),
            ("negative", "Prediction for 1.json:\nAgent Name: Solver\nStep Number: -1\n", [0.0, 0.0, 0.0]),
            (
                "binary header",
                "Prediction for 1.json (Binary Search Result):\nAgent Name: Solver\nStep Number: 1\n",
                [0.0, 0.0, 0.0],
            ),
            ("empty name", "Prediction for 1.json:\nAgent Name:\nStep Number: 1\n", [1.0, 0.0, 1.0]),
            (
                "twice",
                "Prediction for 1.json:\nAgent Name: Solver\nStep Number: 1\nPrediction for 1.json:\nAgent Name: X\nStep Number: 2\n",
                [1.0, 0.0, 0.0],
            ),
            (
                "cut by its reason",
                "Prediction for 1.json:\nReason: my Prediction for it\nAgent Name: Solver\nStep Number: 1\n",
                [0.0, 0.0, 0.0],
            ),
            ("no such file", "Prediction for 999.json:\nAgent Name: Solver\nStep Number: 1\n", [1.0, 0.0, 0.0]),
            (
                "nested header",
                "Prediction for a Prediction for 1.json:\nAgent Name: Solver\nStep Number: 1\n",
                [1.0, 0.0, 0.0],
            ),
            ("nothing", "", [0.0, 0.0, 0.0]),
            ("no colon", "Prediction for 1.json", [0.0, 0.0, 0.0]),
            (
                "marks end a word",
                "Prediction for 1.json:\nAgent Name: Solver\u{301}x\nStep Number: ١\n",
                [1.0, 1.0, 0.0],
            ),
            (
                "separators are blanks",
                "Prediction for 1.json:\nAgent Name:\u{1c}Solver\nStep Number:\u{1f}1\n",
                [1.0, 1.0, 1.0],
            ),
        ];
        let labels = [label("1.json", "Solver", "1"), label("2.json", "Blu-Ray_Expert", "3")];
        for (name, log, expected) in cases {
            let score = evaluate(log, &labels);
            let found = ["Predictions parsed", "Correct Agent Predictions", "Correct Step Predictions"]
                .map(|figure| score.figure(figure).expect("a figure"));
            assert_eq!(&found, expected, "{name}");
        }
    }

    #[test]
    fn percent_as_printed() {
        let labels: Vec<_> = (1..=126).map(|n| label(&format!("{n}.json"), "A", "0")).collect();
        let log = "Prediction for 1.json:\nAgent Name: A\nStep Number: 0\nPrediction for 2.json:\nAgent Name: B\nStep Number: 0\n";
        let score = evaluate(log, &labels);
        let shown: Vec<_> = score.figures.iter().map(|figure| figure.shown.as_str()).collect();
        assert_eq!(shown, ["0.79%", "1.59%", "126", "2", "2", "1", "2"]);
    }
}
