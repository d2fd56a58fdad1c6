//! `SciBench` (Wang et al., 2023): problems of college textbooks. A row has `problem_text`, `answer_number`, `unit` in LaTeX,
//! perhaps with a power of ten (`$10^{11} \mathrm{~J}$`), `answer_latex`, `source` (the book) and `problemid`; files of
//! solved problems have `solution` too, which is not taken over.

use super::{
    Options, SetTerms, TaskSet, TaskSetRow, Unusable,
    row::{id_of, task},
};
use crate::{
    dataset::Task,
    verify::{Check, Numeric},
};

/// Units that the checker converts, and that begin no other unit of the set as it reads them.
const CONVERTED: [&str; 10] = ["mm", "cm", "m", "km", "mg", "g", "kg", "s", "min", "h"];
/// Layout of LaTeX, which says nothing about a unit.
const LAYOUT: [&str; 9] = ["\\mathrm", "\\textrm", "\\text", "\\rm", "\\,", "\\ ", "$", "{", "}"];
/// The margin, of the larger number: books round, and so do their readers.
const MARGIN: f64 = 0.05;

/// The set.
#[derive(Debug)]
pub(super) struct SciBench;

impl TaskSet for SciBench {
    fn name(&self) -> &'static str {
        "scibench"
    }
    fn description(&self) -> &'static str {
        "problems of science; `problem_text`, `answer_number`, `unit`; checked by `numeric` within 5 %"
    }
    fn terms(&self) -> SetTerms {
        SetTerms { source: "Wang et al., mandyyyyii/scibench; xw27/scibench", licence: "MIT", keep_private: None }
    }
    fn task(&self, row: &TaskSetRow<'_>, _: &Options) -> Result<Task, Unusable> {
        let problem = row.text(&["problem_text"])?;
        let number = row.word("answer_number").or_else(|_| row.word("answer_latex"));
        let number = number.ok().and_then(|said| number_of(&said));
        let number = number.ok_or_else(|| Unusable::new("no number in `answer_number`"))?;
        let (power, unit) = unit_of(row.text(&["unit"]).unwrap_or_default());
        let mut answer = power.map_or_else(|| number.clone(), |power| format!("{number}e{power}"));
        let plain = without_layout(&unit);
        if CONVERTED.contains(&plain.as_str()) {
            answer = format!("{answer} {plain}");
        }
        let question =
            if plain.is_empty() { problem.to_owned() } else { format!("{problem} The unit of the answer is {unit}.") };
        let kept = row.extra_fields(&[("source", "subject"), ("problemid", "problem"), ("unit", "unit")]);
        // Beside 1e-23 an absolute margin would take anything small.
        let absolute = if number.parse() == Ok(0.0) { 1e-9 } else { 0.0 };
        let check = Check::Numeric(Numeric { relative: MARGIN, absolute, ..Numeric::default() });
        Ok(task(self.name(), id_of(self.name(), &[problem, &unit]), question, answer, check, kept))
    }
}

/// The number as plain digits: `$-167$`, `+65.49`, `1,000`.
fn number_of(said: &str) -> Option<String> {
    let said: String =
        said.replace('−', "-").chars().filter(|c| !c.is_whitespace() && !matches!(c, '$' | ',')).collect();
    let number = said.strip_prefix('+').unwrap_or(&said);
    let digits = number.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '.'));
    (digits && number.parse::<f64>().is_ok()).then(|| number.to_owned())
}

/// The power of ten before a unit, and the unit without it.
fn unit_of(unit: &str) -> (Option<i16>, String) {
    let unit = unit.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ^", "^").replace("^ ", "^");
    let opened = unit.strip_prefix('$').map(str::trim_start);
    let inner = opened.unwrap_or(&unit).trim_start_matches("\\times").trim_start();
    let wrapped = inner.strip_prefix("\\mathrm{").filter(|inner| inner.starts_with("10^"));
    let Some(power) = wrapped.unwrap_or(inner).strip_prefix("10^") else { return (None, unit) };
    let (digits, rest) = match power.strip_prefix('{').and_then(|power| power.split_once('}')) {
        Some((digits, rest)) => (digits.trim(), rest),
        None => power.split_at(power.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(power.len())),
    };
    let Ok(power) = digits.parse() else { return (None, unit) };
    let rest = if wrapped.is_some() { rest.strip_prefix('}').unwrap_or(rest) } else { rest }.trim();
    let rest = match (opened, rest.strip_prefix('$')) {
        (Some(_), Some(closed)) => closed.trim().to_owned(),
        (Some(_), None) => format!("${rest}"),
        (None, _) => rest.to_owned(),
    };
    (Some(power), rest)
}

/// The unit without LaTeX's layout.
fn without_layout(unit: &str) -> String {
    let bare = LAYOUT.iter().fold(unit.to_owned(), |text, layout| text.replace(layout, ""));
    bare.chars().filter(|c| !c.is_whitespace() && *c != '~').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_numbers_as_the_set_writes_them() {
        for (unit, power, rest, bare) in [
            (r"$\mathrm{atm}$ ", None, r"$\mathrm{atm}$", "atm"),
            (r" $ \mathrm{~mm}$", None, r"$ \mathrm{~mm}$", "mm"),
            (r"$\mathrm{~kJ} \mathrm{~mol}^{-1}$", None, r"$\mathrm{~kJ} \mathrm{~mol}^{-1}$", "kJmol^-1"),
            (r"$10^{11} \mathrm{~J}$ ", Some(11), r"$\mathrm{~J}$", "J"),
            (r"$10^{-3} \text{kg}$", Some(-3), r"$\text{kg}$", "kg"),
            (r"10^6 m", Some(6), "m", "m"),
            (r" $10^{16}$ photons", Some(16), "photons", "photons"),
            (r"$10^{16}$", Some(16), "", ""),
            (r"$10 ^ {-6}m/s^2$", Some(-6), "$m/s^2$", "m/s^2"),
            (r"$\mathrm{10^7} \mathrm{~km}$", Some(7), r"$\mathrm{~km}$", "km"),
            (r"$\mathrm{10^{-4}} \mathrm{~cm}^3/\mathrm{s}$", Some(-4), r"$\mathrm{~cm}^3/\mathrm{s}$", "cm^3/s"),
            ("$\r\n10^{15} \\mathrm{~s}^{-1}\r\n$", Some(15), r"$\mathrm{~s}^{-1} $", "s^-1"),
            (r"$10^{x}$", None, r"$10^{x}$", "10^x"),
            (" ", None, "", ""),
        ] {
            let (found, left) = unit_of(unit);
            assert_eq!((found, left.as_str(), without_layout(&left).as_str()), (power, rest, bare), "{unit}");
        }
        for (said, number) in [
            ("+65.49", Some("65.49")),
            ("$-167$", Some("-167")),
            (" 1,020 ", Some("1020")),
            ("−3", Some("-3")),
            (r"$2\pi$", None),
            ("inf", None),
            ("", None),
        ] {
            assert_eq!(number_of(said).as_deref(), number, "{said}");
        }
    }
}
