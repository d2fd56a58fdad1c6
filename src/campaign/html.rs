//! The report as one page of HTML that needs nothing else: no script, no font, no network.

use std::fmt::{self, Write as _};

use super::{
    markdown::named,
    plot::{Bar, SCROLLED, bars, intervals},
    report::{CampaignReport, Expense, ReportedShare},
};
use crate::verdict::suite::in_markup;

/// Most injected runs that are listed; `report.json` has all.
const LISTED: usize = 1000;

/// Light and dark as the reader has it; what is too wide for a page scrolls by itself; on paper all of it is shown.
const STYLE: &str = ":root{color-scheme:light dark;--ink:light-dark(#1c2733,#e6e7e9);--soft:light-dark(#5a6570,#9aa3ad);\
--rule:light-dark(#dde3e8,#2d3238);--mark:light-dark(#3b76b8,#5f9bdd);--paper:light-dark(#fff,#15171a);\
--warn:light-dark(#fff3d6,#3a2c10);--link:light-dark(#1f5fa8,#7db4f0)}\
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:var(--ink);\
background:var(--paper)}h1{font-size:1.6rem;overflow-wrap:anywhere}h2{font-size:1.15rem;margin-top:2.2rem;\
border-bottom:1px solid var(--rule)}.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;width:100%;min-width:40rem}td:first-child{white-space:nowrap}\
td,th{padding:.2rem .5rem;text-align:left;border-bottom:1px solid var(--rule)}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.muted{color:var(--soft)}\
.warn{background:var(--warn);padding:.5rem .8rem}svg{display:block;min-width:44rem}\
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .muted{fill:var(--soft)}svg .bar{fill:var(--mark)}\
svg .line{stroke:var(--mark);stroke-width:2}svg .grid{stroke:var(--rule)}details summary{cursor:pointer;color:var(--link)}\
@media print{:root{color-scheme:light}body{margin:0;max-width:none;padding:0;font-size:10pt}.wide{overflow:visible}\
svg,table{min-width:0}tr,svg{break-inside:avoid}}";

/// The report's page. All text of tasks, plans and programs is escaped.
pub(super) fn page(report: &CampaignReport) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut page, report);
    page
}

fn write(page: &mut String, report: &CampaignReport) -> fmt::Result {
    let name = in_markup(&report.campaign);
    write!(page, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Campaign {name}</title>")?;
    write!(
        page,
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><style>{STYLE}</style></head><body><main>"
    )?;
    write!(page, "<h1>Campaign {name}</h1><p class=\"muted\">Backend: {}. ", in_markup(&named(&report.backend)))?;
    write!(page, "Seed {}. Taxonomy {}. {:.1} s.</p>", report.seed, report.taxonomy, report.seconds)?;
    if !report.complete {
        write!(
            page,
            "<p class=\"warn\">Not complete: some cells are not finished. Go on with <code>--resume</code>.</p>"
        )?;
    }
    funnel(page, report)?;
    heading(page, "What each injected run was counted as", "Each is in one class; only verified ones are labelled.")?;
    let classes: Vec<Bar> = report.classes.iter().map(|(class, count)| Bar::of(class, *count)).collect();
    page.push_str(&bars(&classes));
    strata(page, report)?;
    heading(page, "Balance of failure modes", "Verified failures of each of the 14 modes; beside it the attempts.")?;
    let modes: Vec<Bar> = report
        .modes
        .iter()
        .map(|mode| Bar {
            label: format!("{} {}", mode.mode, mode.name),
            value: mode.funnel.verified,
            note: format!("{} of {}", mode.funnel.verified, mode.funnel.attempts),
        })
        .collect();
    page.push_str(&bars(&modes));
    unmade(page, report)?;
    cost(page, report)?;
    tasks(page, report)?;
    cells(page, report)?;
    page.push_str("</main></body></html>\n");
    Ok(())
}

fn heading(page: &mut String, title: &str, said: &str) -> fmt::Result {
    write!(page, "<h2>{title}</h2><p class=\"muted\">{said}</p>")
}

fn funnel(page: &mut String, report: &CampaignReport) -> fmt::Result {
    let (clean, funnel) = (&report.clean, &report.funnel);
    let said = format!(
        "Clean runs: {} of {} passed; {} of {} tasks were gone on with.",
        clean.passed, clean.runs, clean.kept, clean.tasks
    );
    heading(page, "From attempts to proof", &said)?;
    let steps = [
        ("attempts", funnel.attempts),
        ("delivered", funnel.delivered),
        ("outcome flipped", funnel.flipped),
        ("verified", funnel.verified),
    ];
    page.push_str(&bars(&steps.map(|(label, count)| Bar::of(label, count))));
    Ok(())
}

fn strata(page: &mut String, report: &CampaignReport) -> fmt::Result {
    heading(
        page,
        "Yield",
        "Verified of attempts per system, agent, mode, side and manipulator; Wilson's 95 % interval.",
    )?;
    let rows: Vec<(String, ReportedShare)> = report
        .strata
        .iter()
        .map(|one| {
            let (mode, side) = (one.mode.unwrap_or("fault"), one.side.unwrap_or("–"));
            (format!("{}: {} · {mode} · {side} · {}", one.system, one.agent, one.manipulator), one.share)
        })
        .collect();
    page.push_str(&intervals(&rows));
    page.push_str("<details><summary>As a table</summary>");
    head(
        page,
        &[
            "system",
            "agent",
            "mode",
            "side",
            "manipulator",
            "#attempts",
            "#delivered",
            "#flipped",
            "#verified",
            "#yield",
        ],
    );
    for one in &report.strata {
        let words = [&one.system, &one.agent, one.mode.unwrap_or("fault"), one.side.unwrap_or("–"), &one.manipulator];
        let funnel = &one.funnel;
        let numbers = [funnel.attempts, funnel.delivered, funnel.flipped, funnel.verified].map(|n| n.to_string());
        let ReportedShare { value, low, high } = one.share;
        let share = format!("{:.0} % ({:.0} to {:.0})", 100.0 * value, 100.0 * low, 100.0 * high);
        row(page, &words, &[&numbers[..], &[share]].concat());
    }
    page.push_str("</table></div></details>");
    Ok(())
}

fn unmade(page: &mut String, report: &CampaignReport) -> fmt::Result {
    if report.unmade.is_empty() {
        return Ok(());
    }
    heading(page, "Edits that could not be made", "Their steps passed untouched, and their runs have no label.")?;
    head(page, &["manipulator", "why", "#runs"]);
    for one in report.unmade.iter().take(LISTED) {
        row(page, &[&one.manipulator, &one.why], &[one.runs.to_string()]);
    }
    page.push_str("</table></div>");
    Ok(())
}

fn cost(page: &mut String, report: &CampaignReport) -> fmt::Result {
    let cost = &report.cost;
    let said = format!("Records of clean runs answered {:.0} % of all tokens.", 100.0 * cost.saved_share);
    heading(page, "Cost", &said)?;
    head(page, &["what", "#calls", "#input tokens", "#output tokens", "#money"]);
    let mut line = |what: &str, expense: &Expense| {
        row(page, &[what], &[&expense.counts()[..], &[format!("{:.6}", expense.money)]].concat());
    };
    line("spent", &cost.spent);
    line("of it by finished cells", &cost.by_cells);
    if let Some(each) = &cost.per_verified {
        line("for each verified failure", each);
    }
    line("answered by the prefix", &cost.saved_by_prefix);
    page.push_str("</table></div>");
    Ok(())
}

fn tasks(page: &mut String, report: &CampaignReport) -> fmt::Result {
    if report.tasks.is_empty() {
        return Ok(());
    }
    heading(page, "Tasks out of the ordinary", "Left out, or asked something else after the same replies.")?;
    head(page, &["system", "task", "left out", "repeatable", "#clean"]);
    for task in &report.tasks {
        let why = task.left_out.map_or("–", super::funnel::LeftOut::name);
        let words = [task.system.as_str(), &task.task, why, if task.repeatable { "yes" } else { "no" }];
        row(page, &words, &[format!("{} of {}", task.clean.passed, task.clean.of)]);
    }
    page.push_str("</table></div>");
    Ok(())
}

fn cells(page: &mut String, report: &CampaignReport) -> fmt::Result {
    let more = report.cells.len().saturating_sub(LISTED);
    let said = if more > 0 { format!("{more} more are in report.json.") } else { String::new() };
    heading(page, "Injected runs", &said)?;
    page.push_str("<details><summary>List</summary>");
    head(page, &["run", "system", "task", "plan", "class", "evidence", "proof"]);
    for one in report.cells.iter().take(LISTED) {
        let run = one.run.as_ref().map(ToString::to_string).unwrap_or_default();
        let proof = one.proof.as_deref().unwrap_or_default();
        let evidence = one.why.as_deref().unwrap_or(&one.evidence);
        row(page, &[&run, &one.system, &one.task, &one.plan, one.class, evidence, proof], &[]);
    }
    page.push_str("</table></div></details>");
    Ok(())
}

/// The head of a table; a title that starts with `#` is that of a column of numbers.
fn head(page: &mut String, titles: &[&str]) {
    page.push_str(SCROLLED);
    page.push_str("<table><tr>");
    for title in titles {
        let (kind, title) = title.strip_prefix('#').map_or(("", *title), |title| (" class=\"n\"", title));
        page.extend(["<th", kind, ">", &in_markup(title), "</th>"]);
    }
    page.push_str("</tr>");
}

fn row(page: &mut String, words: &[&str], numbers: &[String]) {
    page.push_str("<tr>");
    for word in words {
        page.extend(["<td>", &in_markup(word), "</td>"]);
    }
    for number in numbers {
        page.extend(["<td class=\"n\">", &in_markup(number), "</td>"]);
    }
    page.push_str("</tr>");
}
