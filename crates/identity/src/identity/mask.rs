//! What of a text tells when or about what it was written, not by whom: times, dates, long numbers, hex ids.
//!
//! A small number stays: `player 1` and `player 2` are two agents.

/// Shortest run of hex digits and hyphens that is an id.
const HEX_ID_MIN: usize = 12;
/// Longest one, in bytes: a text of nothing but hex digits and hyphens is not looked through again from each of them.
const HEX_ID_MAX: usize = 128;
/// Fewest digits in a row of a number that counts moments or things, and tells nobody from another.
const LONG_MIN: usize = 6;
/// Longest time or date, in bytes.
const MOMENT_MAX: usize = 64;
/// Months, as they begin.
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Whether there may be any of it: times, dates, numbers and ids all have digits.
pub(super) fn may_hold_moments(text: &str) -> bool {
    // No early end, so that many bytes are looked at at once.
    text.bytes().fold(false, |found, byte| found | byte.is_ascii_digit())
}

/// The name of a header that a client writes into a prompt as a line of its own (`x-…: value; value`): what stands behind it is
/// about the client and the moment, and tells no agent from another.
pub(super) fn header_name(line: &str) -> Option<&str> {
    let (name, value) = line.trim_start().split_once(": ")?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_header = name.starts_with("x-") && name.matches('-').count() > 1 && name.bytes().all(is_name);
    (is_header && !value.is_empty()).then_some(name)
}

/// Appends the text with the digits of times, dates and long numbers, and hex ids, masked by `#`. One pass: prompts are long.
pub(super) fn moments(text: &str, masked: &mut String) {
    if let Some(name) = header_name(text).filter(|_| !text.contains('\n')) {
        masked.push_str(name);
        return;
    }
    let (mut rest, mut dated) = (text, false);
    while let Some(first) = rest.bytes().next() {
        let id = if first.is_ascii_hexdigit() && !ends_in_word(masked) { hex_id(rest) } else { 0 };
        if id > 0 {
            masked.push('#');
            rest = rest.get(id..).unwrap_or_default();
            continue;
        }
        if first.is_ascii_digit() {
            let (number, tail) = rest.split_at_checked(number(rest)).unwrap_or((rest, ""));
            let beside_month = is_beside_month(masked, tail);
            dated |= beside_month;
            if beside_month || is_moment(number) || (dated && number.len() == 4) {
                push_masked(number, masked);
            } else {
                masked.push_str(number);
            }
            rest = tail;
            continue;
        }
        // Up to the next number, but an id may begin at any word.
        let word = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let gap = rest.bytes().skip(word).take_while(|byte| !byte.is_ascii_alphanumeric()).count();
        let (plain, tail) = rest.split_at_checked((word + gap).max(1)).unwrap_or((rest, ""));
        masked.push_str(plain);
        rest = tail;
    }
}

/// The length of the digits that a text begins with, and of those that single signs of times and dates join to them.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes().get(..text.len().min(MOMENT_MAX)).unwrap_or_default();
    let mut end = 0;
    loop {
        end += bytes.iter().skip(end).take_while(|byte| byte.is_ascii_digit()).count();
        let joins = bytes.get(end).is_some_and(|sign| b":./-T".contains(sign));
        if !joins || !bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            return end;
        }
        end += 1;
    }
}

/// Whether digits with signs between them are a time, a date or a long number.
fn is_moment(number: &str) -> bool {
    let parts = |sign: char| number.split(sign).map(str::len).collect::<Vec<_>>();
    let is_date = |sign| matches!(parts(sign)[..], [4, 1..=2, 1..=2] | [1..=2, 1..=2, 2 | 4]);
    number.contains([':', 'T'])
        || number.split(|sign: char| !sign.is_ascii_digit()).any(|digits| digits.len() >= LONG_MIN)
        || ['-', '/', '.'].into_iter().any(is_date)
}

/// Whether a number between these texts stands beside a month's name.
fn is_beside_month(before: &str, after: &str) -> bool {
    let not_letter = |sign: char| !sign.is_ascii_alphabetic();
    let before = before.trim_end_matches([' ', ',', '.']);
    let word = before.rsplit(not_letter).next();
    let after = ["st", "nd", "rd", "th"].iter().find_map(|ending| after.strip_prefix(ending)).unwrap_or(after);
    let next = after.trim_start_matches([' ', '.']).split(not_letter).next();
    word.is_some_and(is_month) || next.is_some_and(is_month)
}

fn is_month(word: &str) -> bool {
    const WHOLE: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    MONTHS.contains(&word) || WHOLE.contains(&word)
}

fn push_masked(number: &str, masked: &mut String) {
    let mut digits = false;
    for sign in number.chars() {
        if !sign.is_ascii_digit() {
            masked.push(sign);
        } else if !digits {
            masked.push('#');
        }
        digits = sign.is_ascii_digit();
    }
}

fn ends_in_word(text: &str) -> bool {
    text.bytes().next_back().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'#')
}

/// The length of the hex id that the text begins with; 0 when it begins with none.
fn hex_id(text: &str) -> usize {
    let length = text.bytes().take(HEX_ID_MAX).take_while(|byte| byte.is_ascii_hexdigit() || *byte == b'-').count();
    let id = text.as_bytes().get(..length).unwrap_or_default();
    let ends = !text.as_bytes().get(length).is_some_and(u8::is_ascii_alphanumeric);
    let is_id = length >= HEX_ID_MIN && ends && id.iter().any(u8::is_ascii_digit);
    if is_id { length } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_without_meaning_another_agent_is_masked() {
        for (text, expected) in [
            ("Now: 18:58:18.779420.", "Now: #:#:#.#."),
            ("Today is 2026-11-20T10:30:00Z", "Today is #-#-#T#:#:#Z"),
            ("On 20/11/2026 and 1.2.26", "On #/#/# and #.#.#"),
            ("It is November 3, 2026.", "It is November #, #."),
            ("x-some-billing-header: version=2.1.48f; entry=cli; id=71fea;", "x-some-billing-header"),
            ("x-ray: an image of bones 3", "x-ray: an image of bones 3"),
            ("X-Men: a film of 2000", "X-Men: a film of 2000"),
            ("It is the 3rd May 2026", "It is the #rd May #"),
            ("id 3f2b8c1e-9d4a-4c7e-8f00-1234567890ab end", "id # end"),
            ("commit deadbeef0123 ok", "commit # ok"),
            ("call 1795413490", "call #"),
            ("a defaced facade", "a defaced facade"),
            // What may be all that tells two agents apart.
            ("You are player 1. Be brief.", "You are player 1. Be brief."),
            ("use gpt4, h2o and v1.2", "use gpt4, h2o and v1.2"),
            ("You may ask 3 times", "You may ask 3 times"),
            ("You are worker #1, room 2026", "You are worker #1, room 2026"),
            ("Zoë zählt bis 10 — 世界", "Zoë zählt bis 10 — 世界"),
            ("", ""),
        ] {
            let mut masked = String::new();
            moments(text, &mut masked);
            assert_eq!(masked, expected, "{text}");
            assert!(masked == text || may_hold_moments(text), "{text}");
        }
    }
}
