//! What `run` says of a run that has ended, on standard error.

use super::ConcludedRun;
use crate::{
    attribution::unrunnable,
    cli::{client_verdict, escape, trial::cannot_check},
    launch::Ending,
    trajectory::{Unserved, Verdict},
};

impl ConcludedRun {
    pub(super) fn talk(&self) {
        if let (0, Some(ended)) = (self.steps, self.failed()) {
            eprintln!("error: the command {ended} before it made a model call through the proxy");
            let hint = match self.ending {
                Ending::TimedOut => "give it more time, or look at what it waits for: try it without `aegis run`",
                _ => "its own error stands above; try the command without `aegis run`",
            };
            eprintln!("hint: {hint}");
        } else if self.steps == 0 {
            eprintln!("error: the command made no model call through the proxy");
            eprintln!("  set for it: OPENAI_BASE_URL, OPENAI_API_BASE, OPENAI_API_BASE_URL, ANTHROPIC_BASE_URL");
            eprintln!(
                "hint: a base URL in the program's own code or configuration wins over these; point it at the variable"
            );
        }
        for line in &self.missed {
            eprintln!("missed   {}", escape(line));
        }
        self.talk_of_upstream();
        self.talk_of_check();
        if let Some(client) = &self.client {
            let _ = client_verdict::write(client, &mut std::io::stderr());
        }
        for (api, count) in &self.unread {
            eprintln!("warning: {count} of the steps are calls of an API that is recorded, not read: {api}");
            eprintln!("hint: no agent is told and no plan edits them; most such servers speak chat completions, too");
        }
        if self.uninspected > 0 {
            eprintln!("warning: {} of the steps are WebSockets, which pass uninspected", self.uninspected);
            eprintln!("hint: switch the framework's WebSocket transport off, so that its calls can be read and edited");
        }
        eprintln!("run      {}  {} steps", self.dir.display(), self.steps);
        eprintln!("next     aegis show {}", self.dir.display());
        eprintln!("         aegis agents {}", self.dir.display());
    }

    fn talk_of_upstream(&self) {
        match &self.unserved {
            Some((Unserved::Unreachable, upstream)) => {
                eprintln!("error: none of the run's calls reached {upstream}");
                eprintln!(
                    "hint: `aegis show {} --step 0` has what it met; --upstream URL names another",
                    self.dir.display()
                );
            }
            Some((Unserved::Refused(status), upstream)) => {
                eprintln!("warning: {upstream} answered every call with {status}");
                if matches!(status, 401 | 403) {
                    eprintln!(
                        "hint: it wants a key: set OPENAI_API_KEY for the command, or `[upstream] key_env` in aegis.toml"
                    );
                }
            }
            None => {}
        }
    }

    fn talk_of_check(&self) {
        if let Some(said) = unrunnable(&self.outcome) {
            eprintln!("{}", cannot_check(&said));
        } else if self.outcome.verdict != Verdict::Success && !self.outcome.evidence.is_empty() {
            eprintln!("outcome  {}", escape(&self.outcome.evidence));
        }
    }
}
