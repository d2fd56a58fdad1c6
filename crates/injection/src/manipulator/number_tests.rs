//! Tests of [`super`]: which numbers are found, and that a changed one keeps its format.

use proptest::prelude::*;

use super::*;

fn found(text: &str) -> Vec<&str> {
    numbers(text).into_iter().map(|range| text.get(range).expect("inside the text")).collect()
}

#[test]
fn finds_what_counts_and_skips_what_names() {
    for (text, expected) in [
        ("The total is 12.", vec!["12"]),
        ("12 + 30 = 42. The answer is **42**", vec!["12", "30", "42", "42"]),
        ("$1,234.50 and 50%", vec!["1,234.50", "50"]),
        ("x = -3, (-4), 5 - 6, \u{2212}7", vec!["-3", "-4", "5", "6", "\u{2212}7"]),
        ("\\boxed{42} $17$ \"3\"", vec!["42", "17", "3"]),
        ("3/4 of it", vec!["3", "4"]),
        ("gpt-4o solver-1 v1.2 1.2.3 H2O a1 _2 12kg 3rd #7", vec![]),
        ("2026-09-01 at 10:30, 3-5 pages", vec![]),
        ("1. Add 4\n2) Take 9\n  - 3. third thing", vec!["4", "9"]),
        ("Step 2: add 5; see **table** 3", vec!["5"]),
        ("It is\n12.\nDone", vec!["12"]),
        ("1,2,3", vec![]),
        ("1, 2, 3", vec!["1", "2", "3"]),
        ("é12 １２ 12é", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn changes_keep_the_format() {
    for (number, how, draw, expected) in [
        ("12", NumberChange::Digit, 0, Some("22")),
        ("12", NumberChange::Digit, 1, Some("13")),
        ("-1,234.50", NumberChange::Digit, 3, Some("-1,235.50")),
        ("0.5", NumberChange::Digit, 0, Some("0.6")),
        ("0", NumberChange::Digit, 0, Some("1")),
        ("91", NumberChange::Transpose, 0, Some("19")),
        ("90", NumberChange::Transpose, 0, Some("10")),
        ("77", NumberChange::Transpose, 0, Some("87")),
        ("42", NumberChange::Sign, 9, Some("-42")),
        ("-42", NumberChange::Sign, 9, Some("42")),
        ("0.0", NumberChange::Sign, 9, None),
        ("123", NumberChange::Scale, 0, Some("1230")),
        ("123,456", NumberChange::Scale, 0, Some("1,234,560")),
        ("0.05", NumberChange::Scale, 0, Some("0.50")),
        ("0", NumberChange::Scale, 0, None),
    ] {
        assert_eq!(altered(number, how, draw).as_deref(), expected, "{number} {how:?} {draw}");
    }
    for (number, by, expected) in [
        ("12", 3.0, Some("15")),
        ("2", -5.0, Some("-3")),
        ("999,999", 1.0, Some("1,000,000")),
        ("0.50", 0.25, Some("0.75")),
        ("12", 0.25, None),
        ("12", f64::NAN, None),
        ("12", 1e300, None),
    ] {
        assert_eq!(added(number, by).as_deref(), expected, "{number} + {by}");
    }
}

proptest! {
    #[test]
    fn a_changed_digit_is_another_number_of_the_same_length(number in "-?(0|[1-9][0-9]{0,2})(\\.[0-9]{1,3})?", draw: u64) {
        for how in [NumberChange::Digit, NumberChange::Transpose] {
            let changed = altered(&number, how, draw).expect("always possible");
            prop_assert_ne!(&changed, &number);
            prop_assert_eq!(changed.len(), number.len());
            prop_assert_eq!(found(&changed), vec![changed.as_str()]);
        }
    }

    #[test]
    fn any_text_is_searched_without_panic(text in "\\PC{0,40}|[-0-9.,: a-z\\n\u{2212}]{0,40}") {
        let mut end = 0;
        for range in numbers(&text) {
            prop_assert!(range.start >= end && text.get(range.clone()).is_some());
            end = range.end;
        }
    }
}
