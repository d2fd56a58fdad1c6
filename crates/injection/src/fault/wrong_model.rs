//! `wrong_model`: another model answers than was asked.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};

/// Changes the model name everywhere in the reply.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.wrong_model = { model = "gpt-4o-mini-2024-07-18" }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "wrong_model"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrongModel {
    /// New model name.
    pub model: String,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl Fault for WrongModel {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        let written = reply.surface.write_model(reply.body, reply.streamed, &self.model).map_err(|error| error.to_string())?;
        if written == reply.body { Err("the reply already names that model".to_owned()) } else { Ok(written) }
    }

    fn explain(&self) -> String {
        format!("says that `{}` answered, {}", self.model, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::reshaped;

    #[test]
    fn every_place_names_the_other_model() {
        let fault = WrongModel { model: "other".to_owned(), attempts: Attempts::All };
        for (surface, _, body, changed) in reshaped(&fault, Some("It is 42."), None) {
            let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).expect("utf-8");
            assert_eq!(text(&changed.expect("changed")), text(&body).replace("\"m-1\"", "\"other\""), "{surface:?}");
        }
    }
}
