//! `numeric`: the same number, within a tolerance, whatever its unit's spelling.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Case, UnnamedVerdict,
    quantity::{Measured, Related, relate},
    value::close,
};

/// Compares numbers. The output's number is in its last `\boxed{…}`, else after its last `answer:` or `answer is`, else
/// its last number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Numeric {
    /// Maximum relative difference, by the larger number.
    pub relative: f64,
    /// Maximum absolute difference.
    pub absolute: f64,
    /// How units are compared.
    pub units: Units,
}

/// How units are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Units {
    /// Known units are converted, different dimensions differ, missing or unknown units are ignored.
    #[default]
    Convert,
    /// The expected unit, if any, must be given.
    Require,
    /// Only the numbers count.
    Ignore,
}

impl Default for Numeric {
    fn default() -> Self {
        Self { relative: 1e-6, absolute: 1e-9, units: Units::Convert }
    }
}

impl Numeric {
    pub(super) fn compare(&self, case: &Case<'_>) -> UnnamedVerdict {
        let Some(expected) = Measured::parse(case.expected) else { return UnnamedVerdict::unreadable("number", case) };
        let Some(got) = Measured::answer_in(case.output) else { return UnnamedVerdict::no_answer("number", case) };
        if self.units == Units::Require && expected.unit.is_some() && got.unit.is_none() {
            return UnnamedVerdict::new(false, format!("expected `{}`, got {} without a unit", case.expected, got.value));
        }
        let near = |(a, b): (f64, f64)| close(a, b, self.relative, self.absolute);
        let solved = match relate(expected, got) {
            _ if self.units == Units::Ignore => near((expected.value, got.value)),
            Related::Comparable(pairs) => pairs.into_iter().any(near),
            Related::Different => false,
        };
        UnnamedVerdict::compared(solved, &got.value.to_string(), case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        trajectory::Verdict::{self, Failure, Success, Unknown},
        verify::check_table,
    };

    #[test]
    fn hard_cases() {
        let table: &[(&str, &str, Verdict)] = &[
            ("84", "ANSWER: 84", Success),
            ("5040, the unit is  .", r"\boxed{5040}", Success),
            ("84", "84.0", Success),
            ("84", "The answer is 84 because 7 * 12 = 84, not 85.", Success),
            ("84", "Answer: 7 * 12 = 84 pencils", Success),
            ("84", "12 boxes of 8 are 96, minus 12 gives 84.", Success),
            ("84", "The answer is not 84.", Failure),
            ("84", "Answer: 84 or 85", Failure),
            ("84", "The answer is 84 to 90 pencils", Failure),
            ("84", "The answer is 84, or 7 boxes of 12.", Success),
            ("84", "Answer: **84**", Success),
            ("84", "The answer is x = 84.", Success),
            ("84", "no idea", Failure),
            ("84", "", Failure),
            ("eighty", "84", Unknown),
            ("1234567", "1,234,567", Success),
            ("1,000", "1000", Success),
            ("1000", "1 000", Failure),
            ("1000", "1\u{202f}000 km", Success),
            ("0.5", r"\boxed{\frac{1}{2}}", Success),
            ("1/2", "so 0.5", Success),
            ("1.5", "1 1/2", Success),
            ("1.5", r"\boxed{1\frac{1}{2}}", Success),
            ("0.75", r"$\dfrac{3}{4}$", Success),
            ("-3", "−3", Success),
            ("-3", "x = -3", Success),
            ("2", "5-3", Success),
            ("3", "pages 5-3", Success),
            ("2500", r"\boxed{2.5 \times 10^{3}}", Success),
            ("2500", "2.5e3", Success),
            ("0.000001", "0.0000011", Failure),
            ("3.14159265", "3.14159266", Success),
            ("0", "0.0", Success),
        ];
        check_table(|case| Numeric::default().compare(case), table);
    }

    #[test]
    fn units() {
        let table: &[(&str, &str, Verdict)] = &[
            ("5 km", "ANSWER: 5000 m", Success),
            ("5 km", "5 kg", Failure),
            ("5 km", "5", Success),
            ("90 minutes", "The answer is 1.5 hours.", Success),
            ("$28", "28 dollars", Success),
            ("$28", "€28", Failure),
            ("$1,200.50", "Answer: $1200.5", Success),
            ("$0.50", "50 cents", Success),
            ("25%", "25 percent", Success),
            ("25%", "0.25", Success),
            ("0.25", r"\boxed{25\%}", Success),
            ("25", "25%", Success),
            ("7 apples", "7 oranges", Success),
            (r"12\text{ cm}", r"\boxed{0.12 \text{ m}}", Success),
            (r"90^\circ", "90 degrees", Success),
        ];
        check_table(|case| Numeric::default().compare(case), table);
        let require = Numeric { units: Units::Require, ..Numeric::default() };
        check_table(|case| require.compare(case), &[("5 km", "5", Failure), ("5 km", "5000 m", Success)]);
        let ignore = Numeric { units: Units::Ignore, ..Numeric::default() };
        check_table(|case| ignore.compare(case), &[("5 km", "5 kg", Success), ("5 km", "5000 m", Failure)]);
    }

    #[test]
    fn tolerance() {
        let loose = Numeric { relative: 0.01, ..Numeric::default() };
        check_table(|case| loose.compare(case), &[("100", "100.9", Success), ("100", "102", Failure)]);
        let near_zero = Numeric { absolute: 0.05, ..Numeric::default() };
        check_table(|case| near_zero.compare(case), &[("0", "0.04", Success), ("0", "0.06", Failure)]);
    }
}
