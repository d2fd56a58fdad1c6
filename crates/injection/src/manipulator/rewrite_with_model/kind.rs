//! The kinds of task that templates are specialised for, and how one is told from a task's text.

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::trajectory::patterns;

/// Kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Mathematics, including word problems.
    Maths,
    /// Programs.
    Code,
    /// Questions with lettered options.
    MultipleChoice,
    /// Quantities with units, experiments, laws of nature.
    Science,
    /// Anything else.
    General,
}

patterns! {
    OPTIONS = r"(?m)^\s*\(?([A-J])[).:]\s*\S";

    CODE = r"(?i)```|\bdef \w+\(|\bfn \w+\(|\bclass \w+[:({]|\bassert \w|\b(write|implement|complete|fix|refactor|debug)\b[^.\n]{0,60}\b(function|method|program|script|class|code|module|api|query)\b|\bunit tests?\b";

    SCIENCE = r"(?i)\b(mol|moles?|joules?|kelvin|pascals?|newtons?|volts?|amperes?|watts?|hertz|wavelength|enthalpy|entropy|velocity|acceleration|momentum|molecul\w+|isotopes?|reaction|electrons?|photons?|enzymes?|gravit\w+|pressure|temperature|density|circuit|orbit\w*|quantum|thermodynamic\w*|chemical|physics|chemistry|biology)\b";

    MATHS = r"(?i)\bhow (many|much|far|long|old)\b[^?]*\?|\b(calculate|compute|evaluate|simplify|solve for|sum of|product of|remainder|probability|integral|derivative|equation|triangle|polynomial|prime|percent(age)?|average)\b|\\(frac|sqrt|boxed|int|sum)\b|\$[^$]*\d[^$]*\$|\d\s*[-+*/×÷=^]\s*\d";
}

impl TaskKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Maths, Self::Code, Self::MultipleChoice, Self::Science, Self::General];

    /// Its name, as plans and templates write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Maths => "maths",
            Self::Code => "code",
            Self::MultipleChoice => "multiple_choice",
            Self::Science => "science",
            Self::General => "general",
        }
    }

    /// The kind of a task by its text: lettered options first, then programs, then quantities. A sum counts only where
    /// it is asked for by words of the subject or by an operation, and science only where a number is at stake.
    pub fn from_text(task: &str) -> Self {
        let hit = |pattern: &Regex| pattern.is_match(task);
        let has_digits = task.chars().any(|c| c.is_ascii_digit());
        if has_options(task) {
            Self::MultipleChoice
        } else if hit(&CODE) {
            Self::Code
        } else if hit(&SCIENCE) && has_digits {
            Self::Science
        } else if hit(&MATHS) && has_digits {
            Self::Maths
        } else {
            Self::General
        }
    }
}

/// Whether the text offers options: A, B and so on, each on a line of its own, two at least, from A.
fn has_options(task: &str) -> bool {
    let letters: Vec<&str> =
        OPTIONS.captures_iter(task).filter_map(|found| found.get(1)).map(|letter| letter.as_str()).collect();
    letters.windows(2).any(|pair| pair == ["A", "B"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_from_tasks() {
        for (task, expected) in [
            ("A shop has 12 boxes of 8 pencils; how many pencils are left after 12 are sold?", TaskKind::Maths),
            ("Evaluate \\frac{1}{2} + 3.", TaskKind::Maths),
            ("What is 17 + 25?", TaskKind::Maths),
            ("Find the capital of France.", TaskKind::General),
            ("Solve the mystery of the missing painting; the museum costs $ 12 to enter.", TaskKind::General),
            ("def add(a, b):\n    \"\"\"Adds.\"\"\"", TaskKind::Code),
            ("Write a function that returns the sum of a list.", TaskKind::Code),
            ("Which is right?\nA) one\nB) two\nC) 3 + 4", TaskKind::MultipleChoice),
            ("Which planet?\n(A) Mars\n(B) Venus", TaskKind::MultipleChoice),
            ("B. Franklin wrote\nA. letter", TaskKind::General),
            ("A ball falls for 3 s; what is its velocity?", TaskKind::Science),
            ("Explain why chemistry matters.", TaskKind::General),
            ("", TaskKind::General),
        ] {
            assert_eq!(TaskKind::from_text(task), expected, "{task}");
        }
    }
}
