//! What a verb writes on: how wide it is, and whether it has colours.

use std::io::IsTerminal;

use super::Global;

/// The width of what is no terminal, in columns.
const WIDTH: usize = 110;
/// The narrowest that text is fitted to.
const NARROWEST: usize = 40;

/// A terminal, a pipe or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Screen {
    /// How wide a line may be, in columns.
    pub(super) width: usize,
    colours: bool,
    /// Whether long lines are broken between words: on a terminal, which would break them anywhere.
    wraps: bool,
}

/// What is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    /// Of less weight.
    Faint,
    /// A name or a title.
    Strong,
    /// It went well.
    Good,
    /// It did not.
    Bad,
    /// It was planted.
    Planted,
}

impl Screen {
    /// Standard output. `--color` decides; by itself a terminal has colours unless `NO_COLOR` is set.
    pub(super) fn of(global: &Global) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let colours = match global.color {
            clap::ColorChoice::Always => true,
            clap::ColorChoice::Never => false,
            clap::ColorChoice::Auto => terminal && std::env::var_os("NO_COLOR").is_none(),
        };
        let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|_| terminal);
        Self { wraps: terminal, ..Self::new(said.or_else(measured).unwrap_or(WIDTH), colours) }
    }

    /// Standard error, by the same rules.
    pub(super) fn of_talk(choice: clap::ColorChoice) -> Self {
        let by_itself = || std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let colours = match choice {
            clap::ColorChoice::Always => true,
            clap::ColorChoice::Never => false,
            clap::ColorChoice::Auto => by_itself(),
        };
        Self::new(WIDTH, colours)
    }

    /// Of this width.
    pub(super) fn new(width: usize, colours: bool) -> Self {
        Self { width: width.max(NARROWEST), colours, wraps: false }
    }

    /// A text whose lines fit: those that are longer are broken between words, and begin again where they began. A word that
    /// fits no line is left to the terminal.
    pub(super) fn wrapped(self, text: &str) -> String {
        if !self.wraps {
            return text.to_owned();
        }
        let lines: Vec<String> = text.split('\n').map(|line| broken(line, self.width)).collect();
        lines.join("\n")
    }

    /// A text in a colour. It must be escaped already.
    pub(super) fn paint(self, colour: Colour, text: &str) -> String {
        if !self.colours || text.is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Faint => "2",
            Colour::Strong => "1",
            Colour::Good => "32",
            Colour::Bad => "31",
            Colour::Planted => "35",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// A line, broken between words; each part begins under the first word of the whole.
fn broken(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    let bare = line.trim_start_matches(' ');
    let indent = " ".repeat((line.len() - bare.len()).min(columns / 2));
    let (mut parts, mut part) = (Vec::new(), indent.clone());
    for word in bare.split(' ') {
        let joined = part.chars().count() + 1 + word.chars().count();
        if part.len() > indent.len() && joined > columns {
            parts.push(std::mem::replace(&mut part, indent.clone()));
        } else if part.len() > indent.len() {
            part.push(' ');
        }
        part.push_str(word);
    }
    parts.push(part);
    parts.join("\n")
}

/// A text in at most so many columns; what is cut off is marked.
pub(super) fn fitted(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_there_or_not() {
        let text = |colours| Screen::new(80, colours).paint(Colour::Bad, "failure");
        assert_eq!((text(false), text(true)), ("failure".to_owned(), "\u{1b}[31mfailure\u{1b}[0m".to_owned()));
        assert_eq!(Screen::new(3, false).width, NARROWEST);
    }

    #[test]
    fn a_terminal_gets_lines_that_fit() {
        let screen = |wraps| Screen { wraps, ..Screen::new(40, false) };
        let long = "  You are the solver. Carry out the plan step by step and say so.\nshort";
        assert_eq!(screen(false).wrapped(long), long, "what is no terminal gets the text as it is");
        assert_eq!(
            screen(true).wrapped(long),
            "  You are the solver. Carry out the plan\n  step by step and say so.\nshort"
        );
        let word = "x".repeat(90);
        assert_eq!(screen(true).wrapped(&format!("see {word} there")), format!("see\n{word}\nthere"));
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        for (text, columns, expected) in [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("", 3, ""), ("éèê", 2, "é…")]
        {
            assert_eq!(fitted(text, columns), expected);
        }
    }
}
