//! A backend whose words depend on every byte that it is asked: any edit may turn an outcome there, and does so each time. What
//! is verified of it must be what an error does, and not what any change does.

use std::fs;

use super::{Bench, PIPELINE, backend::Backend, plans, tasks};

/// Polite words to each agent: nothing that an agent could be blamed for.
const POLITE: &[(&str, &str)] = &[
    ("planner", "Thank you."),
    ("solver", "Thank you."),
    ("solver", "Please."),
    ("critic", "Thank you."),
    ("critic", "Please."),
    ("critic", "Good luck."),
    ("critic", "Best regards."),
    ("critic", "No hurry."),
];

fn polite(agent: &str, text: &str) -> String {
    format!(
        "[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"FM-1.1\"\nwhen.call = 0\nside = \"request\"\n\
         manipulator.append_instruction = {{ text = \"{text}\" }}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn where_any_change_turns_outcomes_an_error_is_verified_and_a_polite_word_is_not() {
    let backend = Backend::chaotic(12).await;
    let mut text = format!("{}proof.repeatable = true\n{PIPELINE}", tasks(12));
    for number in 0..POLITE.len() {
        text.extend(["[[plan]]\nfile = \"polite-", &number.to_string(), ".toml\"\n"]);
    }
    let bench = Bench::new(&(text + &plans(&["corrupt-number"], "\"pipeline\"")));
    for (number, (agent, words)) in POLITE.iter().enumerate() {
        fs::write(bench.dir.path().join(format!("polite-{number}.toml")), polite(agent, words)).expect("written");
    }
    let (code, _, said) = bench.run(&["--upstream", &backend.url]).await;
    assert_eq!(code, Some(0), "{said}");
    let report = bench.report();
    let cells = report["cells"].as_array().expect("cells");
    let polite = |cell: &&serde_json::Value| cell["plan"].as_str().is_some_and(|plan| plan.starts_with("polite"));
    let flipped =
        |cell: &&serde_json::Value| !["benign", "not_injected"].contains(&cell["class"].as_str().unwrap_or(""));
    let verified = |cell: &&serde_json::Value| cell["class"] == "verified";
    let harmless: Vec<_> = cells.iter().filter(polite).filter(flipped).collect();
    assert!(harmless.len() >= 2, "some polite words turn the outcome, each time: {said}");
    assert_eq!(harmless.iter().filter(|cell| verified(cell)).count(), 0, "{harmless:#?}");
    let errors: Vec<_> = cells.iter().filter(|cell| !polite(cell)).filter(flipped).collect();
    let shown = errors.iter().filter(|cell| verified(cell)).count();
    assert!(!errors.is_empty() && 10 * shown >= 8 * errors.len(), "{shown} of {}: {errors:#?}", errors.len());
    assert!(said.contains("does not repeat itself"), "{said}");
}
