//! Which headers pass, and what they say. Only hop-by-hop ones, Host, our own hints, Accept-Encoding and hint keys change.

use std::time::Duration;

use hyper::{
    HeaderMap, Method, Version,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Headers that belong to one connection (RFC 9110, 7.6.1).
static HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Digests and validators of a body that an edit makes untrue.
static BODY_BOUND: [HeaderName; 7] = [
    header::CONTENT_LENGTH,
    header::ETAG,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    // Their trailers are left behind.
    header::TRAILER,
];
/// Headers of a WebSocket's handshake that say something of its connection, and nothing of what is asked on it.
static OF_CONNECTION: [HeaderName; 8] = [
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_EXTENSIONS,
    header::SEC_WEBSOCKET_PROTOCOL,
    header::SEC_WEBSOCKET_VERSION,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::TRANSFER_ENCODING,
];
/// Azure's header for the API key.
pub(super) static API_KEY: HeaderName = HeaderName::from_static("api-key");

/// The header that marks an answer of the proxy's own making. Its value is the error's code.
pub(super) const MARK: &str = "x-aegis-error";

/// Makes of the head of a WebSocket's handshake that of the requests that come by it.
pub(super) fn strip_connection(headers: &mut HeaderMap) {
    for name in &OF_CONNECTION {
        headers.remove(name);
    }
}

/// Accepts a WebSocket that is asked for so (RFC 6455, 4.2.2).
pub(super) fn accept_websocket(asked: &HeaderMap, headers: &mut HeaderMap) {
    let key = asked.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    if let Some(accepted) = key.and_then(|key| HeaderValue::from_str(&key).ok()) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    }
}

/// Takes off what belongs to one connection only, and what `Connection` names.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(header::CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .collect();
        for name in named {
            headers.remove(name);
        }
    }
    // Few have any: one look at the names that are there costs less than a search for each that may be.
    if headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        for name in &HOP_BY_HOP {
            headers.remove(name);
        }
    }
    if headers.get(header::TE).is_some_and(|te| te != "trailers") {
        headers.remove(header::TE);
    }
}

/// Prepares a client's headers for the upstream. `hints` are our own header names. A readable body is asked for
/// without compression.
pub(super) fn to_upstream(headers: &mut HeaderMap, hints: [&str; 2], readable: bool) {
    let te = headers.get(header::TE).filter(|te| *te == "trailers").cloned();
    strip_hop_by_hop(headers);
    // `Connection` names it, as it must, but trailers pass.
    if let Some(te) = te {
        headers.insert(header::TE, te);
    }
    headers.remove(header::HOST);
    headers.remove(header::EXPECT);
    for hint in hints {
        if named(headers, hint).is_some() {
            headers.remove(hint);
        }
    }
    if readable {
        // The body was taken in whole, its trailers were not.
        headers.remove(header::TRAILER);
        if headers.contains_key(header::ACCEPT_ENCODING) {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
    }
}

/// Whether a request asks to switch to a WebSocket (RFC 6455, 4.1), and to nothing else: any other offer is taken off,
/// since what it leads to could carry requests past us.
pub(super) fn asks_for_websocket(parts: &Parts) -> bool {
    let headers = &parts.headers;
    let mut offers = headers.get_all(header::UPGRADE).iter();
    let only = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"websocket");
    parts.method == Method::GET
        && parts.version == Version::HTTP_11
        && offers.next().is_some_and(only)
        && offers.next().is_none()
        && headers.contains_key(header::SEC_WEBSOCKET_KEY)
        && !headers.contains_key(header::TRANSFER_ENCODING)
        && headers.get(header::CONTENT_LENGTH).is_none_or(|length| length == "0")
        && listed(headers, "upgrade")
}

/// Whether `Connection` names something.
fn listed(headers: &HeaderMap, name: &str) -> bool {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|named| named.trim().eq_ignore_ascii_case(name))
}

/// Says again what [`strip_hop_by_hop`] has taken off a handshake: that the connection is to become a WebSocket.
pub(super) fn switch_to_websocket(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// Takes off what an edited body makes untrue.
pub(super) fn body_changed(headers: &mut HeaderMap) {
    for name in &BODY_BOUND {
        headers.remove(name);
    }
}

/// Whether a reply is an event stream: by its content type, never by what was asked for.
pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.trim_start().get(..17).is_some_and(|start| start.eq_ignore_ascii_case("text/event-stream"))
}

/// A hash of the credential that a request comes with.
pub(super) fn credential(headers: &HeaderMap) -> Option<u64> {
    let names = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
    let value = names.iter().find_map(|name| headers.get(*name))?;
    Some(twox_hash::XxHash3_64::oneshot(value.as_bytes()))
}

/// The API key of a request, without `Bearer`.
pub(super) fn api_key(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")));
    bearer.map(str::trim).or_else(|| headers.get(&API_KEY)?.to_str().ok())
}

/// Names and values as a recorder takes them.
pub(super) fn pairs(headers: &HeaderMap) -> Vec<(&str, &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

/// The value of a header whose name is of a user's choice.
pub(super) fn named<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a HeaderValue> {
    headers.iter().find(|(known, _)| known.as_str().eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// A header's value as text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A header that holds seconds.
pub(super) fn seconds(headers: &HeaderMap, name: &HeaderName) -> Option<Duration> {
    let seconds: f64 = headers.get(name)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// How long a client says that it waits for a reply, as the SDKs announce it, in seconds.
pub(super) fn patience(headers: &HeaderMap) -> Option<Duration> {
    static ANNOUNCED: [HeaderName; 2] =
        [HeaderName::from_static("x-stainless-read-timeout"), HeaderName::from_static("x-stainless-timeout")];
    ANNOUNCED.iter().filter_map(|name| seconds(headers, name)).filter(|patience| !patience.is_zero()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let parse = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().expect("name"), HeaderValue::from_str(value).expect("value"))
        };
        pairs.iter().map(parse).collect()
    }

    #[test]
    fn what_passes_and_what_does_not() {
        let mut headers = map(&[
            ("host", "h"),
            ("connection", "x-private, keep-alive"),
            ("x-private", "1"),
            ("te", "gzip"),
            ("accept-encoding", "gzip"),
            ("x-aegis-run", "r"),
            ("x-aegis-agent", "a"),
            ("x-stainless-lang", "python"),
            ("openai-beta", "b"),
        ]);
        to_upstream(&mut headers, ["x-aegis-run", "x-aegis-agent"], true);
        let left: Vec<_> = headers.iter().map(|(n, v)| format!("{n}: {}", v.to_str().expect("text"))).collect();
        assert_eq!(left, ["accept-encoding: identity", "x-stainless-lang: python", "openai-beta: b"]);
    }

    #[test]
    fn only_a_websocket_is_one() {
        let asked = |method: &str, version: Version, headers: &[(&str, &str)]| {
            let mut request = hyper::Request::builder().method(method).version(version).body(()).expect("a request");
            for (name, value) in headers {
                let (name, value) = (name.parse::<HeaderName>().expect("name"), value.parse().expect("value"));
                request.headers_mut().append(name, value);
            }
            asks_for_websocket(&request.into_parts().0)
        };
        let good = [("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket"), ("sec-websocket-key", "x")];
        assert!(asked("GET", Version::HTTP_11, &good));
        assert!(!asked("POST", Version::HTTP_11, &good) && !asked("GET", Version::HTTP_10, &good));
        for further in [("upgrade", "h2c"), ("content-length", "5"), ("transfer-encoding", "chunked")] {
            assert!(!asked("GET", Version::HTTP_11, &[&good[..], &[further]].concat()), "{further:?}");
        }
        for (missing, name) in ["connection", "upgrade", "sec-websocket-key"].into_iter().enumerate() {
            let mut headers = good.to_vec();
            headers.remove(missing);
            assert!(!asked("GET", Version::HTTP_11, &headers), "{name}");
        }
        assert!(!asked("GET", Version::HTTP_11, &[good[0], ("upgrade", "h2c, websocket"), good[2]]));
    }

    #[test]
    fn keys_and_streams() {
        assert_eq!(api_key(&map(&[("authorization", "Bearer sk-1")])), Some("sk-1"));
        assert_eq!(api_key(&map(&[("api-key", "k")])), Some("k"));
        assert_eq!(api_key(&map(&[("authorization", "Basic x")])), None);
        assert!(is_event_stream(&map(&[("content-type", "Text/Event-Stream; charset=utf-8")])));
        assert!(!is_event_stream(&map(&[("content-type", "application/json")])));
    }
}
