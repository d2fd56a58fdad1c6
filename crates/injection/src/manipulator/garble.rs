//! `garble`: the answer's letters are mixed up.

use schemars::JsonSchema;
use serde::Deserialize;

use super::truncate_output::Fraction;
use super::{Context, Manipulator, ManipulatorError, not_applicable, passage};
use crate::surface::Answer;
use crate::trajectory::Side;

/// Scrambles the letters and digits of some words of the answer.
///
/// Which words, and how, depends on the draw. Blanks and marks stay; a JSON answer stays JSON, garbled in its strings.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// failure_mode = "FM-2.2"
/// when.call = 0
/// manipulator.garble = { part = 0.9 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: Where to?"]
/// reply = "Twelve kilometres northwards, then straight ahead."
/// expect_changed = true
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Garble {
    /// Approximate share of words, from 0 to less than 1.
    #[serde(default = "third")]
    pub part: Fraction,
}

fn third() -> Fraction {
    Fraction::try_from(0.3).unwrap_or_default()
}

impl Default for Garble {
    fn default() -> Self {
        Self { part: third() }
    }
}

impl Manipulator for Garble {
    fn edit_answer(&self, answer: &mut Answer, context: &Context<'_>) -> Result<(), ManipulatorError> {
        let edited = passage::edit(answer, &context.conversation.format, |text| self.garbled(text, context.draw))?;
        if edited { Ok(()) } else { not_applicable("the answer has no word that could be mixed up") }
    }

    fn check(&self, _: Side) -> Result<(), String> {
        if f64::from(self.part) > 0.0 { Ok(()) } else { Err("`part` is 0: nothing would change".to_owned()) }
    }

    fn explain(&self) -> String {
        format!("mixes up the letters of about {:.0} % of the answer's words", f64::from(self.part) * 100.0)
    }
}

impl Garble {
    /// The text with some words mixed up; at least one that can be.
    fn garbled(&self, text: &str, draw: u64) -> Option<String> {
        let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
        let mixed: Vec<String> = words.iter().enumerate().map(|(at, word)| mixed(word, draw, at)).collect();
        let can: Vec<usize> = (0..words.len()).filter(|at| words.get(*at) != mixed.get(*at).map(String::as_str).as_ref()).collect();
        let first = *can.get(usize::try_from(draw % can.len().max(1) as u64).ok()?)?;
        let picked = |at: usize| at == first || chance(draw, at) < f64::from(self.part);
        let parts = words.iter().zip(&mixed).enumerate();
        Some(parts.map(|(at, (word, mixed))| if picked(at) { mixed.as_str() } else { word }).collect())
    }
}

/// The word with its letters and digits in another order, where there is one.
fn mixed(word: &str, draw: u64, at: usize) -> String {
    let mut letters: Vec<char> = word.chars().filter(|c| c.is_alphanumeric()).collect();
    for last in (1..letters.len()).rev() {
        let other = usize::try_from(hash(draw, &[at, last]) % (last as u64 + 1)).unwrap_or_default();
        letters.swap(last, other);
    }
    let mut letters = letters.into_iter();
    word.chars().map(|c| if c.is_alphanumeric() { letters.next().unwrap_or(c) } else { c }).collect()
}

#[expect(clippy::cast_precision_loss, reason = "53 bits are what an f64 holds exactly")]
fn chance(draw: u64, at: usize) -> f64 {
    (hash(draw, &[at]) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number that depends on the draw and on a place.
fn hash(draw: u64, place: &[usize]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&draw.to_le_bytes());
    for number in place {
        hasher.update(&(*number as u64).to_le_bytes());
    }
    let bytes = hasher.finalize();
    u64::from_le_bytes(bytes.as_bytes().first_chunk().copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manipulator::testing::answer;
    use crate::surface::RequiredFormat;

    #[test]
    fn letters_stay_and_the_order_goes() {
        let sorted = |text: &str| {
            let mut letters: Vec<char> = text.chars().collect();
            letters.sort_unstable();
            letters
        };
        let before = "Zwölf kilometres northwards, then straight ahead.";
        for draw in 0..20 {
            let after = answer(&Garble::default(), before, RequiredFormat::Text, draw).expect("applies").message.text();
            assert_ne!(after, before, "{draw}");
            assert_eq!(sorted(&after), sorted(before));
            let again = answer(&Garble::default(), before, RequiredFormat::Text, draw).expect("applies").message.text();
            assert_eq!(after, again, "the same draw, the same words");
        }
        let json = answer(&Garble::default(), r#"{"key": "some words"}"#, RequiredFormat::JsonObject, 3).expect("applies");
        assert!(json.message.text().starts_with(r#"{"key": ""#), "{}", json.message.text());
        for nothing in ["", "a b !", "..."] {
            assert!(answer(&Garble::default(), nothing, RequiredFormat::Text, 1).is_err(), "{nothing}");
        }
        assert!(Garble { part: Fraction::default() }.check(Side::Response).is_err());
    }
}
