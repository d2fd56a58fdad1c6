//! What is executed for a claim, and what comes of it when runs contradict each other, or say nothing.

use std::{fs, time::Duration};

use aegis::{recording, trajectory::LabelStatus};
use hyper::StatusCode;
use serde_json::Value;

use super::{Bench, DEBATE, PIPELINE, backend::Backend, json, plans, tasks};

/// A system that does something around the example pipeline; `N` is the number of the run, from 0.
fn counted(script: &str) -> String {
    let count = "N=$(cat n 2>/dev/null || echo 0); echo $((N + 1)) > n; RUN=$(\"$1\" example pipeline --task \"$2\");";
    format!(
        "[[system]]\nname = \"s\"\ncommand = [\"sh\", \"-c\", '''{count} {script}''', \"sh\", \"{{aegis}}\", \"{{question}}\"]\n\
         config = \"ROOT/examples/pipeline/aegis.toml\"\ntimeout_s = 60\n"
    )
}

fn plan(side: &str, manipulator: &str) -> String {
    format!(
        "[[injection]]\nagent = \"planner\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nside = \"{side}\"\nmanipulator.{manipulator}\n"
    )
}

/// An edit of the planner's reply that harms nobody.
const HARMLESS: &str = "replace_text = { pattern = '\\.\\z', with = \" .\" }";

fn of_kind(bench: &Bench, kind: &str) -> Vec<Value> {
    bench.cells().into_iter().filter(|cell| cell["kind"]["cell"] == kind).collect()
}

#[tokio::test]
async fn a_flip_that_the_same_edit_does_not_repeat_is_contradicted() {
    // Run 2 is the first with the edit: it alone prints a wrong answer.
    let text =
        format!("upstream = \"simulator\"\n{}{}", tasks(1), counted("[ $N = 2 ] && RUN='ANSWER: 7'; echo \"$RUN\""));
    let bench = Bench::new(&format!("{text}[[plan]]\nfile = \"p.toml\"\n"));
    fs::write(bench.dir.path().join("p.toml"), plan("response", HARMLESS)).expect("written");
    let (code, _, said) = bench.run(&["--jobs", "1"]).await;
    assert_eq!((code, bench.classes()), (Some(0), vec!["flaky_task".to_owned()]), "{said}");
    let row = bench.report()["cells"][0].clone();
    let executed = &row["executed"];
    assert!(executed["treated"]["passed"].as_u64() >= Some(8), "{row}");
    assert!(executed["null"]["failed"] == 0 && executed["e"].as_f64() < Some(1.0), "{row}");
    let run = row["run"].as_str().expect("an id");
    let label = recording::read(&bench.out().join("logs").join(run)).expect("a recording").label.expect("a label");
    assert_eq!(label.status, LabelStatus::Contradicted);
    assert_eq!(fs::read_to_string(bench.out().join("dataset.jsonl")).expect("a dataset"), "");
    assert_eq!(json(&bench.out().join("dataset.json"))["claims"]["begun"], 1);
}

#[tokio::test]
async fn siblings_are_one_claim_and_count_for_it() {
    // Two runs of one plan, the same bytes: the first flips, the second does not.
    let text =
        format!("upstream = \"simulator\"\n{}{}", tasks(1), counted("[ $N = 2 ] && RUN='ANSWER: 7'; echo \"$RUN\""));
    let bench = Bench::new(&format!("{text}[[plan]]\nfile = \"p.toml\"\nrepeats = 2\n"));
    fs::write(bench.dir.path().join("p.toml"), plan("response", HARMLESS)).expect("written");
    let (_, _, said) = bench.run(&["--jobs", "1"]).await;
    let report = bench.report();
    let [first, second] = [0, 1].map(|number| report["cells"][number].clone());
    assert_eq!((&first["class"], &second["class"]), (&"flaky_task".into(), &"benign".into()), "{said}");
    assert_eq!((&first["claim"], &first["executed"]), (&second["claim"], &second["executed"]));
    assert_eq!(json(&bench.out().join("dataset.json"))["claims"]["begun"], 1);
    // The benign run stays data of its own: neither is dropped for the other.
    let benign = fs::read_to_string(bench.out().join("benign.jsonl")).expect("a file");
    assert_eq!(benign.lines().count(), 1);
}

#[tokio::test]
async fn a_repeat_delivers_the_same_bytes_and_the_null_arm_asks_what_was_recorded() {
    let order = "replace_text = { pattern = 'ANSWER: \\d+', with = \"ANSWER: 7\", messages = \"user\" }";
    let backend = Backend::start().await;
    let bench = Bench::new(&format!("{}{DEBATE}[[plan]]\nfile = \"p.toml\"\n", tasks(1)));
    fs::write(bench.dir.path().join("p.toml"), plan("request", order).replace("planner", "judge")).expect("written");
    let (code, _, said) = bench.run(&["--upstream", &backend.url]).await;
    assert_eq!((code, bench.classes()), (Some(0), vec!["verified".to_owned()]), "{said}");
    let executed = bench.report()["cells"][0]["executed"].clone();
    assert_eq!((&executed["null"]["passed"], &executed["treated"]["failed"]), (&6.into(), &6.into()), "{executed}");
    let run = |cell: &Value| {
        let run = cell["run"].as_str().expect("an id").to_owned();
        recording::read(&bench.out().join("logs").join(run)).expect("a recording").trajectory
    };
    let injected = run(&of_kind(&bench, "injected")[0]);
    let edited = injected.steps.iter().find(|step| step.request_sent.is_some()).expect("an edited request");
    let sent = edited.request_sent.clone().expect("it");
    let asked = |body: &[u8]| backend.answered.lock().expect("the lock").iter().filter(|known| *known == body).count();
    // The first run as it was planned, and six repeats, each with a neutral change of its own.
    assert_eq!((asked(&sent), says_as(&backend, &sent)), (1, 7));
    // Two clean runs, and six control executions that leave the reference before that reply, with changes of their own too.
    assert_eq!((asked(&edited.request), says_as(&backend, &edited.request)), (2, 8));
    let controls = of_kind(&bench, "null");
    assert!(
        controls.len() == 6
            && controls.iter().all(|cell| cell["kind"]["step"] == edited.step && cell["kind"]["replied"] == false)
    );
    for again in of_kind(&bench, "again") {
        let step = run(&again).steps[edited.step as usize].request.clone();
        assert_eq!(step, edited.request, "the program asks what it asked");
    }
    a_repeat_says_that_it_is_one(&bench).await;
}

/// How many requests ask what this one asks, neutral changes aside: of their last message the words up to its last figure count.
fn says_as(backend: &Backend, body: &[u8]) -> usize {
    let words = |body: &[u8]| {
        let asked: Value = serde_json::from_slice(body).expect("JSON");
        let last = asked["messages"].as_array().and_then(|messages| messages.last()).expect("a message");
        let text = last["content"].as_str().expect("words");
        let end = text.rfind(|c: char| c.is_ascii_digit()).unwrap_or_default();
        text[..end].split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let wanted = words(body);
    backend.answered.lock().expect("the lock").iter().filter(|known| words(known) == wanted).count()
}

/// Nothing in a repeat's record is marked as altered, because the altered bytes are given again: `show` must not say that
/// none were delivered.
async fn a_repeat_says_that_it_is_one(bench: &Bench) {
    let repeats = of_kind(bench, "again");
    assert!(!repeats.is_empty());
    for repeat in repeats {
        let (run, of) = (repeat["run"].as_str().expect("an id"), repeat["kind"]["of"].as_str().expect("an id"));
        let run = format!("logs/{run}");
        for (more, says) in [
            (&[][..], "label    none: the run is an execution of a proof".to_owned()),
            (&[], format!("note     repeats {of}: judge call 0 got the altered bytes that it got there")),
            (&["--before-after"], format!("nothing was altered anew: what run {of} got altered was given again")),
        ] {
            let shown =
                crate::program::aegis(&bench.out()).args(["show", &run]).args(more).output().await.expect("ran");
            let shown = String::from_utf8_lossy(&shown.stdout);
            assert!(shown.contains(&says) && !shown.contains("no altered byte"), "{says}: {shown}");
        }
    }
}

#[tokio::test]
async fn a_system_that_does_not_repeat_itself_loses_the_declaration() {
    // Right each time, and written otherwise every other time: what the checker reads differs.
    let script = "[ $((N % 2)) = 0 ] || RUN=\"$RUN.0\"; echo \"$RUN\"";
    let corrupt = plans(&["corrupt-number"], "\"s\"");
    let text = format!("upstream = \"simulator\"\nproof.repeatable = true\n{}{}{corrupt}", tasks(1), counted(script));
    let bench = Bench::new(&text);
    let (code, _, said) = bench.run(&["--jobs", "1"]).await;
    assert_eq!((code, bench.classes()), (Some(0), vec!["verified".to_owned()]), "{said}");
    assert!(said.contains("`s` does not repeat itself: its claims were shown by pairs instead"), "{said}");
    let executed = bench.report()["cells"][0]["executed"].clone();
    assert!(executed["e"].as_f64() > Some(1000.0) && executed["repeatable"] != true, "{executed}");
}

#[tokio::test]
async fn an_upstream_that_fails_makes_claims_void() {
    // The clean runs and the injected one are answered; then nothing is.
    let down =
        Backend::refusing(|call| (call >= 8).then_some((StatusCode::SERVICE_UNAVAILABLE, "0")), Duration::ZERO).await;
    let bench = Bench::new(&format!("{}{PIPELINE}{}", tasks(1), plans(&["corrupt-number"], "\"pipeline\"")));
    let (_, _, said) = bench.run(&["--upstream", &down.url, "--jobs", "1"]).await;
    assert_eq!(bench.classes(), ["void"], "{said}");
    let row = bench.report()["cells"][0].clone();
    assert!(row["executed"]["treated"]["void"]["unanswered"].as_u64() >= Some(2), "{row}");
    assert!(row["proof"].as_str().is_some_and(|words| words.contains("unanswered by the upstream")), "{row}");
    assert_eq!(fs::read_to_string(bench.out().join("dataset.jsonl")).expect("a dataset"), "");
}

#[tokio::test]
async fn a_request_that_is_not_the_references_diverges_before_its_edit() {
    // The program draws a number into its first request: what is edited is not what the reference asked. In a line of its own, the
    // number is not known to be volatile.
    let script = "\"$1\" example pipeline --task \"$2\n$(od -An -N4 -tu4 /dev/urandom)\"";
    let system = format!(
        "[[system]]\nname = \"s\"\ncommand = [\"sh\", \"-c\", '''{script}''', \"sh\", \"{{aegis}}\", \"{{question}}\"]\n\
         config = \"ROOT/examples/pipeline/aegis.toml\"\n"
    );
    let order = "replace_text = { pattern = '12 boxes', with = \"13 boxes\", messages = \"user\" }";
    let bench = Bench::new(&format!("upstream = \"simulator\"\n{}{system}[[plan]]\nfile = \"p.toml\"\n", tasks(1)));
    fs::write(bench.dir.path().join("p.toml"), plan("request", order)).expect("written");
    let (_, _, said) = bench.run(&[]).await;
    assert_eq!(bench.classes(), ["diverged"], "{said}");
}

/// Of a plan whose first edit finds nothing to edit, rows say where the run really left its twin, and the set goes out.
#[tokio::test]
async fn an_edit_that_could_not_be_made_is_no_fork() {
    let nowhere = plan("response", "replace_text = { find = \"nobody says this\", with = \"that\" }");
    let number = plan("response", "corrupt_number = { which = \"last\", by = 10 }").replace("planner", "solver");
    let head = format!("upstream = \"simulator\"\nproof.repeatable = true\n{}{PIPELINE}", tasks(5));
    let bench = Bench::new(&format!("{head}[[plan]]\nfile = \"p.toml\"\n"));
    fs::write(bench.dir.path().join("p.toml"), format!("format = 1\nseed = 7\n{nowhere}{number}")).expect("written");
    let (code, _, said) = bench.run(&["--jobs", "2"]).await;
    assert_eq!(code, Some(0), "{said}");
    let text = fs::read_to_string(bench.out().join("dataset.jsonl")).expect("rows");
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a row"));
    let failures: Vec<Value> = rows.filter(|row| row["kind"] == "failure").collect();
    assert!(failures.len() >= 3, "{text}");
    for row in &failures {
        let label = &row["label"];
        let (fork, step) = (&label["evidence"]["fork_step"], &label["errors"][0]["step"]);
        assert_eq!((fork.as_u64(), step.as_u64()), (Some(1), Some(1)), "{row}");
    }
    let line = ["export", "out", "--to", "contrastive", "--out", "pairs.jsonl"];
    let ended = crate::program::aegis(bench.dir.path()).args(line).output().await.expect("started");
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}
