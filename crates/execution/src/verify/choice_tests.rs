//! Answers to questions with choices: by letter, by words, by number.

use super::*;
use crate::{
    trajectory::Verdict::{self, Failure, Success, Unknown},
    verify::check_table,
};

#[test]
fn hard_cases() {
    let table: &[(&str, &str, Verdict)] = &[
        ("C", "C", Success),
        ("C", "(c)", Success),
        ("(C)", "**C**", Success),
        ("C) Paris", "C. Paris", Success),
        ("The answer is (D) because of x", "ANSWER: D", Success),
        ("The answer is (D) Paris", "(D) Paris", Success),
        ("C", "Long reasoning about A and B.\n\nC", Success),
        ("C", "The answer is C.", Success),
        ("C", "The correct answer is option C, not A.", Success),
        ("C", "Final answer: (C) Paris", Success),
        ("C", r"$\boxed{C}$", Success),
        ("C", r"\boxed{\text{(C)}}", Success),
        ("B", "A good choice would be hard; (B) fits best.", Success),
        ("A", "A good start is to look at the units.", Unknown),
        ("I", "I think that I am lost.", Unknown),
        ("A", "It is not (A), so it must be (B).", Failure),
        ("B", "It is not (A), so it must be (B).", Success),
        ("B", "Option A is wrong, so option B.", Success),
        ("B", "Rather than option A, take option B", Success),
        ("A", "Answer: A or B", Unknown),
        ("A", "The answer is not A.", Failure),
        ("B", "First I thought the answer is A. But the answer is B.", Success),
        ("A", "(A) or (B), hard to say", Unknown),
        ("A", "", Failure),
        ("B", "Answer: b", Success),
        ("42", "B", Unknown),
        ("C", "The answer is C because A is too small.", Success),
    ];
    check_table(|case| Choice::default().compare(case), table);
}

#[test]
fn words_do_for_letters() {
    let capitals = Choice { choices: ["Rome", "Oslo", "Paris"].map(str::to_owned).to_vec() };
    check_table(
        |case| capitals.compare(case),
        &[("C", "The answer is Paris.", Success), ("Paris", "C", Success), ("C", "Oslo", Failure)],
    );
    let cities = Choice { choices: ["Rome", "Oslo", "Athens", "Cairo", "Cairo, Illinois"].map(str::to_owned).to_vec() };
    for right in [
        "The capital of Egypt is Cairo.",
        "Cairo is the capital of Egypt.",
        "I think it's D",
        "I think it's D\nThanks for asking.\n",
        "It is not Rome; it is Cairo.",
        "Of the options, D is right because the others are in Europe.",
        "I would go with D.",
        "D seems correct to me.",
        "It cannot be Athens, so Cairo.",
        "Rome and Athens are in Europe. Therefore it is Cairo.",
        "Neither Rome nor Oslo nor Athens is in Africa, but Cairo is.",
        "My pick: D) Cairo",
        "Egypt's capital, Cairo, lies on the Nile.",
        "Oslo isn't in Africa. Cairo is.",
        "I'd choose D, as it is on the Nile.",
        "Rather than Rome, take Cairo",
        "Option C is wrong. The right one is D.",
    ] {
        let case = Case { question: "", expected: "D", output: right };
        assert_eq!(cities.compare(&case).verdict, Success, "{right}");
        let case = Case { question: "", expected: "B", output: right };
        assert_eq!(cities.compare(&case).verdict, Failure, "{right}");
    }
    for open in [
        "Rome or Cairo, who knows.",
        "It is not Rome.",
        "A city in Africa is what I would look for.",
        "Either B or D.",
        "I have no idea.",
        "I was right about the river.",
        "I was the one who looked it up.",
        "Rome is the capital of Italy, and Cairo is that of Egypt.",
    ] {
        let case = Case { question: "", expected: "D", output: open };
        assert_eq!(cities.compare(&case).verdict, Unknown, "{open}");
    }
    check_table(
        |case| cities.compare(case),
        &[("A", "It is not Rome.", Failure), ("E", "It is Cairo, Illinois.", Success), ("A", "It's not A.", Failure), ("D", "It isn't D.\n", Failure)],
    );
    let question = "Which is a capital of France?\nA) Rome\nB) Oslo\nC) Paris";
    let case = Case { question, expected: "C", output: "Paris" };
    assert_eq!(Choice::default().compare(&case).verdict, Success);
}

#[test]
fn numbers_and_symbols_do_for_letters_at_the_end_of_an_answer() {
    let numbers = Choice { choices: ["12", "30", "42", "3.5 kg"].map(str::to_owned).to_vec() };
    check_table(
        |case| numbers.compare(case),
        &[
            ("C", "There are 42 apples left.", Success),
            ("A", "There are 42 apples left.", Failure),
            ("C", "We count them all. There must be 42.", Success),
            ("C", "42, as far as I can see", Success),
            ("D", "It weighs 3.5 kg.", Success),
            ("C", "It is not 42.", Failure),
            ("B", "Not 42, but 30.", Success),
            ("C", "(C), since 12 + 30 makes it.", Success),
            // Which of several is meant nobody can tell, and what is said on the way is no answer.
            ("C", "So 12 + 30 = 42.", Unknown),
            ("A", "She has 12 boxes. Then she leaves.", Unknown),
            ("A", "I count 99.", Unknown),
            ("C", "It is 142.", Unknown),
            ("C", "It is 4.42.", Unknown),
            ("C", "It is 42.5.", Unknown),
            ("C", "It is -42.", Unknown),
            ("C", "About 42,000 of them.", Unknown),
        ],
    );
    let symbols = Choice { choices: ["Au", "Ag", "In", "C"].map(str::to_owned).to_vec() };
    check_table(
        |case| symbols.compare(case),
        &[
            ("A", "The symbol of gold is Au.", Success),
            ("B", "The symbol of gold is Au.", Failure),
            ("A", "It is Au, not Ag.", Success),
            ("B", "Silver in Latin gives Ag", Success),
            ("C", "It stands in the third row.", Unknown),
            ("A", "Au or Ag, hard to say.", Unknown),
            ("D", "It is found in coal.", Unknown),
            ("D", "Auburn", Unknown),
        ],
    );
}
