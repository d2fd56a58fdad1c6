//! A program whose tools say something else each time: what is said of that once holds for whatever is executed of the run.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    label_gates::team,
    program::{ASK, aegis, verb, write_campaign},
};

/// An adder that has run a test, which took another time in each run, and a critic.
const TIMED: &str = r#"
import re, time
run = {"id": "c1", "type": "function", "function": {"name": "test", "arguments": "{}"}}
result = f"3 passed in {time.time_ns() % 9973}us"
text = ask("adder", {"role": "user", "content": "5 and 7"}, {"role": "assistant", "content": None, "tool_calls": [run]},
    {"role": "tool", "tool_call_id": "c1", "content": result})
ask("critic", {"role": "user", "content": "Look at this: " + text})
print("ANSWER:", (re.findall(r"\d+", text) or ["none"])[-1])
"#;
const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"adder\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
                    manipulator.corrupt_number = { which = \"last\", by = 10 }\n";
const PROGRAM: [&str; 4] = ["--", "python3", "-I", "timed.py"];

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).expect("JSON")
}

#[tokio::test]
async fn a_runs_setting_is_kept_with_it_and_inherited_by_whatever_is_executed_of_it() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("timed.py"), format!("{ASK}{TIMED}")).expect("written");
    let url = team::model().await;
    let of = |arguments: &[&str]| [arguments, &PROGRAM].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let made = async |arguments: &[&str]| {
        let arguments = of(arguments);
        verb(dir.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    for (name, more, setting) in [("plain", &[][..], None), ("set", &["--tool-results", "masked"], Some("masked"))] {
        let (code, _, said) =
            made(&[&["run", "--upstream", &url, "--log-dir", "logs", "--run", name], more].concat()).await;
        assert_eq!(code, Some(0), "{said}");
        let run = format!("logs/{name}");
        assert_eq!(json(&dir.path().join(&run).join("run.json"))["equality"]["tool_results"].as_str(), setting);
        let (code, _, said) = made(&["replay", &run, "--log-dir", "again", "--run", name]).await;
        assert_eq!(code, Some(i32::from(setting.is_none())), "{said}");
        assert_eq!(said.contains("as the run was recorded (--tool-results masked)"), setting.is_some(), "{said}");
        let again = json(&dir.path().join("again").join(name).join("run.json"));
        assert_eq!(again["equality"]["tool_results"].as_str(), setting);
        let (code, _, said) =
            made(&["fork", &run, "--at", "1", "--keep", "--upstream", &url, "--log-dir", "forks"]).await;
        // Where nothing was set, its first execution shows it.
        assert_eq!((code, said.contains("counts as equal")), (Some(0), setting.is_none()), "{said}");
    }
    // What is said here holds over what was recorded.
    let (code, _, said) = made(&["replay", "logs/set", "--tool-results", "exact", "--log-dir", "exact"]).await;
    assert_eq!(code, Some(1), "{said}");
    let (code, _, said) = verb(dir.path(), &["diff", "logs/plain", "again/set"]).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test]
async fn a_campaign_over_such_tools_has_rows_and_its_lint_finds_none_of_them_unlike_its_twin() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
    write("timed.py", &format!("{ASK}{TIMED}"));
    write_campaign(dir.path(), &team::model().await, &["python3", "-I", "timed.py"], PLAN);
    let output = aegis(dir.path()).args(["campaign", "c.toml", "--out", "c"]).output();
    let output = tokio::time::timeout(std::time::Duration::from_mins(2), output).await.expect("in time").expect("runs");
    let talk = String::from_utf8_lossy(&output.stderr);
    let rows = fs::read_to_string(dir.path().join("c/dataset.jsonl")).unwrap_or_else(|_| panic!("{talk}"));
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).expect("a row")).collect();
    let failure = rows.iter().find(|row| row["kind"] == "failure").unwrap_or_else(|| panic!("{talk}"));
    assert_eq!(failure["equality"]["tool_results"], "masked");
    let (_, out, talk) = verb(dir.path(), &["lint", "c", "--format", "json"]).await;
    assert!(!out.contains("prefix-differs"), "{out}{talk}");
}
