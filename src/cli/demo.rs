//! `aegis demo`: the whole job, on the embedded simulator.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{
    Exit, Failure, Finished, Global,
    asking::AskingArgs,
    campaign::{CampaignStart, conduct},
};
use crate::{
    campaign::{CampaignEquality, ExistingContent},
    demo,
    recording::RunFile,
    viewer::Listing,
};

/// Options of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Directory for logs/, dataset.jsonl and report.json.
    #[arg(long, default_value = "demo-run", value_name = "DIR")]
    dir: PathBuf,
}

pub(super) fn run(arguments: &DemoArgs, global: &Global) -> Result<Finished, Failure> {
    let campaign = demo::campaign().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    spare_others(&arguments.dir, &campaign.name)?;
    if !global.quiet {
        talkln!("backend   embedded simulator (a scripted model, deterministic; no key, no network)");
    }
    let directory = std::env::current_dir().map_err(|error| Failure::new(Exit::Usage, error))?;
    let begun = CampaignStart {
        out: arguments.dir.clone(),
        // Cells are named by what they are, so runs of an earlier demo would be taken for this one's.
        earlier: ExistingContent::Replace,
        directory,
        only: Vec::new(),
        jobs: None,
        ca_file: None,
        asking: AskingArgs::default(),
        equality: CampaignEquality::default(),
    };
    let done = conduct(campaign, begun, global)?;
    let mut finished = done.finish();
    if !global.quiet {
        let dir = crate::launch::shell_word(&arguments.dir.to_string_lossy());
        talkln!("next      open {dir}/report.html            what came of it");
        if let Some(run) = labelled(arguments.dir.join("logs")) {
            talkln!("          aegis show {dir}/logs/{run}   look at one run");
        }
        talkln!("          aegis run -- python my_agents.py    record your own system");
    }
    if finished.exit == Exit::Ok && done.concluded.verified() == 0 {
        finished.exit = Exit::Finding;
    }
    Ok(finished)
}

/// The first run, by name, that has a label; else the first of all.
fn labelled(logs: PathBuf) -> Option<String> {
    let rows = Listing::scan(&[logs]).runs;
    let first = rows.iter().min_by_key(|row| (row.label.is_none(), row.run.clone()))?;
    Some(crate::launch::shell_word(&first.run))
}

/// A demo replaces an earlier one, and no other campaign: that one may have cost money.
fn spare_others(dir: &Path, demo: &str) -> Result<(), Failure> {
    let report = RunFile::bytes(&dir.join("report.json")).ok();
    let report = report.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    let is_demo = report.is_some_and(|report| report.get("campaign").is_some_and(|name| name == demo));
    if is_demo || !dir.join("cells").exists() {
        return Ok(());
    }
    let error = format!("`{}` holds a campaign that is no demo, and it would be lost", dir.display());
    Err(Failure::new(Exit::Usage, error).hint("name another directory: aegis demo --dir DIR"))
}
