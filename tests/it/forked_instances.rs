//! Equal agents keep their numbers in a run that leaves its record: a live call is of whom the record names for it, once each.

use std::sync::Arc;

use aegis::{
    execution::ExecutionArm,
    proxy::{RunSetup, upstream::Upstream},
    replay::{AtFork, Cassette, ForkPoint, Prefixed, reworded},
    trajectory::{RunId, Step},
};
use serde_json::json;

use crate::{
    echo::Echo,
    lab::{Lab, Setup},
    replay::Tripwire,
};

/// Three equal agents that speak in this order.
macro_rules! equals {
    ($order:literal) => {
        concat!(
            "[[agent]]\nname = \"debater\"\nsystem_contains = \"You debate.\"\ninstances = 3\norder = \"",
            $order,
            "\"\n"
        )
    };
}

fn setup(config: &'static str) -> Setup {
    Setup { config, ..Setup::default() }
}

/// Asks in order, one after the other: `p` is the planner, a digit is what all debaters are asked.
async fn ask(lab: &mut Lab, asked: &str) -> String {
    for what in asked.split(' ') {
        let system = if what == "p" { "You plan." } else { "You debate." };
        let messages = json!([{"role": "system", "content": system}, {"role": "user", "content": what}]);
        let body = json!({"model": "m", "messages": messages}).to_string();
        let reply = lab.post("/v1/chat/completions", body.as_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let recording = lab.sealed("r0").await;
    let steps = recording.trajectory.steps.iter().filter(|step| step.attribution.agent.as_str() == "debater");
    let number = |step: &aegis::trajectory::Step| {
        format!("{}{}", step.attribution.instance, if step.attribution.ambiguous { "?" } else { "" })
    };
    steps.map(number).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn equal_agents_keep_their_numbers_behind_a_fork() {
    for config in [equals!("arrival"), equals!("turn")] {
        for (recorded, numbers, at, asked, expected) in [
            ("1 1 1", "0 1 2", 0, "1 1 1", "0 1 2"),
            ("1 1 1", "0 1 2", 1, "1 1 1", "0 1 2"),
            ("p 1 1 1", "0 1 2", 0, "p 1 1 1", "0 1 2"),
            ("1 1 1 1 1 1", "0 1 2 0 1 2", 0, "1 1 1 1 1 1", "0 1 2 0 1 2"),
            // The record holds fewer calls than are made now.
            ("1 1 1", "0 1 2", 0, "1 1 1 1 1 1", "0 1 2 0 1 2"),
            ("1 1 1", "0 1 2", 0, "1 1 1 2 2 2", "0 1 2 0 1 2"),
            // Each has a question of its own: whoever asks it is the one that asked it then.
            ("1 2 3", "0 1 2", 0, "1 3 2", "0 2 1"),
        ] {
            let mut lab = Lab::over(Arc::new(Echo), setup(config)).await;
            assert_eq!(ask(&mut lab, recorded).await, numbers, "{recorded}");
            let cassette = Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a cassette"));
            let fork = ForkPoint { step: at, at: AtFork::Recorded };
            let prefixed: Arc<dyn Upstream> = Arc::new(Prefixed::new(cassette, fork, Arc::new(Echo)).expect("a fork"));
            let mut forked = Lab::over(Arc::new(Tripwire::default()), setup(config)).await;
            let id = RunId::parse("r0").expect("an id");
            let own = RunSetup { upstream: Some(prefixed), ..RunSetup::default() };
            forked.proxy.runs.open(&id, own).await.expect("opens");
            assert_eq!(ask(&mut forked, asked).await, expected, "{recorded} → fork at {at} → {asked}");
        }
    }
}

/// What is given in place of a reply goes to the call that asks for that reply, also if it is another call of its agent than then, and
/// has a neutral change for that.
#[tokio::test]
async fn a_replacement_goes_to_its_question_whatever_call_asks_it() {
    let config = "[[agent]]\nname = \"debater\"\nsystem_contains = \"You debate.\"\n";
    let mut lab = Lab::over(Arc::new(Echo), setup(config)).await;
    assert_eq!(ask(&mut lab, "1 2 3").await, "0 0 0");
    let cassette = Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a cassette"));
    let replaced = reworded(&cassette.bare_recording().trajectory.steps[0], "It is 43.").expect("a reply");
    let fork = ForkPoint { step: 0, at: AtFork::Instead(replaced) };
    let arm = ExecutionArm::forked(&cassette, fork.clone(), None);
    let draw = arm.any_draw("arm", 0);
    let plan = arm.perturbed(draw).plan;
    let prefixed: Arc<dyn Upstream> = Arc::new(Prefixed::new(cassette, fork, Arc::new(Echo)).expect("a fork"));
    let mut forked = Lab::over(Arc::new(Tripwire::default()), setup(config)).await;
    let own = RunSetup { plan, upstream: Some(prefixed), ..RunSetup::default() };
    forked.proxy.runs.open(&RunId::parse("r0").expect("an id"), own).await.expect("opens");
    ask(&mut forked, "2 1 3").await;
    let steps = forked.sealed("r0").await.trajectory.steps;
    let given =
        |step: &Step| String::from_utf8_lossy(step.last_attempt().expect("an attempt").delivered()).into_owned();
    let replaced: Vec<bool> = steps.iter().map(|step| given(step).contains("It is 43.")).collect();
    assert_eq!(replaced, [false, true, false]);
    assert!(steps[1].request_sent.is_some(), "its request has a neutral change");
}
