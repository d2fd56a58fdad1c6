//! A system that is declared to repeat itself, and of which one part sees that it does not: what others concluded of it from
//! equal repeats does not stand.

use std::fs;

use super::{ShardBench, paid};
use crate::campaign::{filled, plans, tasks};

/// A program that says the answer to one question otherwise in half of its runs, the same half on any machine.
const WAVERING: &str = r#"
[[system]]
name = "s"
command = ["sh", "-c", '''RUN=$("$1" example pipeline --task "$2") || exit; case "$2$OPENAI_BASE_URL" in *QUESTION*[02468ace]/v1) RUN="$RUN.0";; esac; echo "$RUN"''', "sh", "{aegis}", "{question}"]
config = "ROOT/examples/pipeline/aegis.toml"
timeout_s = 60
"#;

fn campaign(repeatable: bool) -> String {
    let head =
        "seed = 7\nverify = { answer = 'ANSWER: (.*)', checks = [{ numeric = {} }] }\nupstream = \"simulator\"\n";
    let text =
        format!("{head}proof.repeatable = {repeatable}\n{}{WAVERING}{}", tasks(4), plans(&["corrupt-number"], "\"s\""));
    filled(&text).replace("QUESTION", "pencils")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_part_sees_takes_back_what_others_rested_on() {
    let bench = ShardBench::of(&campaign(true), "simulator").await;
    let said = bench.campaign("whole", &[]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("`s` does not repeat itself"), "{}", said.err);
    for part in ["0/2", "1/2"] {
        assert_eq!(bench.campaign("out", &["-q", "--shard", part]).await.code, Some(0), "{part}");
    }
    let said = bench.merge(&["out"], "merged", &[]).await;
    assert_eq!(said.code, Some(1), "{}", said.err);
    let merged = bench.json("merged/merged.json");
    let unfinished = merged["unfinished"].as_array().expect("names").len();
    assert!((1..4).contains(&unfinished) && merged["missing"] == serde_json::json!([]), "{merged}");
    assert_eq!((&merged["revoked"], &merged["reread"]["revoked"]), (&serde_json::json!(["s"]), &unfinished.into()));
    assert!(said.err.contains("`s` was declared to repeat itself and does not"), "{}", said.err);
    assert!(!bench.path("merged/dataset.jsonl").exists());
    // Those that are left are data all the same, by pairs.
    let said = bench.merge(&["out"], "left", &["--allow-missing"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let claims = bench.json("left/dataset.json")["claims"].clone();
    assert!(claims["repeatable"].as_u64().unwrap_or_default() == 0 && claims["kept"].as_u64() > Some(0), "{claims}");

    // What the hint says to do: it pays only for what is missing, and comes to what one machine makes.
    fs::write(bench.path("c.toml"), campaign(false)).expect("written");
    assert_eq!(bench.campaign("alone", &["-q"]).await.code, Some(0));
    for part in ["0/2", "1/2"] {
        assert_eq!(bench.campaign("out", &["-q", "--shard", part]).await.code, Some(0), "{part}");
    }
    assert_eq!(bench.merge(&["out"], "again", &[]).await.code, Some(0));
    bench.assert_same_data("alone", "again");
    // Beside the runs of one machine lie those that only a system that repeats itself has: without the injection, and plain.
    let [alone, mut again] = ["alone", "again"].map(|out| super::names(&bench.path(out).join("cells")));
    assert!(alone.iter().all(|name| again.contains(name)), "{alone:?} {again:?}");
    again.retain(|name| !alone.contains(name));
    let more = again.iter().map(|name| {
        let cell = bench.json(&format!("again/cells/{name}"));
        assert_eq!((&cell["kind"]["cell"], &cell["kind"]["perturbed"]), (&"null".into(), &false.into()), "{cell}");
        cell["spent"]["calls"].as_u64().expect("calls")
    });
    let more: u64 = more.sum();
    let parts = ["0", "1"].map(|part| bench.path(&format!("out/shard-{part}-of-2/spent.jsonl")));
    let [parts, alone] = [paid(&parts), paid(&[bench.path("alone/spent.jsonl")])];
    assert_eq!(parts.0, alone.0 + more, "nothing was paid twice");
    // The machine that made all of it, and saw the difference itself, made the same runs.
    for name in super::DATA {
        assert!(
            fs::read(bench.path("whole").join(name)).ok() == fs::read(bench.path("again").join(name)).ok(),
            "{name}"
        );
    }
}
