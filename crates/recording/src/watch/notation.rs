//! What a sum within a text says, and where its surroundings show that its numbers go on in another notation.

use crate::trajectory::patterns;

patterns! {
    /// What stands behind a result that is no plain number: `25%`, `11:30`, `3R1`, `1.5e3`, `1 000`, `2 + 5`, `1 million`.
    GOES_ON = r"(?ix)^(?:
        [\p{N}_a-z√π] | [.:]\d | [\x20\t\u{a0}\u{2009}\u{202f}]+\d
        | [\x20\t]*[%‰°√π]
        | [\x20\t]*[*×x/÷+\-−–·^][\x20\t]*[$(√]?\d
        | \s*(?:percent|per\x20cent|pct|pi|am|pm|a\.m|p\.m|o['’]clock|dozens?|hundred\w*|thousand\w*|tausend\w*
            |k|mn|bn|mio|mrd|mill\w*|bill\w*|trill\w*|lakhs?|crores?)\b
        | [^\n=]{0,40}\b(?:mod|modulo|round|rounded|rounding|rounds|approx\w*|binary|hex\w*|octal|base)\b )";
    /// What makes the result of a division its whole part.
    WHOLE_PART = r"(?i)^(?:\.\.\.|…|[^\n=]{0,60}\b(?:r *\d+|remainder|rem|rest|left ?over|leftovers?|mod|modulo|whole|full)\b)";
    /// What makes of the number behind it a part of something longer.
    BELONGS = r"(?i)(?:\d:|\b(?:plus|minus|times|over|by|mod|modulo|sqrt|log|ln|sin|cos|tan|(?:root|half|third|quarter|percent|power|%) of)\s+)$";
    /// A number with commas between its thousands, and one without.
    GROUPED = r"^(?:\d+|[1-9]\d{0,2}(?:,\d{2,3})*,\d{3})(?:\.\d+)?$";
    /// The same where the comma is the decimal sign.
    GROUPED_BY_DOTS = r"^(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d+)?$";
}

/// How far before a number it is looked for what it belongs to, in characters.
const NEAR: usize = 24;
/// By how much a result changes that is told in another unit than its sum: minutes as hours, cents as dollars.
const UNITS: &[f64] =
    &[7.0, 10.0, 12.0, 16.0, 24.0, 30.0, 36.0, 52.0, 60.0, 100.0, 365.0, 1e3, 1760.0, 3600.0, 5280.0, 1e6, 1e9];

/// One operation with its result, as it stands in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenSum<'a> {
    /// The text before it.
    pub(super) before: &'a str,
    /// The text behind it.
    pub(super) after: &'a str,
    /// The first number.
    pub(super) one: &'a str,
    /// The sign, with the blanks around it.
    pub(super) sign: &'a str,
    /// The second number.
    pub(super) other: &'a str,
    /// The result.
    pub(super) said: &'a str,
    /// Whether a currency stands before the result.
    pub(super) money: bool,
}

impl WrittenSum<'_> {
    /// The right result, where the one that is said is wrong in every reading of what is written.
    pub(super) fn right(&self) -> Option<f64> {
        if belongs(self.before) || GOES_ON.is_match(self.after) {
            return None;
        }
        let (right, said) = self.read(english)?;
        let holds = |(right, said): (f64, f64)| (right - said).abs() <= 0.01 * right.abs().max(1.0);
        if holds((right, said)) || self.read(by_dots).is_some_and(holds) {
            return None;
        }
        let divides = matches!(self.sign.trim(), "/" | "÷");
        let whole_part = divides && (right - said).abs() < 1.0 && WHOLE_PART.is_match(self.after);
        let told_in_units =
            self.money || self.after.trim_start().starts_with(|c: char| c.is_alphabetic() || is_money(c));
        let converted = told_in_units && UNITS.iter().any(|by| holds((right * by, said)) || holds((right, said * by)));
        // `9-17 = 8 hours`: from one to the other, and no subtraction.
        let (dash, rises) = (matches!(self.sign, "-" | "–"), right < 0.0 && said > 0.0);
        if whole_part || converted || (dash && rises) { None } else { Some(right) }
    }

    /// What it comes to and what it says, in one way of reading numbers.
    fn read(&self, number: fn(&str) -> Option<f64>) -> Option<(f64, f64)> {
        let (one, other) = (number(self.one)?, number(self.other)?);
        let said = match self.said.strip_prefix('-') {
            Some(said) => -number(said)?,
            None => number(self.said)?,
        };
        let right = match self.sign.trim() {
            "+" => one + other,
            "-" | "−" | "–" => one - other,
            "/" | "÷" => one / other,
            _ => one * other,
        };
        Some((right, said))
    }
}

/// Whether the number behind such a text is a part of something longer: of a sum, a time, a version, a power.
fn belongs(before: &str) -> bool {
    let near = before.chars().next_back();
    let word = |c: char| c.is_ascii_alphanumeric() || c.is_numeric() || "_%‰°√~≈±#@&)\\".contains(c);
    let from = before.char_indices().rev().nth(NEAR).map_or(0, |(at, _)| at);
    near.is_some_and(word)
        || before.trim_end().ends_with(|c: char| "*×x/÷+-−–·^(.0123456789".contains(c))
        || BELONGS.is_match(before.get(from..).unwrap_or_default())
}

/// Whether a result goes on behind itself, in another notation or with what remains.
pub(super) fn goes_on(after: &str) -> bool {
    GOES_ON.is_match(after) || WHOLE_PART.is_match(after)
}

fn is_money(c: char) -> bool {
    "$€£¥¢₹".contains(c)
}

/// `1,234.5`; nothing where its commas part no thousands.
fn english(text: &str) -> Option<f64> {
    if GROUPED.is_match(text) { text.replace(',', "").parse().ok() } else { None }
}

/// `1.234,5`.
fn by_dots(text: &str) -> Option<f64> {
    if GROUPED_BY_DOTS.is_match(text) { text.replace('.', "").replace(',', ".").parse().ok() } else { None }
}

/// The numbers of a text, without thousands' commas. Not as `WrittenNumber` has them: what holds a digit and no blank is one, so that
/// `10:30` and `v1.2` are known again as they are written; the rates of the rules, and the learned ranker, were measured so.
pub fn in_text(text: &str) -> impl Iterator<Item = String> {
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit()).replace(',', "");
    text.split(|c: char| c.is_whitespace() || matches!(c, '$' | '(' | ')' | '=' | '*' | '/' | '+'))
        .map(plain)
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::watch::{Past, WatchedStep, numbers::calculation};

    fn seen(said: &str) -> Option<String> {
        let step = WatchedStep { reply: said.to_owned(), ..WatchedStep::default() };
        calculation(&Past::default(), &step).map(|sighting| sighting.seen)
    }

    #[test]
    fn a_wrong_sum_is_seen_in_plain_notation() {
        for (said, right) in [
            ("So 6 * 7 = 43.", "42"),
            ("96 - 12 = 94 pencils left. ANSWER: 94", "84"),
            ("1. Multiply. 2) 6 * 7 = 43, so it is 43", "42"),
            ("The sum of 3 + 4 = 8", "7"),
            ("$1,200 x 3 = $3,700", "3600"),
            ("0.5 * 3 = 1.6", "1.5"),
            ("6 * 7 = 43!", "42"),
            ("6 * 7 = 43\n2. Go on", "42"),
            ("6 * 7 = 43\n- 2 boxes", "42"),
            ("8 * 5 = 41 hours", "40"),
            ("6 * 7 = 420", "42"),
            ("7 / 2 = 3", "3.5"),
            ("9 / 2 = 3 remainder 1", "4.5"),
            ("5-3 = 4", "2"),
            ("Total:6 * 7 = 43", "42"),
            ("He spent 40 + 2 = 43 € there", "42"),
            ("答案是6 * 7 = 43。", "42"),
        ] {
            assert!(
                seen(said).is_some_and(|seen| seen.ends_with(&format!("it is {right}"))),
                "{said}: {:?}",
                seen(said)
            );
        }
    }

    #[test]
    fn nothing_is_said_of_sums_in_another_notation() {
        for said in [
            // Parts of a whole, units that the result alone is in, numbers by name.
            "25 / 100 = 25%",
            "25 / 100 = 25 %",
            "0.5 * 100 = 50 percent",
            "4 * 5 = 20%",
            "90 + 60 = 2.5 hours",
            "50 + 50 = $1",
            "50 + 50 = 1 €",
            "2 * 500 = 1 km",
            "5 * 200 = 1 thousand",
            "6 + 6 = 1 dozen",
            "500 * 2000 = 1M",
            "500 * 2000 = 1 million",
            // Powers, hexadecimals, versions, other bases.
            "1.5e3 * 2 = 3000",
            "1e3 + 1 = 1001",
            "2 * 1500 = 3e3",
            "2 * 1500 = 3 × 10^3",
            "2 * 1500 = 3·10³",
            "10^2 + 5 = 105",
            "8 * 2 = 2^4",
            "8 * 2 = 4²",
            "0x10 + 1 = 0x11",
            "15 + 1 = 0x10",
            "1.2.3 + 1 = 1.2.4",
            "v3 + 1 = 5",
            "101 + 1 = 110 in binary",
            "√16 + 2 = 6",
            "square root of 16 + 2 = 6",
            "3 * 2 = 2π",
            // Times and spans.
            "9:30 + 2 = 11:30",
            "9 + 2 = 11:30",
            "10 + 4 = 2 pm",
            "10 + 5 = 3 o'clock",
            "9-17 = 8 hours",
            // Remainders and fractions.
            "7 / 2 = 3 remainder 1",
            "7 / 2 = 3 r 1",
            "7 / 2 = 3 R1",
            "7 / 2 = 3R1",
            "7 / 2 = 3, remainder 1",
            "7 / 2 = 3 (with 1 left over)",
            "7 / 2 = 3 mod 2",
            "5 + 4 = 2 (mod 7)",
            "7 / 2 = 3 1/2",
            "7 / 2 = 3½",
            "10 / 3 = 3...",
            "10 / 3 = 4 (rounded up)",
            "1 / 3 = 1/3",
            "1 1/2 + 1/2 = 2",
            "1 / 3 = ≈ 0.3",
            "7 / 2 ≈ 4",
            // Parts of longer ones.
            "3 + 4 * 2 = 11",
            "3 + 4 = 2 + 5",
            "10 plus 3 * 2 = 16",
            "half of 3 + 4 = 5.5",
            "20% + 5 = 25",
            // Thousands and decimals as others write them.
            "500 * 4 = 2.000",
            "500 * 4 = 2 000",
            "1 000 + 1 = 1 001",
            "1,5 + 1,5 = 3",
            "1,500 * 2 = 3",
            "1_000 + 1 = 1_001",
            "1.000.000 * 2 = 2.000.000",
            // Right ones.
            "So 6 * 7 = 42.",
            "1/3 = 0.33",
            "3 * 1,200 = 3,600, so",
            "10 - 2 = 8 - 3 = 5",
            "-5 + 3 = -2",
        ] {
            assert_eq!(seen(said), None, "{said}");
        }
    }
}
