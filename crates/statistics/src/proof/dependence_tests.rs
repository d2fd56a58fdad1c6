//! What is taken for dependence, and how often executions that are independent are.

use super::{
    super::{Arm, Claim, Next, Terms, systems_tests::Draws},
    *,
};

fn sample(letter: char) -> ProofSample {
    match letter {
        'p' => ProofSample::Passed,
        'f' => ProofSample::Failed,
        _ => ProofSample::Void(crate::trajectory::Void::Crashed),
    }
}

/// `solver:1=7#a writer:2=8` is a call of each with request, words and id.
fn execution(text: &str) -> ObservedExecution {
    let (letter, calls) = text.split_at(1);
    let call = |text: &str| {
        let (agent, rest) = text.split_once(':').expect("an agent");
        let (request, rest) = rest.split_once('=').expect("a request");
        let (words, id) = rest.split_once('#').map_or((rest, None), |(words, id)| (words, Some(id.to_owned())));
        let number = |text: &str| text.parse().expect("a number");
        SeenCall { agent: AgentName::parse(agent).expect("a name"), request: number(request), words: number(words), id }
    };
    ObservedExecution {
        sample: sample(letter.chars().next().expect("a letter")),
        calls: calls.split_whitespace().map(call).collect(),
    }
}

fn arm(texts: &[&str]) -> Vec<ObservedExecution> {
    texts.iter().map(|text| execution(text)).collect()
}

fn found(control: &[ObservedExecution], treated: &[ObservedExecution]) -> Option<Dependence> {
    let reference = ["solver", "writer"].map(|name| AgentName::parse(name).expect("a name")).into();
    SeenArms { control, treated, reference: &reference }.dependence()
}

/// The same where nobody was to be asked.
fn ordered(control: &[ObservedExecution], treated: &[ObservedExecution]) -> Option<Dependence> {
    SeenArms { control, treated, reference: &BTreeSet::new() }.dependence()
}

#[test]
fn one_reply_to_two_questions_is_a_caches_where_ids_name_replies() {
    let said = |control: &[&str], treated: &[&str]| found(&arm(control), &arm(treated));
    let shared = Some(Dependence::SameReply("b".to_owned()));
    for (control, treated, expected) in [
        (&["p solver:1=1#a", "p solver:2=1#c"][..], &["f solver:3=3#b", "f solver:4=3#b"][..], shared.clone()),
        (&["p solver:1=1#b", "p solver:5=2#c"], &["f solver:3=3#d", "f solver:2=1#b"], shared),
        // Two executions that drew the same change asked the same.
        (&["p solver:1=1#a", "p solver:2=1#c"], &["f solver:3=3#b", "f solver:3=3#b"], None),
        (&["p solver:1=1#a", "p solver:2=1#c"], &["f solver:3=3#b", "f solver:4=3#d"], None),
        // Two questions of one execution may have been answered by one reply.
        (&["p solver:1=1#b solver:2=1#b", "p solver:2=1#c"], &["f solver:3=3#d", "f solver:4=3#e"], None),
        // One id for whatever is said, and numbers that each run counts anew.
        (&["p solver:1=1#b", "p solver:2=2#b"], &["f solver:3=3#b", "f solver:4=3#b"], None),
        (&["p solver:1=1#b", "p solver:2=9#b"], &["f solver:3=3#c", "f solver:4=3#c"], None),
        (&["p solver:1=1#", "p solver:2=1#"], &["f solver:3=3#", "f solver:4=3#"], None),
        (&["p solver:1=1", "p solver:2=1"], &["f solver:3=3", "f solver:4=3"], None),
    ] {
        assert_eq!(said(control, treated), expected, "{control:?} {treated:?}");
    }
}

#[test]
fn an_agent_that_no_execution_asks_any_more_is_answered_from_somewhere_else() {
    let solver = Some(Dependence::AgentNotCalled(AgentName::parse("solver").expect("a name")));
    let (control, treated) = (["p writer:2=0"; 6], ["f writer:4=1"; 6]);
    assert_eq!(found(&arm(&control), &arm(&treated)), solver);
    let asks = |arm: &[&'static str; 6]| {
        let mut arm = *arm;
        arm[4] = "f solver:3=0 writer:4=0";
        arm
    };
    for (control, treated) in [
        (&asks(&control)[..], &treated[..]),
        (&control, &asks(&treated)),
        (&control[..4], &treated),
        (&control, &treated[..4]),
    ] {
        assert_eq!(found(&arm(control), &arm(treated)), None, "{control:?} {treated:?}");
    }
}

#[test]
fn an_order_of_outcomes_is_seen_where_there_are_enough_of_them() {
    let outcomes = |text: &str| text.chars().map(|letter| execution(&letter.to_string())).collect::<Vec<_>>();
    for (control, treated, expected) in [
        ("ppppppffffff", "ffffffffffff", Some(Dependence::ControlTrend)),
        ("pppppp", "ffffffpppppp", Some(Dependence::TreatedTrend)),
        ("pfpfpfpfpfpf", "ffffffffffff", Some(Dependence::ControlRhythm)),
        ("pppppppppppp", "fpfpfpfpfpfp", Some(Dependence::TreatedRhythm)),
        ("pvpvpvppfpfpffff", "ffffffffff", None),
        ("ppfppfpppfpp", "ffpffffpffff", None),
        ("pppfff", "ffffff", None),
        ("pppppp", "ffffff", None),
        ("", "f", None),
        ("", "", None),
    ] {
        assert_eq!(ordered(&outcomes(control), &outcomes(treated)), expected, "{control} {treated}");
    }
}

#[test]
fn chances_are_those_of_all_orders_told_one_by_one() {
    for (length, passed) in [(1, 0), (1, 1), (4, 2), (6, 3), (7, 2), (8, 4), (9, 5)] {
        let orders: Vec<Vec<bool>> = (0..1_u32 << length)
            .filter(|set| set.count_ones() == passed)
            .map(|set| (0..length).map(|place| set >> place & 1 == 1).collect())
            .collect();
        let sum = |order: &[bool]| -> usize { order.iter().enumerate().filter(|(_, p)| **p).map(|(at, _)| at).sum() };
        let changes = |order: &[bool]| order.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let share = |holds: &dyn Fn(&[bool]) -> bool| {
            orders.iter().filter(|order| holds(order)).count() as f64 / orders.len() as f64
        };
        for order in &orders {
            let (places, changed) = (sum(order), changes(order));
            let either = share(&|other| sum(other) <= places).min(share(&|other| sum(other) >= places));
            assert!((trend(order) - (2.0 * either).min(1.0)).abs() < 1e-9, "{order:?}");
            let mixed = passed > 0 && passed < length;
            let often = if mixed { share(&|other| changes(other) >= changed) } else { 1.0 };
            assert!((alternation(order) - often).abs() < 1e-9, "{order:?}: {} {often}", alternation(order));
        }
    }
}

/// A claim played to its end: both arms, each in its order. `passes` draws an outcome, by arm and by how many were drawn before.
fn play(name: &str, mut passes: impl FnMut(Arm, usize) -> bool) -> (Vec<ObservedExecution>, Vec<ObservedExecution>) {
    let terms = Terms::default().drawn_for(name);
    let (mut control, mut treated) = (Vec::new(), Vec::new());
    for number in 0.. {
        let arm = match Claim::perturbed(&terms, &control, &treated).next() {
            Next::Stop(_) => break,
            Next::Execute(arm) => arm,
        };
        let said = if passes(arm, number) { ProofSample::Passed } else { ProofSample::Failed };
        if arm == Arm::Control { control.push(said) } else { treated.push(said) }
    }
    let seen =
        |arm: Vec<ProofSample>| arm.into_iter().map(|sample| ObservedExecution { sample, calls: Vec::new() }).collect();
    (seen(control), seen(treated))
}

#[test]
fn independent_executions_are_seldom_taken_for_such_as_follow_an_order() {
    let of = 1_000;
    for (control, treated) in
        [(0.98, 0.98), (0.9, 0.9), (0.8, 0.8), (0.7, 0.7), (0.5, 0.5), (0.95, 0.05), (0.9, 0.3), (0.8, 0.2), (0.7, 0.5)]
    {
        let mut draws = Draws::seeded(&format!("order {control} {treated}"));
        let alarms = (0..of).filter(|claim| {
            let chance = |arm| if arm == Arm::Control { control } else { treated };
            let (control, treated) = play(&format!("{claim}"), |arm, _| draws.uniform() < chance(arm));
            ordered(&control, &treated).is_some()
        });
        let alarms = alarms.count();
        println!("null {control}, treated {treated}: {alarms} of {of} claims of independent executions");
        // One in a hundred, and what chance adds to that.
        assert!(alarms as f64 <= FALSE_ALARMS * f64::from(of) + 8.0, "{control} {treated}: {alarms}");
    }
}

#[test]
fn a_program_that_remembers_is_told_by_its_order() {
    // After so many executions all fail, whatever is done.
    for spoilt_after in [6, 8, 10] {
        let of = 200;
        let mut draws = Draws::seeded(&format!("memory {spoilt_after}"));
        let seen = (0..of).filter(|claim| {
            let (control, treated) = play(&format!("{spoilt_after} {claim}"), |arm, number| {
                number < spoilt_after && (arm == Arm::Control) == (draws.uniform() < 0.98)
            });
            ordered(&control, &treated).is_some()
        });
        let seen = seen.count();
        println!("spoilt after {spoilt_after}: {seen} of {of} told");
        assert!(seen * 10 >= of * 8, "{spoilt_after}: {seen} of {of}");
    }
}
