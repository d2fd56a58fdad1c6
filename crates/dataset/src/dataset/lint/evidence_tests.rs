//! Dates of recordings against the order in which they must have been made; what earlier versions wrote; what a row says that
//! left its twin without an edit.

use std::{fs, path::Path};

use serde_json::json;

use super::{
    Rule,
    defects::{answer, evidence},
    tests::{lint_dir, shown, write},
};
use crate::dataset::samples::{repeated, set};

/// The manifest of a run that began at this second, alone or like another.
fn recorded(dir: &Path, run: &str, second: u32, like: Option<&str>, plan: bool) {
    let dir = dir.join("logs").join(run);
    fs::create_dir_all(&dir).expect("makes");
    let mut manifest = json!({"format": 1, "run": run, "upstream": "simulator", "started": format!("2026-11-26T15:00:{second:02}.5Z"),
        "versions": {"aegis": "0.1.0", "taxonomy": "MAST-2503.13657v2"}});
    if let Some(like) = like {
        manifest["repeat_of"] = like.into();
    }
    if plan {
        manifest["plan"] = "format = 1".into();
    }
    fs::write(dir.join("run.json"), manifest.to_string()).expect("writes");
}

#[test]
fn controls_are_younger_than_what_they_stand_against() {
    let (clean, wrong) = ("c-clean-0003", "c-wrong-0003");
    // Seconds: of the twin, of the run, of its controls.
    for (twin, run, controls, found) in [
        (1, 10, &[20, 21][..], false),
        (1, 10, &[5, 6], true),
        (1, 10, &[5, 20], true),
        (1, 10, &[5, 20, 21], false),
        (1, 10, &[5], false),
        (1, 10, &[], false),
        (30, 10, &[40, 41], true),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut samples = set();
        evidence(&mut samples[1]).executed = Some(repeated());
        write(dir.path(), &samples);
        recorded(dir.path(), clean, twin, None, false);
        recorded(dir.path(), wrong, run, Some(clean), true);
        recorded(dir.path(), "c-other", 2, Some("c-another"), false);
        for (number, second) in controls.iter().enumerate() {
            recorded(dir.path(), &format!("c-control-{number}"), *second, Some(clean), false);
        }
        let report = lint_dir(dir.path());
        let order: Vec<_> = report.findings.iter().filter(|found| found.rule == Rule::EvidenceOrder).collect();
        assert_eq!(!order.is_empty(), found, "{twin} {run} {controls:?}: {}", shown(&report));
        assert!(order.iter().all(|found| found.sample == wrong));
    }
}

#[test]
fn a_row_that_left_its_twin_earlier_says_so() {
    for (fork, found) in [(None, true), (Some(1), true), (Some(0), false)] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut samples = set();
        answer(&mut samples[1], 0, "Hmm.");
        evidence(&mut samples[1]).fork_step = fork;
        write(dir.path(), &samples);
        let report = lint_dir(dir.path());
        assert_eq!(report.findings.iter().any(|found| found.rule == Rule::PrefixDiffers), found, "{fork:?}");
    }
}

#[test]
fn hostile_counts_are_read_to_the_end() {
    for (count, e) in [(u32::MAX, f64::MAX), (u32::MAX, 0.0), (64, 1e300), (65, 1e300), (0, f64::MIN)] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut samples = set();
        let executed = evidence(&mut samples[1]).executed.as_mut().expect("executed");
        (executed.control.passed, executed.control.failed) = (count, count);
        (executed.treated.failed, executed.pairs, executed.e) = (count, count, Some(e));
        executed
            .treated
            .void
            .extend([(crate::trajectory::Void::Crashed, count), (crate::trajectory::Void::Budget, count)]);
        write(dir.path(), &samples);
        assert!(!lint_dir(dir.path()).is_clean(), "{count} {e}");
    }
}
