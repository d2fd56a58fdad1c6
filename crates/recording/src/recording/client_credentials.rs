//! What clients have proved themselves with: masked wherever it stands from then on, in any run.

use std::{
    ops::Range,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::values::Values;

/// Most that are known at a time; the oldest goes first.
const MOST: usize = 64;
/// A value is no placeholder from this length on, with a digit or without one, and no credential beyond the last.
const WITH_DIGIT: usize = 8;
const WITHOUT_DIGIT: usize = 20;
const LONGEST: usize = 8192;

/// Credentials that were heard.
#[derive(Debug, Default)]
pub(super) struct ClientCredentials {
    current: RwLock<Arc<CredentialSet>>,
    count: AtomicU64,
}

#[derive(Debug, Default)]
struct CredentialSet {
    values: Vec<String>,
    found: Option<Values>,
}

impl ClientCredentials {
    /// Takes note of a value, unless it is one of the placeholders that local backends ask for, such as `none`: those
    /// are words that stand in texts.
    pub(super) fn add(&self, value: &str) {
        let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
        let least = if has_digit { WITH_DIGIT } else { WITHOUT_DIGIT };
        let is_known = |known: &CredentialSet| known.values.iter().any(|known| known == value);
        if !(least..=LONGEST).contains(&value.len()) || is_known(&self.current()) {
            return;
        }
        let mut known = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if is_known(&known) {
            return;
        }
        let oldest = (known.values.len() + 1).saturating_sub(MOST);
        let values: Vec<String> = known.values.iter().skip(oldest).cloned().chain([value.to_owned()]).collect();
        let found = Values::new(values.iter().map(String::as_str)).unwrap_or_default();
        *known = Arc::new(CredentialSet { values, found });
        self.count.fetch_add(1, Ordering::Release);
    }

    /// How many were heard so far.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Adds where they stand, from there on.
    pub(super) fn find(&self, text: &[u8], from: usize, spans: &mut Vec<Range<usize>>) {
        if self.count() > 0
            && let Some(found) = &self.current().found
        {
            found.find(text, from, spans);
        }
    }

    fn current(&self) -> Arc<CredentialSet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientCredentials, MOST};

    #[test]
    fn credentials_are_known_and_placeholders_are_not() {
        let heard = ClientCredentials::default();
        let found = |text: &str| {
            let mut spans = Vec::new();
            heard.find(text.as_bytes(), 0, &mut spans);
            spans.len()
        };
        for placeholder in ["none", "EMPTY", "not-needed", "ollama", "key-1", "no-key-required"] {
            heard.add(placeholder);
        }
        assert_eq!((heard.count(), found("not-needed EMPTY")), (0, 0));
        heard.add("0a1b2c3d4e5f");
        heard.add("0a1b2c3d4e5f");
        assert_eq!((heard.count(), found("it is 0a1b2c3d4e5f.")), (1, 1));
        for number in 0..MOST {
            heard.add(&format!("another-{number:03}"));
        }
        assert_eq!(found("it is 0a1b2c3d4e5f, or another-001, or another-063"), 2, "the oldest is forgotten");
    }
}
