//! What a campaign would cost; nothing is run.

use crate::cli::printed::{ForeseenCampaign, printed};
use std::io::Write;

use super::{CampaignArgs, CampaignStart, next};
use crate::{
    campaign::{self, Campaign, ExistingContent, Extent},
    cli::{Exit, Failure, Finished, Global, OutputFormat, escape, terminal},
    verify,
};

/// Tasks whose clean runs are to be made first, where none was.
const FIRST_TASKS: usize = 3;

/// Foretells, on standard output; what is expected, where `out` holds clean runs already.
pub(super) fn tell(
    campaign: &Campaign,
    begun: &CampaignStart,
    arguments: &CampaignArgs,
    allowed: bool,
    global: &Global,
) -> Result<Finished, Failure> {
    let CampaignStart { out, only, earlier, .. } = begun;
    // What the start itself would be refused for is no price.
    let proxies = super::proxies(campaign, begun)?;
    campaign::refuse_start(campaign, &proxies, out, *earlier).map_err(|error| super::failure(error, out))?;
    let measured = campaign::measured(campaign, out, only);
    let extent = campaign.extent(only).expecting(campaign, measured.as_ref());
    let commands = campaign.task_commands();
    let first = extent.expected.is_none().then(|| {
        let resumes = out.join("cells").is_dir();
        next::first_part(arguments, out, &campaign.some_tasks(only, FIRST_TASKS), resumes)
    });
    if global.format != OutputFormat::Json {
        let sandbox = match (commands, allowed) {
            (0, _) => String::new(),
            (_, true) => format!("commands       {commands} tasks bring one; {}\n", verify::sandbox_words()),
            (_, false) => format!("commands       {commands} tasks bring one; refused without --allow-task-commands\n"),
        };
        let place = escape(&out.display().to_string());
        let expected = expected(&extent, &place, first.as_deref());
        let again = match earlier {
            ExistingContent::Refuse if out.join("cells").is_dir() => {
                format!("resume         `{place}` holds runs of it: the line itself needs --resume\n")
            }
            _ => String::new(),
        };
        let text = [extent.text(), sandbox, again, expected, extent.worst_case()].concat();
        let mut out = terminal::stdout();
        out.write_all(text.as_bytes()).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let runs = extent.runs();
    let expected = extent.expected.as_ref().map(|expected| {
        let (low, high) = (expected.low.calls, expected.high.calls);
        let without = if extent.searches() > 0 { " without tracing and missed catches" } else { "" };
        format!("{low:.0} to {high:.0} model calls expected{without}, ")
    });
    let expected = expected.unwrap_or_default();
    let summary = format!("nothing was run: {expected}at most {runs} runs and {} model calls", extent.calls);
    let data = printed(&ForeseenCampaign { dry_run: &extent, task_commands: commands, first_part: first });
    Ok(Finished { exit: Exit::Ok, summary, data })
}

/// What is expected, or how it comes to be known.
fn expected(extent: &Extent, place: &str, first: Option<&str>) -> String {
    match (&extent.expected, first) {
        (Some(expected), _) => {
            let searches = extent.searches();
            let without = format!("   not in it    tracing and missed catches: at most {searches} runs\n");
            expected.text() + if searches > 0 { &without } else { "" }
        }
        (None, first) => format!(
            "expected       not known: `{place}` holds no clean run of it. This makes those of a few tasks, and what follows \
             from them:\n   {}\n   then ask again\n",
            escape(first.unwrap_or_default())
        ),
    }
}
