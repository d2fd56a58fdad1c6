//! The command line and the environment, from what reads them.

use std::{collections::BTreeMap, fmt::Write};

use clap::{Arg, Command};

use super::{MADE, first_sentence, line};
use crate::cli::groups::GROUPS;

/// Variables that no option stands for: the name, whether Aegis reads or sets it, what for.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("AEGIS_CONTROL_TOKEN", "read", "Token of `serve --control`; one is made and printed if it is not set"),
    ("AEGIS_LOG", "read", "What the program logs to standard error, as a `tracing` filter: `aegis=debug`"),
    ("AEGIS_SHARD", "read", "`campaign --shard auto`: which part, `I/N` with I from 0"),
    (
        "AEGIS_SHARDS",
        "read",
        "The same: of how many, where an engine says only which (`JOB_COMPLETION_INDEX`, `PBS_ARRAY_INDEX`, `HQ_TASK_ID`)",
    ),
    ("AEGIS_WORKERS", "read", "Worker threads; one a core if not set"),
    (
        "OPENAI_BASE_URL",
        "read and set",
        "Where calls go, if nothing else says it; set for the program of `run`, `test`, `campaign`",
    ),
    ("COLUMNS", "read", "How wide `show` and `runs` write"),
    ("NO_COLOR", "read", "No colours, unless `--color always`"),
    ("CLICOLOR_FORCE", "read", "Colours off a terminal, too, where it is not 0; `NO_COLOR` and `--color` win over it"),
    ("CLICOLOR", "read", "No colours where it is 0"),
    ("TERM", "read", "No colours where it is `dumb`"),
    ("XDG_CACHE_HOME", "read", "Where `aegis/lists` keeps what was read of long lists of runs; `~/.cache` if not set"),
    ("XDG_CONFIG_HOME", "read", "Where `aegis/config.toml` is looked for; `~/.config` if not set"),
    ("OPENAI_API_BASE", "set", "As `OPENAI_BASE_URL`, for programs that read this one"),
    ("OPENAI_API_BASE_URL", "set", "As `OPENAI_BASE_URL`, for programs that read this one"),
    ("ANTHROPIC_BASE_URL", "set", "The same address without `/v1`"),
    ("GOOGLE_GEMINI_BASE_URL", "set", "As `ANTHROPIC_BASE_URL`, for Google's SDKs"),
    ("OPENAI_API_KEY", "set", "A placeholder, where none is set: SDKs refuse to start without"),
    ("ANTHROPIC_API_KEY", "set", "A placeholder, where none is set"),
    (
        "GEMINI_API_KEY",
        "set",
        "A placeholder, where neither this nor `GOOGLE_API_KEY` nor a project of Google Cloud is set",
    ),
    ("OPENAI_CUSTOM_HEADERS", "set", "The header that names the run, added to yours"),
    (
        "AEGIS_MCP_NAME",
        "set",
        "The address of the tool server NAME ([[mcp]], `--mcp`), in capitals, other characters as `_`",
    ),
    ("AEGIS_A2A_NAME", "set", "The same of the peer NAME ([[a2a]], `--a2a`)"),
    (
        "AEGIS_URL",
        "read and set",
        "The address of the proxy with the run, `http://HOST:PORT/r/RUN`: `mcp` reads it, also in a parent process; set for the program of `run`, `test`, `campaign`",
    ),
    ("NO_PROXY", "set", "Yours, and this machine"),
    ("PYTHONHASHSEED", "set", "`0`, where none is set: sets keep their order"),
    ("AEGIS_RUN_DIR", "set", "For `--check` and `command` checkers: the run's directory"),
    ("AEGIS_EXPECTED", "set", "For `command` checkers: the expected answer"),
    ("AEGIS_QUESTION", "set", "For `command` checkers: the task's question"),
];

/// Every verb with its options, by group.
pub(super) fn page(command: &mut Command) -> String {
    let mut text =
        format!("{MADE}# The command line\n\n`aegis VERB --help` says more of each option, and has examples.\n");
    // What every verb takes is said once, and what several take in the same words.
    let everywhere: Vec<Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    text.push_str("\n## Everywhere\n\n");
    text.extend(everywhere.iter().map(option));
    command.build();
    let shared = shared(command);
    text.push_str("\n## Shared options\n\nSeveral verbs take these; each names those that it takes.\n\n");
    text.extend(shared.values().map(String::as_str));
    for (title, verbs) in GROUPS {
        let _ = write!(text, "\n## {title}\n");
        for name in *verbs {
            if let Some(verb) = command.find_subcommand_mut(name).filter(|verb| verb.get_name() != "help") {
                described(&mut text, verb, "###", &shared);
            }
        }
    }
    text
}

/// Whether a verb's own page lists it.
fn is_own(arg: &Arg) -> bool {
    !arg.is_global_set() && !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")
}

/// The options that several verbs take in the same words, by name.
fn shared(command: &Command) -> BTreeMap<String, String> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut verbs: Vec<&Command> = command.get_subcommands().collect();
    while let Some(verb) = verbs.pop() {
        verbs.extend(verb.get_subcommands());
        for arg in verb.get_arguments().filter(|arg| is_own(arg) && !arg.is_positional()) {
            *counts.entry((name(arg), option(arg))).or_default() += 1;
        }
    }
    let mut most: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for ((name, line), count) in counts.into_iter().filter(|(_, count)| *count > 1) {
        let known = most.entry(name).or_default();
        if count > known.1 {
            *known = (line, count);
        }
    }
    most.into_iter().map(|(name, (line, _))| (name, line)).collect()
}

fn described(text: &mut String, verb: &mut Command, level: &str, shared: &BTreeMap<String, String>) {
    let title = verb.get_bin_name().unwrap_or(verb.get_name()).to_owned();
    let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "\n{level} {title}\n\n{}.\n", line(&about));
    let (common, own): (Vec<&Arg>, Vec<&Arg>) = verb
        .get_arguments()
        .filter(|arg| is_own(arg))
        .partition(|arg| shared.get(&name(arg)).is_some_and(|line| *line == option(arg)));
    if !own.is_empty() {
        text.push('\n');
    }
    text.extend(own.iter().copied().map(option));
    if !common.is_empty() {
        let names: Vec<String> = common.iter().map(|arg| format!("`{}`", name(arg))).collect();
        let _ = write!(text, "\nShared: {}.\n", names.join(", "));
    }
    let whole = verb.get_name() == "help";
    for below in verb.get_subcommands_mut().filter(|below| below.get_name() != "help" && !whole) {
        described(text, below, "####", shared);
    }
    let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
    let before = after.split("Examples:").next().unwrap_or_default();
    if !before.trim().is_empty() {
        let _ = write!(text, "\n{}\n", line(before.trim()));
    }
}

/// What names an argument: its long option, else its value.
fn name(arg: &Arg) -> String {
    arg.get_long().map_or_else(|| values(arg), |long| format!("--{long}"))
}

fn values(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str().to_owned());
    if arg.get_action().takes_values() { names.collect::<Vec<_>>().join(" ") } else { String::new() }
}

/// The line of an argument: how it is typed, what it is for, what holds without it.
fn option(arg: &Arg) -> String {
    let typed = match arg.get_long() {
        Some(_) => format!("{} {}", name(arg), values(arg)).trim_end().to_owned(),
        None => values(arg),
    };
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let takes = arg.get_action().takes_values();
    let help = line(&arg.get_help().map(ToString::to_string).unwrap_or_default());
    let mut what = first_sentence(&help).to_owned();
    let words = if takes { words(arg) } else { Vec::new() };
    if !words.is_empty() {
        let _ = write!(what, ": {}", words.join(", "));
    }
    let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes && !default.is_empty() {
        let _ = write!(what, "; default `{}`", default.join(" "));
    }
    format!("- `{short}{typed}`: {what}\n")
}

/// The words that an option takes, where these are few.
fn words(arg: &Arg) -> Vec<String> {
    arg.get_possible_values()
        .iter()
        .filter(|word| !word.is_hide_set())
        .map(|word| format!("`{}`", word.get_name()))
        .collect()
}

/// The variables: those that stand for options, and the others.
pub(super) fn environment(command: &Command) -> String {
    let mut named: BTreeMap<String, (String, String)> = BTreeMap::new();
    collect(command, &mut named);
    let mut text = format!("{MADE}# Environment\n\nAn option wins over its variable.\n\n");
    for (name, (option, help)) in &named {
        let _ = writeln!(text, "- `{name}` (read): `{option}`. {}", line(help));
    }
    for (name, how, what) in VARIABLES {
        let _ = writeln!(text, "- `{name}` ({how}): {}", line(what));
    }
    text
}

fn collect(command: &Command, named: &mut BTreeMap<String, (String, String)>) {
    for arg in command.get_arguments() {
        let Some(name) = arg.get_env().map(|name| name.to_string_lossy().into_owned()) else { continue };
        let option = arg.get_long().map_or_else(|| arg.get_id().to_string(), |long| format!("--{long}"));
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        named.entry(name).or_insert((option, help));
    }
    command.get_subcommands().for_each(|below| collect(below, named));
}
