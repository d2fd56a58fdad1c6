//! What a test found as annotations of a GitHub workflow: lines that its runner reads.

use super::{ConcludedTest, report};
use crate::cli::{Exit, Finished};

/// A line a run that did not pass: an error where the program is wrong, a warning where nothing is known; and one on the
/// whole, an error exactly where the exit code is not 0.
pub(super) fn annotations(test: &ConcludedTest, finished: &Finished) -> String {
    let red = test.runs.iter().filter(|run| !test.strictness.accepts(run.survival.result));
    let of_run = red.map(|run| {
        let level = if report::is_wrong(run) { "error" } else { "warning" };
        annotation(level, &format!("aegis test: {}, {}", run.title(), run.survival.result.name()), &report::why(run))
    });
    let level = if finished.exit == Exit::Ok { "notice" } else { "error" };
    let whole = annotation(level, "aegis test", &format!("{} {}", finished.exit.word(), finished.summary));
    of_run.chain(std::iter::once(whole)).collect()
}

fn annotation(level: &str, title: &str, message: &str) -> String {
    format!("::{level} title={}::{}\n", property(title), data(message))
}

/// A text as the runner reads it back: it ends at a line's end, and `%` begins an escape.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The same within the properties, which `:` and `,` end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_ends_no_line_and_begins_no_command() {
        let line = annotation("error", "a: b, c", "50 %\n::set-env name=X::y");
        assert_eq!(line, "::error title=a%3A b%2C c::50 %25%0A::set-env name=X::y\n");
    }
}
