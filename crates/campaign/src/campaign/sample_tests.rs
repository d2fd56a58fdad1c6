//! Draws: a full cross, seeded, the same in every process.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{
    campaign::{definition::Files, read},
    trajectory::{AgentName, Attribution, CloseCause, FailureMode, sample},
};

/// A call in which each of the templates here can be planted.
fn step(number: u32, agent: &str, instance: u32, call: u32) -> Step {
    let asked = "You solve, check and rule on it until it is done. Say whether the result is correct.";
    let answer = format!("So 12 + {number} is checked, and therefore the result is correct. ANSWER: 4{number}");
    answered(number, agent, instance, call, asked, &answer)
}

fn answered(number: u32, agent: &str, instance: u32, call: u32, asked: &str, answer: &str) -> Step {
    let request = serde_json::json!({"model": "m", "messages": [
        {"role": "system", "content": asked}, {"role": "user", "content": "What is 12 + 30?"}]});
    let reply = serde_json::json!({"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}]});
    let mut step = sample::step(&[], &[(Some(CloseCause::Complete), 200)]);
    step.attempts[0].reply = reply.to_string().into();
    let attribution = Attribution { agent: AgentName::parse(agent).expect("a name"), instance, ..step.attribution };
    Step { step: number, call, turn: number, attribution, request: request.to_string().into(), ..step }
}

fn reference() -> Vec<Step> {
    vec![
        step(0, "planner", 0, 0),
        step(1, "solver", 0, 0),
        step(2, "critic", 0, 0),
        step(3, "solver", 0, 1),
        step(4, "critic", 0, 1),
        step(5, "planner/selector", 0, 0),
    ]
}

struct Plans;

impl Files for Plans {
    fn read(&self, path: &str) -> std::io::Result<String> {
        let plan = |mode: &str, edit: &str| {
            format!("[[injection]]\nagent = \"x\"\nfailure_mode = \"{mode}\"\nwhen.call = 0\n{edit}\n")
        };
        Ok(match path {
            "t" => "{\"id\":\"a\",\"question\":\"q\"}".to_owned(),
            "end" => plan("FM-3.1", "manipulator.end_early = {}"),
            "num" => plan("FM-2.6", "manipulator.corrupt_number = {}"),
            "quote" => plan("FM-1.3", "manipulator.repeat_step.from = \"writer\""),
            "swap" => plan("FM-1.2", "manipulator.swap_role = { from = \"user\", to = \"system\" }"),
            "add" => plan("FM-1.2", "manipulator.append_instruction.text = \"go\""),
            _ => plan("FM-3.3", "manipulator.negate_verdict = {}"),
        })
    }

    fn list(&self, _: &str) -> std::io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

fn sample(keys: &str) -> SampleSpace {
    let text = format!(
        "tasks.file = \"t\"\nverify.checks = [{{ exact = {{}} }}]\n[[system]]\nname = \"s\"\ncommand = [\"x\"]\n[sample]\ntemplates = [\"end\", \"num\", \"add\", \"neg\"]\n{keys}"
    );
    read::parse(&text, "c.toml", &Plans).unwrap_or_else(|error| panic!("{error}")).sample.expect("a sample")
}

fn drawn(sample: &SampleSpace, seed: u64, tasks: usize) -> Vec<TargetedPlan> {
    (0..tasks).flat_map(|nth| draw(sample, seed, nth, &reference()).plans).collect()
}

fn counts<K: Ord>(plans: &[TargetedPlan], key: impl Fn(&TargetedPlan) -> K) -> Vec<usize> {
    let mut counts: BTreeMap<K, usize> = BTreeMap::new();
    for plan in plans {
        *counts.entry(key(plan)).or_default() += 1;
    }
    counts.into_values().collect()
}

#[test]
fn each_stratum_comes_as_often_as_any_other() {
    let sample = sample("positions = [\"first\", \"uniform\"]\nper_task = 2\n");
    let plans = drawn(&sample, 7, 60);
    let agent = |plan: &TargetedPlan| plan.plan.injections[0].agents.to_string();
    let mode = |plan: &TargetedPlan| plan.plan.injections[0].failure_mode;
    assert_eq!(counts(&plans, mode), [30; 4]);
    assert_eq!(counts(&plans, agent), [40; 3], "a helper is hit only where it is named");
    assert_eq!(counts(&plans, |plan| plan.position), [60; 2]);
    assert_eq!(counts(&plans, |plan| (agent(plan), mode(plan), plan.position)), [5; 24]);
}

/// What a plan is, as a cell of the cross: the lead's mode and agent, the position, all agents that are hit.
fn cell(plan: &TargetedPlan) -> (Option<FailureMode>, String, CallPosition, BTreeSet<String>) {
    let agents = plan.plan.injections.iter().map(|one| one.agents.to_string());
    let lead = &plan.plan.injections[0];
    (lead.failure_mode, lead.agents.to_string(), plan.position.expect("drawn"), agents.collect())
}

/// Whether counts are what equal chances make of them; the bound is that of chi-square at 0.001, by Wilson and Hilferty.
fn are_even(counts: &[usize]) -> bool {
    let freedom = (counts.len() - 1) as f64;
    let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    let statistic: f64 = counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
    let spread = 2.0 / (9.0 * freedom);
    statistic < freedom * (1.0 - spread + 3.09 * spread.sqrt()).powi(3)
}

#[test]
fn all_cells_of_the_cross_come_equally_often_at_any_number_of_plans_a_task() {
    let keys = "positions = [\"every\", \"first\", \"uniform\"]\ntargets = [1, 2]\n";
    for per_task in [1, 3, 4, 7] {
        let mut sample = sample(keys);
        sample.per_task = per_task;
        let plans = drawn(&sample, 5, 2_520 / per_task as usize);
        let of_count = |count: usize| {
            let plans: Vec<_> = plans.iter().filter(|plan| plan.plan.injections.len() == count).cloned().collect();
            counts(&plans, cell)
        };
        let (ones, twos) = (of_count(1), of_count(2));
        // Three agents in four modes at three positions; the second agent is one of two.
        assert_eq!((ones.len(), twos.len()), (36, 72), "{per_task} a task");
        assert!(are_even(&ones) && are_even(&twos), "{per_task} a task: {ones:?} {twos:?}");
        let seconds: Vec<_> = plans.iter().filter(|plan| plan.plan.injections.len() == 2).cloned().collect();
        let modes = counts(&seconds, |plan| {
            let modes = plan.plan.injections.iter().map(|one| one.failure_mode);
            modes.collect::<Vec<_>>()
        });
        assert!(modes.len() == 16 && are_even(&modes), "the second's mode is drawn apart from the first's: {modes:?}");
    }
}

#[test]
fn a_campaign_of_few_tasks_has_no_template_twice_before_it_has_each_once() {
    let sample = sample("positions = [\"first\", \"uniform\"]\ntargets = [1, 2, 3]\nper_task = 2\n");
    for seed in 0..20 {
        let modes = |tasks| counts(&drawn(&sample, seed, tasks), |plan| plan.plan.injections[0].failure_mode);
        assert_eq!(modes(2), [1; 4]);
        assert_eq!(modes(6), [3; 4]);
    }
}

#[test]
fn agents_are_given_for_a_mode() {
    let sample = sample(
        "agents = [\"planner\", \"solver\"]\nmode_agents = { \"FM-3.3\" = [\"critic\"] }\ntargets = [1, 2]\nper_task = 3\n",
    );
    let plans = drawn(&sample, 3, 200);
    let planted: BTreeSet<_> = plans
        .iter()
        .flat_map(|plan| &plan.plan.injections)
        .map(|one| (one.failure_mode.map(FailureMode::code), one.agents.to_string()))
        .collect();
    let expected =
        ["FM-1.2", "FM-2.6", "FM-3.1"].into_iter().flat_map(|mode| ["planner", "solver"].map(|agent| (mode, agent)));
    let expected =
        expected.chain([("FM-3.3", "critic")]).map(|(mode, agent)| (Some(mode), format!("`{agent}`"))).collect();
    assert_eq!(planted, expected);
}

#[test]
fn the_seed_and_the_place_decide_and_nothing_else() {
    let sample = sample("positions = [\"uniform\"]\nper_task = 3\n");
    let texts = |seed, tasks| drawn(&sample, seed, tasks).into_iter().map(|aimed| aimed.plan.text).collect::<Vec<_>>();
    assert_eq!(texts(7, 5), texts(7, 9)[..15], "other tasks change nothing");
    assert_ne!(texts(7, 5), texts(8, 5));
}

#[test]
fn positions_are_calls_of_the_reference() {
    let sample = sample("positions = [\"uniform\"]\nagents = [\"solver\"]\nper_task = 1\n");
    let calls = counts(&drawn(&sample, 1, 200), |plan| plan.plan.injections[0].when.call.clone());
    assert!(calls.len() == 2 && calls.iter().all(|count| (60..140).contains(count)), "{calls:?}");
    let mut twins = reference();
    twins.push(step(6, "solver", 1, 0));
    let plan = draw(&sample, 1, 0, &twins).plans.remove(0).plan;
    let targets = plan.injections[0].when.targets.clone().expect("counted in the reference");
    assert_eq!(targets.len(), 1, "equal agents are told apart by the step");
}

#[test]
fn several_targets_are_different_agents() {
    let sample = sample("targets = [1, 2, 9]\nper_task = 3\n");
    let plans = drawn(&sample, 3, 24);
    for plan in &plans {
        let agents: BTreeSet<_> = plan.plan.injections.iter().map(|one| one.agents.to_string()).collect();
        assert_eq!(agents.len(), plan.plan.injections.len(), "{agents:?}");
    }
    assert_eq!(counts(&plans, |plan| plan.plan.injections.len()), [24; 3], "nine are as many as there are");
}

/// A label of it would be refused.
#[test]
fn a_call_whose_agent_is_not_certain_or_that_overlaps_is_no_target() {
    let sample = sample("agents = [\"solver\"]\n");
    type Change = fn(&mut Step);
    let unsure: [Change; 4] = [
        |step| step.attribution.ambiguous = true,
        |step| step.attribution.confidence = 0.49,
        |step| step.overlapping = true,
        |step| (step.attribution.ambiguous, step.attribution.confidence, step.overlapping) = (true, 0.49, true),
    ];
    for (number, change) in unsure.into_iter().enumerate() {
        let mut reference = reference();
        change(&mut reference[1]);
        let found = candidates(&sample, &reference);
        let steps: Vec<u32> = found.iter().flat_map(|candidate| &candidate.calls).map(|call| call.step).collect();
        assert_eq!(steps, [3], "{number}");
        change(&mut reference[3]);
        assert!(candidates(&sample, &reference).is_empty(), "{number}");
    }
}

#[test]
fn nobody_to_hit_is_said() {
    let sample = sample("agents = [\"writer\"]\n");
    let drawn = draw(&sample, 3, 0, &reference());
    assert!(drawn.plans.is_empty() && drawn.impossible[0].why.contains("no agent"), "{drawn:?}");
}

#[test]
fn a_template_of_tools_is_aimed_at_the_tools_of_the_run_and_at_nobody_else() {
    let text = "[[injection]]\ntool = \"*\"\nwhen.always = true\nmanipulator.empty = {}\n";
    let plan = crate::plan::parse(text, "p").expect("a plan");
    let mut planting = sample("").templates[0].clone();
    (planting.mode, planting.servers) = (None, Some(plan.injections[0].agents.clone()));
    let mut space = sample("");
    space.templates = vec![planting.clone()];
    let hit: Vec<bool> = ["solver", "mcp/calc/add", "mcp/calc"].map(|name| space.hits(&planting, name)).into();
    assert_eq!(hit, [false, true, false]);
    assert_eq!(aimed_at("mcp/calc/add"), ("tool", "calc/add"));
    assert_eq!(aimed_at("a2a/weather"), ("peer", "weather"));
    assert_eq!(aimed_at("planner/selector"), ("agent", "planner/selector"));
}

#[test]
fn words_are_taken_from_who_spoke_last_before_the_hit() {
    let sample = sample("").templates;
    let from = |plan: &str, agent: &str, position| {
        let text = Plans.read(plan).expect("a plan");
        let table: toml::Table = toml::from_str(&text).expect("TOML");
        let mut planting = sample[0].clone();
        planting.injection = table["injection"][0].as_table().expect("a table").clone();
        planting.injection.retain(|key, _| key == "manipulator");
        let (reference, space) = (reference(), self::sample("per_task = 1"));
        let candidates = candidates(&space, &reference);
        let agent = candidates.iter().find(|one| one.name == agent).expect("speaks");
        let placement = Placement { planting: &planting, agent, calls: Ok(agent.calls.clone()) };
        let aimed = injection(&placement, position, &mut draws(1, ""), &called(&reference));
        let edit = aimed["manipulator"].as_table().expect("a table").values().next().expect("an edit").clone();
        edit["from"].as_str().expect("a name").to_owned()
    };
    for (plan, agent, position, expected) in [
        ("quote", "critic", CallPosition::First, "solver"),
        ("quote", "critic", CallPosition::Every, "solver"),
        ("quote", "solver", CallPosition::First, "planner"),
        ("quote", "planner", CallPosition::First, "writer"),
        ("swap", "critic", CallPosition::First, "user"),
    ] {
        assert_eq!(from(plan, agent, position), expected, "{plan} at {agent}");
    }
}

#[test]
fn what_cannot_be_made_is_not_drawn_and_the_draw_among_the_rest_is_even() {
    let mut reference = reference();
    // The planner answers without a number, the critic in JSON, and each writes what its mode needs.
    let json = serde_json::json!({"so": "All is checked. Therefore it is 42.", "verdict": "correct"});
    let asked = "You solve, check and rule on it until it is done.";
    reference[0] = answered(0, "planner", 0, 0, asked, "It is checked. Therefore the result is correct.");
    for (number, call) in [(2, 0), (4, 1)] {
        reference[number] = answered(number as u32, "critic", 0, call, asked, &json.to_string());
        let request = String::from_utf8(reference[number].request.to_vec()).expect("text");
        let format = "\"response_format\":{\"type\":\"json_object\"},\"model\"";
        reference[number].request = request.replacen("\"model\"", format, 1).into();
    }
    for per_task in [1, 2, 3, 5, 8] {
        let mut sample = sample("positions = [\"first\", \"uniform\"]\n");
        sample.per_task = per_task;
        let drawn = |nth: usize| draw(&sample, 11, nth, &reference);
        let impossible: BTreeSet<_> =
            drawn(0).impossible.into_iter().map(|one| (one.plan, one.agent, one.why)).collect();
        let expected = [
            ("end", "critic", "the answer must be JSON, and the edited text would not be"),
            ("num", "planner", "the answer has 0 numbers, and not the one that is asked for"),
        ];
        let expected = expected.map(|(plan, agent, why)| (plan.to_owned(), agent.to_owned(), why.to_owned()));
        assert_eq!(impossible, BTreeSet::from(expected), "{per_task} a task");
        let plans: Vec<TargetedPlan> = (0..900 / per_task as usize).flat_map(|nth| drawn(nth).plans).collect();
        let place =
            |plan: &TargetedPlan| (plan.plan.injections[0].failure_mode, plan.plan.injections[0].agents.to_string());
        let of_mode = |mode: &str| {
            let code = |plan: &&TargetedPlan| plan.plan.injections[0].failure_mode.map(FailureMode::code) == Some(mode);
            let plans: Vec<_> = plans.iter().filter(code).cloned().collect();
            counts(&plans, |plan| (place(plan), plan.position))
        };
        let modes = counts(&plans, |plan| plan.plan.injections[0].failure_mode);
        assert!(modes.len() == 4 && are_even(&modes), "{per_task} a task: {modes:?}");
        for (mode, cells) in [("FM-3.1", 4), ("FM-2.6", 4), ("FM-1.2", 6), ("FM-3.3", 6)] {
            let drawn = of_mode(mode);
            assert!(drawn.len() == cells && are_even(&drawn), "{mode}, {per_task} a task: {drawn:?}");
        }
    }
}

#[test]
fn an_edit_is_tried_at_each_call_with_the_words_that_it_would_take_there() {
    // Who spoke before the second call of the solver said nothing that could be repeated.
    let mut reference = reference();
    reference[2] = answered(2, "critic", 0, 0, "You check it.", "");
    let mut space = sample("agents = [\"solver\"]\npositions = [\"uniform\"]\nper_task = 4\n");
    space.templates.truncate(1);
    let text: toml::Table = toml::from_str(&Plans.read("quote").expect("a plan")).expect("TOML");
    let mut injection = text["injection"][0].as_table().expect("a table").clone();
    injection.retain(|key, _| key == "manipulator" || key == "failure_mode");
    (space.templates[0].injection, space.templates[0].mode) = (injection, None);
    let plans: Vec<TargetedPlan> = (0..20).flat_map(|nth| draw(&space, 5, nth, &reference).plans).collect();
    let calls: BTreeSet<_> = plans.iter().map(|plan| format!("{:?}", plan.plan.injections[0].when.call)).collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
}

#[test]
fn plans_have_seeds_of_their_own_and_none_comes_twice_in_a_task() {
    let sample = sample("positions = [\"first\"]\nagents = [\"critic\"]\nper_task = 40\n");
    let plans = draw(&sample, 2, 0, &reference()).plans;
    let seeds: BTreeSet<u64> = plans.iter().map(|plan| plan.plan.seed).collect();
    assert_eq!(seeds.len(), plans.len());
    assert!(seeds.iter().any(|seed| seed % 2 == 1) && seeds.iter().any(|seed| seed % 2 == 0), "{seeds:?}");
    let digests: BTreeSet<&String> = plans.iter().map(|plan| &plan.plan.digest).collect();
    assert_eq!(digests.len(), plans.len(), "{}", plans.len());
}
