//! The reference pages of the documentation, written from the code: keys from schemas, options from the command line.

mod keys;
mod verbs;

use std::fmt::Write;

use self::keys::KeyPage;
use crate::{
    campaign,
    cli::{Config, Exit, examples, setup::schemas},
    plan::{self, CatalogueEntry, Operation},
    proxy::Limits,
    trajectory::Side,
};

/// What stands at the top of each page.
const MADE: &str =
    "<!-- Written by `aegis reference docs/reference`: change the code's own words, not this page. -->\n\n";

/// Every page: its file's name and its text.
pub(super) fn pages() -> Vec<(&'static str, String)> {
    let schema = |schema: schemars::Schema| serde_json::Value::from(schema);
    let config = KeyPage {
        title: "aegis.toml",
        description: "Read from `--config FILE` (`AEGIS_CONFIG`), else from `./aegis.toml`, else from `aegis/config.toml` in \
                `XDG_CONFIG_HOME` or `~/.config`. Every key is optional. Options and `AEGIS_*` variables win over it. A \
                file that was only found in the working directory may not say where calls and keys go, or who may ask: name \
                it for that (`--config ./aegis.toml`).",
        elsewhere: &[],
        defaults: limits(),
    };
    let campaign = KeyPage {
        title: "Campaign files",
        description: "What `aegis campaign FILE` reads. Paths are relative to the file. `aegis campaign schema` prints the JSON \
                schema, for editors. How it works: [campaigns](../campaign.md), [checkers](../verify.md).",
        elsewhere: &[],
        defaults: Vec::new(),
    };
    let plan = KeyPage {
        title: "Plans",
        description: "What `--plan` and `[[plan]]` read. `aegis plan schema` prints the JSON schema, for editors; \
                `aegis plan explain PLAN` says a plan in words. An injection has one `manipulator` or one `fault`, and at \
                least one condition under `when`. Steps, calls and instances count from 0.",
        elsewhere: &[("manipulator", "catalogue.md#manipulators"), ("fault", "catalogue.md#faults")],
        defaults: Vec::new(),
    };
    vec![
        ("configuration.md", config.text(&schema(schemars::schema_for!(Config)))),
        ("campaign.md", campaign.text(&schema(campaign::schema()))),
        ("plan.md", plan.text(&schema(plan::schema()))),
        ("catalogue.md", catalogue()),
        ("cli.md", verbs::page(&mut examples::command())),
        ("environment.md", verbs::environment(&examples::command())),
        ("exit-codes.md", exit_codes()),
        ("schemas.md", format!("{MADE}{}", schemas::page())),
    ]
}

/// What holds where aegis.toml says nothing, and the schema cannot say it.
fn limits() -> Vec<(&'static str, String)> {
    let limits = Limits::default();
    let seconds = |time: std::time::Duration| time.as_secs_f64().to_string();
    vec![
        ("listen", "127.0.0.1:8484".to_owned()),
        ("log_dir", "logs".to_owned()),
        ("durability", "\"written\"".to_owned()),
        ("limits.max_body_bytes", limits.max_body_bytes.to_string()),
        ("limits.max_connections", limits.max_connections.to_string()),
        ("limits.max_streams", limits.max_streams.to_string()),
        ("limits.head_timeout_s", seconds(limits.head_timeout)),
        ("limits.body_timeout_s", seconds(limits.body_timeout)),
        ("limits.upstream_timeout_s", seconds(limits.silence_timeout)),
        ("limits.write_timeout_s", seconds(limits.write_timeout)),
        ("limits.max_tunnels", limits.max_tunnels.to_string()),
        ("limits.tunnel_idle_s", seconds(limits.tunnel_idle)),
        ("limits.room_wait_s", seconds(limits.room_wait)),
        ("limits.drain_s", seconds(limits.drain)),
    ]
}

/// Lines of an injection that say nothing of its operator.
const FRAME: [&str; 4] = ["[[injection]]", "agent = ", "failure_mode = ", "when."];

/// All manipulators and faults.
fn catalogue() -> String {
    let mut text = format!("{MADE}# Manipulators and faults\n\n");
    text.push_str(
        "Each with its parameters, and how it stands in an `[[injection]]` beside `agent`, `when` and `failure_mode`. `aegis plan list \
         NAME` prints a whole plan, and a check of what it does. `aegis plan ready` lists [ready-made plans](../../plans/README.md).\n",
    );
    let entries = plan::catalogue();
    for (operation, heading) in [(Operation::Manipulator, "Manipulators"), (Operation::Fault, "Faults")] {
        let _ = write!(text, "\n## {heading}\n");
        entries.iter().filter(|entry| entry.operation == operation).for_each(|entry| described(&mut text, entry));
    }
    text
}

fn described(text: &mut String, entry: &CatalogueEntry) {
    let side = |side: &Side| if *side == Side::Request { "request" } else { "response" };
    let sides: Vec<&str> = entry.sides.iter().map(side).collect();
    let sides = if sides.is_empty() { String::new() } else { format!(" Side: {}.", sides.join(", ")) };
    let _ = write!(text, "\n### {}\n\n{}{sides}\n", entry.name, entry.summary);
    if !entry.parameters.is_empty() {
        text.push('\n');
    }
    for parameter in &entry.parameters {
        let default = match &parameter.default {
            _ if parameter.required => ", required".to_owned(),
            Some(default) => format!(", default `{default}`"),
            None => String::new(),
        };
        let [takes, what] = [&parameter.takes, &parameter.summary].map(|words| line(words));
        let _ = writeln!(text, "- `{}` ({takes}{default}): {what}", parameter.name);
    }
    // Where it stands in a plan, and its check, are for whoever writes one: `aegis plan list` has them.
    let example = entry.example.split("[[check]]").next().unwrap_or_default();
    let is_frame = |line: &&str| line.is_empty() || FRAME.iter().any(|begins| line.starts_with(begins));
    let example: Vec<&str> = example.lines().filter(|line| !is_frame(line)).collect();
    if !example.is_empty() {
        let _ = write!(text, "\n```toml\n{}\n```\n", example.join("\n"));
    }
}

/// What exit codes mean.
fn exit_codes() -> String {
    let mut text = format!(
        "{MADE}# Exit codes\n\nVerbs that execute or decide something end with a line `RESULT WORD …` on standard error, and \
         with `result` and `exit` in JSON. Word and code are one value.\n\n| code | word | when |\n|--:|---|---|\n"
    );
    for exit in Exit::ALL {
        let _ = writeln!(text, "| {} | `{}` | {} |", exit.code(), exit.word(), exit.meaning());
    }
    text.push_str(
        "\nA line that cannot be used (an unknown option, a file that is not there) says `error: …` and ends with 2, without \
         `RESULT`. With `--format json` the error stands on standard output too: `{\"error\": {\"code\", \"message\", \"hint\"}, \"result\", \
         \"exit\"}`; `code` is the word. What was under way when a campaign was stopped is kept: `--resume` goes on.\n",
    );
    text
}

/// The first sentence of a text.
fn first_sentence(text: &str) -> &str {
    let is_end =
        |at: &usize| text.get(at + 2..).is_some_and(|rest| rest.starts_with(|c: char| c.is_uppercase() || c == '`'));
    text.match_indices(". ").map(|(at, _)| at).find(is_end).and_then(|at| text.get(..at)).unwrap_or(text)
}

/// A text on one line. Between backticks nothing is markup.
fn line(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let parts = text.split('`').enumerate();
    let parts: Vec<String> =
        parts.map(|(at, part)| if at % 2 == 1 { part.to_owned() } else { part.replace('<', "&lt;") }).collect();
    parts.join("`")
}
