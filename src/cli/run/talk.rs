//! What `run` says of a run that has ended, on standard error.

use clap::ColorChoice;

use super::ConcludedRun;
use crate::{
    cli::{client_verdict, escape, screen, trial::cannot_check},
    execution::unrunnable,
    launch::{Ending, shell_word},
    surface,
    trajectory::{CallEnding, RefusalKind, Unserved, Verdict},
};

impl ConcludedRun {
    pub(super) fn talk(&self, colour: ColorChoice) {
        let say = |line: &str| screen::say(colour, line);
        if let (0, Some(ended)) = (self.steps, self.failed()) {
            say(&format!("error: the command {ended} before it made a model call through the proxy"));
            let hint = match self.ending {
                Ending::TimedOut => "give it more time, or look at what it waits for: try it without `aegis run`",
                _ => "its own error stands above; try the command without `aegis run`",
            };
            say(&format!("hint: {hint}"));
        } else if self.steps == 0 {
            say("error: the command made no model call through the proxy");
            say(
                "  set for it: OPENAI_BASE_URL, OPENAI_API_BASE, OPENAI_API_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL",
            );
            say(
                "hint: a base URL in the program's own code or configuration wins over these; point it at the variable",
            );
        }
        for line in &self.missed {
            say(&format!("missed   {}", escape(line)));
        }
        if !self.unmet.is_empty() {
            let names = self.unmet.iter().map(|name| format!("`{}`", escape(name))).collect::<Vec<_>>().join(", ");
            say(&format!("warning: no step is of {names}, and others are of agents that nobody named"));
            say(&format!("hint: `aegis agents {} --suggest` proposes rules for [[agent]]", self.dir_word()));
        }
        self.talk_of_upstream(say);
        self.talk_of_check(say);
        if let Some(client) = &self.client {
            let mut text = Vec::new();
            if client_verdict::write(client, &mut text).is_ok() {
                say(&String::from_utf8_lossy(text.trim_ascii_end()));
            }
        }
        for (api, count) in &self.unread {
            let what = surface::unread_what(api).map(|what| format!(" ({what})")).unwrap_or_default();
            say(&format!("warning: {count} of the steps are calls that are recorded, not read: {api}{what}"));
        }
        if !self.unread.is_empty() {
            say("hint: no agent is told and no plan edits them; most such servers speak chat completions, too");
        }
        for line in &self.not_whole {
            say(&format!("warning: {}", escape(line)));
        }
        if self.uninspected > 0 {
            say(&format!("warning: {} of the steps are WebSockets, which pass uninspected", self.uninspected));
            say("hint: switch the framework's WebSocket transport off, so that its calls can be read and edited");
        }
        say(&format!("run      {}  {} steps", self.dir.display(), self.steps));
        say(&format!("next     aegis show {}", self.dir_word()));
        say(&format!("         aegis agents {}", self.dir_word()));
    }

    /// Its directory, for a line to be typed.
    fn dir_word(&self) -> String {
        shell_word(&self.dir.to_string_lossy())
    }

    fn talk_of_upstream(&self, say: impl Fn(&str)) {
        match &self.unserved {
            Some((Unserved::Unreachable, upstream)) => {
                say(&format!("error: none of the run's calls reached {upstream}"));
                say(&format!(
                    "hint: `aegis show {} --step 0` has what it met; --upstream URL names another",
                    self.dir_word()
                ));
            }
            Some((refused @ Unserved::Refused { ending, .. }, upstream)) => {
                say(&format!("warning: {upstream} answered every call with {refused}"));
                if *ending == CallEnding::Refused(RefusalKind::Auth) {
                    say(
                        "hint: it wants a key: set OPENAI_API_KEY for the command, or `[upstream] key_env` in aegis.toml",
                    );
                }
            }
            None => {}
        }
    }

    fn talk_of_check(&self, say: impl Fn(&str)) {
        if let Some(said) = unrunnable(&self.outcome) {
            say(&format!("{}", cannot_check(&said)));
        } else if self.outcome.verdict != Verdict::Success && !self.outcome.evidence.is_empty() {
            say(&format!("outcome  {}", escape(&self.outcome.evidence)));
        }
    }
}
