//! `trace --prior`, `learn`, and `attribute --method learned`, as a user runs them.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::program::{AEGIS, verb};

const TASK: &str =
    "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
const CHECK: &str = "grep -q 'ANSWER: 84$'";

/// What comes after the verb: the pipeline as a child, on the task.
fn pipeline<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--", AEGIS, "example", "pipeline", "--task", TASK]].concat()
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// A clean run and one whose solver's number was made wrong.
async fn recorded(dir: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(root.join("examples/pipeline/aegis.toml"), dir.join("aegis.toml")).expect("copied");
    let plan = root.join("plans/corrupt-number.toml");
    let run = ["run", "--upstream", "simulator", "--check", CHECK, "--run"];
    let (code, _, talk) = verb(dir, &pipeline(&[&run[..], &["clean"]].concat())).await;
    assert_eq!(code, Some(0), "{talk}");
    let planned = ["bad", "--plan", plan.to_str().expect("text")];
    let (code, _, talk) = verb(dir, &pipeline(&[&run[..], &planned].concat())).await;
    assert_eq!(code, Some(1), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_looks_first_where_its_prior_says() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let trace = ["trace", "logs/bad", "--twin", "logs/clean", "--check", CHECK, "--label", "flip"];
    let (code, _, talk) = verb(dir.path(), &pipeline(&[&trace[..], &["--prior", "rules,alignment"]].concat())).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(talk.contains("prior    rules: steps 1") && talk.contains("prior    alignment: steps 1"), "{talk}");
    let first = talk.lines().filter(|line| line.starts_with("executed")).nth(1).expect("a look");
    assert!(first.contains("step 1 corrected"), "{talk}");
    let found = read(&dir.path().join("logs/bad/trace.json"));
    assert_eq!((&found["order"], &found["prior"]["ranked"][0]["step"]), (&"best-first".into(), &1.into()), "{found}");
    assert_eq!(found["prior"]["said"][0]["by"], "rules");

    // The same from a file; a line of another run says nothing of this one.
    let (code, _, talk) =
        verb(dir.path(), &["attribute", "logs/bad", "--method", "rules", "--out", "rows.jsonl"]).await;
    assert_eq!(code, Some(0), "{talk}");
    let (code, _, talk) = verb(dir.path(), &pipeline(&[&trace[..], &["--prior", "rows.jsonl"]].concat())).await;
    assert!(code == Some(0) && talk.contains("prior    rows.jsonl: steps 1"), "{talk}");
    fs::write(dir.path().join("other.jsonl"), "{\"id\":\"x\",\"predictions\":[{\"step\":1}]}\n").expect("written");

    // A judge: its questions are recorded and kept, and asked nobody a second time.
    let judged = [&trace[..], &["--prior", "a2p", "--prior-cassette", "tape", "--budget", "calls=60"]].concat();
    let (code, _, talk) = verb(dir.path(), &pipeline(&judged)).await;
    assert_eq!(code, Some(0), "{talk}");
    let spent = |dir: &Path| read(&dir.join("logs/bad/trace.json"))["spent"]["calls"].as_u64().expect("a number");
    let live = spent(dir.path());
    let (code, _, talk) = verb(dir.path(), &pipeline(&judged)).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(spent(dir.path()) < live, "{live}: what the tape holds is not paid for again");
    assert_eq!(fs::read_dir(dir.path().join("tape")).expect("a tape").count(), 1);

    for (more, code, expected) in [
        (&["--prior", "rulez"][..], 2, "did you mean `rules`?"),
        (&["--prior", "learned"], 2, "name the file: --prior prior.toml"),
        (&["--prior", "none.toml"], 2, "cannot read `none.toml`"),
        (&["--prior", "other.jsonl"], 2, "names no step of the run `bad`"),
        (&["--prior", "rules", "--order", "scan"], 2, "--order scan heeds no prior"),
        (&["--prior", "a2p", "--dry-run"], 2, "a dry run asks nobody"),
        (&["--prior", "rules", "--dry-run"], 0, "live calls foretold"),
    ] {
        let (got, out, talk) = verb(dir.path(), &pipeline(&[&trace[..], more].concat())).await;
        assert!(got == Some(code) && talk.contains(expected), "{more:?}: {got:?} {talk}{out}");
    }
    let earliest = ["trace", "logs/bad", "--twin", "logs/clean", "--check", CHECK, "--prior", "rules", "--first"];
    let (code, _, talk) = verb(dir.path(), &pipeline(&earliest)).await;
    assert!(code == Some(0) && talk.contains("a prior saves executions with --label flip"), "{talk}");
}

/// Failures of eight steps that a trace has labelled: the blamed step calculates wrongly, or, where `told` is false, nothing
/// distinguishes it.
fn traced(told: bool) -> String {
    let mut rows = String::new();
    for number in 0..24_u32 {
        let drawn = |what: u32| u32::from(blake3::hash(format!("{number} {what}").as_bytes()).as_bytes()[0]);
        let blamed = if number == 0 { 2 } else { drawn(99) % 8 };
        let step = |step: u32| {
            let said = if told && step == blamed {
                format!("<b>bold</b> so {} * 8 = 97", number + 12)
            } else {
                format!(
                    "part {step} of {number} is done: 3 + 4 = 7, {}",
                    "and so on ".repeat((drawn(step) % 5) as usize)
                )
            };
            json!({"step": step, "call": step / 2, "agent": if step.is_multiple_of(2) { "a" } else { "b" }, "input": null,
                "output": {"role": "assistant", "text": said}})
        };
        let arms = |passed: u32, failed: u32| json!({"passed": passed, "failed": failed});
        let label = json!({"status": "verified", "definition": "earliest_flip", "outcome": "failure",
            "errors": [{"agent": if blamed.is_multiple_of(2) { "a" } else { "b" }, "step": blamed}],
            "evidence": {"executed": {"null": arms(0, 6), "treated": arms(6, 0), "pairs": 6, "e": 900.0, "target": 800.0},
                "source": "redraw", "cleared": (0..8).filter(|step| *step != blamed).collect::<Vec<_>>()}});
        let row = json!({"format": 1, "id": format!("r-{number:04}"), "kind": "failure", "system": format!("s{}", number % 3),
            "outcome": "failure", "outcome_evidence": "", "final_answer": "",
            "task": {"id": format!("t{number}"), "question": "How many?", "answer": "84"}, "clean_twin": null,
            "label": label, "steps": (0..8).map(step).collect::<Vec<_>>()});
        rows.push_str(&row.to_string());
        rows.push('\n');
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn what_executions_teach_is_written_and_what_they_do_not_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("traced.jsonl"), traced(true)).expect("written");
    let (code, out, talk) = verb(dir.path(), &["learn", "traced.jsonl", "--out", "prior.toml"]).await;
    assert_eq!(code, Some(0), "{out}{talk}");
    assert!(out.contains("24 runs of 24 tasks and 3 systems: 24 steps blamed, 168 cleared"), "{out}");
    assert!(out.contains("left out by system") && out.contains("left out by task"), "{out}");
    assert!(talk.contains("RESULT  ok learned from 24 runs") && talk.contains("wrote prior.toml"), "{talk}");
    let prior = fs::read_to_string(dir.path().join("prior.toml")).expect("a ranker");
    let table: toml::Table = prior.parse().expect("TOML");
    assert_eq!(table["feature"][0]["name"].as_str(), Some("rule_calculation"), "{prior}");
    assert_eq!(table["held_out"][0]["by"].as_str(), Some("system"));
    assert!(table["held_out"][0]["looks"]["ranker"].as_float() < table["held_out"][0]["looks"]["scan"].as_float());
    let (code, ..) = verb(dir.path(), &["learn", "traced.jsonl", "--out", "again.toml"]).await;
    assert_eq!(code, Some(0));
    assert_eq!(fs::read_to_string(dir.path().join("again.toml")).expect("a ranker"), prior, "the same bytes");

    // It ranks as a method, and as a prior of a trace.
    let learned = ["attribute", "traced.jsonl", "--method", "learned"];
    let (code, out, talk) = verb(dir.path(), &[&learned[..], &["--prior", "prior.toml"]].concat()).await;
    let all = |line: &str| line.starts_with("learned ") && line.contains(" 100.0 [");
    assert!(code == Some(0) && out.lines().any(all), "{out}{talk}");
    // The table as a page: figures, rules without a model, each run; nothing of a log is markup there.
    let paged = ["--method", "learned,rules", "--prior", "prior.toml", "--html", "page.html"];
    let (code, _, talk) = verb(dir.path(), &[&["attribute", "traced.jsonl"], &paged[..]].concat()).await;
    assert_eq!(code, Some(0), "{talk}");
    let page = fs::read_to_string(dir.path().join("page.html")).expect("a page");
    for words in [
        "<td>learned<td>100.0 <small>[",
        "<td>rules<td>",
        "<tr class=\"rule\"><td>",
        "<summary>r-0000 · ",
        "label: a at step 2",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(page.contains("&lt;b&gt;bold&lt;/b&gt;") && !page.contains("<b>bold"), "{page}");
    let (code, _, talk) = verb(dir.path(), &learned).await;
    assert!(code == Some(2) && talk.contains("--prior prior.toml, which `aegis learn"), "{talk}");
    recorded(dir.path()).await;
    let trace =
        ["trace", "logs/bad", "--twin", "logs/clean", "--check", CHECK, "--label", "flip", "--prior", "prior.toml"];
    let (code, _, talk) = verb(dir.path(), &pipeline(&trace)).await;
    assert!(code == Some(0) && talk.contains("prior    learned: steps "), "{talk}");

    // Nothing that tells the steps apart, one task, labels that nobody executed: nothing is written.
    fs::write(dir.path().join("noise.jsonl"), traced(false)).expect("written");
    let one = traced(true).split_inclusive('\n').take(1).collect::<String>();
    fs::write(dir.path().join("one.jsonl"), one).expect("written");
    fs::write(dir.path().join("planted.jsonl"), traced(true).replace("earliest_flip", "injected")).expect("written");
    for (data, expected) in [
        ("noise.jsonl", "does not surely beat the order of the run"),
        ("one.jsonl", "all runs are of one task"),
        (
            "planted.jsonl",
            "one that was cleared; `aegis trace BAD --twin GOOD --check CMD --dataset DIR --tasks FILE --task ID -- CMD` writes such rows",
        ),
    ] {
        let (code, out, talk) = verb(dir.path(), &["learn", data, "--out", "none.toml"]).await;
        assert!(code == Some(1) && talk.contains("nothing learned") && talk.contains(expected), "{data}: {talk}{out}");
        assert!(!dir.path().join("none.toml").exists(), "{data}");
    }
}

/// The recipe of `docs/attribute.md`, on failures that a trace labels itself.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_trace_writes_is_what_learning_reads() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(root.join("examples/pipeline/aegis.toml"), dir.path().join("aegis.toml")).expect("copied");
    let plan = root.join("plans/corrupt-number.toml");
    let said = |name: &str, boxes: u32| {
        let task = format!(
            "Mia has {boxes} boxes with 8 pencils each. She gives away 12. How many pencils does she have left?"
        );
        (task, format!("grep -q 'ANSWER: {}$'", boxes * 8 - 12), format!("{name}-{boxes}"))
    };
    let mut tasks = String::new();
    for boxes in [12, 14, 16, 18, 20, 25] {
        let (task, check, id) = said("task", boxes);
        tasks += &json!({"id": id, "question": task, "answer": (boxes * 8 - 12).to_string()}).to_string();
        tasks.push('\n');
        fs::write(dir.path().join("tasks.jsonl"), &tasks).expect("written");
        let (good, bad) = (said("good", boxes).2, said("bad", boxes).2);
        for (run, planned, expected) in [(&good, None, 0), (&bad, plan.to_str(), 1)] {
            let planned: Vec<&str> = planned.into_iter().flat_map(|plan| ["--plan", plan]).collect();
            let run = [&["run", "--upstream", "simulator", "--check", &check, "--run", run][..], &planned].concat();
            let run = [&run[..], &["--", AEGIS, "example", "pipeline", "--task", &task]].concat();
            let (code, out, talk) = verb(dir.path(), &run).await;
            assert_eq!(code, Some(expected), "{out}{talk}");
        }
        let (good, bad) = (format!("logs/{good}"), format!("logs/{bad}"));
        // As if nobody had planted it: a label that says what was planted would stay.
        fs::remove_file(dir.path().join(&bad).join("label.json")).expect("a label");
        let trace =
            ["trace", &bad, "--twin", &good, "--check", &check, "--dataset", "traced", "--tasks", "tasks.jsonl"];
        let (code, out, talk) =
            verb(dir.path(), &[&trace[..], &["--task", &id, "--system", "pipeline", "--again"]].concat()).await;
        assert_eq!(code, Some(0), "{out}{talk}");
    }
    // The planner was asked and said the same in the twin, which passed: cleared.
    let rows = fs::read_to_string(dir.path().join("traced/dataset.jsonl")).expect("a dataset");
    let failed: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    let failed: Vec<&Value> = failed.iter().filter(|row| row["kind"] == "failure").collect();
    assert_eq!(failed.len(), 6, "{rows}");
    for row in failed {
        let label = &row["label"];
        assert_eq!((&label["errors"][0]["step"], &label["evidence"]["cleared"]), (&json!(1), &json!([0])), "{row}");
    }
    let (code, out, talk) = verb(dir.path(), &["learn", "traced", "--out", "prior.toml"]).await;
    assert_eq!(code, Some(0), "{out}{talk}");
    assert!(out.contains("6 runs of 6 tasks and 1 systems: 6 steps blamed, 6 cleared"), "{out}");
    // That five tasks all save a look may be luck.
    let few: String = rows.split_inclusive('\n').filter(|row| !row.contains("bad-25")).collect();
    fs::write(dir.path().join("few.jsonl"), few).expect("written");
    let (code, out, talk) = verb(dir.path(), &["learn", "few.jsonl", "--out", "none.toml"]).await;
    assert!(
        code == Some(1) && out.contains("5 runs of 5 tasks") && out.contains("(no interval: fewer than 6"),
        "{out}"
    );
    assert!(
        talk.contains("known of fewer than 6 tasks, which may be luck") && !dir.path().join("none.toml").exists(),
        "{talk}"
    );

    // Rows that clear nothing are left out with a reason that is true of them.
    let bare = rows.replace(",\"cleared\":[0]", "").replace("\"cleared\":[0],", "");
    fs::write(dir.path().join("bare.jsonl"), bare).expect("written");
    let (code, out, talk) = verb(dir.path(), &["learn", "bare.jsonl", "--out", "none.toml"]).await;
    assert!(code == Some(1) && out.contains("6 traced ones name no step as cleared"), "{out}{talk}");
}
