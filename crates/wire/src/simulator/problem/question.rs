//! Splits a problem into clauses and reads what it asks.

use super::{
    clause::{self, ClauseContext},
    fact::{AskedFact, Stated},
    noun::{self, CountedUnit},
    verbs,
};
use crate::simulator::language::{TextToken, singular, tokens};

/// Reads a problem. `None` where it asks for no number.
pub(super) fn read(text: &str) -> Option<Stated> {
    let sentences = sentences(&tokens(text));
    let asking = sentences.iter().rposition(|s| asks(s))?;
    let mut stated = Stated::default();
    let mut context = ClauseContext::default();
    for (number, sentence) in sentences.iter().enumerate() {
        context.each = None;
        if number < asking {
            for part in clauses(sentence) {
                stated.facts.extend(clause::facts(&part, &mut context));
            }
        }
    }
    stated.asked = asked(sentences.get(asking)?, &mut context);
    (!stated.facts.is_empty() || !stated.asked.facts.is_empty()).then_some(stated)
}

fn sentences(tokens: &[TextToken]) -> Vec<Vec<TextToken>> {
    let mut found = vec![Vec::new()];
    for token in tokens {
        let ended = matches!(token, TextToken::Stop | TextToken::Question);
        if let Some(last) = found.last_mut() {
            last.push(token.clone());
        }
        if ended {
            found.push(Vec::new());
        }
    }
    found.retain(|sentence| sentence.len() > 1);
    found
}

fn asks(sentence: &[TextToken]) -> bool {
    let starts = ["how", "what", "find", "calculate", "compute", "determine"];
    let start = sentence.iter().any(|t| t.is(&["how"])) || sentence.first().is_some_and(|t| t.is(&starts));
    let pair = |a: &str, b: &[&str]| {
        sentence.windows(2).any(|pair| matches!(pair, [one, two] if one.word() == a && two.is(b)))
    };
    let question = sentence.last() == Some(&TextToken::Question);
    let how = pair("how", &["many", "much", "far", "long", "old", "tall", "fast", "heavy", "high"]);
    how || (start
        && (question || sentence.first().is_some_and(|t| t.is(&["find", "calculate", "compute", "determine"]))))
        || (question && sentence.iter().any(|t| t.is(&["what"])))
}

/// Splits at commas, `and`, `then` and the like, wherever the rest says something of its own.
fn clauses(sentence: &[TextToken]) -> Vec<Vec<TextToken>> {
    let links = ["and", "then", "but", "while", "whereas", "after", "before", "so", "which", "who", "when", "if"];
    let mut found: Vec<Vec<TextToken>> = vec![Vec::new()];
    for (at, token) in sentence.iter().enumerate() {
        let comma = matches!(token, TextToken::Comma | TextToken::Stop | TextToken::Question);
        if !comma && !token.is(&links) {
            if let Some(last) = found.last_mut() {
                last.push(token.clone());
            }
            continue;
        }
        let rest = sentence.get(at + 1..).unwrap_or_default();
        let end = rest.iter().position(|t| matches!(t, TextToken::Comma) || t.is(&links)).unwrap_or(rest.len());
        let own = rest.get(..end).unwrap_or_default();
        let last = found.last_mut();
        let before_says = last.as_ref().is_some_and(|clause| says(clause));
        let adjectives = adjectives_joined(last.as_ref().map(|c| c.as_slice()).unwrap_or_default(), own);
        if before_says && says(own) && !adjectives {
            found.push(if token.is(&["which"]) { vec![token.clone()] } else { Vec::new() });
        } else if let Some(last) = last {
            last.push(token.clone());
        }
    }
    found.retain(|clause| !clause.is_empty());
    found
}

/// Whether a clause holds a number or a share.
fn says(clause: &[TextToken]) -> bool {
    !noun::mentions(clause).is_empty()
}

/// `8 red and 5 blue marbles` and `12 boys and 15 girls each` stay one clause.
fn adjectives_joined(before: &[TextToken], after: &[TextToken]) -> bool {
    let starts_with_number = after.first().is_some_and(|t| t.number().is_some());
    let no_verb = !after.iter().any(|t| verbs::deed(t.word()).is_some());
    let short = before.len() >= 2 && before.get(before.len() - 2).is_some_and(|t| t.number().is_some());
    let adjective = before.last().is_some_and(|t| !t.word().ends_with('s') && !t.word().is_empty());
    starts_with_number && no_verb && short && adjective
}

fn asked(sentence: &[TextToken], context: &mut ClauseContext) -> AskedFact {
    let mut asked = AskedFact {
        words: sentence.iter().map(TextToken::word).filter(|w| !w.is_empty()).map(singular).collect(),
        ..AskedFact::default()
    };
    let pair = |first: &str, second: &[&str]| {
        sentence.windows(2).position(|pair| matches!(pair, [a, b] if a.word() == first && b.is(second)))
    };
    let mut skip = 0..0;
    let kinds: &[(&[&str], &str)] =
        &[(&["far"], "km"), (&["long"], "hour"), (&["old"], "year"), (&["heavy"], "kg"), (&["tall", "high"], "cm")];
    if let Some(at) = pair("how", &["many", "much"]) {
        let used = sentence.get(at + 2..).and_then(noun::noun);
        let end = used.as_ref().map_or(at + 2, |(_, used)| at + 2 + used);
        let real = |unit: &CountedUnit| {
            !matches!(unit.head.as_str(), "money" | "change" | "profit" | "cost" | "tip" | "discount")
        };
        asked.unit = used.map(|(unit, _)| if real(&unit) { unit } else { CountedUnit::plain("money") });
        if asked.unit.is_none()
            && asked
                .says(&["cost", "pay", "spend", "spent", "earn", "money", "save", "worth", "change", "profit", "owe"])
        {
            asked.unit = Some(CountedUnit::plain("money"));
        }
        skip = at..end;
    } else if let Some((_, head)) = kinds.iter().find(|(words, _)| pair("how", words).is_some()) {
        asked.unit = Some(CountedUnit::plain(head));
    } else if asked.says(&["price", "cost", "profit", "bill", "change", "earning", "wage"]) {
        asked.unit = Some(CountedUnit::plain("money"));
    } else if let Some(at) = pair("number", &["of"]) {
        let used = sentence.get(at + 2..).and_then(noun::noun);
        skip = at..used.as_ref().map_or(at + 2, |(_, used)| at + 2 + used);
        asked.unit = used.map(|(unit, _)| unit);
    }
    asked.each = each(sentence, skip.end);
    let own: Vec<TextToken> =
        sentence.iter().enumerate().filter(|(at, _)| !skip.contains(at)).map(|(_, t)| t.clone()).collect();
    let mut own = own;
    if let Some(unit) = asked.unit.clone().filter(|_| own.iter().position(|t| t.is(&["of"])) == Some(0)) {
        own.insert(0, TextToken::Word(crate::simulator::language::Word { text: unit.head + "s", capital: false }));
    }
    let tags = context.tags.clone();
    for part in clauses(&own) {
        asked.facts.extend(clause::facts(&part, context));
    }
    context.tags = tags;
    asked
}

fn each(sentence: &[TextToken], from: usize) -> Option<CountedUnit> {
    let at = sentence.iter().skip(from).position(|t| t.is(&["each", "per", "every"])).map(|at| at + from)?;
    let after = sentence.get(at + 1..)?;
    if after.first().is_some_and(|t| t.is(&["of"])) {
        let counted = noun::mentions(after);
        return counted.into_iter().find_map(|m| m.unit).or_else(|| Some(CountedUnit::plain("each")));
    }
    noun::noun(after).map(|(unit, _)| unit).or_else(|| Some(CountedUnit::plain("each")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_split_into_what_says_something() {
        let check = |text: &str, expected: usize| {
            assert_eq!(clauses(&tokens(text)).len(), expected, "{text}: {:?}", clauses(&tokens(text)));
        };
        check("Anna bought 3 notebooks at 4 dollars each and a pen for 2 dollars", 2);
        check("She has 8 red and 5 blue marbles", 1);
        check("He picks 12 apples, eats 2 and sells 5", 3);
        check("Tom and Mia have 12 apples", 1);
    }

    #[test]
    fn questions_are_found() {
        let check = |text: &str, expected: Option<&str>| {
            let unit = read(text).map(|s| s.asked.unit.map(|u| u.words()).unwrap_or_default());
            assert_eq!(unit.as_deref(), expected, "{text}");
        };
        check("There are 4 boxes. How many apple trees are left?", Some("apple trees"));
        check("She has 4 pens. How much does she pay?", Some("dollars"));
        check("He ran 4 km. How far did he run?", Some("km"));
        check("There are 4 boxes.", None);
        check("How are you?", None);
    }
}
