//! What would have helped a request that left the record: the option to type.

use super::Difference;

/// What a token that looks made anew in each run has at least, in bytes.
const TOKEN_MIN: usize = 6;

/// The rule that would take two values at the first difference for one, if they look as if each run made its own.
pub(super) fn rule(difference: &Difference) -> Option<String> {
    let (old, new) = (unquoted(&difference.recorded)?, unquoted(&difference.asked)?);
    let same = old.char_indices().zip(new.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at)?;
    let (old, new) = (token(&old, same)?, token(&new, same)?);
    let volatile = |token: &str| {
        let has = |kind: fn(&u8) -> bool| token.as_bytes().iter().any(kind);
        token.len() >= TOKEN_MIN && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    };
    if !(volatile(old) && volatile(new)) {
        return None;
    }
    let shared = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    // A name before the last separator that both share tells what it is.
    let head = old.get(..shared)?.rfind(['-', '_', ':', '.']).map_or("", |end| old.get(..=end).unwrap_or_default());
    let tails = [old, new].map(|token| token.get(head.len()..).unwrap_or_default());
    let hex = tails.iter().all(|tail| tail.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let class = if hex { "[0-9a-fA-F]" } else { "[A-Za-z0-9_.-]" };
    let [old, new] = tails.map(str::len);
    let many = if old == new { format!("{{{old}}}") } else { format!("{{{},{}}}", old.min(new), old.max(new)) };
    let pattern = format!(r"\b{}{class}{many}", regex::escape(head));
    Some(format!("format = 1\n[[rule]]\nname = \"volatile\"\npattern = '{pattern}'"))
}

fn unquoted(excerpt: &str) -> Option<String> {
    serde_json::from_str::<String>(excerpt).ok()
}

/// The run of letters, digits and joining signs around a place.
fn token(text: &str, at: usize) -> Option<&str> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    let before = text
        .get(..at)?
        .rfind(|c| !inside(c))
        .map_or(0, |end| end + text.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    let behind = text.get(at..)?.find(|c| !inside(c)).map_or(text.len(), |end| at + end);
    text.get(before..behind).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(recorded: &str, asked: &str) -> Difference {
        let quoted = |text: &str| format!("{text:?}");
        let place = "messages[0].content".to_owned();
        Difference { place, recorded: quoted(recorded), asked: quoted(asked), reordered: false }
    }

    #[test]
    fn a_rule_is_sketched_where_a_run_made_a_value_of_its_own() {
        let pattern = |recorded: &str, asked: &str| {
            let rule = rule(&difference(recorded, asked))?;
            let rules = crate::equality::Rules::parse(&rule, "sketch").expect("a rules file");
            assert_eq!(rules.apply_text(recorded), rules.apply_text(asked), "{rule}");
            rule.lines().last().map(str::to_owned)
        };
        assert_eq!(
            pattern("see ticket-8f3a91 now", "see ticket-91bc07 now").as_deref(),
            Some(r"pattern = '\bticket\-[0-9a-fA-F]{6}'")
        );
        assert_eq!(pattern("job a1b2c3d4", "job zz99yy8").as_deref(), Some(r"pattern = '\b[A-Za-z0-9_.-]{7,8}'"));
        for (recorded, asked) in
            [("12 pears", "13 pears"), ("123456789", "987654321"), ("pears", "plums"), ("x1", "x2")]
        {
            assert_eq!(pattern(recorded, asked), None, "{recorded}");
        }
    }
}
