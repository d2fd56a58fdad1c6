//! The same figures as one HTML page that needs nothing else: methods side by side, rules without a model beneath them, each run.

use std::fmt::Write as _;

use super::{logs::Logs, report, table::MethodFigures};
use crate::{
    attribution::{Attributed, methods::COMBINED},
    score::{Baseline, Share},
    verdict::suite::in_markup,
};

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
    table{border-collapse:collapse;margin:.5rem 0 1.5rem}th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #8884}\
    th:first-child,td:first-child{text-align:left}td.text{text-align:left}tr.rule td{color:#888}td.right{color:#2a8a3e}\
    small{color:#888}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}details{margin:.3rem 0}";

/// The page. `next`: the command to type, for one recorded run.
pub(super) fn page(figures: &[MethodFigures], logs: &Logs, rows: &[Vec<Attributed>], next: Option<&str>) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Attribution from a log</title><style>{STYLE}</style>\n<h1>Attribution from a log: {} runs</h1>\n\
         <p>A log only suggests: these are predictions, and no label was written.</p>\n",
        rows.len()
    );
    methods(&mut page, figures);
    runs(&mut page, logs, rows);
    if let Some(next) = next {
        let _ = writeln!(page, "<p>next: <code>{}</code></p>", in_markup(next));
    }
    page.push_str("</html>\n");
    page
}

/// Each method with what it took, and the rules without a model.
fn methods(page: &mut String, figures: &[MethodFigures]) {
    page.push_str(
        "<h2>Methods</h2>\n<table><tr><th>method<th>agent<th>step<th>±1<th>±3<th>±5<th>abstained<th>calls<th>tokens<th>money</tr>\n",
    );
    for method in figures {
        let accuracy = method.report.as_ref().map(|report| &report.accuracy);
        let near = |far: usize| {
            accuracy.and_then(|accuracy| accuracy.step_within.get(far - 1)).map_or_else(|| "–".to_owned(), share)
        };
        let of = |figure: Option<&Share>| figure.map_or_else(|| "–".to_owned(), share);
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}/{}<td>{}<td>{}<td>{}</tr>",
            in_markup(&method.name),
            of(accuracy.map(|accuracy| &accuracy.agent)),
            of(accuracy.map(|accuracy| &accuracy.step)),
            near(1),
            near(3),
            near(5),
            method.abstained,
            method.runs,
            method.calls,
            method.tokens,
            method.cost.map_or_else(|| "–".to_owned(), |cost| format!("{cost:.4}"))
        );
    }
    let report = figures.iter().find_map(|method| method.report.as_ref());
    for rule in report.map(|report| report.baselines.as_slice()).unwrap_or_default() {
        baseline(page, rule);
    }
    page.push_str("</table>\n");
    if report.is_some() {
        page.push_str(
            "<p><small>Percent of all runs with 95 % intervals; an abstention counts as wrong. The grey rules need no model; those \
             with a * were chosen by these labels. A method that does not beat them has found nothing.</small></p>\n",
        );
    } else {
        page.push_str(
            "<p><small>No labels are known of these runs, so nothing says how often a method is right.</small></p>\n",
        );
    }
    for warning in report.map(|report| report.warnings.as_slice()).unwrap_or_default() {
        let _ = writeln!(page, "<p><small>note: {}</small></p>", in_markup(warning));
    }
}

fn baseline(page: &mut String, rule: &Baseline) {
    if rule.agent.is_none() && rule.step.is_none() {
        return;
    }
    let cell = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}", share * 100.0));
    let star = if rule.hindsight { " *" } else { "" };
    let _ = writeln!(
        page,
        "<tr class=\"rule\"><td>{}{star}<td>{}<td>{}<td colspan=\"7\"></tr>",
        in_markup(rule.rule),
        cell(rule.agent),
        cell(rule.step)
    );
}

/// Each run: what every method says of it, with its words.
fn runs(page: &mut String, logs: &Logs, rows: &[Vec<Attributed>]) {
    page.push_str("<h2>Runs</h2>\n");
    for (log, rows) in logs.runs.iter().zip(rows) {
        let last = rows.last().map(report::named).unwrap_or_default();
        let truth = log.gold.as_ref().map(|gold| {
            let culprits = gold.culprits.iter().map(|culprit| {
                let step = culprit.step.map(|step| format!(" at step {step}")).unwrap_or_default();
                format!("{}{step}", culprit.agent.as_deref().unwrap_or("the run"))
            });
            format!(" <small>label: {}</small>", in_markup(&culprits.collect::<Vec<_>>().join(", ")))
        });
        let _ = writeln!(
            page,
            "<details{}><summary>{} · {}{}</summary>\n<table><tr><th>method<th>says<th>score<th>why<th>words<th>repair</tr>",
            if logs.runs.len() == 1 { " open" } else { "" },
            in_markup(&log.run.id),
            in_markup(&last),
            truth.unwrap_or_default()
        );
        for row in rows {
            write_row(page, row);
        }
        page.push_str("</table></details>\n");
    }
}

fn write_row(page: &mut String, row: &Attributed) {
    let found = row.predictions.first();
    let score = found.and_then(|found| found.score).map(|score| format!("{score:.2}")).unwrap_or_default();
    let why = match (&row.abstained, found) {
        (Some(why), _) => why.reason(),
        (None, Some(found)) => found.reason.as_str(),
        (None, None) => "",
    };
    let words = found.into_iter().flat_map(|found| &found.evidence).map(|evidence| {
        let stands = if evidence.stands { "" } else { " (does not stand there)" };
        format!("step {}: “{}”{stands}", evidence.step, evidence.quote)
    });
    let method = if row.method == COMBINED { "combined".to_owned() } else { in_markup(&row.method) };
    let _ = writeln!(
        page,
        "<tr><td>{method}<td class=\"text\">{}<td>{score}<td class=\"text\">{}<td class=\"text\">{}<td class=\"text\">{}</tr>",
        in_markup(&report::named(row)),
        in_markup(why),
        in_markup(&words.collect::<Vec<_>>().join("; ")),
        in_markup(found.map(|found| found.fix.as_str()).unwrap_or_default())
    );
}

fn share(share: &Share) -> String {
    if share.of == 0 {
        return "–".to_owned();
    }
    let (low, high) = (share.interval.low * 100.0, share.interval.high * 100.0);
    format!("{:.1} <small>[{low:.0}, {high:.0}]</small>", share.share * 100.0)
}
