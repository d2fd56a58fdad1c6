//! A verdict in the words of OpenTelemetry's GenAI conventions (semantic-conventions-genai v0.1.0), for those who write spans.

use super::Verdict;

/// The conventions whose names are written, for `schemaUrl`.
pub const GENAI_SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai/0.1.0";
/// The event of a result.
pub const EVALUATION_EVENT: &str = "gen_ai.evaluation.result";

/// The result of an evaluation: `gen_ai.evaluation.score.label` and `gen_ai.evaluation.score.value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvaluationScore {
    /// `pass` or `fail`.
    pub label: &'static str,
    /// 1 or 0.
    pub value: u8,
}

impl Verdict {
    /// The verdict as a score; `None` where nothing is known.
    pub fn score(self) -> Option<EvaluationScore> {
        match self {
            Verdict::Success => Some(EvaluationScore { label: "pass", value: 1 }),
            Verdict::Failure => Some(EvaluationScore { label: "fail", value: 0 }),
            Verdict::Unknown => None,
        }
    }
}
