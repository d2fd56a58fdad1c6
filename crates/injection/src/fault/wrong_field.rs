//! `wrong_field`: a field of the reply is missing, has another name, or holds what nobody expects.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answered, Attempts, Disturbance, Fault};
use crate::surface::{MemberEdit, edit_member};

/// Breaks the shape of a reply at one place.
///
/// The place is a JSON pointer into the body, or into each frame of a stream that has it. The JSON stays well-formed.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.wrong_field = { pointer = "/choices", drop = true }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "wrong_field"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrongField {
    /// Field, for example `/choices/0/message`.
    pub pointer: String,
    /// Remove it.
    #[serde(default)]
    pub drop: bool,
    /// Set it to null.
    #[serde(default)]
    pub null: bool,
    /// Rename it to this.
    pub rename: Option<String>,
    /// Set it to this value, added if missing.
    pub set: Option<serde_json::Value>,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

impl WrongField {
    fn edit(&self) -> MemberEdit {
        match (&self.rename, &self.set) {
            (Some(name), _) => MemberEdit::Rename(name.clone()),
            (None, Some(value)) => MemberEdit::Set(value.to_string()),
            (None, None) if self.null => MemberEdit::Set("null".to_owned()),
            (None, None) => MemberEdit::Drop,
        }
    }
}

impl Fault for WrongField {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        self.attempts.include(attempt).then_some(Disturbance::Reshape)
    }

    fn reshape(&self, reply: &Answered<'_>, _: u64) -> Result<Bytes, String> {
        let written = edit_member(reply.body, reply.streamed, &self.pointer, &self.edit()).map_err(|error| error.to_string())?;
        if written == reply.body { Err("the reply is already so".to_owned()) } else { Ok(written) }
    }

    fn check(&self) -> Result<(), String> {
        if !self.pointer.starts_with('/') {
            return Err(format!("`{}` is no JSON pointer: expected one like `/choices/0/message`", self.pointer));
        }
        let given = [self.drop, self.null, self.rename.is_some(), self.set.is_some()];
        match given.into_iter().filter(|given| *given).count() {
            1 => Ok(()),
            0 => Err("expected `drop`, `null`, `rename` or `set`".to_owned()),
            _ => Err("several of `drop`, `null`, `rename` and `set` are given: expected one of them".to_owned()),
        }
    }

    fn explain(&self) -> String {
        let does = match self.edit() {
            MemberEdit::Drop => format!("leaves `{}` out of the reply", self.pointer),
            MemberEdit::Rename(name) => format!("calls `{}` of the reply `{name}`", self.pointer),
            MemberEdit::Set(value) => format!("puts `{value}` into `{}` of the reply", self.pointer),
        };
        format!("{does}, {}", self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::testing::reshaped;

    #[test]
    fn a_field_is_wrong_on_every_surface_that_has_it() {
        for parameters in
            ["pointer = '/model'\ndrop = true", "pointer = '/model'\nnull = true", "pointer = '/model'\nset = 3", "pointer = '/model'\nrename = 'm'"]
        {
            let fault: WrongField = toml::from_str(parameters).expect(parameters);
            assert_eq!(fault.check(), Ok(()));
            for (surface, streamed, before, changed) in reshaped(&fault, Some("It is 42."), None) {
                // The others name their model inside an event only, or by another name.
                let has = !streamed || ["openai_chat", "openai_completions"].contains(&surface.name());
                let has = has && surface.name() != "gemini_generate";
                // What is missing is added, where it is to hold something.
                let has = has || fault.null || fault.set.is_some();
                assert_eq!(changed.is_ok(), has, "{surface:?} {streamed}: {changed:?}");
                if let Ok(changed) = changed {
                    assert_ne!(changed, before);
                }
            }
        }
        for bad in ["pointer = 'model'\ndrop = true", "pointer = '/a'", "pointer = '/a'\ndrop = true\nnull = true"] {
            assert!(toml::from_str::<WrongField>(bad).expect(bad).check().is_err(), "{bad}");
        }
    }
}
