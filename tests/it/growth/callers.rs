//! Who asks: ten times the agents of a run, or the rules of a roster, cost about ten times the work.

use aegis::{
    identity::{Identity, LedgerRequest, Roster, RosterRule, Speakers, request_hash},
    surface::{OpenaiChat, Surface, door},
};
use bytes::Bytes;
use serde_json::json;

use super::{TIMES, WORK_MAX, times};

/// Prompt and question of a call of an agent.
fn request(agent: usize, call: usize) -> Bytes {
    let system = format!("You are expert number {agent} of a large team.\nYour field is field {agent}.\nBe brief.");
    let messages =
        json!([{"role": "system", "content": system}, {"role": "user", "content": format!("Question {call}?")}]);
    Bytes::from(json!({"model": "m", "messages": messages}).to_string())
}

/// Attributes calls of one run, in order, as the proxy does.
fn attribute(rules: &Identity, calls: &[Bytes]) {
    let mut speakers = Speakers::default();
    for body in calls {
        let outline = door::outline(&OpenaiChat, body).expect("readable");
        let hash =
            request_hash(OpenaiChat.name(), "POST", "/v1/chat/completions", twox_hash::XxHash3_128::oneshot(body));
        let request = LedgerRequest { bytes: Some(body), surface: Some(&OpenaiChat), ..LedgerRequest::from_hash(hash) };
        let asked = speakers.attribute(rules, Some(&outline), None, &request);
        assert!(!asked.attribution.agent.as_str().is_empty());
    }
}

#[test]
fn agents_cost_what_they_are_many() {
    let calls = [30, 30 * TIMES].map(|agents| (0..2 * agents).map(|at| request(at % agents, at)).collect::<Vec<_>>());
    let rules = Identity::default();
    let times = times(&calls, |calls| {
        attribute(&rules, calls);
        Some(())
    })
    .expect("attributed");
    assert!(times <= WORK_MAX, "{times:.0} times the work");
}

#[test]
fn rules_cost_what_they_are_many() {
    let calls: Vec<Bytes> = (0..20).map(|at| request(at, at)).collect();
    let rule = |at: usize| RosterRule {
        name: Some(format!("expert{at}")),
        system_contains: Some(format!("expert number {at} of")),
        last_user_regex: Some(r"Question \d+\?".to_owned()),
        ..RosterRule::default()
    };
    let rosters = [50, 50 * TIMES].map(|rules| Identity {
        roster: Roster::new((0..rules).map(rule).collect()).expect("rules"),
        ..Identity::default()
    });
    let times = times(&rosters, |rules| {
        attribute(rules, &calls);
        Some(())
    })
    .expect("attributed");
    assert!(times <= WORK_MAX, "{times:.0} times the work");
}
