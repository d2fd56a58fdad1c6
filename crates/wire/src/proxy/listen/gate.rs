//! Who may ask, and for what: the one rule of every listener, before anything is read, opened or sent.

use bytes::Bytes;
use hyper::{
    HeaderMap, Response, Uri, Version,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};

pub use super::token::Token;
use crate::{
    proxy::{error::ProxyError, headers},
    surface::OpenaiChat,
};

/// What a browser says of where a request comes from. No SDK sends it, and no page can leave it out.
static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Carries the token for clients that can set headers.
pub(in crate::proxy) static TOKEN: HeaderName = HeaderName::from_static("x-aegis-token");
/// Carries the token for clients that can set a base URL only.
const TOKEN_PREFIX: &str = "/t/";
/// How often a path may be encoded over itself before it is refused unread.
const ENCODINGS: usize = 4;

/// Who may ask.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// Host names that are ours, beside addresses and loopback names.
    pub hosts: Vec<String>,
    /// Origins of web pages that may ask, as browsers write them: `http://localhost:3000`.
    pub origins: Vec<String>,
    /// What clients must show.
    pub token: Option<Token>,
    /// Whether each user has a token of its own: whoever shows one is led to the line of its user before this gate, which then refuses
    /// everybody else.
    pub is_for_users: bool,
    /// Whether the listener serves a page of its own, which may ask it.
    pub own_page: bool,
    /// How many proxies stand behind one address, if more than this one: then a request must name its run, for others of the
    /// run may arrive anywhere.
    pub instances: u32,
    /// Whether `/healthz` and `/readyz` are answered here, to whoever asks.
    pub answers_health: bool,
}

/// The token that a request shows: in a header or, where it has none, at the beginning of its path.
pub(in crate::proxy) fn shown_token<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    headers.get(&TOKEN).and_then(|value| value.to_str().ok()).or_else(|| split_token(uri).map(|(token, _)| token))
}

/// The token at the beginning of a target, and the rest.
fn split_token(uri: &Uri) -> Option<(&str, &str)> {
    let target = uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
    target.strip_prefix(TOKEN_PREFIX).and_then(|rest| Some(rest.split_at(rest.find('/')?)))
}

/// A path as it may be logged: what stands where a token belongs is left out, however the path is written.
pub(in crate::proxy) fn path_without_token(path: &str) -> String {
    let mut path = path.as_bytes().to_vec();
    for _ in 0..ENCODINGS {
        path = decode_percent(&path);
    }
    let mut is_token = false;
    let shown = |segment: &[u8]| {
        let hidden = std::mem::replace(&mut is_token, segment.eq_ignore_ascii_case(b"t"));
        if hidden { "<token>".to_owned() } else { String::from_utf8_lossy(segment).into_owned() }
    };
    path.split(|byte| matches!(byte, b'/' | b'\\')).map(shown).collect::<Vec<_>>().join("/")
}

impl Gate {
    /// Whether a request may come in. The token comes off it, so that nothing behind the gate can pass it on.
    ///
    /// # Errors
    /// It is not for us, comes from a web page that was not allowed, or shows no token where one is due.
    pub(in crate::proxy) fn admit(&self, parts: &mut Parts) -> Result<(), ProxyError> {
        // HTTP/1.0 may name no host, and no browser speaks it.
        if parts.version != Version::HTTP_10 || parts.headers.contains_key(header::HOST) {
            self.is_our_host(&parts.headers)?;
        }
        self.admit_page(&parts.headers)?;
        let shown = shown_token(&parts.headers, &parts.uri).filter(|shown| !shown.is_empty());
        let is_shown = match (&self.token, self.is_for_users) {
            // Whoever shows the token of a user does not come here.
            (_, true) => false,
            (Some(token), false) => shown.is_some_and(|shown| token.is(shown)),
            (None, false) => true,
        };
        let refusal = if shown.is_some() { ProxyError::WrongToken } else { ProxyError::Token };
        parts.headers.remove(&TOKEN);
        if !is_shown {
            return Err(refusal);
        }
        if let Some((_, rest)) = split_token(&parts.uri) {
            parts.uri = rest.parse::<Uri>().map_err(|_| ProxyError::Target(String::from("it is no path")))?;
        }
        Ok(())
    }

    /// The answer to a request that is not for us, or from a web page that may not ask; `None` where it may come in.
    /// For listeners beside the proxy's own.
    pub fn refusal(&self, headers: &HeaderMap) -> Option<Response<Bytes>> {
        let admitted = self.is_our_host(headers).and_then(|()| self.admit_page(headers));
        admitted.err().map(|error| error.response(&OpenaiChat))
    }

    /// Whether a request is from a program, or from a web page that may ask.
    ///
    /// # Errors
    /// It is not.
    fn admit_page(&self, headers: &HeaderMap) -> Result<(), ProxyError> {
        let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
        if origins.peek().is_none() {
            // `none` is a person who typed the address. A proxy serves no page, so that none is of its own origin.
            let ours = |site: &&HeaderValue| *site == "none" || (self.own_page && *site == "same-origin");
            let site = headers.get_all(&FETCH_SITE).iter().find(|site| !ours(site));
            return site.map_or(Ok(()), |_| Err(ProxyError::Page(String::from("another site"))));
        }
        // The host was found to be ours: a page of it is the one that we serve.
        let host = headers::text(headers, &header::HOST).filter(|_| self.own_page);
        let own = |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| Some(origin) == host);
        let allowed =
            |origin: &str| own(origin) || self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin));
        match origins.find(|origin| !origin.to_str().is_ok_and(allowed)) {
            None => Ok(()),
            Some(origin) => {
                Err(ProxyError::Page(String::from_utf8_lossy(origin.as_bytes()).chars().take(80).collect()))
            }
        }
    }

    /// Whether the host header names us. A web page of another origin could make a browser send requests here under its
    /// own name (DNS rebinding); addresses, loopback names and configured names are ours.
    fn is_our_host(&self, headers: &HeaderMap) -> Result<(), ProxyError> {
        let host = headers::text(headers, &header::HOST).unwrap_or_default();
        let name = host.strip_suffix(']').or_else(|| host.rsplit_once(':').map(|(name, _)| name)).unwrap_or(host);
        let name = name.trim_matches(['[', ']']);
        let ours = name.parse::<std::net::IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || name.rsplit_once('.').is_some_and(|(_, top)| top.eq_ignore_ascii_case("localhost"))
            || name.eq_ignore_ascii_case("host.docker.internal")
            || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
        if ours { Ok(()) } else { Err(ProxyError::Host(host.chars().take(80).collect())) }
    }
}

/// Whether a target, our own prefixes taken off, stays below the path that it is put behind: the upstream's base path,
/// to which a key belongs. Everything is looked at as the most generous server would read it.
///
/// # Errors
/// It does not, or it is no path of an API.
pub(in crate::proxy) fn stays_below(target: &str) -> Result<(), ProxyError> {
    let refuse = |why: &str| Err(ProxyError::Target(why.to_owned()));
    let path = target.split('?').next().unwrap_or_default();
    if !path.starts_with('/') {
        return refuse("it is no path");
    }
    if ["/r/", "/a/", TOKEN_PREFIX].iter().any(|prefix| path.starts_with(prefix)) {
        return refuse("our own prefix is /t/<token>, /r/<run>, /a/<agent> in this order, and a path must follow it");
    }
    // Nearly every path has neither, and cannot climb.
    if memchr::memchr2(b'.', b'%', path.as_bytes()).is_none() {
        return Ok(());
    }
    let mut path = path.as_bytes().to_vec();
    for _ in 0..ENCODINGS {
        if climbs(&path) {
            return refuse("`.` and `..` segments could leave the upstream's base path");
        }
        let decoded = decode_percent(&path);
        if decoded == path {
            return Ok(());
        }
        path = decoded;
    }
    refuse("it is percent-encoded over and over")
}

/// Whether a segment is `.` or `..`; behind a semicolon stand its parameters.
fn climbs(path: &[u8]) -> bool {
    let name = |segment: &[u8]| segment.split(|byte| *byte == b';').next().map(<[u8]>::to_vec).unwrap_or_default();
    path.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| matches!(name(segment).as_slice(), b"." | b".."))
}

/// Decodes `%20` and the like; what is no escape stays.
pub(in crate::proxy) fn decode_percent(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, tail)) = rest.split_first() {
        let escape = tail.get(..2).filter(|_| *byte == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let escape = escape.filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        if let Some(value) = escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(value);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            bytes.push(*byte);
            rest = tail;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate {
            hosts: vec!["aegis.lab".to_owned()],
            origins: vec!["http://localhost:3000".to_owned()],
            token: Some(Token::new("open-sesame")),
            is_for_users: false,
            own_page: false,
            instances: 1,
            answers_health: false,
        }
    }

    fn request(target: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = hyper::Request::builder().uri(target).header("host", "127.0.0.1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn hosts() {
        let check = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().expect("a value"));
            gate().is_our_host(&headers).is_ok()
        };
        for good in
            ["127.0.0.1:8484", "localhost", "LOCALHOST:1", "[::1]:80", "a.localhost:1", "aegis.lab:9", "10.0.0.2:80"]
        {
            assert!(check(good), "{good}");
        }
        for bad in ["evil.example", "evil.example:8484", "localhost.evil.example", "127.0.0.1.evil.example"] {
            assert!(!check(bad), "{bad}");
        }
    }

    #[test]
    fn pages_are_told_from_programs() {
        let admitted = |headers: &[(&str, &str)]| gate().admit_page(&request("/v1", headers).headers).is_ok();
        // Node's fetch says a mode, and never a site.
        for good in [&[][..], &[("sec-fetch-mode", "cors")], &[("sec-fetch-site", "none")]] {
            assert!(admitted(good), "{good:?}");
        }
        assert!(admitted(&[("origin", "http://localhost:3000"), ("sec-fetch-site", "cross-site")]));
        for bad in [
            &[("origin", "http://evil.example")][..],
            &[("origin", "null")],
            &[("origin", "http://localhost:3001")],
            &[("origin", "http://127.0.0.1")],
            &[("origin", "")],
            &[("origin", "http://localhost:3000"), ("origin", "http://evil.example")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(!admitted(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_listener_with_a_page_is_asked_by_that_page_alone() {
        let gate = Gate { own_page: true, ..Gate::default() };
        let admitted = |headers: &[(&str, &str)]| {
            let mut parts = request("/api/tree", headers);
            parts.headers.insert("host", HeaderValue::from_static("127.0.0.1:4040"));
            gate.refusal(&parts.headers).is_none()
        };
        let own = ("origin", "http://127.0.0.1:4040");
        for good in [&[][..], &[("sec-fetch-site", "none")], &[("sec-fetch-site", "same-origin")], &[own]] {
            assert!(admitted(good), "{good:?}");
        }
        for bad in [
            &[("sec-fetch-site", "same-site")][..],
            &[("sec-fetch-site", "cross-site")],
            &[("origin", "http://127.0.0.1:4041")],
            &[("origin", "https://127.0.0.1:4040")],
            &[("origin", "http://localhost:4040")],
            &[("origin", "null")],
            &[own, ("origin", "http://evil.example")],
        ] {
            assert!(!admitted(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_token_is_shown_in_a_header_or_in_the_path_and_comes_off() {
        let admitted = |target: &str, headers: &[(&str, &str)]| {
            let mut parts = request(target, headers);
            let admitted = gate().admit(&mut parts).is_ok();
            assert!(!parts.headers.contains_key("x-aegis-token"));
            admitted.then(|| parts.uri.to_string())
        };
        let shown = &[("x-aegis-token", "open-sesame")][..];
        assert_eq!(admitted("/t/open-sesame/r/x/v1/models?a=b", &[]).as_deref(), Some("/r/x/v1/models?a=b"));
        assert_eq!(admitted("/v1/models", shown).as_deref(), Some("/v1/models"));
        assert_eq!(admitted("/t/other/v1/models", shown).as_deref(), Some("/v1/models"));
        for bad in ["/v1/models", "/t/open-sesam/v1", "/t/open-sesame2/v1", "/t//v1", "/t/open-sesame"] {
            assert_eq!(admitted(bad, &[]), None, "{bad}");
        }
        assert_eq!(admitted("/t/open-sesame/v1", &[("x-aegis-token", "wrong")]), None);
    }

    #[test]
    fn what_leaves_the_base_path_is_refused() {
        for good in [
            "/v1/chat/completions?a=../b",
            "/v1//models",
            "/v1/models/a%2Fb",
            "/v1/models/a..b",
            "/v1/.well-known/x",
            "/v1/100%25",
            "/v1/%zz",
            "/v1/a;b=..",
            "/",
        ] {
            assert!(stays_below(good).is_ok(), "{good}");
        }
        for bad in [
            "/v1/../../tenant-b/x",
            "/v1/%2e%2e/x",
            "/v1/.%2E/x",
            "/v1/..",
            "/v1/./x",
            "/v1/..%2fx",
            "/v1/a%2f..%2f..%2fx",
            "/v1/%252e%252e/x",
            "/v1/%25252e%25252e%25252fx",
            "/v1/%25252525252e./x",
            "/v1/..\\x",
            "/v1/..%5cx",
            "/v1/..;a=b/x",
            "/v1/..%3ba/x",
            "//../x",
            "*",
            "",
            "/r/x1",
            "/a/writer",
            "/t/token",
            "/r/x/v1",
        ] {
            assert!(stays_below(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_token_is_logged() {
        for (path, logged) in [
            ("/v1/models", "/v1/models"),
            ("/t/secret/r/x/v1/models", "/t/<token>/r/x/v1/models"),
            ("//T/secret", "//T/<token>"),
            ("/%74/secret/v1", "/t/<token>/v1"),
            ("/%2574/secret/v1", "/t/<token>/v1"),
            ("/r/x/t/secret/v1", "/r/x/t/<token>/v1"),
        ] {
            assert_eq!(path_without_token(path), logged);
        }
    }

    #[test]
    fn percent_escapes() {
        let decoded = |text: &str| String::from_utf8_lossy(&decode_percent(text.as_bytes())).into_owned();
        assert_eq!(decoded("Senior%20Researcher"), "Senior Researcher");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
        // Not what a lenient parser of numbers makes of it.
        assert_eq!(decoded("%+5"), "%+5");
    }
}
