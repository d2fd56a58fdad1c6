//! Arithmetic expressions and comparisons, as they stand in a text or a tool's arguments: read and evaluated.

use super::language::same_number;

/// What an expression evaluates to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    /// A number.
    Number(f64),
    /// The truth of a comparison.
    Truth(bool),
}

/// Evaluates a whole text as one expression: `+ - * x × / ÷ % ^ **`, parentheses, `== != < <= > >=`.
pub(super) fn evaluate(text: &str) -> Option<Value> {
    let symbols = symbols(text)?;
    let mut reader = ExpressionReader { symbols: &symbols, at: 0, depth: 0 };
    let left = reader.sum()?;
    let value = match reader.next() {
        None => return Some(Value::Number(left)),
        Some(Symbol::Compare(name)) => {
            let right = reader.sum()?;
            Value::Truth(match name {
                "==" => same_number(left, right),
                "!=" => !same_number(left, right),
                "<" => left < right,
                "<=" => left <= right,
                ">" => left > right,
                _ => left >= right,
            })
        }
        Some(_) => return None,
    };
    reader.next().is_none().then_some(value)
}

/// The longest stretch of a text that is an expression with at least one operator between numbers, and its value.
pub(super) fn find(text: &str) -> Option<(String, Value)> {
    let mut best: Option<(String, Value)> = None;
    for stretch in stretches(&in_signs(text)) {
        let numbers = stretch.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).count();
        let longer = best.as_ref().is_none_or(|(known, _)| stretch.len() > known.len());
        let value = if numbers >= 2 && longer && has_operator(&stretch) && !is_date(&stretch) {
            evaluate(&stretch)
        } else {
            None
        };
        if let Some(value) = value {
            best = Some((stretch, value));
        }
    }
    best
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Symbol {
    Number(f64),
    Operator(char),
    Compare(&'static str),
}

struct ExpressionReader<'a> {
    symbols: &'a [Symbol],
    at: usize,
    depth: u32,
}

impl ExpressionReader<'_> {
    fn next(&mut self) -> Option<Symbol> {
        let symbol = self.symbols.get(self.at).copied();
        self.at += 1;
        symbol
    }

    fn take_any(&mut self, operators: &[char]) -> Option<char> {
        match self.symbols.get(self.at) {
            Some(Symbol::Operator(operator)) if operators.contains(operator) => {
                self.at += 1;
                Some(*operator)
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Option<f64> {
        let mut total = self.product()?;
        while let Some(operator) = self.take_any(&['+', '-']) {
            let right = self.product()?;
            total = if operator == '+' { total + right } else { total - right };
        }
        Some(total)
    }

    fn product(&mut self) -> Option<f64> {
        let mut total = self.power()?;
        while let Some(operator) = self.take_any(&['*', '/', '%']) {
            let right = self.power()?;
            if operator != '*' && right == 0.0 {
                return None;
            }
            total = match operator {
                '*' => total * right,
                '/' => total / right,
                _ => total.rem_euclid(right),
            };
        }
        total.is_finite().then_some(total)
    }

    fn power(&mut self) -> Option<f64> {
        self.depth += 1;
        if self.depth > 64 {
            return None;
        }
        let negative = self.take_any(&['-']).is_some();
        let base = match self.next()? {
            Symbol::Number(value) => value,
            Symbol::Operator('(') => {
                let inner = self.sum()?;
                self.take_any(&[')'])?;
                inner
            }
            _ => return None,
        };
        let raised = if self.take_any(&['^']).is_some() { base.powf(self.power()?) } else { base };
        self.depth -= 1;
        raised.is_finite().then_some(if negative { -raised } else { raised })
    }
}

fn symbols(text: &str) -> Option<Vec<Symbol>> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let next = letters.get(at + 1).copied();
        let mut used = 1;
        match (letter, next) {
            ('0'..='9' | '.', _) => {
                let run: String = letters
                    .iter()
                    .skip(at)
                    .take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '_'))
                    .collect();
                let run = run.trim_end_matches([',', '.']);
                used = run.chars().count().max(1);
                found.push(Symbol::Number(run.replace([',', '_'], "").parse().ok()?));
            }
            ('*', Some('*')) => {
                used = 2;
                found.push(Symbol::Operator('^'));
            }
            ('=', Some('=')) => {
                used = 2;
                found.push(Symbol::Compare("=="));
            }
            ('!', Some('=')) => {
                used = 2;
                found.push(Symbol::Compare("!="));
            }
            ('<', Some('=')) => {
                used = 2;
                found.push(Symbol::Compare("<="));
            }
            ('>', Some('=')) => {
                used = 2;
                found.push(Symbol::Compare(">="));
            }
            ('=', _) => found.push(Symbol::Compare("==")),
            ('<', _) => found.push(Symbol::Compare("<")),
            ('>', _) => found.push(Symbol::Compare(">")),
            ('×' | '·' | 'x' | '*', _) => found.push(Symbol::Operator('*')),
            ('÷' | '/', _) => found.push(Symbol::Operator('/')),
            ('−' | '–' | '-', _) => found.push(Symbol::Operator('-')),
            ('+' | '(' | ')' | '%' | '^', _) => found.push(Symbol::Operator(letter)),
            _ if letter.is_whitespace() => {}
            _ => return None,
        }
        at += used;
    }
    (!found.is_empty()).then_some(found)
}

/// Stretches that hold nothing but what an expression may hold, trimmed to where one may start and end.
fn stretches(text: &str) -> Vec<String> {
    let belongs = |c: char| c.is_ascii_digit() || " .,+-*/×÷·−–%^()x=<>!_".contains(c);
    let mut found = vec![String::new()];
    let letters: Vec<char> = text.chars().collect();
    for (at, &letter) in letters.iter().enumerate() {
        let beside = |n: usize| letters.get(n).is_some_and(|c| c.is_alphabetic() || *c == '$');
        let part_of_word = letter == 'x' && (beside(at + 1) || (at > 0 && beside(at - 1)));
        if belongs(letter) && !part_of_word {
            if let Some(last) = found.last_mut() {
                last.push(letter);
            }
        } else {
            found.push(String::new());
        }
    }
    let pieces = found.iter().flat_map(|stretch| stretch.split(", ")).flat_map(|stretch| stretch.split(". "));
    let trim = |s: &str| {
        let starts = |c: char| !(c.is_ascii_digit() || matches!(c, '(' | '-' | '.'));
        let s = s.trim_start_matches(starts).trim_start_matches(". ");
        s.trim_end_matches(|c: char| !(c.is_ascii_digit() || c == ')')).to_owned()
    };
    pieces.map(trim).filter(|s| !s.is_empty()).collect()
}

/// Words between numbers as signs: `12 times 8`, `15 percent of 80`, `the sum of 3 and 4`.
fn in_signs(text: &str) -> String {
    const SIGNS: [(&str, &str); 8] = [
        (" multiplied by ", " * "),
        (" divided by ", " / "),
        (" times ", " * "),
        (" plus ", " + "),
        (" minus ", " - "),
        ("% of ", " / 100 * "),
        (" percent of ", " / 100 * "),
        (" equals ", " == "),
    ];
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || matches!(c, '(' | ')'));
    let mut text = text.to_owned();
    for (words, sign) in SIGNS {
        while let Some((before, after)) = text.match_indices(words).find_map(|(at, _)| {
            let (before, after) = (text.get(..at)?, text.get(at + words.len()..)?);
            (digit(before.chars().next_back()) && digit(after.chars().next())).then_some((before, after))
        }) {
            text = format!("{before}{sign}{after}");
        }
    }
    for (named, sign) in [("sum of ", "+"), ("product of ", "*"), ("difference between ", "-"), ("difference of ", "-")]
    {
        let Some((before, after)) = text.split_once(named) else { continue };
        let stop = after.find(|c: char| !(c.is_ascii_digit() || " .,and".contains(c))).unwrap_or(after.len());
        let (numbers, rest) = after.split_at_checked(stop).unwrap_or((after, ""));
        let joined = numbers.replace(", and ", " and ").replace(", ", " and ").replace(" and ", &format!(" {sign} "));
        text = format!("{before}{joined}{rest}");
    }
    text
}

/// Whether it is a day of the calendar: `2026-11-29`.
fn is_date(stretch: &str) -> bool {
    let lengths = stretch.split('-').map(|part| part.len() * usize::from(part.bytes().all(|b| b.is_ascii_digit())));
    lengths.eq([4, 2, 2])
}

fn has_operator(stretch: &str) -> bool {
    let inner = stretch.trim_start_matches('-');
    inner.chars().any(|c| "+-*/×÷·−–%^x=<>".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated() {
        let check = |text: &str, expected: Option<Value>| assert_eq!(evaluate(text), expected, "{text}");
        let number = |value| Some(Value::Number(value));
        check("17 * 23 + 4", number(395.0));
        check("(4 + 6) / 4", number(2.5));
        check("2 ** 5 - 1", number(31.0));
        check("12 × 7 ÷ 2", number(42.0));
        check("17 % 5", number(2.0));
        check("-3 + 10", number(7.0));
        check("1,200 / 3", number(400.0));
        check("4 * 12 - 9 == 39", Some(Value::Truth(true)));
        check("7 < 3", Some(Value::Truth(false)));
        check("1 / 0", None);
        check("4 +", None);
        check("four", None);
        check(&"(".repeat(5000), None);
    }

    #[test]
    fn expressions_are_found_in_texts() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(find(text).map(|(found, _)| found).as_deref(), expected, "{text}");
        };
        check("What is 17 * 23 + 4?", Some("17 * 23 + 4"));
        check("Please compute (3 + 4) x 5.", Some("(3 + 4) x 5"));
        check("In 2024, 12 people came.", None);
        check("There are 4 boxes.", None);
        check("Today is 2026-11-29, what is left?", None);
        check("What is 2026 - 11 - 29?", Some("2026 - 11 - 29"));
        check("assert 2 + 2 == 4", Some("2 + 2 == 4"));
        check("What is 12 times 8?", Some("12 * 8"));
        check("What is 15% of 80?", Some("15 / 100 * 80"));
        check("What is the sum of 48, 3 and 27?", Some("48 + 3 + 27"));
        check("3 times a week", None);
    }
}
