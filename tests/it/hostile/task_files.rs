//! A task file that somebody else wrote.

use std::fs;

use crate::program::verb;

#[tokio::test(flavor = "multi_thread")]
async fn tasks_bring_no_commands_unless_the_campaign_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
    let mark = dir.path().join("mark");
    let check = format!(r#"{{"command": {{"run": "touch {}"}}}}"#, mark.display());
    write("tasks.jsonl", &format!(r#"{{"id": "t", "question": "x", "answer": "1", "check": {check}}}"#));
    let rest = "[[system]]\nname = \"s\"\ncommand = [\"{aegis}\", \"example\", \"pipeline\", \"--task\", \"{question}\"]\n\
        exit_codes = [0, 1]\n[[plan]]\nfile = \"plan.toml\"\n";
    let campaign =
        format!("upstream = \"simulator\"\ntasks.file = \"tasks.jsonl\"\nverify.checks = [{{ exact = {{}} }}]\n{rest}");
    write("campaign.toml", &campaign);
    write(
        "plan.toml",
        "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n",
    );
    let (code, _, talk) = verb(dir.path(), &["campaign", "campaign.toml", "--out", "a"]).await;
    assert_eq!(code, Some(2), "{talk}");
    assert!(talk.contains("1 tasks bring commands") && talk.contains("--allow-task-commands"), "{talk}");
    let (code, out, talk) = verb(dir.path(), &["campaign", "campaign.toml", "--dry-run"]).await;
    assert!(code == Some(0) && out.contains("1 tasks bring one; refused without"), "{out}{talk}");
    assert!(!mark.exists() && !dir.path().join("a").exists());
    let (_, _, talk) = verb(dir.path(), &["campaign", "campaign.toml", "--out", "b", "--allow-task-commands"]).await;
    assert!(mark.exists() && talk.contains("1 tasks bring commands: "), "{talk}");
    let allowed = campaign.replace("verify.checks", "verify.allow_task_commands = true\nverify.checks");
    write("campaign.toml", &allowed);
    let (code, out, talk) = verb(dir.path(), &["campaign", "campaign.toml", "--dry-run"]).await;
    assert!(code == Some(0) && out.contains("1 tasks bring one; ") && !out.contains("refused"), "{out}{talk}");
}
