//! Whole prediction files under every profile.

use super::*;
use crate::score::{Culprit, RawLabel};

fn gold(n: usize, agent: &str, step: u32, mode: &str) -> Gold {
    Gold {
        id: format!("run-{n}"),
        culprits: vec![Culprit { agent: Some(agent.into()), step: Some(step), mode: Some(mode.into()) }],
        speakers: ["Planner", "Solver", "Critic", "Solver"].map(str::to_owned).into(),
        system: "pipeline".into(),
        raw: Some(RawLabel { file: format!("{n}.json"), agent: agent.into(), step: step.to_string() }),
        ..Gold::default()
    }
}

fn golds() -> Vec<Gold> {
    vec![gold(1, "Solver", 1, "FM-2.6"), gold(2, "Critic", 2, "FM-3.3"), gold(3, "Planner", 0, "FM-2.6")]
}

const ROWS: &str = r#"{"id":"run-1","agent":"solver","step":1,"failure_mode":"FM-2.6"}
{"id":"run-2","text":"Agent Name: Critic\nStep Number: 12"}
{"id":"run-3","text":"who knows"}
"#;

#[test]
fn strict_counts_unread_answers_apart_and_keeps_them_in_the_denominator() {
    let scored = score(ROWS, Some(&golds()), Profile::Strict, 0).expect("scored");
    let report = scored.strict.expect("strict");
    let coverage = &report.coverage;
    assert_eq!((coverage.answered.hits, coverage.answered.of, coverage.unparsed, coverage.missing), (2, 3, 1, 0));
    assert_eq!((report.accuracy.agent.hits, report.accuracy.agent.of), (2, 3));
    assert_eq!((report.accuracy.agent_of_answered.hits, report.accuracy.agent_of_answered.of), (2, 2));
    assert_eq!((report.accuracy.step.hits, report.accuracy.joint.hits), (1, 1));
    assert_eq!(report.pair.map(|pair| pair.counts.tp), Some(1));
    assert!(!report.baselines.is_empty() && scored.public.is_none());
}

#[test]
fn the_same_file_under_each_public_profile() {
    let golds = golds();
    let figure = |profile, name: &str| {
        score(ROWS, Some(&golds), profile, 0).expect("scored").public.expect("public").figure(name).expect("a figure")
    };
    // Put into the log form, step 12 holds the label 2.
    assert_eq!(figure(Profile::Whowhen, "Correct Step Predictions"), 2.0);
    assert_eq!(figure(Profile::Whowhen, "Correct Agent Predictions"), 1.0, "`solver` does not hold `Solver`");
    assert_eq!(figure(Profile::AegisFork, "num_samples"), 3.0);
    // The answer of run-2 names no mode, which is a class of its own: one right, one wrong, two missed.
    assert!((figure(Profile::Aegis, "Error Type Level f1_micro") - 0.4).abs() < 1e-12);
    assert_eq!(figure(Profile::Agentracer, "Mean reward"), 0.0);
    let log = "Prediction for 2.json:\nAgent Name: Critic\nStep Number: 2\n";
    let public = score(log, Some(&golds), Profile::Whowhen, 0).expect("scored").public.expect("public");
    assert_eq!(public.figure("Correct Step Predictions"), Some(1.0));
}

#[test]
fn a_log_goes_to_the_who_and_when_script_as_it_is_and_rows_keep_their_other_fields() {
    let golds = golds();
    let figure = |text: &str, profile, name: &str| {
        score(text, Some(&golds), profile, 0).expect("scored").public.expect("public").figure(name).expect("a figure")
    };
    // That script cannot read such a header; our own reader can.
    let log = "Prediction for 2.json (Binary Search Result):\nAgent Name: Critic\nStep Number: 2\n";
    assert_eq!(figure(log, Profile::Whowhen, "Predictions parsed"), 0.0);
    // The fork leaves rows with an `error` out.
    let rows = "{\"id\":\"run-1\",\"agent\":\"Solver\"}\n{\"id\":\"run-2\",\"agent\":\"Critic\",\"error\":\"oom\"}\n";
    assert_eq!(figure(rows, Profile::AegisFork, "num_samples"), 1.0);
}

#[test]
fn agentracer_s_figures_are_shares_of_all_labels() {
    let golds = golds();
    let row = |n: usize, answer: &str| {
        format!("{{\"id\":\"run-{n}\",\"completion\":\"<think></think><answer>{answer}</answer>\"}}\n")
    };
    // The first is right, the second names the agent alone; the third has no answer.
    let text = row(1, "Solver|1") + &row(2, "Critic|1000");
    let public = score(&text, Some(&golds), Profile::Agentracer, 0).expect("scored").public.expect("public");
    let shown: Vec<_> = public.figures.iter().map(|figure| (figure.name.as_str(), figure.shown.as_str())).collect();
    assert_eq!(shown, [("Agent-level accuracy", "66.67"), ("Step-level accuracy", "33.33"), ("Mean reward", "0.5000")]);
}

#[test]
fn a_reward_is_one_for_the_truth_and_none_where_the_truth_cannot_be_read() {
    let truth = r#"{"agent":"Solver","step":1,"failure_mode":"FM-2.6"}"#;
    let answer = "<think></think><answer>Solver|1</answer>";
    assert_eq!(reward_of(answer, truth, RewardKind::Agentracer), Some(1.0));
    assert_eq!(reward_of("Solver|1", truth, RewardKind::Agentracer), Some(0.0), "without the format");
    assert_eq!(reward_of(answer, "?", RewardKind::Agentracer), None);
}

#[test]
fn what_cannot_be_scored_is_said() {
    let golds = golds();
    let mut two = golds.clone();
    two[1].raw = two[0].raw.clone();
    let mut none = golds.clone();
    none[0].raw = None;
    let mut twice = golds.clone();
    twice[1].id = "run-1".into();
    for (text, golds, profile, expected) in [
        (ROWS, None, Profile::Strict, "needs labels"),
        (ROWS, None, Profile::Aegis, "needs labels"),
        (ROWS, Some(&two), Profile::Whowhen, "files called `1.json`"),
        (ROWS, Some(&none), Profile::Whowhen, "`run-1` was not imported"),
        (ROWS, Some(&twice), Profile::Strict, "two gold runs have the id `run-1`"),
        (ROWS, Some(&vec![]), Profile::Strict, "holds no run"),
        ("{\"id\":\"run-9\",\"agent\":\"x\"}", Some(&golds), Profile::Strict, "did you mean `run-"),
        ("x", Some(&golds), Profile::Strict, "no predictions found"),
    ] {
        let error = score(text, golds.map(Vec::as_slice), profile, 0).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_file_of_the_aegis_scripts_needs_no_labels() {
    let row = r#"{"id":"a","ground_truth":{"faulty_agents":[]},"model_detection":{"faulty_agents":[]}}"#;
    let scored = score(row, None, Profile::Aegis, 0).expect("scored");
    assert_eq!(scored.public.expect("public").figure("Exact Match Ratio"), Some(1.0));
    assert!(scored.strict.is_none());
}

#[test]
fn rewards_keep_every_rollout() {
    let golds = golds();
    let rows = "{\"id\":\"run-1\",\"completion\":\"<think>a</think><answer>Solver|1</answer>\"}\n{\"id\":\"run-1\",\"completion\":\"<think>a</think><answer>Solver|2</answer>\"}\n{\"id\":\"x\",\"completion\":\"\"}\n";
    let found: Vec<_> =
        rewards(rows, &golds, RewardKind::Agentracer).expect("read").iter().map(|row| row.reward).collect();
    assert_eq!((found[0], found[2]), (Some(1.0), None));
    assert!((found[1].expect("gold") - 0.803_265_329_856_316_7).abs() < 1e-15);
    let rows =
        r#"{"id":"run-1","completion":"{\"faulty_agents\":[{\"agent_name\":\"Solver\",\"error_type\":\"FM-2.6\"}]}"}"#;
    for kind in [RewardKind::Aegis, RewardKind::AegisStrict] {
        assert_eq!(rewards(rows, &golds, kind).expect("read")[0].reward, Some(1.0));
    }
}
