//! Tests of [`super`]: what the strict score says of what was answered, of what was not, and of labels that know little.

use super::*;
use crate::score::{Culprit, Guess};

fn culprit(agent: Option<&str>, step: Option<u32>, mode: Option<&str>) -> Culprit {
    Culprit { agent: agent.map(str::to_owned), step, mode: mode.map(str::to_owned) }
}

fn gold(id: &str, culprits: &[Culprit], speakers: &[&str]) -> Gold {
    let speakers = speakers.iter().map(|name| (*name).to_owned()).collect();
    Gold { id: id.into(), culprits: culprits.to_vec(), speakers, ..Gold::default() }
}

fn says(id: &str, line: usize, answer: PredictedAnswer) -> Prediction {
    Prediction { id: id.into(), line, answer }
}

fn guess(agent: Option<&str>, step: Option<i64>, mode: Option<&str>) -> Guess {
    Guess { agent: agent.map(str::to_owned), step, mode: mode.map(str::to_owned) }
}

#[test]
fn what_was_not_answered_is_counted_by_why() {
    let golds: Vec<Gold> =
        ["a", "b", "c", "d", "e"].map(|id| gold(id, &[culprit(Some("X"), Some(0), None)], &["X"])).into();
    let right = || PredictedAnswer::Set(vec![guess(Some("X"), Some(0), None)]);
    let predictions = [
        says("a", 1, PredictedAnswer::Unparsed("no".into())),
        says("a", 2, right()),
        says("b", 3, PredictedAnswer::Set(vec![])),
        says("c", 4, PredictedAnswer::Unparsed("no".into())),
        says("a", 5, right()),
        says("y", 6, right()),
        says("z", 7, right()),
    ];
    let report = evaluate(&golds, &predictions, 0).expect("scored");
    let Coverage { answered, nobody, false_alarms, unparsed, missing, unknown, replaced } = report.coverage;
    assert_eq!((answered.hits, answered.of), (2, 5));
    assert_eq!((nobody, unparsed, missing, unknown, replaced), (1, 1, 2, 2, 2));
    assert_eq!(false_alarms.of, 0, "no run is clean");
    let clean = [gold("a", &[], &["X"]), gold("b", &[], &["X"]), gold("c", &[], &["X"])];
    let blamed = evaluate(&clean, &predictions, 0).expect("scored").coverage.false_alarms;
    assert_eq!((blamed.hits, blamed.of), (1, 3));
    assert_eq!((report.accuracy.agent.hits, report.accuracy.agent.of), (1, 5));
    assert_eq!(
        report.warnings,
        [
            "5 runs are few: read the intervals, not the figures",
            "the shape probe is left out: 0 runs have a labelled step and their words, 40 are needed",
            "2 predictions are about runs that the gold data does not have, such as `y` on line 6",
        ]
    );
}

#[test]
fn warnings_name_what_a_reader_should_know() {
    let spoken = |id: &str| gold(id, &[culprit(Some("X"), Some(0), None)], &["X", "Y"]);
    let absent = |id: &str| gold(id, &[culprit(Some("Z"), Some(0), None)], &["X", "Y"]);
    let untraced = |id: &str| gold(id, &[culprit(Some("Z"), Some(0), None)], &[]);
    let clean = |id: &str| gold(id, &[], &["X"]);
    let few = |n: usize| format!("{n} runs are few: read the intervals, not the figures");
    let unprobed = "the shape probe is left out: 0 runs have a labelled step and their words, 40 are needed";
    let one = "1 gold labels name an agent that never speaks in its run".to_owned();
    for (golds, expected) in [
        (vec![spoken("a"), untraced("b"), clean("c")], vec![few(3)]),
        (vec![spoken("a"), absent("b")], vec![one.clone(), few(2)]),
        ((0..99).map(|n| spoken(&n.to_string())).collect(), vec![few(99)]),
        ((0..100).map(|n| spoken(&n.to_string())).collect(), vec![]),
        ((0..100).map(|n| if n == 7 { absent("7") } else { spoken(&n.to_string()) }).collect(), vec![one]),
    ] {
        let first = says(&golds[0].id, 1, PredictedAnswer::Set(vec![]));
        let expected: Vec<String> = expected.into_iter().chain([unprobed.to_owned()]).collect();
        assert_eq!(evaluate(&golds, &[first], 0).expect("scored").warnings, expected);
    }
}

#[test]
fn each_kind_of_set_is_scored_over_what_labels_know_of_it() {
    let golds = [
        gold("a", &[culprit(Some("X"), None, Some("FM-1.1")), culprit(Some("Y"), None, None)], &[]),
        gold("b", &[culprit(None, None, Some("FM-1.3"))], &[]),
    ];
    let predictions = [
        says(
            "a",
            1,
            PredictedAnswer::Set(vec![guess(Some("x"), None, Some("1.1")), guess(Some("Z"), None, Some("1.1"))]),
        ),
        says(
            "b",
            2,
            PredictedAnswer::Ranked(vec![guess(None, None, Some("FM-2.1")), guess(None, None, Some("FM-1.3"))]),
        ),
    ];
    let report = evaluate(&golds, &predictions, 0).expect("scored");
    let counts = |score: Option<SetScore>| score.map(|score| (score.counts.tp, score.counts.fp, score.counts.missed));
    // Agents: X found, Z made up, Y missed. Modes: 1.1 found; of the ranked only the first counts. Pairs: (X, 1.1).
    assert_eq!(counts(report.agent.clone()), Some((1, 1, 1)));
    assert_eq!(counts(report.mode), Some((1, 1, 1)));
    assert_eq!(counts(report.pair), Some((1, 1, 0)));
    let agent = report.agent.expect("agents");
    assert!(agent.micro_f1_interval.is_none() && agent.macro_f1_interval.is_none(), "two rows tell no interval");
    let modes = report.tables.iter().find(|table| table.by == "mode").expect("a table by mode");
    let recall: Vec<_> = modes.rows.iter().map(|row| (row.value.as_str(), row.mode.map(|mode| mode.recall))).collect();
    assert_eq!(recall, [("FM-1.1", Some(1.0)), ("FM-1.3", Some(0.0))]);
    let nothing = evaluate(&[gold("a", &[], &[])], &[says("a", 1, PredictedAnswer::Set(vec![]))], 0).expect("scored");
    assert_eq!((nothing.agent, nothing.mode, nothing.pair), (None, None, None));
}

#[test]
fn a_run_is_found_by_its_id_and_by_its_file_where_only_one_has_it() {
    let raw = |id: &str, file: &str| Gold {
        raw: Some(super::super::RawLabel { file: file.into(), ..Default::default() }),
        ..gold(id, &[], &[])
    };
    let golds = [raw("a", "1.json"), raw("b", "2.json"), raw("c", "2.json"), raw("1.json", "9.json")];
    let index = index(&golds).expect("an index");
    let found = ["a", "b", "c", "1.json", "2.json", "9.json"].map(|id| index.get(id).copied());
    // An id goes before a file's name, and a name that two files have is nobody's.
    assert_eq!(found, [Some(0), Some(1), Some(2), Some(3), None, Some(3)]);
}
