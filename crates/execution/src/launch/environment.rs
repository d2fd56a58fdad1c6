//! The environment that points a program at the proxy.

use std::{fs, path::Path};

use crate::{proxy::NamedServers, trajectory::RunId};

/// A key for programs that refuse to start without one. No backend takes it, so nothing is lost where it goes.
const NO_KEY: &str = "sk-aegis-no-key";
/// Before the place of a server in the name of the variable with its address.
const SERVER_ADDRESS: &str = "AEGIS";
/// The variable with the address of the proxy, the run included: what no other variable is for begins with it.
pub const RUN_ADDRESS: &str = "AEGIS_URL";
/// What Google's SDK takes for a key, or in the place of one.
const GOOGLE_KEYS: [&str; 5] = [
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_GENAI_USE_ENTERPRISE",
];
/// No `.env` that is read is longer, in bytes.
const DOTENV_MAX: u64 = 1 << 20;

/// The variables that point a program of any framework at the proxy (`origin` is `http://host:port`), started in a directory.
pub fn environment(origin: &str, run: &RunId, run_header: &str, directory: &Path) -> Vec<(String, String)> {
    let base = format!("{origin}/r/{run}");
    let inherited = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut variables = vec![
        ("OPENAI_BASE_URL".to_owned(), format!("{base}/v1")),
        ("OPENAI_API_BASE".to_owned(), format!("{base}/v1")),
        ("OPENAI_API_BASE_URL".to_owned(), format!("{base}/v1")),
        ("ANTHROPIC_BASE_URL".to_owned(), base.clone()),
        ("GOOGLE_GEMINI_BASE_URL".to_owned(), base.clone()),
        (RUN_ADDRESS.to_owned(), base),
    ];
    for name in ["NO_PROXY", "no_proxy"] {
        let ours = "127.0.0.1,localhost".to_owned();
        variables.push((name.to_owned(), inherited(name).map_or(ours.clone(), |theirs| format!("{theirs},{ours}"))));
    }
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        if inherited(name).is_none() && !is_in_dotenv(directory, name) {
            variables.push((name.to_owned(), NO_KEY.to_owned()));
        }
    }
    // Any of these means that Google's SDK finds a key, or needs none; a key beside a project would be refused.
    let is_set = |name: &&str| inherited(name).is_some() || is_in_dotenv(directory, name);
    if !GOOGLE_KEYS.iter().any(is_set) {
        variables.push(("GEMINI_API_KEY".to_owned(), NO_KEY.to_owned()));
    }
    // A program that puts a set into a prompt asks something else in each run where Python draws its hash seed anew.
    if inherited("PYTHONHASHSEED").is_none() {
        variables.push(("PYTHONHASHSEED".to_owned(), "0".to_owned()));
    }
    let hint = format!("{run_header}: {run}");
    let headers = inherited("OPENAI_CUSTOM_HEADERS").map_or(hint.clone(), |theirs| format!("{theirs}\n{hint}"));
    variables.push(("OPENAI_CUSTOM_HEADERS".to_owned(), headers));
    variables
}

/// The variables with the addresses of servers: `AEGIS_MCP_CALC` for the server of tools `calc`.
pub fn server_addresses(origin: &str, run: &RunId, servers: &NamedServers) -> Vec<(String, String)> {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let named = |place: &str| {
        (SERVER_ADDRESS.chars().chain(place.chars().map(upper)).collect(), format!("{origin}/r/{run}{place}"))
    };
    servers.places().map(named).collect()
}

/// Whether the nearest `.env` of a directory or of those above it sets a variable: programs that load it keep what they inherit.
fn is_in_dotenv(directory: &Path, name: &str) -> bool {
    let is_read = |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= DOTENV_MAX);
    let nearest = directory.ancestors().map(|above| above.join(".env")).find(|path| is_read(path));
    let text = nearest.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    text.lines().any(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        line.split_once('=').is_some_and(|(key, value)| key.trim() == name && !value.trim().is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_a_variable() {
        let run = RunId::parse("r1").expect("an id");
        let places = ["/a2a/weather", "/mcp/calc", "/mcp/web-search.2"].map(|place| (place.to_owned(), String::new()));
        let servers = NamedServers::new(places.into());
        let expected = [
            ("AEGIS_A2A_WEATHER".to_owned(), "http://127.0.0.1:9/r/r1/a2a/weather".to_owned()),
            ("AEGIS_MCP_CALC".to_owned(), "http://127.0.0.1:9/r/r1/mcp/calc".to_owned()),
            ("AEGIS_MCP_WEB_SEARCH_2".to_owned(), "http://127.0.0.1:9/r/r1/mcp/web-search.2".to_owned()),
        ];
        assert_eq!(server_addresses("http://127.0.0.1:9", &run, &servers), expected);
    }

    #[test]
    fn variables_point_at_the_run() {
        let run = RunId::parse("r1").expect("an id");
        let variables = environment("http://127.0.0.1:9", &run, "x-aegis-run", Path::new("/"));
        let get = |name: &str| variables.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        assert_eq!(get("OPENAI_BASE_URL"), Some("http://127.0.0.1:9/r/r1/v1"));
        assert_eq!(get("ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:9/r/r1"));
        assert_eq!(get("GOOGLE_GEMINI_BASE_URL"), Some("http://127.0.0.1:9/r/r1"));
        assert_eq!(get(RUN_ADDRESS), Some("http://127.0.0.1:9/r/r1"));
        assert!(get("NO_PROXY").expect("set").ends_with("127.0.0.1,localhost"));
        assert!(get("OPENAI_CUSTOM_HEADERS").expect("set").ends_with("x-aegis-run: r1"));
        // Where this process has a seed of its own, the child inherits that.
        assert_eq!(get("PYTHONHASHSEED").is_none(), std::env::var_os("PYTHONHASHSEED").is_some());
    }

    #[test]
    fn a_key_that_a_dotenv_file_sets_is_not_hidden_behind_one_of_ours() {
        let dir = tempfile::tempdir().expect("a directory");
        let below = dir.path().join("app");
        fs::create_dir(&below).expect("made");
        for (text, is_set) in [
            ("OPENAI_API_KEY=sk-1", true),
            ("A=1\n export OPENAI_API_KEY = 'sk-1'\n", true),
            ("#OPENAI_API_KEY=sk-1", false),
            ("OPENAI_API_KEY=", false),
            ("MY_OPENAI_API_KEY=sk-1", false),
        ] {
            fs::write(dir.path().join(".env"), text).expect("written");
            assert_eq!(is_in_dotenv(&below, "OPENAI_API_KEY"), is_set, "{text}");
        }
        // The nearest file is the one that is loaded.
        fs::write(dir.path().join(".env"), "OPENAI_API_KEY=sk-1").expect("written");
        fs::write(below.join(".env"), "A=1").expect("written");
        assert!(!is_in_dotenv(&below, "OPENAI_API_KEY"));
    }
}
