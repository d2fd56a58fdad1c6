//! What judges say of the modes of a campaign's errors stands in its rows once it is continued; nothing is executed for that.

use std::fs;

use serde_json::{Value, json};

use super::{Bench, plans, tasks};
use crate::{attribute::ScriptedJudge, program::aegis};

#[tokio::test]
async fn rows_have_what_judges_said_once_the_campaign_is_continued() {
    let text = format!(
        "upstream = \"simulator\"\nproof.repeatable = true\n{}PIPELINE\n{}",
        tasks(1),
        plans(&["corrupt-number"], "\"pipeline\"")
    );
    let bench = Bench::new(&text);
    let (code, _, said) = bench.run(&["--jobs", "1"]).await;
    assert_eq!(code, Some(0), "{said}");
    let claims = || -> Vec<Value> {
        let rows = fs::read_to_string(bench.out().join("dataset.jsonl")).expect("rows");
        let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).expect("JSON"));
        rows.map(|row| row["label"]["errors"][0]["mode_claim"].clone()).filter(|claim| !claim.is_null()).collect()
    };
    assert_eq!(claims(), [json!({"state": "applicable"})]);
    let executed = bench.report()["executed"].clone();

    let judge = ScriptedJudge::start(|_| (200, json!({"reason": "", "letter": "D"}).to_string())).await;
    let url = judge.url();
    let asking = ["modes", "out", "--upstream", &url, "--model", "strict"];
    let asked = aegis(bench.dir.path()).args(asking).output().await.expect("it ran");
    let talk = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(talk.contains("1 refuted") && talk.contains("--out out --resume` writes them anew"), "{talk}");
    assert_eq!(claims(), [json!({"state": "applicable"})]);

    let (code, _, said) = bench.run(&["--jobs", "1", "--resume"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(claims(), [json!({"state": "refuted", "by": "strict"})]);
    assert_eq!(bench.report()["executed"], executed, "nothing was executed");
    let exported = ["export", "out", "--to", "mast", "--out", "rows.jsonl"];
    let exported = aegis(bench.dir.path()).args(exported).output().await.expect("it ran");
    let talk = String::from_utf8_lossy(&exported.stdout).into_owned();
    assert!(talk.contains("left out: 1 × a failure mode that only its plan declares, or that was refuted"), "{talk}");
}
