//! The table of the papers: F1 of pairs, agents and failure modes, and accuracy, of predictions and of the rules beneath them.

use std::io::{self, Write};

use clap::ValueEnum;

use crate::score::{Baseline, Report, RuleF1, SetScore, Share};

/// How the table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    /// A Markdown table.
    Markdown,
    /// A `tabular` of LaTeX, with `booktabs`.
    Latex,
}

const COLUMNS: [&str; 8] =
    ["pair µF1", "pair MF1", "agent µF1", "agent MF1", "mode µF1", "mode MF1", "agent acc.", "step acc."];

/// One row: a name, and a share for each column; none where there is nothing to measure.
struct PaperRow {
    name: String,
    figures: [Option<f64>; COLUMNS.len()],
}

/// Writes the table of a method and of the rules without a model.
pub(super) fn write(name: &str, report: &Report, format: TableFormat, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<PaperRow> =
        std::iter::once(of_method(name, report)).chain(report.baselines.iter().map(of_rule)).collect();
    match format {
        TableFormat::Markdown => {
            writeln!(out, "| % | {} |", COLUMNS.join(" | "))?;
            writeln!(out, "|---|{}", "--:|".repeat(COLUMNS.len()))?;
            rows.iter()
                .try_for_each(|row| writeln!(out, "| {} | {} |", row.name.replace('|', "\\|"), row.cells().join(" | ")))
        }
        TableFormat::Latex => {
            writeln!(out, "\\begin{{tabular}}{{l{}}}\n\\toprule", "r".repeat(COLUMNS.len()))?;
            let heads = COLUMNS.map(|column| column.replace('µ', "$\\mu$"));
            writeln!(out, "\\% & {} \\\\\n\\midrule", heads.join(" & "))?;
            rows.iter().try_for_each(|row| writeln!(out, "{} & {} \\\\", latex(&row.name), row.cells().join(" & ")))?;
            writeln!(out, "\\bottomrule\n\\end{{tabular}}")
        }
    }
}

impl PaperRow {
    fn cells(&self) -> Vec<String> {
        let cell =
            |figure: &Option<f64>| figure.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0));
        self.figures.iter().map(cell).collect()
    }
}

fn of_method(name: &str, report: &Report) -> PaperRow {
    let f1 = |score: &Option<SetScore>| score.as_ref().map(|score| (score.micro.f1, score.macro_.f1)).unzip();
    let ((pair, pair_mean), (agent, agent_mean), (mode, mode_mean)) =
        (f1(&report.pair), f1(&report.agent), f1(&report.mode));
    let share = |share: &Share| (share.of > 0).then_some(share.share);
    let accuracy = [share(&report.accuracy.agent), share(&report.accuracy.step)];
    let [agent_share, step_share] = accuracy;
    PaperRow {
        name: name.to_owned(),
        figures: [pair, pair_mean, agent, agent_mean, mode, mode_mean, agent_share, step_share],
    }
}

fn of_rule(rule: &Baseline) -> PaperRow {
    let f1 = |f1: Option<RuleF1>| f1.map(|f1| (f1.micro, f1.macro_)).unzip();
    let ((pair, pair_mean), (agent, agent_mean), (mode, mode_mean)) =
        (f1(rule.pair_f1), f1(rule.agent_f1), f1(rule.mode_f1));
    let name = if rule.hindsight { format!("{} *", rule.rule) } else { rule.rule.to_owned() };
    PaperRow { name, figures: [pair, pair_mean, agent, agent_mean, mode, mode_mean, rule.agent, rule.step] }
}

/// A text in which nothing is a command.
fn latex(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', character]),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            plain => escaped.push(plain),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_in_latex_too() {
        assert_eq!(latex("a_b & 5 % \\x"), "a\\_b \\& 5 \\% \\textbackslash{}x");
    }
}
