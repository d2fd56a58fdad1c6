//! The Aegis scorers on rows of every kind. The expected figures were computed by the public scripts themselves.

use super::*;

/// Rows that both scripts read.
const ROWS: &[&str] = &[
    r#"{"id": "1", "ground_truth": {"faulty_agents": [{"agent_name": "Solver", "error_type": "FM-1.1"}]}, "model_detection": {"faulty_agents": [{"agent_name": "Solver", "error_type": "FM-1.1"}]}}"#,
    r#"{"id": "2", "ground_truth": {"faulty_agents": [{"agent_name": "Solver", "error_type": "FM-1.1"}, {"agent_name": "Critic", "error_type": "FM-2.5"}]}, "model_detection": {"faulty_agents": [{"agent_name": "Solver", "error_type": "FM-1.2"}, {"agent_name": "solver", "error_type": "FM-1.1"}]}}"#,
    r#"{"id": "3", "ground_truth": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-3.3"}]}, "model_detection": {"faulty_agents": []}}"#,
    r#"{"id": "4", "ground_truth": {"faulty_agents": []}, "model_detection": {"faulty_agents": []}}"#,
    r#"{"id": "5", "ground_truth": {"faulty_agents": [{"agent_name": "Planner", "error_type": "FM-2.2"}]}, "model_detection": {"Final Answer": {"faulty_agents": [{"agent_name": "Planner", "error_type": "FM-2.2"}]}}}"#,
    r#"{"id": "6", "ground_truth": {"faulty_agents": [{"agent_name": "Planner", "error_type": "FM-2.2"}]}, "model_detection": {"faulty_agents": []}, "response_text": " {\"final_answer\": {\"faulty_agents\": [{\"agent_name\":\"Planner\",\"error_type\":\"FM-9.9\"}]}} "}"#,
    r#"{"id": "7", "ground_truth": {"faulty_agents": [{"agent_name": "Solver", "error_type": "FM-1.3"}]}, "model_detection": {"faulty_agents": [{"agent_name": " Solver ", "error_type": "FM-1.3"}]}}"#,
    r#"{"id": "8", "ground_truth": {"faulty_agents": [{"agent_name": "Solver", "error_type": "FM-1.3"}]}, "model_detection": {"faulty_agents": [{"agent_name": "Solver"}, {"agent_name": null, "error_type": "FM-1.3"}]}}"#,
    r#"{"id": "9", "ground_truth": {"faulty_agents": [{"agent_name": "Solver", "error_type": "FM-1.3"}]}, "error": "oom", "model_detection": {"faulty_agents": [{"agent_name": "Solver", "error_type": "FM-1.3"}]}}"#,
    r#"{"id": "10", "ground_truth": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-2.5"}]}, "model_detection": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-2.5"}, {"agent_name": "Critic", "error_type": "FM-2.5"}, {"agent_name": "Ghost", "error_type": "FM-2.5"}]}}"#,
    r#"{"id": "11", "ground_truth": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-2.5"}]}}"#,
];

/// Rows that only the authors' script reads.
const MORE: &[&str] = &[
    r#"{"id": "12", "ground_truth": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-2.5"}]}, "model_detection": -1}"#,
    r#"{"id": "13", "ground_truth": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-2.5"}]}, "model_detection": [{"agent_name": "Critic", "error_type": "FM-2.5"}]}"#,
    r#"{"id": "14", "ground_truth": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-2.5"}]}, "model_detection": null, "qwen_detection": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-2.5"}]}}"#,
    r#"{"id": "15", "ground_truth": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-2.5"}]}, "model_detection": {"faulty_agents": null}}"#,
    r#"{"id": "16", "ground_truth": {"faulty_agents": [{"agent_name": "Critic", "error_type": "FM-2.5"}]}, "model_detection": {"faulty_agents": ["Critic", {"agent_name": "Critic", "error_type": 1}]}}"#,
];

fn check(found: &Public, expected: &[(&str, f64)]) {
    assert_eq!(found.figures.len(), expected.len());
    for (figure, (name, value)) in found.figures.iter().zip(expected) {
        assert_eq!(figure.name, *name);
        assert!((figure.value - value).abs() < 1e-15, "{name}: {} is not {value}", figure.value);
    }
}

/// By the rules of Python: 0 is no text to look at, 5 has no `strip`, and a detection is a list, a whole number or an object.
#[test]
fn numbers_where_texts_and_lists_should_be() {
    let row = |fields: &str| format!(r#"{{"ground_truth":{{"faulty_agents":[]}},{fields}}}"#);
    for (fields, skipped) in [
        (r#""response_text":0"#, Some(0.0)),
        (r#""response_text":0.0,"model_detection":[]"#, Some(0.0)),
        (r#""response_text":5"#, None),
        (r#""response_text":true"#, None),
        (r#""response_text":false"#, Some(0.0)),
        (r#""model_detection":7"#, Some(1.0)),
        (r#""model_detection":18446744073709551615"#, Some(1.0)),
        (r#""model_detection":1.5"#, None),
        (r#""model_detection":"x""#, None),
        (r#""model_detection":true"#, Some(1.0)),
    ] {
        let found = evaluate(&row(fields))
            .ok()
            .map(|public| public.figure("Skipped Samples (OOM failures)").expect("a figure"));
        assert_eq!(found, skipped, "{fields}");
    }
}

#[test]
fn the_final_answer_goes_before_the_bare_list() {
    let pair = |name: &str| format!(r#"{{"faulty_agents":[{{"agent_name":"{name}","error_type":"FM-1.1"}}]}}"#);
    let row = format!(
        r#"{{"ground_truth":{},"model_detection":{{"Final Answer":{},"faulty_agents":[]}}}}"#,
        pair("Solver"),
        pair("Solver")
    );
    assert_eq!(evaluate(&row).expect("scored").figure("Exact Match Ratio"), Some(1.0));
    let bare = format!(
        r#"{{"ground_truth":{},"model_detection":{{"Final Answer":{{"faulty_agents":[]}},"faulty_agents":[{{"agent_name":"Solver","error_type":"FM-1.1"}}]}}}}"#,
        pair("Solver")
    );
    assert_eq!(evaluate(&bare).expect("scored").figure("Exact Match Ratio"), Some(1.0), "an empty one leaves room");
}

#[test]
fn the_authors_script() {
    let file = format!("{}\n{}\n\nnot json\n", ROWS.join("\n"), MORE.join("\n"));
    check(
        &evaluate(&file).expect("scored"),
        &[
            ("Total Samples", 18.0),
            ("Skipped Samples (OOM failures)", 2.0),
            ("Exact Match Ratio", 0.42857142857142855),
            ("Global Level (Exact Pair Matching) precision_micro", 0.42857142857142855),
            ("Global Level (Exact Pair Matching) recall_micro", 0.42857142857142855),
            ("Global Level (Exact Pair Matching) f1_micro", 0.42857142857142855),
            ("Global Level (Exact Pair Matching) precision_macro", 0.3076923076923077),
            ("Global Level (Exact Pair Matching) recall_macro", 0.14102564102564102),
            ("Global Level (Exact Pair Matching) f1_macro", 0.19230769230769232),
            ("Agent Level precision_micro", 0.7142857142857143),
            ("Agent Level recall_micro", 0.7142857142857143),
            ("Agent Level f1_micro", 0.7142857142857143),
            ("Agent Level precision_macro", 0.42857142857142855),
            ("Agent Level recall_macro", 0.33877551020408164),
            ("Agent Level f1_macro", 0.37373737373737376),
            ("Error Type Level precision_micro", 0.6923076923076923),
            ("Error Type Level recall_micro", 0.6428571428571429),
            ("Error Type Level f1_micro", 0.6666666666666666),
            ("Error Type Level precision_macro", 0.4444444444444444),
            ("Error Type Level recall_macro", 0.3333333333333333),
            ("Error Type Level f1_macro", 0.37037037037037035),
        ],
    );
}

#[test]
fn the_fork_s_script() {
    let file = format!("{}\n\nnot json\n", ROWS.join("\n"));
    check(
        &evaluate_fork(&file).expect("scored"),
        &[
            ("num_samples", 9.0),
            ("pair_level micro_f1", 0.375),
            ("pair_level micro_precision", 0.42857142857142855),
            ("pair_level micro_recall", 0.3333333333333333),
            ("pair_level macro_f1", 0.4),
            ("pair_level num_classes", 5.0),
            ("agent_level micro_f1", 0.5882352941176471),
            ("agent_level micro_precision", 0.625),
            ("agent_level micro_recall", 0.5555555555555556),
            ("agent_level macro_f1", 0.5),
            ("agent_level num_classes", 3.0),
            ("error_level micro_f1", 0.6666666666666667),
            ("error_level micro_precision", 0.8333333333333334),
            ("error_level micro_recall", 0.5555555555555556),
            ("error_level macro_f1", 0.19047619047619047),
            ("error_level num_classes", 14.0),
        ],
    );
}

#[test]
fn where_the_scripts_end_with_an_error_so_does_this() {
    for (row, why) in [
        (r#"{"ground_truth":null,"model_detection":{}}"#, "no object"),
        (r#"{"ground_truth":{"faulty_agents":[{"agent_name":"A"}]},"model_detection":{}}"#, "lacks"),
        (r#"{"ground_truth":{},"model_detection":"text"}"#, "string"),
        (r#"{"ground_truth":{},"model_detection":{"faulty_agents":[{"agent_name":["A"]}]}}"#, "list"),
        (r#"{"response_text":{"a":1}}"#, "no string"),
        ("[1]", "no object"),
    ] {
        let error = evaluate(&format!("\n{row}\n")).expect_err(row);
        assert!(error.line == 2 && error.why.contains(why), "{row}: {error}");
    }
    for row in [
        r#"{"ground_truth":{"faulty_agents":null},"model_detection":{}}"#,
        r#"{"model_detection":{"faulty_agents":["A"]}}"#,
    ] {
        assert_eq!(evaluate_fork(row).expect_err(row).line, 1);
    }
    assert_eq!(evaluate("").expect("empty").figure("Total Samples"), Some(0.0));
}

#[test]
fn figures_as_printed() {
    // Scaled, 0.12345 is 1234.5, which pandas rounds to even; printed, it is a little more than 0.12345.
    assert_eq!((rounded("x", 0.12345).shown.as_str(), shown("x", 0.12345).shown.as_str()), ("0.1234", "0.1235"));
}
