//! The campaign as a `JUnit` file: what CI servers show. The one test case that can fail says what the exit code says.

use super::report::CampaignReport;
use crate::verdict::suite::{Came, Suite, TestCase};

/// The file. `failed` is why the campaign's exit code is not 0, if it is not.
pub fn junit(report: &CampaignReport, failed: Option<&str>) -> String {
    let (delivered, attempts) = (report.funnel.delivered, report.funnel.attempts);
    let whole = TestCase {
        class: "campaign".to_owned(),
        name: "injections are delivered".to_owned(),
        came: failed.map_or(Came::Passed, |why| Came::Failed(why.to_owned())),
        said: failed.map(|_| format!("{delivered} of {attempts} delivered")).unwrap_or_default(),
    };
    let cells = report.cells.iter().map(|cell| {
        let why = cell.why.as_deref().unwrap_or(&cell.evidence).replace('\n', " ");
        let said = format!("{}: {why}", cell.class);
        let (came, said) =
            if is_kept(cell.class) { (Came::Passed, said) } else { (Came::Skipped(said), String::new()) };
        TestCase { class: cell.system.clone(), name: format!("{} {}", cell.task, cell.plan), came, said }
    });
    let left_out = report.tasks.iter().filter_map(|task| {
        let why = task.left_out?.name();
        let said = task.why.as_deref().unwrap_or_default().replace('\n', " ");
        let came = Came::Skipped(format!("{why}: {said}"));
        let name = format!("{} without an injection", task.task);
        Some(TestCase { class: task.system.clone(), name, came, said: String::new() })
    });
    let cases = std::iter::once(whole).chain(left_out).chain(cells).collect();
    Suite { name: report.campaign.clone(), seconds: Some(report.seconds), cases }.to_string()
}

/// Whether a run is data: the others are skipped, each with its class.
fn is_kept(class: &str) -> bool {
    matches!(class, "verified" | "benign")
}
