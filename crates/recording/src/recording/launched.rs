//! How the program of a run was started, as `run.json` keeps it: for whoever wants to start it again, and for nobody else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::redact::Redactor;
use crate::trajectory::patterns;

/// What stands in the place of a secret at least.
const MASK: &str = "***";
/// The last part of a name behind which a secret stands.
const SECRET_NAMES: &str = r"(?:[a-z0-9]+[_-])*(?:api)?(?:key|token|secret|password|passwd|pass|pwd|auth|credentials?)";

/// How Aegis started and judged the program of a run: the same whichever verb made the run. It is never part of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Launched {
    /// Program and arguments; what looks like a secret is masked.
    pub command: Vec<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Variables that were set for the program beside the inherited ones and those that point it at the proxy; secrets are masked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The `aegis.toml` that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// What judged the outcome; none where the program's own end did. What looks like a secret is masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<RecordedCheck>,
    /// Where model calls went: `simulator`, or the whole base URL; what looks like a secret is masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Whether something of the command is masked or was no text, so that it cannot be started as it stands here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

/// What judged the outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum RecordedCheck {
    /// A command, run by `sh -c` with the program's output on its standard input.
    Command(String),
    /// Checkers of a campaign, with the task that they judged.
    Checkers(Value),
}

impl RecordedCheck {
    /// Whether a part of it is masked, so that nothing can be judged by it as it stands here.
    pub fn is_masked(&self) -> bool {
        match self {
            RecordedCheck::Command(line) => line.contains(MASK),
            RecordedCheck::Checkers(value) => value.to_string().contains(MASK),
        }
    }

    fn redacted(self, redactor: &Redactor) -> Self {
        match self {
            RecordedCheck::Command(line) => RecordedCheck::Command(masked(&line, redactor)),
            RecordedCheck::Checkers(value) => RecordedCheck::Checkers(masked_texts(value, redactor)),
        }
    }
}

impl Launched {
    /// The same with secrets masked, as it may be stored.
    pub(super) fn redacted(self, redactor: &Redactor) -> Self {
        let mut hidden = false;
        let mut command = Vec::with_capacity(self.command.len());
        for argument in self.command {
            // The value of an option that names a secret, whatever it looks like.
            let value = std::mem::take(&mut hidden) && !argument.starts_with("--");
            hidden = names_secret(&argument);
            command.push(if value { asterisks(&argument) } else { masked(&argument, redactor) });
        }
        let environment: BTreeMap<String, String> = self
            .environment
            .into_iter()
            .map(|(name, value)| {
                let value = if NAME.is_match(&name) { asterisks(&value) } else { masked(&value, redactor) };
                (name, value)
            })
            .collect();
        let masked = self.masked || command.iter().chain(environment.values()).any(|text| text.contains(MASK));
        let upstream = self.upstream.map(|upstream| redactor.path(&upstream).into_owned());
        let check = self.check.map(|check| check.redacted(redactor));
        Self { command, environment, check, upstream, masked, ..self }
    }
}

/// Whether an argument is an option whose value, the next argument, is a secret.
fn names_secret(argument: &str) -> bool {
    OPTION.is_match(argument)
}

patterns! {
    /// A variable that is called like a secret.
    NAME = format!("(?i)^{SECRET_NAMES}$");

    /// An option that is called like a secret.
    OPTION = format!("(?i)^--?{SECRET_NAMES}$");

    /// A value beside the name of a secret, within a line.
    BESIDE = format!(
        r#"(?i)(?P<name>(?:^|[\s;&|'"(])(?:--?{SECRET_NAMES}(?:=|\s+)|{SECRET_NAMES}=)['"]?)(?P<value>[^\s'"-][^\s'"]*)"#
    );
}

/// An argument with masked secrets: key shapes, and values beside names of secrets, also within a line for a shell.
fn masked(argument: &str, redactor: &Redactor) -> String {
    let text = redactor.text(argument);
    let hide = |found: &regex::Captures<'_>| format!("{}{}", &found["name"], asterisks(&found["value"]));
    BESIDE.replace_all(&text, hide).into_owned()
}

/// A value whose texts are masked as an argument is.
fn masked_texts(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(masked(&text, redactor)),
        Value::Array(all) => all.into_iter().map(|one| masked_texts(one, redactor)).collect(),
        Value::Object(all) => all.into_iter().map(|(name, one)| (name, masked_texts(one, redactor))).collect(),
        other => other,
    }
}

fn asterisks(text: &str) -> String {
    "*".repeat(text.chars().count().max(3))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::Secrets, *};

    fn check(given: &[&str], expected: &[&str], masked: bool) {
        let redactor =
            Redactor::new(&Secrets { values: vec!["hunter2!".to_owned()], ..Secrets::default() }).expect("compiles");
        let command = given.iter().map(|&argument| argument.to_owned()).collect();
        let launched = Launched { command, ..Launched::default() }.redacted(&redactor);
        assert_eq!(
            (launched.command.iter().map(String::as_str).collect::<Vec<_>>(), launched.masked),
            (expected.to_vec(), masked)
        );
    }

    #[test]
    fn what_names_or_looks_like_a_secret_is_masked_and_nothing_else() {
        for plain in [
            &["python", "mas.py", "--task", "Ada has 3 pears", "--max-tokens", "50", "--keyword", "pear"][..],
            &["sh", "-c", "python mas.py --verbose | tail -1"],
            &["env", "MONKEY=3", "python", "-m", "mas", "--bypass", "yes"],
            &["cat", "--token"],
        ] {
            check(plain, plain, false);
        }
        let key = concat!("sk-", "abcdefghijklmnop");
        check(&["python", key], &["python", &"*".repeat(key.len())], true);
        check(&["python", "--api-key", "blue"], &["python", "--api-key", "****"], true);
        check(&["python", "--API_KEY=blue"], &["python", "--API_KEY=****"], true);
        check(&["env", "OPENAI_API_KEY=blue", "python"], &["env", "OPENAI_API_KEY=****", "python"], true);
        check(&["sh", "-c", "MY_TOKEN='blue sky' python x"], &["sh", "-c", "MY_TOKEN='**** sky' python x"], true);
        check(&["sh", "-c", "python x --password blue; ls"], &["sh", "-c", "python x --password ***** ls"], true);
        check(&["login", "hunter2!"], &["login", "********"], true);
    }

    #[test]
    fn an_upstream_keeps_no_password_and_no_key() {
        let redactor = Redactor::default();
        let launched = |upstream: &str| {
            let upstream = Some(upstream.to_owned());
            let launched = Launched { command: vec!["x".to_owned()], upstream, ..Launched::default() };
            launched.redacted(&redactor).upstream.expect("one")
        };
        assert_eq!(launched("http://127.0.0.1:8000/v1"), "http://127.0.0.1:8000/v1");
        assert!(!launched("https://me:blue@host/v1?api-key=green").contains("blue"));
        assert!(!launched("https://host/v1?api-key=green").contains("green"));
    }

    #[test]
    fn variables_and_checks_keep_no_secret() {
        let environment = [("PLACE", "here"), ("SEARCH_KEY", "blue")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let line = "grep -q 'ANSWER: 4' && judge --token blue";
        for (check, kept) in [
            (RecordedCheck::Command(line.to_owned()), RecordedCheck::Command(line.replace("blue", "****"))),
            (
                RecordedCheck::Checkers(json!({"answer": "4", "own": {"command": {"run": ["x", "TOKEN=blue"]}}})),
                RecordedCheck::Checkers(json!({"answer": "4", "own": {"command": {"run": ["x", "TOKEN=****"]}}})),
            ),
        ] {
            let launched = Launched {
                command: vec!["x".to_owned()],
                environment: environment.clone().into(),
                check: Some(check),
                ..Launched::default()
            };
            let launched = launched.redacted(&Redactor::default());
            assert!(launched.masked, "its variables held a secret");
            assert_eq!(launched.environment["PLACE"], "here");
            assert_eq!(launched.environment["SEARCH_KEY"], "****");
            assert_eq!(launched.check.as_ref().map(RecordedCheck::is_masked), Some(true));
            assert_eq!(launched.check, Some(kept));
        }
    }
}
