//! `aegis campaign FILE --shard I/N`: one part of a campaign.

use super::{Campaign, CampaignSnapshot, CampaignStart, failure, options, proxies, until_signalled};
use crate::{
    campaign::{self, ExistingContent, PartError, ShardEnd, ShardOptions, ShardPart},
    cli::{Exit, Failure, Finished, Global, escape, progress::ShownProgress, settings, typed::TypedLine},
    launch::shell_word,
};

/// Makes a part; its directory is below `out`, and what lies there is gone on with.
pub(super) fn work(
    part: &str,
    changed: bool,
    campaign: Campaign,
    kept: CampaignSnapshot,
    mut begun: CampaignStart,
    global: &Global,
) -> Result<Finished, Failure> {
    let part = part_of(part)?;
    let merge = format!("aegis shard merge {} --out MERGED", shell_word(&begun.out.to_string_lossy()));
    begun.out = begun.out.join(part.directory());
    begun.earlier = ExistingContent::Either { changed };
    if !global.quiet {
        talkln!("shard     {part}   {}", begun.out.display());
    }
    let (proxies, shown, out) = (proxies(&campaign, &begun)?, ShownProgress::new(global), begun.out.clone());
    let shard = ShardOptions { part, snapshot: kept };
    let (options, stopping) = options(&campaign, begun, global)?;
    let running = campaign::run_shard(campaign, proxies, options, shard, &shown);
    let (done, signal) = settings::block_on(until_signalled(running, stopping))?;
    let ended: ShardEnd = done.map_err(|error| failure(error, &out))?;
    let exit = match signal {
        Some(signal) => Exit::Signal(signal),
        None if ended.exhausted => Exit::Budget,
        None if ended.chains > 0 && ended.unreachable == ended.chains => Exit::Infrastructure,
        None => Exit::Ok,
    };
    if !global.quiet {
        let again = escape(&TypedLine::of_process().text());
        match exit {
            Exit::Ok => talkln!("next      {merge}            when all parts are made"),
            Exit::Budget => talkln!("next      {again}   goes on, once its budget is raised"),
            Exit::Infrastructure => talkln!("next      {again}   goes on, once the upstream answers"),
            _ => talkln!("next      {again}   goes on: what is finished is not paid for again"),
        }
    }
    let data = serde_json::to_value(&ended).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Finished { exit, summary: ended.line(part), data })
}

/// The part that is asked for, or that the engine says.
fn part_of(text: &str) -> Result<ShardPart, Failure> {
    let part = if text == "auto" { ShardPart::of_variables(|name| std::env::var(name).ok()) } else { text.parse() };
    part.map_err(|error| {
        let hint = match &error {
            PartError::HowMany { .. } => {
                "set AEGIS_SHARDS to the number of all: `aegis shard emit` writes files that do"
            }
            PartError::Nothing => "say it: `--shard 0/8`, or AEGIS_SHARD=0/8; `auto` never means everything",
            PartError::Malformed(_) | PartError::Variable { .. } => "for example `--shard 0/8` to `--shard 7/8`",
        };
        Failure::new(Exit::Usage, error).hint(hint)
    })
}
