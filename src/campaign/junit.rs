//! The campaign as a `JUnit` file: what CI servers show. The one test case that can fail says what the exit code says.

use std::fmt::{self, Write as _};

use super::{plot::escape, report::CampaignReport};

/// The file. `failed` is why the campaign's exit code is not 0, if it is not.
pub fn junit(report: &CampaignReport, failed: Option<&str>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, report, failed);
    text
}

fn write(text: &mut String, report: &CampaignReport, failed: Option<&str>) -> fmt::Result {
    let skipped = report.cells.iter().filter(|cell| !is_kept(cell.class)).count();
    let (tests, failures) = (report.cells.len() + 1, usize::from(failed.is_some()));
    writeln!(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        text,
        "<testsuites><testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{:.3}\">",
        escape(&report.campaign),
        report.seconds
    )?;
    let funnel = report.funnel;
    match failed {
        None => writeln!(text, "<testcase classname=\"campaign\" name=\"injections are delivered\"/>")?,
        Some(why) => writeln!(
            text,
            "<testcase classname=\"campaign\" name=\"injections are delivered\"><failure message=\"{}\">{} of {} delivered</failure></testcase>",
            escape(why),
            funnel.delivered,
            funnel.attempts
        )?,
    }
    for cell in &report.cells {
        let (class, name) = (escape(&cell.system), escape(&format!("{} {}", cell.task, cell.plan)));
        let said = escape(cell.why.as_deref().unwrap_or(&cell.evidence)).replace('\n', " ");
        if is_kept(cell.class) {
            let out = format!("<system-out>{}: {said}</system-out>", cell.class);
            writeln!(text, "<testcase classname=\"{class}\" name=\"{name}\">{out}</testcase>")?;
        } else {
            let skipped = format!("<skipped message=\"{}: {said}\"/>", cell.class);
            writeln!(text, "<testcase classname=\"{class}\" name=\"{name}\">{skipped}</testcase>")?;
        }
    }
    writeln!(text, "</testsuite></testsuites>")
}

/// Whether a run is data: the others are skipped, each with its class.
fn is_kept(class: &str) -> bool {
    matches!(class, "verified" | "benign")
}
