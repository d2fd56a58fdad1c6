//! Prediction files as people have them: JSON rows, Who&When inference logs, and the answers inside.
//!
//! A file is either a log of `Prediction for N.json:` blocks or JSON (one row a line, or one array). A row holds its
//! answer as fields or as the text that a model wrote; [`answer`] finds the answer in a text.

mod answer;
mod chosen;
mod fields;

use serde_json::Value;

pub use answer::answer;
pub use chosen::{ChoiceError, MethodRows, by_method, of_method};

use super::prediction::{PredictedAnswer, Prediction};

/// Fields that may name the run of a row, the first present one wins.
const ID: &[&str] = &["id", "run", "sample", "custom_id", "file", "question_ID"];
/// Fields that may hold a model's text, the first present one wins.
const TEXT: &[&str] =
    &["response_text", "raw_response", "response", "completion", "output", "text", "answer", "prediction"];

/// A file that holds no predictions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Neither rows nor blocks.
    #[error(
        "no predictions found: expected JSON rows such as `{{\"id\":\"run-1\",\"agent\":\"solver\",\"step\":3}}`, or a log with `Prediction for 1.json:` blocks"
    )]
    Neither,
    /// A line that is no JSON object.
    #[error("line {line}, column {column}: {why}")]
    Row {
        /// 1-based.
        line: usize,
        /// 1-based, in bytes.
        column: usize,
        /// What is wrong.
        why: String,
    },
}

/// A row's line, the run that it names, and the row.
pub(super) type ReadRow = (usize, String, Value);

/// What a model wrote about one run, before anything is read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Which run it is about.
    pub id: String,
    /// Where it stands in the file, 1-based.
    pub line: usize,
    /// The text; where a row holds fields and no text, their JSON.
    pub text: String,
}

/// Reads a prediction file.
///
/// # Errors
/// [`ReadError`] for a file of another kind, or a broken row. An answer that cannot be read is no error: it is an
/// [`PredictedAnswer::Unparsed`].
pub fn predictions(text: &str) -> Result<Vec<Prediction>, ReadError> {
    Ok(match items(text)? {
        Items::Rows(rows) => {
            let read = |(line, id, row): ReadRow| Prediction { id, line, answer: answer_of(&row) };
            rows.into_iter().map(read).collect()
        }
        Items::Blocks(blocks) => blocks
            .into_iter()
            .map(|block| Prediction { answer: answer(&block.text), id: block.id, line: block.line })
            .collect(),
    })
}

/// Reads the raw texts of a prediction file, for rewards that look at their form.
///
/// # Errors
/// As [`predictions`].
pub fn completions(text: &str) -> Result<Vec<Completion>, ReadError> {
    Ok(match items(text)? {
        Items::Rows(rows) => {
            let read = |(line, id, row): ReadRow| Completion { id, line, text: text_of(&row) };
            rows.into_iter().map(read).collect()
        }
        Items::Blocks(blocks) => blocks,
    })
}

/// The rows of a JSON prediction file, each with its line and the run that it names; none of a log.
///
/// # Errors
/// As [`predictions`].
pub(super) fn json_rows(text: &str) -> Result<Option<Vec<ReadRow>>, ReadError> {
    Ok(match items(text)? {
        Items::Rows(rows) => Some(rows),
        Items::Blocks(_) => None,
    })
}

enum Items {
    Rows(Vec<ReadRow>),
    Blocks(Vec<Completion>),
}

fn items(text: &str) -> Result<Items, ReadError> {
    let body = text.trim_start_matches('\u{feff}');
    match body.trim_start().chars().next() {
        Some('[') => {
            let rows: Vec<Value> = serde_json::from_str(body).map_err(|error| broken(&error, 1))?;
            rows.into_iter()
                .enumerate()
                .map(|(index, value)| row(value, index + 1))
                .collect::<Result<_, _>>()
                .map(Items::Rows)
        }
        Some('{') => rows(body).map(Items::Rows),
        _ if body.contains("Prediction for ") => Ok(Items::Blocks(blocks(body))),
        _ => Err(ReadError::Neither),
    }
}

fn rows(text: &str) -> Result<Vec<ReadRow>, ReadError> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<Value>(line) {
            Ok(value) => found.push(row(value, index + 1)?),
            // A file that is one object over several lines.
            Err(error) if found.is_empty() && error.is_eof() => {
                let value: Value = serde_json::from_str(text).map_err(|error| broken(&error, 1))?;
                return Ok(vec![row(value, 1)?]);
            }
            Err(error) => return Err(broken(&error, index + 1)),
        }
    }
    Ok(found)
}

fn broken(error: &serde_json::Error, line: usize) -> ReadError {
    ReadError::Row {
        line: line + error.line().saturating_sub(1),
        column: error.column(),
        why: format!("the row is no JSON: {error}"),
    }
}

fn row(value: Value, line: usize) -> Result<ReadRow, ReadError> {
    let id = ID.iter().find_map(|name| match value.get(*name)? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    });
    let id = id.ok_or_else(|| ReadError::Row {
        line,
        column: 1,
        why: "the row names no run: expected a field `id`".to_owned(),
    })?;
    Ok((line, id, value))
}

/// The text of a row; of a row without one, the JSON of its answer.
fn text_of(row: &Value) -> String {
    match TEXT.iter().find_map(|name| row.get(*name)) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => row.get("model_detection").unwrap_or(row).to_string(),
    }
}

/// The answer of a row: its fields, else the text in it.
fn answer_of(row: &Value) -> PredictedAnswer {
    if let Some(found) = row.get("model_detection").and_then(fields::read).filter(|found| !found.guesses().is_empty()) {
        return found;
    }
    if let Some(found) = fields::read(row) {
        return found;
    }
    let text = TEXT.iter().find_map(|name| row.get(*name));
    match text {
        Some(Value::String(text)) => answer(text),
        Some(other) => fields::read(other)
            .unwrap_or_else(|| PredictedAnswer::Unparsed("the answer is no text and names nobody".to_owned())),
        None => match row.get("model_detection").and_then(fields::read) {
            Some(nobody) => nobody,
            None => PredictedAnswer::Unparsed("the row holds no answer".to_owned()),
        },
    }
}

/// The blocks of a Who&When log, read leniently: words between file name and colon, bold markers and whole names pass.
fn blocks(text: &str) -> Vec<Completion> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut parts = text.split("Prediction for ");
    let mut before = parts.next().unwrap_or_default();
    for part in parts {
        line += before.matches('\n').count();
        before = part;
        // A reason may say the words too: only a file name and a colon make a header.
        let header = part.split_once(':').and_then(|(name, body)| Some((name.split_once(".json")?.0, body)));
        let Some((name, body)) = header.filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
        else {
            continue;
        };
        found.push(Completion { id: format!("{name}.json"), line, text: body.to_owned() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::Guess;

    fn prediction(agent: &str, step: i64) -> PredictedAnswer {
        PredictedAnswer::Set(vec![Guess { agent: Some(agent.into()), step: Some(step), mode: None }])
    }

    #[test]
    fn rows_arrays_and_logs() {
        let one = r#"{"id":"a","agent":"X","step":3}"#;
        let files = [
            one.to_owned(),
            format!("\u{feff}\n{one}\n\n"),
            format!("[{one}]"),
            "{\n \"id\": \"a\",\n \"agent\": \"X\",\n \"step\": 3\n}\n".to_owned(),
            r#"{"id":"a","response":"it was\n```json\n{\"agent\":\"X\",\"step\":3}\n```"}"#.to_owned(),
        ];
        for file in files {
            let found = predictions(&file).expect("a prediction file");
            assert_eq!((found[0].id.as_str(), &found[0].answer), ("a", &prediction("X", 3)), "{file}");
        }
        let log = "start\nPrediction for 1.json:\nAgent Name: X\nStep Number: 3\nReason for Mistake: r\n\n==\nPrediction for 2.json (Binary Search Result):\n**Agent Name:** Blu-Ray Expert\n**Step Number:** 4\nPrediction for 3.json: dunno\n";
        let found = predictions(log).expect("a log");
        let shape: Vec<_> =
            found.iter().map(|p| (p.id.as_str(), p.line, p.answer.guesses().first().cloned())).collect();
        assert_eq!(shape[0], ("1.json", 2, prediction("X", 3).guesses().first().cloned()));
        assert_eq!(shape[1], ("2.json", 8, prediction("Blu-Ray Expert", 4).guesses().first().cloned()));
        assert_eq!((shape[2].0, &shape[2].2), ("3.json", &None));
    }

    #[test]
    fn a_run_may_have_a_number_for_a_name_and_an_array_counts_its_rows() {
        let found = predictions(r#"[{"id":7,"agent":"X","step":3},{"run":"b","agent":"X","step":3}]"#).expect("rows");
        let shape: Vec<_> = found.iter().map(|p| (p.id.as_str(), p.line, &p.answer)).collect();
        assert_eq!(shape, [("7", 1, &prediction("X", 3)), ("b", 2, &prediction("X", 3))]);
    }

    #[test]
    fn only_a_file_name_and_a_colon_make_a_header() {
        let log = "Prediction for .json: x\nPrediction for a b.json: x\nPrediction for all of it: x\nPrediction for 1.json: x";
        let found = completions(log).expect("a log");
        let shape: Vec<_> = found.iter().map(|block| (block.id.as_str(), block.line, block.text.as_str())).collect();
        assert_eq!(shape, [("1.json", 4, " x")]);
    }

    #[test]
    fn broken_files_name_the_place() {
        for (file, expected) in [
            ("", "no predictions found"),
            ("hello", "no predictions found"),
            ("{\"id\":\"a\"}\n{\"id\":", "line 2, column 6"),
            ("{\"agent\":\"X\"}", "line 1, column 1: the row names no run"),
            ("[1]", "names no run"),
            ("[{\"id\":\"a\"}", "the row is no JSON"),
            ("[{\"id\":\"a\"},\n{\"id\":\"b\"},\n oops]", "line 3, column 2: the row is no JSON"),
            ("{\"id\":\"a\"}\n\n{\"id\": oops}", "line 3, column 8: the row is no JSON"),
            ("[{\"id\":\"a\"},{\"x\":1}]", "line 2, column 1: the row names no run"),
        ] {
            let error = predictions(file).expect_err(file).to_string();
            assert!(error.contains(expected), "{file}: {error}");
        }
    }

    #[test]
    fn rows_of_the_aegis_scripts() {
        let row = |rest: &str| format!("{{\"id\":\"a\",{rest}}}");
        for (rest, guesses) in [
            (r#""model_detection":{"faulty_agents":[{"agent_name":"S","error_type":"FM-1.1"}]}"#, Some(1)),
            (
                r#""model_detection":{"faulty_agents":[]},"response_text":"{\"faulty_agents\":[{\"agent_name\":\"S\"}]}""#,
                Some(1),
            ),
            (r#""model_detection":{"faulty_agents":[]}"#, Some(0)),
            (r#""error":"time out""#, None),
        ] {
            let found = predictions(&row(rest)).expect("a row");
            let answer = &found[0].answer;
            let expected = guesses.map_or_else(
                || matches!(answer, PredictedAnswer::Unparsed(_)),
                |n| *answer != PredictedAnswer::Unparsed(String::new()) && answer.guesses().len() == n,
            );
            assert!(expected, "{rest}: {answer:?}");
        }
    }
}
