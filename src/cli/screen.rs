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
        Self::new(said.or_else(measured).unwrap_or(WIDTH), colours)
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
        Self { width: width.max(NARROWEST), colours }
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
    fn what_is_too_long_is_cut_and_says_so() {
        for (text, columns, expected) in [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("", 3, ""), ("éèê", 2, "é…")]
        {
            assert_eq!(fitted(text, columns), expected);
        }
    }
}
