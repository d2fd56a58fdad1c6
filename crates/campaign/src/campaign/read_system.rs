//! `[[system]]` checked: command, variables, configuration, bounds.

use std::time::Duration;

use toml::Spanned;

use super::{
    command::CommandTemplate,
    definition::{CampaignSystem, Files},
    file::SystemEntry,
    read_named::read_file,
};
use crate::{
    plan::{Problem, Read},
    proof::{NeutralSentences, ProofConfig},
};

/// Longest run of a cell where the file says nothing.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Most model calls of a run where the file says nothing.
pub const MAX_CALLS: u64 = 200;

/// A system that can be run.
pub(super) fn system(
    entry: &Read<SystemEntry>,
    files: &dyn Files,
    problems: &mut Vec<Problem>,
) -> Option<CampaignSystem> {
    for key in ["name", "command"].into_iter().filter(|key| !entry.has(key)) {
        problems.push(Problem::new(entry.span.clone(), format!("the system has no `{key}`")));
    }
    let SystemEntry { name, command, config, directory, environment, timeout_s, max_calls, exit_codes } = &entry.value;
    let mut template = |text: &Spanned<String>| {
        let read = CommandTemplate::parse(text.get_ref());
        read.map_err(|message| problems.push(Problem::new(text.span(), message))).ok()
    };
    let templates: Option<Vec<CommandTemplate>> = command.as_ref().map(|command| {
        let words = command.get_ref().iter();
        words.filter_map(&mut template).collect()
    });
    let environment = environment.iter().filter_map(|(name, text)| Some((name.clone(), template(text)?))).collect();
    if let Some(empty) = command.as_ref().filter(|command| command.get_ref().is_empty()) {
        problems.push(Problem::new(empty.span(), "`command` is empty: expected a program and its arguments"));
    }
    let config_text = config.as_ref().and_then(|file| read_file(files, file.get_ref(), file.span(), problems));
    let timeout = timeout_s.as_ref().map(|seconds| (seconds, Duration::try_from_secs_f64(*seconds.get_ref())));
    if let Some((seconds, Err(_) | Ok(Duration::ZERO))) = &timeout {
        problems.push(Problem::new(seconds.span(), "`timeout_s` is not a time: expected seconds above 0"));
    }
    Some(CampaignSystem {
        name: name.as_ref()?.get_ref().clone(),
        command: templates?,
        config: config.as_ref().map(|file| file.get_ref().clone()),
        config_text: config_text.unwrap_or_default(),
        directory: directory.clone(),
        environment,
        timeout: timeout.and_then(|(_, read)| read.ok()).unwrap_or(TIMEOUT),
        exit_codes: exit_codes.as_ref().map_or(vec![0], |codes| codes.get_ref().clone()),
        max_calls: max_calls.as_ref().map_or(MAX_CALLS, |count| *count.get_ref()),
    })
}

/// The sentences of a system's neutral changes, as its `aegis.toml` says them. What else that file says, and whether it is
/// one, is the question of the proxy's own reader.
pub(super) fn sentences(system: &CampaignSystem, problems: &mut Vec<Problem>) -> Option<NeutralSentences> {
    #[derive(serde::Deserialize)]
    struct SystemConfig {
        #[serde(default)]
        proof: ProofConfig,
    }
    let Ok(SystemConfig { proof }) = toml::from_str(&system.config_text) else {
        return Some(NeutralSentences::default());
    };
    let file = system.config.as_deref().unwrap_or_default();
    proof.sentences().map_err(|bad| problems.push(Problem::new(0..0, format!("`{file}`: {bad}")))).ok()
}
