//! From LaTeX to plain arithmetic: `\dfrac{1}{2}` and `\frac12` become `((1)/(2))`, layout goes.

/// Deepest nesting that is read.
const DEPTH: usize = 24;

/// The text as plain arithmetic. What it does not know stays, without its backslash.
pub(super) fn plain_arithmetic(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    convert(text, &mut out, 0);
    out
}

fn convert(text: &str, out: &mut String, depth: usize) {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match c {
            '\\' if depth < DEPTH => command(after, out, depth),
            '$' | '~' | '°' => after,
            '−' | '–' => push(out, "-", after),
            '×' | '·' | '⋅' => push(out, "*", after),
            '÷' => push(out, "/", after),
            '√' => push(out, "sqrt", after),
            'π' => push(out, "pi", after),
            '{' => push(out, "(", after),
            '}' => push(out, ")", after),
            other => {
                out.push(other);
                after
            }
        };
    }
}

/// Reads what follows a backslash and returns what follows that.
fn command<'a>(text: &'a str, out: &mut String, depth: usize) -> &'a str {
    let length = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (name, rest) = text.split_at(length);
    match name {
        "" => symbol(text, out),
        "frac" | "dfrac" | "tfrac" | "cfrac" => {
            let (above, rest) = argument(rest);
            let (below, rest) = argument(rest);
            // `1\frac{1}{2}` is a mixed number.
            let whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if whole(above) && whole(below) && out.ends_with(|c: char| c.is_ascii_digit()) {
                return push(out, &format!(" {above}/{below}"), rest);
            }
            out.push_str("((");
            convert(above, out, depth + 1);
            out.push_str(")/(");
            convert(below, out, depth + 1);
            push(out, "))", rest)
        }
        "sqrt" => {
            let (index, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((index, rest)) => (Some(index), rest),
                None => (None, rest),
            };
            let (body, rest) = argument(rest);
            out.push_str(if index.is_some() { "((" } else { "sqrt(" });
            convert(body, out, depth + 1);
            match index {
                Some(index) => push(out, &format!(")^(1/({index})))"), rest),
                None => push(out, ")", rest),
            }
        }
        "text" | "mathrm" | "textbf" | "mathbf" | "mbox" | "textit" | "mathit" | "operatorname" | "emph" => {
            let (body, rest) = argument(rest);
            convert(body, out, depth + 1);
            rest
        }
        "cdot" | "times" | "ast" => push(out, "*", rest),
        "div" => push(out, "/", rest),
        "pi" => push(out, "pi", rest),
        "infty" => push(out, "inf", rest),
        "pm" => push(out, "±", rest),
        "circ" | "degree" | "left" | "right" | "big" | "Big" | "displaystyle" | "quad" | "qquad" => {
            if name == "circ" && out.ends_with('^') {
                out.pop();
            }
            rest
        }
        other => push(out, other, rest),
    }
}

/// A command of one sign: `\%`, `\,`, `\{`.
fn symbol<'a>(text: &'a str, out: &mut String) -> &'a str {
    let Some(c) = text.chars().next() else { return "" };
    match c {
        '%' | '{' | '}' | '&' | '#' => out.push(c),
        ' ' | ';' | ':' | '\\' => out.push(' '),
        // Thin spaces, math brackets, the dollar sign.
        _ => {}
    }
    text.get(c.len_utf8()..).unwrap_or_default()
}

/// The argument of a command, `{…}` or one sign, and what follows it.
fn argument(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let Some(body) = text.strip_prefix('{') else {
        let length = match text.strip_prefix('\\') {
            Some(name) => 1 + name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len()),
            None => text.chars().next().map_or(0, char::len_utf8),
        };
        return text.split_at(length);
    };
    let mut depth = 1;
    for (place, c) in body.char_indices() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 {
            return (body.get(..place).unwrap_or_default(), body.get(place + 1..).unwrap_or_default());
        }
    }
    (body, "")
}

fn push<'a>(out: &mut String, text: &str, rest: &'a str) -> &'a str {
    out.push_str(text);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn becomes_plain() {
        for (text, expected) in [
            (r"\dfrac{1}{2}", "((1)/(2))"),
            (r"\frac12", "((1)/(2))"),
            (r"\frac{\sqrt{3}}{2}", "((sqrt(3))/(2))"),
            (r"\sqrt2", "sqrt(2)"),
            (r"\sqrt[3]{8}", "((8)^(1/(3)))"),
            (r"1\frac{1}{2}", "1 1/2"),
            (r"2 \times 10^{3}", "2 * 10^(3)"),
            (r"\left( 1, \, 2 \right)", "( 1,  2 )"),
            (r"12\text{ cm}", "12 cm"),
            (r"90^\circ", "90"),
            (r"50\%", "50%"),
            (r"\$5", "5"),
            (r"\frac{1", "((1)/())"),
            (r"\", ""),
            (r"3\pi", "3pi"),
        ] {
            assert_eq!(plain_arithmetic(text), expected, "{text}");
        }
    }

    #[test]
    fn deep_nesting_ends() {
        let deep = r"\sqrt{".repeat(100_000);
        assert!(!plain_arithmetic(&deep).is_empty());
    }
}
