//! Facts beside a recording: how they are written and read, and what follows from names that are given later.

use std::fs;

use super::*;
use crate::{
    recording::{
        Amendment, AmendmentSource, Captured, GivenRoster, Recorder, Settings, amend, read, read_manifest,
        read_recorded, sample,
    },
    trajectory::{Attribution, Reason, Source},
};

/// Somebody whom only the looks of the request tell.
fn learned(name: &str) -> Attribution {
    Attribution { source: Source::Fingerprint, ..sample::agent(name) }
}

fn body(prompt: &str, text: &str) -> bytes::Bytes {
    serde_json::json!({"model": "m", "messages": [
        {"role": "system", "content": prompt}, {"role": "user", "content": text}]})
    .to_string()
    .into()
}

/// A run of calls by `(agent, prompt)`; those of one group are under way at the same time.
fn record(logs: &Path, groups: &[&[(Attribution, &str)]]) -> std::path::PathBuf {
    let recorder = Recorder::create(logs, sample::manifest("r"), &Settings::default()).expect("creates");
    let mut step = 0;
    for group in groups {
        let first = step;
        for (who, prompt) in *group {
            let body = body(prompt, &format!("question {step}"));
            recorder.open(sample::opening(step, who, &body)).expect("records");
            step += 1;
        }
        for ended in first..step {
            let reply = bytes::Bytes::from_static(b"{}");
            recorder.close(sample::closing(ended, Captured::Whole(&[reply]))).expect("records");
        }
    }
    recorder.seal().expect("seals");
    logs.join("r")
}

fn rules(text: &str) -> Option<GivenRoster> {
    #[derive(serde::Deserialize)]
    struct File {
        agent: Vec<RosterRule>,
    }
    let File { agent } = toml::from_str(text).expect("rules");
    Some(GivenRoster { file: "aegis.toml".to_owned(), rules: agent })
}

const TWO: &str = r#"
    agent = [{ name = "planner", system_contains = "plan" }, { name = "solver", system_contains = "solve" }]
"#;

fn give(dir: &Path, amendment: &Amendment) -> Vec<RunFact> {
    let giver = AmendmentSource { source: FactSource::Amend, by: Some("ada".to_owned()) };
    amend(dir, amendment, &giver, &Settings::default()).expect("amends")
}

fn outcome(verdict: Verdict, evidence: &str) -> Amendment {
    let outcome = Outcome { verdict, reason: Some(Reason::Amended), evidence: evidence.to_owned() };
    Amendment { outcome: Some(outcome), ..Amendment::default() }
}

#[test]
fn names_that_are_given_later_move_calls_and_overlaps_with_them() {
    let logs = tempfile::tempdir().expect("a directory");
    let (one, path) = (learned("agent-0000000a"), sample::agent("critic"));
    // Two agents that looked like one overlapped, and so did two that looked like two and are one.
    let dir = record(
        logs.path(),
        &[
            &[(one.clone(), "You plan."), (one.clone(), "You solve.")],
            &[(path, "You plan and criticise.")],
            &[(one, "You solve."), (learned("agent-0000000b"), "You solve, tersely.")],
        ],
    );
    let told = |recording: &Recording| -> Vec<(String, u32, bool)> {
        let steps = recording.trajectory.steps.iter();
        steps.map(|step| (step.attribution.agent.to_string(), step.call, step.overlapping)).collect()
    };
    let before = read(&dir).expect("reads");
    let overlapping: Vec<bool> = told(&before).into_iter().map(|(.., overlapping)| overlapping).collect();
    assert_eq!(overlapping, [true, true, false, false, false]);
    let added = give(&dir, &Amendment { roster: rules(TWO), ..Amendment::default() });
    let [RunFact { content: FactContent::Roster { roster }, replaces: None, by: Some(by), .. }] = added.as_slice()
    else {
        panic!("{added:?}")
    };
    assert_eq!((by.as_str(), roster.named.len(), roster.agents["solver"]), ("ada", 2, 3));
    let after = read(&dir).expect("reads");
    let name = |name: &str, call, overlapping| (name.to_owned(), call, overlapping);
    assert_eq!(
        told(&after),
        [
            name("planner", 0, false),
            name("solver", 0, false),
            // What a path names, a roster does not name otherwise.
            name("critic", 0, false),
            name("solver", 1, true),
            name("solver", 2, true),
        ]
    );
    assert!(after.sealed && after.trajectory.steps[0].attribution.is_certain());
    assert_eq!(after.later_names(0).expect("given later").by.as_deref(), Some("ada"));
    assert_eq!((after.later_names(2), after.own_roster().len()), (None, 2));
    assert_eq!(read_manifest(&dir).expect("reads").agents, after.manifest.agents);
    // A later roster takes the place of the earlier one, whole.
    let other = rules(r#"agent = [{ name = "worker", looks = ["agent-0000000b"] }]"#);
    let added = give(&dir, &Amendment { roster: other, ..Amendment::default() });
    assert!(matches!(added[0].replaces, Some(FactContent::Roster { .. })));
    let names: Vec<String> = told(&read(&dir).expect("reads")).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["agent-0000000a", "agent-0000000a", "critic", "agent-0000000a", "worker"]);
    assert_eq!(read_recorded(&dir).expect("reads").trajectory.steps[4].attribution.agent.as_str(), "agent-0000000b");
}

#[test]
fn each_fact_says_what_it_replaces_and_is_said_once() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = record(logs.path(), &[&[(learned("agent-0000000a"), "You plan.")]]);
    let seal = fs::read(dir.join("seal.json")).expect("a seal");
    assert_eq!(give(&dir, &outcome(Verdict::Failure, "376, not 381"))[0].replaces, None);
    assert_eq!(give(&dir, &outcome(Verdict::Failure, "376, not 381")), [], "it is known");
    let task =
        Amendment { task: Some("Add.".to_owned()), ..outcome(Verdict::Success, "sk-proj-aaaaaaaaaaaaaaaaaaaaaaaa") };
    let added = give(&dir, &task);
    assert!(matches!(&added[0].replaces, Some(FactContent::Outcome { outcome }) if outcome.evidence == "376, not 381"));
    let recording = read(&dir).expect("reads");
    assert_eq!(
        (recording.trajectory.outcome.verdict, recording.manifest.task.as_deref()),
        (Verdict::Success, Some("Add."))
    );
    assert_eq!((recording.facts.len(), read_manifest(&dir).expect("reads").outcome.verdict), (3, Verdict::Success));
    let text = fs::read_to_string(dir.join(FACTS_FILE)).expect("facts");
    assert!(!text.contains("sk-proj-aaaa"), "keys are masked: {text}");
    assert_eq!(fs::read(dir.join("seal.json")).expect("a seal"), seal);
}

#[test]
fn a_line_that_cannot_be_read_is_left_out_and_said() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = record(logs.path(), &[&[(learned("agent-0000000a"), "You plan.")]]);
    give(&dir, &outcome(Verdict::Failure, ""));
    let path = dir.join(FACTS_FILE);
    let whole = fs::read_to_string(&path).expect("facts");
    // A writer was killed in the middle of a line; the next one begins its own.
    fs::write(&path, format!("{whole}{}", &whole[..whole.len() / 2])).expect("written");
    let noted = |dir: &Path| read(dir).expect("reads").notes.iter().filter(|note| note.contains(FACTS_FILE)).count();
    assert_eq!((read(&dir).expect("reads").trajectory.outcome.verdict, noted(&dir)), (Verdict::Failure, 1));
    give(&dir, &outcome(Verdict::Success, ""));
    assert_eq!((read(&dir).expect("reads").trajectory.outcome.verdict, noted(&dir)), (Verdict::Success, 1));
    // What a later version writes is not guessed at.
    let later = whole.replace("\"format\":1", "\"format\":9").replace("failure", "unknown");
    fs::write(&path, format!("{}{later}", fs::read_to_string(&path).expect("facts"))).expect("written");
    assert_eq!((read(&dir).expect("reads").trajectory.outcome.verdict, noted(&dir)), (Verdict::Success, 2));
}

#[test]
fn a_line_that_was_edited_or_lost_the_line_before_it_is_left_out_and_said() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = record(logs.path(), &[&[(learned("agent-0000000a"), "You plan.")]]);
    let path = dir.join(FACTS_FILE);
    give(&dir, &outcome(Verdict::Failure, "one"));
    give(&dir, &outcome(Verdict::Success, "two"));
    let whole = fs::read_to_string(&path).expect("facts");
    let (first, second) = whole.trim_end().split_once('\n').expect("two lines");
    let read_as = |text: String| {
        fs::write(&path, text).expect("written");
        let recording = read(&dir).expect("reads");
        let notes = recording.notes.into_iter().filter(|note| note.contains(FACTS_FILE)).collect::<Vec<_>>();
        (recording.trajectory.outcome.verdict, notes.join("; "))
    };
    assert_eq!(read_as(whole.clone()), (Verdict::Success, String::new()));
    let (verdict, said) = read_as(whole.replace("two", "new"));
    assert!(verdict == Verdict::Failure && said.contains("line 2 is left out: it differs from its hash"), "{said}");
    let (verdict, said) = read_as(format!("{second}\n"));
    assert!(verdict == Verdict::Unknown && said.contains("line 1 is left out"), "{said}");
    let bare = first.rfind(",\"blake3\"").map(|at| format!("{}}}\n", &first[..at])).expect("a hash");
    let (verdict, said) = read_as(bare);
    assert!(verdict == Verdict::Failure && said.contains("line 1 is without a hash"), "{said}");
}

#[test]
fn what_cannot_be_added_is_refused() {
    let logs = tempfile::tempdir().expect("a directory");
    let giver = AmendmentSource { source: FactSource::Http, by: None };
    let settings = Settings::default();
    let refused = |dir: &Path, amendment: &Amendment| amend(dir, amendment, &giver, &settings).expect_err("refused");
    let recorder = Recorder::create(logs.path(), sample::manifest("open"), &settings).expect("creates");
    let open = refused(recorder.dir(), &outcome(Verdict::Failure, ""));
    assert!(matches!(open, RecordingError::Locked { .. }), "{open}");
    let nowhere = refused(&logs.path().join("none"), &outcome(Verdict::Failure, ""));
    assert!(matches!(nowhere, RecordingError::NotARun { .. }), "{nowhere}");
    let dir = record(logs.path(), &[&[(learned("agent-0000000a"), "You plan.")]]);
    let roster = Some(GivenRoster { file: "f".to_owned(), rules: vec![RosterRule::default()] });
    let unusable = refused(&dir, &Amendment { roster, ..Amendment::default() });
    assert!(matches!(unusable, RecordingError::Roster { .. }), "{unusable}");
    assert!(!dir.join(FACTS_FILE).exists());
    let long = refused(&dir, &outcome(Verdict::Failure, &"long ".repeat(2 << 20)));
    assert!(matches!(long, RecordingError::FactsFull { .. }), "{long}");
    assert_eq!(read(&dir).expect("reads").facts, []);
}

#[test]
fn several_may_amend_a_run_at_once() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = record(logs.path(), &[&[(learned("agent-0000000a"), "You plan.")]]);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let dir = &dir;
            scope.spawn(move || give(dir, &outcome(Verdict::Failure, &format!("number {number}"))));
        }
    });
    let recording = read(&dir).expect("reads");
    assert_eq!((recording.facts.len(), recording.notes.iter().any(|note| note.contains(FACTS_FILE))), (8, false));
    // Each replaces the one before it.
    for pair in recording.facts.windows(2) {
        assert_eq!(pair[1].replaces.as_ref(), Some(&pair[0].content));
    }
}
