//! Calls to a provider that no surface reads: which they are, as a table of data.
//!
//! Such a call is a step of its run all the same: recorded as bytes, counted, replayed. The proxy, the replay, the documentation
//! and the tests read `table.toml`; a row more there is all that a further call needs.

mod usage;

use std::{borrow::Cow, sync::LazyLock};

use serde::Deserialize;

use super::Surface;
pub use usage::unread_usage;

/// The rows of this build.
const BUILT_IN: &str = include_str!("table.toml");

/// A test holds that the file reads: an empty table counts nothing.
static TABLE: LazyLock<UnreadTable> = LazyLock::new(|| UnreadTable::read(BUILT_IN).unwrap_or_default());

/// A call that is recorded and counted, and not read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnreadCall {
    /// What records call it: the `surface` of its step.
    pub name: String,
    /// The HTTP method, or `*` for each that sends something: POST, PUT and PATCH.
    #[serde(default)]
    pub method: String,
    /// The pattern of its path; see the head of `table.toml`.
    #[serde(default)]
    pub path: String,
    /// What it is, in a few words.
    pub what: String,
    /// Whose API it is.
    #[serde(default)]
    pub vendor: String,
    /// Whether a model answers the caller in it: a refusal of it leaves an execution without an answer.
    #[serde(default)]
    pub answers: bool,
    /// The API that is read and whose requests it takes: what they go on from stands at the same places.
    #[serde(default)]
    pub like: Option<String>,
    /// Whether it counts among its agent's own calls. Others are those of a helper of the agent, named by the row.
    #[serde(default, rename = "own")]
    pub counts_as_agents: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnreadTable {
    bases: Vec<String>,
    unknown: UnreadCall,
    /// Paths below a provider's base that are none of its calls.
    #[serde(default)]
    not_counted: Vec<String>,
    #[serde(default)]
    call: Vec<UnreadCall>,
}

/// The segments of a path, empty ones left out.
struct Segments<'a>(Vec<&'a str>);

impl<'a> Segments<'a> {
    fn split(path: &'a str) -> Self {
        Self(path.split('/').filter(|segment| !segment.is_empty()).collect())
    }

    /// Where a pattern begins to match; `None` where it does not.
    fn matched(&self, pattern: &str) -> Option<usize> {
        let (pattern, goes_on) = match pattern.strip_suffix("/*") {
            Some(pattern) => (pattern, true),
            None => (pattern, false),
        };
        let wanted = Segments::split(pattern).0;
        let last = self.0.len().checked_sub(wanted.len())?;
        let fits = |start: &usize| {
            let here = self.0.iter().skip(*start);
            here.zip(&wanted).all(|(segment, wanted)| fits(segment, wanted))
        };
        if goes_on { (0..=last).find(fits) } else { Some(last).filter(fits) }
    }
}

fn fits(segment: &str, wanted: &str) -> bool {
    match wanted.strip_prefix("{}") {
        Some(end) => segment.len() > end.len() && segment.ends_with(end),
        None => segment == wanted,
    }
}

impl UnreadTable {
    fn read(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    fn call(&self, method: &str, path: &str) -> Option<&UnreadCall> {
        if !matches!(method, "POST" | "PUT" | "PATCH") {
            return None;
        }
        let segments = Segments::split(path);
        if self.is_not_counted(&segments) {
            return None;
        }
        let rows = self.call.iter().filter(|row| row.method == "*" || row.method == method);
        let matched = rows.filter_map(|row| Some((segments.matched(&row.path)?, row)));
        let known = matched.min_by_key(|(start, _)| *start).map(|(_, row)| row);
        known.or_else(|| self.is_below_base(&segments).then_some(&self.unknown))
    }

    fn is_fetch(&self, method: &str, path: &str) -> bool {
        let segments = Segments::split(path);
        matches!(method, "GET" | "HEAD" | "DELETE") && !self.is_not_counted(&segments) && self.is_below_base(&segments)
    }

    fn is_not_counted(&self, path: &Segments<'_>) -> bool {
        self.not_counted.iter().any(|row| path.matched(row).is_some())
    }

    fn is_below_base(&self, path: &Segments<'_>) -> bool {
        let above = path.0.len().saturating_sub(1);
        path.0.iter().take(above).any(|segment| self.bases.iter().any(|base| base == segment))
    }
}

/// The row of a call that no surface reads; `None` for what is no provider's. To be asked only of what
/// [`for_path`](super::for_path) does not know.
pub fn unread_call(method: &str, path: &str) -> Option<&'static UnreadCall> {
    TABLE.call(method, path)
}

/// Whether a request only looks at, or takes away, what a provider keeps: a list of models, a file, a batch. It asks no model
/// anything, so that it is counted and is no step.
pub fn is_fetch(method: &str, path: &str) -> bool {
    TABLE.is_fetch(method, path)
}

/// Whether a name in records is that of calls that no surface reads.
pub fn is_unread(name: &str) -> bool {
    TABLE.unknown.name == name || TABLE.call.iter().any(|row| row.name == name)
}

/// Whether a model answers in calls of this name; that of a surface is no such name.
pub fn answers_unread(name: &str) -> bool {
    TABLE.call.iter().any(|row| row.name == name && row.answers)
}

/// What calls of this name are, in a few words, and whose API it is.
pub fn unread_what(name: &str) -> Option<String> {
    let known = TABLE.call.iter().find(|row| row.name == name);
    let known = known.map(|UnreadCall { what, vendor, .. }| format!("{what}; {vendor}"));
    known.or_else(|| (TABLE.unknown.name == name).then(|| TABLE.unknown.what.clone()))
}

/// What makes two requests askings of the same: the surface, and for calls that no surface reads, or whose path asks something, the
/// method and the path too, which name what they are about. The query is left out: keys stand in it.
pub fn request_key<'a>(name: &'a str, method: &str, target: &str) -> Cow<'a, str> {
    if !is_unread(name) && !super::named(name).is_some_and(Surface::has_path_parameters) {
        return Cow::Borrowed(name);
    }
    let path = target.split('?').next().unwrap_or_default();
    Cow::Owned(format!("{name} {method} {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::for_path;

    fn name(method: &str, path: &str) -> Option<&'static str> {
        unread_call(method, path).map(|row| row.name.as_str())
    }

    #[test]
    fn the_built_in_table_reads_and_each_row_is_found() {
        let table = UnreadTable::read(BUILT_IN).expect("the built-in table reads");
        for row in &table.call {
            let method = if row.method == "*" { "PATCH" } else { &row.method };
            let path = row.path.strip_suffix("/*").unwrap_or(&row.path).replace("{}", "one");
            let found = unread_call(method, &format!("/{path}"));
            assert_eq!(found.map(|found| &found.name), Some(&row.name), "{method} {path}");
            assert!(for_path(method, &path).is_none(), "a surface reads {path}");
            assert!(!row.what.is_empty() && !row.vendor.is_empty(), "{path}");
        }
    }

    #[test]
    fn a_call_is_known_by_the_row_that_begins_first() {
        for (method, path, expected) in [
            ("POST", "/v1/responses/compact", Some("responses_compact")),
            ("POST", "/v1/responses/resp_1/anything", Some("responses_stored")),
            ("POST", "/v1/messages/batches/b_1/cancel", Some("messages_batches")),
            ("POST", "/v1/batches", Some("batches")),
            ("POST", "/v1/containers/c_1/files", Some("containers")),
            ("POST", "/v1/threads/t_1/messages", Some("threads")),
            ("POST", "/rerank", Some("rerank")),
            ("POST", "/v2/rerank/", Some("rerank")),
            ("POST", "/v1beta/models/gemini-3.5-flash:countTokens", Some("gemini_count_tokens")),
            ("POST", "/v1beta/models/:generateContent", Some("unknown_call")),
            ("POST", "/v1beta/interactions/i_1/anything", Some("gemini_interactions_stored")),
            ("POST", "/v1/agents/sessions", Some("agents_sessions")),
            ("POST", "/agents/sessions/s_1/events", Some("agents_sessions")),
            ("POST", "/openai/deployments/d/audio/speech", Some("audio")),
            ("POST", "/model/anthropic.claude/converse-stream", Some("bedrock")),
            ("PUT", "/v1/uploads/u_1/parts", Some("files")),
            ("POST", "/v1/something/new", Some("unknown_call")),
            ("PATCH", "/gateway/openai/whatever", Some("unknown_call")),
            ("GET", "/v1/models", None),
            ("POST", "/v1/traces", None),
            ("POST", "/v1", None),
            ("POST", "/", None),
            ("POST", "/login", None),
        ] {
            assert_eq!(name(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn fetches_are_those_below_a_base() {
        for (method, path, expected) in [
            ("GET", "/v1/models", true),
            ("DELETE", "/v1/files/f_1", true),
            ("HEAD", "/openai/v1/models", true),
            ("OPTIONS", "/v1/models", false),
            ("POST", "/v1/models", false),
            ("GET", "/v1/health", false),
            ("GET", "/", false),
            ("GET", "/docs/index.html", false),
        ] {
            assert_eq!(is_fetch(method, path), expected, "{method} {path}");
        }
    }

    /// All that the SDKs send is read, shows what is kept, or is counted.
    #[test]
    fn every_path_of_the_sdks_is_read_or_counted() {
        let listed = include_str!("../../../../../tests/it/fixtures/sdk-paths.txt");
        let mut paths = 0;
        for line in listed.lines().filter(|line| !line.starts_with('#')) {
            let [sdk, method, path] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            // Theirs alone stand below a base URL that ends in the version.
            let base = if sdk == "openai" { "/v1" } else { "" };
            let path = format!("{base}{}", path.replace("{}", "one"));
            let read = for_path(method, &path).is_some() || crate::surface::fetched_from(method, &path).is_some();
            assert!(read || unread_call(method, &path).is_some(), "{line}");
            paths += 1;
        }
        assert!(paths > 500, "{paths} paths");
    }

    #[test]
    fn what_is_asked_is_told_by_path_where_nothing_is_read() {
        assert_eq!(request_key("openai_chat", "POST", "/v1/chat/completions"), "openai_chat");
        assert_eq!(request_key("batches", "POST", "/v1/batches/b/cancel?key=k"), "batches POST /v1/batches/b/cancel");
    }
}
