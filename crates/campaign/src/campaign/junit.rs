//! The campaign as a `JUnit` file: what CI servers show. The one test case that can fail says what the exit code says.

use std::{borrow::Cow, io};

use serde::Deserialize;

use super::report::CampaignReport;
use crate::verdict::suite::{CaseResult, Suite, TestCase};

/// What is taken of an injected run.
#[derive(Deserialize)]
struct JunitCell<'a> {
    #[serde(borrow)]
    system: Cow<'a, str>,
    #[serde(borrow)]
    task: Cow<'a, str>,
    #[serde(borrow)]
    plan: Cow<'a, str>,
    #[serde(borrow)]
    class: Cow<'a, str>,
    #[serde(borrow)]
    evidence: Cow<'a, str>,
    #[serde(borrow)]
    why: Option<Cow<'a, str>>,
}

/// What is taken of a task that is out of the ordinary.
#[derive(Deserialize)]
struct JunitTask<'a> {
    #[serde(borrow)]
    system: Cow<'a, str>,
    #[serde(borrow)]
    task: Cow<'a, str>,
    #[serde(borrow)]
    left_out: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    why: Option<Cow<'a, str>>,
}

/// The file. `failed` is why the campaign's exit code is not 0, if it is not.
///
/// # Errors
/// The rows of the report cannot be read.
pub fn junit(report: &CampaignReport, failed: Option<&str>) -> io::Result<String> {
    let (delivered, attempts) = (report.funnel.delivered, report.funnel.attempts);
    let mut cases = vec![TestCase {
        class: "campaign".to_owned(),
        name: "injections are delivered".to_owned(),
        came: failed.map_or(CaseResult::Passed, |why| CaseResult::Failed(why.to_owned())),
        details: failed.map(|_| format!("{delivered} of {attempts} delivered")).unwrap_or_default(),
        seconds: None,
    }];
    for text in report.tasks.texts()? {
        let text = text?;
        let task: JunitTask<'_> = serde_json::from_str(&text)?;
        let Some(why) = task.left_out else { continue };
        let said = task.why.as_deref().unwrap_or_default().replace('\n', " ");
        let came = CaseResult::Skipped(format!("{why}: {said}"));
        let name = format!("{} without an injection", task.task);
        cases.push(TestCase { class: task.system.into_owned(), name, came, details: String::new(), seconds: None });
    }
    for text in report.cells.texts()? {
        let text = text?;
        let cell: JunitCell<'_> = serde_json::from_str(&text)?;
        let why = cell.why.as_ref().unwrap_or(&cell.evidence).replace('\n', " ");
        let said = format!("{}: {why}", cell.class);
        let (came, said) =
            if is_data(&cell.class) { (CaseResult::Passed, said) } else { (CaseResult::Skipped(said), String::new()) };
        let name = format!("{} {}", cell.task, cell.plan);
        cases.push(TestCase { class: cell.system.into_owned(), name, came, details: said, seconds: None });
    }
    Ok(Suite { name: report.campaign.clone(), seconds: Some(report.seconds), began: None, cases }.to_string())
}

/// Whether a run is data: the others are skipped, each with its class.
fn is_data(class: &str) -> bool {
    matches!(class, "verified" | "benign")
}
