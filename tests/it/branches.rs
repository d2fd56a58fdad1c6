//! Branches side by side: their answers come in the order in which the program joined them, and what was planted in one of
//! them is no divergence of another.

use std::sync::Arc;

use aegis::{
    proxy::{RunSetup, upstream::Upstream},
    replay::{AtFork, Cassette, ForkPoint, Prefixed, Replayed},
    trajectory::RunId,
};

use crate::{
    echo::Echo,
    lab::{Lab, Reply, Setup, chat, request, until},
    replay::Tripwire,
    scripted::{Act, Scripted, chat_reply, http},
};

const LEFT: &str = "/a/left/v1/chat/completions";
const RIGHT: &str = "/a/right/v1/chat/completions";
const JOIN: &str = "/a/join/v1/chat/completions";
const SLOW: &str = "The left branch counted 12 pears.";
const QUICK: &str = "The right branch counted 30 plums.";

/// A run of two branches of which the one that began first ended last, joined as they finished.
async fn recorded() -> Lab {
    let reply = |text: &str| http("200 OK", "application/json", &chat_reply(text));
    let held = vec![Act::Wait, reply(SLOW)];
    let upstream = Scripted::start(vec![held, vec![reply(QUICK)], vec![reply("42 in all")]]).await;
    let mut lab = Lab::before(upstream.address, Setup::default()).await;
    let mut left = lab.client().await;
    left.send(&request("POST", LEFT, &chat("count on the left"), "Connection: close\r\n")).await;
    until("the left branch is asked", || upstream.count() == 1).await;
    let right = said(&lab.post(RIGHT, &chat("count on the right")).await);
    upstream.go.notify_one();
    let left = said(&left.reply().await);
    lab.post(JOIN, &chat(&format!("Add up.\n{right}\n{left}"))).await;
    lab.sealed("r0").await;
    lab
}

fn said(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// A lab whose run `r0` is answered by this upstream.
async fn playing(upstream: Arc<dyn Upstream>, setup: Setup) -> Lab {
    let plan = setup.plan.clone();
    let lab = Lab::over(Arc::new(Tripwire::default()), setup).await;
    let id = RunId::parse("r0").expect("an id");
    lab.proxy.runs.open(&id, RunSetup { plan, upstream: Some(upstream), ..RunSetup::default() }).await.expect("opens");
    lab
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_joined_as_they_finished_finish_in_that_order() {
    let taped = recorded().await;
    let cassette = Arc::new(Cassette::open(&taped.logs.join("r0")).expect("a cassette"));
    for _ in 0..5 {
        let replayed = Arc::new(Replayed::new(Arc::clone(&cassette)));
        let lab = Arc::new(playing(Arc::clone(&replayed) as Arc<dyn Upstream>, Setup::default()).await);
        let mut branches = tokio::task::JoinSet::new();
        for (path, text) in [(LEFT, "count on the left"), (RIGHT, "count on the right")] {
            let lab = Arc::clone(&lab);
            branches.spawn(async move { said(&lab.post(path, &chat(text)).await) });
        }
        let mut finished = Vec::new();
        while let Some(answer) = branches.join_next().await {
            finished.push(answer.expect("a branch"));
        }
        assert_eq!(finished, [QUICK, SLOW]);
        let joined = lab.post(JOIN, &chat(&format!("Add up.\n{}", finished.join("\n")))).await;
        assert_eq!(said(&joined), "42 in all");
        assert!(replayed.report().missed.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_planted_in_one_branch_is_no_divergence_of_the_run() {
    let taped = recorded().await;
    let cassette = Arc::new(Cassette::open(&taped.logs.join("r0")).expect("a cassette"));
    let plan = "format = 1\nseed = 1\n[[injection]]\nagent = \"right\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\n\
                side = \"response\"\nmanipulator.replace_text = { find = \"30\", with = \"31\" }\n";
    // The fork is in the left branch; the right one comes first, is edited, and goes on with what the record does not hold.
    for (setup, status) in [(Setup::planned(plan), 200), (Setup::default(), 409)] {
        let fork = ForkPoint { step: 0, at: AtFork::Recorded };
        let prefixed = Arc::new(Prefixed::new(Arc::clone(&cassette), fork, Arc::new(Echo)).expect("a fork"));
        let lab = playing(Arc::clone(&prefixed) as Arc<dyn Upstream>, setup).await;
        let right = lab.post(RIGHT, &chat("count on the right")).await;
        let asked = said(&right).replace("30", "31");
        let next = lab.post(RIGHT, &chat(&format!("Look again. {asked}"))).await;
        assert_eq!(next.status, status, "{}", next.text());
        let report = prefixed.report();
        assert_eq!(report.diverged.is_some(), status == 409, "{report:?}");
    }
}

/// Three samples of one question, of which one is refused in a run that begins like a record: the record says that two more
/// come, so what follows the failure is a sample, and what is more than the record holds is another try of the failed one.
#[tokio::test(flavor = "multi_thread")]
async fn the_record_tells_a_sample_from_another_try() {
    let mut lab = Lab::over(Arc::new(Echo), Setup::default()).await;
    for _ in 0..3 {
        lab.post(LEFT, &chat("one")).await;
    }
    lab.sealed("r0").await;
    let cassette = Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a cassette"));
    let fault = "[[injection]]\nagent = \"left\"\nwhen.call = 1\nfault.status = { code = 500, attempts = \"first\" }\n";
    let setup = Setup::planned(fault);
    let fork = ForkPoint { step: 1, at: AtFork::Live };
    let prefixed = Arc::new(Prefixed::new(cassette, fork, Arc::new(Echo)).expect("a fork"));
    let mut lab = playing(prefixed as Arc<dyn Upstream>, setup).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(lab.post(LEFT, &chat("one")).await.status);
    }
    assert_eq!(statuses, [200, 500, 200, 200]);
    let recording = lab.sealed("r0").await;
    let steps = recording.trajectory.steps.iter();
    assert_eq!(steps.map(|step| (step.call, step.attempts.len())).collect::<Vec<_>>(), [(0, 1), (1, 2), (2, 1)]);
    assert!(recording.exchanges.iter().all(|detail| detail.relates.may_repeat.is_none()));
}
