//! The certificate as a page for people.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::document::Certificate;
use crate::cli::escape;

/// The rows of the table: a field of the figures, and what it is.
const ROWS: [(&str, &str); 12] = [
    ("detection", "proven failures in which it blames somebody"),
    ("silence", "clean runs in which it blames nobody"),
    ("silence_benign", "runs that succeeded in spite of a planted error, in which it blames nobody"),
    ("silence_decoy", "decoys in which it does not blame the agent that got the neutral change"),
    ("agent", "of the failures that it sees: an agent is right"),
    ("step", "of the failures that it sees: a step is right"),
    ("place", "of the failures that it sees: an agent is right at its step"),
    ("mode", "of the failures that it sees: a mode is right"),
    ("precision", "agents named in failures that are right"),
    ("recall", "agents of labels that are named"),
    ("abstained", "runs without an answer that can be read"),
    ("calibration", "answers that state how sure they are"),
];

/// The page.
pub(super) fn page(certificate: &Certificate) -> String {
    of_value(&json!(certificate)).unwrap_or_default()
}

/// The page of a certificate as it was written; `None` where it has another form.
pub(super) fn of_value(certificate: &Value) -> Option<String> {
    let mut page = String::new();
    let text = |pointer: &str| certificate.pointer(pointer).and_then(Value::as_str).map(escape);
    let judge = match text("/judge/model") {
        Some(model) => format!("{}, model {model}", text("/judge/method")?),
        None => text("/judge/method")?,
    };
    let certified = certificate.pointer("/certification/certified")?.as_bool()?;
    let least = 100.0 * certificate.pointer("/certification/least")?.as_f64()?;
    let word = if certified { "Certified" } else { "Not certified" };
    // Writing to a string cannot fail.
    let _ = writeln!(page, "# Certificate: {judge}\n\n**{word}** at bounds of {least:.0} % (95 %, exact).\n");
    for lacking in certificate.pointer("/certification/lacking")?.as_array()? {
        let _ = writeln!(page, "- {}", lacking.as_str()?);
    }
    let runs: Vec<String> =
        certificate.pointer("/data/runs")?.as_object()?.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let _ =
        writeln!(page, "\nRuns: {}.\n\n| figure | of | share | 95 % | what |\n|---|--:|--:|--:|---|", runs.join(", "));
    for (name, what) in ROWS {
        let figure = certificate.pointer(&format!("/figures/{name}"))?;
        if name == "calibration" {
            if let (Some(rows), Some(error)) = (figure.get("rows"), figure.get("error").and_then(Value::as_f64)) {
                let _ = writeln!(page, "| calibration error | {rows} | {error:.3} | | {what} |");
            }
            continue;
        }
        let number = |field: &str| figure.get(field).and_then(Value::as_f64);
        let of = number("of")?;
        if of == 0.0 {
            continue;
        }
        let [share, low, high] = [number("share")?, number("low")?, number("high")?].map(|share| 100.0 * share);
        let _ =
            writeln!(page, "| {} | {of} | {share:.1} % | {low:.1}–{high:.1} % | {what} |", name.replace('_', " in "));
    }
    let cost = |field: &str| certificate.pointer(&format!("/cost/{field}")).and_then(Value::as_u64);
    let _ = writeln!(
        page,
        "\nCost: {} questions, {} tokens in, {} out. Hash: `{}`.",
        cost("calls")?,
        cost("tokens_in")?,
        cost("tokens_out")?,
        text("/hash")?
    );
    Some(page)
}
