//! Planted errors, played out: how often a label says something wrong of what the failure needs.

use super::{Arm, Claim, LeaveOneOut, NeedTerms, Next, NextForNeed, ProofSample, Terms, read_former_states};
use crate::trajectory::{
    AgentName, EffectExcluded, Evidence, Executed, Executions, JointCause, Necessity, Need, Standing, Void,
};

use super::systems_tests::Draws;

/// A system with two planted errors: the chance to pass without any, without the first, without the second, and with both, where
/// nothing else goes wrong; and the share of runs that crash without the second.
struct TwoErrors {
    name: &'static str,
    without: [f64; 2],
    with_both: f64,
    crashes: f64,
    needed: [bool; 2],
}

const SYSTEMS: [TwoErrors; 5] = [
    TwoErrors {
        name: "both are needed, and without one the program often crashes",
        without: [1.0, 1.0],
        with_both: 0.0,
        crashes: 0.6,
        needed: [true, true],
    },
    TwoErrors {
        name: "both are needed, and one alone fails in 60 %",
        without: [0.4, 0.4],
        with_both: 0.0,
        crashes: 0.0,
        needed: [true, true],
    },
    TwoErrors {
        name: "each adds half of the failures",
        without: [0.6, 0.6],
        with_both: 0.22,
        crashes: 0.0,
        needed: [true, true],
    },
    TwoErrors { name: "one does it all", without: [1.0, 0.0], with_both: 0.0, crashes: 0.0, needed: [true, false] },
    TwoErrors { name: "either is enough", without: [0.0, 0.0], with_both: 0.0, crashes: 0.0, needed: [false, false] },
];

fn drawn(draws: &mut Draws, chance: f64, crashes: f64) -> ProofSample {
    if draws.uniform() < crashes {
        ProofSample::Void(Void::Crashed)
    } else if draws.uniform() < chance {
        ProofSample::Passed
    } else {
        ProofSample::Failed
    }
}

/// What was executed for a failure as a whole; `None` where that does not come to be shown.
fn whole(system: &TwoErrors, noise: f64, draws: &mut Draws) -> Option<Executed> {
    let (mut control, mut treated) = (Vec::new(), Vec::new());
    loop {
        let claim = Claim::injection(&Terms::default(), &control, &treated);
        match claim.next() {
            Next::Stop(standing) => return (standing == Standing::Verified).then(|| claim.executed()),
            Next::Execute(Arm::Control) => control.push(drawn(draws, 1.0 - noise, 0.0)),
            Next::Execute(Arm::Treated) => treated.push(drawn(draws, (1.0 - noise) * system.with_both, 0.0)),
        }
    }
}

/// What is shown of each error of a failure, and in how many runs.
fn needs(system: &TwoErrors, noise: f64, whole: &Executed, draws: &mut Draws) -> (Vec<Necessity>, usize) {
    let mut runs = 0;
    let known = [0, 1].map(|error: usize| {
        let name = format!("{} {error} {}", system.name, draws.uniform());
        let terms = NeedTerms::new(&Terms::default(), whole, 2).drawn_for(&Terms::default(), &name);
        let (mut without, mut with_all) = (Vec::new(), Vec::new());
        let crashes = if error == 1 { system.crashes } else { 0.0 };
        let state = loop {
            let left_out = LeaveOneOut { without: &without, with_all: &with_all, terms };
            match left_out.next() {
                NextForNeed::Stop(need) => break need,
                NextForNeed::Execute(Arm::Control) => {
                    without.push(drawn(draws, (1.0 - noise) * system.without[error], crashes));
                }
                NextForNeed::Execute(Arm::Treated) => {
                    with_all.push(drawn(draws, (1.0 - noise) * system.with_both, 0.0));
                }
            }
            assert!(without.len() + with_all.len() <= 130, "every question ends");
        };
        runs += without.len() + with_all.len();
        let left_out = LeaveOneOut { without: &without, with_all: &with_all, terms };
        necessity(u32::try_from(error).expect("few"), state, left_out.executed(), Some(left_out.exclusion()))
    });
    (known.to_vec(), runs)
}

fn necessity(injection: u32, state: Need, executed: Executed, exclusion: Option<EffectExcluded>) -> Necessity {
    let agent = AgentName::parse("solver").expect("a name");
    Necessity { injection, agent, instance: 0, state, executed, exclusion }
}

#[test]
fn a_label_is_seldom_wrong_about_what_the_failure_needs() {
    for system in &SYSTEMS {
        for noise in [0.0, 0.2, 0.6] {
            let mut draws = Draws::seeded(&format!("needs {} {noise}", system.name));
            let (mut labels, mut wrong, mut all, mut joint, mut runs) = (0, 0, 0, 0, 0);
            let mut states = [0; 3];
            while labels < 100 && all < 6_000 {
                all += 1;
                let Some(whole) = whole(system, noise, &mut draws) else { continue };
                let (known, made) = needs(system, noise, &whole, &mut draws);
                let is_wrong = |(one, needed): (&Necessity, bool)| match one.state {
                    Need::Necessary => !needed,
                    Need::NotNeeded => needed,
                    Need::NotShown => false,
                };
                let cause = JointCause::from_necessities(&known);
                let alone = cause == Some(JointCause::Joint) && system.needed != [true; 2];
                wrong += usize::from(alone || known.iter().zip(system.needed).any(is_wrong));
                joint += usize::from(cause == Some(JointCause::Joint));
                known.iter().for_each(|one| states[one.state as usize] += 1);
                labels += 1;
                runs += made;
            }
            println!(
                "{}, noise {noise}: {wrong} of {labels} labels wrong, {joint} joint; necessary, not needed, not shown: \
                 {states:?}; {} runs a label",
                system.name,
                runs / labels.max(1)
            );
            assert!(labels >= 100 && wrong * 50 <= labels, "{}, noise {noise}: {wrong} of {labels}", system.name);
            // Nor may silence be the way to say nothing wrong: without noise what is so is shown.
            let plain = noise == 0.0 && system.crashes == 0.0 && system.with_both == 0.0;
            assert!(!plain || states[2] * 5 <= 2 * labels, "{}: {states:?} of {labels}", system.name);
        }
    }
}

fn samples(text: &str) -> Vec<ProofSample> {
    let sample = |letter| match letter {
        'p' => ProofSample::Passed,
        'f' => ProofSample::Failed,
        _ => ProofSample::Void(Void::Crashed),
    };
    text.chars().map(sample).collect()
}

fn shown_whole() -> Executed {
    let of = |passed, failed| Executions { passed, failed, ..Executions::default() };
    Executed {
        control: of(6, 0),
        treated: of(0, 6),
        pairs: 6,
        e: Some(1792.0),
        target: Some(1000.0),
        ..Executed::default()
    }
}

#[test]
fn what_is_shown_of_an_error_that_is_left_out() {
    let terms = NeedTerms::new(&Terms::default(), &shown_whole(), 2);
    let (f16, p16) = ("f".repeat(16), "p".repeat(16));
    for (without, with_all, expected) in [
        ("pppppp", "ffffff", Some(Need::Necessary)),
        // Three runs that fail alike show nothing, nor does an effect of a half that they exclude.
        ("fff", "fff", None),
        ("ffffffff", "ffffffff", None),
        (&f16, &f16, Some(Need::NotNeeded)),
        // Void runs exclude nothing.
        ("fvv", "fff", Some(Need::NotShown)),
        (&format!("{f16}vvvvvvvvvv"), &f16, Some(Need::NotShown)),
        // As long as it fails as it did for the most part, a run with all errors may pass.
        (&f16, "ffpfffffffffffff", Some(Need::NotNeeded)),
        // What does not fail any more with all errors says nothing of one of them.
        (&p16, &p16, Some(Need::NotShown)),
    ] {
        let (without, with_all) = (samples(without), samples(with_all));
        let shown = match (LeaveOneOut { without: &without, with_all: &with_all, terms }).next() {
            NextForNeed::Stop(need) => Some(need),
            NextForNeed::Execute(_) => None,
        };
        assert_eq!(shown, expected, "{without:?} {with_all:?}");
    }
}

#[test]
fn what_the_pairs_that_are_left_cannot_show_is_given_up() {
    let terms = NeedTerms::new(&Terms { pairs: 4, ..Terms::default() }, &shown_whole(), 2);
    let (without, with_all) = (samples("fff"), samples("fff"));
    let left_out = LeaveOneOut { without: &without, with_all: &with_all, terms };
    assert_eq!(left_out.next(), NextForNeed::Stop(Need::NotShown));
    // The sixteenth pair that fails alike excludes an effect: until then the question stays open where it may come.
    for (most, made, is_open) in [(16, 15, true), (15, 14, false)] {
        let terms = NeedTerms::new(&Terms { pairs: most, ..Terms::default() }, &shown_whole(), 2);
        let alike = samples(&"f".repeat(made));
        let next = LeaveOneOut { without: &alike, with_all: &alike, terms }.next();
        assert_eq!(next != NextForNeed::Stop(Need::NotShown), is_open, "{made} of {most}");
    }
    let executed = left_out.executed();
    assert_eq!((executed.control.failed, executed.treated.failed, executed.pairs), (3, 3, 3));
    assert_eq!(executed.target, LeaveOneOut { without: &[], with_all: &[], terms }.executed().target);
    assert!(executed.target.is_some());
}

#[test]
fn which_arm_goes_first_is_drawn_for_every_pair() {
    let first = |name: &str| {
        let terms = NeedTerms::new(&Terms::default(), &shown_whole(), 2).drawn_for(&Terms::default(), name);
        (LeaveOneOut { without: &[], with_all: &[], terms }).next()
    };
    let all: Vec<_> = (0..32).map(|name| first(&name.to_string())).collect();
    for arm in [Arm::Control, Arm::Treated] {
        assert!(all.contains(&NextForNeed::Execute(arm)), "{arm:?}");
    }
    let terms = NeedTerms::new(&Terms::default(), &shown_whole(), 2);
    for (without, with_all, next) in [("f", "", Arm::Treated), ("", "f", Arm::Control), ("v", "f", Arm::Control)] {
        let (without, with_all) = (samples(without), samples(with_all));
        assert_eq!((LeaveOneOut { without: &without, with_all: &with_all, terms }).next(), NextForNeed::Execute(next));
    }
}

#[test]
fn a_label_of_an_earlier_version_clears_what_its_counts_exclude() {
    let of = |passed, failed| Executions { passed, failed, ..Executions::default() };
    let void = |failed, void| Executions { void: [(Void::Crashed, void)].into(), ..of(0, failed) };
    let (pairs, repeats) = (false, true);
    for (control, treated, repeatable, state) in [
        (of(0, 3), of(0, 6), pairs, Need::NotShown),
        (of(0, 8), of(0, 40), pairs, Need::NotShown),
        (of(0, 20), of(0, 40), pairs, Need::NotNeeded),
        (of(12, 8), of(0, 40), pairs, Need::NotShown),
        // Twelve of the twenty that are compared passed, at least.
        (of(0, 20), of(32, 8), pairs, Need::NotShown),
        (void(20, 15), of(0, 40), pairs, Need::NotShown),
        (of(20, 0), of(20, 0), pairs, Need::NotShown),
        (of(0, 0), of(0, 0), pairs, Need::NotShown),
        (of(0, 2), of(0, 2), repeats, Need::NotNeeded),
        (void(0, 2), of(0, 2), repeats, Need::NotShown),
        (of(0, 0), of(0, 0), repeats, Need::NotShown),
    ] {
        let executed = Executed { control, treated, repeatable, ..Executed::default() };
        let known = necessity(0, Need::NotShown, executed, None);
        let needed = necessity(1, Need::Necessary, shown_whole(), None);
        let necessity = vec![known, needed.clone()];
        let mut evidence = Evidence { executed: Some(shown_whole()), necessity, ..Evidence::default() };
        assert!(read_former_states(&mut evidence));
        let read = &evidence.necessity[0];
        assert_eq!(read.state, state, "{:?}", read.executed);
        assert_eq!(evidence.necessity[1], needed);
        let again = &mut evidence.clone();
        read_former_states(again);
        assert_eq!(*again, evidence, "read twice it is the same");
    }
    let mut single = Evidence { executed: Some(shown_whole()), ..Evidence::default() };
    assert!(!read_former_states(&mut single));
}
