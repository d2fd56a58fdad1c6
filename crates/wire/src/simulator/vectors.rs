//! Vectors for texts: each word adds to a place of its own, so that texts that share words are near each other.

use crate::surface::{Conversation, Vectors};

/// One vector for each message, of length 1 (all 0 for a text without words).
pub(super) fn embed(conversation: &Conversation, asked: Vectors) -> Vec<Vec<f32>> {
    conversation.messages.iter().map(|message| vector(&message.text(), asked.dimensions)).collect()
}

fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0.0_f32; dimensions];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = blake3::hash(word.to_lowercase().as_bytes());
        let first = hash.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
        let place = usize::try_from(u64::from_le_bytes(first) % dimensions.max(1) as u64).unwrap_or(0);
        if let Some(place) = vector.get_mut(place) {
            *place += 1.0;
        }
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        for number in &mut vector {
            *number /= length;
        }
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_words_are_near() {
        let near = |a: &str, b: &str| -> f32 {
            vector(a, 64).iter().zip(&vector(b, 64)).map(|(left, right)| left * right).sum()
        };
        assert!(
            near("How high is the tower?", "The tower is 324 m high.")
                > near("How high is the tower?", "Bats hunt at night.")
        );
        assert!((near("a b", "a b") - 1.0).abs() < 1e-6);
        assert!(vector("", 3).iter().all(|number| *number == 0.0));
    }
}
