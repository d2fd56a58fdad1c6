//! `trace` and `fork` as a user runs them, on the example program and the simulator: what is found, written, refused.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    program::{AEGIS, aegis, verb},
    scripted::{Act, Scripted},
};

const TASK: &str =
    "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
const CHECK: &str = "grep -q 'ANSWER: 84$'";
const RIGHT: &str = "Step 1: 12 * 8 = 96 (pencils).\nStep 2: 96 - 12 = 84 (pencils left).\nANSWER: 84";

/// What comes after the verb: the pipeline as a child, on the task.
fn pipeline<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--", AEGIS, "example", "pipeline", "--task", TASK]].concat()
}

/// A clean run `clean`, one with a wrong number in the solver's reply, `bad`, and the same without a word about it, `blind`.
async fn recorded(dir: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(root.join("examples/pipeline/aegis.toml"), dir.join("aegis.toml")).expect("copied");
    let plan = root.join("plans/corrupt-number.toml");
    let run = ["run", "--upstream", "simulator", "--check", CHECK, "--run"];
    let (code, _, talk) = verb(dir, &pipeline(&[&run[..], &["clean"]].concat())).await;
    assert_eq!(code, Some(0), "{talk}");
    let planned = ["bad", "--plan", plan.to_str().expect("text")];
    let (code, _, talk) = verb(dir, &pipeline(&[&run[..], &planned].concat())).await;
    assert_eq!(code, Some(1), "{talk}");
    let keep = ["fork", "logs/bad", "--at", "1", "--keep", "--check", CHECK, "--format", "json"];
    let (_, out, _) = verb(dir, &pipeline(&keep)).await;
    let made = read(&out)["samples"][0]["run_dir"].as_str().expect("a directory").to_owned();
    std::fs::rename(dir.join(made), dir.join("logs/blind")).expect("renamed");
    let task = json!({"id": "pencils", "question": TASK, "answer": "84"});
    std::fs::write(dir.join("tasks.jsonl"), format!("{task}\n")).expect("written");
}

fn read(out: &str) -> Value {
    serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {out}"))
}

fn file(path: &Path) -> Value {
    read(&std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

const KEPT: [&str; 8] = ["--dataset", "kept", "--tasks", "tasks.jsonl", "--system", "pipeline", "--task", "pencils"];

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_finds_the_step_and_writes_the_label() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let trace = ["trace", "logs/bad", "--check", CHECK, "--jobs", "2", "--redraw"];
    let (code, out, talk) = verb(dir.path(), &pipeline(&trace)).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(out.contains("   1  solver") && out.contains("◀ earliest flip, commitment"), "{out}");
    assert!(out.contains("a fresh draw") && out.contains("with a probability of at most 1 %"), "{out}");
    // The label says what was planted; it is worth more than what was found, and is kept.
    let expected = "RESULT  ok earliest flip solver at step 1  commitment solver at step 1  label kept";
    assert!(talk.contains(expected), "{talk}");
    assert_eq!(file(&dir.path().join("logs/bad/trace.json"))["earliest_flip"]["step"], 1);

    // The same failure with nothing said about it: the trace's step becomes its label.
    let trace = ["trace", "logs/blind", "--twin", "logs/clean", "--check", CHECK, "--order", "bisect"];
    let wrong = [&KEPT[..7], &["pencil"]].concat();
    let (code, _, talk) = verb(dir.path(), &pipeline(&[&trace[..], &wrong].concat())).await;
    assert!(code == Some(2) && talk.contains("has no task `pencil`; did you mean `pencils`?"), "{talk}");
    let (code, out, talk) = verb(dir.path(), &pipeline(&[&trace[..], &KEPT].concat())).await;
    assert!(code == Some(0) && talk.contains("label verified (earliest_flip)"), "{talk}");
    for words in ["said     Step 1", "instead  Step 1", "ANSWER: 94", "ANSWER: 84", "twin: the twin's step 1", "next  "]
    {
        assert!(out.contains(words), "{words}: {out}");
    }
    let label = file(&dir.path().join("logs/blind/label.json"));
    assert_eq!((&label["status"], &label["definition"]), (&"verified".into(), &"earliest_flip".into()));
    assert_eq!((&label["errors"][0]["agent"], &label["errors"][0]["step"]), (&"solver".into(), &1.into()));
    let executed = &label["evidence"]["executed"];
    assert!(executed["e"].as_f64() >= executed["target"].as_f64() && executed["pairs"].as_u64() >= Some(4), "{label}");
    assert_eq!(label["evidence"]["source"], "twin");
    let found = file(&dir.path().join("logs/blind/trace.json"));
    assert!(found["steps"][1]["said"].as_str().expect("text").ends_with("ANSWER: 94"), "{found}");
    assert!(found["steps"][1]["instead"].as_str().expect("text").ends_with("ANSWER: 84"), "{found}");
    // `show` says where it is.
    let (_, out, _) = verb(dir.path(), &["show", "logs/blind"]).await;
    assert!(out.contains("trace    earliest flip: solver at step 1") && out.contains("◀ earliest flip"), "{out}");
    // Its trials are its own: the user's runs are those that the user made.
    let mut runs: Vec<_> =
        std::fs::read_dir(dir.path().join("logs")).expect("logs").flatten().map(|entry| entry.file_name()).collect();
    runs.sort();
    assert_eq!(runs, ["bad", "blind", "clean"]);
    assert!(std::fs::read_dir(dir.path().join("logs/blind/trials")).expect("trials").count() > 8);
    // In the dataset it stands beside its twin; who and when are proven, the failure mode is unknown.
    let (code, out, talk) = verb(dir.path(), &["lint", "kept"]).await;
    assert_eq!(code, Some(0), "{out}{talk}");
    let rows = std::fs::read_to_string(dir.path().join("kept/dataset.jsonl")).expect("a dataset");
    let claims = &file(&dir.path().join("kept/dataset.json"))["claims"];
    assert_eq!((&claims["begun"], &claims["rows"]), (&1.into(), &1.into()));
    let rows: Vec<_> = rows.lines().map(read).collect();
    assert_eq!(rows.iter().map(|row| &row["kind"]).collect::<Vec<_>>(), ["clean", "failure"]);
    assert_eq!(rows[1]["label"]["evidence"]["source"], "twin");
    assert_eq!((&rows[1]["label"]["definition"], &rows[1]["clean_twin"]), (&"earliest_flip".into(), &"clean".into()));
    assert!(rows[1]["label"]["errors"][0]["failure_mode"].is_null(), "{}", rows[1]["label"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_traced_is_refused_before_it_costs() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let fix = json!({"step": 1, "reply": RIGHT, "reason": "adds"}).to_string();
    std::fs::write(dir.path().join("fix.jsonl"), fix).expect("written");
    let bad = ["trace", "logs/blind", "--twin", "logs/clean"];
    for (arguments, code, expected) in [
        (&["trace", "logs/clean", "--redraw", "--check", CHECK][..], 2, "succeeded: there is no failure to trace"),
        (&["trace", "logs/bad"], 2, "--corrections <FILE>|--twin <RUN_DIR>|--redraw|--analyzer <URL>"),
        (&["trace", "logs/bad", "--twin", "logs/bad", "--check", CHECK], 2, "failed: its replies correct nothing"),
        (&["trace", "logs/bad", "--redraw", "--corrections", "fix.jsonl"], 2, "cannot be used with"),
        (&["trace", "logs/bad", "--redraw"], 2, "a trace needs --check CMD"),
        (&["trace", "logs/bad", "--redraw", "--check", CHECK, "--alpha", "2"], 2, "`alpha` is 2"),
        // A check that cannot be run, one that tells nothing, a program that is another one: three executions, no call.
        (&[&bad[..], &["--check", "no-such-checker"]].concat(), 2, "--check cannot be run"),
        (&[&bad[..], &["--check", "exit 3"]].concat(), 1, "earliest flip not sure"),
        (&["trace", "logs/bad", "--redraw", "--check", CHECK, "--budget", "runs=1"], 4, "RESULT  budget"),
        (
            &["trace", "logs/bad", "--analyzer", "http://127.0.0.1:1", "--check", CHECK],
            3,
            "the analyzer answered no question",
        ),
    ] {
        let (got, out, talk) = verb(dir.path(), &pipeline(arguments)).await;
        assert!(got == Some(code) && talk.contains(expected), "{arguments:?}: {got:?} {talk}{out}");
        assert!(!dir.path().join("logs/blind/label.json").exists(), "{arguments:?}");
        assert!(talk.matches("executed").count() <= 3, "{arguments:?}: {talk}");
    }
    let other = ["--", AEGIS, "example", "pipeline", "--task", "Ada has 3 pears. She buys 4 more. How many are there?"];
    let (code, out, talk) = verb(dir.path(), &[&bad[..], &["--check", CHECK], &other].concat()).await;
    assert!(code == Some(1) && out.contains("does not ask again what it asked"), "{talk}{out}");
    assert_eq!(talk.matches(": diverged").count(), 3, "{talk}");
    // A record that succeeds as it is: nothing to explain.
    let (code, out, talk) = verb(dir.path(), &pipeline(&[&bad[..], &["--check", "exit 0"]].concat())).await;
    assert!(code == Some(1) && out.contains("the failure does not come again"), "{talk}{out}");
    assert_eq!(talk.matches("executed").count(), 2, "{talk}");
    // What it would cost is said for nothing.
    let (code, out, talk) = verb(dir.path(), &[&bad[..], &["--dry-run"]].concat()).await;
    assert!(code == Some(0) && out.contains("no correction heals:"), "{talk}{out}");
    assert!(!dir.path().join("logs/blind/trials").exists() || talk.contains("nothing was executed"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_upstream_labels_nothing_and_a_wrong_label_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    let trace = ["trace", "logs/blind", "--twin", "logs/clean", "--redraw", "--check", CHECK];
    for order in ["scan", "bisect", "best-first"] {
        let dead = ["--upstream", "http://127.0.0.1:1", "--order", order];
        let (code, out, talk) = verb(dir.path(), &pipeline(&[&trace[..], &dead, &KEPT].concat())).await;
        assert_eq!(code, Some(3), "{talk}{out}");
        assert!(out.contains("unanswered by the upstream") && talk.contains("no label"), "{talk}{out}");
        assert!(!dir.path().join("logs/blind/label.json").exists() && !dir.path().join("kept").exists());
    }
    // What was written under the former rule, of another step.
    let wrong = json!({
        "format": 1, "status": "verified", "definition": "earliest_flip", "seed": 0, "outcome": "failure",
        "errors": [{
            "injection": 0, "agent": "critic", "instance": 0, "failure_mode": null, "side": "response",
            "operator": "counterfactual", "step": 2, "call": 0, "before": "", "after": "", "delivered": true,
            "taxonomy": "mast-1",
        }],
        "evidence": {"fork_step": 2, "null": {"passed": 0, "of": 3}, "treated": {"passed": 3, "of": 3}},
    });
    std::fs::write(dir.path().join("logs/blind/label.json"), wrong.to_string()).expect("written");
    let (code, _, talk) = verb(dir.path(), &pipeline(&[&trace[..], &KEPT].concat())).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(talk.contains("label verified (earliest_flip) in place of earliest_flip at step 2"), "{talk}");
    let label = file(&dir.path().join("logs/blind/label.json"));
    assert_eq!(label["errors"][0]["step"], 1);
    crate::contract::files_have(dir.path(), &["files/trace", "files/label.former"]);
    let former = file(&dir.path().join("logs/blind/label.former.json"));
    assert_eq!(
        (&former[0]["label"]["errors"][0]["step"], &former[0]["label"]["status"]),
        (&2.into(), &"withdrawn".into())
    );
    let row = std::fs::read_to_string(dir.path().join("kept/dataset.jsonl")).expect("a dataset");
    let row = read(row.lines().last().expect("a row"));
    assert_eq!(row["label"]["errors"][0]["step"], label["errors"][0]["step"]);
    assert_eq!(row["label"]["definition"], label["definition"]);
    // Where the failure does not come again, the label is withdrawn, and so is its row.
    let gone = ["trace", "logs/blind", "--twin", "logs/clean", "--check", "exit 0"];
    let (_, _, talk) = verb(dir.path(), &pipeline(&[&gone[..], &KEPT].concat())).await;
    assert!(talk.contains("label withdrawn"), "{talk}");
    assert_eq!(file(&dir.path().join("logs/blind/label.json"))["status"], "withdrawn");
    let rows = std::fs::read_to_string(dir.path().join("kept/dataset.jsonl")).expect("a dataset");
    assert!(rows.lines().map(read).all(|row| row["kind"] == "clean"), "{rows}");
}

/// A private conversation and a key go nowhere that the user did not name.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_to_another_upstream_unasked() {
    let dir = tempfile::tempdir().expect("a directory");
    let body = crate::scripted::chat_reply("ANSWER: 1");
    let said = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let upstream = Scripted::always(vec![Act::Say(said.into_bytes()), Act::Close]).await;
    let url = format!("http://{}/v1", upstream.address);
    let run = ["run", "--upstream", &url, "--check", CHECK, "--run", "bad"];
    let (_, _, talk) = verb(dir.path(), &pipeline(&run)).await;
    let asked = || upstream.requests.lock().expect("requests").len();
    let before = asked();
    assert!(before > 0, "{talk}");
    let with_key = async |arguments: &[&str]| {
        let mut program = aegis(dir.path());
        program.args(pipeline(arguments)).env("OPENAI_API_KEY", "sk-of-the-user");
        let said = program.output().await.expect("it runs");
        (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned())
    };
    for arguments in [&["fork", "logs/bad", "--at", "0"][..], &["trace", "logs/bad", "--redraw", "--check", CHECK]] {
        let (code, talk) = with_key(arguments).await;
        assert!(code == Some(2) && talk.contains("the key in OPENAI_API_KEY would be sent"), "{talk}");
        assert!(talk.contains(&format!("--upstream {url}")), "{talk}");
        assert_eq!(asked(), before);
    }
    // Without a key it goes where it went; with one, where the user says so.
    let (_, _, talk) = verb(dir.path(), &pipeline(&["fork", "logs/bad", "--at", "0"])).await;
    assert!(asked() > before, "{talk}");
    let between = asked();
    let (_, talk) = with_key(&["fork", "logs/bad", "--at", "0", "--upstream", &url]).await;
    assert!(asked() > between, "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_of_which_nothing_is_known_is_not_well() {
    let dir = tempfile::tempdir().expect("a directory");
    recorded(dir.path()).await;
    for (arguments, code, expected) in [
        (&["--at", "1", "--check", "exit 3"][..], 1, "0 of 0 succeeded"),
        (&["--at", "1", "--check", "no-such-checker"], 2, "--check cannot be run"),
        (&["--at", "1", "--check", CHECK, "--upstream", "http://127.0.0.1:1"], 3, "1 unanswered by the upstream"),
        (&["--at", "1", "--check", CHECK], 0, "1 of 1 succeeded"),
        (&["--at", "1"], 0, "not judged: there is no --check"),
    ] {
        let arguments = [&["fork", "logs/bad"], arguments].concat();
        let (got, _, talk) = verb(dir.path(), &pipeline(&arguments)).await;
        assert!(got == Some(code) && talk.contains(expected), "{arguments:?}: {got:?} {talk}");
    }
    let samples = ["fork", "logs/bad", "--at", "1", "--check", CHECK, "--samples", "6", "--jobs", "3"];
    let (_, _, talk) = verb(dir.path(), &pipeline(&samples)).await;
    // What the programs themselves write may stand before it in a line.
    let order: Vec<_> = talk.split("sample ").skip(1).filter_map(|rest| rest.split(' ').next()).collect();
    assert_eq!(order, ["0", "1", "2", "3", "4", "5"], "{talk}");
    // The recorded command runs only where that is asked for.
    let (code, _, talk) = verb(dir.path(), &["fork", "logs/bad", "--at", "1", "--check", CHECK]).await;
    assert!(code == Some(2) && talk.contains("aegis fork logs/bad"), "{talk}");
    let (code, _, talk) = verb(dir.path(), &["fork", "logs/bad", "--at", "1", "--check", CHECK, "--again"]).await;
    assert_eq!(code, Some(0), "{talk}");
    let again = ["trace", "logs/bad", "--redraw", "--first", "--check", CHECK, "--again"];
    let (code, _, talk) = verb(dir.path(), &again).await;
    assert!(code == Some(0) && talk.contains("earliest flip solver at step 1"), "{talk}");
}
