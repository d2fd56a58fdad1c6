//! Plots as inline SVG: bars, and shares with their intervals.

use std::fmt::Write as _;

use super::report::ReportedShare;
use crate::verdict::suite::in_markup;

/// What holds a table or a plot: it can be scrolled, by keys too.
pub(super) const SCROLLED: &str = "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Figures\">";

/// Width of a plot, of its labels, and height of a row, in pixels.
const WIDTH: f64 = 960.0;
const LABELS: f64 = 430.0;
const ROW: f64 = 22.0;
/// Room right of the bars for figures.
const FIGURES: f64 = 110.0;

/// A bar with its label.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: usize,
    /// What stands beside it.
    pub(super) note: String,
}

impl Bar {
    /// A bar whose figure is its value.
    pub(super) fn of(label: &str, value: usize) -> Self {
        Self { label: label.to_owned(), value, note: value.to_string() }
    }
}

/// Bars of one scale, that of the greatest.
#[expect(clippy::cast_precision_loss, reason = "lengths of bars")]
pub(super) fn bars(bars: &[Bar]) -> String {
    let greatest = bars.iter().map(|bar| bar.value).max().unwrap_or_default().max(1) as f64;
    let mut plot = open(bars.len());
    for (number, bar) in bars.iter().enumerate() {
        let (top, length) = (number as f64 * ROW, (WIDTH - LABELS - FIGURES) * bar.value as f64 / greatest);
        label(&mut plot, top, &bar.label);
        let _ = write!(
            plot,
            "<rect class=\"bar\" x=\"{LABELS}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\" rx=\"2\"/>",
            top + 3.0,
            ROW - 6.0
        );
        figure(&mut plot, LABELS + length + 8.0, top, &bar.note);
    }
    plot.push_str("</svg></div>");
    plot
}

/// Shares from 0 to 1, each a point on its interval.
#[expect(clippy::cast_precision_loss, reason = "places of rows")]
pub(super) fn intervals(rows: &[(String, ReportedShare)]) -> String {
    let scale = WIDTH - LABELS - FIGURES;
    let at = |share: f64| LABELS + scale * share;
    let mut plot = open(rows.len());
    for mark in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let bottom = rows.len() as f64 * ROW;
        let _ =
            write!(plot, "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{bottom:.1}\"/>", at(mark));
    }
    for (number, (name, ReportedShare { value, low, high })) in rows.iter().enumerate() {
        let top = number as f64 * ROW;
        let middle = top + ROW / 2.0;
        label(&mut plot, top, name);
        let _ = write!(
            plot,
            "<line class=\"line\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\
             <circle class=\"bar\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"4\"/>",
            at(*low),
            at(*high),
            at(*value)
        );
        figure(&mut plot, at(1.0) + 8.0, top, &format!("{:.0} %", 100.0 * value));
    }
    plot.push_str("</svg></div>");
    plot
}

#[expect(clippy::cast_precision_loss, reason = "height of a plot")]
fn open(rows: usize) -> String {
    let height = (rows.max(1)) as f64 * ROW;
    format!("{SCROLLED}<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\">")
}

fn label(plot: &mut String, top: f64, text: &str) {
    let x = LABELS - 10.0;
    let y = top + ROW * 0.68;
    let _ = write!(plot, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>", in_markup(text));
}

fn figure(plot: &mut String, x: f64, top: f64, text: &str) {
    let y = top + ROW * 0.68;
    let _ = write!(plot, "<text class=\"muted\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", in_markup(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_labels_stay_text() {
        let plot = bars(&[Bar::of("<script>\"x\"&'", 3)]);
        assert!(plot.contains("&lt;script&gt;&quot;x&quot;&amp;&#39;") && !plot.contains("<script"), "{plot}");
    }

    #[test]
    fn a_share_stands_on_its_interval() {
        let plot = intervals(&[("a".to_owned(), ReportedShare { value: 0.5, low: 0.25, high: 1.0 })]);
        assert!(plot.contains("x1=\"535.0\" x2=\"850.0\"") && plot.contains("cx=\"640.0\""), "{plot}");
        assert!(bars(&[]).contains("</svg>"));
    }
}
