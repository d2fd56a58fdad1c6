//! A list of what an upstream keeps, for one of several users: of each page only what that user has made through the server. The
//! cursor stays the upstream's, and where a page holds nothing of the user's, the next is fetched: clients take an empty page for the
//! last one. A list that is not understood, or that goes on for too long without anything of the user's, is refused.

use http_body_util::{Either, Full};
use hyper::{Method, Request, Response, Uri, header, http::uri::PathAndQuery};
use serde_json::{Map, Value};

use super::objects::UserObjects;
use crate::{
    proxy::{
        arrival::Arrived,
        chunks::joined,
        delivery::Delivery,
        error::{Interrupted, ProxyError},
        headers,
        read_whole::read_whole,
        shared::Proxy,
    },
    surface::door::UnpackedBody,
};

/// Pages that are fetched for one of a user's.
const PAGES_MAX: usize = 20;
/// Members of a page of Gemini's that tell where the next begins; other providers say whether there is more.
const NEXT_PAGE: &str = "nextPageToken";

impl Proxy {
    /// A page of the list of a user's objects.
    pub(in crate::proxy) async fn own_list(&self, arrived: Arrived) -> Result<Response<Box<Delivery>>, Interrupted> {
        let Arrived { mut parts, hinted, .. } = arrived;
        let Some(objects) = self.runs.objects().filter(|_| parts.method == Method::GET) else {
            return Err(ProxyError::StoredList.into());
        };
        self.count_fetch_of(&parts, &hinted)?;
        self.head_to_upstream(&mut parts.headers, false);
        parts.headers.remove(header::CONTENT_LENGTH);
        for _ in 0..PAGES_MAX {
            let sent = Request::from_parts(parts.clone(), Either::Left(Full::default()));
            let mut received = self.upstream.send(sent).await?;
            headers::strip_hop_by_hop(received.headers_mut());
            if !received.status().is_success() {
                return Ok(received.map(|body| Delivery::pass(body, self.limits.silence_timeout)));
            }
            let (mut head, body) = received.into_parts();
            let body = read_whole(body, &self.limits).await?.map_err(|_| ProxyError::StoredList)?;
            let encoding = headers::text(&head.headers, &header::CONTENT_ENCODING).map(str::to_owned);
            let plain = UnpackedBody::unpack(&joined(body), encoding.as_deref()).plain;
            let mut page = ListPage::read(&plain).ok_or(ProxyError::StoredList)?;
            let next = page.next(parts.headers.contains_key("anthropic-version"));
            page.keep_own(objects);
            let Some((name, cursor)) = next.filter(|_| page.is_empty()) else {
                headers::body_changed(&mut head.headers);
                head.headers.remove(header::CONTENT_ENCODING);
                let body = Value::Object(page.members).to_string();
                return Ok(Response::from_parts(head, Delivery::composed(body.into())));
            };
            parts.uri = with_parameter(&parts.uri, name, &cursor).ok_or(ProxyError::StoredList)?;
        }
        Err(ProxyError::StoredList.into())
    }
}

/// A page of a list: an object, of whose members one is the list.
struct ListPage {
    members: Map<String, Value>,
    list: String,
}

impl ListPage {
    /// Reads a page whose every entry has a name by which objects are known; of Gemini, one without a list is an empty page.
    fn read(body: &[u8]) -> Option<Self> {
        let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let list = members.iter().find(|(_, value)| value.is_array()).map(|(name, _)| name.clone());
        let list = list.or_else(|| members.keys().all(|name| name == NEXT_PAGE).then(|| "data".to_owned()))?;
        let entries = members.get(&list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if !entries.iter().all(|entry| name_of(entry).is_some()) {
            return None;
        }
        // Of what else a page says, only this is known to be nobody's.
        let known = ["object", "has_more", "first_id", "last_id", NEXT_PAGE];
        members.retain(|name, _| *name == list || known.contains(&name.as_str()));
        Some(Self { members, list })
    }

    fn entries(&self) -> &[Value] {
        self.members.get(&self.list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// The parameter of the next page, if there is one.
    fn next(&self, is_anthropic: bool) -> Option<(&'static str, String)> {
        let text = |name: &str| self.members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(token) = text(NEXT_PAGE) {
            return Some(("pageToken", token.to_owned()));
        }
        let has_more = self.members.get("has_more").and_then(Value::as_bool).unwrap_or_default();
        let last = text("last_id").or_else(|| name_of(self.entries().last()?)).filter(|_| has_more)?;
        Some((if is_anthropic { "after_id" } else { "after" }, last.to_owned()))
    }

    /// Takes out all that is not this user's; cursors that name an object name one of the user's.
    fn keep_own(&mut self, objects: &UserObjects) {
        if let Some(entries) = self.members.get_mut(&self.list).and_then(Value::as_array_mut) {
            entries.retain(|entry| name_of(entry).is_some_and(|name| objects.is_own(name)));
        }
        let ends = [self.entries().first(), self.entries().last()];
        let ends = ends.map(|entry| entry.and_then(name_of).map_or(Value::Null, Into::into));
        for (name, end) in ["first_id", "last_id"].into_iter().zip(ends) {
            if let Some(cursor) = self.members.get_mut(name) {
                *cursor = end;
            }
        }
    }
}

/// What names an entry: Gemini's have a name with their shelf in it.
fn name_of(entry: &Value) -> Option<&str> {
    let name = |key: &str| entry.get(key).and_then(Value::as_str);
    name("id").or_else(|| name("name").filter(|name| name.contains('/')))
}

/// The address with a parameter, in the place of an earlier one of its name.
fn with_parameter(uri: &Uri, name: &str, value: &str) -> Option<Uri> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let value =
        value.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    let added = format!("{name}={}", value.collect::<String>());
    let others = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty() && pair.split('=').next() != Some(name));
    let query: Vec<&str> = others.chain([added.as_str()]).collect();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{}?{}", uri.path(), query.join("&"))).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_each_provider_are_read_and_others_are_not() {
        for (page, next) in [
            (r#"{"object":"list","data":[{"id":"a"},{"id":"b"}],"has_more":true}"#, Some(("after", "b"))),
            (r#"{"data":[{"id":"a"}],"has_more":true,"last_id":"c"}"#, Some(("after", "c"))),
            (r#"{"data":[{"id":"a"}],"has_more":false,"last_id":"a"}"#, None),
            (r#"{"files":[{"name":"files/a","displayName":"x"}],"nextPageToken":"t"}"#, Some(("pageToken", "t"))),
            ("{}", None),
        ] {
            let read = ListPage::read(page.as_bytes()).unwrap_or_else(|| panic!("{page}"));
            assert_eq!(read.next(false), next.map(|(name, cursor)| (name, cursor.to_owned())), "{page}");
        }
        for page in ["[]", "x", r#"{"data":{"a":1}}"#, r#"{"data":["file-1"]}"#, r#"{"files":[{"name":"a"}]}"#] {
            assert!(ListPage::read(page.as_bytes()).is_none(), "{page}");
        }
    }

    #[test]
    fn a_cursor_takes_the_place_of_the_former() {
        for (uri, expected) in [
            ("/v1/files", "/v1/files?after=a%2Fb"),
            ("http://h/v1/files?limit=2&after=x", "http://h/v1/files?limit=2&after=a%2Fb"),
        ] {
            let made = with_parameter(&uri.parse().expect("an address"), "after", "a/b").expect("an address");
            assert_eq!(made.to_string(), expected);
        }
    }
}
