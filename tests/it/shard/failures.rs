//! The rows of the table in docs/scale.md that no other test is of: what becomes of a part that something happens to.

use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, SystemTime},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{ShardBench, ended, names, paid};
use crate::lab::until_within;

/// A bench with one part of two made, and what one machine makes.
async fn begun() -> ShardBench {
    let bench = ShardBench::new(1).await;
    assert_eq!(bench.campaign("whole", &["-q"]).await.code, Some(0));
    assert_eq!(bench.campaign("out", &["-q", "--shard", "0/2"]).await.code, Some(0));
    bench
}

async fn assert_goes_on(bench: &ShardBench) {
    let said = bench.campaign("out", &["-q", "--shard", "1/2"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = bench.merge(&["out"], "merged", &[]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    bench.assert_equal("whole", "merged");
}

#[tokio::test(flavor = "multi_thread")]
async fn pre_empted_it_ends_in_order_and_goes_on() {
    let bench = begun().await;
    let mut command = bench.command("out", &["-q", "--shard", "1/2"]);
    let far = bench.backend.calls() + 6;
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("started");
    until_within(Duration::from_mins(1), "it is under way", || bench.backend.calls() >= far).await;
    // At work, it keeps others out: a second one of the same part, and a merge.
    let second = bench.campaign("out", &["-q", "--shard", "1/2"]).await;
    assert_eq!(second.code, Some(2), "{}", second.err);
    assert!(second.err.contains("at work in"), "{}", second.err);
    assert!(bench.merge(&["out"], "merged", &[]).await.err.contains("at work in"));
    kill(Pid::from_raw(i32::try_from(child.id().expect("alive")).expect("a pid")), Signal::SIGTERM).expect("told");
    let ended = child.wait_with_output().await.expect("ended");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(said.contains("RESULT  stopped shard 1/2"), "{said}");
    assert_goes_on(&bench).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_whose_disk_is_lost_is_made_again_and_only_what_is_known_is_in_the_bill() {
    let bench = begun().await;
    bench.killed("out", &["-q", "--shard", "1/2"], 9).await;
    let lost = bench.path("out/shard-1-of-2");
    let paid_there = paid(&[lost.join("spent.jsonl")]).0;
    assert!(paid_there >= 9, "{paid_there}");
    fs::remove_dir_all(&lost).expect("lost");
    assert_goes_on(&bench).await;
    let bill = |of: &str| bench.json(&format!("{of}/report.json"))["cost"]["spent"]["calls"].as_f64();
    assert_eq!(bill("merged"), bill("whole"), "what was paid on the lost disk is in no bill, and was paid again");
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_decide_nothing() {
    let bench = begun().await;
    assert_eq!(bench.campaign("out", &["-q", "--shard", "1/2"]).await.code, Some(0));
    // One node lives in 1980, the other in 2080.
    let year = Duration::from_hours(365 * 24);
    set_times(&bench.path("out/shard-0-of-2"), SystemTime::UNIX_EPOCH + 10 * year);
    set_times(&bench.path("out/shard-1-of-2"), SystemTime::UNIX_EPOCH + 110 * year);
    let calls = bench.backend.calls();
    assert_goes_on(&bench).await;
    assert_eq!(bench.backend.calls(), calls, "what is finished stays finished");
}

fn set_times(dir: &Path, time: SystemTime) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        if entry.path().is_dir() {
            set_times(&entry.path(), time);
        }
        let file = fs::File::open(entry.path()).expect("opens");
        file.set_times(fs::FileTimes::new().set_modified(time).set_accessed(time)).expect("set");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_more_can_be_written_it_stops_and_goes_on_when_there_is_room() {
    let bench = ShardBench::new(2).await;
    assert_eq!(bench.campaign("whole", &["-q"]).await.code, Some(0));
    // No file may grow beyond 16 blocks of 512 bytes: as on a full disk, a write fails in the middle of the campaign.
    let program = env!("CARGO_BIN_EXE_aegis");
    let line = format!(
        "trap '' XFSZ; ulimit -f 16; exec {program} campaign c.toml --out out --jobs 2 --upstream {} -q --shard 0/1",
        bench.backend.url
    );
    let mut command = tokio::process::Command::new("sh");
    command.current_dir(bench.dir.path()).args(["-c", &line]);
    let said = ended(command).await;
    assert!(said.code != Some(0), "{}", said.err);
    let finished = names(&bench.path("out/shard-0-of-1/cells")).len();
    let merge = bench.merge(&["out"], "early", &[]).await;
    assert_eq!(merge.code, Some(1), "{finished} cells: {}", merge.err);
    let said = bench.campaign("out", &["-q", "--shard", "0/1"]).await;
    assert!(said.code == Some(0) && finished > 0, "{finished} cells: {}", said.err);
    assert_eq!(bench.merge(&["out"], "merged", &[]).await.code, Some(0));
    bench.assert_equal("whole", "merged");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_another_version_or_campaign_are_refused_and_what_differs_is_named() {
    let bench = begun().await;
    let manifest = bench.path("out/shard-0-of-2/shard.json");
    let kept = fs::read_to_string(&manifest).expect("read");
    assert_eq!(bench.campaign("out", &["-q", "--shard", "1/2"]).await.code, Some(0));
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let digest = bench.json("out/shard-0-of-2/shard.json")["digest"]["version"].as_str().expect("a digest").to_owned();
    let other = kept.replace(&version, "\"version\": \"9.9.9\"").replace(&digest, &"0".repeat(digest.len()));
    fs::write(&manifest, other).expect("written");
    let said = bench.merge(&["out"], "merged", &[]).await;
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("`version` differs (made by version 9.9.9 and"), "{}", said.err);
    fs::write(&manifest, kept).expect("written");

    // One node has another file: another seed and another check.
    let file = bench.path("c.toml");
    let text = fs::read_to_string(&file).expect("read");
    fs::write(&file, text.replace("seed = 7", "seed = 8").replace("numeric = {}", "numeric = { relative = 0.5 }"))
        .expect("written");
    let refused = bench.campaign("out", &["-q", "--shard", "1/2"]).await;
    assert!(refused.code == Some(2) && refused.err.contains("--changed"), "its runs are of another: {}", refused.err);
    assert_eq!(bench.campaign("out", &["-q", "--shard", "1/2", "--changed"]).await.code, Some(0));
    let said = bench.merge(&["out"], "merged", &[]).await;
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("`seed`, `verify` differs"), "{}", said.err);
    // With the file of the others it is a part of theirs again, and its runs are still there.
    fs::write(&file, text).expect("written");
    let calls = bench.backend.calls();
    assert_goes_on(&bench).await;
    assert_eq!(bench.backend.calls(), calls);
    assert!(bench.merge(&["whole"], "none", &[]).await.err.contains("is no shard, and holds none"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_never_ran_is_named_chain_by_chain_and_can_be_made_anywhere() {
    let bench = ShardBench::new(2).await;
    assert_eq!(bench.campaign("whole", &["-q"]).await.code, Some(0));
    assert_eq!(bench.campaign("out", &["-q", "--shard", "0/2"]).await.code, Some(0));
    let said = bench.merge(&["out"], "merged", &[]).await;
    assert_eq!(said.code, Some(1), "{}", said.err);
    let merged = bench.json("merged/merged.json");
    let missing: Vec<String> = serde_json::from_value(merged["missing"].clone()).expect("names");
    assert_eq!((missing.len(), &merged["unfinished"]), (2, &serde_json::json!([])), "{merged}");
    assert!(missing.iter().all(|name| said.err.contains(&format!("missing   {name}"))), "{}", said.err);
    assert!(!bench.path("merged/dataset.jsonl").exists() && !bench.path("merged/report.json").exists());

    // Without it the data set is that of the others, row by row, and says so.
    let said = bench.merge(&["out"], "merged", &["--overwrite", "--allow-missing"]).await;
    assert_eq!((said.code, &bench.json("merged/dataset.json")["missing_chains"]), (Some(0), &2.into()), "{}", said.err);
    let rows = |of: &str| -> Vec<(String, String)> {
        let text = fs::read_to_string(bench.path(of).join("dataset.jsonl")).expect("a data set");
        let chain = |row: &serde_json::Value| {
            let word = |value: &serde_json::Value| value.as_str().expect("a name").to_owned();
            format!("{}/{}", word(&row["system"]), word(&row["task"]["id"]))
        };
        text.lines().map(|line| (chain(&serde_json::from_str(line).expect("a row")), line.to_owned())).collect()
    };
    let expected: Vec<_> = rows("whole").into_iter().filter(|(chain, _)| !missing.contains(chain)).collect();
    assert!(!expected.is_empty() && rows("merged") == expected);

    // Made on another machine, whose directory is a place of its own.
    assert_eq!(bench.campaign("elsewhere", &["-q", "--shard", "1/2"]).await.code, Some(0));
    let said = bench.merge(&["out", "elsewhere"], "merged", &["--overwrite"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    bench.assert_equal("whole", "merged");
    assert_eq!(bench.json("merged/merged.json")["reread"], serde_json::json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_lacks_runs_is_no_whole_part() {
    let bench = begun().await;
    assert_eq!(bench.campaign("out", &["-q", "--shard", "1/2"]).await.code, Some(0));
    let part = bench.path("out/shard-1-of-2");
    super::copy(&part, &bench.path("full"));
    let run = names(&part.join("cells")).pop().expect("a run");
    fs::remove_file(part.join("cells").join(&run)).expect("not copied");
    fs::remove_dir_all(part.join("logs").join(run.trim_end_matches(".json"))).expect("not copied");
    let said = bench.merge(&["out"], "early", &[]).await;
    assert_eq!(said.code, Some(1), "{}", said.err);
    let merged = bench.json("early/merged.json");
    assert_eq!(
        (&merged["unfinished"].as_array().map(Vec::len), &merged["reread"]["other_runs"]),
        (&Some(1), &1.into())
    );
    // The copy that is whole is taken, whatever else is named.
    let said = bench.merge(&["out", "full"], "merged", &[]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    bench.assert_equal("whole", "merged");
}

/// Each row of the table in the documentation names its test, and the test is there.
#[test]
fn each_failure_of_the_documentation_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/scale.md")).expect("a page");
    let (_, table) = page.split_once("\n## When things go wrong\n").expect("the section");
    let (table, _) = table.split_once("\n## ").expect("its end");
    let rows: Vec<&str> =
        table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what |")).collect();
    let read = |below: &str, ending: &str| -> String {
        let entries = fs::read_dir(root.join(below)).expect("a directory").flatten().map(|entry| entry.path());
        entries
            .filter(|path| path.extension().is_some_and(|is| is == ending))
            .map(|path| fs::read_to_string(path).expect("read"))
            .collect()
    };
    let (tests, suites) = (read("tests/it/shard", "rs"), read("tests/clients/runner", "py"));
    for row in &rows {
        let named = row.trim_end_matches(" |").rsplit_once("| ").expect("a cell").1;
        let names: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test is named: {row}");
        for name in names {
            let is_there = tests.contains(&format!("fn {name}()")) || suites.contains(&format!("def {name}("));
            assert!(is_there, "there is no test `{name}`: {row}");
        }
    }
    assert!(rows.len() > 10, "{rows:?}");
}
