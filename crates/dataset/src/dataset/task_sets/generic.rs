//! A set of one's own, or any other: rows with a question and an answer, perhaps choices and an id, under whatever names the
//! user says (`--map question=prompt`). A name may lead into a field: `data.prompt`.

use serde_json::Value;

use super::{
    Options, SetTerms, TaskFields, TaskSet, TaskSetRow, Unusable,
    letters::{check, letter, place, question_text, usable},
    row::{id_of, plain_number, task},
};
use crate::{
    dataset::Task,
    verify::{self, Check, Normalised, Numeric},
};

/// The set.
#[derive(Debug)]
pub(super) struct Generic;

impl TaskSet for Generic {
    fn name(&self) -> &'static str {
        "generic"
    }
    fn description(&self) -> &'static str {
        "any rows; `question`, `answer`, perhaps `choices` and `id`, or other fields by `--map`; checked by `choice`, `numeric` or `normalised`"
    }
    fn terms(&self) -> SetTerms {
        SetTerms { source: "the file that was read", licence: "see where the file is from", keep_private: None }
    }
    fn task(&self, row: &TaskSetRow<'_>, options: &Options) -> Result<Task, Unusable> {
        let names = &options.fields;
        let question = question_text_in(row, names.name("question"))?;
        let answer = required(row, names.name("answer"))?;
        let kept = row.extra_fields(&[("canary", "canary"), ("Canary String", "canary")]);
        let (question, answer, check) = if let Some(choices) = choices(row, names)? {
            let texts: Vec<&str> = choices.texts.iter().map(String::as_str).collect();
            let texts = usable(texts).ok_or_else(|| no_choices(names))?;
            let right = choices.right(answer)?;
            (question_text(&question, &texts), right, check(&texts))
        } else {
            let answer =
                value_text(answer).ok_or_else(|| Unusable::new(format!("no text in `{}`", names.name("answer"))))?;
            // Beside 1e-23 an absolute margin would take anything small.
            let numeric = Numeric { absolute: 0.0, ..Numeric::default() };
            let check = if verify::is_number(&answer) {
                Check::Numeric(numeric)
            } else {
                Check::Normalised(Normalised::default())
            };
            (question, answer, check)
        };
        let id = match own_id(row, names)? {
            Some(own) => own,
            None => id_of(self.name(), &[&question]),
        };
        Ok(task(self.name(), id, question, answer, check, kept))
    }
}

/// A field by the name that the user says: one of that name, else one that its parts between dots lead to.
fn field<'a>(row: &TaskSetRow<'a>, name: &str) -> Option<&'a Value> {
    row.field(&[name]).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        rest.split('.').try_fold(row.field(&[first])?, |value, part| match value {
            Value::Object(fields) => fields.get(part),
            Value::Array(values) => values.get(part.parse::<usize>().ok()?),
            _ => None,
        })
    })
}

fn required<'a>(row: &TaskSetRow<'a>, name: &str) -> Result<&'a Value, Unusable> {
    field(row, name).ok_or_else(|| Unusable::new(format!("no field `{name}`")))
}

fn question_text_in(row: &TaskSetRow<'_>, name: &str) -> Result<String, Unusable> {
    let text = required(row, name)?.as_str().map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| Unusable::new(format!("no text in `{name}`")))
}

/// A value in words: a text, a number, yes or no, or a list of one of them.
fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(plain_number(number)),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Array(values) if values.len() == 1 => values.first().and_then(value_text),
        _ => None,
    }
}

fn own_id(row: &TaskSetRow<'_>, names: &TaskFields) -> Result<Option<String>, Unusable> {
    let name = names.name("id");
    let own = field(row, name).and_then(value_text);
    if own.is_none() && names.is_mapped("id") {
        return Err(Unusable::new(format!("no text in `{name}`")));
    }
    let plain = |own: &str| own.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    Ok(own.map(|own| if plain(&own) { format!("generic-{own}") } else { id_of("generic", &[&own]) }))
}

/// Choices, and what a row calls them if not by letters.
struct RowChoices {
    texts: Vec<String>,
    labels: Vec<String>,
}

fn no_choices(names: &TaskFields) -> Unusable {
    Unusable::new(format!("no list of choices in `{}`", names.name("choices")))
}

/// The choices of a row: a list, an object with `text` and `label`, or a field each, `A,B,C,D`.
fn choices(row: &TaskSetRow<'_>, names: &TaskFields) -> Result<Option<RowChoices>, Unusable> {
    let name = names.name("choices");
    let listed = |value: &Value| value.as_array()?.iter().map(value_text).collect::<Option<Vec<String>>>();
    let Some(value) = field(row, name) else {
        if !names.is_mapped("choices") {
            return Ok(None);
        }
        let each = name.split(',').map(|name| field(row, name.trim()).and_then(value_text));
        let texts = each.collect::<Option<Vec<String>>>().filter(|texts| texts.len() > 1);
        let texts = texts.ok_or_else(|| Unusable::new(format!("no field `{name}`")))?;
        return Ok(Some(RowChoices { texts, labels: Vec::new() }));
    };
    let found = match value {
        Value::Object(parts) => {
            let labels = parts.get("label").and_then(listed).unwrap_or_default();
            parts.get("text").and_then(listed).map(|texts| RowChoices { texts, labels })
        }
        value => listed(value).map(|texts| RowChoices { texts, labels: Vec::new() }),
    };
    found.map(Some).ok_or_else(|| no_choices(names))
}

impl RowChoices {
    /// The letter of the right choice, which a row names by its label, its words, its letter, or its place from 0.
    fn right(&self, answer: &Value) -> Result<String, Unusable> {
        let text = value_text(answer).unwrap_or_default();
        let only = |list: &[String]| {
            let mut places = list.iter().enumerate().filter(|(_, one)| **one == text).map(|(place, _)| place);
            places.next().filter(|_| places.next().is_none())
        };
        let place = match answer {
            _ if !self.labels.is_empty() => only(&self.labels).or_else(|| only(&self.texts)),
            Value::Number(number) => number.as_u64().and_then(|place| usize::try_from(place).ok()),
            _ => match (only(&self.texts), place(&text)) {
                (Some(words), Some(letter)) if words != letter => {
                    return Err(Unusable::new("the answer is the letter of one choice and the words of another"));
                }
                (words, letter) => words.or(letter).or_else(|| text.parse().ok()),
            },
        };
        let right = place.filter(|place| *place < self.texts.len()).and_then(letter);
        right.ok_or_else(|| Unusable::new("the answer is none of the choices"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(row: &Value, map: &[&str]) -> Result<Task, String> {
        let mut options = Options::default();
        map.iter().for_each(|pair| options.fields.add(pair).expect("a pair"));
        let fields = row.as_object().expect("an object");
        Generic.task(&TaskSetRow { fields, file: "f" }, &options).map_err(|Unusable(why)| why)
    }

    #[test]
    fn fields_under_any_name() {
        let colours = json!(["red", "green", "blue"]);
        for (row, map, found) in [
            (json!({"question": "q?", "answer": 84}), &[][..], Ok(("84", "numeric"))),
            (json!({"q": "q?", "a": "The Sea"}), &["question=q", "answer=a"], Ok(("The Sea", "normalised"))),
            (json!({"d": {"q": "q?", "a": ["x"]}}), &["question=d.q", "answer=d.a.0"], Ok(("x", "normalised"))),
            (json!({"question": "q?", "answer": "green", "choices": colours}), &[], Ok(("B", "choice"))),
            (json!({"question": "q?", "answer": "c", "choices": colours}), &[], Ok(("C", "choice"))),
            (json!({"question": "q?", "answer": 0, "choices": colours}), &[], Ok(("A", "choice"))),
            (json!({"question": "q?", "answer": "2", "choices": colours}), &[], Ok(("C", "choice"))),
            (json!({"question": "q?", "answer": "4", "choices": ["4", "2"]}), &[], Ok(("A", "choice"))),
            (json!({"question": "q?", "answer": 9, "choices": colours}), &[], Err("the answer is none of the choices")),
            (
                json!({"question": "q?", "answer": "A", "choices": ["B", "A"]}),
                &[],
                Err("the answer is the letter of one choice and the words of another"),
            ),
            (
                json!({"question": "q?", "answerKey": "3", "choices": {"text": colours, "label": ["1", "2", "3"]}}),
                &["answer=answerKey"],
                Ok(("C", "choice")),
            ),
            (
                json!({"question": "q?", "answer": "b", "one": "red", "two": "green"}),
                &["choices=one, two"],
                Ok(("B", "choice")),
            ),
            (json!({"question": "q?", "answer": "x", "choices": "red"}), &[], Err("no list of choices in `choices`")),
            (json!({"question": "q?"}), &[], Err("no field `answer`")),
            (json!({"question": "q?", "answer": "x"}), &["question=prompt"], Err("no field `prompt`")),
            (json!({"question": "q?", "answer": "x"}), &["choices=c"], Err("no field `c`")),
            (json!({"question": "q?", "answer": "x"}), &["id=n"], Err("no text in `n`")),
            (json!({"question": "q?", "answer": {}}), &[], Err("no text in `answer`")),
            (json!({"question": 7, "answer": "x"}), &[], Err("no text in `question`")),
        ] {
            let task = read(&row, map);
            let said = task.as_ref().map(|task| (task.answer.as_str(), task.check.as_ref().expect("a check").name()));
            assert_eq!(said.map_err(String::as_str), found, "{row}");
        }
        let named = |id: Value| read(&json!({"question": "q?", "answer": "x", "id": id}), &[]).expect("a task").id;
        assert_eq!((named(json!("Ab_1")), named(json!(7))), ("generic-Ab_1".to_owned(), "generic-7".to_owned()));
        assert!(named(json!("a/1")) != named(json!("a.1")));
    }

    #[test]
    fn what_may_be_named() {
        let mut fields = TaskFields::default();
        for pair in ["question", "anwser=a", "question="] {
            assert!(fields.add(pair).expect_err(pair).contains("question, answer, choices, id"), "{pair}");
        }
        fields.add("answer=a=b").expect("a pair");
        assert!(fields.add("answer=c").is_err() && fields.name("answer") == "a=b" && fields.name("id") == "id");
    }
}
