//! Each line that a verb suggests is one that can be typed: it is executed here, and none is refused.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};

use crate::{
    lab::{Client, request},
    program::{AEGIS, Served, aegis, verb},
    scripted::{Scripted, chat_reply, http},
};

pub const TASK: &str =
    "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
pub const CHECK: &str = "grep -q 'ANSWER: 84$'";
/// What no run passes.
const NEVER: &str = "grep -q 'ANSWER: none$'";

/// Longest wait for a line: some make a campaign.
const DEADLINE: Duration = Duration::from_mins(2);
/// The project.
pub const PROJECT: &str = env!("CARGO_MANIFEST_DIR");
/// A campaign of the pipeline over one task, with one plan.
pub const CAMPAIGN: &str = r#"
format = 1
seed = 7
upstream = "simulator"
tasks.file = "tasks.jsonl"
clean.repeats = 2
verify = { answer = 'ANSWER: (.*)', checks = [{ numeric = {} }] }

[[system]]
name = "pipeline"
command = ["{aegis}", "example", "pipeline", "--task", "{question}"]
config = "aegis.toml"
exit_codes = [0, 1]

[[plan]]
file = "PLAN"
"#;

/// The verbs that execute a program.
const EXECUTE: [&str; 5] = ["replay", "fork", "trace", "retry", "prove"];

/// Where runs of all kinds lie, and what stands for the words that only a user knows.
pub struct Runs {
    dir: tempfile::TempDir,
    upstream: Scripted,
}

impl Runs {
    /// Runs that passed, failed, were planted with an error, were served without names, and were imported.
    pub async fn make() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let reply = chat_reply("ANSWER: 84");
        let upstream = Scripted::always(vec![http("200 OK", "application/json", &reply)]).await;
        let runs = Self { dir, upstream };
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::copy(root.join("examples/pipeline/aegis.toml"), runs.at("aegis.toml")).expect("copied");
        for (name, check, plan) in
            [("passed", CHECK, None), ("failed", NEVER, None), ("planted", CHECK, Some("corrupt-number"))]
        {
            let plan = plan.map(|plan| ["--plan", plan]);
            let run = ["run", "--upstream", "simulator", "--check", check, "--run", name];
            let program = ["--", AEGIS, "example", "pipeline", "--task", TASK];
            let words = [&run[..], plan.as_ref().map_or(&[], |plan| &plan[..]), &program].concat();
            let (code, _, talk) = verb(runs.path(), &words).await;
            assert_eq!(code, Some(i32::from(name != "passed")), "{talk}");
        }
        runs.serve().await;
        runs.write_files();
        let (code, out, talk) = verb(runs.path(), &["export", "logs/failed", "--to", "otlp", "--out", "t.jsonl"]).await;
        assert_eq!(code, Some(0), "{out}{talk}");
        runs
    }

    /// A campaign of the pipeline, its plan and its tasks; corrections; a row of Who&When; a run that is damaged.
    fn write_files(&self) {
        let write = |name: &str, text: &str| fs::write(self.at(name), text).expect("written");
        write("tasks.jsonl", &format!("{}\n", json!({"id": "t", "question": TASK, "answer": "84"})));
        write("plan.toml", &fs::read_to_string(PROJECT.to_owned() + "/plans/corrupt-number.toml").expect("a plan"));
        let campaign = CAMPAIGN.replace("PLAN", "plan.toml");
        write("c.toml", &campaign);
        write("corrections.jsonl", "{\"step\": 0, \"reply\": \"Add.\", \"reason\": \"shorter\"}\n");
        fs::create_dir(self.at("ww")).expect("made");
        let row = json!({
            "is_correct": false, "question": "1+1?", "question_ID": "q", "level": "1", "ground_truth": "2",
            "history": [{"content": "3", "name": "Adder", "role": "assistant"}], "mistake_agent": "Adder",
            "mistake_step": "0", "mistake_reason": "it is 2",
        });
        write("ww/1.json", &row.to_string());
        fs::create_dir(self.at("logs/damaged")).expect("made");
        for entry in
            fs::read_dir(self.at("logs/passed")).expect("a run").flatten().filter(|entry| entry.path().is_file())
        {
            fs::copy(entry.path(), self.at("logs/damaged").join(entry.file_name())).expect("copied");
        }
        let log = self.at("logs/damaged/log.jsonl");
        let text = fs::read_to_string(&log).expect("a log");
        fs::write(&log, text.replacen("\"open\"", "\"opem\"", 1)).expect("written");
    }

    /// A run that nobody started here, of agents that nobody named.
    async fn serve(&self) {
        let url = self.url();
        let served = Served::start(self.path(), &["--upstream", &url]).await;
        let body = r#"{"model":"m","messages":[{"role":"system","content":"You add for the customer's cart."},{"role":"user","content":"1+1"}]}"#;
        let mut client = Client::connect(served.address).await;
        let path = "/r/served/v1/chat/completions";
        client.send(&request("POST", path, body.as_bytes(), "connection: close\r\n")).await;
        assert_eq!(client.reply().await.status, 200);
        // A server may stand long after the last call.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        served.stop_and_end(self.path(), &["logs/served"]).await;
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn at(&self, name: &str) -> std::path::PathBuf {
        self.path().join(name)
    }

    fn url(&self) -> String {
        format!("http://{}/v1", self.upstream.address)
    }

    /// A line as a user completes it: words in capitals are theirs to fill in. Executions are few: whether a line is refused
    /// shows before the first.
    fn completed(&self, line: &str) -> String {
        let program = format!("'{AEGIS}' example pipeline --task '{TASK}'");
        let bounded = [("aegis trace ", "aegis trace --budget runs=3 "), ("aegis prove ", "aegis prove --pairs 2 ")];
        let filled = bounded.iter().fold(line.to_owned(), |line, (from, to)| line.replacen(from, to, 1));
        let makes =
            ["aegis init ", "aegis demo ", "aegis import ", "aegis repair "].iter().any(|verb| line.starts_with(verb));
        let file = match () {
            () if line.starts_with("aegis import ") => "t.jsonl",
            () if line.starts_with("aegis plan ") => "plan.toml",
            () if line.contains("--corrections") => "corrections.jsonl",
            () => "c.toml",
        };
        let dir = if makes { format!("new-{}", line.len()) } else { "logs".to_owned() };
        filled
            .replace("--check CMD", &format!("--check \"{NEVER}\""))
            .replace("-- CMD", &format!("-- {program}"))
            .replace("--upstream URL --model NAME", "--upstream simulator")
            .replace("--upstream URL", &format!("--upstream {}", self.url()))
            .replace("--at STEP", "--at 0")
            .replace("[DIR]", "logs")
            .replace("RUN_DIR", "logs/failed")
            .replace("--roster FILE", "--roster aegis.toml")
            .replace("--tasks FILE --task ID", "--tasks tasks.jsonl --task t")
            .replace("--from FORMAT PATH", "--from otlp t.jsonl --log-dir DIR")
            .replace("trace BAD --twin GOOD", "trace logs/failed --twin logs/passed")
            .replace(" PATH", " ww/1.json")
            .replace(" FILE", &format!(" {file}"))
            .replace(" DIR", &format!(" {dir}"))
            .replace(" MERGED", " put-together")
            .replace("aegis retry ", "aegis retry --budget calls=4 ")
    }

    /// Types a line. The code that it ends with, and what it says.
    pub async fn typed(&self, line: &str) -> (Option<i32>, String) {
        let beside = Path::new(AEGIS).parent().expect("a directory").display().to_string();
        let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", line]).current_dir(self.path()).env_clear().env("HOME", self.path()).env("PATH", path);
        shell.stdin(std::process::Stdio::null()).kill_on_drop(true);
        let output =
            tokio::time::timeout(DEADLINE, shell.output()).await.expect("within the deadline").expect("started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }
}

/// The lines that a text suggests: what stands behind `next` and below it, what is quoted as a command, what stands bare in a
/// hint or behind three spaces, and what follows `to prove it by execution:`. Three spaces end a line.
pub fn suggested(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    // A script's own comments say what wrote it.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let said = line.trim_start_matches("RESULT").trim();
        let quoted = said.split('`').skip(1).step_by(2).filter(|words| words.starts_with("aegis "));
        lines.extend(quoted.map(str::to_owned));
        let typed = said.trim_start_matches("next:").trim_start_matches("next").trim();
        let bare = match () {
            () if typed.starts_with("aegis ") => Some(typed),
            () if said.starts_with("hint:") && !said.contains("`aegis ") => {
                said.find("aegis ").and_then(|at| said.get(at..))
            }
            () => said.find("   aegis ").and_then(|at| said.get(at + 3..)),
        };
        for line in bare.into_iter().flat_map(|bare| bare.split("    then, to prove it by execution: ")) {
            lines.extend(line.split("   ").next().map(|line| line.trim().to_owned()));
        }
    }
    lines.retain(|line| line.split(' ').nth(1).is_some_and(|verb| verb != "run"));
    lines.sort();
    lines.dedup();
    lines
}

/// What a run says of itself can be done with it, line by line.
async fn can(runs: &Runs, run: &str) -> Vec<(&'static str, Result<String, String>)> {
    let (code, out, talk) = verb(runs.path(), &["show", run, "--format", "json"]).await;
    assert_eq!(code, Some(0), "{talk}");
    let shown: Value = serde_json::from_str(out.trim()).expect("JSON");
    let said = |verb| match (&shown["can"][verb]["line"], &shown["can"][verb]["why"]) {
        (Value::String(line), Value::Null) => Ok(line.clone()),
        (Value::Null, Value::String(why)) => Err(why.clone()),
        said => panic!("{run} {verb}: {said:?}"),
    };
    EXECUTE.into_iter().map(|verb| (verb, said(verb))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_says_can_be_done_can_be_done_and_the_rest_is_refused() {
    let runs = Runs::make().await;
    let (code, out, talk) = verb(runs.path(), &["import", "--from", "otlp", "t.jsonl", "--log-dir", "imported"]).await;
    assert_eq!(code, Some(0), "{out}{talk}");
    let imported = suggested(&out).first().expect("a line").trim_start_matches("aegis show ").to_owned();
    let mut told = Vec::new();
    for run in ["logs/passed", "logs/failed", "logs/planted", "logs/served", &imported] {
        for (verb, said) in can(&runs, run).await {
            told.push((run.to_owned(), verb, said.is_ok()));
            let line = said.clone().unwrap_or_else(|_| {
                // What is refused, is refused with everything that it could want.
                let more = if verb == "trace" {
                    "--redraw "
                } else if verb == "fork" {
                    "--at 0 "
                } else {
                    ""
                };
                let check = if verb == "replay" { "" } else { "--check CMD --upstream URL " };
                format!("aegis {verb} {run} {more}{check}-- CMD")
            });
            let (code, talk) = runs.typed(&runs.completed(&line)).await;
            assert_eq!(code == Some(2), said.is_err(), "`{line}` of {run}: {said:?}\n{talk}");
        }
    }
    let refused: Vec<(&str, &str)> =
        told.iter().filter(|(_, _, can)| !can).map(|(run, verb, _)| (run.as_str(), *verb)).collect();
    let all = EXECUTE.map(|verb| (imported.as_str(), verb));
    let some = [
        ("logs/passed", "trace"),
        ("logs/passed", "retry"),
        ("logs/passed", "prove"),
        ("logs/failed", "prove"),
        ("logs/served", "retry"),
        ("logs/served", "prove"),
    ];
    assert_eq!(refused, [&some[..], &all].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_that_a_verb_suggests_can_be_typed() {
    let runs = Runs::make().await;
    let trace = ["trace", "logs/planted", "--twin", "logs/passed", "--check", CHECK, "--again", "--budget", "runs=6"];
    let said: &[&[&str]] = &[
        &["show", "logs/failed"],
        &["show", "logs/planted"],
        &["show", "logs/served"],
        &["agents", "logs/served"],
        &["attribute", "logs/failed", "--method", "rules"],
        &["attribute", "logs/planted", "--method", "alignment"],
        &["attribute", "logs/served", "--method", "rules"],
        &["import", "--from", "otlp", "t.jsonl", "--log-dir", "imported"],
        &trace,
        &["trace", "logs/passed", "--redraw", "--check", CHECK, "--again"],
        &["prove", "logs/failed", "--check", CHECK, "--again"],
        &["prove", "logs/served", "--check", CHECK, "--again"],
        &["replay", "logs/served", "--again"],
        &["fork", "logs/failed", "--at", "1"],
        &["show", "logs/nothing"],
        &["run", "--upstream", "simulator", "--run", "again", "--", AEGIS, "example", "pipeline", "--task", TASK],
    ];
    assert!(assert_typed(&runs, said).await >= 12);
}

/// Runs these, types each line that they suggest, and gives how many there were. What listens until it is ended is not typed.
pub async fn assert_typed(runs: &Runs, said: &[&[&str]]) -> usize {
    let mut lines = Vec::new();
    for words in said {
        let ran = tokio::time::timeout(DEADLINE, aegis(runs.path()).args(*words).output()).await;
        let ran = ran.expect("within the deadline").expect("started");
        let [out, talk] = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        lines.extend(suggested(&(out + "\n" + &talk)).into_iter().map(|line| (words.join(" "), line)));
    }
    lines.sort_by(|a, b| a.1.cmp(&b.1));
    lines.dedup_by(|a, b| a.1 == b.1);
    lines.retain(|(_, line)| !["view", "serve"].contains(&line.split(' ').nth(1).unwrap_or_default()));
    let mut refused = Vec::new();
    for (from, line) in &lines {
        let typed = runs.completed(line);
        let capital = |word: &str| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        assert!(!typed.split([' ', '\'', '"']).any(|word| capital(word) && word != "ANSWER"), "{from}: `{typed}`");
        let (code, talk) = runs.typed(&typed).await;
        if code.is_none_or(|code| code == 2) {
            refused.push(format!("`{line}`, which `{from}` suggests, ends with {code:?}: {talk}"));
        }
    }
    assert!(refused.is_empty(), "{}\n{lines:?}", refused.join("\n"));
    lines.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_says_where_it_came_from_and_a_run_how_long_its_calls_took() {
    let runs = Runs::make().await;
    let fork = ["fork", "logs/passed", "--at", "1", "--keep", "--check", CHECK, "--again", "--format", "json"];
    let (_, out, talk) = verb(runs.path(), &fork).await;
    let made: Value = serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {out}{talk}"));
    let made = made["samples"][0]["run_dir"].as_str().expect("a directory").to_owned();
    let origins = async |run: &str| -> Vec<String> {
        let (_, out, _) = verb(runs.path(), &["show", run, "--format", "json"]).await;
        let shown: Value = serde_json::from_str(out.trim()).expect("JSON");
        let steps = shown["steps"].as_array().expect("steps").iter();
        steps.map(|step| step["attempts"][0]["origin"].as_str().expect("a word").to_owned()).collect()
    };
    assert_eq!(origins(&made).await[..3], ["recorded", "recorded", "live"]);
    assert!(origins("logs/passed").await.iter().all(|origin| origin == "live"));
    let (_, out, _) = verb(runs.path(), &["show", &made]).await;
    assert_eq!(out.matches("200 recorded").count(), 2, "{out}");
    // The altered reply of a run, given again.
    let fork = ["fork", "logs/planted", "--at", "2", "--check", CHECK, "--again", "--format", "json"];
    let (_, out, _) = verb(runs.path(), &fork).await;
    let made: Value = serde_json::from_str(out.trim()).expect("JSON");
    let again = origins(made["samples"][0]["run_dir"].as_str().expect("a directory")).await;
    assert!(again.iter().any(|origin| origin == "altered_again"), "{again:?}");
    // A server may stand long after the last call.
    let (_, out, _) = verb(runs.path(), &["runs", "logs", "--format", "json"]).await;
    let listed: Value = serde_json::from_str(out.trim()).expect("JSON");
    let served = listed["runs"].as_array().expect("rows").iter().find(|row| row["run"] == "served").expect("the run");
    assert!(served["seconds"].as_f64().is_some_and(|seconds| seconds < 0.5), "{served}");
    let (_, out, _) = verb(runs.path(), &["import", "--from", "otlp", "t.jsonl", "--log-dir", "imported"]).await;
    let imported = suggested(&out).first().expect("a line").trim_start_matches("aegis show ").to_owned();
    assert!(origins(&imported).await.iter().all(|origin| origin == "remade"));
    let (_, out, _) = verb(runs.path(), &["show", &imported, "--step", "0"]).await;
    assert!(out.contains("(remade from a trace)") && !out.contains("masked"), "{out}");
}
