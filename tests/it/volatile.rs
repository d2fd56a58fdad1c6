//! A team whose instructions hold a value that no declared rule knows, and that each call makes anew: it is learned.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    label_gates::team,
    program::{aegis, verb, write_campaign},
};

/// An adder that is asked twice and a critic. The instructions hold the load of the machine, which differs in each call; with the
/// name of a file that is there, the adder is asked another question.
const LOADED: &str = r#"
import http.client, json, os, re, time
host, path = re.match(r"http://([^/]+)(/.*)", os.environ["OPENAI_BASE_URL"]).groups()
def ask(agent, *texts):
    call = http.client.HTTPConnection(host)
    headers = {"content-type": "application/json", "x-aegis-agent": agent}
    system = {"role": "system", "content": f"You are the {agent}.\nLoad of this machine: 0.{10000 + time.time_ns() % 89989} of 2\nBe brief."}
    users = [{"role": "user", "content": text} for text in texts]
    call.request("POST", path + "/chat/completions", json.dumps({"model": "m", "messages": [system, *users]}), headers)
    answer = json.loads(call.getresponse().read())
    return answer["choices"][0]["message"]["content"] if "choices" in answer else "nothing"
ask("adder", "5 and 7" if not os.path.exists("other") else "5 and 9")
text = ask("adder", "5 and 7")
ask("critic", "Look at this: " + text)
print("ANSWER:", (re.findall(r"\d+", text) or ["none"])[-1])
"#;
const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"adder\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 1\n\
                    manipulator.corrupt_number = { which = \"last\", by = 10 }\n";
const PROGRAM: [&str; 4] = ["--", "python3", "-I", "loaded.py"];

async fn made(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    verb(dir, &[arguments, &PROGRAM].concat()).await
}

#[tokio::test]
async fn what_changes_from_call_to_call_in_a_record_finds_it_and_is_said_to_be_not_exact() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
    write("loaded.py", LOADED);
    let url = team::model().await;
    let (code, _, talk) = made(dir.path(), &["run", "--upstream", &url, "--log-dir", "logs", "--run", "r"]).await;
    assert_eq!(code, Some(0), "{talk}");
    let (code, _, talk) = made(dir.path(), &["replay", "logs/r", "--log-dir", "again"]).await;
    assert_eq!(code, Some(0), "{talk}");
    assert!(talk.contains("volatile value (adder line 2, \"Load of this machine: … of 2\")"), "{talk}");
    assert!(talk.contains("3 served") && talk.contains("not exact: 3 steps"), "{talk}");
    // A word of the question is no such value.
    write("other", "");
    let (code, _, talk) = made(dir.path(), &["replay", "logs/r", "--log-dir", "changed"]).await;
    assert_eq!(code, Some(1), "{talk}");
    assert!(talk.contains("\"5 and 9\""), "{talk}");
}

#[tokio::test]
async fn a_campaign_learns_it_from_clean_runs_prints_it_and_keeps_it_with_its_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
    write("loaded.py", LOADED);
    write_campaign(dir.path(), &team::model().await, &["python3", "-I", "loaded.py"], PLAN);
    let output = aegis(dir.path()).args(["campaign", "c.toml", "--out", "c"]).output();
    let output = tokio::time::timeout(std::time::Duration::from_mins(2), output).await.expect("in time").expect("runs");
    let talk = String::from_utf8_lossy(&output.stderr);
    let place = "adder line 2, \"Load of this machine: … of 2\"";
    assert!(
        talk.contains(&format!("differs between runs of 1 task, and counts as equal: volatile: {place}")),
        "{talk}"
    );
    assert!(talk.contains("1 of 1 flips verified, 1 by equal repeats"), "{talk}");
    let rows = fs::read_to_string(dir.path().join("c/dataset.jsonl")).unwrap_or_else(|_| panic!("{talk}"));
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).expect("a row")).collect();
    let failure = rows.iter().find(|row| row["kind"] == "failure").unwrap_or_else(|| panic!("{talk}"));
    assert_eq!(failure["equality"]["volatile"][0]["before"], "Load of this machine:");
    let report = fs::read_to_string(dir.path().join("c/report.md")).expect("a report");
    assert!(report.contains(place), "{report}");
    let (_, out, talk) = verb(dir.path(), &["lint", "c", "--format", "json"]).await;
    assert!(!out.contains("prefix-differs"), "{out}{talk}");
}
