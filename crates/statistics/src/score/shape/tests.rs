//! The probe finds what a shape tells, on other tasks, systems and templates, and nothing where labels are drawn.

use super::*;
use crate::score::Culprit;

/// Three speakers; the one that errs speaks at length. Where it is is drawn by the number.
fn run(n: usize, told: bool) -> Gold {
    let at = n * 7 % 5;
    let steps: Vec<StepText> = (0..5)
        .map(|step| {
            let words = if told && step == at { 30 } else { 6 + (n + step * 3) % 4 };
            let said = format!("{} {}", "word ".repeat(words), (n * 31 + step * 17) % 97);
            StepText {
                speaker: ["planner", "solver", "critic"][step % 3].to_owned(),
                reply: said,
                given: String::new(),
            }
        })
        .collect();
    let speaker = steps[at].speaker.clone();
    Gold {
        id: format!("r{n}"),
        culprits: vec![Culprit { agent: Some(speaker), step: u32::try_from(at).ok(), mode: None }],
        speakers: steps.iter().map(|step| step.speaker.clone()).collect(),
        system: ["pair", "trio"][n % 2].to_owned(),
        task: format!("task {}", n / 2),
        template: ["a", "b", "c"][n % 3].to_owned(),
        shape: features("What is it?", &steps),
        ..Gold::default()
    }
}

fn runs(told: bool) -> Vec<Gold> {
    (0..90).map(|n| run(n, told)).collect()
}

#[test]
fn a_shape_that_tells_is_found_whatever_is_left_out() {
    let golds = runs(true);
    for unseen in [Unseen::Task, Unseen::System, Unseen::Template] {
        let found = probe(&golds, unseen).expect("enough");
        assert!(found.step.share > 0.95 && found.agent.share > 0.95, "{unseen:?}: {found:?}");
        assert_eq!(found.step.of, 90);
    }
}

#[test]
fn labels_that_are_drawn_fall_to_chance() {
    // The shapes stay; each run gets the label of another.
    let mut golds = runs(true);
    let labels: Vec<_> = golds.iter().map(|gold| gold.culprits.clone()).collect();
    for (n, gold) in golds.iter_mut().enumerate() {
        gold.culprits.clone_from(&labels[(n * 37 + 11) % 90]);
    }
    let found = probe(&golds, Unseen::Task).expect("enough");
    assert!(found.step.interval.low <= 0.2 && found.step.share < 0.4, "{found:?}");
    let plain = probe(&runs(false), Unseen::Task).expect("enough");
    assert!(plain.step.share < 0.4, "nothing tells: {plain:?}");
}

#[test]
fn too_little_is_said() {
    let golds = runs(true);
    assert_eq!(probe(&golds[..39], Unseen::Task), Err(TooFew::Runs(39)));
    assert_eq!(probe(&[], Unseen::Task), Err(TooFew::Runs(0)));
    let mut one = golds.clone();
    one.iter_mut().for_each(|gold| gold.task.clear());
    assert_eq!(probe(&one, Unseen::Task), Err(TooFew::Tasks));
    let mut one = golds.clone();
    one.iter_mut().for_each(|gold| gold.system = "pair".to_owned());
    assert_eq!(probe(&one, Unseen::System), Err(TooFew::Groups));
    let mut none = golds;
    none.iter_mut().for_each(|gold| gold.template.clear());
    assert_eq!(probe(&none, Unseen::Template), Err(TooFew::Runs(0)));
}

#[test]
fn an_outline_that_gives_the_steps_away_is_far_above_rules_that_learn_nothing() {
    let (probed, best) = crate::score::shape_probe(&runs(true)).expect("told");
    assert!(probed.step.share > 0.95 && best.step.is_some_and(|step| step < 0.5), "{probed:?} {best:?}");
    assert!(crate::score::shape_probe(&runs(false)).is_none(), "nothing tells");
    // Where the labelled step is always the same, a rule says so without learning, and the probe is not far above it.
    let mut first = runs(true);
    for gold in &mut first {
        let speaker = gold.speakers.first().cloned();
        gold.culprits = vec![Culprit { agent: speaker, step: Some(0), mode: None }];
    }
    assert!(crate::score::shape_probe(&first).is_none(), "step 0 is a rule");
}

#[test]
fn of_too_many_runs_some_are_chosen_by_their_names_alone() {
    let many: Vec<Gold> = (0..RUNS + 7).map(|n| run(n, true)).collect();
    let ids = |golds: &[Gold]| {
        let mut ids: Vec<String> = outlines(golds, Unseen::Task).iter().map(|run| run.gold.id.clone()).collect();
        ids.sort();
        ids
    };
    let chosen = ids(&many);
    assert_eq!(chosen.len(), RUNS);
    let turned: Vec<Gold> = many.iter().rev().cloned().collect();
    assert_eq!(ids(&turned), chosen, "whatever their order");
    assert!(chosen != ids(&many[..RUNS]), "not the first ones");
    // One step is no shape, and one without a labelled step is no run to ask about.
    let mut odd = runs(true);
    odd[0].culprits.clear();
    odd[1].shape.truncate(1);
    odd[1].speakers.truncate(1);
    odd[1].culprits[0].step = Some(0);
    assert_eq!(outlines(&odd, Unseen::Task).len(), 88);
    let folds: BTreeSet<usize> = outlines(&runs(true), Unseen::Task).iter().map(|run| run.fold).collect();
    assert_eq!(folds, (0..FOLDS).collect(), "tasks are spread over all parts");
}

#[test]
fn forty_runs_are_enough() {
    let golds = runs(true);
    assert_eq!(probe(&golds[..FEWEST], Unseen::Task).expect("enough").step.of, FEWEST);
}

/// Where an error stands, by who speaks when.
type ErrorPlace = fn(&[usize]) -> usize;

/// 120 runs in which every step holds the same words: only who speaks when, and how often, differs. Runs without the place are
/// left out.
fn wordless(place: ErrorPlace) -> Vec<Gold> {
    let mut state = 7_u64;
    let mut drawn = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % below).unwrap_or_default()
    };
    let run = |n: usize| {
        let agents = 2 + u64::from(n % 2 == 1) * 2;
        let speakers: Vec<usize> = (0..5 + drawn(8)).map(|_| drawn(agents)).collect();
        let steps = speakers.iter().map(|speaker| StepText {
            speaker: ["mia", "tom", "ada", "kim"][*speaker].to_owned(),
            reply: "so it is".to_owned(),
            given: String::new(),
        });
        let (steps, at) = (steps.collect::<Vec<_>>(), place(&speakers));
        let blamed = steps.get(at)?.speaker.clone();
        Some(Gold {
            id: format!("r{n}"),
            culprits: vec![Culprit { agent: Some(blamed), step: u32::try_from(at).ok(), mode: None }],
            speakers: steps.iter().map(|step| step.speaker.clone()).collect(),
            task: format!("task {n}"),
            shape: features("What is it?", &steps),
            ..Gold::default()
        })
    };
    (0..120).filter_map(run).collect()
}

fn cast(speakers: &[usize]) -> usize {
    speakers.iter().collect::<BTreeSet<_>>().len()
}

#[test]
fn a_place_that_tells_is_found_where_all_words_are_the_same() {
    let places: [(&str, ErrorPlace); 3] = [
        ("the third step from the end", |run| run.len() - 3),
        ("the last call of who spoke first", |run| run.iter().rposition(|who| *who == run[0]).expect("a step")),
        ("who speaks once", |run| {
            let once = |who: &usize| run.iter().filter(|other| *other == who).count() == 1;
            run.iter().position(once).unwrap_or(usize::MAX)
        }),
    ];
    for (name, place) in places {
        let found = probe(&wordless(place), Unseen::Task).expect("enough");
        println!("{name}: {found:?}");
        assert!(found.step.share > 0.85, "{name}: {found:?}");
    }
}

#[test]
fn a_count_that_tells_is_found_where_all_words_are_the_same() {
    let counts: [(&str, ErrorPlace); 2] = [
        ("steps", |run| if run.len() > 8 { run.len() - 2 } else { 1 }),
        ("agents", |run| if cast(run) > 2 { run.len() - 2 } else { 1 }),
    ];
    for (name, place) in counts {
        let found = probe(&wordless(place), Unseen::Task).expect("enough");
        println!("{name}: {found:?}");
        assert!(found.step.share > 0.85, "{name}: {found:?}");
    }
    let drawn = probe(&wordless(|run| run.iter().sum::<usize>() * 7 % run.len()), Unseen::Task).expect("enough");
    assert!(drawn.step.share < 0.35, "a place that nothing tells: {drawn:?}");
}
