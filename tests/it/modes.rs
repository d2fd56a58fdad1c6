//! How far the failure mode of a label is established: by what the call has, in the label, in `show`, and in what a former ruling
//! knew.

use std::sync::Arc;

use aegis::{
    plan,
    proxy::RunSetup,
    ruling,
    trajectory::{FailureMode, ModeClaim, ModeState, RunId, Verdict},
};
use serde_json::json;

use crate::{
    assembled::both,
    lab::{Lab, Setup},
    program::{AEGIS, verb},
    scripted::Scripted,
};

const REPLY: &str = "12 * 8 = 96\n96 - 12 = 84\nANSWER: 84";

/// A run of one call, or two, with an edit under a mode at the first; gives its directory's name.
async fn planted(lab: &Lab, run: &str, mode: &str, agents: &[&str]) {
    let text = format!(
        "[[injection]]\nagent = \"{}\"\nfailure_mode = \"{mode}\"\nwhen.call = 0\nmanipulator.corrupt_number.which = \"last\"\n",
        agents[0]
    );
    let plan = plan::parse(&text, "plan.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let id = RunId::parse(run).expect("an id");
    lab.proxy.runs.open(&id, RunSetup { plan: Some(Arc::new(plan)), ..RunSetup::default() }).await.expect("a run");
    for agent in agents {
        let body = json!({"model": "m", "messages": [
            {"role": "system", "content": format!("You are the {agent}.")},
            {"role": "user", "content": "How many pencils are left?"}]});
        let reply = lab.post(&format!("/r/{run}/a/{agent}/v1/chat/completions"), body.to_string().as_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_says_whether_its_mode_can_be_where_it_was_planted() {
    let (reply, _) = both(&[(REPLY, &[])]);
    let upstream = Scripted::always(reply).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    let cases = [
        (
            "lost",
            "FM-1.4",
            &["solver"][..],
            Some("history"),
            "declared (the request holds nothing that was said or done before)",
        ),
        ("verdict", "FM-3.3", &["solver"], Some("verdict"), "declared (the agent gives no verdict)"),
        (
            "last",
            "FM-3.1",
            &["solver"],
            Some("later-call"),
            "declared (no call comes afterwards, so nothing was left to do)",
        ),
        ("early", "FM-3.1", &["solver", "critic"], None, "mode FM-3.1 premature termination applicable"),
        ("acts", "FM-2.6", &["solver"], None, "mode FM-2.6 reasoning-action mismatch applicable"),
    ];
    for (run, mode, agents, ..) in cases {
        planted(&lab, run, mode, agents).await;
    }
    lab.sealed("lost").await;
    for (run, _, _, unmet, shown) in cases {
        let label = lab.recorded(run).label.unwrap_or_else(|| panic!("{run} has a label"));
        assert_eq!(label.errors[0].mode_claim, Some(ModeClaim::looked_at(unmet)), "{run}");
        let (code, out, error) = verb(&lab.logs, &["show", run]).await;
        assert!(code == Some(0) && out.contains("delivered: solver at step 0") && out.contains(shown), "{out}{error}");
    }
}

/// A run that an error ended has no calls after it; the run that begins alike tells that there would have been some. Who rules
/// again has no such run, and what was known stays.
#[tokio::test(flavor = "multi_thread")]
async fn the_clean_run_tells_what_would_have_come_and_is_not_forgotten() {
    let (reply, _) = both(&[(REPLY, &[])]);
    let upstream = Scripted::always(reply).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    planted(&lab, "clean", "FM-2.6", &["solver", "critic"]).await;
    planted(&lab, "ended", "FM-3.1", &["solver"]).await;
    let clean = lab.sealed("clean").await;
    let ended = lab.recorded("ended");
    assert_eq!(ended.manifest.outcome.verdict, Verdict::Unknown);
    let state = |label: Result<_, _>| {
        let label: aegis::trajectory::Label = label.expect("a label");
        label.errors[0].mode_claim.as_ref().map(|claim| claim.state)
    };
    let dir = lab.logs.join("ended");
    assert_eq!(state(ruling::settle(&dir, None).expect("readable")), Some(ModeState::Declared));
    assert_eq!(state(ruling::settle(&dir, Some(&clean)).expect("readable")), Some(ModeState::Applicable));
    assert_eq!(state(ruling::settle(&dir, None).expect("readable")), Some(ModeState::Applicable));
}

/// The table against both example systems: which modes can be at which of their calls, so that the page says it truly.
#[tokio::test(flavor = "multi_thread")]
async fn all_modes_can_be_in_the_pipeline_and_all_but_those_of_verifiers_in_the_debate() {
    let dir = tempfile::tempdir().expect("a directory");
    let injection = |mode: &FailureMode, side: &str| {
        format!(
            "[[injection]]\nagent = \"*\"\nfailure_mode = \"{}\"\nwhen.always = true\nside = \"{side}\"\n\
             manipulator.rewrite_with_model = {{ instruction = \"mast\" }}\n",
            mode.code()
        )
    };
    let plan: Vec<String> =
        FailureMode::ALL.iter().flat_map(|mode| ["request", "response"].map(|side| injection(mode, side))).collect();
    std::fs::write(dir.path().join("all.toml"), plan.concat()).expect("a plan");
    for (system, nowhere) in [("pipeline", &[][..]), ("debate", &["FM-3.2", "FM-3.3"])] {
        let config = format!("{}/examples/{system}/aegis.toml", env!("CARGO_MANIFEST_DIR"));
        let task =
            "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
        let run = ["run", "--upstream", "simulator", "--log-dir", "logs", "--run", system, "--config", &config, "--"];
        let (code, _, error) =
            verb(dir.path(), &[&run[..], &[AEGIS, "example", system, "--task", task]].concat()).await;
        assert_eq!(code, Some(0), "{error}");
        let against = format!("logs/{system}");
        let (_, out, error) =
            verb(dir.path(), &["plan", "check", "all.toml", "--against", &against, "--format", "json"]).await;
        let checked: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}"));
        let matched = checked.pointer("/0/matched").or_else(|| checked.pointer("/data/0/matched"));
        let matched = matched.and_then(serde_json::Value::as_array).unwrap_or_else(|| panic!("{out}"));
        assert_eq!(matched.len(), 28);
        for (number, found) in matched.iter().enumerate() {
            let length = |key: &str| found[key].as_array().map_or(0, Vec::len);
            let (mode, can_be) = (FailureMode::ALL[number / 2].code(), length("steps") > length("impossible"));
            assert_eq!(can_be, !nowhere.contains(&mode), "{system}: {mode}: {found}");
        }
    }
}
