//! What to type: examples at the end of each verb's help, in one table.

use clap::{Command, CommandFactory};

use super::{Cli, groups};

/// Lines to type, by verb. A word in capitals is the reader's to fill in.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("demo", &["aegis demo", "aegis demo --dir demo-run"]),
    (
        "serve",
        &[
            "aegis serve --upstream simulator",
            "aegis serve --listen 127.0.0.1:8484 --run first",
            "aegis serve --listen 0.0.0.0:8484 --tokens tokens.toml",
            "aegis serve -v --plan rate-limit --run faulty",
        ],
    ),
    (
        "run",
        &[
            "aegis run -- python my_agents.py",
            "aegis run --run first --overwrite --timeout 300 -- python my_agents.py",
            "aegis run --plan plan.toml --check \"grep -q 'ANSWER: 84'\" -- python my_agents.py",
        ],
    ),
    (
        "mcp",
        &[
            "aegis mcp calc -- python calc_server.py",
            "aegis mcp calc --url http://127.0.0.1:8484/r/first -- npx -y @modelcontextprotocol/server-everything",
        ],
    ),
    (
        "test",
        &[
            "aegis test rate-limit broken-stream -- python my_agents.py",
            "aegis test rate-limit --name nightly --runs 3 --junit junit.xml -- python my_agents.py",
        ],
    ),
    (
        "campaign",
        &[
            "aegis campaign campaign.toml --dry-run",
            "aegis campaign campaign.toml --jobs 4 --budget calls=2000",
            "aegis campaign campaign.toml --resume",
        ],
    ),
    ("shard", &["aegis shard merge big --out big/merged", "aegis shard emit ray campaign.toml --shards 8"]),
    ("shard merge", &["aegis shard merge big --out big/merged"]),
    ("shard emit", &["aegis shard emit slurm campaign.toml --shards 8"]),
    ("campaign schema", &["aegis campaign schema"]),
    ("runs", &["aegis runs", "aegis runs demo-run/logs --format json", "aegis runs logs --text \"apple trees\""]),
    ("runs prune", &["aegis runs prune logs --keep 30d,50GB", "aegis runs prune logs --keep 30d --yes"]),
    ("runs keep", &["aegis runs keep logs/first --by ada"]),
    ("runs release", &["aegis runs release logs/first"]),
    ("runs end", &["aegis runs end logs/first", "aegis runs end logs/first logs/second"]),
    (
        "show",
        &["aegis show logs/first", "aegis show logs/first --step 3-7", "aegis show logs/first --step 1 --before-after"],
    ),
    ("view", &["aegis view", "aegis view demo-run --open", "aegis view logs --bundle runs.html"]),
    ("annotations", &["aegis annotations logs"]),
    (
        "modes",
        &["aegis modes logs", "aegis modes logs --upstream https://api.example.com/v1 --model NAME --cassette asked"],
    ),
    (
        "agents",
        &[
            "aegis agents logs/first",
            "aegis agents logs/first --suggest",
            "aegis agents logs/first --roster aegis.toml",
        ],
    ),
    (
        "amend",
        &[
            "aegis amend logs/first --roster aegis.toml",
            "aegis amend logs/first logs/second --outcome failure --evidence \"the total is 376, not 381\" --by ada",
        ],
    ),
    ("replay", &["aegis replay logs/first -- python my_agents.py", "aegis replay logs/first --listen 127.0.0.1:8485"]),
    ("fork", &["aegis fork logs/first --at 3 --replace reply.txt -- python my_agents.py"]),
    (
        "attribute",
        &["aegis attribute --list", "aegis attribute demo-run --method alignment,rules --out predictions.jsonl"],
    ),
    (
        "certify",
        &[
            "aegis certify fresh --tracer sft --upstream http://127.0.0.1:8000/v1 --model tracer",
            "aegis certify fresh --check certificate",
        ],
    ),
    ("learn", &["aegis learn traced --out prior.toml"]),
    (
        "retry",
        &[
            "aegis retry logs/failed --check ./check.sh -- python my_agents.py",
            "aegis retry logs/failed --critique note.txt --at 1 --check ./check.sh -- python my_agents.py",
        ],
    ),
    ("trace", &["aegis trace logs/failed --twin logs/passed --check ./check.sh -- python my_agents.py"]),
    ("prove", &["aegis prove logs/second --check ./check.sh -- python my_agents.py", "aegis prove logs --again"]),
    ("diff", &["aegis diff logs/first logs/second", "aegis diff logs/first logs/second --all"]),
    ("plan", &["aegis plan ready", "aegis plan check plan.toml --against logs/first"]),
    ("plan check", &["aegis plan check plan.toml", "aegis plan check plan.toml --against logs/first"]),
    ("plan explain", &["aegis plan explain plan.toml", "aegis plan explain rate-limit"]),
    ("plan ready", &["aegis plan ready", "aegis plan ready rate-limit"]),
    ("plan list", &["aegis plan list", "aegis plan list corrupt"]),
    ("plan catalogue", &["aegis plan catalogue plans"]),
    ("plan schema", &["aegis plan schema"]),
    (
        "tasks",
        &[
            "aegis tasks import --from gsm8k test.jsonl --out tasks.jsonl",
            "aegis tasks import --from generic rows.csv --map question=prompt --map answer=gold --out tasks.jsonl",
        ],
    ),
    (
        "import",
        &[
            "aegis import --from whowhen Who_and_When --out whowhen",
            "aegis import --from otlp traces.jsonl --log-dir logs",
        ],
    ),
    (
        "export",
        &[
            "aegis export demo-run --to sft --out sft.jsonl",
            "aegis export logs/first --to otlp --out first.otlp.jsonl",
            "aegis export --list",
        ],
    ),
    (
        "score",
        &[
            "aegis score predictions.jsonl --gold demo-run",
            "aegis score predictions.jsonl --gold demo-run --table latex",
        ],
    ),
    ("reward", &["aegis reward --listen 127.0.0.1:8485"]),
    ("lint", &["aegis lint demo-run", "aegis lint logs", "aegis lint --list"]),
    ("stats", &["aegis stats demo-run", "aegis stats demo-run --html stats.html --open"]),
    ("repair", &["aegis repair logs/first", "aegis repair logs/first --seal", "aegis repair logs/first --salvage"]),
    ("doctor", &["aegis doctor", "aegis doctor --upstream http://127.0.0.1:8000/v1"]),
    ("init", &["aegis init", "aegis init mine --from logs/first"]),
    (
        "token",
        &[
            "aegis token alice --file tokens.toml",
            "aegis token bob --file tokens.toml --requests-per-minute 60",
            "aegis token alice --file tokens.toml --renew",
            "aegis token bob --file tokens.toml --remove",
        ],
    ),
    ("completions", &["aegis completions bash"]),
    ("man", &["aegis man man1"]),
    ("example", &["aegis example pipeline --task \"A box holds 6 eggs. How many eggs do 7 boxes hold?\""]),
];

/// The command line with its examples.
pub(super) fn command() -> Command {
    let mut command = Cli::command();
    for (verb, lines) in EXAMPLES {
        command = at(command, &verb.split(' ').collect::<Vec<_>>(), lines);
    }
    groups::grouped(command)
}

/// What to type instead, where a command line cannot be read: the first example of the verb that was named.
pub(super) fn instead(arguments: &[String]) -> Option<&'static str> {
    let named =
        arguments.iter().position(|word| EXAMPLES.iter().any(|(verb, _)| verb.split(' ').next() == Some(word)))?;
    let words = arguments.get(named..)?;
    // `plan check` before `plan`; of a verb with verbs of its own, where none is named, the first.
    let two = words.get(..2).map(|words| words.join(" "));
    let first = words.first()?;
    let found = EXAMPLES.iter().find(|(verb, _)| Some(*verb) == two.as_deref());
    let found = found.or_else(|| EXAMPLES.iter().find(|(verb, _)| verb.split(' ').next() == Some(first)));
    found.and_then(|(_, lines)| lines.first().copied())
}

/// The lines to type of a verb.
#[cfg(test)]
fn examples_for(verb: &str) -> &'static [&'static str] {
    EXAMPLES.iter().find(|(name, _)| *name == verb).map(|(_, lines)| *lines).unwrap_or_default()
}

fn at(command: Command, path: &[&str], lines: &[&str]) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let before = command.get_after_help().map(|before| format!("{before}\n\n")).unwrap_or_default();
        let text = lines.iter().fold(format!("{before}Examples:"), |text, line| text + "\n  " + line);
        return command.after_help(text);
    };
    command.mut_subcommand(first, |next| at(next, rest, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a line, quotes taken off, as a shell would.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote, mut begun) = (vec![String::new()], None, false);
        for c in line.chars() {
            match (quote, c) {
                (Some(mark), c) if c == mark => quote = None,
                (None, '"' | '\'') => (quote, begun) = (Some(c), true),
                (None, ' ') if begun => {
                    words.push(String::new());
                    begun = false;
                }
                (None, ' ') => {}
                (_, c) => {
                    if let Some(word) = words.last_mut() {
                        word.push(c);
                    }
                    begun = true;
                }
            }
        }
        words
    }

    fn verbs(command: &Command, path: &str, found: &mut Vec<String>) {
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set()) {
            let name = format!("{path}{}", verb.get_name());
            verbs(verb, &format!("{name} "), found);
            found.push(name);
        }
    }

    #[test]
    fn every_verb_says_what_to_type_and_that_can_be_typed() {
        let mut found = Vec::new();
        verbs(&Cli::command(), "", &mut found);
        for verb in &found {
            // What `example` and `tasks` have below them shows the same lines.
            let shown = verb.starts_with("example ") || verb.starts_with("tasks ");
            assert!(shown || !examples_for(verb).is_empty(), "`aegis {verb} --help` has no example");
        }
        for (verb, lines) in EXAMPLES {
            assert!(found.iter().any(|known| known == verb), "there is no verb `{verb}`");
            for line in *lines {
                assert!(line.starts_with(&format!("aegis {verb}")), "{line}");
                let parsed = command().try_get_matches_from(words(line));
                assert!(parsed.is_ok(), "{line}: {}", parsed.err().map(|error| error.to_string()).unwrap_or_default());
            }
        }
    }

    #[test]
    fn the_examples_stand_in_the_help() {
        let mut command = command();
        let run = command.find_subcommand_mut("run").map(|run| run.render_help().to_string()).unwrap_or_default();
        assert!(run.contains("Examples:\n  aegis run -- python my_agents.py"), "{run}");
        let lint = command.find_subcommand_mut("lint").map(|lint| lint.render_help().to_string()).unwrap_or_default();
        assert!(lint.contains("Exit code 1:") && lint.contains("Examples:"), "{lint}");
    }
}
