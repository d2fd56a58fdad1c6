//! What a tracer is shown and trained on: inputs, budgets, parts, clean runs, and what its right answers are worth.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use super::{
    ALL, BudgetUnit, CleanRows, ExportOptions, Inputs, PromptBudget, PromptTemplate, export,
    fit::{TraceForm, conversation},
    format,
    formats_tests::{dataset, exported, rows, unchecked},
    prompt::PromptAsking,
    testing::{clean, failure, planted_twice},
};
use crate::{
    dataset::{Mode, Sample, Split, gold},
    score::{self, RewardKind},
    trajectory::{AgentName, FailureMode, Need},
};

/// A run of an agent that calls a tool, and of one that reads what it said.
fn with_a_tool() -> Sample {
    let reply = "The product of twelve and eight is ninety-six, as the tool says.";
    let mut sample = failure("t", 3);
    let call = json!([{"id": "call_0", "name": "calculator", "arguments": "{\"expression\": \"12*8\"}"}]);
    let steps = json!([
        {"step": 0, "agent": "solver", "input": {"messages": [{"role": "system", "text": "You are the solver."},
            {"role": "user", "text": "How much is 12 * 8?"}]}, "output": {"role": "assistant", "text": "", "calls": call}},
        {"step": 1, "call": 1, "agent": "solver", "input": {"follows": 0, "kept": 2, "messages": [{"role": "assistant", "text": "", "calls": call},
            {"role": "tool", "text": "97", "answers": "call_0"}]}, "output": {"role": "assistant", "text": reply}},
        {"step": 2, "agent": "critic", "input": {"messages": [{"role": "developer", "text": "You are the critic."},
            {"role": "user", "name": "solver", "text": format!("Judge this:\n{reply}\nDo it well.")}]}, "output": {"role": "assistant", "text": "APPROVE"}},
    ]);
    sample.steps = serde_json::from_value(steps).expect("steps");
    sample
}

#[test]
fn a_step_shows_what_was_new_to_its_agent() {
    let sample = with_a_tool();
    let replies = "Step 0 - solver:\n[calls calculator with {\"expression\": \"12*8\"}]\n\nStep 1 - solver:\n\
        The product of twelve and eight is ninety-six, as the tool says.\n\nStep 2 - critic:\nAPPROVE";
    assert_eq!(conversation(&sample, Inputs::None, TraceForm::Own), replies);
    let new = "Step 0 - solver:\n(given by system) You are the solver.\n(given by user) How much is 12 * 8?\n\
        (says) [calls calculator with {\"expression\": \"12*8\"}]\n\n\
        Step 1 - solver:\n(given by tool calculator) 97\n(says) The product of twelve and eight is ninety-six, as the tool says.\n\n\
        Step 2 - critic:\n(given by system) You are the critic.\n(given by user solver) Judge this:\n[the words of step 1]\nDo it well.\n(says) APPROVE";
    assert_eq!(conversation(&sample, Inputs::New, TraceForm::Own), new);
    let all = conversation(&sample, Inputs::All, TraceForm::Own);
    assert_eq!(all.matches("(given by system) You are the solver.").count(), 2, "{all}");
}

#[test]
fn prompts_show_inputs_unless_told_otherwise_and_the_formats_of_others_do_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut twin = with_a_tool();
    (twin.id, twin.label, twin.kind) = ("CLEAN-t".into(), None, crate::dataset::SampleKind::Clean);
    let dataset = dataset(&dir.path().join("d"), &[twin, with_a_tool()]);
    for (name, usual) in [
        ("sft", true),
        ("grpo", true),
        ("verl", true),
        ("prm", true),
        ("aegis", false),
        ("agentracer", false),
        ("mast", false),
        ("contrastive", false),
    ] {
        for (inputs, shown) in [(None, usual), (Some(Inputs::None), false), (Some(Inputs::New), true)] {
            let out = dir.path().join(name);
            let options = ExportOptions { inputs, ..unchecked() };
            export(&dataset, format(name).expect("a format"), &out, &options).expect("exported");
            let text = fs::read_to_string(&out).expect("readable");
            assert_eq!(text.contains("(given by tool calculator) 97"), shown, "{name} {inputs:?}");
        }
    }
    let tracer = dir.path().join("tracer");
    exported(&dataset, "agentracer", &tracer);
    let roles: Vec<Value> =
        rows(&tracer)[0]["history"].as_array().expect("entries").iter().map(|entry| entry["role"].clone()).collect();
    assert_eq!(roles, ["assistant"; 3], "as everybody's role is in AgenTracer's own data");
}

#[test]
fn an_inspect_log_shows_what_each_step_was_given_in_its_role() {
    let dir = tempfile::tempdir().expect("a directory");
    let dataset = dataset(&dir.path().join("d"), &[with_a_tool()]);
    let out = dir.path().join("log.json");
    let wanted = [
        (Inputs::None, vec!["user", "assistant", "assistant", "assistant"]),
        (Inputs::New, vec!["user", "system", "user", "assistant", "tool", "assistant", "system", "user", "assistant"]),
    ];
    for (inputs, roles) in wanted {
        let options = ExportOptions { inputs: (inputs != Inputs::New).then_some(inputs), ..unchecked() };
        export(&dataset, format("inspect").expect("a format"), &out, &options).expect("exported");
        let log: Value = serde_json::from_slice(&fs::read(&out).expect("a file")).expect("JSON");
        let messages = log["samples"][0]["messages"].as_array().expect("messages");
        let found: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
        assert_eq!(found, roles, "{inputs:?}");
        if let Some(tool) = messages.iter().find(|message| message["role"] == json!("tool")) {
            assert_eq!(
                (&tool["content"], &tool["function"], &tool["tool_call_id"]),
                (&json!("97"), &json!("calculator"), &json!("call_0"))
            );
            assert_eq!(tool["metadata"], json!({"agent": "solver", "step": 1, "given": true}));
        }
    }
}

#[test]
fn a_budget_cuts_inputs_first_and_says_what_is_gone() {
    let mut sample = failure("r", 20);
    for step in &mut sample.steps {
        if let Some(input) = &mut step.input {
            input.messages[1].text =
                format!("task {} {}", step.step, "words to read ".repeat(60 + 3 * step.step as usize));
        }
        if let Some(output) = &mut step.output {
            output.text = format!("begin {} end", "lorem ipsum ".repeat(20));
        }
    }
    let template = PromptTemplate::parse("{conversation}").expect("a template");
    for unit in [BudgetUnit::Tokens, BudgetUnit::Characters] {
        let scale = if unit == BudgetUnit::Tokens { 1 } else { 4 };
        for (most, inputs, steps) in
            [(20_000, (0, 0), (0, 0)), (4000, (20, 0), (0, 0)), (2000, (0, 20), (0, 0)), (1200, (0, 20), (20, 0))]
        {
            let budget = PromptBudget { most: most * scale, unit };
            let prompt = template.fill(&sample, PromptAsking { budget: Some(budget), ..PromptAsking::default() });
            assert!(unit.length(&prompt.text) <= budget.most, "{budget:?}: {}", unit.length(&prompt.text));
            let cut = prompt.cut.unwrap_or_default();
            let found = ((cut.shortened_inputs, cut.dropped_inputs), (cut.shortened_steps, cut.dropped_steps));
            assert_eq!(found, (inputs, steps), "{budget:?}");
            assert_eq!(cut.gone > 0, most < 20_000, "{budget:?}");
        }
    }

    let dir = tempfile::tempdir().expect("a directory");
    let dataset = dataset(&dir.path().join("d"), &[sample]);
    let options = ExportOptions { budget: Some(PromptBudget { most: 4000, unit: BudgetUnit::Tokens }), ..unchecked() };
    for name in ["sft", "grpo", "verl"] {
        let out = dir.path().join(name);
        let manifest = export(&dataset, format(name).expect("a format"), &out, &options).expect("exported");
        let prompts = manifest.prompts.expect("prompts");
        assert!(prompts.longest_tokens <= 4000 && prompts.longest_tokens > 3000, "{prompts:?}");
        assert_eq!((manifest.cut.prompts, manifest.cut.shortened_inputs), (1, 20));
        assert_eq!(rows(&out)[0]["cut"]["shortened_inputs"], json!(20), "{name}");
    }
}

/// Of each part some failures with their twins, and clean runs that are nobody's twin.
fn of_parts() -> Vec<Sample> {
    let mut samples = Vec::new();
    for (part, failures, spare) in
        [(Some(Split::Train), 4, 9), (Some(Split::Validation), 2, 0), (Some(Split::Test), 0, 3), (None, 1, 1)]
    {
        let name = part.map_or("none", Split::name);
        for n in 0..failures + spare {
            let mut twin = clean(&format!("{name}{n}"), 3);
            twin.split = part;
            samples.push(twin);
            if n < failures {
                let mut failed = failure(&format!("{name}{n}"), 3);
                failed.split = part;
                samples.push(failed);
            }
        }
        // Two failures of one twin: one more clean run is missing.
        if failures > 1 {
            let mut second = failure(&format!("{name}-second"), 3);
            (second.split, second.clean_twin) = (part, Some(format!("CLEAN-{name}0")));
            samples.push(second);
        }
    }
    samples
}

/// How many clean and failed rows each file has.
fn counted(dir: &std::path::Path, name: &str) -> BTreeMap<String, (usize, usize)> {
    let files = fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry").path());
    let files = files
        .filter(|path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{name}-"))));
    let count = |path: std::path::PathBuf| {
        let rows = rows(&path);
        let clean = rows.iter().filter(|row| row["id"].as_str().is_some_and(|id| id.starts_with("CLEAN"))).count();
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), (clean, rows.len() - clean))
    };
    files.map(count).collect()
}

#[test]
fn parts_are_never_mixed_and_clean_runs_never_more_than_failures() {
    let dir = tempfile::tempdir().expect("a directory");
    let dataset = dataset(&dir.path().join("d"), &of_parts());
    let write = |name: &str, options: ExportOptions| {
        let options = ExportOptions { lint: super::Lint::Ignore, ..options };
        export(&dataset, format(name).expect("a format"), &dir.path().join(format!("{name}.jsonl")), &options)
            .expect("exported")
    };
    let table = |rows: &[(&str, usize, usize)]| -> BTreeMap<String, (usize, usize)> {
        rows.iter().map(|(name, clean, failed)| ((*name).to_owned(), (*clean, *failed))).collect()
    };
    for name in ["sft", "grpo", "prm"] {
        let manifest = write(name, ExportOptions::default());
        let part = |part: &str| format!("{name}-{part}");
        let wanted = [("train", 5, 5), ("validation", 2, 3), ("unsplit", 1, 1)];
        let wanted: BTreeMap<_, _> = wanted.iter().map(|(of, clean, failed)| (part(of), (*clean, *failed))).collect();
        assert_eq!(counted(dir.path(), name), wanted, "the test part has no failure, so no row");
        assert_eq!(manifest.files.len(), 3);
        assert_eq!(manifest.left_out.values().sum::<u64>(), manifest.read - manifest.written);
        for row in rows(&dir.path().join(format!("{name}-train.jsonl"))) {
            assert_eq!(row["split"], "train");
        }
    }
    for (clean, wanted) in [
        (
            CleanRows::All,
            table(&[("sft-train", 13, 5), ("sft-validation", 2, 3), ("sft-test", 3, 0), ("sft-unsplit", 2, 1)]),
        ),
        (CleanRows::Twins, table(&[("sft-train", 4, 5), ("sft-validation", 2, 3), ("sft-unsplit", 1, 1)])),
        (CleanRows::None, table(&[("sft-train", 0, 5), ("sft-validation", 0, 3), ("sft-unsplit", 0, 1)])),
    ] {
        write("sft", ExportOptions { clean, ..ExportOptions::default() });
        assert_eq!(counted(dir.path(), "sft"), wanted, "{clean:?}: what an earlier export left is gone");
    }
    let one = write("sft", ExportOptions { one_file: true, ..ExportOptions::default() });
    assert_eq!((one.files.len(), rows(&dir.path().join("sft.jsonl")).len()), (1, 17));
    let test = ExportOptions { split: Some(Split::Train), ..ExportOptions::default() };
    assert_eq!(write("grpo", test).files.keys().collect::<Vec<_>>(), ["grpo.jsonl"]);

    let hub = dir.path().join("hub");
    let options = ExportOptions { lint: super::Lint::Ignore, lines: true, ..ExportOptions::default() };
    let manifest = export(&dataset, format("huggingface").expect("a format"), &hub, &options).expect("exported");
    assert_eq!(rows(&hub.join("data/sft/train-00000-of-00001.jsonl")).len(), 10, "balanced, too");
    assert_eq!(rows(&hub.join("data/runs/train-00000-of-00001.jsonl")).len(), 18, "all that there is");
    assert!(manifest.left_out_of["sft"].keys().any(|why| why.starts_with("a clean run beyond")));
}

/// Every kind of truth that a row may have.
fn of_truths() -> Vec<Sample> {
    let mode = |mode: FailureMode| Some(Mode::from(mode));
    let mut samples = vec![
        clean("a", 4),
        failure("a", 4),
        planted_twice("both", [Need::Necessary; 2]),
        planted_twice("either", [Need::NotNeeded; 2]),
    ];
    // One agent at two steps, in two modes; two agents in one mode; and a step that no mode is known of.
    let mut twice = planted_twice("twice", [Need::Necessary; 2]);
    let errors = &mut twice.label.as_mut().expect("labelled").errors;
    (errors[0].agent, errors[0].failure_mode) = (errors[1].agent.clone(), mode(FailureMode::IncorrectVerification));
    samples.push(twice);
    let mut unknown = failure("unknown", 4);
    unknown.label.as_mut().expect("labelled").errors[0].failure_mode = None;
    samples.push(unknown);
    let mut mixed = planted_twice("mixed", [Need::Necessary; 2]);
    mixed.label.as_mut().expect("labelled").errors[0].failure_mode = None;
    samples.push(mixed);
    let mut stepless = failure("stepless", 4);
    stepless.label.as_mut().expect("labelled").errors[0].step = None;
    samples.push(stepless);
    let mut named = failure("named", 4);
    named.label.as_mut().expect("labelled").errors[0].agent = AgentName::parse("Web Surfer-2").expect("a name");
    samples.push(named);
    samples
}

/// The answer of a row, and the truth that a reward is handed.
fn own_answers(name: &str, row: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    match name {
        "sft" => {
            let said = &row["messages"][1];
            let call = &said["tool_calls"][0]["function"]["arguments"];
            let answer = if call.is_null() { text(&said["content"]) } else { call.to_string() };
            vec![(answer.clone(), answer)]
        }
        "grpo" => vec![(text(&row["ground_truth"]), text(&row["ground_truth"]))],
        _ => {
            let truth = text(&row["reward_model"]["ground_truth"]);
            vec![(truth.clone(), truth.clone()), (text(&row["extra_info"]["answer"]), truth)]
        }
    }
}

#[test]
fn every_rows_own_answer_is_worth_exactly_one_in_every_reward() {
    let dir = tempfile::tempdir().expect("a directory");
    let samples = of_truths();
    let dataset = dataset(&dir.path().join("d"), &samples);
    let golds: Vec<score::Gold> = samples.iter().filter_map(gold).collect();
    let prompting: Vec<&str> = ALL
        .iter()
        .filter(|format| format.trains() && !["dpo", "prm"].contains(&format.name()))
        .map(|format| format.name())
        .collect();
    assert_eq!(prompting, ["sft", "verl", "grpo"], "a format with prompts that is not looked at here");
    for name in prompting {
        for answer in [super::AnswerForm::Text, super::AnswerForm::Call] {
            let out = dir.path().join(name);
            export(&dataset, format(name).expect("a format"), &out, &ExportOptions { answer, ..unchecked() })
                .expect("exported");
            let rows = rows(&out);
            assert_eq!(rows.len(), samples.len());
            for (row, (said, truth)) in
                rows.iter().flat_map(|row| own_answers(name, row).into_iter().map(move |own| (row, own)))
            {
                for kind in RewardKind::ALL.iter().filter(|kind| **kind != RewardKind::AegisPublished) {
                    let worth = score::reward_of(&said, &truth, *kind).expect("a truth");
                    assert_eq!(worth, 1.0, "{name} {kind:?}: {said}");
                    let id = row.get("id").unwrap_or(&row["extra_info"]["original_id"]);
                    let line = json!({"id": id, "completion": said}).to_string();
                    let scored = score::rewards(&line, &golds, *kind).expect("scored");
                    assert_eq!(scored[0].reward, Some(1.0), "{name} {kind:?} against the dataset: {said}");
                }
            }
        }
    }
}

#[test]
fn a_reward_that_pays_for_the_step_sees_every_step_shifted() {
    let truth = r#"{"faulty_agents":[{"agent_name":"solver","step":9,"error_type":"FM-2.6"}]}"#;
    let worth =
        |kind, step: u32| score::reward_of(&truth.replace('9', &step.to_string()), truth, kind).expect("a truth");
    for kind in [RewardKind::Step, RewardKind::Agentracer] {
        let steps = [9, 8, 7, 2];
        let paid: Vec<f64> = steps.iter().map(|step| worth(kind, *step)).collect();
        assert!(paid.windows(2).all(|pair| pair[0] > pair[1]), "{kind:?}: {paid:?}");
        assert!(paid[3] <= 0.6 + 1e-6, "{kind:?}: {paid:?}");
    }
    assert_eq!(worth(RewardKind::AegisStrict, 2), 1.0, "which asks for pairs of agent and mode");
}

#[test]
fn a_log_over_exported_files_is_scored_against_the_dataset_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let samples = [clean("a", 4), failure("a", 4)];
    let dataset = dataset(&dir.path().join("d"), &samples);
    let out = dir.path().join("whowhen");
    exported(&dataset, "whowhen", &out);
    let file = fs::read_dir(&out).expect("lists").next().expect("one").expect("an entry").file_name();
    let log = format!("Prediction for {}:\nAgent Name: solver\nStep Number: 1\n", file.to_string_lossy());
    let golds: Vec<score::Gold> = samples.iter().filter_map(gold).collect();
    let scored = score::score(&log, Some(&golds), score::Profile::Whowhen, 0).expect("scored");
    assert_eq!(scored.public.expect("public").figure("Correct Step Predictions"), Some(1.0));
    assert_eq!(scored.strict.expect("strict").accuracy.step.hits, 1);
}

#[test]
fn samples_that_are_to_stay_private_are_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let of = |id: &str, set: &str| {
        let mut sample = failure(id, 3);
        sample.task.extra.insert("benchmark".to_owned(), set.into());
        sample
    };
    let dataset =
        dataset(&dir.path().join("d"), &[of("a", "gpqa"), of("b", "gpqa"), of("c", "gsm8k"), failure("d", 3)]);
    let manifest = exported(&dataset, "sft", &dir.path().join("sft"));
    assert_eq!(manifest.keep_private, BTreeMap::from([("gpqa", 2)]));
}

#[test]
fn an_inspect_log_says_how_many_samples_it_has() {
    let dir = tempfile::tempdir().expect("a directory");
    let dataset = dataset(&dir.path().join("d"), &[clean("a", 4), failure("a", 4), failure("b", 3)]);
    let out = dir.path().join("log.json");
    exported(&dataset, "inspect", &out);
    let log: Value = serde_json::from_slice(&fs::read(&out).expect("a file")).expect("JSON");
    assert_eq!((&log["results"]["total_samples"], log["samples"].as_array().map(Vec::len)), (&json!(3), Some(3)));
}
