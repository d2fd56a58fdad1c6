//! A `JUnit` file: what CI servers show. Written here for verdicts on clients and for campaigns.

use std::fmt;

/// A test suite.
#[derive(Debug, Default)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// How long it took, in seconds, where that was measured.
    pub seconds: Option<f64>,
    /// When it began, RFC 3339, where that is known.
    pub began: Option<String>,
    /// Its cases, in order.
    pub cases: Vec<TestCase>,
}

/// A test case.
#[derive(Debug)]
pub struct TestCase {
    /// What it belongs to.
    pub class: String,
    /// Its name.
    pub name: String,
    /// What came of it.
    pub came: CaseResult,
    /// What there is to say beside; empty is nothing.
    pub details: String,
    /// How long it took, in seconds, where that was measured.
    pub seconds: Option<f64>,
}

/// What came of a test case, with the message where it did not pass.
#[derive(Debug, PartialEq, Eq)]
pub enum CaseResult {
    /// It passed.
    Passed,
    /// It was not counted.
    Skipped(String),
    /// What was tested is wrong.
    Failed(String),
    /// Nothing could be tested.
    Errored(String),
}

impl fmt::Display for Suite {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |is: fn(&CaseResult) -> bool| self.cases.iter().filter(|case| is(&case.came)).count();
        let failures = count(|came| matches!(came, CaseResult::Failed(_)));
        let errors = count(|came| matches!(came, CaseResult::Errored(_)));
        let skipped = count(|came| matches!(came, CaseResult::Skipped(_)));
        writeln!(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        let time = self.seconds.map(|seconds| format!(" time=\"{seconds:.3}\"")).unwrap_or_default();
        let counts = format!(
            " tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"{time}",
            self.cases.len()
        );
        let name = in_markup(&self.name);
        // Readers of this format take no time zone: what is meant is UTC.
        let began = self.began.as_ref().and_then(|began| began.get(..19));
        let began = began.map(|began| format!(" timestamp=\"{began}\"")).unwrap_or_default();
        writeln!(text, "<testsuites name=\"{name}\"{counts}><testsuite name=\"{name}\"{counts}{began}>")?;
        for case in &self.cases {
            writeln!(text, "{case}")?;
        }
        writeln!(text, "</testsuite></testsuites>")
    }
}

impl fmt::Display for TestCase {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = in_markup(&self.details);
        write!(text, "<testcase classname=\"{}\" name=\"{}\"", in_markup(&self.class), in_markup(&self.name))?;
        if let Some(seconds) = self.seconds {
            write!(text, " time=\"{seconds:.3}\"")?;
        }
        let (element, message) = match &self.came {
            CaseResult::Passed if said.is_empty() => return write!(text, "/>"),
            CaseResult::Passed => return write!(text, "><system-out>{said}</system-out></testcase>"),
            CaseResult::Skipped(message) => ("skipped", message),
            CaseResult::Failed(message) => ("failure", message),
            CaseResult::Errored(message) => ("error", message),
        };
        write!(text, "><{element} message=\"{}\"", in_markup(message))?;
        match said.as_str() {
            "" => write!(text, "/></testcase>"),
            said => write!(text, ">{said}</{element}></testcase>"),
        }
    }
}

/// A text as an attribute or as content of XML or HTML: nothing of it is markup. Neither has a way to write control
/// characters; marks that turn the direction of what is around them are left out.
pub fn in_markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() && c != '\n' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_written_and_counted() {
        let case = |came, said: &str| TestCase {
            class: "c".to_owned(),
            name: "<n>".to_owned(),
            came,
            details: said.to_owned(),
            seconds: None,
        };
        let cases = vec![
            case(CaseResult::Passed, ""),
            case(CaseResult::Passed, "it's\u{1b}\u{202e}fine"),
            case(CaseResult::Skipped("by chance".to_owned()), ""),
            case(CaseResult::Failed("a \"b\"".to_owned()), "why"),
            case(CaseResult::Errored("e".to_owned()), ""),
        ];
        let written = Suite {
            name: "s&t".to_owned(),
            seconds: Some(1.5),
            began: Some("2026-01-02T03:04:05.678Z".to_owned()),
            cases,
        }
        .to_string();
        let expected = [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "<testsuites name=\"s&amp;t\" tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"1.500\"><testsuite \
             name=\"s&amp;t\" tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"1.500\" timestamp=\"2026-01-02T03:04:05\">",
            "<testcase classname=\"c\" name=\"&lt;n&gt;\"/>",
            "<testcase classname=\"c\" name=\"&lt;n&gt;\"><system-out>it&#39;s\u{fffd}fine</system-out></testcase>",
            "<testcase classname=\"c\" name=\"&lt;n&gt;\"><skipped message=\"by chance\"/></testcase>",
            "<testcase classname=\"c\" name=\"&lt;n&gt;\"><failure message=\"a &quot;b&quot;\">why</failure></testcase>",
            "<testcase classname=\"c\" name=\"&lt;n&gt;\"><error message=\"e\"/></testcase>",
            "</testsuite></testsuites>\n",
        ];
        assert_eq!(written, expected.join("\n"));
    }
}
