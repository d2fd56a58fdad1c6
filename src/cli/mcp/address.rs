//! Where the proxy is: said by an option, by the environment, or by that of a parent process.
//!
//! SDKs of MCP give the servers that they start a few variables only, so that what `aegis run` has set is found further up.

use std::fs;

use crate::launch::RUN_ADDRESS;

/// The variable with the token of a proxy that asks for one.
const TOKEN: &str = "AEGIS_TOKEN";
/// How many processes are looked at.
const PARENTS_MAX: usize = 32;

/// The proxy, and what it wants shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyAddress {
    pub(super) url: String,
    pub(super) token: Option<String>,
}

impl ProxyAddress {
    /// The address that is given, else the one of the nearest environment that has one.
    pub(super) fn find(given: Option<&str>) -> Option<Self> {
        let url = given.map(str::to_owned).or_else(|| variable(RUN_ADDRESS))?;
        Some(Self { url, token: variable(TOKEN) })
    }
}

/// A variable of this process, else of the nearest parent that has it.
fn variable(name: &str) -> Option<String> {
    let own = std::env::var(name).ok().filter(|value| !value.is_empty());
    own.or_else(|| {
        let parents = std::iter::successors(Some(std::process::id()), |id| parent(*id)).skip(1).take(PARENTS_MAX);
        parents.filter_map(|id| fs::read(format!("/proc/{id}/environ")).ok()).find_map(|all| value(&all, name))
    })
}

/// The value of a variable in an environment as the system shows it.
fn value(environment: &[u8], name: &str) -> Option<String> {
    let of_name = |entry: &[u8]| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    let value = environment.split(|byte| *byte == 0).find_map(of_name)?;
    String::from_utf8(value).ok().filter(|value| !value.is_empty())
}

/// The parent of a process, if the system shows it.
fn parent(id: u32) -> Option<u32> {
    parent_in(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// The parent in a line of `/proc/ID/stat`, where a program's name may hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|id| *id > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_and_parents_are_read() {
        let environment = b"PATH=/bin\0XAEGIS_URL=no\0AEGIS_URL=http://h/r/x\0AEGIS_TOKEN=\0";
        assert_eq!(value(environment, "AEGIS_URL").as_deref(), Some("http://h/r/x"));
        assert_eq!(value(environment, "AEGIS_TOKEN"), None);
        assert_eq!(value(environment, "HOME"), None);
        assert_eq!(parent_in("17 (a) b (c)) S 4 17 17"), Some(4));
        assert_eq!(parent_in("1 (init) S 0 1 1"), None);
        assert_eq!(parent_in(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_a_parent() {
        assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
    }
}
