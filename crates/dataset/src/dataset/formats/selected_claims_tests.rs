//! Which failures go out: by what was executed for them, and to formats of one culprit.

use std::path::Path;

use serde_json::json;

use super::{
    formats_tests::{exported, rows, unchecked},
    testing::{clean, failure, planted_jointly, planted_twice},
    *,
};
use crate::{
    dataset::{Claims, Dataset, Sample, Writer, samples},
    trajectory::{
        LabelStatus,
        Need::{Necessary, NotNeeded, NotShown},
        PrincipalKind, Tally,
    },
};

fn stated(dir: &Path, samples: &[Sample], begun: usize) -> Dataset {
    let mut writer = Writer::create(dir).expect("a writer");
    samples.iter().for_each(|sample| writer.push(sample).expect("written"));
    writer.state(Claims::from_e_values(0.01, begun, &[], 0));
    writer.finish().expect("finished");
    Dataset::open(dir).expect("a dataset")
}

fn worth(id: &str, e: f64) -> Sample {
    let mut sample = failure(id, 4);
    let evidence = sample.label.as_mut().expect("labelled").evidence.as_mut().expect("evidence");
    evidence.executed.as_mut().expect("executed").e = Some(e);
    sample
}

/// A failure of each kind, and why it stays behind.
fn of_each_kind() -> Vec<(Sample, Option<&'static str>)> {
    let with = |id: &str, change: &dyn Fn(&mut crate::dataset::Truth)| {
        let mut sample = failure(id, 4);
        change(sample.label.as_mut().expect("labelled"));
        sample
    };
    let of = |id: &str, status: LabelStatus| with(id, &|truth| truth.status = status);
    let evidence = |truth: &mut crate::dataset::Truth| truth.evidence.as_mut().expect("evidence").clone();
    vec![
        (worth("strong", 90_000.0), None),
        (worth("weak", 1000.0), Some("a failure that is not sure enough for this alpha")),
        (
            with("repeats", &|truth| {
                let executed = Some(samples::repeated());
                truth.evidence = Some(crate::trajectory::Evidence { executed, ..evidence(truth) });
            }),
            None,
        ),
        (
            with("former", &|truth| {
                let controls = Tally::new(2, 2);
                truth.evidence = Some(crate::trajectory::Evidence { executed: None, controls, ..evidence(truth) });
            }),
            Some(crate::dataset::formats::selected_claims::FORMER.0),
        ),
        (of("withdrawn", LabelStatus::Withdrawn), Some("a withdrawn label")),
        (of("contradicted", LabelStatus::Contradicted), Some("a contradicted label")),
        (of("unproven", LabelStatus::Unproven), Some("a label that is not shown")),
        (of("void", LabelStatus::Void), Some("a label too many of whose runs say nothing")),
        (of("delivered", LabelStatus::Delivered), Some("a label that is not proven")),
    ]
}

/// Rows do not tell what was planted from what a trace found: one kind goes out, unless more are asked for.
#[test]
fn failures_of_several_kinds_of_claims_go_out_where_that_is_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut samples: Vec<Sample> = [1, 2, 3].map(samples::corrupted).to_vec();
    samples[2].label.as_mut().expect("a label").definition = "flip".to_owned();
    let dataset = stated(&dir.path().join("d"), &samples, 3);
    let out = dir.path().join("out");
    let write = |definitions| {
        let options = ExportOptions { definitions, ..unchecked() };
        export(&dataset, format("sft").expect("a format"), &out, &options)
    };
    let refused = write(DefinitionChoice::One).expect_err("two kinds");
    assert!(refused.to_string().ends_with("1 flip, 2 injected"), "{refused}");
    assert!(!out.exists(), "nothing is written");
    for (definitions, counts) in [
        (DefinitionChoice::Of(vec!["injected".to_owned()]), &[("injected", 2)][..]),
        (DefinitionChoice::Of(vec!["flip".to_owned(), "human".to_owned()]), &[("flip", 1)]),
        (DefinitionChoice::All, &[("flip", 1), ("injected", 2)]),
    ] {
        let manifest = write(definitions).expect("exported");
        let counted: Vec<_> = manifest.definitions.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
        assert_eq!(counted, counts);
        let others = 3 - counts.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(manifest.left_out.get("another kind of claim").copied().unwrap_or_default(), others);
    }
}

#[test]
fn failures_go_out_by_what_was_executed_for_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let all = of_each_kind();
    let samples: Vec<Sample> = all.iter().map(|(sample, _)| sample.clone()).collect();
    let dataset = stated(&dir.path().join("d"), &samples, 400);
    let out = dir.path().join("out");
    let write =
        |options: ExportOptions| export(&dataset, format("sft").expect("a format"), &out, &options).expect("exported");
    let manifest = write(unchecked());
    assert_eq!(manifest.written, 2);
    for why in all.iter().filter_map(|(_, why)| *why) {
        assert_eq!(manifest.left_out.get(why), Some(&1), "{why}: {:?}", manifest.left_out);
    }
    let claims = &manifest.claims;
    assert_eq!((claims.begun, claims.stated, claims.rows, claims.kept), (400, true, 2, 1));
    assert_eq!((claims.repeatable, claims.former, claims.alpha), (1, 1, 0.01));
    assert!(claims.level.is_some_and(|level| (level - 400.0 / 90_000.0).abs() < 1e-12), "{:?}", claims.level);
    assert_eq!(write(ExportOptions { alpha: Some(0.2), ..unchecked() }).written, 3);
    assert_eq!(write(ExportOptions { former: true, ..unchecked() }).written, 3);
    assert_eq!(write(ExportOptions { unverified: true, ..unchecked() }).written, 3);

    // A file without its manifest: nobody knows what came to nothing.
    let alone = Dataset::open(&{
        let path = dir.path().join("some.jsonl");
        std::fs::copy(dir.path().join("d/dataset.jsonl"), &path).expect("copied");
        path
    });
    let manifest = exported(&alone.expect("a file"), "sft", &out);
    assert_eq!((manifest.claims.begun, manifest.claims.stated, manifest.claims.kept), (2, false, 2));
    assert!(manifest.claims.in_words().contains("nothing is known"));
}

#[test]
fn a_label_that_says_itself_that_it_is_not_proven_refuses_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut samples = samples::set();
    samples[1].label.as_mut().expect("labelled").status = LabelStatus::Contradicted;
    samples[2].label.as_mut().expect("labelled").status = LabelStatus::Withdrawn;
    let write = |samples: &[Sample]| {
        let dataset = super::formats_tests::dataset(&dir.path().join("d"), samples);
        export(&dataset, format("sft").expect("a format"), &dir.path().join("out"), &ExportOptions::default())
    };
    let manifest = write(&samples).expect("exported");
    assert_eq!((manifest.left_out["a contradicted label"], manifest.left_out["a withdrawn label"]), (1, 1));
    samples[5].label.as_mut().expect("labelled").evidence = None;
    assert!(matches!(write(&samples), Err(ExportError::Refused { .. })), "one that says that it is");
}

#[test]
fn formats_of_one_culprit_take_failures_with_exactly_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let all = [
        clean("a", 4),
        failure("a", 4),
        planted_twice("later", [NotNeeded, Necessary]),
        planted_twice("first", [Necessary, NotNeeded]),
        planted_twice("both", [Necessary, Necessary]),
        planted_twice("either", [NotNeeded, NotNeeded]),
        planted_twice("one", [Necessary, NotShown]),
        planted_twice("open", [NotNeeded, NotShown]),
        planted_jointly("joint"),
    ];
    let dataset = stated(&dir.path().join("d"), &all, 10);
    let several = "a failure of several errors: the format names one";
    let overdetermined = "a failure that needs none of several errors by itself: the format names one";
    let open = "a failure of which another planted error is not shown to be needless: the format names one";
    let nobody = "a failure of several errors, of none of which it is shown that it is needed";
    let joint = "a failure that several errors made together: the format names one";
    for name in ["whowhen", "whowhen-hand-crafted", "agentracer", "prm"] {
        let out = dir.path().join(name);
        let manifest = exported(&dataset, name, &out);
        let before = u64::from(name == "prm");
        for why in [several, overdetermined, open, nobody, joint] {
            assert_eq!(manifest.left_out[why], 1, "{name}: {why}");
        }
        assert_eq!(manifest.not_shown, 0, "{name}");
        assert_eq!(
            manifest
                .left_out
                .get("a failure before whose error something else was planted")
                .copied()
                .unwrap_or_default(),
            before
        );
        // prm takes the clean run, and leaves out the failure of which an earlier step was altered too.
        assert_eq!(manifest.written, 3, "{name}: {:?}", manifest.left_out);
    }
    let named: Vec<_> = rows(&dir.path().join("agentracer")).iter().map(|row| row["mistake_agent"].clone()).collect();
    assert_eq!(named, [json!("solver"), json!("solver"), json!("planner")]);
    let prm = rows(&dir.path().join("prm"));
    assert_eq!((&prm[1]["labels"], &prm[2]["labels"]), (&json!([true, false]), &json!([false])));
    // Formats of sets take all.
    for name in ["sft", "aegis", "mast", "runs", "verl", "grpo", "inspect"] {
        let manifest = exported(&dataset, name, &dir.path().join(name));
        assert_eq!((manifest.written, manifest.left_out[nobody], manifest.not_shown), (8, 1, 1), "{name}");
    }
    let sets = rows(&dir.path().join("aegis"));
    let agents = |row: usize| {
        let list = sets[row]["output"]["faulty_agents"].as_array().expect("a list");
        list.iter().map(|one| one["agent_name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((agents(2), agents(4).len(), agents(5).len()), (vec![json!("solver")], 2, 2));
    assert_eq!((agents(6), agents(7).len()), (vec![json!("planner")], 2), "what is not shown is not blamed");
    let runs = rows(&dir.path().join("runs"));
    let words = |row: usize| (&runs[row]["overdetermined"], &runs[row]["joint"]);
    assert_eq!((words(5), words(7)), ((&json!(true), &json!(false)), (&json!(false), &json!(true))));
    assert_eq!((&runs[6]["not_shown"][0]["agent"], &runs[6]["others"]), (&json!("solver"), &json!([])));
    let row = &runs[2];
    assert_eq!(
        (&row["others"][0]["agent"], &row["e"], &row["status"]),
        (&json!("planner"), &json!(1792.0), &json!("verified"))
    );
}

#[test]
fn an_agent_that_got_an_altered_result_of_a_tool_is_not_blamed() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut altered = failure("a", 4);
    for error in altered.label.iter_mut().flat_map(|truth| &mut truth.errors) {
        error.operator = Some("corrupt_tool_result".to_owned());
        error.culprit = PrincipalKind::Tool;
    }
    let gold = crate::dataset::gold(&altered).expect("an answer");
    assert!(gold.culprits.is_empty() && gold.servers.is_empty(), "nobody erred: {gold:?}");
    let dataset = stated(&dir.path().join("d"), &[failure("b", 4), altered], 10);
    let left_out = "an altered result of a tool that is no step of the run: no agent erred";
    for (name, servers) in [("whowhen", false), ("whowhen", true), ("aegis", true), ("sft", true)] {
        let out = dir.path().join(format!("{name}-{servers}"));
        let options = ExportOptions { servers, ..unchecked() };
        let manifest = export(&dataset, format(name).expect("a format"), &out, &options).expect("exported");
        assert_eq!((manifest.written, manifest.left_out[left_out]), (1, 1), "{:?}", manifest.left_out);
    }
}

#[test]
fn a_folder_says_what_each_of_its_formats_leaves_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut weak = worth("a", 5.0);
    weak.id = "RUN-weak".to_owned();
    let all = [clean("a", 4), failure("a", 4), planted_twice("both", [Necessary, Necessary]), weak];
    let dataset = stated(&dir.path().join("d"), &all, 10);
    let manifest = exported(&dataset, "huggingface", &dir.path().join("hub"));
    assert_eq!(manifest.written, 3);
    assert_eq!(manifest.left_out_of["prm"]["a failure of several errors: the format names one"], 1);
    assert_eq!((manifest.left_out_of["dpo"]["a clean run"], manifest.left_out_of.contains_key("sft")), (1, false));
    let card = std::fs::read_to_string(dir.path().join("hub/README.md")).expect("a card");
    for words in
        ["2 failures are `verified` by pairs", "(10), 2 were kept so that in the mean at most 1 %", "`overdetermined`"]
    {
        assert!(card.contains(words), "{words}: {card}");
    }
    // Of one sample two errors are of one mode: samples are counted.
    let modes = card.lines().find(|line| line.starts_with("| samples by failure mode |")).expect("a row");
    assert!(modes.starts_with("| samples by failure mode | 2 FM-2.6 "), "{modes}");
    // What is left out is in no row of its twin's either.
    exported(&dataset, "contrastive", &dir.path().join("pairs"));
    let negative = rows(&dir.path().join("pairs"))[0]["negative_samples"].as_array().expect("a list").len();
    assert_eq!(negative, 1, "not the weak one");
}

/// A row as earlier versions wrote it: whatever had not been shown to be necessary was no error.
#[test]
fn rows_of_earlier_versions_clear_what_their_counts_exclude() {
    let dir = tempfile::tempdir().expect("a directory");
    for (failed, list, written) in [(3, "not_shown", 0), (20, "others", 1)] {
        let mut row = serde_json::to_value(planted_twice("first", [Necessary, NotNeeded])).expect("a row");
        let known = row["label"]["evidence"]["necessity"].as_array_mut().expect("a list");
        for (one, necessary) in known.iter_mut().zip([true, false]) {
            let one = one.as_object_mut().expect("an object");
            one.retain(|name, _| !["state", "exclusion"].contains(&name.as_str()));
            one.insert("necessary".to_owned(), json!(necessary));
        }
        known[1]["executed"]["null"] = json!({"passed": 0, "failed": failed});
        known[1]["executed"]["treated"] = json!({"passed": 0, "failed": 40});
        known[1]["executed"]["e"] = json!(0.01);
        let path = dir.path().join("dataset.jsonl");
        std::fs::write(&path, row.to_string() + "\n").expect("written");
        let dataset = Dataset::open(&path).expect("a dataset");
        let sample = dataset.samples().next().expect("a row").expect("readable").sample;
        let truth = sample.label.as_ref().expect("labelled");
        let lists = [("errors", &truth.errors), ("others", &truth.others), ("not_shown", &truth.not_shown)];
        let holds = |of: &str| lists.iter().filter(|(name, _)| *name == of).flat_map(|(_, list)| list.iter()).count();
        assert_eq!((holds("errors"), holds(list)), (1, 1), "{failed}");
        let manifest = exported(&dataset, "whowhen", &dir.path().join(format!("w{failed}")));
        assert_eq!(manifest.written, written, "{failed}: {:?}", manifest.left_out);
    }
}
