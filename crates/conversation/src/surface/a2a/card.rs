//! The card of a peer: where it is reached.

use std::ops::Range;

use bytes::Bytes;

use crate::surface::splice::{Node, Splices, encode_string};

/// The folder that a card lies in, below the address of its peer.
pub const CARD_FOLDER: &str = "/.well-known/";
/// The names of cards: of 0.3 and later, and of before.
const NAMES: &[&str] = &["agent-card.json", "agent.json"];
/// Deepest nesting in which addresses are looked for.
const DEPTH_MAX: usize = 16;
/// Names of this machine: an address with one of them is that with another.
const LOCAL: &[&str] = &["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];

/// Whether a request asks for a card.
pub fn is_card(method: &str, path: &str) -> bool {
    let name = path.rsplit_once(CARD_FOLDER).map(|(_, name)| name);
    method == "GET" && name.is_some_and(|name| NAMES.contains(&name))
}

/// A card in which each address that leads to the peer leads to `ours`. `address`: where the peer is. `None` where it names none.
pub fn readdressed_card(card: &[u8], address: &str, ours: &str) -> Option<Bytes> {
    let root = Node::parse(card).ok()?;
    let mut splices = Splices::default();
    look(&root, DEPTH_MAX, &mut |span, url| {
        if let Some(rest) = below(url, address) {
            splices.replace(span, encode_string(&format!("{ours}{rest}")));
        }
    });
    (!splices.is_empty()).then(|| splices.apply(card))
}

/// Gives each `url` of a card with its place.
fn look(node: &Node<'_>, depth: usize, found: &mut impl FnMut(Range<usize>, &str)) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for member in node.members() {
        match member.value.string() {
            Some(url) if member.key == "url" => found(member.value.span(), &url),
            Some(_) => {}
            None => look(&member.value, depth, found),
        }
    }
    node.elements().iter().for_each(|element| look(element, depth, found));
}

/// What follows the peer's address in a URL that begins with it.
fn below<'u>(url: &'u str, address: &str) -> Option<&'u str> {
    let (authority, path) = parted(url)?;
    let (own_authority, own_path) = parted(address)?;
    let rest = path.strip_prefix(own_path.trim_end_matches('/'))?;
    (host(authority) == host(own_authority) && (rest.is_empty() || rest.starts_with(['/', '?']))).then_some(rest)
}

fn parted(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    Some(rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len())))
}

/// Host and port, this machine by one name.
fn host(authority: &str) -> (String, &str) {
    let (host, port) = authority
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        .unwrap_or((authority, ""));
    let host = host.to_ascii_lowercase();
    (if LOCAL.contains(&host.as_str()) { "localhost".to_owned() } else { host }, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_of_the_peer_leads_through_here() {
        let card = br#"{"name":"w","url": "http://localhost:9001/","documentationUrl":"http://localhost:9001/docs","supportedInterfaces":[{"url":"http://127.0.0.1:9001/rpc?v=1","protocolBinding":"JSONRPC"},{"url":"http://other:9001/","protocolBinding":"JSONRPC"},{"url":"127.0.0.1:9002","protocolBinding":"GRPC"}]}"#;
        let written = readdressed_card(card, "http://127.0.0.1:9001", "http://h:1/r/r0/a2a/w").expect("addresses");
        let expected = String::from_utf8_lossy(card)
            .replace("\"url\": \"http://localhost:9001/\"", "\"url\": \"http://h:1/r/r0/a2a/w/\"")
            .replace("http://127.0.0.1:9001/rpc?v=1", "http://h:1/r/r0/a2a/w/rpc?v=1");
        assert_eq!(String::from_utf8_lossy(&written), expected);
        assert_eq!(readdressed_card(b"{\"url\":\"http://x/\"}", "http://127.0.0.1:9001", "http://h"), None);
        assert_eq!(below("http://h/base/rpc", "http://h/base/"), Some("/rpc"));
        assert_eq!(below("http://h/basement", "http://h/base"), None);
    }

    #[test]
    fn cards_by_their_paths() {
        assert!(
            is_card("GET", "/a2a/w/.well-known/agent-card.json") && is_card("GET", "/a2a/w/.well-known/agent.json")
        );
        assert!(!is_card("POST", "/a2a/w/.well-known/agent.json") && !is_card("GET", "/a2a/w/agent.json"));
    }
}
