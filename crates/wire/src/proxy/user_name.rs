//! The name of a user of a server.

use std::fmt;

/// Longest name of a user.
const NAME_MAX: usize = 64;
/// The name under which the holder of the control token is written down.
pub(super) const OPERATOR: &str = "operator";

/// The name of a user or a team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName(String);

impl UserName {
    /// A name that a path and a directory can have: 1 to 64 letters, digits, `.`, `_` and `-`, not beginning with `.`, and not
    /// `operator`, which is who holds the control token. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let fits = (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(is_plain) && !text.starts_with('.');
        (fits && !text.eq_ignore_ascii_case(OPERATOR)).then(|| Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_directories() {
        for good in ["alice", "team-7", "a.b_c", "A"] {
            assert_eq!(UserName::parse(good).map(|name| name.to_string()).as_deref(), Some(good));
        }
        for bad in ["", ".", "..", ".a", "a/b", "a b", "é", "operator", "Operator", "@a", &"a".repeat(65)] {
            assert_eq!(UserName::parse(bad), None, "{bad}");
        }
    }
}
