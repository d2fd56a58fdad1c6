//! Clean runs of a task that agree by chance in what differs from run to run: a duration that a tool measures, the load that a prompt
//! names. Later runs of the task show it, and it counts as equal from then on.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    label_gates::team,
    program::{ASK, verb, write_campaign},
};

/// An adder, whose runs before the one of its second argument have the same number and those after it one each, and a critic. The
/// first argument says where that number stands: in a tool's result before the planted call, in one after it, in a prompt, or in the
/// question.
const NUMBERED: &str = r#"
import os, re, sys
place, alike = sys.argv[1], int(sys.argv[2])
with open("runs", "a+") as runs:
    runs.write("x"); runs.flush()
    number = max(os.path.getsize("runs") - alike, 0)
def tool(words):
    call = {"id": "c1", "type": "function", "function": {"name": "test", "arguments": "{}"}}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": words}]
user = lambda text: {"role": "user", "content": text}
result = tool(f"3 passed in {500 + number}us") if place != "words" else tool("all passed" if not number else "passed " + "x" * number)
load = [{"role": "system", "content": f"You add.\nLoad of this machine: 0.{500 + number} of 2\nBe brief."}] if place == "prompt" else []
question = user("5 and 7" if place != "question" or not number else f"5 and 7 in room {number} of 9")
text = ask("adder", *load, question, *(result if place in ("before", "words") else []))
ask("critic", user("Look at this: " + text), *(result if place == "after" else []))
print("ANSWER:", (re.findall(r"\d+", text) or ["none"])[-1])
"#;
const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"adder\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
                    manipulator.corrupt_number = { which = \"last\", by = 10 }\n";

/// What the campaign said at its end, and its rows.
async fn campaign(dir: &Path, place: &str, alike: u32) -> (String, Vec<Value>) {
    fs::write(dir.join("numbered.py"), format!("{ASK}{NUMBERED}")).expect("written");
    let command = ["python3", "-I", "numbered.py", place, &alike.to_string()];
    write_campaign(dir, &team::model().await, &command, PLAN);
    let (_, _, talk) = verb(dir, &["campaign", "c.toml", "--out", "c", "--jobs", "1"]).await;
    let rows = fs::read_to_string(dir.join("c/dataset.jsonl")).unwrap_or_default();
    (talk, rows.lines().map(|row| serde_json::from_str(row).expect("a row")).collect())
}

#[tokio::test]
async fn what_clean_runs_hide_by_chance_is_learned_from_the_run_that_shows_it() {
    let result = "results of tools, in words with a digit";
    let place = "volatile: adder line 2, \"Load of this machine: … of 2\"";
    for (where_it_stands, alike, learned) in [
        ("before", 2, result),
        ("before", 3, result),
        ("before", 4, result),
        ("words", 2, "results of tools"),
        ("after", 2, result),
        ("after", 3, result),
        ("prompt", 2, place),
        ("prompt", 3, place),
        ("prompt", 4, place),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let (talk, rows) = campaign(dir.path(), where_it_stands, alike).await;
        let what = format!("{where_it_stands}, {alike} alike: {talk}");
        assert!(talk.contains("1 of 1 flips verified, 1 by equal repeats"), "{what}");
        assert!(talk.contains(&format!("counts as equal: {learned}")), "{what}");
        let failure = rows.iter().find(|row| row["kind"] == "failure").unwrap_or_else(|| panic!("{what}"));
        let is_learned = alike == 2 && where_it_stands != "after";
        assert_eq!(failure["equality"].is_object(), is_learned, "what held when the run was made: {what}");
        let (_, out, talk) = verb(dir.path(), &["lint", "c", "--format", "json"]).await;
        assert!(!out.contains("prefix-differs"), "{what}{out}{talk}");
        // Gone on with, it comes to the same from what is stored.
        let report = fs::read(dir.path().join("c/dataset.jsonl")).expect("rows");
        for file in ["chains", "dataset.jsonl"] {
            let path = dir.path().join("c").join(file);
            let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed.expect("removed");
        }
        let (code, _, talk) = verb(dir.path(), &["campaign", "c.toml", "--out", "c", "--jobs", "1", "--resume"]).await;
        assert_eq!(code, Some(0), "{what}{talk}");
        assert_eq!(fs::read(dir.path().join("c/dataset.jsonl")).expect("rows"), report, "{what}{talk}");
    }
}

#[tokio::test]
async fn another_question_is_never_learned_to_be_equal() {
    let dir = tempfile::tempdir().expect("a directory");
    let (talk, rows) = campaign(dir.path(), "question", 2).await;
    assert!(rows.iter().all(|row| row["kind"] != "failure"), "{talk}");
    assert!(!talk.contains("counts as equal"), "{talk}");
}

/// A failed run of the program with its plan, recorded as `logs/r`; the upstream's address.
async fn failed_run(dir: &Path, place: &str) -> String {
    fs::write(dir.join("numbered.py"), format!("{ASK}{NUMBERED}")).expect("written");
    fs::write(dir.join("plan.toml"), PLAN).expect("written");
    let url = team::model().await;
    let run = ["run", "--upstream", &url, "--log-dir", "logs", "--run", "r", "--plan", "plan.toml"];
    let judged = ["--check", "grep -q 'ANSWER: 12$'", "--", "python3", "-I", "numbered.py", place, "0"];
    let (code, _, talk) = verb(dir, &[&run[..], &judged].concat()).await;
    assert_eq!(code, Some(1), "{talk}");
    url
}

#[tokio::test]
async fn what_differs_from_a_run_by_itself_is_learned_by_each_verb_that_executes_it_again() {
    let verbs: [&[&str]; 3] = [
        &["prove", "logs/r", "--again"],
        &["trace", "logs/r", "--again", "--redraw"],
        &["fork", "logs/r", "--at", "1", "--again"],
    ];
    for (place, learned) in [
        ("before", "results of tools, in words with a digit"),
        ("words", "results of tools"),
        ("prompt", "volatile: adder line 2, \"Load of this machine: … of 2\""),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let url = failed_run(dir.path(), place).await;
        for arguments in verbs {
            let (code, out, talk) = verb(dir.path(), &[arguments, &["--upstream", &url]].concat()).await;
            let what = format!("{place} {arguments:?}: {code:?}\n{out}\n{talk}");
            assert_eq!(talk.matches("counts as equal: ").count(), 1, "{what}");
            assert!(talk.contains(&format!("counts as equal: {learned}: ")), "{what}");
            assert!(!talk.contains("void") && !talk.contains("1 diverged"), "{what}");
        }
        // What the label rests on says it, too.
        let label = fs::read_to_string(dir.path().join("logs/r/label.json")).expect("a label");
        assert!(label.contains("\"counts_as_equal\""), "{place}: {label}");
        let (_, shown, _) = verb(dir.path(), &["show", "logs/r"]).await;
        assert!(shown.contains(&format!("counted as equal in its runs: {learned}")), "{place}: {shown}");
        // Each execution says what held when it was compared.
        let manifest = |path: &Path| fs::read_to_string(path.join("run.json")).unwrap_or_default();
        let runs = fs::read_dir(dir.path().join("logs")).expect("runs").flatten().map(|run| run.path());
        let forked: Vec<String> = runs.filter(|path| !path.ends_with("r")).map(|path| manifest(&path)).collect();
        assert!(forked.iter().any(|run| run.contains("\"equality\": {\n")), "{place}: {forked:?}");
    }
}

#[tokio::test]
async fn what_the_user_says_of_tools_and_another_question_are_no_more_learned_from_an_execution() {
    for (place, says) in [("before", &["--tool-results", "exact"][..]), ("question", &[])] {
        let dir = tempfile::tempdir().expect("a directory");
        let url = failed_run(dir.path(), place).await;
        let prove = [&["prove", "logs/r", "--again", "--upstream", &url][..], says].concat();
        let (code, _, talk) = verb(dir.path(), &prove).await;
        assert_eq!(code, Some(1), "{place}: {talk}");
        assert!(!talk.contains("counts as equal"), "{place}: {talk}");
        assert!(talk.contains("aegis replay logs/r --again --explain says where"), "{place}: {talk}");
        let (_, _, talk) = verb(dir.path(), &["replay", "logs/r", "--again", "--explain"]).await;
        assert!(talk.contains("missed   step 0 (call 0 of `adder`)"), "{place}: {talk}");
    }
}

/// A tool whose number is 12 or 13 in turn, and a model that repeats what it says.
const REPEATED: &str = r#"
import os
with open("runs", "a+") as runs:
    runs.write("x"); runs.flush()
    number = 11 + os.path.getsize("runs") % 2
call = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": "{}"}}
text = ask("adder", {"role": "user", "content": "5 and 7"}, {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "c1", "content": f"The sum is {number}."})
print("ANSWER:", (re.findall(r"\d+", text) or ["none"])[-1])
"#;

#[tokio::test]
async fn a_result_that_a_reply_repeats_is_not_learned_from_an_execution() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("repeated.py"), format!("{ASK}{REPEATED}")).expect("written");
    fs::write(dir.path().join("plan.toml"), PLAN).expect("written");
    let url = team::model().await;
    let run = ["run", "--upstream", &url, "--log-dir", "logs", "--run", "r", "--plan", "plan.toml"];
    let judged = ["--check", "grep -q 'ANSWER: 12$'", "--", "python3", "-I", "repeated.py"];
    let (code, _, talk) = verb(dir.path(), &[&run[..], &judged].concat()).await;
    assert_eq!(code, Some(1), "{talk}");
    let (_, _, talk) = verb(dir.path(), &["prove", "logs/r", "--again", "--upstream", &url]).await;
    assert!(!talk.contains("counts as equal") && !talk.contains("label verified"), "{talk}");
}

#[tokio::test]
async fn a_proof_that_came_to_nothing_goes_on_under_other_rules() {
    let dir = tempfile::tempdir().expect("a directory");
    let url = failed_run(dir.path(), "before").await;
    let prove = async |more: &[&str]| {
        let arguments = [&["prove", "logs/r", "--again", "--upstream", &url], more].concat();
        let (code, _, talk) = verb(dir.path(), &arguments).await;
        (code, talk)
    };
    let (code, talk) = prove(&["--tool-results", "exact"]).await;
    assert!(code == Some(1) && talk.contains("3 executions made"), "{talk}");
    // The cause is still there: one execution shows that.
    let (code, talk) = prove(&["--tool-results", "exact"]).await;
    assert!(code == Some(1) && talk.contains("1 executions made"), "{talk}");
    let (code, talk) = prove(&[]).await;
    assert!(code == Some(0) && talk.contains("label verified"), "{talk}");
}
