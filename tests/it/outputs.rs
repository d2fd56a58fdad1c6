//! Files that verbs write where the user names them: what is there is lost only where that was asked for, or where it is an
//! earlier report that test runners write anew each time.

use std::{collections::BTreeSet, fs, path::Path};

use crate::program::{AEGIS, aegis};

/// A verb that writes a file.
struct Writer {
    /// What is typed; `FILE` is the file.
    line: &'static str,
    /// The option that names it, as the reference has it.
    option: &'static str,
    replaces: Replaced,
}

/// What a verb may replace.
enum Replaced {
    /// What is there, with `--overwrite`.
    Asked,
    /// The same; that it is refused is all that is seen here, because the work before it is long.
    Refused,
    /// An earlier report, unasked.
    Reports,
}

const CHECK: &str = "[[injection]]\nagent = \"*\"\nwhen.call = 0\nfault.latency = { ms = 1 }\n";

const WRITERS: &[Writer] = &[
    Writer { line: "stats demo-run --html FILE", option: "stats --html", replaces: Replaced::Asked },
    Writer { line: "view logs/r --bundle FILE", option: "view --bundle", replaces: Replaced::Asked },
    Writer { line: "attribute logs/r --method rules --out FILE", option: "attribute --out", replaces: Replaced::Asked },
    Writer {
        line: "attribute logs/r --method rules --html FILE",
        option: "attribute --html",
        replaces: Replaced::Asked,
    },
    Writer { line: "annotations logs --export said", option: "annotations --export", replaces: Replaced::Asked },
    Writer { line: "learn demo-run --out FILE", option: "learn --out", replaces: Replaced::Refused },
    Writer {
        line: "retry logs/r --check true --preferences FILE -- true",
        option: "retry --preferences",
        replaces: Replaced::Refused,
    },
    Writer {
        line: "run --upstream simulator --junit FILE -- PIPELINE",
        option: "run --junit",
        replaces: Replaced::Reports,
    },
    Writer { line: "show logs/r --verdict --junit FILE", option: "show --junit", replaces: Replaced::Reports },
    Writer {
        line: "test p.toml --upstream simulator --junit FILE -- PIPELINE",
        option: "test --junit",
        replaces: Replaced::Reports,
    },
    Writer {
        line: "test p.toml --upstream simulator --html FILE -- PIPELINE",
        option: "test --html",
        replaces: Replaced::Reports,
    },
    Writer { line: "campaign c.toml --out ANEW --junit FILE", option: "campaign --junit", replaces: Replaced::Reports },
    Writer { line: "man pages", option: "man DIR", replaces: Replaced::Reports },
];

/// Exit code and all that is said.
async fn typed(dir: &Path, line: &str) -> (Option<i32>, String) {
    let line = line.replace(
        "PIPELINE",
        &format!("'{AEGIS}' example pipeline --task 'A box holds 6 eggs. How many eggs do 7 boxes hold?'"),
    );
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", &format!("'{AEGIS}' {line}")]).current_dir(dir).env("HOME", dir).kill_on_drop(true);
    let done = command.output().await.expect("ran");
    (done.status.code(), [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat())
}

/// A run, a campaign, what somebody said of the run, a plan.
async fn scene(dir: &Path) {
    fs::write(dir.join("p.toml"), CHECK).expect("written");
    let pipeline = format!("command = ['{AEGIS}', \"example\", \"pipeline\", \"--task\", \"{{question}}\"]");
    let campaign = format!(
        "format = 1\nname = \"c\"\nupstream = \"simulator\"\ntasks.file = \"t.jsonl\"\nclean.repeats = 1\n\
         verify.answer = 'ANSWER: (.*)'\nverify.checks = [{{ numeric = {{}} }}]\n[[system]]\nname = \"s\"\n{pipeline}\n\
         [[plan]]\nfile = \"p.toml\"\n"
    );
    fs::write(dir.join("c.toml"), campaign).expect("written");
    let task =
        "{\"id\": \"a\", \"question\": \"A box holds 6 eggs. How many eggs do 7 boxes hold?\", \"answer\": \"42\"}\n";
    fs::write(dir.join("t.jsonl"), task).expect("written");
    let (code, said) = typed(dir, "run --upstream simulator --run r --check false -- PIPELINE").await;
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = typed(dir, "demo").await;
    assert_eq!(code, Some(0), "{said}");
    fs::create_dir_all(dir.join("logs/annotations")).expect("made");
    let said = "{\"format\":1,\"run\":\"r\",\"annotator\":\"ada\",\"at\":\"2026-01-01T00:00:00Z\",\
                \"error\":{\"agent\":\"solver\",\"step\":1,\"why\":\"it is wrong\"},\"sure\":true,\"blind\":true}\n";
    fs::write(dir.join("logs/annotations/ada.jsonl"), said).expect("written");
}

#[tokio::test]
async fn what_is_there_is_lost_only_where_that_was_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    scene(dir.path()).await;
    for (number, Writer { line, option, replaces }) in WRITERS.iter().enumerate() {
        let name = match *option {
            "annotations --export" => "said/ada/r.json".to_owned(),
            "man DIR" => "pages/aegis.1".to_owned(),
            _ => format!("out-{number}"),
        };
        let (path, runs) = (dir.path().join(&name), dir.path().join("logs"));
        let line = |time: u32| line.replace("FILE", &name).replace("ANEW", &format!("c-{number}-{time}"));
        let mine = b"mine".to_vec();
        if !matches!(replaces, Replaced::Refused) {
            let (_, said) = typed(dir.path(), &line(0)).await;
            assert!(path.is_file() && !said.contains("replaced"), "{option}: {said}");
        }
        if matches!(replaces, Replaced::Reports) {
            let (_, said) = typed(dir.path(), &line(1)).await;
            assert!(*option == "man DIR" || said.contains(&format!("replaced  {name}")), "{option}: {said}");
            assert!(!said.contains("error:"), "{option}: {said}");
        }
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(&path, &mine).expect("written");
        let before = fs::read_dir(&runs).expect("runs").count();
        let (code, said) = typed(dir.path(), &line(2)).await;
        assert_eq!(code, Some(2), "{option}: {said}");
        let shown = said.contains(&format!("`{name}` exists")) && said.contains("hint: name another file");
        assert!(shown && said.contains("lost"), "{option}: {said}");
        assert_eq!(fs::read(&path).expect("there"), mine, "{option}");
        assert_eq!(fs::read_dir(&runs).expect("runs").count(), before, "{option}: nothing was done before");
        if matches!(replaces, Replaced::Asked) {
            assert!(said.contains("`--overwrite`"), "{option}: {said}");
            let (_, said) = typed(dir.path(), &(line(3) + " --overwrite")).await;
            assert!(said.contains(&format!("replaced  {name}")), "{option}: {said}");
            assert_ne!(fs::read(&path).expect("there"), mine, "{option}");
        }
    }
}

/// Every option whose help says that it writes something is in the table.
#[test]
fn every_option_that_writes_is_looked_at() {
    let page = include_str!("../../docs/reference/cli.md");
    let mut verb = "";
    let mut writes = BTreeSet::new();
    for line in page.lines() {
        if let Some(name) = line.trim_start_matches('#').strip_prefix(" aegis ") {
            verb = name;
        }
        if let Some((option, help)) = line.strip_prefix("- `").and_then(|line| line.split_once("`: "))
            && (help.starts_with("Write ") || help.starts_with("Also write "))
            && option.contains(' ')
        {
            writes.insert(format!("{verb} {}", option.split(' ').next().unwrap_or_default()));
        }
    }
    let known: BTreeSet<String> =
        WRITERS.iter().map(|writer| writer.option.to_owned()).filter(|option| option != "man DIR").collect();
    assert_eq!(writes, known);
}

/// Where a campaign or a demo puts its data set, another one is not lost.
#[tokio::test]
async fn a_campaign_takes_no_place_of_other_data() {
    let dir = tempfile::tempdir().expect("a directory");
    scene(dir.path()).await;
    let make = |name: &str, file: &str| {
        fs::create_dir_all(dir.path().join(name)).expect("made");
        fs::write(dir.path().join(name).join(file), "mine").expect("written");
    };
    make("set", "dataset.jsonl");
    make("page", "report.html");
    make("paid", "cells");
    for line in [
        "demo --dir set",
        "demo --dir page",
        "demo --dir paid",
        "campaign c.toml --out set",
        "campaign c.toml --out page",
    ] {
        let (code, said) = typed(dir.path(), line).await;
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains("lost") && said.contains("another"), "{line}: {said}");
    }
    for path in ["set/dataset.jsonl", "page/report.html", "paid/cells"] {
        assert_eq!(fs::read_to_string(dir.path().join(path)).expect("there"), "mine");
    }
    let (code, said) = typed(dir.path(), "demo").await;
    assert_eq!(code, Some(0), "a demo replaces a demo: {said}");
    let done = aegis(dir.path()).args(["campaign", "c.toml", "--out", "c"]).output().await.expect("ran");
    assert!(done.status.code() < Some(2));
    let (code, said) = typed(dir.path(), "demo --dir c").await;
    assert!(code == Some(2) && said.contains("holds a campaign that is no demo"), "{said}");
}
