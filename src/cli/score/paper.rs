//! The table of the papers: F1 of pairs, agents and failure modes, and accuracy, of predictions and of the rules beneath them.

use crate::cli::printed::{ScoreTable, ScoredSet, printed};
use std::{
    io::{self, Write},
    path::Path,
};

use clap::ValueEnum;

use super::{ScoreArgs, golds, read, unscored};
use crate::{
    cli::{Exit, Failure, Finished, Global, OutputFormat},
    score::{
        Baseline, Report, RuleF1, ScoreError, ScoringError, SetScore, Share, evaluate,
        read::{MethodRows, by_method, predictions},
    },
};

/// How the table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    /// A Markdown table.
    Markdown,
    /// A `tabular` of LaTeX, with `booktabs`.
    Latex,
}

/// A column: its name, and its figure for predictions and for a rule.
struct Column {
    name: &'static str,
    of_method: fn(&Report) -> Option<f64>,
    of_rule: fn(&Baseline) -> Option<f64>,
}

const COLUMNS: &[Column] = &[
    Column {
        name: "pair µF1",
        of_method: |report| micro(report.pair.as_ref()),
        of_rule: |rule| rule_micro(rule.pair_f1),
    },
    Column {
        name: "pair MF1",
        of_method: |report| mean(report.pair.as_ref()),
        of_rule: |rule| rule_mean(rule.pair_f1),
    },
    Column {
        name: "agent µF1",
        of_method: |report| micro(report.agent.as_ref()),
        of_rule: |rule| rule_micro(rule.agent_f1),
    },
    Column {
        name: "agent MF1",
        of_method: |report| mean(report.agent.as_ref()),
        of_rule: |rule| rule_mean(rule.agent_f1),
    },
    Column {
        name: "mode µF1",
        of_method: |report| micro(report.mode.as_ref()),
        of_rule: |rule| rule_micro(rule.mode_f1),
    },
    Column {
        name: "mode MF1",
        of_method: |report| mean(report.mode.as_ref()),
        of_rule: |rule| rule_mean(rule.mode_f1),
    },
    Column { name: "agent acc.", of_method: |report| share(&report.accuracy.agent), of_rule: |rule| rule.agent },
    Column { name: "step acc.", of_method: |report| share(&report.accuracy.step), of_rule: |rule| rule.step },
    // A rule blames somebody in each run.
    Column { name: "clean blamed", of_method: |report| share(&report.coverage.false_alarms), of_rule: |_| Some(1.0) },
];

/// The figures of several methods against one set of labels.
pub(super) struct PaperSet {
    /// What its columns are called after; empty for the only one.
    pub(super) name: String,
    /// Each method's, in the order of the rows; none where it has no prediction about this set.
    pub(super) reports: Vec<Option<Report>>,
}

/// The predictions of one method, under the name of its row.
struct MethodRow<'a> {
    name: String,
    file: &'a Path,
    rows: MethodRows,
}

/// The rows of all files, method by method, against each set of labels.
pub(super) fn run(
    arguments: &ScoreArgs,
    format: TableFormat,
    global: &Global,
    out: &mut dyn Write,
) -> Result<Finished, Failure> {
    let methods = method_rows(arguments)?;
    let Some(first) = methods.first() else {
        return Err(Failure::new(Exit::Usage, "the files hold no row of that method")
            .hint("leave --method out: a table has a row for each"));
    };
    if arguments.gold.is_empty() {
        return Err(unscored(first.file, &ScoringError::GoldNeeded("table")));
    }
    let several = arguments.gold.len() > 1;
    let mut sets = Vec::new();
    for path in &arguments.gold {
        let (labels, _) = golds(path, global.quiet)?;
        let report = |row: &MethodRow<'_>| {
            let said = predictions(&row.rows.text).map_err(|error| unscored(row.file, &error.into()))?;
            match evaluate(&labels, &said, arguments.base) {
                Ok(report) => Ok(Some(report)),
                Err(ScoreError::NoneMatch { .. }) if several => Ok(None),
                Err(error) => Err(unscored(row.file, &error.into())),
            }
        };
        let reports = methods.iter().map(report).collect::<Result<Vec<_>, Failure>>()?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        sets.push(PaperSet { name: if several { name } else { String::new() }, reports });
    }
    let mut names: Vec<String> = methods.iter().map(|row| row.name.clone()).collect();
    let mut files: Vec<&Path> = methods.iter().map(|row| row.file).collect();
    join_files(&mut names, &mut files, &mut sets);
    names = told_apart(&names, &files);
    if let Some(at) =
        (0..names.len()).find(|at| sets.iter().all(|set| set.reports.get(*at).is_none_or(Option::is_none)))
    {
        let name = names.get(at).map(String::as_str).unwrap_or_default();
        return Err(Failure::new(Exit::Usage, format!("no prediction of `{name}` is about a run of the data sets")));
    }
    if global.format == OutputFormat::Text {
        write(&names, &sets, format, out).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let labelled = sets.iter().map(|set| ScoredSet { gold: &set.name, strict: &set.reports }).collect::<Vec<_>>();
    let summary = format!("{} methods, {} sets of labels", names.len(), sets.len());
    Ok(Finished { exit: Exit::Ok, summary, data: printed(&ScoreTable { methods: &names, sets: labelled }) })
}

/// Makes one row of the files of one method, each about data sets of its own.
fn join_files(names: &mut Vec<String>, files: &mut Vec<&Path>, sets: &mut [PaperSet]) {
    for later in (1..names.len()).rev() {
        let known = |set: &PaperSet, at: usize| set.reports.get(at).is_some_and(Option::is_some);
        let apart = |earlier: &usize| sets.iter().all(|set| !(known(set, *earlier) && known(set, later)));
        let same = (0..later).filter(|earlier| names.get(*earlier) == names.get(later)).find(apart);
        let Some(earlier) = same else { continue };
        names.remove(later);
        files.remove(later);
        for set in sets.iter_mut() {
            let moved = set.reports.remove(later);
            if let Some(report) = set.reports.get_mut(earlier)
                && moved.is_some()
            {
                *report = moved;
            }
        }
    }
}

/// The names, each with its file where several files have a row of that name about the same runs.
fn told_apart(names: &[String], files: &[&Path]) -> Vec<String> {
    let repeats = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let named = names.iter().zip(files).map(|(name, file)| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        if repeats(name) { format!("{name} ({stem})") } else { name.clone() }
    });
    named.collect()
}

/// The rows of the files. A row is called by its method, or its file where it names none; by its model too where one method asked
/// several; and `+ answer` where its questions told the right one.
fn method_rows(arguments: &ScoreArgs) -> Result<Vec<MethodRow<'_>>, Failure> {
    let mut methods = Vec::new();
    for file in &arguments.predictions {
        let all = by_method(&read(file)?).map_err(|error| unscored(file, &error.into()))?;
        let wanted = |rows: &MethodRows| arguments.method.as_ref().is_none_or(|name| *name == rows.method);
        for rows in all.into_iter().filter(wanted) {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = if rows.method.is_empty() { stem } else { rows.method.clone() };
            methods.push(MethodRow { name, file, rows });
        }
    }
    let asked: Vec<(String, String)> = methods.iter().map(|row| (row.name.clone(), row.rows.model.clone())).collect();
    for row in &mut methods {
        let several = asked.iter().any(|(name, model)| *name == row.name && *model != row.rows.model);
        if several && !row.rows.model.is_empty() {
            row.name = format!("{}, {}", row.name, row.rows.model);
        }
        if row.rows.answer_shown {
            row.name.push_str(" + answer");
        }
    }
    Ok(methods)
}

/// Writes the table: a row for each method and for each rule without a model, columns for each set of labels. A column in which
/// no method has a figure is left out.
pub(super) fn write(methods: &[String], sets: &[PaperSet], format: TableFormat, out: &mut dyn Write) -> io::Result<()> {
    let (mut heads, mut rows) = (Vec::new(), Vec::<Vec<String>>::new());
    let rules = |set: &PaperSet| set.reports.iter().flatten().next().map(|report| report.baselines.clone());
    let known: Vec<Vec<Baseline>> = sets.iter().map(|set| rules(set).unwrap_or_default()).collect();
    let mut names: Vec<(&str, bool)> = Vec::new();
    for rule in known.iter().flatten() {
        if !names.iter().any(|(name, _)| *name == rule.rule) {
            names.push((rule.rule, rule.hindsight));
        }
    }
    rows.extend(methods.iter().map(|name| vec![name.clone()]));
    rows.extend(
        names.iter().map(|(name, hindsight)| vec![if *hindsight { format!("{name} *") } else { (*name).to_owned() }]),
    );
    for (set, rules) in sets.iter().zip(&known) {
        for column in COLUMNS {
            let figures: Vec<Option<f64>> =
                set.reports.iter().map(|report| report.as_ref().and_then(column.of_method)).collect();
            if figures.iter().all(Option::is_none) {
                continue;
            }
            let of_rule = |name: &str| rules.iter().find(|rule| rule.rule == name).and_then(column.of_rule);
            let all = figures.into_iter().chain(names.iter().map(|(name, _)| of_rule(name)));
            rows.iter_mut().zip(all).for_each(|(row, figure)| row.push(cell(figure)));
            heads.push(if set.name.is_empty() {
                column.name.to_owned()
            } else {
                format!("{}: {}", set.name, column.name)
            });
        }
    }
    match format {
        TableFormat::Markdown => markdown(&heads, &rows, out),
        TableFormat::Latex => tabular(&heads, &rows, out),
    }
}

fn markdown(heads: &[String], rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    let bare = |text: &String| text.replace('|', "\\|");
    writeln!(out, "| % | {} |", heads.iter().map(bare).collect::<Vec<_>>().join(" | "))?;
    writeln!(out, "|---|{}", "--:|".repeat(heads.len()))?;
    rows.iter().try_for_each(|row| writeln!(out, "| {} |", row.iter().map(bare).collect::<Vec<_>>().join(" | ")))
}

fn tabular(heads: &[String], rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\\begin{{tabular}}{{l{}}}\n\\toprule", "r".repeat(heads.len()))?;
    let heads = heads.iter().map(|head| latex(head).replace('µ', "$\\mu$"));
    writeln!(out, "\\% & {} \\\\\n\\midrule", heads.collect::<Vec<_>>().join(" & "))?;
    let cells = |row: &Vec<String>| row.iter().map(|cell| latex(cell)).collect::<Vec<_>>().join(" & ");
    rows.iter().try_for_each(|row| writeln!(out, "{} \\\\", cells(row)))?;
    writeln!(out, "\\bottomrule\n\\end{{tabular}}")
}

fn cell(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0))
}

fn micro(score: Option<&SetScore>) -> Option<f64> {
    score.map(|score| score.micro.f1)
}

fn mean(score: Option<&SetScore>) -> Option<f64> {
    score.map(|score| score.macro_.f1)
}

fn rule_micro(f1: Option<RuleF1>) -> Option<f64> {
    f1.map(|f1| f1.micro)
}

fn rule_mean(f1: Option<RuleF1>) -> Option<f64> {
    f1.map(|f1| f1.macro_)
}

fn share(share: &Share) -> Option<f64> {
    (share.of > 0).then_some(share.share)
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
