//! Why a file of rules cannot be used.

use super::built_in::BUILT_IN;
use crate::trajectory::PatternError;

/// The newest format of a rules file.
pub(super) const FORMAT: u32 = 1;

/// Why a rules file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// It is no TOML of the expected form; the parser's words hold line and column.
    #[error("{file}: {error}")]
    Form {
        /// The file.
        file: String,
        /// What is wrong, with the place.
        error: Box<toml::de::Error>,
    },
    /// A pattern is no regular expression.
    #[error("{file}: the pattern of rule `{rule}` {error}")]
    Pattern {
        /// The file.
        file: String,
        /// The rule.
        rule: String,
        /// What is wrong.
        error: PatternError,
    },
    /// A built-in rule is named that does not exist.
    #[error("{file}: no built-in rule is called `{name}`{}: expected one of {}", hint(name), names())]
    Unknown {
        /// The file.
        file: String,
        /// What was named.
        name: String,
    },
    /// A pointer does not begin with `/`.
    #[error("{file}: `{pointer}` is not a JSON pointer: expected `/key/…`, `*` for any key or index")]
    Pointer {
        /// The file.
        file: String,
        /// What was given.
        pointer: String,
    },
    /// A newer version of this program wrote the file.
    #[error("{file}: format {found} is not known: expected at most {FORMAT}")]
    Future {
        /// The file.
        file: String,
        /// The format found.
        found: u32,
    },
}

/// `…, did you mean …?` for a misspelt built-in rule.
fn hint(name: &str) -> String {
    let near = crate::trajectory::nearest(name, BUILT_IN.iter().map(|rule| rule.name));
    near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default()
}

fn names() -> String {
    BUILT_IN.iter().map(|rule| rule.name).collect::<Vec<_>>().join(", ")
}
