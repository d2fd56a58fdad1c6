//! What differs from run to run is no difference from the twin; what a program said or was told is.

use super::{
    Rule,
    defects::Samples,
    tests::{lint_dir, write},
};
use crate::dataset::{
    Called, SampleMessage,
    samples::{message, set, step},
};

#[test]
fn ids_of_calls_may_differ_from_the_twins_but_not_what_they_answer() {
    let called = |samples: &mut Samples, run: usize, ids: [&str; 2], answered: &str| {
        let calls = ids.map(|id| Called { id: id.to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() });
        let messages = &mut samples[run].steps[1].input.as_mut().expect("an input").messages;
        messages.push(SampleMessage { calls: calls.to_vec(), ..message("assistant", "") });
        messages.push(SampleMessage { answers: Some(answered.to_owned()), ..message("tool", "three") });
    };
    for (ids, answered, differs) in [(["a", "b"], "a", false), (["x", "y"], "x", false), (["x", "y"], "y", true)] {
        let mut samples = set();
        samples.truncate(2);
        called(&mut samples, 0, ["a", "b"], "a");
        called(&mut samples, 1, ids, answered);
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), &samples);
        let found = lint_dir(dir.path()).findings.iter().any(|found| found.rule == Rule::PrefixDiffers);
        assert_eq!(found, differs, "{ids:?} {answered}");
    }
}

fn parts(change: impl FnOnce(&mut Samples)) -> bool {
    let mut samples = set();
    samples.truncate(2);
    change(&mut samples);
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), &samples);
    lint_dir(dir.path()).findings.iter().any(|found| found.rule == Rule::PrefixDiffers)
}

#[test]
fn what_moves_from_run_to_run_is_no_difference_from_the_twin() {
    let dated = |samples: &mut Samples, dates: [&str; 2], count: [u32; 2]| {
        for ((run, date), count) in [0, 1].into_iter().zip(dates).zip(count) {
            let messages = &mut samples[run].steps[0].input.as_mut().expect("an input").messages;
            messages[0].text = format!("Today is {date}. Name {count} fruits.");
        }
    };
    assert!(!parts(|samples| dated(samples, ["2026-11-22", "2026-11-23"], [3, 3])));
    assert!(parts(|samples| dated(samples, ["2026-11-22", "2026-11-22"], [3, 4])));
}

#[test]
fn steps_that_overlapped_stand_in_any_order() {
    // Two scouts before the error, with one prompt; `overlap` marks the second.
    let scouts = |samples: &mut Samples, orders: [[&str; 2]; 2], overlap: bool, answers: [&str; 2]| {
        for (sample, order) in samples.iter_mut().zip(orders) {
            for (number, what) in order.into_iter().enumerate() {
                let answer = if what == "pears" { answers[0] } else { answers[1] };
                let mut scout = step(0, "scout", u32::try_from(number).expect("small"), what, answer);
                scout.overlaps = overlap && number == 1;
                sample.steps.insert(number, scout);
            }
            (0..).zip(&mut sample.steps).for_each(|(number, step)| step.step = number);
            let Some(label) = &mut sample.label else { continue };
            label.errors.iter_mut().for_each(|error| error.step = error.step.map(|step| step + 2));
            label.changes.iter_mut().for_each(|change| change.step += 2);
        }
    };
    let (one, other) = (["pears", "plums"], ["plums", "pears"]);
    assert!(!parts(|samples| scouts(samples, [one, one], false, ["ripe", "sour"])));
    assert!(!parts(|samples| scouts(samples, [one, other], true, ["ripe", "sour"])));
    assert!(parts(|samples| scouts(samples, [one, other], false, ["ripe", "sour"])));
    assert!(parts(|samples| scouts(samples, [one, ["plums", "plums"]], true, ["ripe", "sour"])));
    // The same question twice, with answers of which each was given once.
    let twice = |answers: [[&'static str; 2]; 2]| {
        parts(|samples| {
            scouts(samples, [["pears", "pears"]; 2], true, ["ripe", "sour"]);
            for (sample, answers) in samples.iter_mut().zip(answers) {
                answers
                    .into_iter()
                    .enumerate()
                    .for_each(|(at, text)| sample.steps[at].output = Some(message("assistant", text)));
            }
        })
    };
    assert!(!twice([["ripe", "sour"], ["sour", "ripe"]]));
    assert!(twice([["ripe", "sour"], ["sour", "sour"]]));
}
