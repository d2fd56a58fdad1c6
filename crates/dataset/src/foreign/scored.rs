//! What a score says of a run: only what leaves no doubt is a verdict, anything else stands in the evidence.

use serde_json::Value;

use crate::trajectory::Verdict;

/// The verdict of one score: marks, labels, flags, and numbers from 1 and up to 0.
pub(super) fn verdict(value: &Value) -> Verdict {
    match value {
        Value::Bool(passed) => either(*passed),
        Value::Number(number) => match number.as_f64() {
            Some(number) if number >= 1.0 => Verdict::Success,
            Some(number) if number <= 0.0 => Verdict::Failure,
            _ => Verdict::Unknown,
        },
        Value::String(mark) => match mark.to_ascii_lowercase().as_str() {
            "c" | "correct" | "pass" | "passed" | "success" | "true" | "yes" => Verdict::Success,
            "i" | "incorrect" | "fail" | "failed" | "failure" | "false" | "no" => Verdict::Failure,
            _ => Verdict::Unknown,
        },
        _ => Verdict::Unknown,
    }
}

fn either(passed: bool) -> Verdict {
    if passed { Verdict::Success } else { Verdict::Failure }
}

/// The verdict of several scores, with all of them as evidence: where they disagree nobody can tell. `None` without any.
pub(super) fn together(scores: &[(String, Value)], kind: &str) -> Option<(Verdict, String)> {
    let (_, first) = scores.first()?;
    let all = verdict(first);
    let agreed = scores.iter().all(|(_, value)| verdict(value) == all);
    let shown = |value: &Value| value.to_string().chars().take(80).collect::<String>();
    let told: Vec<String> = scores.iter().map(|(name, value)| format!("{kind} `{name}` is {}", shown(value))).collect();
    Some((if agreed { all } else { Verdict::Unknown }, told.join("; ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_leaves_no_doubt_is_a_verdict() {
        for (value, expected) in [
            (json!("C"), Verdict::Success),
            (json!("I"), Verdict::Failure),
            (json!("P"), Verdict::Unknown),
            (json!("N"), Verdict::Unknown),
            (json!(1), Verdict::Success),
            (json!(0.0), Verdict::Failure),
            (json!(0.5), Verdict::Unknown),
            (json!(true), Verdict::Success),
            (json!({"a": 1}), Verdict::Unknown),
            (json!(null), Verdict::Unknown),
        ] {
            assert_eq!(verdict(&value), expected, "{value}");
        }
    }

    #[test]
    fn scores_that_disagree_are_no_verdict() {
        let scores = |values: &[Value]| {
            values.iter().enumerate().map(|(at, value)| (format!("s{at}"), value.clone())).collect::<Vec<_>>()
        };
        assert_eq!(together(&[], "score"), None);
        let (verdict, evidence) = together(&scores(&[json!("C"), json!(0)]), "score").expect("scores");
        assert_eq!((verdict, evidence.as_str()), (Verdict::Unknown, "score `s0` is \"C\"; score `s1` is 0"));
        assert_eq!(together(&scores(&[json!("I"), json!(0)]), "score").map(|told| told.0), Some(Verdict::Failure));
    }
}
