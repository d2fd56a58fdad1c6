//! The statistics as one HTML page: no script, no font, no picture from elsewhere.

use std::fmt::{Display, Write};

use super::{Probed, Statistics, Summary};

/// Width of a bar chart, in pixels.
const WIDTH: u32 = 700;
/// Height of a bar with its gap.
const ROW: u32 = 22;
/// Where bars begin.
const LEFT: u32 = 270;
/// Most bars of a chart.
const BARS: usize = 40;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#222}\
    h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem;border-bottom:1px solid #ddd}\
    table{border-collapse:collapse}td,th{padding:.15rem .8rem .15rem 0;text-align:right}\
    td:first-child,th:first-child{text-align:left}svg text{font:12px system-ui,sans-serif;fill:#222}\
    .bar{fill:#4a78b5}.warn{fill:#c4552d}.rule{stroke:#999;stroke-dasharray:3 3}.note{color:#666}";

/// The page; `title` names the dataset.
pub fn page(statistics: &Statistics, title: &str) -> String {
    let mut html = String::new();
    let shown = escaped(title);
    // Writing to a string cannot fail.
    let _ = write!(
        html,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{shown}</title><style>{STYLE}</style><h1>{shown}</h1><p>{} samples of \
         {} tasks. {}.</p>",
        statistics.samples,
        statistics.tasks,
        escaped(&statistics.sure)
    );
    let labels = &statistics.labels;
    section(&mut html, "Samples", "", &bars(statistics.kinds.iter()));
    section(&mut html, "Parts", "Every task is in one part only.", &bars(statistics.splits.iter()));
    section(&mut html, "Systems", "", &bars(statistics.systems.iter()));
    section(&mut html, "Backends", "", &bars(statistics.backends.iter()));
    section(&mut html, "Failure modes", &modes_note(statistics), &bars(labels.modes.iter()));
    section(&mut html, "Manipulators", "", &bars(labels.manipulators.iter()));
    section(&mut html, "Sides", "", &bars(labels.sides.iter()));
    let errors = statistics.agents.iter().filter(|agent| agent.errors > 0);
    let errors: Vec<_> = errors.map(|agent| (format!("{} · {}", agent.system, agent.agent), agent.errors)).collect();
    section(&mut html, "Erring agents", "Labelled errors of failures.", &bars(errors.iter().map(|(a, n)| (a, n))));
    let note =
        format!("{} of {} errors are at their agent's first call.", statistics.position.first_call, labels.errors);
    section(&mut html, "Position of the error: step", &note, &bars(statistics.position.step.iter()));
    let tenths = statistics.position.tenth.iter().enumerate();
    let tenths: Vec<_> = tenths.map(|(tenth, n)| (format!("{}–{} %", tenth * 10, tenth * 10 + 10), *n)).collect();
    section(&mut html, "Position of the error: share of the run", "", &bars(tenths.iter().map(|(a, n)| (a, n))));
    section(&mut html, "Lengths", "", &lengths(statistics));
    let twins = &statistics.twins;
    let note = format!(
        "{} clean runs are twins of {} failures; {} failures have none. Failures a clean run: median {}, most {}.",
        twins.clean, twins.paired, twins.unpaired, twins.failures_per_clean.median, twins.failures_per_clean.max
    );
    section(&mut html, "Twins", &note, "");
    let note = "Area under the curve of a shallow classifier that tells injected replies from the clean twins' replies, \
                cross-validated by task. 0.5 is chance; near 1 the injection gives itself away.";
    section(&mut html, "Detectability", note, &probe(&statistics.probe));
    html.push_str("</html>\n");
    html
}

fn section(html: &mut String, title: &str, note: &str, body: &str) {
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{note}</p>") };
    let _ = write!(html, "<h2>{title}</h2>{note}{body}");
}

fn modes_note(statistics: &Statistics) -> String {
    let Some(even) = statistics.labels.mode_evenness else { return "No label has a failure mode.".to_owned() };
    let missing = &statistics.labels.modes_missing;
    let missing = if missing.is_empty() { String::new() } else { format!(" Missing: {}.", missing.join(", ")) };
    format!("Evenness {even:.2}: 1 is an equal share for each of the 14 modes.{missing}")
}

fn lengths(statistics: &Statistics) -> String {
    let lengths = &statistics.lengths;
    let row = |name: &str, of: &Summary| {
        format!(
            "<tr><td>{name}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{}</td><td>{}</td></tr>",
            of.min, of.median, of.mean, of.max, of.total
        )
    };
    let rows = [row("steps", &lengths.steps), row("characters", &lengths.characters)];
    let head = "<tr><th>a sample</th><th>min</th><th>median</th><th>mean</th><th>max</th><th>total</th></tr>";
    format!("<table>{head}{}</table>", rows.concat())
}

/// A horizontal bar chart.
fn bars<'a, L: Display + 'a>(counts: impl Iterator<Item = (&'a L, &'a u64)>) -> String {
    let counts: Vec<_> = counts.collect();
    let most = counts.iter().map(|(_, count)| **count).max().unwrap_or_default().max(1);
    let shown = counts.len().min(BARS);
    let height = u32::try_from(shown).unwrap_or_default() * ROW;
    let mut svg = format!("<svg width=\"{WIDTH}\" height=\"{height}\" role=\"img\">");
    for (number, (label, count)) in (0u32..).zip(counts.iter().take(BARS)) {
        let width = u64::from(WIDTH - LEFT - 60) * **count / most;
        let (top, text) = (number * ROW, number * ROW + 15);
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text><rect class=\"bar\" x=\"{LEFT}\" y=\"{}\" \
             width=\"{width}\" height=\"{}\"/><text x=\"{}\" y=\"{text}\">{count}</text>",
            LEFT - 8,
            escaped(&label.to_string().chars().take(40).collect::<String>()),
            top + 2,
            ROW - 5,
            u64::from(LEFT) + width + 6,
        );
    }
    svg.push_str("</svg>");
    match counts.len().saturating_sub(shown) {
        0 => svg,
        more => format!("{svg}<p class=\"note\">… and {more} more.</p>"),
    }
}

/// Areas with their intervals, on a scale from 0 to 1.
fn probe(probed: &[Probed]) -> String {
    let scale = f64::from(WIDTH - LEFT - 60);
    let at = |share: f64| f64::from(LEFT) + scale * share;
    let height = u32::try_from(probed.len()).unwrap_or_default() * ROW;
    let mut svg = format!("<svg width=\"{WIDTH}\" height=\"{height}\" role=\"img\">");
    let middle = at(0.5);
    let _ = write!(svg, "<line class=\"rule\" x1=\"{middle}\" x2=\"{middle}\" y1=\"0\" y2=\"{height}\"/>");
    for (number, one) in (0u32..).zip(probed) {
        let text = number * ROW + 15;
        let name = escaped(&one.manipulator);
        let _ = write!(svg, "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{name}</text>", LEFT - 8);
        let (Some(auc), Some((low, high))) = (one.auc, one.interval) else {
            let _ = write!(svg, "<text x=\"{LEFT}\" y=\"{text}\">too few ({})</text>", one.injected);
            continue;
        };
        let class = if auc >= 0.8 { "warn" } else { "bar" };
        let _ = write!(
            svg,
            "<rect class=\"{class}\" opacity=\".35\" x=\"{:.1}\" y=\"{}\" width=\"{:.1}\" height=\"9\"/><circle \
             class=\"{class}\" cx=\"{:.1}\" cy=\"{}\" r=\"5\"/><text x=\"{:.1}\" y=\"{text}\">{auc:.2}</text>",
            at(low),
            number * ROW + 6,
            scale * (high - low),
            at(auc),
            number * ROW + 11,
            at(high) + 8.0,
        );
    }
    svg.push_str("</svg>");
    let tells = probed.iter().filter(|one| !one.tells.is_empty()).map(|one| {
        let tells: Vec<_> = one.tells.iter().map(|tell| format!("<code>{}</code>", escaped(tell))).collect();
        format!("<tr><td>{}</td><td style=\"text-align:left\">{}</td></tr>", escaped(&one.manipulator), tells.join(" "))
    });
    let tells: String = tells.collect();
    if tells.is_empty() { svg } else { format!("{svg}<p class=\"note\">What tells most:</p><table>{tells}</table>") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
