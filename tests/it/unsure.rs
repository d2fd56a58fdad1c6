//! Identity where it cannot be sure, or is fed what nobody should write: clear words, never a wrong guess, never a label.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use aegis::{
    identity::LateStep,
    recording,
    ruling::NoLabel,
    trajectory::{AgentName, LabelStatus, RunId},
};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Setup},
    program::{AEGIS, Served, aegis, verb},
    scripted::{Scripted, chat_reply, http},
};

const CHATS: &str = "/v1/chat/completions";
const CORRUPT: &str = "format = 1\nseed = 1\n[[injection]]\nagent = \"adder\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { by = 10 }\n";

/// A proxy under a configuration, before an upstream that always says the same.
async fn lab(setup: Setup) -> (Scripted, Lab) {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("The total is 12."))]).await;
    let lab = Lab::before(upstream.address, setup).await;
    (upstream, lab)
}

async fn ask(lab: &Lab, path: &str, messages: &Value) -> String {
    let reply = lab.post(path, json!({"model": "m", "messages": messages}).to_string().as_bytes()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text()
}

/// `aegis agents` on a recorded run: exit code, and what it says on both outputs.
async fn agents(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let done = aegis(dir).arg("agents").args(arguments).output().await.expect("it runs");
    let said = String::from_utf8(done.stdout).expect("text");
    (done.status.code().unwrap_or(-1), said + &String::from_utf8_lossy(&done.stderr))
}

/// Where a late look at a step sees it otherwise than its record, the label that rests on it is withdrawn; a look at
/// another step changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_withdrawn_where_its_step_is_seen_otherwise_late() {
    let agent = || AgentName::parse("someone-else").ok();
    let late = |step| LateStep { step, ..LateStep::default() };
    let cases = [
        (LateStep { agent: agent(), ..late(1) }, LabelStatus::Delivered),
        (LateStep { agent: agent(), ..late(0) }, LabelStatus::Withdrawn),
        (LateStep { ambiguous: Some(true), ..late(0) }, LabelStatus::Withdrawn),
        (LateStep { instance: Some(3), ..late(0) }, LabelStatus::Withdrawn),
        (LateStep { run: RunId::parse("another").ok(), ..late(0) }, LabelStatus::Withdrawn),
    ];
    for (number, (seen, status)) in cases.into_iter().enumerate() {
        let (_upstream, mut lab) = lab(Setup::planned(CORRUPT)).await;
        let messages = json!([{"role": "user", "content": "5 and 7"}]);
        for agent in ["adder", "critic"] {
            ask(&lab, &format!("/a/{agent}{CHATS}"), &messages).await;
        }
        let sealed = lab.sealed("r0").await;
        assert_eq!(sealed.label.expect("a label").status, LabelStatus::Delivered, "{number}");
        let dir = lab.logs.join("r0");
        recording::write_identity(&dir, &[seen]).expect("written");
        crate::contract::files_have(&dir, &["files/identity"]);
        let derived = aegis::ruling::settle(&dir, None).expect("readable");
        let label = recording::read(&dir).expect("readable").label.expect("the label stays, with what became of it");
        assert_eq!(label.status, status, "{number}");
        if status == LabelStatus::Withdrawn {
            assert_eq!(derived.expect_err("no label"), NoLabel::SeenLate, "{number}");
            assert_eq!(label.errors.len(), 1, "what was injected is still told: {number}");
        }
    }
}

const TIDES: [&str; 2] =
    ["The tide of 12 feet rises by the pull of the moon.", "Water of 15 feet comes back by each half of the day."];

/// Two runs of one task that interleave, without ids, under a plan: on arrival they are one run, and the second critic
/// is its second call. The late pass parts them by what they quote; what was injected into a step that belongs
/// elsewhere is no ground truth. (`aegis serve` takes no request without a run where it has a plan, so that this
/// cannot happen to its users: `a_plan_wants_to_be_told_the_run_and_hits_nobody_by_belief`.)
#[tokio::test(flavor = "multi_thread")]
async fn the_late_pass_itself_withdraws_what_interleaved_runs_got_wrong() {
    const ROSTER: &str = "[[agent]]\nname = \"writer\"\nsystem_contains = \"You write\"\n[[agent]]\nname = \"critic\"\nsystem_contains = \"You criticise\"\n";
    for (call, status) in [(0, LabelStatus::Delivered), (1, LabelStatus::Withdrawn)] {
        let plan = CORRUPT.replace("adder", "critic").replace("when.call = 0", &format!("when.call = {call}"));
        let say = |text: &str| vec![http("200 OK", "application/json", &chat_reply(text))];
        let upstream =
            Scripted::start([TIDES[0], TIDES[1], "That makes 12 feet.", "That makes 15 feet."].map(say).to_vec()).await;
        let setup = Setup { config: ROSTER, lineage: true, default_run: None, ..Setup::planned(&plan) };
        let mut lab = Lab::before(upstream.address, setup).await;
        let task = json!({"role": "user", "content": "Write a short text about tides, please."});
        let writer = json!([{"role": "system", "content": "You write."}, task]);
        ask(&lab, CHATS, &writer).await;
        ask(&lab, CHATS, &writer).await;
        for text in TIDES {
            let critic =
                json!([{"role": "system", "content": "You criticise."}, task, {"role": "user", "content": text}]);
            ask(&lab, CHATS, &critic).await;
        }
        let run = std::fs::read_dir(&lab.logs).expect("logs").flatten().next().expect("a run").file_name();
        let run = RunId::parse(run.to_str().expect("text")).expect("an id");
        let sealed = lab.sealed(run.as_str()).await;
        let label = sealed.label.expect("on arrival it is one run's second call");
        assert_eq!((label.errors[0].error.step, label.status), (2 + call, LabelStatus::Delivered));

        let late = lab.proxy.identity.late_names(std::slice::from_ref(&run));
        let moved: Vec<u32> = late[&run].iter().filter(|step| step.run.is_some()).map(|step| step.step).collect();
        assert_eq!(moved, [1, 3], "{late:?}");
        let dir = lab.logs.join(run.as_str());
        recording::write_identity(&dir, &late[&run]).expect("written");
        assert_eq!(aegis::ruling::settle(&dir, None).expect("readable").is_ok(), status == LabelStatus::Delivered);
        assert_eq!(recording::read(&dir).expect("readable").label.expect("it stays").status, status);
    }
}

/// A run that is named is nobody's guess: the late pass has nothing to say of it, however alike its requests are.
#[tokio::test(flavor = "multi_thread")]
async fn the_late_pass_leaves_named_runs_alone() {
    let (_upstream, mut lab) = lab(Setup { lineage: true, default_run: None, ..Setup::default() }).await;
    let messages = json!([{"role": "system", "content": "You write."}, {"role": "user", "content": "About tides."}]);
    for run in ["one", "two", "one", "two"] {
        ask(&lab, &format!("/r/{run}{CHATS}"), &messages).await;
    }
    assert_eq!(lab.sealed("one").await.trajectory.steps.len(), 2);
    let ids = ["one", "two"].map(|run| RunId::parse(run).expect("an id"));
    assert!(lab.proxy.identity.late_names(&ids).is_empty());
}

const PROBLEM: &str =
    "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";

/// A trace finds a step in any recorded run; it makes a label only where the wire told surely whose step that is.
#[tokio::test(flavor = "multi_thread")]
async fn a_trace_names_nobody_in_a_label_whom_the_wire_does_not_tell() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pipeline/aegis.toml");
    let roster = std::fs::read_to_string(root).expect("a roster");
    let other = "Step 1: 12 * 8 = 96 (pencils).\nStep 2: 96 - 12 = 84 (pencils left).\nANSWER: 94";
    for (config, expected) in [(roster.as_str(), "label verified"), ("", "no label: the wire cannot tell")] {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("aegis.toml"), config).expect("written");
        let served = Served::start(dir.path(), &["--upstream", "simulator", "--log-dir", "logs"]).await;
        let mut program = aegis(dir.path());
        program.args(["example", "pipeline", "--task", PROBLEM]);
        program.env("OPENAI_BASE_URL", format!("http://{}/v1", served.address)).env("OPENAI_API_KEY", "none");
        let said = program.output().await.expect("it runs");
        assert_eq!(String::from_utf8_lossy(&said.stdout), "ANSWER: 84\n", "{}", String::from_utf8_lossy(&said.stderr));
        assert_eq!(served.stop().await, Some(0));
        let logs = dir.path().join("logs");
        let runs: Vec<_> = std::fs::read_dir(&logs).expect("logs").flatten().map(|entry| entry.path()).collect();
        assert_eq!(runs.len(), 1, "lineage holds the run together: {runs:?}");
        let correction = json!({"step": 1, "reply": other, "reason": "another result is wanted"}).to_string();
        std::fs::write(dir.path().join("fix.jsonl"), correction).expect("written");
        let run = runs[0].to_str().expect("text");
        let arguments = ["trace", run, "--corrections", "fix.jsonl", "--check", "grep -q 'ANSWER: 94$'"];
        let program = ["--", AEGIS, "example", "pipeline", "--task", PROBLEM];
        let (code, _, talk) = verb(dir.path(), &[&arguments[..], &program].concat()).await;
        assert!(code == Some(0) && talk.contains("step 1") && talk.contains(expected), "{talk}");
        assert_eq!(runs[0].join("label.json").exists(), expected == "label verified", "{talk}");
    }
}

/// A roster whose rules fit nobody, or two agents at once: said by the audit, and no ground for an edit.
#[tokio::test(flavor = "multi_thread")]
async fn rosters_that_fit_nothing_or_two_hit_nobody() {
    let rule = |name: &str, words: &str| format!("[[agent]]\nname = \"{name}\"\nsystem_contains = \"{words}\"\n");
    for (roster, hit, check) in [
        (rule("adder", "You add"), true, vec!["becomes adder", "stays"]),
        (rule("adder", "Never said"), false, vec!["[[agent]] number 1 fits no step"]),
        (
            rule("adder", "You add") + &rule("other", "numbers"),
            false,
            vec!["would be unclear", "numbers 1 and 2 both match"],
        ),
    ] {
        let config: &'static str = Box::leak(roster.clone().into_boxed_str());
        let (_upstream, mut lab) = lab(Setup { config, ..Setup::planned(CORRUPT) }).await;
        let messages =
            json!([{"role": "system", "content": "You add numbers."}, {"role": "user", "content": "5 and 7"}]);
        let said = ask(&lab, CHATS, &messages).await;
        assert_eq!(!said.contains("The total is 12."), hit, "{roster}");
        let recording = lab.sealed("r0").await;
        assert_eq!(recording.label.is_some(), hit, "{roster}");
        assert_eq!(recording.trajectory.steps[0].attribution.is_certain(), hit, "{roster}");
        std::fs::write(lab.dir.path().join("roster.toml"), &roster).expect("written");
        let run = lab.logs.join("r0").display().to_string();
        let (code, told) = agents(lab.dir.path(), &[&run, "--roster", "roster.toml"]).await;
        assert_eq!(code, i32::from(!hit), "{roster}: {told}");
        assert!(check.iter().any(|words| told.contains(words)), "{roster}: {told}");
    }
}

/// Names that would steer a terminal, a page or a path: shown harmlessly, and never a name where they are no text.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_are_shown_harmlessly() {
    let (_upstream, mut lab) = lab(Setup::default()).await;
    let hostile = [
        "\u{1b}[2J\u{1b}[31mroot",
        "a\u{202e}gpj.exe",
        "<script>alert(1)</script>",
        "../../etc/passwd",
        "x\"\n[[agent]]\nname = \"injected",
        "zero\u{200b}width",
        "\u{7}bell",
    ];
    for name in hostile {
        let messages = json!([{"role": "system", "name": name, "content": format!("You are {name}. Be brief.")},
            {"role": "user", "name": name, "content": format!("{name}: go")}]);
        ask(&lab, CHATS, &messages).await;
    }
    let recording = lab.sealed("r0").await;
    for (step, name) in recording.trajectory.steps.iter().zip(hostile) {
        let told = step.attribution.agent.as_str();
        assert!(told == name || told.starts_with("agent-"), "nothing is made of it: {told:?}");
        assert!(!told.chars().any(char::is_control) && !told.contains('\u{202e}'), "{told:?}");
    }
    let run = lab.logs.join("r0").display().to_string();
    for arguments in [&[&run, "--evidence"][..], &[&run, "--suggest"]] {
        let (code, said) = agents(lab.dir.path(), arguments).await;
        assert_eq!(code, 0, "{said}");
        let steers = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!said.contains(steers), "{said:?}");
    }
    let (_, roster) = agents(lab.dir.path(), &[&run, "--suggest"]).await;
    let read: toml::Table = roster.parse().expect("what is proposed is a configuration");
    let names = read.get("agent").and_then(toml::Value::as_array).into_iter().flatten();
    assert!(names.clone().all(|rule| rule.get("name").and_then(toml::Value::as_str) != Some("injected")), "{roster}");
    std::fs::write(lab.dir.path().join("roster.toml"), &roster).expect("written");
    let (code, said) = agents(lab.dir.path(), &[&run, "--roster", "roster.toml"]).await;
    assert_eq!(code, 0, "{said}");
}

/// Prompts of a megabyte: told apart wherever they differ, the same when they come again, and the bytes pass.
#[tokio::test(flavor = "multi_thread")]
async fn prompts_of_a_megabyte_are_told_apart() {
    let (_upstream, mut lab) = lab(Setup::default()).await;
    let rule = "Follow this rule to the letter, always. ".repeat(26_000);
    let one_sentence = "all in one breath ".repeat(58_000);
    let prompts = [
        format!("{rule}You judge."),
        format!("{rule}You plan."),
        format!("{one_sentence}you plan"),
        format!("{one_sentence}you judge"),
    ];
    for prompt in prompts.iter().chain(prompts.first()) {
        assert!(prompt.len() > 1_000_000);
        ask(&lab, CHATS, &json!([{"role": "system", "content": prompt}, {"role": "user", "content": "go"}])).await;
    }
    let steps = lab.sealed("r0").await.trajectory.steps;
    let names: Vec<&str> = steps.iter().map(|step| step.attribution.agent.as_str()).collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!((names.len(), distinct.len()), (5, 4), "{names:?}");
    assert_eq!(names.first(), names.last(), "the same prompt is the same agent");
    let run = lab.logs.join("r0").display().to_string();
    let (code, roster) = agents(lab.dir.path(), &[&run, "--suggest"]).await;
    assert!(code == 0 && roster.len() < 10_000, "{} bytes", roster.len());
}

/// Ten thousand rules and as many agents: each name is one agent's, and what fits no rule is nobody's.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_agents_keep_their_names() {
    let mut roster = String::new();
    for number in 0..10_000 {
        writeln!(roster, "[[agent]]\nname = \"worker-{number}\"\nsystem_contains = \"You are worker <{number}>.\"")
            .expect("text");
    }
    let config: &'static str = Box::leak(roster.into_boxed_str());
    let (_upstream, mut lab) = lab(Setup { config, ..Setup::default() }).await;
    let asked = [0, 9_999, 1, 10, 100, 1_000, 10_000];
    for number in asked {
        let prompt = format!("You are worker <{number}>. Be brief.");
        ask(&lab, CHATS, &json!([{"role": "system", "content": prompt}, {"role": "user", "content": "go"}])).await;
    }
    let steps = lab.sealed("r0").await.trajectory.steps;
    for (step, number) in steps.iter().zip(asked) {
        let told = step.attribution.agent.as_str();
        if number < 10_000 {
            assert_eq!((told, step.attribution.is_certain()), (format!("worker-{number}").as_str(), true));
        } else {
            assert!(told.starts_with("agent-") && !step.attribution.is_certain(), "{told}");
        }
    }
}
