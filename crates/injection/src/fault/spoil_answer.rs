//! `spoil_answer`: what the model said arrives as a failing service says it.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault, words};
use crate::surface::Answer;

/// Spoils the answer's text as services do: the reply is well-formed, with status 200.
///
/// The names are those of the field: `error_text` and `timeout_text` are crashes said as content, `empty` and `truncated`
/// are omissions, `mojibake` and `policy` are wrong values.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.spoil_answer = { how = "error_text" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "spoil_answer"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpoilAnswer {
    /// How.
    pub how: Spoiling,
    /// Share of the text that is kept with `truncated`, 0 to 1.
    #[serde(default = "third")]
    pub keep: f64,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

/// How a text is spoiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spoiling {
    /// A service's error message as the answer.
    ErrorText,
    /// A timeout message as the answer.
    TimeoutText,
    /// A web server's error page as the answer.
    HtmlPage,
    /// A policy's JSON as the answer.
    Policy,
    /// A refusal, with the finish reason of a filter.
    Filtered,
    /// An empty answer.
    Empty,
    /// Cut, as at the length limit.
    Truncated,
    /// Its UTF-8 was taken for Latin-1.
    Mojibake,
}

fn third() -> f64 {
    0.3
}

impl SpoilAnswer {
    fn spoil(&self, answer: &mut Answer) -> Result<(), String> {
        let text = answer.message.text();
        let (said, finish) = match self.how {
            Spoiling::ErrorText => (words::UNAVAILABLE.to_owned(), Answer::STOPPED),
            Spoiling::TimeoutText => (words::TIMED_OUT.to_owned(), Answer::STOPPED),
            Spoiling::HtmlPage => (words::BAD_GATEWAY.to_owned(), Answer::STOPPED),
            Spoiling::Policy => (words::POLICY.to_owned(), Answer::STOPPED),
            Spoiling::Filtered => (words::FILTERED.to_owned(), Answer::FILTERED),
            _ if text.is_empty() => return Err("the answer has no text".to_owned()),
            Spoiling::Empty | Spoiling::Mojibake | Spoiling::Truncated => {
                self.alter(answer, &text);
                return Ok(());
            }
        };
        answer.message.set_text(said);
        answer.message.tool_calls.clear();
        answer.finish_reason = Some(finish.to_owned());
        Ok(())
    }

    /// Alters the text that is there; tool calls stay.
    fn alter(&self, answer: &mut Answer, text: &str) {
        answer.message.set_text(match self.how {
            Spoiling::Truncated => words::first_share(text, self.keep),
            Spoiling::Mojibake => words::mojibake(text),
            _ => String::new(),
        });
        if self.how == Spoiling::Truncated {
            answer.finish_reason = Some(Answer::CUT.to_owned());
        }
    }
}

impl Fault for SpoilAnswer {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        reply.edited(|answer| self.spoil(answer))
    }

    fn check(&self) -> Result<(), String> {
        if (0.0..=1.0).contains(&self.keep) {
            Ok(())
        } else {
            Err(format!("`keep` is {}: expected 0 to 1", self.keep))
        }
    }

    fn rewords(&self) -> bool {
        true
    }

    fn explain(&self) -> String {
        let how = match self.how {
            Spoiling::ErrorText => "says a service's failure instead of the answer",
            Spoiling::TimeoutText => "says a time-out instead of the answer",
            Spoiling::HtmlPage => "says a web server's error page instead of the answer",
            Spoiling::Policy => "says a policy's JSON instead of the answer",
            Spoiling::Filtered => "says a refusal instead of the answer, filtered",
            Spoiling::Empty => "empties the answer",
            Spoiling::Truncated => "breaks the answer off",
            Spoiling::Mojibake => "garbles the answer's characters",
        };
        format!("{how}, {}", self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::{reshaped, reply_content};

    #[test]
    fn every_way_on_every_surface() {
        for (how, expected, finish) in [
            ("error_text", words::UNAVAILABLE, "stop"),
            ("timeout_text", words::TIMED_OUT, "stop"),
            ("html_page", words::BAD_GATEWAY, "stop"),
            ("policy", words::POLICY, "stop"),
            ("filtered", words::FILTERED, "content_filter"),
            ("empty", "", "stop"),
            ("truncated", "It is ", "length"),
            ("mojibake", "ItÂ\u{a0}isÂ\u{a0}42Â\u{a0}â\u{82}¬Â\u{a0}andÂ\u{a0}more.", "stop"),
        ] {
            let fault: SpoilAnswer = toml::from_str(&format!("how = '{how}'")).expect(how);
            for (surface, streamed, _, changed) in reshaped(&fault, Some("It is 42 € and more."), None) {
                if surface.name() == "gemini_interactions" && finish == "content_filter" {
                    let why = changed.expect_err("the API has no such status");
                    assert!(why.contains("no status"), "{why}");
                    continue;
                }
                let (text, _, reason) = reply_content(surface, streamed, &changed.expect("changed"));
                assert_eq!((text.as_str(), reason.as_deref()), (expected, Some(finish)), "{surface:?} {streamed} {how}");
            }
        }
    }
}
