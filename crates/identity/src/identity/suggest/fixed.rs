//! What is fixed in several texts of one agent, and what was put in: aligned word by word.

use crate::identity::mask;

/// Words of a text that are aligned.
const WORDS_MAX: usize = 4096;
/// Longest fixed text that a rule asks for, in bytes.
const FIXED_MAX: usize = 240;
/// Shortest ending that a rule asks for, in bytes.
const ENDING_MIN: usize = 4;
/// Fewest words in a row that are taken for fixed between two holes.
const RUN_MIN: usize = 2;

/// The words of a text with what stands between them: each piece is a word and the blanks behind it.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive(char::is_whitespace).take(WORDS_MAX).collect()
}

/// Texts between the holes of several texts, in order. Where a text begins or ends with a hole, the first or last is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FixedTemplate(Vec<String>);

impl FixedTemplate {
    /// A text without holes but where it tells when, or where on a machine, it was written.
    pub(super) fn from_text(text: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut first_is_set = false;
        for piece in pieces(text) {
            let moves = moves(piece.trim());
            match parts.last_mut() {
                Some(last) if !moves => last.push_str(piece),
                // Holes in a row are one.
                Some(last) if last.is_empty() && first_is_set => {}
                _ => parts.push(String::new()),
            }
            first_is_set = true;
        }
        Self(parts)
    }

    /// What this template and another text have in common.
    pub(super) fn with(&self, text: &str) -> Self {
        let words = pieces(text);
        let mut parts: Vec<String> = Vec::new();
        let mut from = 0;
        for (number, part) in self.0.iter().enumerate() {
            let own = pieces(part);
            let (first, last) = (number == 0, number + 1 == self.0.len());
            let rest = words.get(from..).unwrap_or_default();
            let (found, taken) = common(&own, rest, first, last);
            if parts.is_empty() {
                parts = found;
            } else {
                parts.extend(found);
            }
            from += taken;
        }
        let ends = [parts.first().cloned(), parts.last().cloned()];
        let several = parts.len() > 1;
        let inner = parts.len().saturating_sub(2);
        let mut kept: Vec<String> = ends.first().cloned().flatten().into_iter().collect();
        kept.extend(parts.into_iter().skip(1).take(inner).filter(|part| !part.trim().is_empty()));
        kept.extend(ends.into_iter().skip(1).flatten().filter(|_| several));
        Self(kept)
    }

    /// What of a text is not fixed, without signs around it.
    pub(super) fn without_fixed(&self, text: &str) -> String {
        let mut rest = text.to_owned();
        for part in self.0.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
            if let Some(at) = rest.find(part) {
                rest.replace_range(at..at + part.len(), " ");
            }
        }
        let rest: Vec<&str> = rest.split_whitespace().collect();
        rest.join(" ").trim_matches(|sign: char| !sign.is_alphanumeric()).to_owned()
    }

    /// How many words are fixed.
    pub(super) fn words(&self) -> usize {
        self.0.iter().map(|part| part.split_whitespace().count()).sum()
    }

    /// How many of them tell something.
    pub(super) fn telling(&self) -> usize {
        self.0.iter().map(|part| telling(part)).sum()
    }

    /// A regular expression that fits all texts of the template, and as little else as can be.
    pub(super) fn regex(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(|part| escaped(part)).collect();
        format!(r"(?s)\A\s*{}\s*\z", parts.join(".*"))
    }

    /// Beginnings that all texts of the template share, the shortest first: whole sentences, or what stands before the first hole.
    /// `plain`: whether a sentence may be asked for.
    pub(super) fn beginnings(&self, plain: impl Fn(&str) -> bool) -> Vec<&str> {
        let Some(part) = self.0.first() else { return Vec::new() };
        let mut found: Vec<&str> = Vec::new();
        for sentence in crate::identity::fingerprint::sentences(part).take_while(|sentence| plain(sentence)) {
            let end = sentence.as_ptr().addr() - part.as_ptr().addr() + sentence.len();
            found.extend(part.get(..end).filter(|text| text.len() <= FIXED_MAX));
        }
        found
    }

    /// The last sentence that all texts of the template share and end with; `None` where they end with a hole.
    pub(super) fn ending(&self, plain: impl Fn(&str) -> bool) -> Option<&str> {
        let last = crate::identity::fingerprint::sentences(self.0.last()?).last()?;
        // A part that begins within a line may begin within a sentence.
        Some(last).filter(|last| plain(last) && last.len() <= FIXED_MAX && last.len() >= ENDING_MIN)
    }

    /// Whether a text is all that is told, with nothing put in.
    pub(super) fn is_whole(&self, text: &str) -> bool {
        matches!(self.0.as_slice(), [only] if only.trim() == text.trim())
    }

    /// Fixed texts that a rule may ask for, in order: sentences, and where `lines`, whole lines before theirs.
    pub(super) fn excerpts(&self, lines: bool) -> Vec<String> {
        let mut found = Vec::new();
        for part in &self.0 {
            for line in part.split('\n').map(str::trim).filter(|line| !line.is_empty()) {
                found.extend(lines.then(|| cut(line).to_owned()));
                found.extend(crate::identity::fingerprint::sentences(line).map(|sentence| cut(sentence).to_owned()));
            }
        }
        found.dedup();
        found
    }
}

/// A text as a part of a regular expression; where its lines break, any blanks may stand.
pub(super) fn escaped(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(regex::escape).collect::<Vec<_>>().join(r"\s+")
}

/// How many words of a text tell something: `You are a` tells nothing.
pub(super) fn telling(text: &str) -> usize {
    const COMMON: [&str; 36] = [
        "you",
        "are",
        "a",
        "an",
        "the",
        "is",
        "your",
        "to",
        "of",
        "and",
        "in",
        "on",
        "be",
        "for",
        "with",
        "as",
        "that",
        "this",
        "it",
        "i",
        "will",
        "by",
        "or",
        "from",
        "at",
        "do",
        "not",
        "if",
        "must",
        "should",
        "can",
        "all",
        "any",
        "role",
        "agent",
        "assistant",
    ];
    let plain = |word: &str| word.trim_matches(|sign: char| !sign.is_alphanumeric()).to_lowercase();
    text.split_whitespace().map(plain).filter(|word| !word.is_empty() && !COMMON.contains(&word.as_str())).count()
}

/// Whether a word tells a moment, an id or a place on a machine.
pub(super) fn moves(word: &str) -> bool {
    let mut masked = String::new();
    mask::moments(word, &mut masked);
    let plain = word.trim_matches(|sign: char| "\"'`()<>,;:.".contains(sign));
    masked != word || (plain.starts_with('/') && plain.matches('/').count() > 1) || plain.contains(":\\")
}

/// The beginning of a text that is short enough for a rule.
fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(FIXED_MAX)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

/// Fixed texts that a part of a template and the words that follow share, in order, and how many words that takes.
fn common(own: &[&str], words: &[&str], first: bool, last: bool) -> (Vec<String>, usize) {
    let same = |a: &str, b: &str| a.trim_end() == b.trim_end();
    let head = if first { own.iter().zip(words).take_while(|(a, b)| same(a, b)).count() } else { 0 };
    if head == own.len() && (!last || head == words.len()) {
        return (vec![own.concat()], head);
    }
    let mut found = vec![own.get(..head).unwrap_or_default().concat()];
    let (own, rest) = (own.get(head..).unwrap_or_default(), words.get(head..).unwrap_or_default());
    let tail = if last { own.iter().rev().zip(rest.iter().rev()).take_while(|(a, b)| same(a, b)).count() } else { 0 };
    let inner = own.get(..own.len() - tail).unwrap_or_default();
    let (mut at, mut from) = (0, 0);
    let within = rest.get(..rest.len() - tail).unwrap_or_default();
    while at < inner.len() {
        // The next words that come again, in order; few in a row are chance.
        let run = |start: usize| {
            let (a, b) = (inner.get(at..).unwrap_or_default(), within.get(start..).unwrap_or_default());
            a.iter().zip(b).take_while(|(a, b)| same(a, b)).count()
        };
        let next = (from..within.len()).map(|start| (run(start), start)).find(|(length, _)| *length >= RUN_MIN);
        match next {
            Some((length, start)) => {
                found.push(inner.get(at..at + length).unwrap_or_default().concat());
                at += length;
                from = start + length;
            }
            None => at += 1,
        }
    }
    if last {
        found.push(own.get(own.len() - tail..).unwrap_or_default().concat());
    }
    (found, head + if last { rest.len() } else { from })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(texts: &[&str]) -> FixedTemplate {
        texts.iter().skip(1).fold(FixedTemplate::from_text(texts[0]), |template, text| template.with(text))
    }

    #[test]
    fn what_is_put_in_is_a_hole() {
        for (texts, expected) in [
            (vec!["You write. Be brief.", "You write. Be brief."], "You write. Be brief."),
            (vec!["You write on tea. Be brief.", "You write on old ships. Be brief."], "You write on |Be brief."),
            (vec!["Plan the following: tea.", "Plan the following: maps."], "Plan the following: |"),
            (vec!["Give a title to: tea", "Give a title to: ships", "Give a title to: maps"], "Give a title to: |"),
            (vec!["a b X c d Y e f", "a b Z c d W e f", "a b c d e f"], "a b |c d |e f"),
            (vec!["You act. Today is 2026-11-20. Be kind."], "You act. Today is |Be kind."),
            (vec!["You act in /home/ann/work now"], "You act in |now"),
            (vec!["nothing alike", "at all here"], "|"),
        ] {
            assert_eq!(template(&texts).0.join("|"), expected, "{texts:?}");
            let regex = regex::Regex::new(&template(&texts).regex()).expect("a pattern");
            assert!(texts.iter().all(|text| regex.is_match(text)), "{regex}");
        }
    }
}
