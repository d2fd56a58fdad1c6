//! `html_page`: a web server answers instead of the service.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{AnswerBody, Attempts, Disturbance, Fault, words};

/// Answers with a web server's HTML error page instead of asking the upstream.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.html_page = { status = 502 }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "html_page"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HtmlPage {
    /// HTTP status, 200 to 599. With 200, clients take the page for an answer.
    #[serde(default = "bad_gateway")]
    pub status: u16,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

fn bad_gateway() -> u16 {
    502
}

impl Fault for HtmlPage {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        let body =
            AnswerBody::Raw { content_type: "text/html".to_owned(), bytes: Bytes::from_static(words::BAD_GATEWAY.as_bytes()) };
        let page = Disturbance::Answer { status: self.status, headers: Vec::new(), retry_after_date: None, body };
        self.attempts.include(attempt).then_some(page)
    }

    fn check(&self) -> Result<(), String> {
        if (200..600).contains(&self.status) {
            Ok(())
        } else {
            Err(format!("`status` is {}: expected 200 to 599", self.status))
        }
    }

    fn explain(&self) -> String {
        format!("answers with an HTML page and HTTP {} instead of asking the upstream, {}", self.status, self.attempts.words())
    }
}
