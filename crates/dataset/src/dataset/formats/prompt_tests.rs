//! Templates and truncation.

use super::*;
use crate::dataset::formats::testing::failure;

const REPLIES: PromptAsking =
    PromptAsking { gold_answer: false, inputs: Inputs::None, budget: None, form: AnswerForm::Text };

fn within(tokens: usize) -> PromptAsking {
    PromptAsking { budget: Some(PromptBudget { most: tokens, unit: BudgetUnit::Tokens }), ..REPLIES }
}

#[test]
fn templates_are_checked() {
    assert!(PromptTemplate::parse(SHIPPED).is_ok());
    assert_eq!(PromptTemplate::parse("hello").expect_err("no trace"), PromptTemplateError::NoConversation);
    let error = PromptTemplate::parse("{conversation}\n{questoin} {\"a\": 1} {}").expect_err("a slip");
    assert_eq!(error, PromptTemplateError::Unknown { line: 2, name: "questoin".into(), nearest: Some("question") });
}

#[test]
fn what_is_filled_in_is_not_filled_again() {
    let mut sample = failure("r", 2);
    sample.task.question = "what is {conversation}?".into();
    sample.task.answer = "42".into();
    let template =
        PromptTemplate::parse("Q {question}|{gold_answer}|{agents}|{x: y}|{conversation}").expect("a template");
    let text = template.fill(&sample, PromptAsking { gold_answer: true, ..REPLIES }).text;
    assert_eq!(
        text,
        "Q what is {conversation}?|The right answer is: 42\n|planner, solver|{x: y}|Step 0 - planner:\nplanner says 0\n\nStep 1 - solver:\nsolver says 1"
    );
    assert!(!template.fill(&sample, REPLIES).text.contains("42"));
}

#[test]
fn labels_never_reach_the_prompt() {
    let text = PromptTemplate::default()
        .fill(&failure("r", 3), PromptAsking { gold_answer: true, ..PromptAsking::default() })
        .text;
    for word in ["corrupt_number", "inject", "verified", "RUN-r"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn cutting_keeps_every_labelled_step_and_the_budget() {
    let mut sample = failure("r", 40);
    for step in &mut sample.steps {
        if let Some(output) = &mut step.output {
            output.text = format!("begin {} end", "lorem ipsum ".repeat(50 + 7 * step.step as usize));
        }
    }
    for tokens in [20_000, 4000, 2000, 1000, 700] {
        let template = PromptTemplate::parse("{conversation}").expect("a template");
        let prompt = template.fill(&sample, within(tokens));
        assert!(
            BudgetUnit::Tokens.length(&prompt.text) <= tokens,
            "{tokens}: {}",
            BudgetUnit::Tokens.length(&prompt.text)
        );
        assert!(prompt.text.contains("Step 1 - solver:\nbegin"), "{tokens}: the labelled step is gone");
        match prompt.cut {
            None => assert_eq!(tokens, 20_000),
            Some(cut) => assert!(cut.gone > 0 && (cut.dropped_steps > 0) == (tokens < 2000), "{tokens}: {cut:?}"),
        }
    }
}

#[test]
fn a_labelled_step_is_cut_like_its_neighbours() {
    let mut sample = failure("r", 4);
    for step in &mut sample.steps {
        if let Some(output) = &mut step.output {
            output.text = "x".repeat(4000);
        }
    }
    let text = PromptTemplate::parse("{conversation}").expect("a template").fill(&sample, within(1000)).text;
    let lengths: Vec<usize> = text.split("Step ").skip(1).map(|part| part.trim().len()).collect();
    assert!(lengths.windows(2).all(|pair| pair[0].abs_diff(pair[1]) < 4), "{lengths:?}");
}
