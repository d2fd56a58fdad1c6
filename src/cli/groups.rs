//! The verbs in groups, as the help and the reference list them.

use std::fmt::Write;

use clap::Command;

/// Titles of the groups, each with its verbs in the order in which a user meets them.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["demo", "init", "doctor", "example"]),
    ("Record", &["run", "serve", "mcp", "runs", "show", "view", "agents", "amend", "diff"]),
    ("Test", &["test", "plan", "replay"]),
    ("Make data", &["tasks", "campaign", "shard", "prove", "import", "modes"]),
    ("Explain a failure", &["attribute", "trace", "fork", "retry", "learn", "annotations"]),
    ("Use data", &["export", "lint", "stats", "score", "certify", "reward"]),
    ("Machine", &["token", "repair", "completions", "man", "help"]),
];

/// Columns of the list: it fits the narrowest usual terminal.
const WIDTH: usize = 80;
/// Where the text of a verb begins.
const INDENT: usize = 15;

/// The command with a help that lists its verbs by group: clap has one heading for all of them.
pub(super) fn grouped(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let mut list = String::new();
    for (title, verbs) in GROUPS {
        let _ = write!(list, "\n{header}{title}:{header:#}\n");
        for verb in *verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            let about = about.map_or_else(|| "Print this help, or that of a verb".to_owned(), ToString::to_string);
            write_verb(&mut list, verb, &about);
        }
    }
    let template = format!("{{about}}\n\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}");
    command.help_template(template)
}

/// A verb and what it does, broken between words.
fn write_verb(list: &mut String, verb: &str, about: &str) {
    let mut column = INDENT;
    let _ = write!(list, "  {verb:<width$}", width = INDENT - 3);
    for word in about.split(' ') {
        let length = word.chars().count() + 1;
        if column + length > WIDTH {
            let _ = write!(list, "\n{:width$}", "", width = INDENT - 1);
            column = INDENT;
        }
        let _ = write!(list, " {word}");
        column += length;
    }
    list.push('\n');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::GROUPS;
    use crate::cli::examples;

    #[test]
    fn every_verb_stands_in_one_group() {
        let command = examples::command();
        let verbs: BTreeSet<&str> =
            command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(clap::Command::get_name).collect();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        let once: BTreeSet<&str> = listed.iter().copied().filter(|verb| *verb != "help").collect();
        assert_eq!(once, verbs);
        assert_eq!(listed.len(), verbs.len() + 1, "a verb stands in two groups");
    }
}
