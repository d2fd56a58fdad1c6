//! Questions that are near copies of one another and stand in several parts: another name, other numbers. Whoever learned one
//! part has seen the other.

use std::collections::{BTreeMap, BTreeSet};

use twox_hash::XxHash3_64;

use crate::dataset::{Sample, Split};

/// Fewest words beside names and numbers of a question that another repeats.
const WORDS: usize = 6;
/// How much of two questions must be the same: pairs of words that both have, of those that either has.
const ALIKE: f64 = 0.75;
/// Most forms that are compared with one another; they are drawn by their hash.
const FORMS: usize = 2000;

const NUMBERS: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
    seventeen eighteen nineteen twenty thirty forty fifty hundred thousand half twice double";
const PRONOUNS: &str = "he she they him her them his hers their theirs";
/// Words that begin a sentence and are no names.
const STARTERS: &str = "a after all an and are at before but by calculate compute do does during each every find for from given how if \
    in is it its let name now of on once one please say suppose that the then there these this to today was what \
    when where which who whose why with write";

/// Forms of questions, with the parts in which they stand and a task of each.
#[derive(Debug, Default)]
pub(super) struct Questions(BTreeMap<(u64, String), BTreeMap<Split, String>>);

/// A form, by its pairs of words.
struct QuestionForm<'a> {
    pairs: BTreeSet<(&'a str, &'a str)>,
    parts: &'a BTreeMap<Split, String>,
}

impl Questions {
    pub(super) fn add(&mut self, sample: &Sample) {
        let (Some(part), Some(form)) = (sample.split, form(&sample.task.question)) else { return };
        let key = (XxHash3_64::oneshot(form.as_bytes()), form);
        self.0.entry(key).or_default().entry(part).or_insert_with(|| sample.task.id.clone());
        if self.0.len() > FORMS {
            self.0.pop_last();
        }
    }

    /// How many forms stand in several parts, and two tasks of one, in words.
    pub(super) fn finding(&self) -> Option<String> {
        let forms = self.0.iter().map(|((_, form), parts)| QuestionForm { pairs: pairs(form), parts });
        let forms: Vec<QuestionForm<'_>> = forms.collect();
        let mut copied = BTreeSet::new();
        let mut example = None;
        for (number, form) in forms.iter().enumerate() {
            // One form in two parts is a copy of itself.
            for (other, of) in forms.iter().enumerate().skip(number) {
                let Some(tasks) = separated_tasks(form.parts, of.parts) else { continue };
                if number == other || alike(&form.pairs, &of.pairs) >= ALIKE {
                    copied.extend([number, other]);
                    example = example.or(Some(tasks));
                }
            }
        }
        let [one, other] = example?;
        Some(format!(
            "{} of {} questions are near copies of some in another part, for example those of tasks {} and {}: names, numbers and \
             little else differ",
            copied.len(),
            forms.len(),
            super::super::quoted(one),
            super::super::quoted(other)
        ))
    }
}

/// A task of each of two parts, where these are not one and the same.
fn separated_tasks<'a>(one: &'a BTreeMap<Split, String>, other: &'a BTreeMap<Split, String>) -> Option<[&'a str; 2]> {
    let both = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    both.filter(|(a, b)| a.0 != b.0).map(|(a, b)| [a.1.as_str(), b.1.as_str()]).next()
}

/// What a question says beside names and numbers; `None` of one that says too little.
fn form(question: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    let mut plain = 0;
    for word in question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let lower = word.to_lowercase();
        let known = |list: &str| list.split(' ').any(|known| known == lower);
        let masked = if word.chars().any(char::is_numeric) || known(NUMBERS) {
            "0"
        } else if known(PRONOUNS) {
            "they"
        } else if word.starts_with(char::is_uppercase) && !known(STARTERS) {
            "Name"
        } else {
            plain += 1;
            &lower
        };
        // A name of several words is one.
        if masked != "Name" || words.last().is_none_or(|last| last != "Name") {
            words.push(masked.to_owned());
        }
    }
    (plain >= WORDS).then(|| words.join(" "))
}

fn pairs(form: &str) -> BTreeSet<(&str, &str)> {
    form.split(' ').zip(form.split(' ').skip(1)).collect()
}

fn alike(one: &BTreeSet<(&str, &str)>, other: &BTreeSet<(&str, &str)>) -> f64 {
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let (less, more) = (one.len().min(other.len()), one.len().max(other.len()));
    if count(less) < ALIKE * count(more) {
        return 0.0;
    }
    let both = one.intersection(other).count();
    count(both) / count(one.len() + other.len() - both)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_and_little_else_may_differ() {
        let of =
            "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
        for (other, copy) in [
            (
                "Tom has 14 boxes with 9 pencils each. He gives away 3 pencils. How many pencils does he have left?",
                true,
            ),
            (
                "Anna Lee has six boxes with ten pencils each. She gives away two pencils. How many pencils does she have left?",
                true,
            ),
            (
                "Mia has 12 boxes with 8 pencils each. She then gives away 12 pencils. How many pencils does she have left?",
                true,
            ),
            ("A farm has 6 rows with 14 apple trees each. 8 trees are cut down. How many apple trees are left?", false),
            (
                "Kim has 3 boxes of 8 chocolates. She shares them equally among 4 friends. How many does each friend get?",
                false,
            ),
        ] {
            let (one, other_form) = (form(of).expect("a form"), form(other).expect("a form"));
            let alike = alike(&pairs(&one), &pairs(&other_form));
            assert_eq!(alike >= ALIKE, copy, "{alike}: {other}");
        }
        assert_eq!(form("What is the capital of France?"), None, "it says too little beside the name");
    }
}
