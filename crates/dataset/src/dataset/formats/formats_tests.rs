//! Every format on samples of ours, and the four that are read back on synthetic files with the defects of the real ones.

use std::{fs, path::Path};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    testing::{clean, failure},
    *,
};
use crate::{
    dataset::{Dataset, Sample, Writer, gold},
    trajectory::{AgentName, CatchState, Executed, MissedCatch},
};

pub(super) fn dataset(dir: &Path, samples: &[Sample]) -> Dataset {
    let mut writer = Writer::create(dir).expect("a writer");
    samples.iter().for_each(|sample| writer.push(sample).expect("written"));
    writer.finish().expect("finished");
    Dataset::open(dir).expect("a dataset")
}

/// The samples here are too small for lint; that it is asked has its own test.
pub(super) fn unchecked() -> ExportOptions {
    ExportOptions { lint: Lint::Ignore, one_file: true, clean: CleanRows::All, ..ExportOptions::default() }
}

pub(super) fn exported(dataset: &Dataset, to: &str, out: &Path) -> ExportManifest {
    export(dataset, format(to).expect("a format"), out, &unchecked()).expect("exported")
}

pub(super) fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("readable");
    serde_json::from_str(&text)
        .unwrap_or_else(|_| text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect())
}

#[test]
fn every_format_is_written_twice_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let dataset = dataset(&dir.path().join("d"), &[clean("a", 4), failure("a", 4), failure("b", 3)]);
    for format in ALL {
        let (one, two) =
            (dir.path().join(format!("{}.1", format.name())), dir.path().join(format!("{}.2", format.name())));
        let first = exported(&dataset, format.name(), &one);
        let second = exported(&dataset, format.name(), &two);
        assert!(first.written > 0 && first.pieces > 0, "{}: {first:?}", format.name());
        let hashes = |manifest: &ExportManifest| manifest.files.values().cloned().collect::<Vec<_>>();
        assert_eq!(hashes(&first), hashes(&second), "{}", format.name());
        assert_eq!(first.read, first.written + first.left_out.values().sum::<u64>(), "{}", format.name());
        let again = exported(&dataset, format.name(), &one);
        assert_eq!(again, exported(&dataset, format.name(), &one), "{}: over an earlier export", format.name());
        assert!(
            fs::read_dir(dir.path())
                .expect("a directory")
                .flatten()
                .all(|entry| !entry.file_name().to_string_lossy().ends_with(".tmp"))
        );
    }
}

#[test]
fn no_format_tells_a_tracer_what_was_done() {
    let dir = tempfile::tempdir().expect("a directory");
    let dataset = dataset(&dir.path().join("d"), &[clean("a", 4), failure("a", 4)]);
    for name in ["sft", "grpo", "verl", "dpo", "prm"] {
        let out = dir.path().join(name);
        exported(&dataset, name, &out);
        let text = fs::read_to_string(&out).expect("readable");
        for word in ["corrupt_number", "inject", "operator", "verified"] {
            assert!(!text.contains(word), "{name} shows {word}");
        }
    }
}

#[test]
fn the_rows_that_trainers_take() {
    let dir = tempfile::tempdir().expect("a directory");
    let dataset = dataset(&dir.path().join("d"), &[clean("a", 4), failure("a", 4)]);
    let of = |name: &str| {
        let out = dir.path().join(name);
        exported(&dataset, name, &out);
        rows(&out)
    };
    let answer = r#"{"faulty_agents":[{"agent_name":"solver","step":1,"error_type":"FM-2.6"}]}"#;
    let sft = of("sft");
    assert_eq!(sft[1]["messages"][1], json!({"role": "assistant", "content": answer}));
    assert_eq!(sft[0]["messages"][1]["content"], json!(r#"{"faulty_agents":[]}"#));
    assert_eq!(of("grpo")[1]["ground_truth"], json!(answer));
    let verl = of("verl");
    assert_eq!(verl[1]["reward_model"]["ground_truth"], verl[1]["extra_info"]["answer"]);
    let truth: Value =
        serde_json::from_str(verl[1]["reward_model"]["ground_truth"].as_str().expect("text")).expect("JSON");
    assert_eq!(truth, serde_json::from_str::<Value>(answer).expect("JSON"));
    let dpo = of("dpo");
    assert_eq!(dpo.len(), 1);
    assert_eq!(
        (&dpo[0]["chosen"][0]["content"], &dpo[0]["rejected"][0]["content"]),
        (&json!("solver says 1, rightly"), &json!("solver says 1"))
    );
    assert_eq!(dpo[0]["prompt"][0], json!({"role": "system", "content": "you are the solver"}));
    let prm = of("prm");
    assert_eq!((&prm[0]["labels"], &prm[1]["labels"]), (&json!([true, true, true, true]), &json!([true, false])));
    let pairs = of("contrastive");
    assert_eq!((pairs.len(), &pairs[0]["divergence_steps"]), (1, &json!([1])));
    assert_eq!(of("mast")[1]["mast_annotation"]["2.6"], json!(1));
    assert_eq!(of("aegis")[1]["output"]["faulty_agents"][0]["injection_strategy"], json!("response_corruption"));
}

#[test]
fn what_is_not_wanted_is_left_out_and_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut delivered = failure("b", 3);
    delivered.label.as_mut().expect("labelled").status = crate::trajectory::LabelStatus::Delivered;
    let mut caught = failure("a", 4);
    caught.label.as_mut().expect("labelled").missed_catch = vec![MissedCatch {
        agent: AgentName::parse("critic").expect("a name"),
        instance: 0,
        step: 2,
        call: 0,
        state: CatchState::Missed,
        source: "twin".to_owned(),
        executed: Executed::default(),
    }];
    let dataset = dataset(&dir.path().join("d"), &[clean("a", 4), caught, delivered]);
    let out = dir.path().join("w");
    let manifest = exported(&dataset, "whowhen", &out);
    assert_eq!(
        (manifest.written, manifest.left_out["a clean run"], manifest.left_out["a label that is not proven"]),
        (1, 1, 1)
    );
    let file: Value = serde_json::from_slice(&fs::read(out.join("RUN-a.json")).expect("a file")).expect("JSON");
    assert_eq!((&file["mistake_step"], &file["mistake_agent"]), (&json!("1"), &json!("solver")));
    assert_eq!(file["missed_catch"], json!([{"agent": "critic", "step": "2", "state": "missed"}]));
    assert_eq!(file["system_prompt"]["critic"], json!("you are the critic"));
    assert_eq!(file["history"][0], json!({"content": "planner says 0", "role": "assistant", "name": "planner"}));
    let options = ExportOptions { unverified: true, ..unchecked() };
    assert_eq!(export(&dataset, format("whowhen").expect("a format"), &out, &options).expect("exported").written, 2);
    let none = ExportOptions { split: Some(crate::dataset::Split::Test), ..unchecked() };
    assert_eq!(
        export(&dataset, format("sft").expect("a format"), &dir.path().join("s"), &none).expect("exported").written,
        0
    );
}

#[test]
fn lint_refuses_what_is_ours_and_not_what_was_imported() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut ours = failure("a", 4);
    ours.label.as_mut().expect("labelled").errors[0].step = Some(9);
    let one = dataset(&dir.path().join("d"), &[ours.clone()]);
    let out = dir.path().join("out");
    let write =
        |dataset: &Dataset, options: &ExportOptions| export(dataset, format("sft").expect("a format"), &out, options);
    let refused = write(&one, &ExportOptions::default()).expect_err("a stray step");
    assert!(matches!(refused, ExportError::Refused { .. }) && !out.exists(), "{refused}");
    let rules = crate::dataset::lint::Rule::ALL.to_vec();
    let all = ExportOptions { lint: Lint::RefuseBut(rules), one_file: true, ..ExportOptions::default() };
    assert_eq!(write(&one, &all).expect("allowed").written, 1);
    ours.extra = json!({"format": "whowhen"}).as_object().cloned().expect("an object");
    let two = dataset(&dir.path().join("e"), &[ours]);
    assert_eq!(write(&two, &ExportOptions::default()).expect("imported").written, 1);
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out.jsonl");
    let good = dataset(&dir.path().join("d"), &[failure("a", 4)]);
    exported(&good, "sft", &out);
    let before = fs::read(&out).expect("a file");
    let path = dir.path().join("bad.jsonl");
    fs::write(&path, format!("{}\n{{\"format\":1\n", serde_json::to_string(&failure("z", 3)).expect("JSON")))
        .expect("written");
    let bad = Dataset::open(&path).expect("a file");
    let error = export(&bad, format("sft").expect("a format"), &out, &unchecked()).expect_err("a cut line").to_string();
    assert!(error.contains("bad.jsonl:2"), "{error}");
    assert_eq!(fs::read(&out).expect("a file"), before);
    let error = format("sftt").expect_err("unknown").to_string();
    assert!(error.contains("did you mean `sft`?"), "{error}");
    fs::create_dir(dir.path().join("mine")).expect("made");
    fs::write(dir.path().join("mine/thesis.txt"), "x").expect("written");
    assert!(export(&good, format("whowhen").expect("a format"), &dir.path().join("mine"), &unchecked()).is_err());
    assert!(dir.path().join("mine/thesis.txt").is_file());
    let mut stray = failure("s", 3);
    stray.extra = json!({"format": "whowhen", "file": "../evil.json"}).as_object().cloned().expect("an object");
    let stray = dataset(&dir.path().join("e"), &[stray]);
    let error = export(&stray, format("whowhen").expect("a format"), &dir.path().join("w"), &unchecked());
    assert!(matches!(error, Err(ExportError::StrayFile { .. })) && !dir.path().join("evil.json").exists());
}

/// Imports one value and gives its sample and the rules that spoke.
pub(super) fn imported(from: ImportSource, name: &str, text: &str) -> (Vec<Sample>, Vec<&'static str>) {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join(name), text).expect("written");
    let out = dir.path().join("out");
    let (imported, _) = import(from, &dir.path().join(name), &out, false).expect("imported");
    let dataset = Dataset::open(&out).expect("a dataset");
    let samples = dataset.samples().map(|placed| placed.expect("a sample").sample);
    (samples.collect(), imported.defects.iter().map(|defect| defect.rule).collect())
}

pub(super) fn generated() -> Value {
    json!({"is_correct": false, "question": "q", "question_ID": "t1", "level": "1", "ground_truth": "4",
        "history": [{"content": "go", "role": "assistant", "name": "Maths_Expert"}, {"content": "5", "role": "user", "name": "Checker"}],
        "mistake_agent": "Checker", "mistake_step": "1", "mistake_reason": "wrong", "system_prompt": {"Checker": "check"}})
}

pub(super) fn crafted() -> Value {
    json!({"is_corrected": false, "question": "q", "question_ID": "t1", "ground_truth": "4", "level": 2,
        "history": [{"content": "go", "role": "human"}, {"content": "plan", "role": "Orchestrator (thought)"},
            {"content": "look", "role": "Orchestrator (-> WebSurfer)"}, {"content": "found", "role": "WebSurfer"}],
        "mistake_agent": "WebSurfer", "mistake_step": "3", "mistake_reason": "wrong"})
}

#[test]
fn who_and_when_defects_by_rule() {
    let with = |base: Value, changes: &[(&str, Value)]| {
        let mut file = base;
        for (pointer, value) in changes {
            match file.pointer_mut(pointer) {
                Some(slot) => *slot = value.clone(),
                None => drop(file.as_object_mut().expect("an object").insert(pointer[1..].to_owned(), value.clone())),
            }
        }
        file
    };
    let cases: Vec<(Value, &[&str])> = vec![
        (generated(), &[]),
        (crafted(), &[]),
        (with(generated(), &[("/mistake_step", json!("0"))]), &["other-speaker"]),
        (with(crafted(), &[("/mistake_step", json!("1"))]), &["other-speaker"]),
        (with(crafted(), &[("/mistake_agent", json!("Orchestrator")), ("/mistake_step", json!("2"))]), &[]),
        (with(generated(), &[("/history/0/content", json!(" "))]), &["empty-content"]),
        (with(generated(), &[("/mistake_step", json!("2"))]), &["step-beyond-end"]),
        (with(generated(), &[("/mistake_step", json!("soon"))]), &["no-step"]),
        (with(generated(), &[("/mistake_step", json!(1))]), &[]),
        (with(generated(), &[("/mistake_agent", json!("Nobody"))]), &["agent-absent", "other-speaker"]),
        (with(crafted(), &[("/mistake_agent", json!("Websurfer"))]), &["agent-case"]),
        (
            with(generated(), &[("/mistake_agent", json!("Blu-Ray")), ("/history/1/name", json!("Blu-Ray"))]),
            &["cut-name"],
        ),
        (with(generated(), &[("/labels", json!("x"))]), &["unknown-field"]),
        (with(crafted(), &[("/mistake_type", json!("x"))]), &["unknown-field"]),
        (
            with(generated(), &[("/history/1/name", json!("\u{1b}[31m"))]),
            &["agent-absent", "agent-name", "other-speaker"],
        ),
    ];
    for (file, expected) in cases {
        let (samples, rules) = imported(ImportSource::Whowhen, "7.json", &file.to_string());
        assert_eq!(rules, expected, "{file}");
        assert!(samples[0].id.starts_with("whowhen-") && samples[0].id.ends_with("-7"));
        let raw = gold(&samples[0]).expect("gold").raw;
        let agree = raw.as_ref().map(|raw| raw.agent.as_str()) == file["mistake_agent"].as_str();
        assert!(agree || rules.contains(&"step-beyond-end") || rules.contains(&"no-step"), "{raw:?}");
    }
    let (samples, _) = imported(ImportSource::Whowhen, "7.json", &crafted().to_string());
    assert_eq!(
        (samples[0].steps[1].agent.as_str(), samples[0].steps[1].raw_agent.as_deref()),
        ("Orchestrator", Some("Orchestrator (thought)"))
    );
}

#[test]
fn rows_of_the_other_sources_and_their_defects() {
    let aegis = json!({"id": "x", "metadata": {"framework": "f", "model": "m", "num_agents": 1},
        "input": {"query": "q", "conversation_history": [{"step": 1, "agent_name": "A", "content": "c", "phase": "discussion"}, {"step": 3, "agent_name": "b", "content": ""}]},
        "output": {"faulty_agents": [{"agent_name": "B", "error_type": "FM-1.1"}, {"agent_name": "C", "error_type": "FM-9.9", "injection_strategy": "prompt"}]},
        "ground_truth": {"correct_answer": "4"}});
    let two = format!("{aegis}\n{{\"id\":\nnull\n{aegis}\n");
    let (samples, rules) = imported(ImportSource::Aegis, "rows.jsonl", &two);
    let once = ["agent-absent", "agent-case", "empty-content", "step-number", "unknown-mode", "wrong-count"];
    for rule in once {
        assert_eq!(rules.iter().filter(|found| **found == rule).count(), 2, "{rule}: {rules:?}");
    }
    for rule in ["not-json", "doubled-id", "wrong-shape"] {
        assert!(rules.contains(&rule), "{rule}");
    }
    assert_eq!(samples.iter().map(|sample| sample.id.as_str()).collect::<Vec<_>>(), ["x", "x~2"]);
    let tracer = json!([{"question_ID": "t", "question": "q", "ground_truth": "g", "mistake_agent": "Engineer", "mistake_step": "1", "mistake_reason": "r",
        "history": [{"content": "in /home/me/_attacked_solution.py", "name": "Engineer", "role": "assistant", "step": 0}, {"content": "in /home/me/_attacked_solution.py", "name": "Engineer", "role": "assistant", "step": 5}]}]);
    let (_, rules) = imported(ImportSource::Agentracer, "rows.json", &tracer.to_string());
    assert_eq!(rules, ["doubled-entry", "origin-leak", "path-leak", "step-number"]);
    let mast = json!([{"mas_name": "m", "llm_name": "l", "benchmark_name": "b", "trace_id": 0, "trace": {"key": "k", "index": 0, "trajectory": "log"}, "mast_annotation": {"1.1": 1, "2.7": 0, "3.3": 2}}, {"annotations": []}]);
    let (samples, rules) = imported(ImportSource::Mast, "rows.json", &mast.to_string());
    assert_eq!(rules, ["not-binary", "unknown-mode", "wrong-shape"]);
    let culprits = gold(&samples[0]).expect("gold").culprits;
    assert_eq!(culprits.iter().filter_map(|culprit| culprit.mode.as_deref()).collect::<Vec<_>>(), ["FM-1.1"]);
}

#[test]
fn a_path_without_samples_is_said_to_be_one() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, text, words) in [
        ("a.json", "{", "not-json"),
        ("b.json", "{\"a\":1}", "`history` is no list"),
        ("c.jsonl", "", "expected JSON files"),
    ] {
        fs::write(dir.path().join(name), text).expect("written");
        let error = import(ImportSource::Whowhen, &dir.path().join(name), &dir.path().join("out"), false)
            .expect_err(name)
            .to_string();
        assert!(error.contains(words), "{name}: {error}");
        assert!(!dir.path().join("out/dataset.jsonl").exists(), "{name}: something was written");
    }
    assert!(import(ImportSource::Mast, &dir.path().join("absent"), &dir.path().join("out"), false).is_err());
}

/// Imports a file, exports it in the same format, and reads the value that was written.
fn there_and_back(from: ImportSource, to: &str, value: &Value) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("3.json");
    let text = if from == ImportSource::Mast { json!([value]).to_string() } else { value.to_string() };
    fs::write(&file, text).expect("written");
    import(from, &file, &dir.path().join("d"), false).expect("imported");
    let dataset = Dataset::open(&dir.path().join("d")).expect("a dataset");
    let out = dir.path().join("out");
    exported(&dataset, to, &out);
    if out.is_dir() {
        serde_json::from_slice(&fs::read(out.join("3.json")).expect("a file")).expect("JSON")
    } else {
        rows(&out).remove(0)
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-zA-Z_ ()>-]{0,12}", Just("4".to_owned())]
}

prop_compose! {
    fn entries()(entries in prop::collection::vec((text(), text(), text()), 1..5)) -> Vec<(String, String, String)> { entries }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Of labelled failures: a success is a clean run, and a row that names nobody has no label to write.
    #[test]
    fn export_after_import_is_the_identity(
        entries in entries(), agent in text().prop_filter("somebody", |agent| !agent.trim().is_empty()), step in prop_oneof![(0u32..7).prop_map(|n| json!(n.to_string())), (0u32..7).prop_map(|n| json!(n)), text().prop_map(Value::from)],
        question in text(), mode in text(), flag in any::<bool>(), extra in text(),
    ) {
        let history = |speaker: bool, numbered: bool| -> Value {
            let entry = |(place, (content, role, name)): (usize, &(String, String, String))| {
                let mut entry = json!({"content": content, "role": if numbered { "assistant" } else { role.as_str() }});
                if speaker { entry["name"] = json!(name); }
                if numbered { entry["step"] = json!(if flag { place } else { place + 1 }); }
                entry
            };
            entries.iter().enumerate().map(entry).collect()
        };
        let label = |mut file: Value| {
            for (name, value) in [("question", json!(question)), ("question_ID", json!(extra)), ("ground_truth", json!(agent)), ("mistake_agent", json!(agent)), ("mistake_step", step.clone()), ("mistake_reason", json!(mode))] {
                file[name] = value;
            }
            file
        };
        let files = [
            (ImportSource::Whowhen, "whowhen", label(json!({"is_correct": false, "level": "1", "history": history(true, false), "system_prompt": {"a": extra}, "labels": extra}))),
            (ImportSource::Whowhen, "whowhen-hand-crafted", label(json!({"is_corrected": false, "history": history(false, false)}))),
            (ImportSource::Agentracer, "agentracer", label(json!({"history": history(true, true)}))),
            (ImportSource::Mast, "mast", json!({"mas_name": agent, "llm_name": mode, "benchmark_name": extra, "trace_id": 5, "trace": {"key": "k", "index": 1, "trajectory": question}, "mast_annotation": {"1.1": u8::from(flag), mode.clone(): 0}})),
            (ImportSource::Aegis, "aegis", json!({"id": extra, "metadata": {"framework": agent, "num_agents": 3}, "input": {"query": question,
                "conversation_history": entries.iter().enumerate().map(|(place, (content, role, name))| json!({"step": place + 1 + usize::from(flag), "agent_name": name, "content": content, "phase": role})).collect::<Vec<_>>()},
                "output": {"faulty_agents": [{"agent_name": agent, "error_type": mode}, {"agent_name": "B", "error_type": "FM-1.1", "injection_strategy": extra}]},
                "ground_truth": {"correct_answer": mode, "is_injection_successful": flag}})),
        ];
        for (from, to, file) in files {
            prop_assert_eq!(&there_and_back(from, to, &file), &file, "{}", to);
        }
    }
}
