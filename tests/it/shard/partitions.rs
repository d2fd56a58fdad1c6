//! Random partitions, with random parts made twice and random kills.

use std::{fs, path::PathBuf};

use super::{ShardBench, copy, names, paid};

/// How many divisions are tried.
const CASES: u64 = 5;
/// Cells at once, so also the most calls that are under way at a kill.
const JOBS: usize = 2;

struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most.max(1)
    }
}

impl ShardBench {
    /// The report's bill is what the journals of the parts say together, and so is its own journal; the calls in it.
    fn assert_bill(&self, parts: &[&str], merged: &str) -> usize {
        let journals: Vec<PathBuf> = parts.iter().map(|dir| self.path(dir).join("spent.jsonl")).collect();
        let (calls, tokens) = paid(&journals);
        assert_eq!(paid(&[self.path(merged).join("spent.jsonl")]), (calls, tokens), "the bill holds each call once");
        let bill = self.json(&format!("{merged}/report.json"))["cost"]["spent"].clone();
        let figure = |name: &str| bill[name].as_f64().expect("a figure");
        let told = (figure("calls"), figure("input_tokens") + figure("output_tokens"));
        let count = |count: u64| f64::from(u32::try_from(count).expect("few"));
        assert!((told.0 - count(calls)).abs() < 0.5 && (told.1 - count(tokens)).abs() < 0.5, "{bill} {calls} {tokens}");
        usize::try_from(calls).expect("few")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_partition_with_copies_and_kills_is_the_single_machines_data_set_and_bill() {
    let bench = ShardBench::new(2).await;
    let whole = bench.campaign("whole", &["-q"]).await;
    assert_eq!(whole.code, Some(0), "{}", whole.err);
    let (all, answered) = (bench.backend.calls(), bench.backend.paid());
    for case in 0..CASES {
        let mut draw = Draw(0x9e37_79b9_7f4a_7c15 ^ (case << 32) ^ case);
        let of = 1 + draw.below(7);
        let (before, mut kills, mut twice) = (bench.backend.calls(), 0, 0);
        let mut from: Vec<String> = Vec::new();
        for index in 0..of {
            let part = format!("{index}/{of}");
            let out = format!("case{case}");
            for _ in 0..draw.below(3) {
                let after = usize::try_from(draw.below(u64::try_from(all).expect("few") / of)).expect("few");
                bench.killed(&out, &["-q", "--shard", &part], after).await;
                kills += 1;
            }
            let made = bench.campaign(&out, &["-q", "--shard", &part]).await;
            assert_eq!(made.code, Some(0), "{part}: {}", made.err);
            let dir = format!("{out}/shard-{index}-of-{of}");
            match draw.below(4) {
                // A copy is nothing that was paid.
                0 => {
                    copy(&bench.path(&dir), &bench.path(&format!("copy{case}-{index}")));
                    from.push(format!("copy{case}-{index}"));
                }
                // Somebody made it once more, elsewhere: that was.
                1 => {
                    let again = bench.campaign(&format!("again{case}"), &["-q", "--shard", &part]).await;
                    assert_eq!(again.code, Some(0), "{part}: {}", again.err);
                    from.push(format!("again{case}/shard-{index}-of-{of}"));
                    twice += 1;
                }
                _ => {}
            }
            from.insert(usize::try_from(draw.below(from.len() as u64 + 1)).expect("few"), dir);
        }
        let calls = bench.backend.calls();
        let merged = format!("merged{case}");
        let from: Vec<&str> = from.iter().map(String::as_str).collect();
        let said = bench.merge(&from, &merged, &[]).await;
        assert_eq!(said.code, Some(0), "case {case}, {of} parts: {}", said.err);
        assert_eq!(bench.backend.calls(), calls, "a merge asks nobody");
        bench.assert_equal("whole", &merged);

        let spent = bench.assert_bill(&from, &merged);
        // What the backend was asked is in the bill, and no more but for calls that a kill cut off before they arrived.
        let asked = bench.backend.calls() - before;
        assert!((asked..=asked + kills * JOBS).contains(&spent), "{spent} in the bill, {asked} asked, {kills} kills");
        if twice == 0 {
            assert!(asked <= all + kills * JOBS, "what was on disk was paid again: {asked} of {all}, {kills} kills");
        }
        let merged = bench.json(&format!("{merged}/merged.json"));
        assert_eq!((&merged["differing"], &merged["shards"]), (&0.into(), &from.len().into()), "{merged}");
    }
    // Nothing was ever asked that one machine does not ask.
    for body in bench.backend.paid() {
        assert!(answered.binary_search(&body).is_ok(), "{}", String::from_utf8_lossy(&body));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_and_can_be_made_later_anywhere() {
    let bench = ShardBench::new(2).await;
    assert_eq!(bench.campaign("whole", &["-q"]).await.code, Some(0));
    assert_eq!(bench.campaign("out", &["-q", "--shard", "0/2"]).await.code, Some(0));
    bench.killed("out", &["-q", "--shard", "1/2"], 7).await;
    let said = bench.merge(&["out"], "merged", &[]).await;
    assert_eq!(said.code, Some(1), "{}", said.err);
    let merged = bench.json("merged/merged.json");
    let (missing, unfinished) =
        (merged["missing"].as_array().expect("names"), merged["unfinished"].as_array().expect("names"));
    assert_eq!((missing.len() + unfinished.len(), &merged["chains"]), (2, &4.into()), "{merged}");
    for name in missing.iter().chain(unfinished) {
        let name = name.as_str().expect("a name");
        assert!(said.err.contains(name) && name.contains('/'), "{name}: {}", said.err);
    }
    assert!(said.err.contains("RESULT  finding") && !bench.path("merged/dataset.jsonl").exists(), "{}", said.err);

    let said = bench.merge(&["out"], "merged", &[]).await;
    assert_eq!(said.code, Some(2), "what is there is not replaced unasked: {}", said.err);
    let said = bench.merge(&["out"], "merged", &["--allow-missing", "--overwrite"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(bench.json("merged/dataset.json")["missing_chains"], 2);

    // On this machine from what was put together, which stays a campaign like any other.
    let said = bench.campaign("merged", &["-q", "--resume"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    bench.assert_equal("whole", "merged");
    // Or where it was begun; a finished part is not made again.
    assert_eq!(bench.campaign("out", &["-q", "--shard", "1/2"]).await.code, Some(0));
    let calls = bench.backend.calls();
    assert_eq!(bench.campaign("out", &["-q", "--shard", "0/2"]).await.code, Some(0));
    assert_eq!(bench.backend.calls(), calls);
    let said = bench.merge(&["out"], "again", &[]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    bench.assert_equal("whole", "again");
    crate::contract::files_have(&bench.path(""), &["files/shard", "files/merged", "files/snapshot"]);
    assert!(said.err.contains("2 shards"), "{}", said.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_samples_of_one_run_that_differ_are_both_kept() {
    let bench = ShardBench::new(1).await;
    assert_eq!(bench.campaign("one", &["-q", "--shard", "0/1"]).await.code, Some(0));
    copy(&bench.path("one/shard-0-of-1"), &bench.path("other"));
    let cells = bench.path("other/cells");
    // A benign one, whose answer proves nothing.
    let is_benign = |name: &String| {
        let cell = crate::campaign::json(&cells.join(name));
        cell["kind"]["cell"] == "injected" && cell["outcome"]["verdict"] == "success"
    };
    let cell = names(&cells).into_iter().find(is_benign).expect("a benign run");
    let path = cells.join(&cell);
    let text = fs::read_to_string(&path).expect("read");
    let (head, tail) = text.split_once("\"answer\":\"").expect("an answer");
    fs::write(&path, format!("{head}\"answer\":\"9{tail}")).expect("written");
    let said = bench.merge(&["one", "other"], "merged", &[]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let merged = bench.json("merged/merged.json");
    assert_eq!((merged["differing"].as_u64(), &merged["duplicated"]), (Some(1), &merged["cells"]), "{merged}");
    let run = cell.trim_end_matches(".json");
    let aside = bench.path("merged/aside").join(run).join("0000");
    assert!(aside.join("cell.json").is_file() && aside.join("run.json").is_file(), "{}", aside.display());
    let taken = fs::read(bench.path("merged/cells").join(&cell)).expect("taken");
    assert_ne!(fs::read(aside.join("cell.json")).expect("kept"), taken);
    // The order in which they are named decides nothing.
    assert_eq!(bench.merge(&["other", "one"], "reverse", &[]).await.code, Some(0));
    bench.assert_equal("merged", "reverse");
}
