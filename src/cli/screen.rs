//! What a verb writes on: how wide it is, and whether it has colours.

use std::io::{IsTerminal, Write};

use super::{Global, terminal};

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
    /// Nobody knows, or somebody should look.
    Doubtful,
    /// It was planted.
    Planted,
}

impl Screen {
    /// Standard output.
    pub(super) fn stdout(global: &Global) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let colours = coloured(global.color, terminal);
        let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|_| terminal);
        Self { wraps: terminal, ..Self::new(said.or_else(measured).unwrap_or(WIDTH), colours) }
    }

    /// Standard error.
    pub(super) fn of_talk(choice: clap::ColorChoice) -> Self {
        Self::new(WIDTH, coloured(choice, std::io::stderr().is_terminal()))
    }

    /// Whether it has colours.
    pub(super) fn has_colours(self) -> bool {
        self.colours
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

    /// Text of a verb with its verdicts in their colours: of each line the words of [`VERDICTS`], where they stand as a
    /// column of their own, after `outcome`, or before a colon at its beginning. It must be escaped already.
    pub(super) fn painted(self, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        text.split_inclusive('\n').map(|line| self.painted_line(line)).collect()
    }

    fn painted_line(self, line: &str) -> String {
        let mut painted = String::with_capacity(line.len() + 16);
        let mut rest = line;
        while let Some(word) = rest.split([' ', '\n', ':', ',']).next() {
            let after = rest.get(word.len()..).unwrap_or_default();
            let begins = painted.trim_start().is_empty();
            let stands = begins || painted.ends_with("  ") || painted.ends_with("outcome ");
            let ends = after.is_empty() || after.starts_with(['\n', ':', ',']) || after.starts_with("  ");
            let verdict = VERDICTS.iter().find(|(known, _)| *known == word).filter(|_| stands && ends);
            match verdict {
                Some((_, colour)) => painted.push_str(&self.paint(*colour, word)),
                None => painted.push_str(word),
            }
            let gap = after.len() - after.trim_start_matches([' ', '\n', ':', ',']).len();
            if after.is_empty() {
                break;
            }
            painted.push_str(after.get(..gap).unwrap_or_default());
            rest = after.get(gap..).unwrap_or_default();
        }
        painted
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
            Colour::Doubtful => "33",
            Colour::Planted => "35",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// The words that say how something went, and what each is shown in: one colour a word, whichever verb says it.
const VERDICTS: &[(&str, Colour)] = &[
    ("ok", Colour::Good),
    ("passed", Colour::Good),
    ("success", Colour::Good),
    ("verified", Colour::Good),
    ("error", Colour::Bad),
    ("failed", Colour::Bad),
    ("failure", Colour::Bad),
    ("contradicted", Colour::Bad),
    ("finding", Colour::Bad),
    ("inconclusive", Colour::Doubtful),
    ("unproven", Colour::Doubtful),
    ("unsettled", Colour::Doubtful),
    ("unknown", Colour::Doubtful),
    ("void", Colour::Doubtful),
    ("warning", Colour::Doubtful),
    ("hint", Colour::Strong),
];

/// Whether there are colours: `--color` decides. By itself: none where `NO_COLOR` is set (no-color.org); else, where
/// `CLICOLOR_FORCE` is set and not 0, always; else on a terminal that can show them.
fn coloured(choice: clap::ColorChoice, terminal: bool) -> bool {
    let said = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    by_environment(choice, terminal, said)
}

/// Whether a line can be drawn anew on standard error.
pub(super) fn draws() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn by_environment(
    choice: clap::ColorChoice,
    terminal: bool,
    said: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> bool {
    match choice {
        clap::ColorChoice::Always => true,
        clap::ColorChoice::Never => false,
        clap::ColorChoice::Auto if said("NO_COLOR").is_some() => false,
        clap::ColorChoice::Auto if said("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        clap::ColorChoice::Auto => {
            terminal
                && said("TERM").is_none_or(|value| value != "dumb")
                && said("CLICOLOR").is_none_or(|value| value != "0")
        }
    }
}

/// Says a line on standard error, its verdicts in their colours.
pub(super) fn say(choice: clap::ColorChoice, line: &str) {
    say_at_once(&Screen::of_talk(choice).painted(line));
}

/// Says lines on standard error in one write. Programs that run at the same time write there too, and would come in between the
/// pieces of a formatted line. An error is no one's to hear: it could only be said there.
pub(super) fn say_at_once(lines: &str) {
    let _ = terminal::stderr().write_all(format!("{lines}\n").as_bytes());
}

/// Writes on standard error what stays in the line of the cursor.
pub(super) fn draw(text: &str) {
    let _ = terminal::stderr().write_all(text.as_bytes());
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
    fn one_place_decides_whether_there_are_colours() {
        use clap::ColorChoice::{Always, Auto, Never};
        for (choice, terminal, environment, expected) in [
            (Auto, true, &[][..], true),
            (Auto, false, &[], false),
            (Auto, true, &[("NO_COLOR", "1")], false),
            (Auto, true, &[("NO_COLOR", "")], true),
            (Auto, true, &[("TERM", "dumb")], false),
            (Auto, true, &[("CLICOLOR", "0")], false),
            (Auto, false, &[("CLICOLOR", "1")], false),
            (Auto, false, &[("CLICOLOR_FORCE", "1")], true),
            (Auto, false, &[("CLICOLOR_FORCE", "0")], false),
            (Auto, true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (Always, false, &[("NO_COLOR", "1")], true),
            (Never, true, &[("CLICOLOR_FORCE", "1")], false),
        ] {
            let said = |name: &str| {
                let found = environment.iter().find(|(known, value)| *known == name && !value.is_empty());
                found.map(|(_, value)| (*value).into())
            };
            assert_eq!(by_environment(choice, terminal, said), expected, "{choice:?} {terminal} {environment:?}");
        }
    }

    #[test]
    fn words_that_say_how_it_went_have_one_colour() {
        let screen = |colours| Screen::new(80, colours);
        let (good, bad, doubt) = ("\u{1b}[32m", "\u{1b}[31m", "\u{1b}[33m");
        for (line, painted) in [
            ("error: no such file\n", format!("{bad}error{END}: no such file\n")),
            ("hint: try\nwarning: so", format!("\u{1b}[1mhint{END}: try\n{doubt}warning{END}: so")),
            (
                "1/2  rate-limit    passed        3 steps",
                format!("1/2  rate-limit    {good}passed{END}        3 steps"),
            ),
            ("  broken: failed   aegis show", "  broken: failed   aegis show".to_owned()),
            ("client   failed: 2 calls", format!("client   {bad}failed{END}: 2 calls")),
            ("a  x  3 steps  outcome unknown\n", format!("a  x  3 steps  outcome {doubt}unknown{END}\n")),
            ("it failed, and an error was said to be ok", "it failed, and an error was said to be ok".to_owned()),
            ("\n\n  void: x", format!("\n\n  {doubt}void{END}: x")),
            ("", String::new()),
        ] {
            assert_eq!(screen(true).painted(line), painted);
            assert_eq!(screen(false).painted(line), line, "elsewhere every byte is as it was");
        }
    }

    const END: &str = "\u{1b}[0m";

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
