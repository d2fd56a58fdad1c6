//! Programming tasks: a function that is described in words is written in Python from a small repertoire, and found
//! again in what others wrote. The simulator recalls functions; it does not invent them, and runs none.

use std::sync::LazyLock;

use serde::Deserialize;

/// A function that a text asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FunctionTask<'t> {
    /// The task: from its first word to the end of its line.
    pub(super) task: &'t str,
    name: &'t str,
    parameters: Vec<&'t str>,
    description: &'t str,
}

/// A function that is known by heart.
#[derive(Debug, Deserialize)]
struct FunctionTemplate {
    /// Words that its description has, each of them.
    words: Vec<String>,
    /// Its text; `{name}`, `{0}` and `{1}` stand for its name and parameters.
    code: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repertoire {
    function: Vec<FunctionTemplate>,
}

static REPERTOIRE: LazyLock<Repertoire> = LazyLock::new(|| match toml::from_str(include_str!("repertoire.toml")) {
    Ok(repertoire) => repertoire,
    Err(error) => unreachable!("a file of this program, which its tests read: {error}"),
});

/// The first function that a text asks for: ``Write a function `name(a, b)` that …``, to the end of the line.
pub(super) fn find_task(text: &str) -> Option<FunctionTask<'_>> {
    const CUE: &str = "function `";
    text.match_indices(CUE).find_map(|(at, _)| {
        let line_start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
        let line = text.get(line_start..)?.lines().next()?;
        let before = line.get(..at - line_start)?;
        let start = ["Write", "Implement", "Define"].iter().filter_map(|verb| before.rfind(verb)).max()?;
        let (signature, description) = line.get(at - line_start + CUE.len()..)?.split_once('`')?;
        let (name, rest) = signature.split_once('(')?;
        let parameters: Vec<&str> = rest.strip_suffix(')')?.split(',').map(str::trim).collect();
        let named = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
        (named(&name) && parameters.iter().all(named)).then(|| FunctionTask {
            task: line.get(start..).unwrap_or(line).trim(),
            name,
            parameters,
            description,
        })
    })
}

impl FunctionTask<'_> {
    /// The function as a block of code; `None` for one that is not in the repertoire.
    pub(super) fn written(&self) -> Option<String> {
        let lower = self.description.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        let fits = |known: &&FunctionTemplate| known.words.iter().all(|word| words.contains(&word.as_str()));
        let known = REPERTOIRE.function.iter().filter(fits).max_by_key(|known| known.words.len())?;
        let mut code = known.code.trim().replace("{name}", self.name);
        for (place, parameter) in self.parameters.iter().enumerate() {
            code = code.replace(&format!("{{{place}}}"), parameter);
        }
        Some(format!("```python\n{code}\n```"))
    }

    /// How to go about it, as a numbered plan that computes nothing.
    pub(super) fn plan(&self) -> String {
        let parameters = self.parameters.join("`, `");
        format!(
            "1. Define the function `{}` with `{parameters}`.\n2. Go through what it is given, as the task says.\n\
             3. Return the result in the form that the task names.",
            self.name
        )
    }
}

/// Whether an answer is a block of code.
pub(super) fn is_code(answer: &str) -> bool {
    answer.starts_with("```")
}

/// The last block of Python in a text, in the form of an answer. One that nobody closed goes to the end of the text.
pub(super) fn last_block(text: &str) -> Option<String> {
    let (_, code) = blocks(text).pop()?;
    Some(format!("```python\n{}\n```", code.trim()))
}

/// A text without its blocks of Python, whose words are no prose.
pub(super) fn without_blocks(text: &str) -> String {
    let mut rest = String::new();
    let mut from = 0;
    for (place, _) in blocks(text) {
        rest.push_str(text.get(from..place.start).unwrap_or_default());
        from = place.end;
    }
    rest + text.get(from..).unwrap_or_default()
}

/// Blocks between fences that hold Python: their place with the fences, and what is between these.
fn blocks(text: &str) -> Vec<(std::ops::Range<usize>, &str)> {
    const FENCE: &str = "```";
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = text.get(from..).and_then(|rest| rest.find(FENCE)).map(|at| at + from) {
        let inside = open + FENCE.len();
        let body = text.get(inside..).unwrap_or_default();
        let length = body.find(FENCE).unwrap_or(body.len());
        let end = (inside + length + FENCE.len()).min(text.len());
        let block = body.get(..length).unwrap_or_default();
        let (language, code) = block.split_once('\n').unwrap_or(("", block));
        if matches!(language.trim(), "python" | "py") || (language.trim().is_empty() && code.contains("def ")) {
            found.push((open..end, code));
        }
        from = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_asked_for_in_words() {
        let text = "Solve this problem: Write a function `f(a, b)` that adds.\n\nBe brief.";
        let asked = find_task(text).expect("a function");
        assert_eq!((asked.task, asked.name), ("Write a function `f(a, b)` that adds.", "f"));
        assert_eq!(asked.parameters, ["a", "b"]);
        assert_eq!(asked.written(), None, "it knows a few functions only");
        for text in ["What is 3 + 4?", "Call the function `f`.", "Write a function `f(a b)` that adds."] {
            assert_eq!(super::find_task(text), None, "{text}");
        }
    }

    #[test]
    fn a_function_is_found_by_its_description_alone() {
        assert_eq!(REPERTOIRE.function.len(), 12, "the repertoire is read");
        let text = "Write a function `under(top)` that returns the prime numbers below the top.";
        let code = find_task(text).and_then(|asked| asked.written()).expect("a known one");
        assert!(code.starts_with("```python\ndef under(top):\n") && code.contains("range(2, top)"), "{code}");
    }

    #[test]
    fn code_is_found_in_texts() {
        let check = |text: &str, expected: Option<&str>| {
            let expected = expected.map(|code| format!("```python\n{code}\n```"));
            assert_eq!(last_block(text), expected, "{text}");
        };
        check("Here:\n```python\ndef f():\n    return 1\n```\nDone.", Some("def f():\n    return 1"));
        check("```\ndef f(): pass\n```\n```py\ng()\n```", Some("g()"));
        check("```python\ndef f():\n    re", Some("def f():\n    re"));
        check("One agent response: ```The answer is 4```", None);
        check("no code", None);
        assert_eq!(without_blocks("a ```python\nraise Error\n``` b ```c``` d"), "a  b ```c``` d");
    }
}
