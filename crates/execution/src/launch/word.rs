//! A word of a command line, as a shell reads it back.

/// The word as it is where a shell takes it so, else between single quotes.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A command line of these words.
pub fn shell_line(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for word in ["logs/x", "", "two words", "it's", "$HOME", "a;b", "~", "*", "\\", "\"", "`ls`", "a\nb", "é"] {
            let line = format!("printf %s {}", shell_word(word));
            let said = std::process::Command::new("sh").args(["-c", &line]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&said.stdout), word);
        }
    }
}
