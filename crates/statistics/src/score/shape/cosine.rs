//! How much two texts of a run are alike: the cosine of their words, rare ones weighing more (TF-IDF inside the run).

use std::collections::{BTreeMap, HashMap};

use super::super::real;

/// Most words of a text that are read, so that time is bounded.
const WORDS: usize = 20_000;

/// A text as weighed words, by number of the word; its length is 1, or 0 for a text without words.
#[derive(Debug, Clone, Default)]
pub(super) struct CosineTerms(Vec<(u32, f64)>);

impl CosineTerms {
    /// The texts of a run, weighed by in how many of them a word stands.
    pub(super) fn of_run<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut in_texts: Vec<f64> = Vec::new();
        let mut counted: Vec<BTreeMap<u32, f64>> = Vec::new();
        for text in texts {
            let lower = text.to_lowercase();
            let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            let mut counts = BTreeMap::new();
            for word in words.take(WORDS) {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                let number = *numbers.entry(word.to_owned()).or_insert(next);
                *counts.entry(number).or_insert(0.0) += 1.0;
            }
            for number in counts.keys() {
                let place = *number as usize;
                in_texts.resize(in_texts.len().max(place + 1), 0.0);
                if let Some(texts) = in_texts.get_mut(place) {
                    *texts += 1.0;
                }
            }
            counted.push(counts);
        }
        let all = real(counted.len());
        let rarity = |number: u32| {
            let texts = in_texts.get(number as usize).copied().unwrap_or_default();
            ((1.0 + all) / (1.0 + texts)).ln() + 1.0
        };
        counted.into_iter().map(|counts| Self::weighed(counts, rarity)).collect()
    }

    fn weighed(counts: BTreeMap<u32, f64>, rarity: impl Fn(u32) -> f64) -> Self {
        let weighed: Vec<(u32, f64)> =
            counts.into_iter().map(|(number, count)| (number, count * rarity(number))).collect();
        let length = weighed.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
        Self(weighed.into_iter().map(|(number, weight)| (number, weight / length)).collect())
    }

    /// 0 for texts without a common word, 1 for texts of the same words.
    pub(super) fn cosine(&self, other: &Self) -> f64 {
        let (mut one, mut two) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut sum = 0.0;
        while let (Some((a, x)), Some((b, y))) = (one.peek(), two.peek()) {
            if a == b {
                sum += x * y;
            }
            let (first, second) = (a <= b, b <= a);
            if first {
                one.next();
            }
            if second {
                two.next();
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_and_not() {
        let run =
            CosineTerms::of_run(["add the pears", "Add, the PEARS!", "no common word", "", "add plums"].into_iter());
        let like = |a: usize, b: usize| run[a].cosine(&run[b]);
        assert!((like(0, 1) - 1.0).abs() < 1e-12);
        assert!(like(0, 2).abs() < 1e-12 && like(0, 3).abs() < 1e-12);
        assert!(like(0, 4) > 0.1 && like(0, 4) < 0.9, "{}", like(0, 4));
        assert!((like(0, 4) - like(4, 0)).abs() < 1e-15);
    }
}
