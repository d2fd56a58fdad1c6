//! What stands before a colon in a transcript: a speaker, or what was said or made.

/// Whether a text could be an agent's name: one to four words of letters, digits and `_ . -`.
pub(super) fn is_name(text: &str) -> bool {
    let words = text.split(' ').count();
    let sign = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.');
    (1..=4).contains(&words)
        && text.len() <= 64
        && text.chars().next().is_some_and(char::is_alphabetic)
        && text.chars().all(sign)
}

/// A label without its verb: `Ann said` is Ann.
pub(super) fn without_verb(label: &str) -> &str {
    const SPEECH: [&str; 16] = [
        "said",
        "says",
        "wrote",
        "writes",
        "replied",
        "replies",
        "answered",
        "answers",
        "asked",
        "asks",
        "responded",
        "responds",
        "thinks",
        "stated",
        "states",
        "added",
    ];
    match label.rsplit_once(' ') {
        Some((name, verb)) if SPEECH.iter().any(|speech| speech.eq_ignore_ascii_case(verb)) => name.trim(),
        _ => label,
    }
}

/// Whether a label says what was made, not who made it.
pub(super) fn is_thing(label: &str) -> bool {
    const THINGS: [&str; 38] = [
        "plan",
        "draft",
        "feedback",
        "review",
        "summary",
        "answer",
        "result",
        "results",
        "output",
        "input",
        "critique",
        "analysis",
        "report",
        "context",
        "question",
        "task",
        "topic",
        "response",
        "solution",
        "code",
        "outline",
        "notes",
        "note",
        "conclusion",
        "proposal",
        "decision",
        "text",
        "content",
        "message",
        "history",
        "verdict",
        "score",
        "comment",
        "comments",
        "facts",
        "research",
        "findings",
        "version",
    ];
    let last = label.rsplit([' ', '_', '-']).next().unwrap_or(label);
    THINGS.iter().any(|thing| thing.eq_ignore_ascii_case(last))
}
