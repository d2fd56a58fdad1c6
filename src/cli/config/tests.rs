//! What a configuration that is none is told.

use super::*;

#[test]
fn what_is_wrong_is_said_where_it_is() {
    for (text, said) in [
        ("listen = 3", "aegis.toml:1:10"),
        ("\nlistten = \"x\"", "aegis.toml:2:1"),
        ("[[agents]]\nname = \"a\"", "hint: did you mean `agent`?"),
        ("[limits]\nmax_stream = 3", "hint: did you mean `max_streams`?"),
        ("[limits]\nhead_timeout_s = -1.0", "expected seconds"),
        ("[hints]\nagent_header = \"a b\"", "not a header name"),
        ("format = 9", "format 9"),
        ("[[agent]]\nname = \"a\"", "at least one condition"),
        ("[identity]\ndialects_off = [\"crewia\"]", "did you mean `crewai`"),
        ("[secrets]\npatterns = [\"(\"]", "[secrets] patterns: `(`"),
        ("[secrets]\nkeep = [\"x*\"]", "[secrets] keep: `x*` matches nothing"),
        ("[secrets]\nvalues = [\"abc\"]", "expected 4 and more"),
        ("[secrets]\nenv = [\"AEGIS_NO_SUCH\"]", "`AEGIS_NO_SUCH` is not set"),
        ("[secrets]\npattern = []", "unknown field `pattern`"),
        ("allowed_origins = [\"*\"]", "`*` is no origin"),
        ("allowed_origins = [\"http://localhost:3000/\"]", "and no path"),
    ] {
        let config = Config::parse(text, "aegis.toml").and_then(|config| {
            config.identity()?;
            config.gate()?;
            config.recording()?;
            config.limits()
        });
        let error = config.expect_err(text).to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}
