//! Tests of [`super`]: which call meets which injection, and that nothing but the call decides.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::plan::{Target, dialogue, parse};
use crate::trajectory::AgentName;

fn plan(seed: u64, whens: &[&str]) -> Plan {
    let injections = whens.iter().map(|when| {
        format!(
            "[[injection]]\nagent = \"solver*\"\nfailure_mode = \"FM-3.1\"\nwhen = {{ {when} }}\nmanipulator.end_early = {{}}\n"
        )
    });
    let text = format!("seed = {seed}\n{}", injections.collect::<String>());
    parse(&text, "p").unwrap_or_else(|error| panic!("{error}"))
}

fn request(lines: &[&str]) -> Conversation {
    let mut messages = Vec::new();
    lines.iter().try_for_each(|line| dialogue::push(&mut messages, line)).expect("messages");
    Conversation { messages, ..Conversation::default() }
}

fn facts<'a>(agent: &'a str, call: u32, conversation: Option<&'a Conversation>) -> Facts<'a> {
    Facts { run: "r", agent, instance: 0, call, step: 9, conversation, delivered: &|_| 0, ambiguous: false }
}

#[test]
fn one_of_several_equal_agents_is_hit_alone() {
    let text = "[[injection]]\nagent = \"solver\"\ninstance = 1\nfailure_mode = \"FM-3.1\"\nwhen.call = 0\nmanipulator.end_early = {}";
    let plan = parse(text, "p").expect("a plan");
    let hit: Vec<u32> = (0..3)
        .filter(|instance| !decide(&plan, &Facts { instance: *instance, ..facts("solver", 0, None) }).is_empty())
        .collect();
    assert_eq!(hit, [1]);
    let injection = plan.injections.first().expect("one");
    let other = Facts { instance: 2, ..facts("solver", 0, None) };
    assert_eq!(meets(injection, 0, &other), Err(MissedCondition::Instance));
    assert_eq!(meets(injection, 0, &facts("judge", 0, None)), Err(MissedCondition::Agent));
}

#[test]
fn each_condition_alone() {
    let asks = request(&["system: s", "user: the sum of 3"]);
    let new_result = request(&["user: q", "assistant calls search({})", "tool(search): r"]);
    let old_result =
        request(&["user: q", "assistant calls search({})", "tool(search): r", "assistant: a", "user: go on"]);
    for (when, call, conversation, expected) in [
        ("always = true", 7, None, true),
        ("call = 2", 2, None, true),
        ("call = 2", 1, None, false),
        ("call = [0, 3]", 3, None, true),
        ("every = 3", 0, None, true),
        ("every = 3", 6, None, true),
        ("every = 3", 4, None, false),
        ("first = 2", 1, None, true),
        ("first = 2", 2, None, false),
        ("contains = \"sum of \\\\d\"", 0, Some(&asks), true),
        ("contains = \"SUM\"", 0, Some(&asks), false),
        ("contains = \"sum\"", 0, None, false),
        ("tool = \"search\"", 1, Some(&new_result), true),
        ("tool = \"search\"", 1, Some(&old_result), false),
        ("tool = \"other\"", 1, Some(&new_result), false),
        ("tool = \"search\"", 1, None, false),
        ("call = 1, tool = \"search\"", 0, Some(&new_result), false),
        ("step = 9", 0, None, false),
        ("last_n = 1", 0, None, false),
        ("probability = 1.0", 0, None, true),
    ] {
        let decision = decide(&plan(1, &[when]), &facts("solver", call, conversation));
        assert_eq!(!decision.is_empty(), expected, "{when} at call {call}");
    }
    assert!(decide(&plan(1, &["always = true"]), &facts("planner", 0, None)).is_empty());
    let spent = Facts { delivered: &|_| 1, ..facts("solver", 1, None) };
    assert!(decide(&plan(1, &["max_times = 1"]), &spent).is_empty());
    assert!(!decide(&plan(1, &["max_times = 2"]), &spent).is_empty());
}

#[test]
fn lists_by_side_in_plan_order() {
    let text = "[[injection]]\nagent = \"a\"\nfailure_mode = \"FM-1.4\"\nwhen.always = true\n\
                manipulator.drop_history.keep_last = 1\n[[injection]]\nagent = \"a\"\nwhen.always = true\n\
                fault.latency.ms = 1\n[[injection]]\nagent = \"a\"\nfailure_mode = \"FM-3.1\"\nwhen.always = true\n\
                manipulator.end_early = {}\n[[injection]]\nagent = \"a\"\nfailure_mode = \"FM-3.3\"\n\
                when.always = true\nmanipulator.negate_verdict = {}\n";
    let decision = decide(&parse(text, "p").expect("reads"), &facts("a", 0, None));
    let indices = |hits: &[Hit]| hits.iter().map(|hit| hit.injection).collect::<Vec<_>>();
    assert_eq!(
        (indices(&decision.request), indices(&decision.faults), indices(&decision.response)),
        (vec![0], vec![1], vec![2, 3])
    );
}

/// The indices of the injections that a call meets; all edit replies here.
fn met(plan: &Plan, facts: &Facts<'_>) -> Vec<u32> {
    decide(plan, facts).response.iter().map(|hit| hit.injection).collect()
}

#[test]
fn what_is_left_out_is_one_injection_on_one_agent_instance() {
    let mut plan = plan(1, &["always = true", "always = true"]);
    plan.left_out = Some(Planted { injection: 1, agent: AgentName::parse("solver").expect("a name"), instance: 2 });
    for (agent, instance, expected) in
        [("solver", 2, &[0][..]), ("solver", 0, &[0, 1]), ("solver-b", 2, &[0, 1]), ("planner", 2, &[])]
    {
        assert_eq!(met(&plan, &Facts { instance, ..facts(agent, 0, None) }), expected, "{agent} {instance}");
    }
}

#[test]
fn what_is_given_again_is_not_drawn_again_and_counts_as_delivered_afterwards() {
    let mut plan = plan(1, &["max_times = 2", "max_times = 2"]);
    plan.settled = Some(Settled { agent: "solver".into(), instance: 1, call: 2, injections: vec![0] });
    for (agent, instance, call, delivered, expected) in [
        // The call itself: its edits of injection 0 are in the bytes.
        ("solver", 1, 2, 0, &[1][..]),
        ("solver", 1, 1, 1, &[0, 1]),
        ("solver", 1, 3, 0, &[0, 1]),
        ("solver", 1, 3, 1, &[1]),
        ("solver", 1, 3, 2, &[]),
        // Others are not concerned.
        ("solver", 0, 2, 0, &[0, 1]),
        ("solver", 0, 3, 1, &[0, 1]),
        ("solver-b", 1, 2, 0, &[0, 1]),
        ("solver-b", 1, 3, 1, &[0, 1]),
    ] {
        let count = |_| delivered;
        let facts = Facts { instance, delivered: &count, ..facts(agent, call, None) };
        assert_eq!(met(&plan, &facts), expected, "call {call} of {agent} ({instance}), delivered {delivered}");
    }
}

#[test]
fn a_cell_draws_as_the_run_whose_draws_it_has() {
    let own = plan(5, &["probability = 0.5"]);
    let as_other = Plan { draws_of: Some("other".into()), ..plan(5, &["probability = 0.5"]) };
    let of = |plan: &Plan, run: &str| -> Vec<Decision> {
        (0..64).map(|call| decide(plan, &Facts { run, ..facts("solver", call, None) })).collect()
    };
    assert_eq!(of(&as_other, "r"), of(&own, "other"));
    assert_ne!(of(&own, "r"), of(&own, "other"));
}

#[test]
fn the_first_condition_that_does_not_hold_is_named() {
    let new_result = request(&["user: q", "assistant calls search({})", "tool(search): r"]);
    let target = |agent: &str, instance, call| Target { agent: agent.into(), instance, call };
    let counted = Some(vec![target("solver", 0, 3), target("solver", 1, 4)]);
    for (when, targets, call, conversation, expected) in [
        ("always = true", None, 3, None, Ok(())),
        ("step = 9", None, 3, None, Err(MissedCondition::Unresolved)),
        ("last_n = 1", None, 3, None, Err(MissedCondition::Unresolved)),
        ("step = 9", counted.clone(), 3, None, Ok(())),
        ("step = 9", counted.clone(), 4, None, Err(MissedCondition::Target)),
        ("step = 9", Some(vec![target("solver", 1, 3)]), 3, None, Err(MissedCondition::Target)),
        ("step = 9", Some(vec![target("planner", 0, 3)]), 3, None, Err(MissedCondition::Target)),
        ("step = 9", Some(vec![]), 3, None, Err(MissedCondition::Target)),
        ("call = 2", None, 3, None, Err(MissedCondition::Call)),
        ("call = 2, step = 9", None, 3, None, Err(MissedCondition::Unresolved)),
        ("call = 2, step = 9", counted.clone(), 3, None, Err(MissedCondition::Call)),
        ("tool = \"search\"", None, 3, None, Err(MissedCondition::Unreadable)),
        ("contains = \"q\"", None, 3, None, Err(MissedCondition::Unreadable)),
        ("tool = \"search\"", None, 3, Some(&new_result), Ok(())),
        ("tool = \"other\"", None, 3, Some(&new_result), Err(MissedCondition::Tool)),
        ("contains = \"zzz\"", None, 3, Some(&new_result), Err(MissedCondition::Content)),
        ("tool = \"search\", contains = \"zzz\"", None, 3, Some(&new_result), Err(MissedCondition::Content)),
        ("tool = \"search\", max_times = 1", None, 3, Some(&new_result), Err(MissedCondition::Spent)),
        ("max_times = 1", None, 3, None, Err(MissedCondition::Spent)),
        ("max_times = 2", None, 3, None, Ok(())),
        // Whether a draw says so is asked last, and elsewhere.
        ("probability = 0.001", None, 3, None, Ok(())),
    ] {
        let mut injection = plan(1, &[when]).injections.remove(0);
        injection.when.targets = targets;
        let facts = Facts { delivered: &|_| 1, ..facts("solver", call, conversation) };
        assert_eq!(meets(&injection, 0, &facts), expected, "{when}");
    }
}

#[test]
fn how_often_is_asked_of_the_injection_itself() {
    let plan = plan(1, &["max_times = 1", "max_times = 1", "max_times = 1"]);
    let facts = Facts { delivered: &|injection| u32::from(injection == 1), ..facts("solver", 0, None) };
    assert_eq!(met(&plan, &facts), [0, 2]);
}

#[test]
fn a_step_passes_untouched_where_nothing_hits_it() {
    let hit = || vec![Hit { injection: 0, draw: 1 }];
    for (decision, empty) in [
        (Decision::default(), true),
        (Decision { request: hit(), ..Decision::default() }, false),
        (Decision { response: hit(), ..Decision::default() }, false),
        (Decision { faults: hit(), ..Decision::default() }, false),
    ] {
        assert_eq!(decision.is_empty(), empty, "{decision:?}");
    }
    assert_eq!(format!("{:?}", facts("solver", 2, None)), "step 9 of r: call 2 of solver (0)");
}

#[test]
fn a_probability_is_met_as_often_as_it_says() {
    let plan = plan(3, &["probability = 0.3"]);
    let hits = (0..4000).filter(|call| !decide(&plan, &facts("solver", *call, None)).is_empty()).count();
    assert!((1100..1300).contains(&hits), "0.3 of 4000 is 1200, got {hits}");
}

#[test]
fn draws_are_fixed_for_ever() {
    // Recorded runs are replayed by later builds: a change of these numbers is a change of the plan format.
    let (chance, draw) = draws(7, &facts("solver", 2, None), 1);
    assert_eq!((format!("{chance:.12}").as_str(), draw), ("0.692884027750", 12_799_045_607_268_233_100));
}

#[test]
fn every_part_of_a_call_changes_the_draw() {
    let base = facts("solver", 0, None);
    let of = |seed, facts: &Facts<'_>, injection| draws(seed, facts, injection).1;
    let all = [
        of(1, &base, 0),
        of(2, &base, 0),
        of(1, &base, 1),
        of(1, &Facts { run: "s", ..base }, 0),
        of(1, &Facts { agent: "solve", ..base }, 0),
        of(1, &Facts { instance: 1, ..base }, 0),
        of(1, &Facts { call: 1, ..base }, 0),
        of(1, &Facts { run: "rs", agent: "olver", ..base }, 0),
    ];
    let distinct: std::collections::HashSet<u64> = all.into_iter().collect();
    assert_eq!(distinct.len(), all.len());
    assert_eq!(of(1, &Facts { step: 4, ..base }, 0), of(1, &base, 0), "arrival decides nothing");
}

/// Runs calls in this order as a run would: numbering the calls of each agent, counting what was delivered to it.
fn decisions(plan: &Plan, order: &[usize]) -> HashMap<(usize, u32), Decision> {
    let agents: Vec<String> = (0..4).map(|number| format!("solver-{number}")).collect();
    let mut calls = [0_u32; 4];
    let mut delivered: HashMap<(usize, u32), u32> = HashMap::new();
    let mut decisions = HashMap::new();
    for (step, agent) in (0..).zip(order) {
        let call = calls[*agent];
        calls[*agent] += 1;
        let count = |injection: u32| delivered.get(&(*agent, injection)).copied().unwrap_or_default();
        let facts = Facts { step, delivered: &count, ..facts(&agents[*agent], call, None) };
        let decision = decide(plan, &facts);
        for hit in decision.response.clone() {
            *delivered.entry((*agent, hit.injection)).or_default() += 1;
        }
        decisions.insert((*agent, call), decision);
    }
    decisions
}

proptest! {
    /// Design, invariant 4.
    #[test]
    fn shuffled_arrival_of_different_agents_same_decisions(
        seed in 0..i64::MAX as u64,
        order in prop::collection::vec(0..4_usize, 1..40),
        shuffle in any::<u64>(),
    ) {
        let plan = plan(seed, &["probability = 0.5", "every = 2, max_times = 2", "call = [1, 3]", "probability = 0.4, max_times = 1"]);
        // Sorting by an arbitrary key is a shuffle: call numbers count again in the new order.
        let mut shuffled: Vec<usize> = order.clone();
        shuffled.sort_by_key(|agent| (*agent as u64 + 1).wrapping_mul(shuffle | 1));
        prop_assert_eq!(decisions(&plan, &order), decisions(&plan, &shuffled));
        let mut interleaved = order.clone();
        interleaved.reverse();
        prop_assert_eq!(decisions(&plan, &order), decisions(&plan, &interleaved));
    }
}
