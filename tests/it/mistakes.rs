//! Mistakes that newcomers make, typed as they type them: each is answered with what is wrong, where, why, and what to type.

use std::{fs, path::Path, process::Stdio};

use tokio::process::Command;

use crate::program::AEGIS;

/// A mistake: what is typed, the exit code, what is said.
struct Mistake {
    /// The line for a shell; `aegis` is the program.
    line: &'static str,
    code: i32,
    says: &'static [&'static str],
}

const fn mistake(line: &'static str, code: i32, says: &'static [&'static str]) -> Mistake {
    Mistake { line, code, says }
}

const PIPELINE: &str = "aegis example pipeline --task 'A box holds 6 eggs. How many eggs do 7 boxes hold?'";

/// What lies beside who makes them.
const FILES: &[(&str, &str)] = &[
    ("bad.jsonl", "{\"id\":\"a\",\"question\":\"1 2\",\"answer\":\"6\"\nnot json\n{\"id\":\"\",\"question\":\"?\"}\n"),
    ("agents.toml", "[[agents]]\nname = \"solver\"\nsystem_contains = \"You are the solver.\"\n"),
    ("aegis.toml", "[[agent]]\nname = \"solver\"\nsystem_contains = \"You are the solver.\"\n"),
    ("upstream.toml", "[upstream]\nurl = \"localhost:8000\"\n"),
    (
        "misspelt.toml",
        "[[injection]]\nagent = \"solvr\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n",
    ),
    (
        "edit.toml",
        "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corupt_number = { which = \"last\", by = 10 }\n",
    ),
    (
        "when.toml",
        "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.calls = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n",
    ),
    (
        "mode.toml",
        "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.7\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n",
    ),
    (
        "ninth.toml",
        "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 9\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n",
    ),
    (
        "history.toml",
        "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-1.4\"\nwhen.call = 0\nmanipulator.drop_history = { keep_last = 50 }\n",
    ),
    ("frames.toml", "[[injection]]\nagent = \"*\"\nwhen.call = 0\nfault.repeat_frames = { frame = 0 }\n"),
    (
        "step.toml",
        "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.step = 3\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n",
    ),
    ("numbers.jsonl", "{\"id\": \"a\", \"question\": \"What is 6 times 7?\", \"answer\": 42}\n"),
    (
        "tasks.jsonl",
        "{\"id\": \"a\", \"question\": \"A box holds 6 eggs. How many eggs do 7 boxes hold?\", \"answer\": \"42\"}\n",
    ),
    ("silent.py", "print('ANSWER: 42')\n"),
];

/// A campaign in which something is wrong.
fn campaign(tasks: &str, answer: &str, question: &str) -> String {
    format!(
        "format = 1\nupstream = \"simulator\"\ntasks.file = \"{tasks}\"\nclean.repeats = 1\nproof.repeatable = true\n\
         verify.answer = '{answer}: (.*)'\nverify.checks = [{{ numeric = {{}} }}]\n[[system]]\nname = \"pipeline\"\n\
         command = [\"{{aegis}}\", \"example\", \"pipeline\", \"--task\", \"{question}\"]\nconfig = \"aegis.toml\"\n\
         [[plan]]\nfile = \"misspelt.toml\"\n"
    )
}

const MISTAKES: &[Mistake] = &[
    mistake("aegis exprot demo-run --to sft", 2, &["unrecognized subcommand 'exprot'", "'export'"]),
    mistake("aegis run python3 silent.py", 2, &["unexpected argument 'python3'", "aegis run [OPTIONS] -- <CMD>..."]),
    mistake(
        "aegis run --upstream simulator -- pyton silent.py",
        2,
        &["cannot start `pyton`", "No such file", "hint: ", "PATH"],
    ),
    mistake(
        "aegis run --upstream simulator -- python3 slient.py",
        3,
        &["the command ended with 2 before it made a model call", "hint: "],
    ),
    mistake(
        "aegis run --upstream simulator -- python3 silent.py",
        3,
        &["made no model call", "OPENAI_BASE_URL", "hint: "],
    ),
    mistake("aegis run --upstream simulator --timeout 0.2 -- sleep 9", 3, &["timed out (--timeout)", "hint: "]),
    mistake(
        "aegis run --upstream simulator --plan rate-limt -- true",
        2,
        &["cannot read `rate-limt`", "did you mean the ready-made plan `rate-limit`"],
    ),
    mistake("aegis run --upstream localhost:8000 -- true", 2, &["localhost:8000", "expected", "http://"]),
    mistake(
        "aegis run --upstream http://127.0.0.1:1/v1 -- PIPELINE",
        3,
        &["none of the run's calls reached http://127.0.0.1:1", "hint: "],
    ),
    mistake("aegis run --upstream simulator --run 'my run' -- true", 2, &["my run", "expected"]),
    mistake("aegis run --upstream simulator --run first -- PIPELINE", 2, &["run `first`", "sealed", "--overwrite"]),
    mistake(
        "aegis run --upstream simulator --check 'grepp 42' -- PIPELINE",
        2,
        &["--check cannot be run", "127", "hint: "],
    ),
    mistake(
        "aegis run --upstream simulator --config agents.toml -- true",
        2,
        &["agents.toml:1:3", "unknown field `agents`", "hint: did you mean `agent`?"],
    ),
    mistake(
        "aegis plan check misspelt.toml",
        0,
        &[
            "no [[agent]] of the configuration is called `solvr`: did you mean `solver`?",
            "ok 1 plan, 1 note, told above",
        ],
    ),
    mistake(
        "aegis test step.toml --upstream simulator -- PIPELINE",
        2,
        &["`step` needs a recorded run", "hint: aim by `call`", "`aegis fork RUN_DIR --plan FILE`"],
    ),
    mistake("aegis run --plan step.toml --upstream simulator -- PIPELINE", 2, &["hint: aim by `call`"]),
    mistake("aegis plan check step.toml", 2, &["hint: give one with `--against RUN_DIR`"]),
    mistake(
        "aegis test rate-limit --upstream simulator -- ./nonexist",
        2,
        &["cannot start `./nonexist`", "hint: is it installed, spelt so, and on PATH?"],
    ),
    // Why a plan never fired stands in the test's own words, in the file for CI and in what is shown later.
    mistake(
        "aegis test misspelt.toml --upstream simulator --name u1 --junit u1.xml -- PIPELINE > u1.txt 2>&1; aegis show logs/u1/u1-misspelt-1 --verdict > u1v.txt 2>&1; grep -l 'no agent is called .solvr.: seen .*, did you mean .solver.?' u1.txt u1.xml u1v.txt",
        0,
        &["u1.txt\nu1.xml\nu1v.txt\n"],
    ),
    mistake(
        "aegis test ninth.toml --strict --upstream simulator --name u2 -- PIPELINE",
        1,
        &["its call is not one that `when` names; calls went up to 0"],
    ),
    mistake(
        "aegis test frames.toml --strict --upstream simulator --name u3 -- PIPELINE",
        1,
        &["it could not act at step 0: the reply is no event stream"],
    ),
    mistake(
        "aegis test history.toml --strict --upstream simulator --name u4 --config aegis.toml -- PIPELINE",
        1,
        &["it could not act at step 1: the request has only"],
    ),
    mistake("aegis plan check edit.toml", 2, &["edit.toml:5", "corupt_number", "corrupt_number"]),
    mistake("aegis plan check when.toml", 2, &["when.toml:4", "calls", "call"]),
    mistake("aegis plan check mode.toml", 2, &["mode.toml:3", "FM-2.7", "FM-2.6"]),
    mistake("aegis show first", 2, &["first", "hint: ", "aegis show logs/first"]),
    mistake("aegis campaign numbers.toml", 2, &["numbers.jsonl:1", "write \"42\""]),
    mistake(
        "aegis campaign place.toml",
        2,
        &["place.toml:", "unknown placeholder `{qestion}`", "did you mean `{question}`"],
    ),
    mistake(
        "aegis campaign silent.toml --out s",
        1,
        &[
            "pipeline/a is left out, unsolved: no answer; expected `42`",
            "nothing it said matches `RESULT: (.*)` (`verify.answer`)",
        ],
    ),
    mistake("aegis campaign silent.toml --out s", 2, &["`s`", "--resume"]),
    mistake("aegis campaign silent.toml --out ss --resume", 2, &["`ss`", "did you mean `s`?", "leave out `--resume`"]),
    mistake(
        "aegis campaign bad.toml --out b",
        2,
        &[
            "bad.jsonl:1:39: the line ends in the middle",
            "bad.jsonl:2:2: this is no JSON",
            "bad.jsonl:3:1: a task needs",
        ],
    ),
    mistake(
        "aegis run --upstream simulator --config examples/pipeline/aegis.toml -- true",
        2,
        &["examples/pipeline/aegis.toml", "No such file", "hint: paths begin in the working directory", "`cd` into it"],
    ),
    mistake(
        "aegis run --upstream simulator --config mine/aegis.toml -- true",
        2,
        &["mine/aegis.toml", "hint: did you mean `aegis.toml`?", "aegis init DIR"],
    ),
    mistake("aegis serve --upstream simulator --listen 8484", 2, &["`8484`", "expected HOST:PORT"]),
    mistake("aegis export logs/first --to sftt --out x.jsonl", 2, &["sftt", "did you mean `sft`"]),
    mistake("aegis export demo-run --to sft --out x.jsonl", 2, &["demo-run", "hint: "]),
    mistake(
        "aegis run --upstream https://api.openai.com/v1/chat/completions -- true",
        2,
        &["is the address of one call", "a base URL is expected", "hint: --upstream https://api.openai.com/v1\n"],
    ),
    mistake(
        "aegis run --upstream simulator --timeout 5m -- true",
        2,
        &["'5m'", "expected seconds, without a unit: 300"],
    ),
    mistake(
        "aegis run --upstream simulator --config aegis.toml --plan misspelt.toml -- PIPELINE",
        1,
        &["missed   injection 0 met no step: no agent is called `solvr`", "did you mean `solver`?"],
    ),
    // Why a task is left out stands in each file that people look at.
    mistake(
        "aegis campaign silent.toml --out s3 --junit j.xml 2> s3.txt; grep -l 'nothing it said matches' s3.txt j.xml s3/report.md s3/report.json",
        0,
        &["s3.txt\nj.xml\ns3/report.md\ns3/report.json\n"],
    ),
    mistake("aegis campaign mine.toml", 2, &["cannot read `mine.toml`", "hint: ", "aegis init"]),
    mistake(
        "aegis run --upstream simulator --plan mine.toml -- true",
        2,
        &["cannot read `mine.toml`", "hint: ", "aegis init"],
    ),
    mistake(
        "aegis run --upstream simulator --plan rate-limit,overload -- true",
        2,
        &["`rate-limit,overload`", "a run has one plan", "hint: ", "aegis test PLAN PLAN"],
    ),
    mistake("aegis attribute logs/first", 2, &["--method <METHOD>", "hint: for example: aegis attribute "]),
    mistake("aegis plan check", 2, &["<FILE>", "hint: for example: aegis plan check "]),
    // An option that a verb would not look at is no option of that verb.
    mistake("aegis prove logs/first --plan nonesuch.toml --check true --again", 2, &["unexpected argument '--plan'"]),
    mistake(
        "aegis trace logs/first --redraw --plan rate-limit --check true --again",
        2,
        &["unexpected argument '--plan'"],
    ),
    mistake("aegis retry logs/first --plan rate-limit --check true --again", 2, &["unexpected argument '--plan'"]),
    mistake(
        "aegis trace logs/first --redraw --manipulator-upstream simulator --check true --again",
        2,
        &["unexpected argument '--manipulator-upstream'"],
    ),
    mistake(
        "aegis retry logs/first --manipulator-model m --check true --again",
        2,
        &["unexpected argument '--manipulator-model'"],
    ),
    mistake("aegis fork logs/first --plan nonesuch.toml --again", 2, &["cannot read `nonesuch.toml`"]),
    mistake("aegis stats demo-run --html tasks.jsonl", 2, &["`tasks.jsonl` exists", "--overwrite"]),
];

fn is_answered(dir: &Path, wrong: &Mistake, code: Option<i32>, said: &str, missing: &mut Vec<String>) {
    if code != Some(wrong.code) {
        missing.push(format!("$ {}\nended with {code:?}, not {}:\n{said}", wrong.line, wrong.code));
    }
    let lacks: Vec<_> = wrong.says.iter().filter(|words| !said.contains(**words)).collect();
    if !lacks.is_empty() || said.contains("panicked") {
        missing.push(format!("$ {}  (in {})\nlacks {lacks:?}:\n{said}", wrong.line, dir.display()));
    }
}

#[tokio::test]
async fn each_is_answered_with_what_where_why_and_what_to_type() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, text) in FILES {
        fs::write(dir.path().join(name), text).expect("written");
    }
    for (name, text) in [
        ("numbers.toml", campaign("numbers.jsonl", "ANSWER", "{question}")),
        ("bad.toml", campaign("bad.jsonl", "ANSWER", "{question}")),
        ("place.toml", campaign("tasks.jsonl", "ANSWER", "{qestion}")),
        ("silent.toml", campaign("tasks.jsonl", "RESULT", "{question}")),
    ] {
        fs::write(dir.path().join(name), text).expect("written");
    }
    let line = |line: &str| line.replace("PIPELINE", PIPELINE).replace("aegis ", &format!("{AEGIS} "));
    let run = async |typed: &str| {
        let mut command = Command::new("sh");
        command.current_dir(dir.path()).env_clear().env("HOME", dir.path()).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let output = command.args(["-c", &line(typed)]).output().await.expect("ran");
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        (output.status.code(), said)
    };
    let (code, said) = run("aegis run --upstream simulator --run first -- PIPELINE").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(MISTAKES.len() >= 20, "twenty and more");
    let mut missing = Vec::new();
    for wrong in MISTAKES {
        let (code, said) = run(wrong.line).await;
        is_answered(dir.path(), wrong, code, &said, &mut missing);
    }
    assert!(missing.is_empty(), "{} of {}:\n\n{}", missing.len(), MISTAKES.len(), missing.join("\n\n"));
}

#[tokio::test]
async fn programs_read_what_is_wrong_as_json() {
    let dir = tempfile::tempdir().expect("a directory");
    for (words, variable, code, message, hint) in [
        (&["show", "none", "--format", "json"][..], "text", 2, "`none` is not a recorded run", true),
        (&["show", "none"], "json", 2, "`none` is not a recorded run", true),
        (&["show", "--format=json", "--no-such-option"], "text", 2, "unexpected argument '--no-such-option'", false),
        (&["runs", "--since"], "json", 2, "a value is required for '--since", false),
    ] {
        let output =
            crate::program::aegis(dir.path()).args(words).env("AEGIS_FORMAT", variable).output().await.expect("it ran");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!((output.status.code(), &said["exit"]), (Some(code), &code.into()), "{said}");
        assert_eq!(said["error"]["code"], "usage", "{said}");
        assert!(said["error"]["message"].as_str().expect("words").starts_with(message), "{said}");
        assert!(said["result"].as_str().expect("words").starts_with(&format!("usage {message}")), "{said}");
        assert_eq!(said["error"]["hint"].is_string(), hint, "{said}");
        assert!(!output.stderr.is_empty(), "people read it, too");
    }
}
