//! Rows of `EvalPlus` (Liu et al., 2023) as JSON lines: `entry_point`, `canonical_solution`, `base_input` and `plus_input`
//! (lists of arguments) and `atol`, but no results. They are those of the reference solution, which runs beside the answer.

use serde_json::Value;

use super::{
    TaskSetRow, Unusable,
    unit_tests::{check as command, entry_name},
};
use crate::verify::Check;

/// What runs the answer beside the reference.
const RUNNER: &str = include_str!("evalplus.py");
/// Both have up to some thousand inputs to go through.
pub(super) const TIMEOUT_S: f64 = 60.0;
/// From here on a float may stand for a whole number that JSON readers cannot hold.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The command that compares. `prompt` is what stands before an answer that is a body alone, or nothing.
pub(super) fn check(row: &TaskSetRow<'_>, prompt: &str, reference: &str) -> Result<Check, Unusable> {
    let entry = entry_name(row.text(&["entry_point"])?)?;
    let mut inputs = Vec::new();
    for name in ["base_input", "plus_input"] {
        match row.field(&[name]) {
            Some(Value::Array(rows)) => inputs.extend(rows),
            None if name == "plus_input" => {}
            _ => return Err(Unusable::new(format!("no list in `{name}`"))),
        }
    }
    if inputs.is_empty() || !inputs.iter().all(|input| input.is_array()) {
        return Err(Unusable::new("an input is no list of arguments"));
    }
    if inputs.iter().any(|input| is_inexact(input)) {
        return Err(Unusable::new("an input holds a number too large to be read exactly"));
    }
    let margin = row.field(&["atol"]).and_then(Value::as_f64).unwrap_or_default();
    let files = vec![
        ("prompt.txt", prompt.to_owned()),
        ("reference.txt", reference.to_owned()),
        ("inputs.json", serde_json::to_string(&inputs).unwrap_or_default()),
    ];
    let runner = RUNNER.replace("ENTRY_POINT", entry).replace("TOLERANCE", &format!("{margin:?}"));
    Ok(command(runner, files, TIMEOUT_S))
}

/// Whether a value holds a number that may have been read as another.
fn is_inexact(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.is_f64() && number.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() > WHOLE_MAX)
        }
        Value::Array(values) => values.iter().any(is_inexact),
        Value::Object(values) => values.values().any(is_inexact),
        _ => false,
    }
}
