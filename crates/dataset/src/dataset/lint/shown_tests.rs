//! What was executed for a label, and what was planted besides.

use super::{
    defects::{also_planted, truth},
    tests::{lint_dir, shown, write},
    *,
};
use crate::{
    dataset::{Writer, samples::set},
    trajectory::{Need, Tally},
};

#[test]
fn what_was_planted_besides_is_known() {
    for needed in [Some(Need::Necessary), Some(Need::NotNeeded), Some(Need::NotShown), None] {
        let mut samples = set();
        also_planted(&mut samples[2], needed);
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), &samples);
        let report = lint_dir(dir.path());
        assert!(report.is_clean(), "{needed:?}: {}", shown(&report));
    }
    // What the failure does not need may be what the twin says too, may come first, and ends the shared beginning.
    let mut samples = set();
    also_planted(&mut samples[2], Some(Need::NotNeeded));
    let label = truth(&mut samples[2]);
    std::mem::swap(&mut label.errors, &mut label.others);
    let evidence = label.evidence.as_mut().expect("evidence");
    (evidence.necessity[0].state, evidence.necessity[1].state) = (Need::NotNeeded, Need::Necessary);
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), &samples);
    let report = lint_dir(dir.path());
    assert!(report.is_clean(), "{}", shown(&report));
    samples[2].steps[0].output = samples[0].steps[0].output.clone();
    samples[2].steps[1] = samples[0].steps[1].clone();
    samples[2].final_answer = "12".to_owned();
    write(dir.path(), &samples);
    let report = lint_dir(dir.path());
    assert!(report.is_clean(), "{}", shown(&report));
}

#[test]
fn labels_of_the_former_rule_are_judged_by_it() {
    let mut samples = set();
    let evidence = truth(&mut samples[1]).evidence.as_mut().expect("evidence");
    (evidence.executed, evidence.controls) = (None, Tally::new(2, 2));
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), &samples);
    let report = lint_dir(dir.path());
    assert!(report.is_clean(), "{}", shown(&report));
    assert!(report.sure.contains("1 failure by a former rule"), "{}", report.sure);
    truth(&mut samples[1]).evidence.as_mut().expect("evidence").controls.passed = 1;
    write(dir.path(), &samples);
    let said = shown(&lint_dir(dir.path()));
    assert!(said.contains("verified (former rule): 1 of 2 controls passed"), "{said}");
}

#[test]
fn claims_that_the_rows_do_not_bear_are_caught() {
    let dir = tempfile::tempdir().expect("a directory");
    for (begun, stated, differs) in [(40, 4, false), (40, 5, true), (3, 4, true)] {
        let mut writer = Writer::create(dir.path()).expect("creates");
        set().iter().for_each(|sample| writer.push(sample).expect("writes"));
        writer.state(Claims::from_e_values(0.01, begun, &vec![1792.0; stated], 0));
        writer.finish().expect("finishes");
        let report = lint_dir(dir.path());
        let found = report.findings.iter().any(|found| found.rule == Rule::ManifestDiffers);
        assert_eq!(found, differs, "{begun} {stated}: {}", shown(&report));
        assert!(report.sure.contains(&format!("of {begun} claims begun")), "{}", report.sure);
    }
}
