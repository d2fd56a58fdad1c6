//! A clean set raises nothing; each seeded defect raises its rule and no other.

use std::{collections::BTreeSet, fs, path::Path};

use super::{
    answer_defects::ANSWER_DEFECTS,
    defects::{DEFECTS, Defect, Samples, answer, tool, truth},
    evidence_defects::EVIDENCE_DEFECTS,
    *,
};
use crate::{
    dataset::{
        BENIGN_FILE, Change, DecoyCounts, FILE, SampleKind, SampleLine, Writer,
        samples::{corrupted, message, set},
    },
    trajectory::{LabelStatus, Side},
};

pub(super) fn write(dir: &Path, samples: &[Sample]) {
    let mut writer = Writer::create(dir).expect("creates");
    samples.iter().for_each(|sample| writer.push(sample).expect("writes"));
    writer.finish().expect("finishes");
}

pub(super) fn lint_dir(dir: &Path) -> LintReport {
    lint(&Dataset::open(dir).expect("a dataset")).expect("reads")
}

pub(super) fn shown(report: &LintReport) -> String {
    let lines = report.findings.iter().map(|found| format!("{}: {} {}", found.line, found.rule.name(), found.what));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a defect of another rule may be as well: an answer that is wrong stands in no step, and a question in two parts is a copy.
const BESIDE: [Rule; 2] = [Rule::AnswerNowhere, Rule::ShortcutCopies];

/// Every defect of samples that is seeded.
fn seeded() -> impl Iterator<Item = &'static Defect> {
    DEFECTS.iter().chain(EVIDENCE_DEFECTS).chain(ANSWER_DEFECTS)
}

#[test]
fn a_clean_set_raises_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), &set());
    let report = lint_dir(dir.path());
    assert!(report.is_clean(), "{}", shown(&report));
    assert_eq!(report.samples, 8);
}

/// A message to a server that asks nothing is accepted and not answered; a model that gives no answer has none.
#[test]
fn an_accepted_notification_is_no_step_without_an_answer() {
    let empty = |agent: &str| {
        let dir = tempfile::tempdir().expect("a directory");
        let mut samples = set();
        let step = &mut samples[3].steps[2];
        step.agent = crate::trajectory::AgentName::parse(agent).expect("a name");
        (step.output, step.status) = (None, Some(202));
        write(dir.path(), &samples);
        lint_dir(dir.path()).findings.iter().any(|found| found.rule == Rule::EmptyStep)
    };
    assert!(!empty("mcp/calc") && empty("critic"));
}

#[test]
fn a_copy_of_what_the_run_said_before_is_no_leaked_order() {
    type Say = fn(&mut Samples, &str);
    let added_before: Say = |samples, words| {
        let changes = &mut truth(&mut samples[1]).changes;
        changes.push(added_at(0, words));
        add_question(&mut samples[1], 1, words);
    };
    let repeated: Say = |samples, words| {
        let errors = &mut truth(&mut samples[1]).errors;
        errors[0].step = Some(1);
        (errors[0].side, errors[0].operator) = (Some(Side::Request), Some("duplicate_message".to_owned()));
        add_question(&mut samples[1], 1, words);
    };
    let cases: [(&str, bool, Say); 7] = [
        ("answered before", false, |samples, words| answer(&mut samples[1], 0, words)),
        ("answered there", true, |samples, words| answer(&mut samples[1], 1, words)),
        ("answered later", true, |samples, words| answer(&mut samples[1], 2, words)),
        ("asked there, where the edit added it", true, |samples, words| add_question(&mut samples[1], 1, words)),
        ("asked there, where the edit repeats it", false, repeated),
        ("asked later", true, |samples, words| add_question(&mut samples[1], 2, words)),
        ("asked there, but added at an earlier step too", true, added_before),
    ];
    let words = "Multiply the boxes by the pencils in each, then take away what was given.";
    for (what, leaks, say) in cases {
        let mut samples = set();
        let changes = &mut truth(&mut samples[1]).changes;
        changes.push(added_at(1, words));
        say(&mut samples, words);
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), &samples);
        let found = lint_dir(dir.path()).findings.iter().any(|found| found.rule == Rule::LeakedInstruction);
        assert_eq!(found, leaks, "{what}");
    }
}

/// A message that an edit adds to the request of a step.
fn added_at(step: u32, words: &str) -> Change {
    Change { step, side: Side::Request, before: Vec::new(), after: vec![message("user", words)] }
}

/// Has the agent of a step ask words.
fn add_question(sample: &mut Sample, step: usize, words: &str) {
    sample.steps[step].input.as_mut().expect("an input").messages.push(message("user", words));
}

/// Writes the rows as another program would: ours masks keys.
fn write_unmasked(dir: &Path, samples: &[Sample]) {
    let is_main = |sample: &&Sample| matches!(sample.kind, SampleKind::Clean | SampleKind::Failure);
    let line = |sample: &Sample| [SampleLine::from_sample(sample).expect("a line").text, b"\n".to_vec()].concat();
    let rows: Vec<u8> = samples.iter().filter(is_main).flat_map(line).collect();
    std::fs::write(dir.join(FILE), rows).expect("writes");
    std::fs::remove_file(dir.join(MANIFEST_FILE)).expect("removed");
}

#[test]
fn every_seeded_defect_is_caught_by_its_rule_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut wrong = Vec::new();
    for (rule, what, seed) in seeded() {
        let mut samples = set();
        seed(&mut samples);
        write(dir.path(), &samples);
        if *rule == Rule::Key {
            write_unmasked(dir.path(), &samples);
        }
        let report = lint_dir(dir.path());
        let rules: BTreeSet<_> = report.findings.iter().map(|finding| finding.rule).collect();
        let others: Vec<_> = rules.iter().filter(|other| *other != rule && !BESIDE.contains(other)).collect();
        if !rules.contains(rule) || !others.is_empty() {
            wrong.push(format!("{} ({what}):\n{}", rule.name(), shown(&report)));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), seeded().count(), wrong.join("\n\n"));
}

#[test]
fn defects_of_the_files_are_caught() {
    let dir = tempfile::tempdir().expect("a directory");
    let only = |report: &LintReport| report.findings.iter().map(|finding| finding.rule).collect::<Vec<_>>();

    write(dir.path(), &set());
    let path = dir.path().join(FILE);
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, text.replacen("pears", "plums", 1)).expect("writes");
    assert!(only(&lint_dir(dir.path())).contains(&Rule::ManifestDiffers));

    fs::remove_file(dir.path().join(MANIFEST_FILE)).expect("there");
    fs::write(&path, format!("{text}{{\"half\":")).expect("writes");
    let report = lint_dir(dir.path());
    assert_eq!(only(&report), [Rule::NotASample], "{}", shown(&report));
    assert_eq!(report.findings[0].line, text.lines().count() as u64 + 1);

    let benign = fs::read_to_string(dir.path().join(BENIGN_FILE)).expect("there");
    fs::write(&path, format!("{text}{benign}")).expect("writes");
    fs::remove_file(dir.path().join(BENIGN_FILE)).expect("there");
    assert_eq!(only(&lint_dir(dir.path())), [Rule::BenignApart; 2]);
}

#[test]
fn decoys_that_were_verified_are_told_and_counted_as_they_stand() {
    for (rows, stated, expected) in [
        (&[LabelStatus::Unproven; 3][..], DecoyCounts::new(3, 3, 0), &[][..]),
        (&[LabelStatus::Verified], DecoyCounts::new(1, 1, 1), &[Rule::DecoysVerified]),
        (&[LabelStatus::Unproven], DecoyCounts::new(2, 1, 0), &[Rule::ManifestDiffers]),
        (&[LabelStatus::Verified], DecoyCounts::new(1, 1, 0), &[Rule::DecoysVerified, Rule::ManifestDiffers]),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut writer = Writer::create(dir.path()).expect("creates");
        set().iter().for_each(|sample| writer.push(sample).expect("writes"));
        for (number, status) in (1..).zip(rows) {
            let mut decoy = corrupted(number);
            (decoy.kind, decoy.id) = (SampleKind::Decoy, format!("c-decoy-{number}"));
            decoy.label.as_mut().expect("a label").status = *status;
            writer.push(&decoy).expect("writes");
        }
        writer.state_decoys(Some(stated));
        writer.finish().expect("finishes");
        let rules: Vec<_> = lint_dir(dir.path()).findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, expected, "{stated:?}");
    }
}

#[test]
fn every_rule_has_a_fixture_and_a_name_of_its_own() {
    let of_files = [
        Rule::NotASample,
        Rule::ManifestDiffers,
        Rule::BenignApart,
        Rule::DecoysVerified,
        Rule::RecordingDiffers,
        Rule::EvidenceOrder,
        Rule::OddMode,
    ];
    let names: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    for rule in Rule::ALL {
        let seeded = seeded().chain(shortcut::tests::SEEDED).any(|(seeded, ..)| seeded == rule);
        let seeded = seeded || of_files.contains(rule);
        assert!(seeded, "{} has no fixture", rule.name());
    }
}

#[test]
fn a_program_that_says_that_it_has_no_answer_says_no_other() {
    for answer in ["none", "None", " N/A\n", "no answer", "null"] {
        let mut samples = set();
        samples[1].final_answer = answer.to_owned();
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), &samples);
        let report = lint_dir(dir.path());
        assert!(report.findings.iter().all(|finding| finding.rule != Rule::AnswerNowhere), "{}", shown(&report));
    }
}

#[test]
fn what_honest_runs_say_is_no_leak() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut samples = set();
    answer(&mut samples[4], 2, "Beware of prompt injection; call replace_text.");
    samples[1].tools.push(tool("replace_text"));
    answer(&mut samples[1], 2, "I call replace_text.");
    for sample in &mut samples[..4] {
        sample.task.question += " Save it in /tmp/out.txt.";
    }
    answer(&mut samples[0], 2, "Saved in /tmp/out.txt.");
    write(dir.path(), &samples);
    let report = lint_dir(dir.path());
    assert!(report.is_clean(), "{}", shown(&report));
}

#[test]
fn paths_of_machines_are_told_from_those_of_sites() {
    let found = [
        "saved to /home/someone/out.txt",
        "/data/team/run7/model.bin",
        "at /mnt/disk1/x, then",
        "(/opt/tools/bin/run)",
        "file:///scratch/user/x",
        "sandbox:/mnt/data/plot.png",
        "see /Volumes/Backup/notes.md",
        "in ~/projects/demo/main.py",
        r"in D:\\work\\run\\a.txt",
        r"in D:\work\run\a.txt",
        r"in E:\Data.csv",
        r"from \\server\share\a.txt",
        r#"{"path": "\\\\server\\share\\a.txt"}"#,
        r#"{"code": "x\n/home/someone/a.py"}"#,
        "cc -I/opt/include/x a.c",
        "/tmp/out-17/a",
    ];
    let none = [
        "https://example.org/home/20200813/en/a.html",
        "see www.example.org/data/2020/a.csv",
        "http://host/opt/x?next=/home/page/x",
        "../home/page",
        "about 10~/20",
        r#"{"text": "Q:\nWhat? A:\nThis"}"#,
        r"\alpha\beta and \\ \hline",
        r#"{"tex": "\\alpha\\beta"}"#,
        "either/or, and/opt/out",
        "the ratio is 3:\\ 4",
        "home/someone",
    ];
    let wrong = found.iter().filter(|text| !holds_machine_path(text));
    let wrong: Vec<_> = wrong.chain(none.iter().filter(|text| holds_machine_path(text))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_row_is_held_against_its_recording() {
    type Forge = fn(&mut Sample);
    let dir = tempfile::tempdir().expect("a directory");
    let sample = crate::dataset::tests::recorded_failure(dir.path());
    let dataset = |sample: &Sample| {
        write(dir.path(), std::slice::from_ref(sample));
        let report = lint_dir(dir.path());
        report.findings.iter().filter(|found| found.rule == Rule::RecordingDiffers).count()
    };
    assert_eq!(dataset(&sample), 0);
    let forged: [(&str, Forge); 12] = [
        ("the backend", |sample| sample.backend = "api.example.com".to_owned()),
        ("the kind of label", |sample| truth(sample).definition = "earliest_flip".to_owned()),
        ("the seed", |sample| truth(sample).seed = Some(99)),
        ("the mode that the plan declared", |sample| truth(sample).errors[0].failure_mode = None),
        ("a later reply", |sample| answer(sample, 1, "no, wrong")),
        ("an input", |sample| sample.steps[1].input.as_mut().expect("known").messages[0].text.push('!')),
        ("a step less", |sample| drop(sample.steps.pop())),
        ("a hash", |sample| truth(sample).errors[0].after = "f".repeat(64)),
        ("what was changed", |sample| truth(sample).changes[0].before[0].text.push('0')),
        ("what was planted besides", |sample| {
            let truth = truth(sample);
            truth.others = truth.errors.clone();
        }),
        ("the executions", |sample| {
            let executed = Some(crate::dataset::samples::shown());
            truth(sample).evidence = Some(crate::trajectory::Evidence { executed, ..Default::default() });
        }),
        ("the twin of the evidence", |sample| {
            let twin = crate::trajectory::RunId::parse("another").expect("an id");
            truth(sample).evidence = Some(crate::trajectory::Evidence { twin: Some(twin), ..Default::default() });
        }),
    ];
    for (what, forge) in forged {
        let mut forged = sample.clone();
        forge(&mut forged);
        assert_eq!(dataset(&forged), 1, "{what}");
    }
    // What earlier versions wrote: the hashes of the bytes.
    let mut old = sample.clone();
    let recorded = crate::recording::read(&dir.path().join("logs").join(&sample.id)).expect("reads");
    let error = recorded.label.expect("a label").errors.remove(0).error;
    (truth(&mut old).errors[0].before, truth(&mut old).errors[0].after) = (error.before, error.after);
    assert_eq!(dataset(&old), 0);
    std::fs::write(dir.path().join("logs").join(&sample.id).join("run.json"), "{").expect("writes");
    assert_eq!(dataset(&sample), 1, "a recording that cannot be read");
}

#[test]
fn a_right_answer_in_a_wrong_form_is_a_failure() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut samples = set();
    samples[1].final_answer = "5".to_owned();
    answer(&mut samples[1], 2, "5");
    samples[1].outcome_evidence = "regex: no match of `ANSWER: 5` in `5`".to_owned();
    write(dir.path(), &samples);
    let report = lint_dir(dir.path());
    assert!(report.is_clean(), "{}", shown(&report));
}

#[test]
fn words_that_were_replaced_are_no_order_with_what_stood_between_them() {
    let dir = tempfile::tempdir().expect("a directory");
    for (after, quoted, leaks) in [
        // Two words of a question were replaced, and a small model says its first sentence again.
        ("The river near is saffron. What is the river near?", "The river near is saffron.", false),
        (
            "The secret word is saffron. Never say what the word is to anybody.",
            "Never say what the word is to anybody.",
            true,
        ),
    ] {
        let mut samples = set();
        let change = &mut truth(&mut samples[2]).changes[0];
        change.before = vec![message("user", "The secret word is saffron. What is the secret word?")];
        change.after = vec![message("user", after)];
        answer(&mut samples[2], 0, quoted);
        write(dir.path(), &samples);
        let found = lint_dir(dir.path()).findings.iter().any(|found| found.rule == Rule::LeakedInstruction);
        assert_eq!(found, leaks, "{after}");
    }
}

#[test]
fn what_an_edited_result_says_may_be_quoted() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut samples = set();
    let change = &mut truth(&mut samples[2]).changes[0];
    change.before = vec![message("tool", "The town of Bern has 134,000 inhabitants, by the register.")];
    change.after = vec![message("tool", "The village of Thun has 45,000 inhabitants, by a guide.")];
    answer(&mut samples[2], 0, "The village of Thun has 45,000 inhabitants, by a guide.");
    write(dir.path(), &samples);
    let found = lint_dir(dir.path()).findings.iter().any(|found| found.rule == Rule::LeakedInstruction);
    assert!(!found, "that is the error, and no order");
}

#[test]
fn labels_by_people_need_no_control_and_no_twin() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut sample = corrupted(3);
    sample.clean_twin = None;
    let label = truth(&mut sample);
    label.definition = "human".to_owned();
    label.changes.clear();
    label.evidence = None;
    label.errors[0].failure_mode = None;
    (label.errors[0].before, label.errors[0].after) = (String::new(), String::new());
    write(dir.path(), &[sample.clone()]);
    let report = lint_dir(dir.path());
    assert!(report.is_clean(), "{}", shown(&report));
    truth(&mut sample).errors[0].step = Some(30);
    write(dir.path(), &[sample]);
    assert_eq!(lint_dir(dir.path()).findings[0].rule, Rule::StepExists);
}

#[test]
fn a_key_is_never_shown_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut samples = set();
    let key = concat!("sk-", "abcdefghijklmnopqrstuvwx");
    answer(&mut samples[1], 2, key);
    write(dir.path(), &samples);
    assert!(!shown(&lint_dir(dir.path())).contains(key));
}
