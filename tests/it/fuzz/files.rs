//! Files that people hand over: rows of a data set, predictions about them, and a ranker that somebody learned.

use aegis::{
    attribution::methods::{LearnedFrom, LearnedRanker},
    dataset::{self, Dataset, Sample},
    score,
};

use super::targets::kind;

/// Rows that a real model made.
pub fn rows() -> Vec<Vec<u8>> {
    let rows = include_str!("../../../examples/data/real-model/debate/dataset.jsonl").lines();
    rows.filter(|row| row.len() < super::LENGTH_MAX).take(6).map(|row| row.as_bytes().to_vec()).collect()
}

/// A row that is read is written and read back as it was, and can be scored; any other is an error that names its line.
pub fn row(input: &[u8]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("dataset.jsonl");
    std::fs::write(&file, input).expect("written");
    let opened = Dataset::open(&file).expect("a file");
    let read = opened.samples().map(|placed| match placed {
        Ok(placed) => {
            let text = serde_json::to_string(&placed.sample).expect("a row");
            assert_eq!(serde_json::from_str::<Sample>(&text).expect("read back"), placed.sample);
            let gold = dataset::gold(&placed.sample);
            let steps = placed.sample.steps.len();
            assert!(gold.is_none_or(|gold| gold.speakers.len() == steps));
            format!("{:?} {}", placed.sample.kind, steps.min(4))
        }
        Err(error) => {
            assert!(error.to_string().contains("dataset.jsonl"), "{error}");
            kind(&error.to_string().replace(&*dir.path().to_string_lossy(), ""))
        }
    });
    read.take(3).collect::<Vec<_>>().join("|")
}

/// Each form that predictions come in.
pub fn predicted() -> Vec<Vec<u8>> {
    let forms = [
        r#"{"id": "a", "agent": "solver", "step": 3}"#,
        r#"{"id": "a", "predictions": [{"agent": "solver", "step": 3}, {"agent": "critic", "step": 4}]}"#,
        r#"{"id": "a", "faulty_agents": [{"agent_name": "solver", "error_type": "FM-1.3"}]}"#,
        r#"[{"id": "a", "response": "Agent Name: solver\nStep Number: 3\nReason for Mistake: it added"}]"#,
        "Prediction for a.json:\nAgent Name: solver\nStep Number: 3\nReason for Mistake: it added\n\n====\n",
    ];
    forms.iter().map(|form| form.as_bytes().to_vec()).collect()
}

/// Every prediction stands at a line of the file, and as many texts are read for rewards.
pub fn predictions(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let texts = score::read::completions(&text);
    match score::read::predictions(&text) {
        Ok(read) => {
            assert!(read.iter().all(|one| one.line >= 1 && one.line <= text.lines().count().max(1)), "{read:?}");
            assert_eq!(texts.expect("the same file").len(), read.len());
            let shape = |answer: &score::PredictedAnswer| match answer {
                score::PredictedAnswer::Set(guesses) => format!("set {}", guesses.len().min(3)),
                score::PredictedAnswer::Ranked(guesses) => format!("ranked {}", guesses.len().min(3)),
                score::PredictedAnswer::Unparsed(why) => kind(why),
            };
            read.iter().take(3).map(|one| shape(&one.answer)).collect::<Vec<_>>().join("|")
        }
        Err(error) => kind(&error.to_string()),
    }
}

/// What `aegis learn` writes, and less.
pub fn rankers() -> Vec<Vec<u8>> {
    let feature = |name: &str| format!("[[feature]]\nname = \"{name}\"\nweight = 0.5\nmean = 1.0\nscale = 2.0\n");
    let files = [
        "format = 1\n".to_owned(),
        format!("format = 1\n{}", feature("position")),
        format!("format = 2\n{}", feature("x")),
        format!("format = 1\n[learned_from]\nruns = 3\n{}", feature("words")),
    ];
    files.map(String::into_bytes).to_vec()
}

/// A ranker that is read is written and read back as it was.
pub fn ranker(input: &[u8]) -> String {
    match LearnedRanker::parse(&String::from_utf8_lossy(input), "prior.toml") {
        Ok(ranker) => {
            let text = ranker.to_toml(&LearnedFrom::default(), &[]);
            assert_eq!(LearnedRanker::parse(&text, "prior.toml").expect("read back"), ranker);
            "read".to_owned()
        }
        Err(error) => {
            assert!(error.to_string().starts_with("prior.toml: "), "{error}");
            kind(&error.to_string())
        }
    }
}
