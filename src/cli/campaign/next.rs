//! What to type after a campaign that is not at its end: the same line with all that was said in it, and `--resume`.

use std::path::Path;

use super::CampaignArgs;
use crate::{
    campaign::Concluded,
    cli::{escape, typed::TypedLine},
};

/// The line that goes on, and what to change in it where it would end at once.
pub(super) fn line(arguments: &CampaignArgs, out: &Path, concluded: &Concluded) -> String {
    let again = escape(&resume_line(TypedLine::of_process(), arguments, out));
    let spent = match (concluded.exhausted, &arguments.budget) {
        (false, _) => String::new(),
        (true, Some(budget)) => format!("\n          `--budget {budget}` is used up: raise it in that line"),
        (true, None) => "\n          the `[budget]` of the file is used up: raise it there first".to_owned(),
    };
    format!("{again}   goes on: what is finished is not paid for again{spent}")
}

/// The line that makes these tasks of a campaign, all that follows from their clean runs included.
pub(super) fn first_part(arguments: &CampaignArgs, out: &Path, tasks: &[String], resumes: bool) -> String {
    part(TypedLine::of_process(), arguments, out, resumes, tasks)
}

fn part(typed: TypedLine, arguments: &CampaignArgs, out: &Path, resumes: bool, tasks: &[String]) -> String {
    let typed = typed.without("--dry-run", false).without("--only", true).without("--resume", false);
    let only = tasks.iter().flat_map(|task| ["--only".to_owned(), task.clone()]);
    let resume = resumes.then(|| "--resume".to_owned());
    spoken(typed, arguments, out).with(only).with(resume).text()
}

/// The typed line with `--resume`, and with what the environment or a default said: another shell may not say it.
fn resume_line(typed: TypedLine, arguments: &CampaignArgs, out: &Path) -> String {
    spoken(typed, arguments, out).without("--resume", false).with(["--resume".to_owned()]).text()
}

/// The typed line with what the environment or a default said.
fn spoken(typed: TypedLine, arguments: &CampaignArgs, out: &Path) -> TypedLine {
    let out = Some(out.display().to_string());
    let unsaid =
        [("--out", &out), ("--upstream", &arguments.upstream)].into_iter().chain(arguments.asking.given_options());
    let said = |line: TypedLine, (name, value): (&str, &Option<String>)| match value {
        Some(value) if !line.has_option(name) => line.with([name.to_owned(), value.clone()]),
        _ => line,
    };
    unsaid.fold(typed, said)
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
                resume_line(TypedLine::new(words().collect()), &arguments, Path::new("d e")),
                format!("aegis {expected}")
            );
        }
        // A part of it: other tasks than were named, and no word of a dry run.
        let line = Line::parse_from(["aegis", "c.toml"]);
        let arguments = CampaignArgs { upstream: None, ..line.campaign };
        let typed = ["c.toml", "--only", "x", "--dry-run", "--jobs=2"].map(str::to_owned).to_vec();
        let tasks = ["t 0".to_owned(), "t1".to_owned()];
        assert_eq!(
            part(TypedLine::new(typed), &arguments, Path::new("d"), true, &tasks),
            "aegis c.toml --jobs=2 --out d --only 't 0' --only t1 --resume"
        );
        // What the environment said is said, too.
        let mut line = Line::parse_from(["aegis", "c.toml"]);
        line.campaign.upstream = Some("http://h/v1?a&b".to_owned());
        let said = resume_line(TypedLine::new(vec!["c.toml".to_owned()]), &line.campaign, Path::new("d"));
        assert_eq!(said, "aegis c.toml --out d --upstream 'http://h/v1?a&b' --resume");
    }
}
