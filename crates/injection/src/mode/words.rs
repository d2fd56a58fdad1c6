//! The words by which checks, verdicts and endings are known.

use serde_json::Value;

use crate::trajectory::patterns;

/// Words of a verdict, each with its opposites; the first is taken where the request offers none.
pub const VERDICTS: &[(&str, &[&str])] = &[
    ("correct", &["incorrect", "wrong"]),
    ("incorrect", &["correct"]),
    ("wrong", &["right", "correct"]),
    ("approve", &["reject", "revise"]),
    ("approved", &["rejected", "revise", "reject"]),
    ("approves", &["rejects"]),
    ("reject", &["approve", "accept"]),
    ("rejected", &["approved", "accepted"]),
    ("rejects", &["approves"]),
    ("revise", &["approved", "approve", "accept"]),
    ("accept", &["reject", "revise"]),
    ("accepted", &["rejected"]),
    ("valid", &["invalid"]),
    ("invalid", &["valid"]),
    ("passed", &["failed"]),
    ("failed", &["passed"]),
    ("passes", &["fails"]),
    ("fails", &["passes"]),
];

/// Words that are a verdict only where they end a sentence, a line or the text.
pub const STANDING_ALONE: &[(&str, &[&str])] = &[
    ("yes", &["no"]),
    ("no", &["yes"]),
    ("true", &["false"]),
    ("false", &["true"]),
    ("pass", &["fail"]),
    ("fail", &["pass"]),
    ("right", &["wrong"]),
    ("agree", &["disagree"]),
    ("disagree", &["agree"]),
];

/// Parts of keys whose booleans are verdicts, where a JSON answer has several.
pub const JSON_VERDICTS: &[&str] = &[
    "correct", "valid", "approv", "accept", "pass", "ok", "success", "true", "verdict", "right", "agree", "complete",
    "done", "satisf",
];

patterns! {
    CHECKING = r"(?i)\b(double-?)?(check(s|ed|ing)?|verif(y|ies|ied|ying|ication)|confirm(s|ed|ing|ation)?|re-?(comput|calculat|check|examin|test)\w*|test(s|ed|ing)?|validat\w+|sanity|proofread\w*|cross-?check\w*|(go|goes|went|going) (through|over))\b";

    VERDICT_LINE = r"(?im)^\W*(verdict|decision|status|result|review|assessment)?\W*(approved?|revise|reject(ed)?|accept(ed)?|correct|incorrect|wrong|right|valid|invalid|pass(ed)?|fail(ed)?|yes|no|true|false|agreed?|disagree)\b\W*($|[.,:;!\n—–-]|because|since)";

    VERDICT_SHOUTED = r"\b(APPROVED?|REVISE|REJECT(ED)?|ACCEPT(ED)?|INCORRECT|CORRECT|INVALID|VALID|PASS(ED)?|FAIL(ED)?)\b";

    VERDICT_SENTENCE = r"(?i)\b(is|are|was|were|looks?|seems?|appears?|not)\s+(\w+\s+)?((in)?correct|(in)?valid|right|wrong|(in)?accurate|sound|approved|rejected|accepted)\b|\b(i|we)\s+(\w+\s+)?(approve|reject|accept|agree|disagree)\b|\b(passes|fails|passed|failed)\b";

    TOLD_TO_CHECK = r"(?i)(\b(?:not|never|don't|do not|the|an?|this|that|no|any|of|last|next)\s+)?\b(double-?check|re-?check|cross-?check|check|verify|validate|audit|proofread|inspect|critique)\b|\bwho (checks|verifies|validates|audits|reviews|inspects)\b|\byou are (the |a |an )?(\w+ ){0,3}(critic|reviewer|verifier|auditor|checker|validator|inspector|proofreader)\b";

    TOLD_TO_RULE = r"(?is)\b(approved?|accept(ed)?)\b.{0,120}\b(revise|reject(ed)?|refuse)\b|\b(reject(ed)?|revise)\b.{0,120}\b(approved?|accept(ed)?)\b|\bcorrect\b.{0,60}\b(incorrect|wrong)\b|\bvalid\b.{0,60}\binvalid\b|\bpass\b.{0,40}\bfail\b|\b(say|reply|answer|respond|write)\W+(with\W+)?(APPROVED?|REVISE|REJECT|ACCEPT|PASS|YES or NO)\b";

    INFERENCE = r"(?i)\b(so|therefore|thus|hence|because|since|then|means|follows|conclude|accordingly|which (gives|makes|leaves))\b|\d\s*[-+*/×÷x]\s*\d+[^\n]*=|=\s*-?\d";

    ROLE = r"(?i)\b(you are|you're|act as|your (role|job|task) is)\b";

    ENDING_TOLD = r"(?i)\b(end|ends|finish|stop|conclude|terminate|close)\b[^.\n]{0,30}\b(with|when|once|by|after|as soon|if|unless|the)\b|\bTERMINATE\b|\bfinal (answer|line|result|reply|verdict)\b|\b(ANSWER|TOTAL|RESULT|FINAL|CONCLUSION|SOLUTION):|\bat most \w+ (rounds?|times?|turns?|steps?|tries|iterations?)\b|\buntil\b|\bwhen (you are |everything is |all is )?(done|finished|complete)\b";

    ENDING_REACHED = r"\b(ANSWER|TOTAL|RESULT|FINAL|CONCLUSION|SOLUTION):|\b(TERMINATE|DONE|FINISHED|COMPLETE)\b|(?i)\bfinal (answer|result|total)\b|\bthe (answer|result|total) is\b|\bin conclusion\b|\b(all|everything|task|work) (is |are )?(done|finished|complete)\b|\\boxed|####";
}

/// Whether a text speaks of checking anything.
pub fn speaks_of_checking(text: &str) -> bool {
    CHECKING.is_match(text)
}

/// Whether a text gives a verdict.
pub(super) fn gives_verdict(text: &str) -> bool {
    VERDICT_SHOUTED.is_match(text)
        || VERDICT_LINE.is_match(text)
        || VERDICT_SENTENCE.is_match(text)
        || serde_json::from_str(text).is_ok_and(|value: Value| holds_verdict(&value))
}

fn holds_verdict(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let key = key.to_lowercase();
            (value.is_boolean() && JSON_VERDICTS.iter().any(|part| key.contains(part))) || holds_verdict(value)
        }),
        Value::Array(values) => values.iter().any(holds_verdict),
        Value::String(text) => VERDICT_LINE.is_match(text) || VERDICT_SHOUTED.is_match(text),
        _ => false,
    }
}

/// Whether instructions tell the agent to check work.
pub(super) fn instructs_to_check(instructions: &str) -> bool {
    let orders = |found: regex::Captures<'_>| found.get(1).is_none();
    TOLD_TO_CHECK.captures_iter(instructions).any(orders) || instructs_to_rule(instructions)
}

/// Whether instructions tell the agent to give a verdict.
pub(super) fn instructs_to_rule(instructions: &str) -> bool {
    TOLD_TO_RULE.is_match(instructions)
}

/// Whether a message tells an agent what it is.
pub(super) fn gives_role(text: &str) -> bool {
    ROLE.is_match(text)
}

/// Whether instructions say how the work ends.
pub(super) fn names_ending(instructions: &str) -> bool {
    ENDING_TOLD.is_match(instructions)
}

/// Whether a reply ends the work.
pub(super) fn reaches_ending(reply: &str) -> bool {
    ENDING_REACHED.is_match(reply) || gives_verdict(reply)
}

/// Whether a text is one that people read: of JSON, a string of three words; of others, anything outside of code.
pub(super) fn is_prose(text: &str) -> bool {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => holds_words(&value),
        _ => without_code(text).chars().any(char::is_alphanumeric),
    }
}

fn holds_words(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(holds_words),
        Value::Array(values) => values.iter().any(holds_words),
        Value::String(text) => text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count() > 2,
        _ => false,
    }
}

/// The text without what stands between code fences.
fn without_code(text: &str) -> String {
    text.split("```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// Whether a text reasons and concludes: of two lines or sentences at least, one calculates or infers, ends the work or gives a
/// verdict.
pub(super) fn reasons_and_concludes(text: &str) -> bool {
    let parts: Vec<&str> = text.lines().flat_map(|line| line.split(". ")).filter(|part| is_prose(part)).collect();
    parts.len() > 1 && (INFERENCE.is_match(text) || parts.iter().any(|part| reaches_ending(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_told_from_reports() {
        for (text, expected) in [
            ("APPROVE", true),
            ("REVISE: the total is 8.", true),
            ("Verdict: wrong.", true),
            ("The solution is correct.", true),
            ("This is not quite right", true),
            ("I disagree with the plan.", true),
            ("No, 12 * 8 is 96.", true),
            (r#"{"approved": false, "why": "x"}"#, true),
            (r#"{"verdict": "revise"}"#, true),
            ("ITEMS: 2 clock; 3 chair", false),
            ("Multiply to get the correct total.", false),
            ("1. Multiply 12 by 8.\n2. Subtract 12.", false),
            ("No boxes are left over for the school", false),
            (r#"{"items": ["clock"], "express": true}"#, false),
            ("", false),
        ] {
            assert_eq!(gives_verdict(text), expected, "{text}");
        }
    }

    #[test]
    fn who_is_told_to_check_and_to_rule() {
        for (instructions, checks, rules) in [
            ("You are the critic. Check the solution; answer APPROVE or REVISE.", true, true),
            ("You are a strict code reviewer.", true, false),
            ("You are the auditor. Say APPROVE if the total holds.", true, true),
            ("Verify each price.", true, false),
            ("You are the planner. Do not check anything.", false, false),
            ("You are auditor, who checks the pricing. The last line begins with APPROVE, or with REVISE.", true, true),
            ("You are writer. Say what the order comes to, by the last line of the audit.", false, false),
            ("You are the solver. Carry out the plan.", false, false),
            ("You are the judge of a debate. Take the answer that most debaters give.", false, false),
            ("Your work is checked later by others.", false, false),
        ] {
            assert_eq!(
                (instructs_to_check(instructions), instructs_to_rule(instructions)),
                (checks, rules),
                "{instructions}"
            );
        }
    }

    #[test]
    fn endings_are_named_and_reached() {
        for (instructions, named) in [
            ("End with a line `ANSWER: <number>`.", true),
            ("Reply TERMINATE when the task is solved.", true),
            ("Discuss for at most three rounds.", true),
            ("You are the planner. Break the problem into steps.", false),
        ] {
            assert_eq!(names_ending(instructions), named, "{instructions}");
        }
        for (reply, reached) in [
            ("ANSWER: 84", true),
            ("The answer is 84.", true),
            ("APPROVE", true),
            ("1. Multiply 12 by 8.", false),
            ("Ask the solver.", false),
        ] {
            assert_eq!(reaches_ending(reply), reached, "{reply}");
        }
    }

    #[test]
    fn words_are_told_from_data_and_code() {
        for (text, expected) in [
            ("Step 1: 12 * 8 = 96.", true),
            ("ANSWER: 84", true),
            ("```python\nprint(1)\n```", false),
            ("Here it is:\n```python\nprint(1)\n```", true),
            (r#"{"city": "Rome", "n": 1}"#, false),
            (r#"{"plan": "Multiply twelve by eight."}"#, true),
            ("12 + 30 = 42.", true),
            ("42", true),
            ("...", false),
            ("", false),
        ] {
            assert_eq!(is_prose(text), expected, "{text}");
        }
    }

    #[test]
    fn reasoning_has_a_step_and_what_follows() {
        for (text, expected) in [
            ("12 * 8 = 96\n96 - 12 = 84\nANSWER: 84", true),
            ("Eight dozens are 96. So 84 are left.", true),
            ("I compared both.\nAPPROVE: the sum holds.", true),
            ("APPROVE. I recomputed the sum.", true),
            ("The customer wants 10 erasers, 6 notebooks. Delivery costs 7.", false),
            ("ANSWER: 84", false),
            ("APPROVE", false),
        ] {
            assert_eq!(reasons_and_concludes(text), expected, "{text}");
        }
    }
}
