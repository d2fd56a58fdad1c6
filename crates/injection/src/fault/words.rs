//! Words that failing services say. None of them tells of a plan.

/// The page of a web server in front of a service that is down.
pub(super) const BAD_GATEWAY: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";

/// A service's failure, said as if it were an answer.
pub(super) const UNAVAILABLE: &str =
    "503 Service Unavailable: the model is currently overloaded. Please try again later.";

/// A time-out, said as if it were an answer.
pub(super) const TIMED_OUT: &str = "Request timed out after 60 seconds. No response was received from the model.";

/// A policy's answer in the place of the model's.
pub(super) const POLICY: &str = r#"{"error":{"code":"content_policy_violation","message":"The response was blocked by policy.","status":"blocked"}}"#;

/// A filtered answer.
pub(super) const FILTERED: &str = "I'm sorry, but I can't assist with that request.";

/// A text as a reader shows it that takes UTF-8 for Latin-1.
pub(super) fn mojibake(text: &str) -> String {
    let typographic: String = text
        .chars()
        .map(|c| match c {
            '\'' => '\u{2019}',
            '"' => '\u{201d}',
            '-' => '\u{2014}',
            ' ' => '\u{a0}',
            other => other,
        })
        .collect();
    typographic.bytes().map(char::from).collect()
}

/// The first part of a text, this share of its characters.
pub(super) fn first_share(text: &str, share: f64) -> String {
    let count = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let most = f64::from(count) * share;
    text.chars().zip(1u32..).take_while(|(_, length)| f64::from(*length) <= most).map(|(c, _)| c).collect()
}

/// A text of which about every fifth letter has become a symbol.
pub(super) fn symbols(text: &str, draw: u64) -> String {
    let symbol = |(at, c): (usize, char)| {
        let turn = (at as u64).wrapping_add(draw).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let stays = c.is_whitespace() || !turn.is_multiple_of(5);
        if stays { c } else { "#@%&*~^".chars().nth(usize::try_from(turn / 5 % 7).unwrap_or(0)).unwrap_or('#') }
    };
    let spoiled: String = text.chars().enumerate().map(symbol).collect();
    // A short text may have met no symbol by chance.
    if spoiled == text && !text.is_empty() { format!("#{text}") } else { spoiled }
}

/// A number of an earlier time: two years before for a year, otherwise one less.
pub(super) fn earlier(number: i64) -> i64 {
    if (1900..2200).contains(&number) { number - 2 } else { number.saturating_sub(1) }
}

/// A text whose numbers are those of an earlier time.
pub(super) fn stale(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut digits = String::new();
    for c in text.chars().map(Some).chain([None]) {
        match c {
            Some(c) if c.is_ascii_digit() => digits.push(c),
            other => {
                match digits.parse::<i64>() {
                    Ok(year) if digits.len() == 4 => out.push_str(&earlier(year).to_string()),
                    _ => out.push_str(&digits),
                }
                digits.clear();
                out.extend(other);
            }
        }
    }
    out
}

/// Something else of the kind that a text names: another number where it has one, otherwise another name.
pub(super) fn other_entity(text: &str, draw: u64) -> String {
    const NAMES: [&str; 5] = ["Springfield", "Northwind", "Jordan Lee", "Riverside", "Harbour Street"];
    if let Some(last) = text.rfind(|c: char| c.is_ascii_digit()) {
        let (before, rest) = text.split_at(last);
        let mut rest = rest.chars();
        let digit = rest.next().and_then(|c| c.to_digit(10)).unwrap_or(0);
        return format!("{before}{}{}", (digit + 1) % 10, rest.as_str());
    }
    let first = usize::try_from(draw % 5).unwrap_or(0);
    let mut names = NAMES.iter().cycle().skip(first).take(NAMES.len());
    names.find(|name| **name != text).map_or_else(|| text.to_owned(), |name| (*name).to_owned())
}
