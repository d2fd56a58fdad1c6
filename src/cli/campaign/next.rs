//! What to type after a campaign that is not at its end: the same line with all that was said in it, and `--resume`.

use std::path::Path;

use super::CampaignArgs;
use crate::{
    campaign::Concluded,
    cli::{escape, typed::TypedLine},
};

/// The line that goes on, and what to change in it where it would end at once.
pub(super) fn line(arguments: &CampaignArgs, out: &Path, concluded: &Concluded) -> String {
    let again = escape(&again(TypedLine::of_process(), arguments, out));
    let spent = match (concluded.exhausted, &arguments.budget) {
        (false, _) => String::new(),
        (true, Some(budget)) => format!("\n          `--budget {budget}` is used up: raise it in that line"),
        (true, None) => "\n          the `[budget]` of the file is used up: raise it there first".to_owned(),
    };
    format!("{again}   goes on: what is finished is not paid for again{spent}")
}

/// The typed line with `--resume`, and with what the environment or a default said: another shell may not say it.
fn again(typed: TypedLine, arguments: &CampaignArgs, out: &Path) -> String {
    let out = Some(out.display().to_string());
    let unsaid = [("--out", &out), ("--upstream", &arguments.upstream)].into_iter().chain(arguments.asking.said());
    let said = |line: TypedLine, (name, value): (&str, &Option<String>)| match value {
        Some(value) if !line.says(name) => line.with([name.to_owned(), value.clone()]),
        _ => line,
    };
    unsaid.fold(typed, said).without("--resume", false).with(["--resume".to_owned()]).text()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        campaign: CampaignArgs,
    }

    #[test]
    fn whatever_was_said_is_said_again() {
        for (given, expected) in [
            (&["c.toml", "--budget", "calls=20"][..], "c.toml --budget calls=20 --out 'd e' --resume"),
            (
                &["c.toml", "--out", "d", "--only", "t 0", "--only=s/*"],
                "c.toml --out d --only 't 0' '--only=s/*' --resume",
            ),
            (&["--resume", "c.toml", "--out=d", "--junit", "it's"], r"c.toml --out=d --junit 'it'\''s' --resume"),
            (&["--jobs", "2", "--out", "d", "--", "-c.toml"], "--jobs 2 --out d --resume -- -c.toml"),
            (&["c.toml", "--out", "d", "--manipulator-model", "m"], "c.toml --out d --manipulator-model m --resume"),
        ] {
            let words = || given.iter().map(|&word| word.to_owned());
            let line = Line::parse_from(std::iter::once("aegis".to_owned()).chain(words()));
            let arguments = CampaignArgs { upstream: None, ..line.campaign };
            assert_eq!(
                again(TypedLine::of(words().collect()), &arguments, Path::new("d e")),
                format!("aegis {expected}")
            );
        }
        // What the environment said is said, too.
        let mut line = Line::parse_from(["aegis", "c.toml"]);
        line.campaign.upstream = Some("http://h/v1?a&b".to_owned());
        let said = again(TypedLine::of(vec!["c.toml".to_owned()]), &line.campaign, Path::new("d"));
        assert_eq!(said, "aegis c.toml --out d --upstream 'http://h/v1?a&b' --resume");
    }
}
