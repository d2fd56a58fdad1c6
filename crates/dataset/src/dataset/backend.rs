//! What answered a run, in words that are the same on every machine and in every run.

use std::net::IpAddr;

/// The name of every backend on the machine or in the network that the run was made in.
const LOCAL: &str = "local";
/// Ends of names that no public name server knows.
const PRIVATE_ENDS: [&str; 6] = [".localhost", ".local", ".lan", ".internal", ".home.arpa", ".test"];

/// The class of an upstream: `simulator`; `local` for one at a private address or name; scheme and host of any other.
/// A port says nothing of what answered, and where the system picks it, it is another each time; so it is never told.
pub(super) fn class(upstream: &str) -> String {
    let Some((scheme, rest)) = upstream.split_once("://") else { return upstream.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.to_ascii_lowercase();
    if is_private(&host) { LOCAL.to_owned() } else { format!("{}://{host}", scheme.to_ascii_lowercase()) }
}

fn is_private(host: &str) -> bool {
    match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(four)) => {
            four.is_loopback() || four.is_private() || four.is_link_local() || four.is_unspecified()
        }
        Ok(IpAddr::V6(six)) => {
            six.is_loopback() || six.is_unspecified() || six.is_unique_local() || six.is_unicast_link_local()
        }
        Err(_) => !host.contains('.') || PRIVATE_ENDS.iter().any(|end| host.ends_with(end)),
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn a_backend_is_named_without_port_and_without_the_names_of_a_house() {
        for (upstream, expected) in [
            ("simulator", "simulator"),
            ("http://127.0.0.1:40123", "local"),
            ("http://127.0.0.1:40124", "local"),
            ("http://localhost:8000/v1", "local"),
            ("http://[::1]:8000", "local"),
            ("http://[::ffff:10.0.0.7]:8000", "local"),
            ("http://192.168.1.4:11434", "local"),
            ("http://[fd00::1]", "local"),
            ("http://gpu-node-7:8000", "local"),
            ("http://models.internal:8000", "local"),
            ("https://api.openai.com:443", "https://api.openai.com"),
            ("https://API.example.org/v1?x=1", "https://api.example.org"),
            ("HTTPS://me:secret@api.example.org:8443", "https://api.example.org"),
            ("http://8.8.8.8:99", "http://8.8.8.8"),
            ("", ""),
        ] {
            assert_eq!(class(upstream), expected, "{upstream}");
        }
    }
}
