//! When two names mean the same agent, and two words the same failure mode.

use crate::trajectory::FailureMode;

/// Names of speakers that are no agents: people, and executors of code.
const NOT_AGENTS: &[&str] =
    &["human", "user", "user_proxy", "userproxy", "computer_terminal", "computerterminal", "terminal", "code_executor"];

/// The key under which an agent's name is compared: without markup, without a trailing remark in brackets (Who&When
/// logs one agent as `Orchestrator (thought)` and `Orchestrator (-> WebSurfer)`), blanks joined, case folded.
pub fn agent_key(name: &str) -> String {
    let bare = unmarked(name);
    let cut = match (bare.ends_with(')'), bare.find(" (")) {
        (true, Some(at)) => bare.get(..at).unwrap_or(bare),
        _ => bare,
    };
    cut.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Whether a speaker, by key, is one that can be blamed.
pub fn is_agent(key: &str) -> bool {
    !NOT_AGENTS.contains(&key)
}

/// The key under which a failure mode is compared: `FM-1.3` for `FM-1.3`, `fm_1.3`, `1.3` and MAST's name of it; any
/// other word stays itself in lower case, so that an invented mode counts as a wrong one.
pub fn mode_key(mode: &str) -> String {
    let bare = unmarked(mode);
    let lower = bare.to_lowercase();
    let number = lower.strip_prefix("fm").unwrap_or(&lower).trim_start_matches(['-', '_', ' ', ':']);
    let word: &str = number.split([' ', ':', '(', ',']).next().unwrap_or_default();
    let code = format!("FM-{word}");
    let spoken = lower.replace(['_', '-'], " ");
    let known = FailureMode::ALL
        .iter()
        .find(|known| known.code() == code || known.name().replace('-', " ") == spoken)
        .map(|known| known.code().to_owned());
    known.unwrap_or(lower)
}

/// The text without blanks, quotes, back-ticks and Markdown emphasis round it.
fn unmarked(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`' | '"' | '\'' | '“' | '”'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents() {
        for (name, key) in [
            ("WebSurfer", "websurfer"),
            (" **WebSurfer** ", "websurfer"),
            ("Orchestrator (thought)", "orchestrator"),
            ("Orchestrator (-> WebSurfer)", "orchestrator"),
            ("Senior  Researcher", "senior researcher"),
            ("`Blu-Ray_Expert`", "blu-ray_expert"),
            ("f(x) solver", "f(x) solver"),
            ("(thought)", "(thought)"),
            ("", ""),
        ] {
            assert_eq!(agent_key(name), key, "{name}");
        }
    }

    #[test]
    fn modes() {
        for (mode, key) in [
            ("FM-1.3", "FM-1.3"),
            ("fm_1.3", "FM-1.3"),
            ("1.3", "FM-1.3"),
            ("FM 1.3: step repetition", "FM-1.3"),
            ("Step Repetition", "FM-1.3"),
            ("reasoning-action mismatch", "FM-2.6"),
            ("FM-2.7", "fm-2.7"),
            ("1.33", "1.33"),
            ("laziness", "laziness"),
        ] {
            assert_eq!(mode_key(mode), key, "{mode}");
        }
    }
}
