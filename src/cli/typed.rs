//! The line that was typed, for lines that say what to type next: whatever was said in it is said again, so that no option that
//! shapes the work is lost on the way.

use crate::launch::shell_word;

/// The words of a line after the program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypedLine {
    options: Vec<String>,
    /// `--` and what stands behind it.
    rest: Vec<String>,
}

impl TypedLine {
    /// The line that started this process.
    pub(super) fn of_process() -> Self {
        Self::new(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect())
    }

    /// The line of these words.
    pub(super) fn new(mut options: Vec<String>) -> Self {
        let end = options.iter().position(|word| word == "--").unwrap_or(options.len());
        let rest = options.split_off(end);
        Self { options, rest }
    }

    /// Whether it says an option, by its long name.
    pub(super) fn has_option(&self, option: &str) -> bool {
        self.options.iter().any(|word| is(word, option))
    }

    /// Less an option, and its value if it takes one.
    pub(super) fn without(mut self, option: &str, takes_value: bool) -> Self {
        while let Some(at) = self.options.iter().position(|word| is(word, option)) {
            let apart = takes_value && self.options.get(at).is_some_and(|word| word == option);
            let end = (at + 1 + usize::from(apart)).min(self.options.len());
            self.options.drain(at..end);
        }
        self
    }

    /// With these words behind its options.
    pub(super) fn with(mut self, words: impl IntoIterator<Item = String>) -> Self {
        self.options.extend(words);
        self
    }

    /// Its options alone, without the verb, one further word, and what stands behind `--`; `None` of another verb's line.
    pub(super) fn options_of(mut self, verb: &str, word: &str) -> Option<Self> {
        let at = self.options.iter().position(|said| said == verb)?;
        self.options.remove(at);
        self.options.remove(self.options.iter().position(|said| said == word)?);
        Some(Self { rest: Vec::new(), ..self })
    }

    /// Its words, as a shell takes them.
    pub(super) fn words(&self) -> String {
        let words: Vec<String> = self.options.iter().chain(&self.rest).map(|word| shell_word(word)).collect();
        words.join(" ")
    }

    /// As a shell takes it.
    pub(super) fn text(&self) -> String {
        let words = self.words();
        if words.is_empty() { "aegis".to_owned() } else { format!("aegis {words}") }
    }
}

fn is(word: &str, option: &str) -> bool {
    word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_out_and_put_in_and_words_stay_words() {
        let line = |words: &[&str]| TypedLine::new(words.iter().map(|&word| word.to_owned()).collect());
        let typed =
            line(&["trace", "r 1", "--pairs", "4", "--pairs=5", "--pairs-x", "--check", "it's", "--", "p", "--pairs"]);
        assert!(
            typed.has_option("--check") && !typed.has_option("--pair") && !line(&["a", "--", "--b"]).has_option("--b")
        );
        for (said, expected) in [
            (typed.clone(), r"aegis trace 'r 1' --pairs 4 --pairs=5 --pairs-x --check 'it'\''s' -- p --pairs"),
            (typed.clone().without("--pairs", true), r"aegis trace 'r 1' --pairs-x --check 'it'\''s' -- p --pairs"),
            (line(&["a", "--again", "b"]).without("--again", false), "aegis a b"),
            (line(&["a", "--only"]).without("--only", true), "aegis a"),
            (line(&["a", "--", "b"]).with(["--c".to_owned(), String::new()]), "aegis a --c '' -- b"),
        ] {
            assert_eq!(said.text(), expected);
        }
    }
}
