//! `--tracer`: a trained model is asked in the words of its rows, wherever a verb wants to know who erred.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    attribute::{ScriptedJudge, rows},
    program::{AEGIS, aegis},
};

const TASK: &str = "Mia has 12 boxes with 8 pencils each. She gives away 12. How many pencils are left?";
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
const CHECK: &str = "grep -q 'ANSWER: 84'";

async fn say(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = aegis(dir).args(arguments).output().await.expect("it ran");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

async fn record(dir: &Path, run: &str, options: &[&str]) -> (Option<i32>, String) {
    let head = ["run", "--upstream", "simulator", "--config", CONFIG, "--run", run, "--check", CHECK];
    let tail = ["--", AEGIS, "example", "pipeline", "--task", TASK];
    say(dir, &[&head[..], options, &tail].concat()).await
}

/// A tracer that blames solver and critic where a number is wrong, and nobody elsewhere.
async fn tracer() -> ScriptedJudge {
    ScriptedJudge::start(|body| {
        let asked = body["messages"][0]["content"].as_str().unwrap_or_default();
        let said = if asked.contains("ANSWER: 84") {
            json!({"faulty_agents": []})
        } else {
            json!({"faulty_agents": [{"agent_name": "Solver", "step": 1, "error_type": "FM-2.6"},
                {"agent_name": "critic", "step": 2, "error_type": "FM-3.3"}]})
        };
        (200, said.to_string())
    })
    .await
}

fn content(asked: &Value) -> String {
    asked["messages"][0]["content"].as_str().expect("text").to_owned()
}

/// The two questions of the tracer that was asked after so many others, in an order of their own.
fn asked_by(model: &ScriptedJudge, number: usize) -> Vec<Value> {
    let mut asked: Vec<Value> = model.asked().into_iter().skip(number * 2).take(2).collect();
    asked.sort_by_key(content);
    asked
}

#[tokio::test]
async fn a_tracer_says_a_set_or_nobody_of_failures_and_clean_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), tracer().await);
    record(dir, "bad", &["--plan", "corrupt-number"]).await;
    record(dir, "good", &[]).await;
    for (number, name) in ["aegis", "sft", "grpo", "verl"].into_iter().enumerate() {
        let out = format!("{name}.jsonl");
        let asked = ["attribute", "logs", "--tracer", name, "--upstream", &model.url(), "--model", "m", "--out", &out];
        let (code, text) = say(dir, &[&asked[..], &["--log-dir", "judged"]].concat()).await;
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("2 runs, 2 predictions, 0 abstained"), "{text}");
        let said: Vec<Value> = rows(&dir.join(&out));
        let of = |id: &str| said.iter().find(|row| row["id"] == id).expect(id);
        let (bad, good) = (of("bad"), of("good"));
        assert_eq!((&bad["set"], &good["set"]), (&true.into(), &true.into()));
        assert_eq!((&good["predictions"], &good["abstained"]), (&json!([]), &Value::Null), "nobody is an answer");
        let named = bad["predictions"].as_array().expect("a set").iter().map(|one| &one["agent"]).collect::<Vec<_>>();
        assert_eq!(named, ["solver", "critic"]);
        let compat = if name == "aegis" { Value::from("aegis") } else { Value::Null };
        assert_eq!((&bad["method"], &bad["compat"]), (&name.into(), &compat));
        let asked = &asked_by(&model, number)[0];
        assert_eq!(asked["messages"].as_array().map(Vec::len), Some(1), "as the rows ask: {asked}");
        assert!(asked.get("response_format").is_none() && asked["messages"][0]["role"] == "user", "{asked}");
    }
    // The runs are asked side by side, so that the questions of a tracer come in any order.
    let words = |number: usize| asked_by(&model, number).iter().map(content).collect::<Vec<_>>();
    assert_eq!(words(1), words(2), "one function writes the rows of all");
    assert!(words(0).iter().all(|asked| asked.ends_with("## YOUR ANALYSIS (JSON ONLY):\n")));
    // The public script asks for one error of a failed run, and nobody else is asked.
    let asked = ["attribute", "logs", "--tracer", "whowhen", "--upstream", &model.url(), "--model", "m"];
    let (_, text) = say(dir, &[&asked[..], &["--log-dir", "judged"]].concat()).await;
    assert!(text.contains("RESULT  finding no prediction: unreadable"), "{text}");
    assert_eq!(model.asked().len(), 9, "two runs four times, and the failed one");
    // A run that succeeded, by itself.
    let alone = ["attribute", "logs/good", "--tracer", "sft", "--upstream", &model.url(), "--model", "m"];
    let (code, text) = say(dir, &[&alone[..], &["--log-dir", "judged"]].concat()).await;
    assert!(code == Some(0) && text.contains("RESULT  ok nobody erred"), "{text}");
}

#[tokio::test]
async fn what_was_exported_is_asked_by_every_verb_at_the_place_that_its_file_names() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dir, model) = (dir.path(), tracer().await);
    record(dir, "bad", &["--plan", "corrupt-number"]).await;
    record(dir, "good", &[]).await;
    let (code, text) = say(dir, &["prove", "logs", "--again"]).await;
    assert_eq!(code, Some(0), "{text}");
    let (code, text) =
        say(dir, &["export", "logs", "--to", "sft", "--out", "train.jsonl", "--one-file", "--inputs", "none"]).await;
    assert_eq!(code, Some(0), "{text}");
    fs::write(
        dir.join("mine.toml"),
        format!("prompt = \"train.jsonl\"\nupstream = \"{}\"\nmodel = \"trained\"\n", model.url()),
    )
    .expect("written");
    let exported = |id: &str| {
        let row = rows(&dir.join("train.jsonl")).into_iter().find(|row| row["id"] == id).expect("a row");
        row["messages"][0]["content"].clone()
    };
    let last = || model.asked().pop().expect("a question");
    let (code, text) = say(dir, &["attribute", "logs/bad", "--tracer", "mine.toml", "--log-dir", "judged"]).await;
    assert!(code == Some(0) && text.contains("bad  solver at step 1, critic at step 2"), "{text}");
    let question = content(&last());
    let row = exported("bad").as_str().expect("text").to_owned();
    // A recorded run knows its question by what its first agent was given.
    let trace = |text: &str| text.split_once("Step 0 - ").expect("a trace").1.to_owned();
    assert_eq!(trace(&question), trace(&row), "the words of the row");
    assert_eq!(last()["model"], "trained");
    // The run's own upstream is the simulator; the tracer is asked where its file says.
    let (code, text) = record(dir, "failed", &["--plan", "corrupt-number", "--tracer", "mine.toml"]).await;
    assert!(code == Some(1) && text.contains("mine            solver at step 1, critic at step 2"), "{text}");
    let trace = ["trace", "logs/bad", "--again", "--redraw", "--label", "flip", "--tracer", "mine.toml"];
    let (_, text) = say(dir, &trace).await;
    assert!(text.contains("prior    mine: steps 1, 2"), "{text}");
    let (_, text) = say(dir, &["retry", "logs/bad", "--again", "--tracer", "mine.toml", "--rounds", "1"]).await;
    assert!(text.contains("solver") && text.contains("executions"), "{text}");
    assert_eq!(model.asked().len(), 4, "one question a verb");
}

#[tokio::test]
async fn what_is_no_tracer_says_what_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    record(dir, "bad", &["--plan", "corrupt-number"]).await;
    let files = [
        ("rows.jsonl", "{}\n"),
        ("prompt.txt", "Who erred?\n"),
        ("odd.toml", "prompt = \"sft\"\nurl = \"http://127.0.0.1:1\"\n"),
        ("a.toml", "prompt = \"sft\"\nupstream = \"http://127.0.0.1:1/v1\"\n"),
        ("b.toml", "prompt = \"sft\"\nupstream = \"http://127.0.0.1:2/v1\"\n"),
        (
            "told.jsonl.manifest.json",
            "{\"prompts\": {\"gold_answer\": true, \"inputs\": \"new\", \"budget\": null, \"longest_tokens\": 1}}",
        ),
    ];
    for (name, text) in files {
        fs::write(dir.join(name), text).expect("written");
    }
    for (options, said) in [
        (&["--tracer", "sfd"][..], "`sfd` is no tracer and no file; did you mean `sft`?"),
        (&["--tracer", "rows.jsonl"], "no manifest lies beside them"),
        (&["--tracer", "prompt.txt"], "lacks `{conversation}`"),
        (&["--tracer", "odd.toml"], "unknown field `url`"),
        (&["--tracer", "a.toml", "--tracer", "b.toml"], "the tracers are at different places"),
        (&["--tracer", "a.toml", "--tracer", "a.toml"], "two methods are called `a`"),
        (&["--tracer", "told.jsonl.manifest.json"], "tell the right answer"),
        (&["--tracer", "sft", "--compat", "whowhen"], "`--tracer whowhen` asks as that script asks"),
        (&["--tracer", "sft"], "`sft` asks a model, and none is named"),
    ] {
        let (code, text) = say(dir, &[&["attribute", "logs/bad"][..], options].concat()).await;
        assert!(code == Some(2) && text.contains(said), "{options:?}: {text}");
    }
    let unchecked = ["run", "--upstream", "simulator", "--tracer", "sft", "--", "true"];
    let (code, text) = say(dir, &unchecked).await;
    assert!(code == Some(2) && text.contains("no check is named"), "{text}");
}
