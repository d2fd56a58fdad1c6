//! Rows of campaigns: what a failure needs and what was planted besides, in every export; one edit under two modes; the
//! commands of the pages on data.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{campaign::filled, readme::blocks};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn aegis(arguments: &[&str], dir: &Path) -> Output {
    let done = Command::new(env!("CARGO_BIN_EXE_aegis")).args(arguments).current_dir(dir).output().expect("runs");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    done
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).expect("JSON")
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("there");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The agents whose leave-one-out runs still failed, and those that the failure needs.
fn by_need(row: &Value) -> [BTreeSet<&str>; 2] {
    ["not_needed", "necessary"].map(|state| {
        let runs = list(&row["label"]["evidence"]["necessity"]).iter();
        runs.filter(|one| one["state"] == state).filter_map(|one| one["agent"].as_str()).collect()
    })
}

/// Whether a failure has exactly one necessary error.
fn is_single(row: &Value) -> bool {
    let open = !list(&row["label"]["not_shown"]).is_empty();
    list(&row["label"]["errors"]).len() == 1 && !open && row["label"]["evidence"]["overdetermined"] != true
}

/// Plans of one and of two injections, drawn; and one that takes two agents to break a run.
const DRAWN: &str = r#"
seed = 7
upstream = "simulator"
tasks = { file = "ROOT/examples/tasks.jsonl", first = 5 }
clean.repeats = 2
proof.repeatable = true
verify = { answer = 'ANSWER: (.*)', checks = [{ numeric = {} }] }

PIPELINE

DEBATE

[[plan]]
file = "ROOT/plans/corrupt-two-debaters.toml"
systems = ["debate"]

[sample]
templates = ["ROOT/plans/corrupt-number.toml", "ROOT/plans/end-early.toml", "ROOT/plans/truncate-plan.toml"]
positions = ["first", "uniform"]
targets = [1, 2]
per_task = 3
"#;

#[test]
fn no_export_of_one_culprit_blames_what_the_failure_does_not_need() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("c.toml"), filled(DRAWN)).expect("written");
    aegis(&["campaign", "c.toml", "--out", "out", "-q"], dir.path());
    aegis(&["lint", "out"], dir.path());
    let rows = lines(&dir.path().join("out/dataset.jsonl"));
    let failures: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "failure").collect();
    let cleared = |row: &&&Value| !by_need(row)[0].is_empty();
    assert!(failures.iter().filter(cleared).count() >= 2, "some failures do not need all that was planted");
    let single = failures.iter().filter(|row| is_single(row)).count();
    assert!(single < failures.len() && single > 0, "{single} of {}", failures.len());

    for format in ["whowhen", "whowhen-hand-crafted"] {
        aegis(&["export", "out", "--to", format, "--out", format], dir.path());
        let manifest = json(&dir.path().join(format!("{format}.manifest.json")));
        assert_eq!(manifest["written"], single, "{manifest}");
        for row in &failures {
            let path = dir.path().join(format).join(format!("{}.json", row["id"].as_str().expect("an id")));
            assert_eq!(path.exists(), is_single(row), "{}", row["label"]);
            if path.exists() {
                let named = json(&path)["mistake_agent"].as_str().expect("a name").to_owned();
                let [unneeded, needed] = by_need(row);
                assert!(!unneeded.contains(&*named) || needed.contains(&*named), "{named}: {}", row["label"]);
            }
        }
    }
    aegis(&["export", "out", "--to", "agentracer", "--out", "agentracer"], dir.path());
    let named: Vec<Value> =
        lines(&dir.path().join("agentracer")).iter().map(|row| row["mistake_agent"].clone()).collect();
    let labelled = failures.iter().filter(|row| is_single(row)).map(|row| row["label"]["errors"][0]["agent"].clone());
    assert_eq!(named, labelled.collect::<Vec<_>>());

    no_right_step_is_called_wrong(dir.path(), &rows);
    aegis(&["export", "out", "--to", "sft", "--out", "sft", "--clean", "all"], dir.path());
    assert_eq!(json(&dir.path().join("sft.manifest.json"))["written"], rows.len(), "sets are taken whole");
}

/// No step that a row of `prm` marks false stands as true in the row of its twin.
fn no_right_step_is_called_wrong(dir: &Path, rows: &[Value]) {
    aegis(&["export", "out", "--to", "prm", "--out", "prm", "--one-file", "--clean", "all"], dir);
    let prm = lines(&dir.join("prm"));
    let by_id: BTreeMap<&str, &Value> = prm.iter().map(|row| (row["id"].as_str().expect("an id"), row)).collect();
    let mut marked = 0;
    for row in rows.iter().filter(|row| row["kind"] == "failure") {
        let Some(own) = by_id.get(row["id"].as_str().expect("an id")) else { continue };
        let twin = by_id[row["clean_twin"].as_str().expect("a twin")];
        let right: BTreeSet<&str> = list(&twin["completions"]).iter().filter_map(Value::as_str).collect();
        for (said, label) in list(&own["completions"]).iter().zip(list(&own["labels"])) {
            marked += usize::from(*label == false);
            assert!(*label == true || !right.contains(said.as_str().expect("text")), "{said}");
        }
    }
    assert!(marked > 0, "some step is called wrong");
}

/// One edit under two declared modes.
const TWO: &str = r#"
seed = 7
upstream = "simulator"
tasks = { file = "ROOT/examples/tasks.jsonl", first = 3 }
proof.repeatable = true
verify = { answer = 'ANSWER: (.*)', checks = [{ numeric = {} }] }

PIPELINE

[[plan]]
file = "FM-3.3.toml"
[[plan]]
file = "FM-2.6.toml"
"#;

#[test]
fn one_edit_under_two_modes_is_one_verified_failure_with_both() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("c.toml"), filled(TWO)).expect("written");
    for mode in ["FM-3.3", "FM-2.6"] {
        let plan = format!(
            "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"{mode}\"\nwhen.call = 0\n\
             manipulator.corrupt_number = {{ which = \"last\", by = 10 }}\n"
        );
        fs::write(dir.path().join(format!("{mode}.toml")), plan).expect("written");
    }
    let done = aegis(&["campaign", "c.toml", "--out", "out"], dir.path());
    let rows = lines(&dir.path().join("out/dataset.jsonl"));
    let failures: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "failure").collect();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let runs = json(&dir.path().join("out/report.json"))["funnel"]["verified"].as_u64().expect("a count");
    let verified = failures.len();
    assert_eq!(runs, 2 * verified as u64, "two plans, one claim");
    let told = format!("RESULT  ok {verified} verified failures (in {runs} runs: some met the same edit)");
    assert!(verified > 0 && said.contains(&told), "{verified}: {said}");
    for row in &failures {
        let error = &row["label"]["errors"][0];
        let others: Vec<_> = list(&error["other_modes"]).iter().map(|mode| mode["code"].clone()).collect();
        assert_eq!((&error["failure_mode"]["code"], others), (&"FM-2.6".into(), vec!["FM-3.3".into()]), "{error}");
    }
    aegis(&["lint", "out"], dir.path());
}

#[test]
fn the_commands_of_the_pages_on_data_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let binary = Path::new(env!("CARGO_BIN_EXE_aegis")).parent().expect("a directory");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").expect("PATH"));
    std::os::unix::fs::symlink(Path::new(ROOT).join("examples"), dir.path().join("examples")).expect("linked");
    for page in ["dataset.md", "formats.md"] {
        let found = blocks(&fs::read_to_string(Path::new(ROOT).join("docs").join(page)).expect("a page"));
        assert!(!found.is_empty(), "{page} has commands");
        for block in found {
            let mut shell = Command::new("bash");
            let ran = shell.args(["-euc", &block]).current_dir(dir.path()).env("PATH", &path).output().expect("bash");
            let [out, talk] = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            assert!(ran.status.success(), "{page}: {block}\n{out}\n{talk}");
            let verbs = block.lines().filter(|line| line.starts_with("aegis ")).count();
            assert!(verbs > 0 && talk.matches("RESULT  ok").count() >= verbs.saturating_sub(1), "{page}: {talk}");
            assert!(
                !block.contains("demo-run")
                    || page != "dataset.md"
                    || out.matches("failures of systems that repeat themselves").count() >= 3,
                "{out}"
            );
        }
    }
}
