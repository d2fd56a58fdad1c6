//! What a campaign would cost at most; nothing is run.

use std::io::Write;

use super::CampaignStart;
use crate::{
    campaign::{self, Campaign, Earlier},
    cli::{Exit, Failure, Finished, Global, OutputFormat, escape},
    verify,
};

/// Foretells, on standard output; what is expected, where `out` holds clean runs already.
pub(super) fn tell(
    campaign: &Campaign,
    begun: &CampaignStart,
    allowed: bool,
    global: &Global,
) -> Result<Finished, Failure> {
    let CampaignStart { out, only, earlier, .. } = begun;
    // What the start itself would be refused for is no price.
    let proxies = super::proxies(campaign, begun)?;
    campaign::refuse_start(campaign, &proxies, out, *earlier).map_err(|error| super::failure(error, out))?;
    let extent = campaign.extent(only).expecting(campaign, campaign::measured(campaign, out));
    let commands = campaign.task_commands();
    if global.format != OutputFormat::Json {
        let told = match (commands, allowed) {
            (0, _) => String::new(),
            (_, true) => format!("commands       {commands} tasks bring one; {}\n", verify::sandbox_words()),
            (_, false) => format!("commands       {commands} tasks bring one; refused without --allow-task-commands\n"),
        };
        let place = escape(&out.display().to_string());
        let unknown = match extent.expected {
            Some(_) => String::new(),
            None => format!(
                "expected       not known: `{place}` holds no clean run of it; run a part of it there (`--only TASK`) first\n"
            ),
        };
        let again = match earlier {
            Earlier::Refuse if out.join("cells").is_dir() => {
                format!("resume         `{place}` holds runs of it: the line itself needs --resume\n")
            }
            _ => String::new(),
        };
        let mut out = std::io::stdout().lock();
        let written = out.write_all((extent.text() + &unknown + &told + &again).as_bytes());
        written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let runs = extent.clean + extent.injected + extent.verify + extent.narrow;
    let expected =
        extent.expected.map(|expected| format!(", about {:.0} calls expected before labels", expected.calls));
    let expected = expected.unwrap_or_default();
    let summary = format!("nothing was run: at most {runs} runs and {} model calls{expected}", extent.calls);
    Ok(Finished { exit: Exit::Ok, summary, data: serde_json::json!({ "dry_run": extent, "task_commands": commands }) })
}
