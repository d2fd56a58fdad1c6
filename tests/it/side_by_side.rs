//! One name, one speaker: what lives side by side under a name earns no label; equal agents are aimed at by number.

use aegis::{recording, ruling::NoLabel, trajectory::LabelStatus};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Setup},
    program::aegis,
    scripted::{Act, Scripted, chat_reply, http},
};

const CHATS: &str = "/v1/chat/completions";

fn plan(agent: &str, more: &str) -> String {
    format!(
        "format = 1\nseed = 1\n[[injection]]\nagent = \"{agent}\"\n{more}failure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = {{ by = 10 }}\n"
    )
}

async fn ask(lab: &Lab, prompt: &str, user: &str) -> String {
    let messages = json!([{"role": "system", "content": prompt}, {"role": "user", "content": user}]);
    let reply = lab.post(CHATS, json!({"model": "m", "messages": messages}).to_string().as_bytes()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text()
}

/// A name that a framework writes is hit and labelled as long as one prompt stands under it in the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_over_two_prompts_earns_no_label() {
    let writes = "You are a poet. Write one line.\nYour Role: Clerk\nYour Goal: Write";
    let checks = "You are a checker. Check the line.\nYour Role: Clerk\nYour Goal: Check";
    for (second, labelled) in [(writes, true), (checks, false)] {
        let upstream =
            Scripted::always(vec![http("200 OK", "application/json", &chat_reply("The total is 12."))]).await;
        let mut lab = Lab::before(upstream.address, Setup::planned(&plan("Clerk", ""))).await;
        assert!(!ask(&lab, writes, "tea").await.contains("is 12."), "the first one is hit");
        ask(&lab, second, "ships").await;
        let sealed = lab.sealed("r0").await;
        assert_eq!(sealed.trajectory.steps[1].attribution.ambiguous, !labelled);
        let dir = lab.logs.join("r0");
        let label = aegis::ruling::settle(&dir, None).expect("readable");
        let status = recording::read(&dir).expect("readable").label.map(|label| label.status);
        if labelled {
            assert!(label.is_ok() && status == Some(LabelStatus::Delivered), "{label:?}");
        } else {
            assert_eq!(label.expect_err("who was hit?"), NoLabel::ContestedName);
            assert_ne!(status, Some(LabelStatus::Delivered));
        }
        // The audit says so too, and proposes a rule for each.
        let done =
            aegis(lab.dir.path()).args(["agents", "--format", "json"]).arg(&dir).output().await.expect("it runs");
        let audit: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert_eq!(audit["steps"][0]["labels"], labelled, "{audit}");
        let done = aegis(lab.dir.path()).args(["agents", "--suggest"]).arg(&dir).output().await.expect("it runs");
        let roster = String::from_utf8(done.stdout).expect("text");
        assert_eq!(roster.matches("[[agent]]").count(), if labelled { 0 } else { 2 }, "{roster}");
    }
}

/// Three equal solvers at once: a plan hits one of them, by its number, and the label has one error.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_equal_agents_is_hit_by_its_number() {
    const ROSTER: &str = "[[agent]]\nname = \"solver\"\nsystem_contains = \"You solve\"\ninstances = 3\n";
    let answer = http("200 OK", "application/json", &chat_reply("The total is 12."));
    let upstream = Scripted::always(vec![Act::Gate, answer]).await;
    let setup = Setup { config: ROSTER, ..Setup::planned(&plan("solver", "instance = 1\n")) };
    let mut lab = Lab::before(upstream.address, setup).await;
    let body = json!({"model": "m", "messages": [{"role": "system", "content": "You solve."}, {"role": "user", "content": "5 and 7"}]});
    let mut clients = Vec::new();
    for number in 1..=3 {
        let mut client = lab.client().await;
        client.post(CHATS, body.to_string().as_bytes()).await;
        crate::lab::until("the call arrives", || upstream.count() == number).await;
        clients.push(client);
    }
    upstream.open_gate();
    let mut hit = Vec::new();
    for client in &mut clients {
        hit.push(!client.reply().await.text().contains("is 12."));
    }
    assert_eq!(hit, [false, true, false]);
    drop(clients);
    let sealed = lab.sealed("r0").await;
    let told: Vec<u32> = sealed.trajectory.steps.iter().map(|step| step.attribution.instance).collect();
    assert_eq!(told, [0, 1, 2]);
    let injected: Vec<usize> = sealed.trajectory.steps.iter().map(|step| step.injected.len()).collect();
    assert_eq!(injected, [0, 1, 0]);
}
