//! Files that hold the rows of several methods: the rows of one.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use super::{ReadError, json_rows};

/// Why the rows of a method cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Several methods speak of one run, and none was chosen.
    #[error("the file holds rows of {}: name one with `--method`", .0.join(", "))]
    Several(Vec<String>),
    /// The one that was chosen has no row.
    #[error("the file has no row of `{name}`: it holds rows of {}", if .known.is_empty() { "no method by name".to_owned() } else { .known.join(", ") })]
    None {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// The text of a prediction file with the rows of one method alone, each on its own line. Rows say their method in `method`; a
/// file in which every run is spoken of by one method passes as it is.
///
/// # Errors
/// [`ChoiceError`].
pub fn of_method<'a>(text: &'a str, name: Option<&str>) -> Result<Cow<'a, str>, ChoiceError> {
    let Some(rows) = json_rows(text)? else {
        return match name {
            Some(name) => Err(ChoiceError::None { name: name.to_owned(), known: Vec::new() }),
            None => Ok(Cow::Borrowed(text)),
        };
    };
    let method = |row: &Value| row.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known: BTreeSet<String> = rows.iter().map(|(_, _, row)| method(row)).collect();
    let Some(name) = name else {
        let ids: BTreeSet<&str> = rows.iter().map(|(_, id, _)| id.as_str()).collect();
        let pairs: BTreeSet<(&str, String)> = rows.iter().map(|(_, id, row)| (id.as_str(), method(row))).collect();
        return if pairs.len() > ids.len() {
            Err(ChoiceError::Several(known.into_iter().filter(|name| !name.is_empty()).collect()))
        } else {
            Ok(Cow::Borrowed(text))
        };
    };
    if !known.contains(name) {
        return Err(ChoiceError::None { name: name.to_owned(), known: known.into_iter().collect() });
    }
    // Every row keeps its line, so that what is said of one finds it.
    let mut lines: Vec<String> = Vec::new();
    for (line, _, row) in rows.into_iter().filter(|(_, _, row)| method(row) == name) {
        lines.resize(line.max(lines.len() + 1), String::new());
        if let Some(last) = lines.last_mut() {
            *last = row.to_string();
        }
    }
    Ok(Cow::Owned(lines.join("\n") + "\n"))
}

/// The rows of one method, of one model and with or without the right answer in its questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodRows {
    /// The method; empty where rows name none.
    pub method: String,
    /// The model that it asked; empty where it asked none.
    pub model: String,
    /// Whether its questions told the right answer.
    pub answer_shown: bool,
    /// Its rows as a prediction file.
    pub text: String,
}

/// A prediction file method by method, in order of their first rows; a log as it is.
///
/// # Errors
/// [`ReadError`].
pub fn by_method(text: &str) -> Result<Vec<MethodRows>, ReadError> {
    let nameless =
        || MethodRows { method: String::new(), model: String::new(), answer_shown: false, text: text.to_owned() };
    let Some(rows) = json_rows(text)? else { return Ok(vec![nameless()]) };
    let mut methods: Vec<MethodRows> = Vec::new();
    for (_, _, row) in rows {
        let said = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let (method, model) = (said("method"), said("model"));
        let answer_shown = row.get("gold") == Some(&Value::Bool(true));
        let same = |known: &&mut MethodRows| {
            (known.method.as_str(), known.model.as_str(), known.answer_shown) == (method, model, answer_shown)
        };
        let line = format!("{row}\n");
        match methods.iter_mut().find(same) {
            Some(known) => known.text.push_str(&line),
            None => methods.push(MethodRows { method: method.into(), model: model.into(), answer_shown, text: line }),
        }
    }
    Ok(methods)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::read::predictions;

    const TWO: &str = "{\"id\":\"a\",\"method\":\"x\",\"step\":1}\n{\"id\":\"a\",\"method\":\"y\",\"step\":2}\n";

    #[test]
    fn methods_are_told_apart_by_model_and_by_what_they_were_told() {
        let text = TWO.to_owned()
            + "{\"id\":\"b\",\"method\":\"x\",\"step\":1}\n{\"id\":\"a\",\"method\":\"x\",\"model\":\"m\",\"gold\":true,\"step\":1}\n";
        let methods = by_method(&text).expect("rows");
        let shape = |rows: &MethodRows| {
            (rows.method.clone(), rows.model.clone(), rows.answer_shown, predictions(&rows.text).expect("rows").len())
        };
        let named = |method: &str, model: &str, shown, rows| (method.to_owned(), model.to_owned(), shown, rows);
        let expected = [named("x", "", false, 2), named("y", "", false, 1), named("x", "m", true, 1)];
        assert_eq!(methods.iter().map(shape).collect::<Vec<_>>(), expected);
        let log = "Prediction for 1.json:\nAgent Name: A\n";
        assert_eq!(by_method(log).expect("a log")[0].text, log);
    }

    #[test]
    fn one_method_of_several() {
        let of = |name: &str| predictions(&of_method(TWO, Some(name)).expect(name)).expect("rows");
        let shape = |name: &str| of(name).into_iter().map(|p| (p.line, p.answer.guesses()[0].step)).collect::<Vec<_>>();
        assert_eq!((shape("x"), shape("y")), (vec![(1, Some(1))], vec![(2, Some(2))]));
        assert_eq!(of_method(TWO, None), Err(ChoiceError::Several(vec!["x".into(), "y".into()])));
        let error = of_method(TWO, Some("z")).expect_err("none").to_string();
        assert_eq!(error, "the file has no row of `z`: it holds rows of x, y");
        for alone in ["{\"id\":\"a\",\"step\":1}", "Prediction for 1.json:\nAgent Name: A\n"] {
            assert_eq!(of_method(alone, None).expect("as it is"), alone);
            assert!(of_method(alone, Some("x")).is_err());
        }
    }
}
