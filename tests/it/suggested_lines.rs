//! Lines that campaigns, first files, tests, repairs and hints suggest: each is typed, and none is refused.

use crate::{
    program::AEGIS,
    suggested::{Runs, TASK, assert_typed, suggested},
};

/// What is suggested by verbs that make many runs, or files.
#[tokio::test(flavor = "multi_thread")]
async fn what_campaigns_and_first_files_suggest_can_be_typed() {
    let runs = Runs::make().await;
    let survives = ["test", "plan.toml", "--name", "tested", "--upstream", "simulator", "--check", "false", "--"];
    let survives = [&survives[..], &[AEGIS, "example", "pipeline", "--task", TASK]].concat();
    let said: &[&[&str]] = &[
        &["campaign", "c.toml", "--out", "out", "--budget", "calls=4"],
        &["campaign", "c.toml", "--out", "parts", "--shard", "0/2"],
        &["shard", "merge", "parts", "--out", "merged"],
        &["shard", "emit", "slurm", "c.toml", "--shards", "2"],
        &["demo", "--dir", "d"],
        &["init", "mine"],
        &["init", "from", "--from", "logs/passed"],
        &["init", "mine"],
        &["repair", "logs/damaged"],
        &["repair", "logs/none"],
        &survives,
    ];
    let lines = assert_typed(&runs, said).await;
    assert!(lines >= 10, "{lines}");
}

/// What is suggested where a line cannot be used.
#[tokio::test(flavor = "multi_thread")]
async fn what_refusals_suggest_can_be_typed() {
    let runs = Runs::make().await;
    let prior = ["trace", "logs/failed", "--redraw", "--check", "false", "--again", "--prior"];
    let no_step = ["fork", "logs/passed", "--plan", "corrupt-two-debaters", "--check", "true", "--again"];
    let said: &[&[&str]] = &[
        &["runs", "nothing"],
        &["annotations", "nothing"],
        &["show", "passed"],
        &["replay", "logs"],
        &["attribute", "logs/failed", "--method", "nix"],
        &["attribute", "ww/none"],
        &[&prior[..], &["nix"]].concat(),
        &[&prior[..], &["a2p", "--dry-run"]].concat(),
        &no_step,
        &["import", "--from", "whowhen", "ww/1.json"],
        &["import", "--from", "otlp", "t.jsonl", "--out", "rows"],
        &["campaign", "none.toml"],
        &["plan", "check", "none.toml"],
        &["campaign", "c.toml", "--resume", "--out", "nowhere"],
        &["learn", "kept", "--out", "prior.toml"],
        &["lint", "logs"],
        &["run", "--config", "none.toml", "--", "true"],
        &["amend", "logs/served", "--roster", "none.toml"],
    ];
    let lines = assert_typed(&runs, said).await;
    assert!(lines >= 14, "{lines}");
}

#[test]
fn a_suggested_line_ends_where_words_begin() {
    for (text, expected) in [
        (
            "next      aegis campaign c.toml --resume   goes on: what is finished",
            &["aegis campaign c.toml --resume"][..],
        ),
        ("hint: name another directory: aegis init DIR", &["aegis init DIR"]),
        ("hint: `aegis runs DIR`, where DIR holds recordings", &["aegis runs DIR"]),
        ("  plan: survived   aegis show logs/x --verdict", &["aegis show logs/x --verdict"]),
        ("          aegis run -- python my.py", &[]),
    ] {
        assert_eq!(suggested(text), expected, "{text}");
    }
}
