//! The report: a Markdown table a scenario, the figures against their targets, and the gates.

use std::fmt::Write as _;

use crate::figures::{Figure, Results};
use crate::scenario::{STREAMS, Sample, Scenario, Spread};
use crate::target::Way;

/// The whole report.
pub(crate) fn markdown(results: &Results, scenarios: &[Scenario]) -> String {
    let mut out = String::new();
    if let Some(matched) = &results.matched {
        let (requests, known) = (matched.requests, matched.by_roster);
        line(&mut out, &format!("The roster named the agent of {known} of {requests} plain requests in a recording."));
    }
    let every = results.samples.values().flat_map(|ways| ways.values()).flatten();
    let others = results_median(every.map(|sample| sample.others_used));
    if others > BUSY {
        line(
            &mut out,
            &format!("**Others used {others:.1} cores meanwhile** (median): no figure here is one to quote."),
        );
    }
    for scenario in scenarios {
        if let Some(ways) = results.samples.get(scenario.name).filter(|ways| !ways.is_empty()) {
            let samples = || ways.values().flatten();
            let others = results_median(samples().map(|sample| sample.others_used));
            let bytes = results_median(samples().map(|sample| sample.mean_request_bytes));
            line(&mut out, &format!("\n### {}: {}\n", scenario.name, scenario.title));
            line(&mut out, &format!("Mean request {bytes:.0} bytes; others on this machine used {others:.2} cores.\n"));
            table(&mut out, results, scenario);
        }
    }
    last(&mut out, results, scenarios);
    storage(&mut out, results);
    kills(&mut out, results);
    figures(&mut out, &results.figures());
    out
}

/// Which gates do not hold, in words; a gate that was not measured is not among them.
pub(crate) fn failed_gates(figures: &[Figure]) -> Vec<&'static str> {
    let fails = |figure: &&Figure| figure.gate.is_some_and(|limit| figure.meets(limit) == Some(false));
    figures.iter().filter(fails).map(|figure| figure.what).collect()
}

/// Above this many processors used by others, ratios begin to shift.
const BUSY: f64 = 0.3;

struct Column<'a> {
    title: &'static str,
    cell: Box<dyn Fn(Way) -> String + 'a>,
}

fn table(out: &mut String, results: &Results, scenario: &Scenario) {
    let columns = columns(results, scenario);
    let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
    line(out, &format!("| way | {} |", titles.join(" | ")));
    line(out, &format!("|---{}|", "|--:".repeat(titles.len())));
    for way in scenario.ways.iter().filter(|way| results.samples[scenario.name].contains_key(way)) {
        let cells: Vec<String> = columns.iter().map(|column| (column.cell)(*way)).collect();
        line(out, &format!("| {} | {} |", way.name(), cells.join(" | ")));
    }
}

fn columns<'a>(results: &'a Results, scenario: &'a Scenario) -> Vec<Column<'a>> {
    let name = scenario.name;
    let base = scenario.ways.iter().copied().find(|way| *way != Way::Direct).unwrap_or(Way::Nginx);
    let streams = results.median(name, base, |sample| sample.first_token.map(|spread| spread.p50)).is_some();
    let mut columns = vec![
        column("CPU µs/request", move |way| {
            proxied(way, || spread(results, name, way, |sample| sample.cpu_per_request))
        }),
        column(if base == Way::Nginx { "÷ nginx" } else { "÷ Aegis" }, move |way| {
            proxied(way, || number(results.ratio(name, way, base, |sample| Some(sample.cpu_per_request)), 2))
        }),
        column("until stopped", move |way| {
            proxied(way, || number(results.median(name, way, |sample| Some(sample.cpu_until_stopped)), 1))
        }),
        column("requests/s", move |way| {
            number(results.median(name, way, |sample| Some(sample.requests_per_second)), 0)
        }),
    ];
    if streams {
        columns.push(column("CPU µs/token", move |way| {
            proxied(way, || number(results.median(name, way, |sample| Some(sample.cpu_per_token)), 2))
        }));
    }
    columns.extend(times(results, name, ["p50 µs", "added", "p99 µs", "added"], |sample| sample.latency));
    if streams {
        let titles = ["first token p50 µs", "added", "first token p99 µs", "added"];
        columns.extend(times(results, name, titles, |sample| sample.first_token));
        let gap = |sample: &Sample, share: fn(Spread) -> f64| sample.gap_error.map(share);
        columns
            .push(column("gap error p50 µs", move |way| number(results.median(name, way, |s| gap(s, |g| g.p50)), 0)));
        columns
            .push(column("gap error p99 µs", move |way| number(results.median(name, way, |s| gap(s, |g| g.p99)), 0)));
    }
    columns.push(column("peak MB", move |way| {
        proxied(way, || number(results.median(name, way, |sample| Some(sample.peak_megabytes)), 1))
    }));
    if name == STREAMS {
        columns.push(column("in flight", move |way| {
            number(results.median(name, way, |sample| Some(sample.most_in_flight as f64)), 0)
        }));
    }
    columns
        .push(column("answered", move |way| rounds(results, name, way).map(|s| s.answered).sum::<u64>().to_string()));
    columns.push(column("not exact", move |way| causes(rounds(results, name, way).flat_map(|s| &s.inexact))));
    columns.push(column("failed", move |way| causes(rounds(results, name, way).flat_map(|s| &s.failures))));
    columns
}

fn times<'a>(
    results: &'a Results,
    name: &'a str,
    titles: [&'static str; 4],
    field: fn(&Sample) -> Option<Spread>,
) -> Vec<Column<'a>> {
    let p50 = move |sample: &Sample| field(sample).map(|spread| spread.p50);
    let p99 = move |sample: &Sample| field(sample).map(|spread| spread.p99);
    let added = move |way, share: &dyn Fn(&Sample) -> Option<f64>| {
        proxied(way, || {
            let pair = results.median(name, way, share).zip(results.median(name, Way::Direct, share));
            number(pair.map(|(here, direct)| here - direct), 0)
        })
    };
    let mut columns = vec![
        column(titles[0], move |way| number(results.median(name, way, p50), 0)),
        column(titles[1], move |way| added(way, &p50)),
        column(titles[2], move |way| number(results.median(name, way, p99), 0)),
        column(titles[3], move |way| added(way, &p99)),
    ];
    if rounds(results, name, Way::Direct).next().is_none() {
        columns.retain(|column| column.title != "added");
    }
    columns
}

fn storage(out: &mut String, results: &Results) {
    if results.stored.is_empty() {
        return;
    }
    line(out, "\n### Bytes stored ÷ bytes of text first said\n");
    line(
        out,
        "| runs | text first said | sent | live | ÷ | sealed | ÷ | sealing, ms |\n|---|--:|--:|--:|--:|--:|--:|--:|",
    );
    for stored in &results.stored {
        let (name, runs, said, sent) = (stored.name, stored.runs, stored.first_said, stored.sent);
        let (live, live_ratio) = (stored.live, stored.live_ratio());
        let (sealed, sealed_ratio) = (stored.sealed, stored.sealed_ratio());
        let time = number(stored.sealed_in_milliseconds, 0);
        line(
            out,
            &format!(
                "| {runs} × {name} | {said} | {sent} | {live} | {live_ratio:.2} | {sealed} | {sealed_ratio:.2} | {time} |"
            ),
        );
    }
}

/// Each way of this program beside the same way through the last one.
fn last(out: &mut String, results: &Results, scenarios: &[Scenario]) {
    let pairs = scenarios.iter().flat_map(|scenario| scenario.ways.iter().map(move |way| (scenario.name, *way)));
    let pairs = pairs.filter_map(|(name, way)| Some((name, way, way.last()?)));
    let measured = pairs.filter(|(name, _, last)| rounds(results, name, *last).next().is_some());
    let rows: Vec<String> = measured
        .map(|(name, way, last)| {
            let ratio = |field: fn(&Sample) -> f64| number(results.ratio(name, way, last, |s| Some(field(s))), 2);
            let (cpu, peak) = (ratio(|sample| sample.cpu_per_request), ratio(|sample| sample.peak_megabytes));
            let sealed = ratio(|sample| sample.cpu_until_stopped);
            format!("| {name} | {} | {cpu} | {sealed} | {peak} |", way.name())
        })
        .collect();
    if !rows.is_empty() {
        line(out, "\n### ÷ the last program\n");
        line(out, "| scenario | way | CPU a request | until sealed | peak memory |\n|---|---|--:|--:|--:|");
        for row in &rows {
            line(out, row);
        }
    }
}

fn kills(out: &mut String, results: &Results) {
    let Some(killed) = &results.killed else { return };
    let (kills, told, lost, open) = (killed.kills, killed.acknowledged, killed.lost, killed.interrupted);
    line(out, "\n### kill -9\n");
    line(
        out,
        &format!(
            "{kills} kills under load; {told} exchanges acknowledged, {lost} lost; {open} interrupted ones kept as open."
        ),
    );
    for why in killed.broken.iter().take(5) {
        line(out, &format!("- broken: {why}"));
    }
}

fn figures(out: &mut String, figures: &[Figure]) {
    line(out, "\n### Figures against their targets\n");
    line(out, "| figure | Aegis | target | stretch | | gate |\n|---|--:|--:|--:|---|---|");
    for figure in figures {
        let sign = if figure.at_least { "≥" } else { "≤" };
        let verdict = match (figure.meets(figure.must), figure.meets(figure.stretch)) {
            (None, _) => "not measured",
            (_, Some(true)) => "stretch met",
            (Some(true), _) => "met",
            (Some(false), _) => "missed",
        };
        let gate = figure.gate.map_or(String::new(), |limit| {
            let state = match figure.meets(limit) {
                None => "not measured",
                Some(true) => "pass",
                Some(false) => "**FAIL**",
            };
            format!("{sign} {limit}: {state}")
        });
        let (value, unit) = (number(figure.value, 2), figure.unit);
        line(
            out,
            &format!(
                "| {} | {value} {unit} | {sign} {} | {sign} {} | {verdict} | {gate} |",
                figure.what, figure.must, figure.stretch
            ),
        );
    }
}

fn column<'a>(title: &'static str, cell: impl Fn(Way) -> String + 'a) -> Column<'a> {
    Column { title, cell: Box::new(cell) }
}

/// A direct connection has no process of its own.
fn proxied(way: Way, cell: impl FnOnce() -> String) -> String {
    if way == Way::Direct { "–".to_owned() } else { cell() }
}

fn rounds<'a>(results: &'a Results, name: &str, way: Way) -> impl Iterator<Item = &'a Sample> {
    results.samples.get(name).and_then(|ways| ways.get(&way)).into_iter().flatten()
}

/// Median (least–greatest).
fn spread(results: &Results, name: &str, way: Way, field: fn(&Sample) -> f64) -> String {
    let (mut least, mut greatest) = (f64::INFINITY, 0.0_f64);
    for sample in rounds(results, name, way) {
        (least, greatest) = (least.min(field(sample)), greatest.max(field(sample)));
    }
    let middle = number(results.median(name, way, |sample| Some(field(sample))), 1);
    format!("{middle} ({least:.1}–{greatest:.1})")
}

/// Failures by their cause, the most frequent ones; the others are in the samples.
fn causes<'a>(causes: impl Iterator<Item = (&'a String, &'a u64)>) -> String {
    const NAMED: usize = 3;
    let mut total = std::collections::BTreeMap::<&str, u64>::new();
    causes.for_each(|(cause, count)| *total.entry(cause).or_default() += count);
    let mut total: Vec<(&str, u64)> = total.into_iter().collect();
    total.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let others: u64 = total.iter().skip(NAMED).map(|(_, count)| count).sum();
    let named = total.iter().take(NAMED).map(|(cause, count)| format!("{count} {}", cause.replace('|', "/")));
    let named: Vec<String> = named.chain((others > 0).then(|| format!("{others} others"))).collect();
    if named.is_empty() { "0".to_owned() } else { named.join("; ") }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

fn results_median(values: impl Iterator<Item = f64>) -> f64 {
    crate::figures::median(values.collect()).unwrap_or(0.0)
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes every write");
}
