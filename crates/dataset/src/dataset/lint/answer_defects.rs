//! Seeded defects of answers, and of what tells them or the error.

use serde_json::json;

use super::{
    Rule,
    defects::{Defect, Samples},
};

/// Has every run of the first task say more of the task.
fn noted(set: &mut Samples, name: &str, value: serde_json::Value) {
    for sample in set.iter_mut().take(4) {
        sample.task.extra.insert(name.to_owned(), value.clone());
    }
}

pub(super) const ANSWER_DEFECTS: &[Defect] = &[
    (Rule::CheckerDiffers, "a benign run told as a failure", |set| {
        set[1].outcome_evidence = "numeric: expected `5`, got `5`".to_owned();
    }),
    (Rule::CheckerDiffers, "a failure told as a success", |set| {
        set[3].outcome_evidence = "numeric: expected `5`, got `12`".to_owned();
    }),
    (Rule::CheckerDiffers, "a failure told as a clean run", |set| {
        set[0].outcome_evidence = "normalised: expected `5`, got `It is 12.`".to_owned();
    }),
    (Rule::CheckerDiffers, "a program that was content", |set| {
        set[1].outcome_evidence = "check exited with 0".to_owned()
    }),
    (Rule::CheckerDiffers, "a program that was not", |set| set[3].outcome_evidence = "check exited with 1".to_owned()),
    (Rule::AnswerNowhere, "a failure that says another", |set| set[1].final_answer = "770".to_owned()),
    (Rule::AnswerNowhere, "a failure whose steps behind the error are gone", |set| {
        set[2].steps.truncate(1);
        set[2].final_answer = "31".to_owned();
    }),
    (Rule::TaskTells, "agent and step in one word", |set| noted(set, "note", json!("solver@1"))),
    (Rule::TaskTells, "a note", |set| noted(set, "note", json!("The solver goes wrong here."))),
    (Rule::TaskTells, "a step", |set| noted(set, "note", json!("look at step 1, by the solver"))),
    (Rule::TaskTells, "a step by its number alone", |set| noted(set, "error_step", json!(1))),
    (Rule::TaskTells, "an agent in a field of its own", |set| noted(set, "meta", json!({"faulty": ["solver"]}))),
    (Rule::TaskTells, "a mode", |set| noted(set, "note", json!("FM-2.6"))),
    (Rule::TaskTells, "a manipulator", |set| noted(set, "how", json!("corrupt_number, by 7"))),
    (Rule::TaskTells, "a field of the row", |set| {
        set[1].extra.insert("hint".to_owned(), json!("the planted error is the solver's"));
    }),
    (Rule::GoldGiven, "the right answer in each prompt", |set| {
        for sample in set.iter_mut() {
            let answer = sample.task.answer.clone();
            for step in &mut sample.steps {
                let said = &mut step.input.as_mut().expect("an input").messages[0];
                said.text = format!("{} The answer is {answer}.", said.text);
            }
        }
    }),
    (Rule::GoldGiven, "the right answer in the first prompt", |set| {
        for sample in set.iter_mut() {
            let answer = sample.task.answer.clone();
            let said = &mut sample.steps[0].input.as_mut().expect("an input").messages[1];
            said.text = format!("{} ({answer})", said.text);
        }
    }),
];
