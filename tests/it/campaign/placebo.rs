//! A backend whose words depend on every byte that it is asked: any edit may turn an outcome there, and does so each time. What
//! is verified of it must be what an error does, and not what any change does.

use std::fs;

use super::{Bench, PIPELINE, backend::Backend, plans, tasks};
use crate::program::{AEGIS, verb};

/// Polite words to each agent: nothing that an agent could be blamed for.
const POLITE: &[(&str, &str)] = &[
    ("planner", "Thank you."),
    ("solver", "Thank you."),
    ("solver", "Please."),
    ("critic", "Thank you."),
    ("critic", "Please."),
    ("critic", "Good luck."),
    ("critic", "Best regards."),
    ("critic", "No hurry."),
];

fn polite(agent: &str, text: &str) -> String {
    format!(
        "[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"FM-1.1\"\nwhen.call = 0\nside = \"request\"\n\
         manipulator.append_instruction = {{ text = \"{text}\" }}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn where_any_change_turns_outcomes_an_error_is_verified_and_a_polite_word_is_not() {
    let backend = Backend::chaotic(12).await;
    let mut text = format!("{}proof.repeatable = true\n{PIPELINE}", tasks(12));
    for number in 0..POLITE.len() {
        text.extend(["[[plan]]\nfile = \"polite-", &number.to_string(), ".toml\"\n"]);
    }
    let bench = Bench::new(&(text + &plans(&["corrupt-number"], "\"pipeline\"")));
    for (number, (agent, words)) in POLITE.iter().enumerate() {
        fs::write(bench.dir.path().join(format!("polite-{number}.toml")), polite(agent, words)).expect("written");
    }
    let (code, _, said) = bench.run(&["--upstream", &backend.url]).await;
    assert_eq!(code, Some(0), "{said}");
    let report = bench.report();
    let cells = report["cells"].as_array().expect("cells");
    let polite = |cell: &&serde_json::Value| cell["plan"].as_str().is_some_and(|plan| plan.starts_with("polite"));
    let flipped =
        |cell: &&serde_json::Value| !["benign", "not_injected"].contains(&cell["class"].as_str().unwrap_or(""));
    let verified = |cell: &&serde_json::Value| cell["class"] == "verified";
    let harmless: Vec<_> = cells.iter().filter(polite).filter(flipped).collect();
    assert!(harmless.len() >= 2, "some polite words turn the outcome, each time: {said}");
    assert_eq!(harmless.iter().filter(|cell| verified(cell)).count(), 0, "{harmless:#?}");
    let errors: Vec<_> = cells.iter().filter(|cell| !polite(cell)).filter(flipped).collect();
    let shown = errors.iter().filter(|cell| verified(cell)).count();
    assert!(!errors.is_empty() && 10 * shown >= 8 * errors.len(), "{shown} of {}: {errors:#?}", errors.len());
    assert!(said.contains("does not repeat itself"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_neutral_words_do_what_the_planted_ones_did_the_place_is_fragile_and_nothing_is_verified() {
    let backend = Backend::stumbling(&["advance", "nice day", "no hurry", "welcome"]).await;
    let bench = Bench::new(&format!("{}{PIPELINE}[[plan]]\nfile = \"polite.toml\"\n", tasks(12)));
    fs::write(bench.dir.path().join("polite.toml"), polite("critic", "Have a nice day.")).expect("written");
    let (code, _, said) = bench.run(&["--upstream", &backend.url]).await;
    assert!(code.is_some_and(|code| code < 2), "{said}");
    let report = bench.report();
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(report["funnel"]["flipped"], 12, "these words turn each outcome: {said}");
    let fragile: Vec<_> = cells.iter().filter(|cell| cell["class"] == "void").collect();
    let verified = cells.iter().filter(|cell| cell["class"] == "verified");
    // A control gets such words about once in seven times; where none of about seven did, nothing tells the planted ones apart.
    assert!(fragile.len() >= 8, "{} of 12: {said}", fragile.len());
    for cell in verified {
        assert_eq!(cell["executed"]["null"]["failed"], 0, "{cell:#}");
    }
    let why = "fragile: a neutral change alone failed in each of 4 executions";
    for cell in &fragile {
        assert_eq!(cell["why"], why, "{cell:#}");
        let label = bench.out().join("logs").join(cell["run"].as_str().expect("a run")).join("label.json");
        let label: serde_json::Value = serde_json::from_slice(&fs::read(label).expect("a label")).expect("JSON");
        assert_eq!(label["status"], "void", "{label:#}");
        let shams = label["evidence"]["executed"]["shams"].as_array().expect("shams");
        assert_eq!(shams.last().expect("a sham")["failed"], 4, "{label:#}");
    }
    let calls = backend.calls();
    let (code, _, again) = bench.run(&["--resume", "--upstream", &backend.url]).await;
    assert!(code.is_some_and(|code| code < 2), "{again}");
    assert_eq!((bench.report()["classes"].clone(), backend.calls()), (report["classes"].clone(), calls), "{again}");
    // `prove` asks the same, by draws of its own: in each run there is a chance of three in four that one of its controls gets such words.
    let mut proven = String::new();
    for cell in &fragile {
        let run = format!("out/logs/{}", cell["run"].as_str().expect("a run"));
        let (_, said, error) = verb(bench.dir.path(), &["prove", &run, "--again", "--upstream", &backend.url]).await;
        proven.extend([said, error]);
        if proven.contains("label void") {
            break;
        }
    }
    assert!(proven.contains("label void") && proven.contains(why), "{proven}");
}

/// The same of errors that nobody planted. Each failure here comes of the bytes that were asked; the plan in other words that mean the
/// same makes other bytes, and the run passes, each time.
#[tokio::test(flavor = "multi_thread")]
async fn where_any_change_turns_outcomes_a_trace_names_no_step_for_other_words() {
    let backend = Backend::chaotic(4).await;
    let dir = tempfile::tempdir().expect("a directory");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(root.join("examples/pipeline/aegis.toml"), dir.path().join("aegis.toml")).expect("copied");
    let tasks = fs::read_to_string(root.join("examples/tasks.jsonl")).expect("tasks");
    let tasks = tasks.lines().map(|task| serde_json::from_str::<serde_json::Value>(task).expect("JSON"));
    let (mut traced, mut healed, mut named) = (0, 0, 0);
    for (number, task) in tasks.take(24).enumerate() {
        let of = |name: &str| task[name].as_str().expect("text").to_owned();
        let (run, check, question) =
            (format!("r{number}"), format!("grep -q 'ANSWER: {}$'", of("answer")), of("question"));
        let program = ["--", AEGIS, "example", "pipeline", "--task", &question];
        let recording = ["run", "--upstream", &backend.url, "--check", &check, "--run", &run];
        let (code, _, _) = verb(dir.path(), &[&recording[..], &program].concat()).await;
        if code != Some(1) {
            continue;
        }
        let run = format!("logs/{run}");
        let (_, shown, _) = verb(dir.path(), &["show", &run, "--format", "json"]).await;
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let plan = shown["steps"][0]["text"].as_str().expect("the plan").to_owned();
        let corrected =
            serde_json::json!({"step": 0, "reply": format!("{plan}\nThat is the plan."), "reason": "in other words"});
        fs::write(dir.path().join("corrections.jsonl"), format!("{corrected}\n")).expect("written");
        let line = format!("trace {run} --corrections corrections.jsonl --label flip --pairs 12 --check");
        let trace = [&line.split(' ').collect::<Vec<_>>()[..], &[&check]].concat();
        let (code, out, talk) = verb(dir.path(), &[&trace[..], &program].concat()).await;
        assert!(matches!(code, Some(0 | 1)), "{out}{talk}");
        let is_labelled = dir.path().join(&run).join("label.json").exists();
        assert_eq!(code == Some(0), is_labelled, "{out}{talk}");
        traced += 1;
        named += u32::from(is_labelled);
        let found: serde_json::Value =
            serde_json::from_slice(&fs::read(dir.path().join(&run).join("trace.json")).expect("a trace"))
                .expect("JSON");
        healed += u32::from(found["steps"][0]["executed"]["treated"]["passed"].as_u64() > Some(0));
    }
    assert!(traced >= 4 && healed >= 3, "{traced} failures were traced, {healed} healed");
    // The promise is one in a hundred: two of so few would break it.
    assert!(named <= 1, "{named} of {traced} were named");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_own_sentences_are_among_the_neutral_changes_of_campaign_and_proof() {
    const OWN: &str = "Nimm dir die Zeit";
    let backend = Backend::start().await;
    let system = PIPELINE.replace("ROOT/examples/pipeline/aegis.toml", "aegis.toml");
    let bench = Bench::new(&format!("{}{system}{}", tasks(3), plans(&["corrupt-number"], "\"pipeline\"")));
    let config = bench.dir.path().join("aegis.toml");
    let shipped = include_str!("../../../examples/pipeline/aegis.toml");
    let with =
        |own: &[String]| fs::write(&config, format!("{shipped}\n[proof]\nsentences = {own:?}\n")).expect("written");
    with(&["Take 5 minutes.".to_owned()]);
    let (code, _, said) = bench.run(&["--upstream", &backend.url]).await;
    assert_eq!(code, Some(2), "{said}");
    let refusal = "`aegis.toml`: `sentences` of `[proof]` has \"Take 5 minutes.\": expected no digit";
    assert!(said.contains(refusal), "{said}");
    // So many that nearly every sentence that is drawn is one of them.
    let own: Vec<String> = ('A'..='Z').chain('a'..='z').map(|person| format!("{OWN}, {person}.")).collect();
    with(&own);
    let (_, _, said) = bench.run(&["--upstream", &backend.url]).await;
    let answered = backend.answered.lock().expect("bodies").clone();
    assert!(answered.iter().any(|body| String::from_utf8_lossy(body).contains(OWN)), "{said}");
    let report = bench.report();
    let cells = report["cells"].as_array().expect("cells");
    let verified = cells.iter().find(|cell| cell["class"] == "verified").expect("a verified error");
    let run = format!("out/logs/{}", verified["run"].as_str().expect("a run"));
    let prove = ["prove", &run, "--again", "--config", "aegis.toml", "--upstream", &backend.url];
    let (_, said, error) = verb(bench.dir.path(), &prove).await;
    let proof = fs::read_to_string(bench.dir.path().join(run).join("proof.json")).expect("what was executed");
    assert!(proof.contains("\"sentences\": \""), "{proof}{said}{error}");
}
