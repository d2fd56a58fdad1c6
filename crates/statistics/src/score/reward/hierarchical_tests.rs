//! The published reward on texts of every kind. The expected numbers were printed by the authors' own function.

use super::*;

const TRUTH: &str = r#"{"faulty_agents":[{"agent_name":"Solver","error_type":"FM-1.1"},{"agent_name":"Critic","error_type":"FM-2.5"}]}"#;

fn answer(pairs: &[(&str, &str)]) -> String {
    let entry = |(agent, mode): &(&str, &str)| serde_json::json!({"agent_name": agent, "error_type": mode});
    serde_json::json!({"faulty_agents": pairs.iter().map(entry).collect::<Vec<_>>()}).to_string()
}

#[test]
fn lists_of_pairs() {
    for (name, pairs, expected) in [
        ("exact", vec![("Solver", "FM-1.1"), ("Critic", "FM-2.5")], 1.0),
        ("half", vec![("Solver", "FM-1.1")], 0.5238095238095238),
        ("agent alone", vec![("Solver", "FM-3.3")], 0.19047619047619047),
        ("mode alone", vec![("X", "FM-1.1")], 0.09523809523809523),
        ("wrong", vec![("X", "FM-3.3")], -0.047619047619047616),
        ("spaces and case", vec![("sol ver", "fm-1.1"), ("CRITIC", "FM - 2.5")], 1.0),
        ("doubled agent", vec![("Solver", "FM-1.1"), ("Solver", "FM-1.2")], 0.5238095238095238),
        ("doubled mode", vec![("Solver", "FM-1.1"), ("Critic", "FM-1.1")], 0.5952380952380952),
        ("two wrong on one agent", vec![("Solver", "FM-1.2"), ("Solver", "FM-1.3")], -0.047619047619047616),
        (
            "shotgun",
            vec![
                ("Solver", "FM-1.1"),
                ("Solver", "FM-2.5"),
                ("Critic", "FM-1.1"),
                ("Critic", "FM-2.5"),
                ("X", "FM-1.1"),
                ("X", "FM-2.5"),
            ],
            0.5714285714285715,
        ),
        ("nobody", vec![], 0.047619047619047616),
    ] {
        let reward = hierarchical(&answer(&pairs), TRUTH);
        assert!((reward - expected).abs() < 1e-15, "{name}: {reward}");
    }
}

/// What Python's `in` and its loops make of what is no object with a list: by the rules of the language.
#[test]
fn what_is_no_list_in_an_object() {
    let (half, nobody, malformed) = (0.5238095238095238, 0.047619047619047616, -1.0);
    for (name, answer, expected) in [
        ("array that holds one", r#"[{"faulty_agents":[{"agent_name":"Solver","error_type":"FM-1.1"}]}]"#, half),
        (
            "array that holds the word",
            r#"["faulty_agents",{"faulty_agents":[{"agent_name":"Solver","error_type":"FM-1.1"}]}]"#,
            malformed,
        ),
        ("text without the word", r#""FAULTY_AGENTS: [{'agent_name':'Solver','error_type':'FM-1.1'}]""#, half),
        ("text with the word", r#""faulty_agents: [{'agent_name':'Solver','error_type':'FM-1.1'}]""#, malformed),
        ("no names in an object", r#"{"faulty_agents":{}}"#, nobody),
        ("names in an object", r#"{"faulty_agents":{"Solver":"FM-1.1"}}"#, malformed),
        ("no names in a text", r#"{"faulty_agents":""}"#, nobody),
        ("names in a text", r#"{"faulty_agents":"Solver"}"#, malformed),
        (
            "loose, one without a mode and one without a name",
            r#"faulty_agents: [{"agent_name":"Solver"},{"error_type":"FM-2.5"},{"agent_name":"Solver","error_type":"FM-1.1"}]"#,
            half,
        ),
        ("loose, none whole", r#"faulty_agents: [{"agent_name":"Solver"}]"#, malformed),
    ] {
        let reward = hierarchical(answer, TRUTH);
        assert!((reward - expected).abs() < 1e-15, "{name}: {reward}");
    }
}

#[test]
fn more_than_twice_as_many_pairs_as_are_true_cost_half_a_wrong_one_each() {
    let truth = answer(&[("Solver", "FM-1.1")]);
    for (pairs, expected) in [
        (&[("Solver", "FM-1.1"), ("A", "FM-2.1")][..], 0.9 / 1.1),
        (&[("Solver", "FM-1.1"), ("A", "FM-2.1"), ("B", "FM-2.2")], 0.6 / 1.1),
        (&[("Solver", "FM-1.1"), ("A", "FM-2.1"), ("B", "FM-2.2"), ("C", "FM-2.3")], 0.3 / 1.1),
    ] {
        let reward = hierarchical(&answer(pairs), &truth);
        assert!((reward - expected).abs() < 1e-12, "{pairs:?}: {reward}");
    }
}

#[test]
fn texts() {
    for (name, answer, truth, expected) in [
        ("nobody of nobody", "{\"faulty_agents\": []}", "{\"faulty_agents\": []}", 1.1),
        (
            "somebody of nobody",
            "{\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\"}]}",
            "{\"faulty_agents\": []}",
            0.1,
        ),
        ("prose", "it was the solver", TRUTH, -1.0),
        ("empty", "", TRUTH, -1.0),
        (
            "fenced",
            "```json\n{\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\"}]}\n```",
            TRUTH,
            0.5238095238095238,
        ),
        (
            "plain fence",
            "```\n{\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\"}]}\n```",
            TRUTH,
            0.5238095238095238,
        ),
        (
            "fence without end",
            "```json\n{\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\"}]}",
            TRUTH,
            0.5238095238095238,
        ),
        ("in prose", "So: {\"faulty_agents\": []} it is", TRUTH, 0.047619047619047616),
        (
            "nested in prose",
            "So: {\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\"}]} it is",
            TRUTH,
            0.5238095238095238,
        ),
        ("single quotes", "So: {'faulty_agents': [{'agent_name': 'Solver', 'error_type': 'FM-1.1'},]}", TRUTH, -1.0),
        (
            "list loose",
            "\"faulty_agents\" : [{\"agent_name\":\"Solver\",\"error_type\":\"FM-1.1\"}] and so on",
            TRUTH,
            0.5238095238095238,
        ),
        ("null name", "{\"faulty_agents\":[{\"agent_name\":null,\"error_type\":\"FM-1.1\"}]}", TRUTH, -1.0),
        ("entry is text", "{\"faulty_agents\":[\"Solver\"]}", TRUTH, -1.0),
        ("no list", "{\"faulty_agents\":null}", TRUTH, -1.0),
        ("other object", "{\"answer\":1}", TRUTH, -1.0),
        ("a number", "5", TRUTH, -1.0),
        ("array", "[1,2]", TRUTH, -1.0),
        ("array of the word", "[\"faulty_agents\"]", TRUTH, -1.0),
        (
            "empty name",
            "{\"faulty_agents\":[{\"agent_name\":\"\",\"error_type\":\"FM-1.1\"}]}",
            TRUTH,
            0.047619047619047616,
        ),
        (
            "two modes of one agent right",
            "{\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\"}, {\"agent_name\": \"Solver\", \"error_type\": \"FM-1.2\"}]}",
            "{\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\"}, {\"agent_name\": \"Solver\", \"error_type\": \"FM-1.2\"}]}",
            0.8571428571428571,
        ),
        (
            "truth unreadable",
            "{\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\"}]}",
            "?",
            0.1,
        ),
        (
            "a number of Python's beside",
            "{\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\", \"confidence\": NaN, \"note\": \"a NaN \\\" Infinity\"}]}",
            TRUTH,
            0.5238095238095238,
        ),
        (
            "a number of Python's as name",
            "{\"faulty_agents\": [{\"agent_name\": -Infinity, \"error_type\": \"FM-1.1\"}]}",
            TRUTH,
            -1.0,
        ),
        (
            "wrapped",
            "{\"final_answer\":{\"faulty_agents\": [{\"agent_name\": \"Solver\", \"error_type\": \"FM-1.1\"}]}}",
            TRUTH,
            0.5238095238095238,
        ),
    ] {
        let reward = hierarchical(answer, truth);
        assert!((reward - expected).abs() < 1e-15, "{name}: {reward}");
    }
}

#[test]
fn the_mended_reward_pays_right_answers_whole_and_wrong_extras_nothing() {
    let two = answer(&[("Solver", "FM-1.1"), ("Solver", "FM-1.2")]);
    assert!((hierarchical_strict(&two, &two) - 1.0).abs() < 1e-15);
    let one = answer(&[("Solver", "FM-1.1")]);
    let (right, extra) = (hierarchical_strict(&one, TRUTH), hierarchical_strict(&two, TRUTH));
    assert!((right - extra - FALSE_POSITIVE / 2.1).abs() < 1e-12, "{right} {extra}");
    assert!((hierarchical(&one, TRUTH) - hierarchical(&two, TRUTH)).abs() < 1e-15, "the published one charges nothing");
    assert!((hierarchical_strict("?", TRUTH) + 1.0).abs() < 1e-15);
}

#[test]
fn over_its_own_truth_every_right_answer_is_worth_one() {
    let nobody = answer(&[]);
    let doubled = answer(&[("Solver", "FM-1.1"), ("Solver", "FM-1.2"), ("Critic", "FM-1.1")]);
    for truth in [TRUTH, nobody.as_str(), doubled.as_str()] {
        for reward in [hierarchical as fn(&str, &str) -> f64, hierarchical_strict] {
            assert_eq!(of_own(reward, truth, truth), 1.0, "{truth}");
            assert_eq!(of_own(reward, "?", truth), -1.0, "{truth}");
        }
    }
}
