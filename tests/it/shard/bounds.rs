//! Which part a process makes, and what it may spend.

use super::{ShardBench, ended, paid};

#[tokio::test(flavor = "multi_thread")]
async fn the_parts_of_a_budget_are_the_budget() {
    let bench = ShardBench::new(2).await;
    let bounded = ["-q", "--budget", "calls=25", "--shard"];
    for (part, most) in [("0/2", 13), ("1/2", 12)] {
        let before = bench.backend.calls();
        let said = bench.campaign("out", &[&bounded[..], &[part]].concat()).await;
        assert_eq!(said.code, Some(4), "{part}: {}", said.err);
        assert!(said.err.contains("RESULT  budget shard"), "{}", said.err);
        let journal = bench.path(&format!("out/shard-{}-of-2/spent.jsonl", &part[..1]));
        assert_eq!((bench.backend.calls() - before, paid(&[journal]).0), (most, most as u64), "{part}");
    }
    let said = bench.merge(&["out"], "merged", &["--allow-missing"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(bench.json("merged/report.json")["cost"]["spent"]["calls"].as_f64(), Some(25.0));
    // A larger budget goes on where it ended.
    assert_eq!(bench.campaign("whole", &["-q"]).await.code, Some(0));
    for part in ["0/2", "1/2"] {
        assert_eq!(bench.campaign("out", &["-q", "--shard", part]).await.code, Some(0), "{part}");
    }
    assert_eq!(bench.merge(&["out"], "merged", &["--overwrite"]).await.code, Some(0));
    bench.assert_equal("whole", "merged");
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_say_which_part_it_is() {
    let bench = ShardBench::new(1).await;
    for (variables, code, said) in [
        (&[][..], 2, "nothing says which shard this is"),
        (&[("HQ_TASK_ID", "0")][..], 2, "`HQ_TASK_ID` says which shard this is, and nothing says of how many"),
        (&[("AEGIS_SHARD", "7/7")], 2, "`7/7` is no shard"),
        (
            &[("SLURM_ARRAY_TASK_ID", "9"), ("SLURM_ARRAY_TASK_MIN", "3"), ("SLURM_ARRAY_TASK_COUNT", "7")],
            0,
            "ok shard 6/7",
        ),
        (&[("JOB_COMPLETION_INDEX", "1"), ("AEGIS_SHARDS", "2")], 0, "ok shard 1/2"),
    ] {
        let mut command = bench.command("out", &["-q", "--shard", "auto"]);
        command.envs(variables.iter().copied());
        let done = ended(command).await;
        assert_eq!(done.code, Some(code), "{variables:?}: {}", done.err);
        assert!(done.err.contains(said), "{variables:?}: {}", done.err);
    }
    let said = bench.campaign("out", &["--shard", "0/2", "--only", "pipeline/*"]).await;
    assert_eq!(said.code, Some(2), "{}", said.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_for_engines_are_printed_and_nothing_is_started() {
    let bench = ShardBench::new(1).await;
    for engine in ["slurm", "ray", "k8s", "hyperqueue"] {
        let mut command = crate::program::aegis(bench.dir.path());
        command.args(["shard", "emit", engine, "c.toml", "--shards", "5", "--", "--upstream", "http://h/v1"]);
        let done = ended(command).await;
        assert_eq!(done.code, Some(0), "{engine}: {}", done.err);
        assert!(done.out.contains("http://h/v1") && done.out.contains("c.toml"), "{}", done.out);
        assert!(done.err.contains("next      read it") && done.err.contains("nothing was started"), "{}", done.err);
    }
    assert!(!bench.path("c-run").exists());
}
