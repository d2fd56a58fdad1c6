//! The tokens file: who may ask a server whose users do not trust each other. It holds hashes, never a token. No message about it
//! shows a line of it: a token may stand there by mistake.

use std::{
    collections::BTreeMap,
    fmt::Write,
    num::NonZeroU32,
    ops::Range,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::Spanned;

use crate::{
    cli::{Exit, Failure},
    launch::shell_word,
    proxy::{Token, UserGrant, UserName},
    trajectory::nearest,
};

/// Version of the file's format that this build reads.
const FORMAT: u32 = 1;
/// Entries of one file: each request is compared with all of them.
const ENTRIES_MAX: usize = 1000;
/// Keys that somebody may have meant who wrote another.
const KEYS: [&str; 6] = ["name", "sha256", "requests_per_minute", "max_body_bytes", "token", "format"];
/// Most requests in a minute that an entry may allow: the times of so many are remembered.
const REQUESTS_MAX: u32 = 60_000;

/// The file.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct TokensFile {
    /// Format of the file: 1.
    #[schemars(with = "u32")]
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Spanned<u32>>,
    /// An entry a user.
    #[serde(default)]
    token: Vec<TokenEntry>,
}

/// Who may ask.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct TokenEntry {
    /// The user.
    #[schemars(with = "String")]
    name: Spanned<String>,
    /// The token's SHA-256, in hexadecimal digits.
    #[schemars(with = "String")]
    sha256: Spanned<String>,
    /// Most requests in a minute.
    #[schemars(with = "u32")]
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_per_minute: Option<Spanned<u32>>,
    /// Longest body.
    #[schemars(with = "usize")]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_body_bytes: Option<Spanned<usize>>,
}

/// A tokens file that is read, or written to.
#[derive(Debug)]
struct TokensText<'a> {
    path: &'a Path,
    text: &'a str,
}

/// Reads the users of a tokens file.
///
/// # Errors
/// The file cannot be read, or an entry cannot be used: which line, and what to type.
pub(in crate::cli) fn read(path: &Path) -> Result<Vec<UserGrant>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let failure = Failure::new(Exit::Usage, format!("cannot read the tokens file `{}`: {error}", path.display()));
        failure.hint(format!("make an entry of it: {}", command("NAME", path)))
    })?;
    parse(&text, path)
}

/// The users of a tokens file's text.
///
/// # Errors
/// What cannot be used: which line, and what to type.
pub(in crate::cli) fn parse(text: &str, path: &Path) -> Result<Vec<UserGrant>, Failure> {
    let file = TokensText { path, text };
    let TokensFile { format, token: entries } = toml::from_str(text).map_err(|error| file.unreadable(&error))?;
    if let Some(format) = format.filter(|format| *format.get_ref() != FORMAT) {
        let error = format!("format {} is not one this build reads: expected {FORMAT}", format.get_ref());
        return Err(file.failure(&format.span(), &error));
    }
    if let Some(surplus) = entries.get(ENTRIES_MAX) {
        let error = format!("more than {ENTRIES_MAX} entries");
        return Err(file
            .failure(&surplus.name.span(), &error)
            .hint("one more server, with a log directory of its own"));
    }
    let (mut names, mut tokens) = (BTreeMap::new(), BTreeMap::new());
    let mut grants = Vec::with_capacity(entries.len());
    for entry in entries {
        let grant = file.grant(&entry)?;
        // Some file systems do not tell capitals apart, and each user has a directory.
        let key = grant.name.as_str().to_ascii_lowercase();
        if let Some(line) = names.insert(key, file.line(&entry.name.span())) {
            let error = format!("the name `{}` stands in line {line} too", grant.name);
            return Err(file
                .failure(&entry.name.span(), &error)
                .hint("a user has one token: remove one of the entries"));
        }
        if let Some(line) = tokens.insert(grant.token.sha256(), file.line(&entry.sha256.span())) {
            let error =
                format!("the sha256 of `{}` stands in line {line} too: two users cannot share a token", grant.name);
            return Err(file.failure(&entry.sha256.span(), &error).hint(file.remade(grant.name.as_str())));
        }
        grants.push(grant);
    }
    Ok(grants)
}

/// The file's text with another token in the entry of a user, whose limits stay.
///
/// # Errors
/// There is no such entry, or the file cannot be used.
pub(in crate::cli) fn renewed(text: &str, path: &Path, name: &UserName, token: &Token) -> Result<String, Failure> {
    let span = named(text, path, name)?.sha256.span();
    let (before, after) = (text.get(..span.start), text.get(span.end..));
    Ok(format!("{}\"{}\"{}", before.unwrap_or_default(), token.sha256(), after.unwrap_or_default()))
}

/// The file's text without the entry of a user.
///
/// # Errors
/// There is no such entry, or it does not stand apart from the others; or the file cannot be used.
pub(in crate::cli) fn removed(text: &str, path: &Path, name: &UserName) -> Result<String, Failure> {
    let span = named(text, path, name)?.name.span();
    let start = text.get(..span.start).and_then(|before| before.rfind("[[token]]"));
    let end = text.get(span.end..).and_then(|after| after.find("\n[")).map_or(text.len(), |at| span.end + at + 1);
    let before = start.and_then(|start| text.get(..start));
    let left = format!("{}{}", before.unwrap_or_default(), text.get(end..).unwrap_or_default());
    let others =
        || Ok::<_, Failure>(parse(text, path)?.into_iter().filter(|grant| grant.name != *name).collect::<Vec<_>>());
    if before.is_none() || parse(&left, path).ok() != Some(others()?) {
        let file = TokensText { path, text };
        return Err(file.failure(&span, "the entry stands in a table with others").hint("remove it by hand"));
    }
    Ok(left)
}

/// The entry of a user.
fn named(text: &str, path: &Path, name: &UserName) -> Result<TokenEntry, Failure> {
    parse(text, path)?;
    let file = TokensText { path, text };
    let TokensFile { token: entries, .. } = toml::from_str(text).map_err(|error| file.unreadable(&error))?;
    let none = || {
        let error = format!("`{}` has no entry of `{name}`", path.display());
        Failure::new(Exit::Usage, error).hint(format!("to make one: {}", command(name.as_str(), path)))
    };
    entries.into_iter().find(|entry| entry.name.get_ref() == name.as_str()).ok_or_else(none)
}

/// The text of an entry.
pub(in crate::cli) fn entry(grant: &UserGrant) -> String {
    let mut text = format!("[[token]]\nname = \"{}\"\nsha256 = \"{}\"\n", grant.name, grant.token.sha256());
    if let Some(most) = grant.requests_per_minute {
        let _ = writeln!(text, "requests_per_minute = {most}");
    }
    if let Some(most) = grant.max_body_bytes {
        let _ = writeln!(text, "max_body_bytes = {most}");
    }
    text
}

/// What makes an entry.
fn command(name: &str, path: &Path) -> String {
    format!("aegis token {name} --file {}", shell_word(&path.to_string_lossy()))
}

impl TokensText<'_> {
    fn grant(&self, entry: &TokenEntry) -> Result<UserGrant, Failure> {
        let name = UserName::parse(entry.name.get_ref()).ok_or_else(|| {
            let error = "`name` is no name of a user";
            self.failure(&entry.name.span(), error).hint(
                "1 to 64 letters, digits, `.`, `_` and `-`, not beginning with `.`; `operator` is who holds the control token",
            )
        })?;
        let hash = entry.sha256.get_ref();
        let token = Token::from_sha256(hash).ok_or_else(|| {
            let length = hash.chars().count();
            let error = format!(
                "the sha256 of `{name}` is no SHA-256: expected 64 hexadecimal digits, found {length} characters; if it is \
                 the token itself, it is no secret any more"
            );
            self.failure(&entry.sha256.span(), &error).hint(self.remade(name.as_str()))
        })?;
        let requests_per_minute = self.limit(entry.requests_per_minute.as_ref(), "requests_per_minute")?;
        let max_body_bytes = self.limit(entry.max_body_bytes.as_ref(), "max_body_bytes")?;
        if let Some(over) = entry.requests_per_minute.as_ref().filter(|most| *most.get_ref() > REQUESTS_MAX) {
            let error = format!("requests_per_minute of `{name}`: {REQUESTS_MAX} at most, found {}", over.get_ref());
            return Err(self.failure(&over.span(), &error).hint("without the key, requests are not limited"));
        }
        let requests_per_minute = requests_per_minute.and_then(NonZeroU32::new);
        Ok(UserGrant { name, token, requests_per_minute, max_body_bytes })
    }

    /// A limit, which is no zero.
    fn limit<T: Copy + Default + PartialEq>(
        &self,
        given: Option<&Spanned<T>>,
        key: &str,
    ) -> Result<Option<T>, Failure> {
        let Some(limit) = given else { return Ok(None) };
        if *limit.get_ref() == T::default() {
            let error = format!("{key} is 0, which lets nothing in");
            return Err(self
                .failure(&limit.span(), &error)
                .hint("remove the key for no limit, or the entry for no user"));
        }
        Ok(Some(*limit.get_ref()))
    }

    /// How an entry is made anew.
    fn remade(&self, name: &str) -> String {
        format!("remove the entry and make it anew: {}", command(name, self.path))
    }

    /// The line in which a place begins, from 1.
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or(self.text.as_bytes());
        before.split(|byte| *byte == b'\n').count()
    }

    fn failure(&self, span: &Range<usize>, error: &str) -> Failure {
        Failure::new(Exit::Usage, format!("{}:{}: {error}", self.path.display(), self.line(span)))
    }

    /// Of what is no such file: in the words of the reader of TOML, but without what stands there, beyond the name of a key.
    fn unreadable(&self, error: &toml::de::Error) -> Failure {
        let span = error.span().unwrap_or_default();
        let message = error.message();
        let mut named = message.split('`').skip(1).step_by(2);
        let unknown = named.next().filter(|_| message.starts_with("unknown field"));
        let hint = match unknown {
            Some("token") => {
                "a token never stands in this file: `aegis token NAME` makes an entry of its hash".to_owned()
            }
            Some(unknown) => match nearest(unknown, KEYS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "an entry is [[token]] with name and sha256".to_owned(),
            },
            None => format!("an entry is [[token]] with name and sha256; to make one: {}", command("NAME", self.path)),
        };
        // What it calls invalid, it quotes.
        let message = message.split(&['"', ':'][..]).next().unwrap_or(message).trim_end();
        self.failure(&span, message).hint(hint)
    }
}

/// The tokens file of a server, which it reads at its start and at each hang-up.
#[derive(Debug, Clone)]
pub(super) struct TokensSource(pub(super) PathBuf);

impl TokensSource {
    /// The users, now.
    ///
    /// # Errors
    /// As [`read`].
    pub(super) fn read(&self) -> Result<Vec<UserGrant>, Failure> {
        read(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_shows_no_token() {
        let hash = Token::new("a").sha256();
        let whole = |name: &str, hash: &str| format!("[[token]]\nname = \"{name}\"\nsha256 = \"{hash}\"\n");
        let secret = "plain-token-in-the-wrong-place";
        for (text, line, says, hint) in [
            (whole("a", secret), 3, "expected 64 hexadecimal digits, found 30", "aegis token a --file t.toml"),
            (whole("a", &hash[1..]), 3, "found 63", "make it anew"),
            (whole("a/b", &hash), 2, "no name of a user", "letters"),
            (whole("operator", &hash), 2, "no name of a user", "control token"),
            (
                format!("{}\n{}", whole("a", &hash), whole("A", &Token::new("b").sha256())),
                6,
                "in line 2 too",
                "one token",
            ),
            (format!("{}{}", whole("a", &hash), whole("b", &hash)), 6, "in line 3 too", "aegis token b"),
            (format!("{}token = \"{secret}\"\n", whole("a", &hash)), 4, "unknown field `token`", "of its hash"),
            (
                format!("{}names = \"{secret}\"\n", whole("a", &hash)),
                4,
                "unknown field `names`",
                "did you mean `name`?",
            ),
            (format!("[[token]]\nname = \"{secret}\"\n"), 1, "missing field `sha256`", "aegis token NAME"),
            (format!("[[token]]\nname = \"a\nsha256 = \"{secret}\"\n"), 2, "", "aegis token NAME"),
            (format!("{}requests_per_minute = 0\n", whole("a", &hash)), 4, "requests_per_minute is 0", "no limit"),
            (format!("{}max_body_bytes = 0\n", whole("a", &hash)), 4, "max_body_bytes is 0", "no limit"),
            (format!("{}requests_per_minute = 60001\n", whole("a", &hash)), 4, "60000 at most", "not limited"),
            (format!("{}max_body_bytes = -1\n", whole("a", &hash)), 4, "invalid value", "[[token]]"),
            ("format = 2".to_owned(), 1, "format 2", ""),
            (format!("token = \"{secret}\""), 1, "invalid type", "[[token]]"),
        ] {
            let failure = parse(&text, Path::new("t.toml")).expect_err(&text);
            let error = failure.to_string();
            assert!(error.contains(&format!("t.toml:{line}: ")) && error.contains(says), "{text}: {error}");
            assert!(failure.hint.unwrap_or_default().contains(hint), "{text}: {error}");
            assert!(!error.contains(secret), "{error}");
        }
    }

    #[test]
    fn an_entry_is_renewed_and_removed_and_the_others_stay() {
        let (path, hash) = (Path::new("t.toml"), |text: &str| Token::new(text).sha256());
        let user = |name: &str| UserName::parse(name).expect("a name");
        let entry =
            |name: &str, more: &str| format!("[[token]]\nname = \"{name}\"\nsha256 = \"{}\"\n{more}", hash(name));
        let text =
            format!("# Ours.\n{}\n{}\n{}", entry("a", ""), entry("b", "max_body_bytes = 9 # few\n"), entry("c", ""));
        let again = renewed(&text, path, &user("b"), &Token::new("new")).expect("renewed");
        assert_eq!(again, text.replace(&hash("b"), &hash("new")));
        for name in ["a", "b", "c"] {
            let left = removed(&text, path, &user(name)).expect("removed");
            assert!(left.starts_with("# Ours.\n") && !left.contains(&hash(name)), "{left}");
            assert_eq!(parse(&left, path).expect("read").len(), 2, "{left}");
        }
        let inline = format!("token = [{{ name = \"a\", sha256 = \"{}\" }}]\n", hash("a"));
        for (text, name, says) in [(&text, "d", "no entry of `d`"), (&inline, "a", "with others")] {
            let refused = removed(text, path, &user(name)).expect_err("refused").to_string();
            assert!(refused.contains(says), "{refused}");
        }
    }

    #[test]
    fn an_entry_reads_back() {
        let name = UserName::parse("alice").expect("a name");
        let requests_per_minute = NonZeroU32::new(60);
        let grant = UserGrant { name, token: Token::new("secret"), requests_per_minute, max_body_bytes: Some(1000) };
        assert_eq!(parse(&entry(&grant), Path::new("t.toml")).expect("read"), [grant]);
        assert!(parse("", Path::new("t.toml")).expect("read").is_empty());
    }
}
