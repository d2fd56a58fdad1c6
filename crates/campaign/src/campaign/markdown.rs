//! The report as Markdown.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    catch_run::CatchFunnel,
    impossible::{ImpossiblePlan, ImpossibleRow},
    natural::NaturalFunnel,
    report::{CampaignReport, ErrorFunnel, Expense, ModeBalance, PlantedCount, ReportedShare, Stratum, YieldRow},
    report_rows::{LISTED, ReportRows},
    rewriting::Rewriting,
};

use crate::trajectory::FailureMode;

/// The report's page. Text of tasks and programs is escaped.
pub(super) fn page(report: &CampaignReport) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut page, report);
    page
}

fn write(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    let CampaignReport { campaign, backend, seed, clean, funnel, .. } = report;
    writeln!(page, "# Campaign {}\n", cell(campaign))?;
    writeln!(page, "Backend: {}. Seed: {seed}. Taxonomy: {}.", cell(&named(backend)), report.taxonomy)?;
    if !report.complete {
        writeln!(page, "\n**Not complete**: some cells are not finished; go on with `--resume`.")?;
    }
    writeln!(
        page,
        "\n## Funnel\n\n| clean tasks kept | attempts | delivered | flipped | verified |\n|--:|--:|--:|--:|--:|"
    )?;
    writeln!(
        page,
        "| {} of {} | {} | {} | {} | {} |",
        clean.kept, clean.tasks, funnel.attempts, funnel.delivered, funnel.flipped, funnel.verified
    )?;
    writeln!(page, "\nClean runs: {} of {} passed.", clean.passed, clean.runs)?;
    if report.silent_runs > 0 {
        writeln!(page, "\n**{}**", cell(&super::talk::silence_in_words(report.silent_runs)))?;
    }
    if let Some(older) = report.older_controls.in_words() {
        writeln!(page, "\n**{}**", cell(&older))?;
    }
    writeln!(page, "\n## Classes\n\nEvery injected run is in one.\n\n| class | runs |\n|---|--:|")?;
    for (class, count) in &report.classes {
        writeln!(page, "| {class} | {count} |")?;
    }
    if let Some(decoys) = &report.decoys {
        writeln!(
            page,
            "\n## Decoys\n\nNeutral changes, planted and proven as if they were errors: {}.",
            decoys.in_words()
        )?;
    }
    natural(page, report)?;
    catches(page, report)?;
    yields(page, report)?;
    impossible(page, report)?;
    skipped_edits(page, report)?;
    cost(page, report)?;
    tasks(page, report)?;
    cells(page, report)
}

/// The second funnel: failures that nobody planted.
fn natural(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    let Some(NaturalFunnel { failures, traced, labelled, refused, unfinished, .. }) = report.natural else {
        return Ok(());
    };
    writeln!(
        page,
        "\n## Natural failures\n\nClean runs that failed their task, each traced for the step that decides it.\n\n\
         | failures | traced | labelled | cannot be traced | unfinished |\n|--:|--:|--:|--:|--:|\n\
         | {failures} | {traced} | {labelled} | {refused} | {unfinished} |\n\n\
         | run | system | task | end | error |\n|---|---|---|---|---|"
    )?;
    for run in report.natural_runs.first() {
        let errors: Vec<String> =
            run.errors.iter().map(|error| format!("{} at step {}", error.agent, error.step)).collect();
        let found = if errors.is_empty() { run.why.clone().unwrap_or_default() } else { errors.join(", ") };
        let [system, task, found] = [run.system.as_str(), &run.task, &found].map(cell);
        writeln!(page, "| {} | {system} | {task} | {} | {found} |", run.run, run.end.words())?;
    }
    more(page, &report.natural_runs)
}

/// Which agents that spoke after a proven error could have saved their runs.
fn catches(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    let Some(CatchFunnel { agents, missed, impossible, unknown, .. }) = report.missed_catch else { return Ok(()) };
    writeln!(
        page,
        "\n## Missed catches\n\nAgents that spoke after a proven error, each tried with other replies.\n\n\
         | later agents | could have saved the run | could not | not known |\n|--:|--:|--:|--:|\n\
         | {agents} | {missed} | {impossible} | {unknown} |\n\n| run | system | task | shown |\n|---|---|---|---|"
    )?;
    for run in report.missed_catch_runs.first() {
        let [system, task, shown] = [run.system.as_str(), &run.task, &run.in_words()].map(cell);
        writeln!(page, "| {} | {system} | {task} | {shown} |", run.run)?;
    }
    more(page, &report.missed_catch_runs)
}

fn skipped_edits(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    let Rewriting { questions: asked, used, declined, refused, unanswered } = report.rewriting;
    if asked > 0 {
        writeln!(
            page,
            "\n## Edits by a model\n\n| questions | answers used | does not apply | refused | unanswered |\n|--:|--:|--:|--:|--:|"
        )?;
        writeln!(page, "| {asked} | {used} | {declined} | {refused} | {unanswered} |")?;
    }
    if report.skipped_edits.is_empty() {
        return Ok(());
    }
    writeln!(page, "\n## Edits that could not be made\n\n| manipulator | why | runs |\n|---|---|--:|")?;
    for row in report.skipped_edits.iter().take(LISTED) {
        writeln!(page, "| {} | {} | {} |", row.manipulator, cell(&row.why), row.runs)?;
    }
    Ok(())
}

/// What was neither executed nor counted as planted, since the reference runs do not have what it needs.
fn impossible(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    if report.impossible.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "\n## Not possible\n\nTried on the reference runs, and not planted.\n\n| system | plan | mode | agent | why | times |\n|---|---|---|---|---|--:|"
    )?;
    for ImpossibleRow { system, impossible, times } in report.impossible.iter().take(LISTED) {
        let ImpossiblePlan { plan, agent, mode, why } = impossible;
        let [system, plan, agent, why] = [system, plan, agent, why].map(|text| cell(text));
        writeln!(page, "| {system} | {plan} | {} | {agent} | {why} | {times} |", mode.map_or("–", FailureMode::code))?;
    }
    Ok(())
}

/// The simulator is always named as one.
fn named(backend: &str) -> String {
    match backend {
        "simulator" => "simulator (a scripted model, not a language model)".to_owned(),
        other => other.to_owned(),
    }
}

/// The funnel per mode, system, agent and position, then per combination.
fn yields(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    writeln!(
        page,
        "\n## Yield\n\nIn errors: a run with several counts for each. *Necessary* are those that a proven failure needs. The yield is \
         necessary of planted, with Wilson's 95 % interval."
    )?;
    let titles = "planted | delivered | flipped | necessary | yield |";
    writeln!(page, "\n| mode | name | {titles}\n|---|---|--:|--:|--:|--:|--:|")?;
    for ModeBalance { mode, name, funnel, share } in &report.modes {
        writeln!(page, "| {mode} | {name} | {} |", figures(funnel, share))?;
    }
    let tables = [
        ("system", &report.systems),
        ("culprit", &report.culprits),
        ("agent", &report.agents),
        ("position", &report.positions),
    ];
    for (title, rows) in tables {
        if rows.is_empty() {
            continue;
        }
        writeln!(page, "\n| {title} | {titles}\n|---|--:|--:|--:|--:|--:|")?;
        for YieldRow { name, funnel, share } in rows {
            writeln!(page, "| {} | {} |", cell(name), figures(funnel, share))?;
        }
    }
    writeln!(
        page,
        "\n| system | agent | mode | side | manipulator | {titles}\n|---|---|---|---|---|--:|--:|--:|--:|--:|"
    )?;
    for Stratum { system, agent, mode, side, manipulator, funnel, share } in &report.strata {
        let (system, agent) = (cell(system), cell(agent));
        let (mode, side) = (mode.unwrap_or("fault"), side.unwrap_or("–"));
        writeln!(page, "| {system} | {agent} | {mode} | {side} | {manipulator} | {} |", figures(funnel, share))?;
    }
    design(page, report)
}

fn figures(funnel: &ErrorFunnel, share: &ReportedShare) -> String {
    let ErrorFunnel { planted, delivered, flipped, necessary } = funnel;
    let ReportedShare { value, low, high } = share;
    if *planted == 0 {
        return "0 | 0 | 0 | 0 | –".to_owned();
    }
    format!(
        "{planted} | {delivered} | {flipped} | {necessary} | {:.0} % ({:.0} to {:.0})",
        100.0 * value,
        100.0 * low,
        100.0 * high
    )
}

/// How often each mode was planted beside so many others, and at which position: whether either tells the mode.
fn design(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    let drawn = || report.design.iter().filter(|row| row.position.is_some());
    let impossible = |mode: Option<&str>| {
        let rows = report.impossible.iter().filter(|row| row.impossible.mode.map(FailureMode::code) == mode);
        rows.map(|row| row.times).sum::<usize>().to_string()
    };
    let counts: BTreeSet<usize> = drawn().map(|row| row.targets).collect();
    let positions: BTreeSet<_> = drawn().filter_map(|row| row.position).collect();
    let modes: BTreeSet<_> = drawn().map(|row| row.mode).collect();
    if positions.is_empty() {
        return Ok(());
    }
    let targets: Vec<String> = counts.iter().map(|count| format!("of {count}")).collect();
    let titles: Vec<&str> = targets
        .iter()
        .map(String::as_str)
        .chain(positions.iter().map(|place| place.name()))
        .chain(["not possible"])
        .collect();
    writeln!(
        page,
        "\n## What was drawn\n\nErrors planted, by how many a plan has and by position; `report.json` has each agent too (`design`).\n"
    )?;
    writeln!(page, "| mode | {} |\n|---|{}", titles.join(" | "), "--:|".repeat(titles.len()))?;
    for mode in modes {
        let planted = |holds: &dyn Fn(&PlantedCount) -> bool| {
            let rows = drawn().filter(|row| row.mode == mode && holds(row));
            rows.map(|row| row.planted).sum::<usize>().to_string()
        };
        let by_count = counts.iter().map(|count| planted(&|row| row.targets == *count));
        let by_place = positions.iter().map(|place| planted(&|row| row.position == Some(*place)));
        let row: Vec<String> = by_count.chain(by_place).chain([impossible(mode)]).collect();
        writeln!(page, "| {} | {} |", mode.unwrap_or("fault"), row.join(" | "))?;
    }
    Ok(())
}

fn cost(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    let cost = &report.cost;
    writeln!(page, "\n## Cost\n\n| | calls | input tokens | output tokens | money |\n|---|--:|--:|--:|--:|")?;
    let mut line = |what: &str, expense: &Expense| {
        let money = expense.money.map_or("unknown".to_owned(), |money| format!("{money:.6}"));
        writeln!(page, "| {what} | {} | {money} |", expense.counts().join(" | "))
    };
    line("spent", &cost.spent)?;
    line("of it by finished cells", &cost.by_cells)?;
    if let Some(each) = &cost.per_verified {
        line("for each verified failure", each)?;
    }
    line("answered by the prefix", &cost.saved_by_prefix)?;
    if cost.spent.money.is_none() {
        writeln!(page, "\nMoney is unknown: the campaign has no `[[price]]`.")?;
    }
    writeln!(page, "\nThe prefix answered {:.0} % of all tokens.", 100.0 * cost.saved_share)?;
    if cost.salvaged_calls > 0 {
        writeln!(page, "{} calls of interrupted runs were not paid for again.", cost.salvaged_calls)?;
    }
    if cost.unreported > 0 {
        writeln!(page, "{} replies told no tokens: they are counted at their bound.", cost.unreported)?;
    }
    Ok(())
}

fn tasks(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    if report.tasks.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "\n## Tasks out of the ordinary\n\n| system | task | clean | left out | why | repeatable | chaotic | differs between runs |\n|---|---|--:|---|---|---|---|---|"
    )?;
    for task in report.tasks.first() {
        let why = task.left_out.map_or("–", super::funnel::LeftOut::name);
        let [repeatable, chaotic] = [task.repeatable, task.chaotic].map(|is| if is { "yes" } else { "no" });
        let clean = format!("{} of {}", task.clean.passed, task.clean.of);
        let [system, named, said] =
            [task.system.as_str(), &task.task, task.why.as_deref().unwrap_or_default()].map(cell);
        let learned = cell(&task.learned.join("; "));
        writeln!(page, "| {system} | {named} | {clean} | {why} | {said} | {repeatable} | {chaotic} | {learned} |")?;
    }
    more(page, &report.tasks)
}

/// How many rows are not listed.
fn more<T>(page: &mut String, rows: &ReportRows<T>) -> std::fmt::Result {
    match rows.len() - rows.first().len() {
        0 => Ok(()),
        more => writeln!(page, "\n{more} more are in `report.json`."),
    }
}

fn cells(page: &mut String, report: &CampaignReport) -> std::fmt::Result {
    writeln!(
        page,
        "\n## Injected runs\n\n| run | system | task | plan | class | proof | evidence |\n|---|---|---|---|---|---|---|"
    )?;
    for row in report.cells.first() {
        let run = row.run.as_ref().map(ToString::to_string).unwrap_or_default();
        let proof = row.proof.as_deref().unwrap_or_default();
        let evidence = row.why.as_deref().unwrap_or(&row.evidence);
        let [system, task, plan, evidence] = [row.system.as_str(), &row.task, &row.plan, evidence].map(cell);
        writeln!(page, "| {run} | {system} | {task} | {plan} | {} | {proof} | {evidence} |", row.class)?;
    }
    more(page, &report.cells)
}

/// A text as it may stand in a table. What a program says must not make a reader fetch an image.
fn cell(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('`', "\\`").replace("![", "!\\[")
}
